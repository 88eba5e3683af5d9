"""Takes secrets and names of home folders out of what leaves the machine; the only place that does.

Two ways, for two promises:
- `Redactor` takes out what it recognises: keys, tokens, passwords, names of home folders. Everything else is unchanged.
- `hide_texts` keeps only what a list of places names, and of that only plain names: the structure of a request.

What was taken out is counted by kind and never shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, cast, final

from segue.foundation.plurals import counted
from segue.foundation.secret_patterns import (
    AUTHORIZATION,
    LOGIN,
    LONG_WORD,
    NAME_BEFORE,
    NAME_HINTS,
    NAMED,
    PATTERNS,
    PRIVATE_KEY,
    RANDOM,
    URL_PASSWORD,
    is_named_secret,
    is_random,
)

_USER_FOLDER: Final = "home-folder"
_MARK: Final = "[redacted]"
_USER: Final = re.compile(
    r"(?P<before>(?<![\w.])(?:(?:/var|/export)?/home/|/Users/|[A-Za-z]:[\\/]+(?:Users|Documents and Settings)[\\/]+"
    r"|/mnt/[a-z]/Users/|\\\\+Users\\+))(?P<name>[^\s/\\:*?\"'`<>|,;()\[\]{}$%&]+)"
)
_USER_IN_NAME: Final = re.compile(r"(?P<before>(?<![\w.-])-+(?:home|Users)-)(?P<name>[A-Za-z0-9_.]+)(?=-|/|$)")
"""A home folder in the name that agents give to the folder of a project: `-home-alice-project`."""
_NOBODY: Final = frozenset(
    {"user", "users", "username", "name", "you", "me", "shared", "public", "default", "all", "app", "node", "runner"}
    | {"ubuntu", "debian", "vagrant", "codespace", "vscode", "linuxbrew", "circleci", "jenkins", "gitpod", "root"}
)
"""Folders that name no person."""
_SPACE: Final = re.compile(r"\s")
_LONGEST_FIELD: Final = 40
_PLAIN: Final = re.compile(r"[\w.:/@+-]{1,128}", re.ASCII)

Place = tuple[str, ...]


@final
class Redactor:
    """Replaces secrets and names of home folders, and counts them by kind.

    `homes` are home folders of this machine, which need not be below `/home`. One redactor serves one output: what it
    recognised once, it replaces everywhere after that, also where nothing shows that it is a secret.
    """

    def __init__(self, *, homes: Iterable[str] = ()) -> None:
        self.counts: Final = Counter[str]()
        self._known: dict[str, str] = {}
        self._learned: re.Pattern[str] | None = None
        self._homes = tuple(sorted((home.rstrip("/\\") for home in homes if len(home) > 3), key=len, reverse=True))

    def text(self, text: str, *, takes_random: bool = True) -> str:
        """Return a text without secrets; the same one if there are none.

        `takes_random` takes a word for a key because it is random.
        """
        if len(text) < 6:
            return text
        text = self._known_secrets(text)
        if "PRIVATE KEY" in text:
            text = PRIVATE_KEY.sub(lambda found: self._replace("private-key", found.group()), text)
        if LONG_WORD.search(text):
            for kind, hints, form in PATTERNS:
                if any(map(text.__contains__, hints)):
                    text = form.sub(lambda found, kind=kind: self._replace(kind, found.group()), text)
            if takes_random:
                text = RANDOM.sub(self._random, text)
        if "://" in text:
            text = URL_PASSWORD.sub(self._url_password, text)
        lowered = text.lower()
        if "bearer" in lowered or "basic" in lowered or "authorization" in lowered:
            text = AUTHORIZATION.sub(self._authorization, text)
        if "curl" in lowered:
            text = LOGIN.sub(self._login, text)
        if any(map(lowered.__contains__, NAME_HINTS)):
            text = NAMED.sub(self._named, text)
        return self._folders(text)

    def opaque(self, text: str) -> str:
        """Redact a text of a field that holds ids and data as well: a random word alone is not a secret there."""
        return self.text(text, takes_random=_SPACE.search(text) is not None)

    def field(self, name: str, text: str) -> str:
        """Return the text of a field, which may be a secret because of its name."""
        if not _SPACE.search(text) and is_named_secret(name, text) and not text.startswith("["):
            return self._replace("named-secret", text)
        return self.text(text)

    def value(self, value: object, name: str = "", *, words: Callable[[str], str] | None = None) -> object:
        """Return a JSON value without secrets, also in its keys; the same object if there are none.

        `words` redacts the texts; by default `text` does.
        """
        if isinstance(value, str):
            return self.field(name, value) if words is None else words(self._only_named(name, value))
        if isinstance(value, Mapping):
            given = cast("Mapping[str, object]", value)
            made = {self.text(key): self.value(each, key, words=words) for key, each in given.items()}
            is_same = all(key in made and made[key] is each for key, each in given.items())
            return cast("object", given) if is_same else made
        if isinstance(value, (list, tuple)):
            items = cast("list[object] | tuple[object, ...]", value)
            changed = [self.value(each, name, words=words) for each in items]
            if all(one is other for one, other in zip(items, changed, strict=True)):
                return cast("object", items)
            return changed if isinstance(value, list) else tuple(changed)
        return value

    @property
    def knows(self) -> int:
        """How many different secrets were recognised so far."""
        return len(self._known)

    def summary(self) -> str:
        """Return what was redacted, in numbers."""
        kinds = dict(self.counts)
        homes = kinds.pop(_USER_FOLDER, 0)
        parts = [] if not kinds else [f"{counted(sum(kinds.values()), 'secret')} ({_listed(kinds)})"]
        parts += [counted(homes, "name") + " of home folders"] if homes else []
        return "redacted: " + (", ".join(parts) or "nothing was found")

    def _only_named(self, name: str, text: str) -> str:
        if not _SPACE.search(text) and is_named_secret(name, text) and not text.startswith("["):
            return self._replace("named-secret", text)
        return text

    def _replace(self, kind: str, secret: str) -> str:
        self.counts[kind] += 1
        mark = f"[redacted: {kind}]"
        if len(secret) >= 12 and secret not in self._known:
            self._known[secret] = kind
            self._learned = None
        return mark

    def _known_secrets(self, text: str) -> str:
        if not self._known:
            return text
        if self._learned is None:
            ordered = sorted(self._known, key=len, reverse=True)
            self._learned = re.compile("|".join(map(re.escape, ordered)))
        return self._learned.sub(lambda found: self._replace(self._known[found.group()], found.group()), text)

    def _url_password(self, found: re.Match[str]) -> str:
        if found["value"].startswith(("$", "{", "[", "<", "%")):
            return found.group()
        return _with_value(found, self._replace("url-password", found["value"]))

    def _authorization(self, found: re.Match[str]) -> str:
        value = found["value"]
        if not any(map(str.isdigit, value)) and len(value) < 20:
            return found.group()
        return _with_value(found, self._replace("authorization", value))

    def _named(self, found: re.Match[str]) -> str:
        value = found["value"].rstrip(".:-")
        start = found.start()
        before = cast("re.Match[str]", NAME_BEFORE.search(found.string[max(0, start - 40) : start])).group()
        if not is_named_secret(before + found["name"], value):
            return found.group()
        return _with_value(found, self._replace("named-secret", value), size=len(value))

    def _login(self, found: re.Match[str]) -> str:
        value = found["value"]
        if not is_named_secret("password", value):
            return found.group()
        return _with_value(found, self._replace("named-secret", value), size=len(value))

    def _random(self, found: re.Match[str]) -> str:
        return self._replace("random", found.group()) if is_random(found.group()) else found.group()

    def _folders(self, text: str) -> str:
        for home in self._homes:
            if home in text:
                text = re.sub(rf"{re.escape(home)}(?![\w.-])", lambda _: self._folder(), text)
        if "/home/" in text or "Users" in text or "Documents and Settings" in text:
            text = _USER.sub(self._folder_name, text)
        if "-home-" in text or "-Users-" in text:
            text = _USER_IN_NAME.sub(self._folder_name, text)
        return text

    def _folder(self) -> str:
        self.counts[_USER_FOLDER] += 1
        return "~"

    def _folder_name(self, found: re.Match[str]) -> str:
        if found["name"].lower() in _NOBODY or not any(map(str.isalnum, found["name"])):
            return found.group()
        self.counts[_USER_FOLDER] += 1
        return found["before"] + _MARK


def hide_texts(value: object, places: Collection[Place]) -> object:
    """Return a JSON value with the length of each text in its place.

    `places` are those of protocol words, names and ids, as the keys that lead there, with `*` for the positions of a
    list. Their texts stay if they are one plain word and no secret. An object or a list below no place is hidden as a
    whole: its keys are the user's.
    """
    inner = {place[:end] for place in places for end in range(len(place))}
    return _hide(value, (), frozenset(places), inner, Redactor())


def _hide(
    value: object, place: Place, places: Collection[Place], inner: Collection[Place], redactor: Redactor
) -> object:
    if isinstance(value, str):
        stays = place in places and _PLAIN.fullmatch(value) is not None and redactor.text(value) == value
        return value if stays else f"[{len(value)} characters]"
    if not isinstance(value, (list, dict)):
        return value
    if place not in inner and place:
        return _MARK
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_hide(each, (*place, "*"), places, inner, redactor) for each in items]
    fields = cast("dict[str, object]", value)
    return {
        key if _is_field(key, redactor) else f"[field {at}]": _hide(each, (*place, key), places, inner, redactor)
        for at, (key, each) in enumerate(fields.items())
    }


def _is_field(key: str, redactor: Redactor) -> bool:
    return len(key) <= _LONGEST_FIELD and key.isidentifier() and redactor.text(key) == key


def _with_value(found: re.Match[str], mark: str, *, size: int | None = None) -> str:
    whole, start, end = found.group(), found.start("value") - found.start(), found.end("value") - found.start()
    end = end if size is None else start + size
    return whole[:start] + mark + whole[end:]


def _listed(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
