"""The places of a body that name objects at a provider: its files, stores, stored conversations, addresses of buckets.

A client that shares the operator's account may name only what it was given, so every place that can hold a name has a
class. The classes are in the file `object_places.json` of each protocol; the places come from `request_fields.json`,
which are the types of the official SDKs. A place of the types without a class, and a key that the types do not have,
is unknown: a value there that can be a name is treated as one.

A place is the key of a value and the key of the object around it (`prompt.id`), or the key alone. The types of objects
do not matter, so an object without a `type`, with another one, or with more keys has the same places.

The classes:
- "references": names; a string, a list, or an object all of whose unclassified strings are names.
- "addresses": URLs that the provider reads: of the public web, or `data:`.
- "models": names of further models that the provider runs for the request, as fallbacks and for tools.
- "plain": values that name nothing: texts, options, ids that only connect parts of one request.
- "maps": objects with keys of the client's own, whose values are as anywhere.
- "loose": results of tools, in which only known names and addresses count.
- "others": fields of another protocol, where only places with a class of their own are known.
- "data": what the provider does not read as fields: arguments, schemas, metadata.
- "added": plain places that the SDKs do not have and clients send.
- "continued_by": fields of a body with which a client names the reply to it in its next request.
- "items": where objects with an `id` are items, and what an item of a type holds if it is sent whole; any other item
  with an id is looked up by it. One that has "texts" can be sent without its id. What is "answered_by" a field may be
  named there if it is in the body, whole.

Facts:
- Google reads files with the rights of the account: `gs://`, `files/...`, addresses of googleapis.com. Bedrock reads
  `s3://`.        (Google: FileData.file_uri; Bedrock: S3Location.uri; google-genai 3.1.0, botocore 1.44.0; 2026-11-18)
- An item reference of Responses is an object with an `id`; its type may be null or absent. (openai 3.49.0:
  ItemReference) Reasoning with an id and without encrypted content is looked up: "Item with id 'rs_...' not found".
                                                                 (vercel/ai #7543, opencode #7724; 2025 and 2026)
- A system message "fileid://file-fe-..." is a file of the account to Qwen-Long, also several with commas.
                                                        (Alibaba Model Studio: long context, Qwen-Long; 2026-11-19)
- JSON of Google has two names for a field, `fileUri` and `file_uri`.                       (protobuf's JSON mapping)
- The canonical order of combining marks is an insertion sort in CPython: 0.25 MB of marks of two classes take minutes,
  with the interpreter's lock.                                         (CPython 3.11: unicodedata; measured 2026-11-19)
- Servers in Go read `Model` as `model`.                                                   (encoding/json: Unmarshal)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import repeat
from pkgutil import get_data
from types import NoneType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, final
from unicodedata import normalize
from urllib.parse import unquote

from segue.errors import Path
from segue.protocols.kit.json_values import Block

_Json: TypeAlias = "str | int | float | list[_Json] | dict[str, _Json] | None"
FindingKind: TypeAlias = Literal["object", "item", "address", "model", "unknown", "variant"]

_PLAIN: Final = 0
_DATA: Final = 1
_MAP: Final = 2
_LOOSE: Final = 3
_REFERENCE: Final = 4
_ADDRESS: Final = 5
_UNKNOWN: Final = 6
_UNKNOWN_NAME: Final = 7
"""An unknown key that names something by its own name."""
_MODEL: Final = 8
_CLASSES: Final[Mapping[str, int]] = {
    "plain": _PLAIN,
    "added": _PLAIN,
    "data": _DATA,
    "maps": _MAP,
    "loose": _LOOSE,
    "others": _UNKNOWN,
    "references": _REFERENCE,
    "addresses": _ADDRESS,
    "models": _MODEL,
}
_CHECKED: Final = (_REFERENCE, _ADDRESS)
_JUDGED: Final = (*_CHECKED, _MODEL)
_READ: Final = (_PLAIN, _REFERENCE)
"""Objects whose fields the protocol defines."""
_SIMPLE: Final = frozenset({bool, int, float, NoneType})
_NO_CLASSES: Final[Mapping[str, int]] = {}
_STRINGS: Final = ("string", "any", "object")
_NAMES: Final = re.compile(r"(?:^|[^a-z])(?:id|ids|uri|uris|url|urls|arn|ref|refs|reference|handle)$")
"""Ends of keys that hold names, after `_split_words`."""
_WORD: Final = re.compile(r"[a-z]+(?:[-_][a-z]+)*|.{1,3}")
"""Values of options: "low", "middle-out", "5m"."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:")
_WEB: Final = re.compile(r"https?://([^/?#\\]*)")
_HIDDEN: Final = re.compile(r"[\x00-\x20\x7f]+")
"""Characters that readers of URLs leave out."""
_HELD_DOMAINS: Final = ("googleapis.com", "storage.cloud.google.com")
_TEXT_NAME: Final = "fileid://"
"""What a text begins with that names a file."""
_LONGEST_START: Final = 64
_LONGEST_KEY: Final = 200
"""Characters of the longest key that is compared with others."""
_LONGEST_HOST: Final = 400
"""Characters of an address in which its host ends."""
_LONGEST_NAME: Final = 512
"""Characters of the longest name; a longer text without a scheme is content."""
_REPLY_KEYS: Final = frozenset({"annotations"})
"""Data of a request that the provider itself writes into a reply."""
_WRITTEN_KEYS: Final = frozenset({"tools", "input", "arguments", "args"})
"""What a reply repeats of the client or of a server that the client chose, and what the model wrote for a tool."""
_OF_SERVERS: Final = re.compile(r"mcp", re.IGNORECASE)
"""Types of blocks and items that a server of the client's choice fills; their own ids are the provider's.

(`mcp_list_tools` with any `annotations`: openai 3.49.0; `mcp_tool_listing`: anthropic 2.8.0; `mcp_server_tool_result`
with any `result`: google-genai 3.1.0; 2026-11-19)"""
_TO_CAMEL: Final = re.compile(r"_+([a-z0-9])")
_NOT_FOLDED: Final = re.compile(r"[\W_]+")


class NamedObject(NamedTuple):
    """A value that may name an object at the provider: where it is, the value (empty: any), and what it names.

    `kind`: "object" (a place of names), "item" (an item that is looked up by its id, and whose text is there without
    it), "address" (not of the public web), "model" (another model that runs), "unknown" (the place is not known),
    "variant" (a key that some servers read as the key `what`).
    """

    path: Path
    value: str
    what: str
    kind: FindingKind


@final
class ObjectPlaces:
    """The places of one protocol, from its files `object_places.json` (`table`) and `request_fields.json` (`fields`).

    `has_aliases`: every key has a second name, with underscores.
    """

    def __init__(self, table: Block, fields: Block | None) -> None:
        self.rows: dict[str, int] = {}
        self._whats: dict[str, str] = {}
        for name, number in _CLASSES.items():
            given = cast("Mapping[str, str] | list[str]", table.get(name, ()))
            self.rows |= dict.fromkeys(given, number)
            if isinstance(given, Mapping):
                self._whats |= given
        items = cast("Mapping[str, object]", table.get("items", {}))
        self._items_at: str | None = cast("str | None", items.get("at"))
        self._whole = cast("Mapping[str, list[str]]", items.get("whole", {}))
        self._texts = cast("Mapping[str, list[str]]", items.get("texts", {}))
        self._answered = cast("Mapping[str, str]", items.get("answered_by", {}))
        self._continued_by = cast("list[str]", table.get("continued_by", ()))
        self.has_aliases: bool = bool(table.get("aliases"))
        self._places = {} if fields is None else places_of(fields)
        texts = {key for (_, key), is_text in self._places.items() if is_text}
        self._typed = {key for _, key in self._places} - texts
        keys = {name.rpartition(".")[2] for name in self.rows} | self._typed
        self._folded = {_fold(key): key for key in keys}
        deciding = [name for name, number in self.rows.items() if number in (*_CHECKED, _DATA)]
        self._deciding = {"id", *deciding, *(name.rpartition(".")[2] for name in deciding)}
        """Keys whose class decides what a reply names."""
        self._known: dict[str, dict[str, int]] = {}
        """The classes of keys, by the key around them."""

    def class_of(self, parent: str, key: str) -> int | None:
        """Return the class of a place; None if it is unknown."""
        found = self._known.get(parent, _NO_CLASSES).get(key)
        if found is None:
            found = self.rows.get(f"{parent}.{key}")
            if found is None:
                found = self.rows.get(key)
            if found is None and key in self._typed:
                found = _PLAIN
            if found is not None and (not parent or parent in self._typed or parent in self.rows):
                self._known.setdefault(parent, {})[key] = found  # few: both keys are of the table
        return found

    def find(self, body: Block) -> Iterator[NamedObject]:
        """Find every value of a body that may name an object at the provider."""
        if self._is_clear(body):
            return
        answered: list[tuple[str, NamedObject]] = []
        waiting: list[tuple[object, str, Path, int]] = [(body, "", (), _PLAIN)]
        while waiting:
            value, parent, path, mode = waiting.pop()
            if isinstance(value, dict):
                yield from self._find_in(cast("dict[str, object]", value), parent, path, mode, waiting)
            elif isinstance(value, (list, tuple)):
                items = enumerate(cast("list[object]", value))
                if mode in (_PLAIN, _LOOSE):
                    waiting += [(each, parent, (*path, at), mode) for at, each in items if not isinstance(each, str)]
                else:
                    waiting += [(each, parent, (*path, at), mode) for at, each in items]
            elif mode >= _REFERENCE and value is not None and not isinstance(value, bool):
                found = self._judge(value, parent, path, mode)
                if found is not None and parent in self._answered:
                    answered.append((self._answered[parent], found))
                elif found is not None:
                    yield found
        if answered:
            whole = self._whole_items(body)
            yield from (found for kind, found in answered if (kind, found.value) not in whole)

    def _is_clear(self, body: Block) -> bool:
        """Whether a body has nothing but plain values and data in places that are known: then `find` finds nothing."""
        known, has_items, waiting = self._known, self._items_at is not None, [("", cast("_Json", body))]
        for parent, value in waiting:  # grows meanwhile
            if type(value) is not dict:
                if type(value) is list:
                    waiting += zip(repeat(parent), value)
                elif type(value) is not str:  # a text here is an item of a list
                    return False
                continue
            if has_items and "id" in value:
                return False
            classes = known.get(parent, _NO_CLASSES)
            for key, each in value.items():
                if (found := classes.get(key)) is None:
                    found = self.class_of(parent, key)
                if found != _PLAIN:
                    if found == _DATA or each is None:
                        continue
                    return False
                if type(each) is str:
                    if "://" in each[:_LONGEST_START] and _names_file(each):
                        return False
                elif type(each) not in _SIMPLE:
                    waiting.append((key, each))
        return True

    def _whole_items(self, body: Block) -> set[tuple[object, object]]:
        """Return the types and ids of the items of a body that are sent whole."""
        turns = body.get(self._items_at or "")
        items = cast("list[Block]", turns) if isinstance(turns, list) else []
        whole = [each for each in items if isinstance(each, dict) and not self._is_looked_up(each)]
        named = [(each.get("type"), each.get("id")) for each in whole]
        return {(kind, name) for kind, name in named if isinstance(kind, str) and isinstance(name, str)}

    def _find_in(
        self, block: dict[str, object], parent: str, path: Path, mode: int, waiting: list[tuple[object, str, Path, int]]
    ) -> Iterator[NamedObject]:
        if parent == self._items_at and mode == _PLAIN and self._is_looked_up(block):
            texts = self._texts.get(str(block.get("type")), ())
            has_text = isinstance(block["id"], str) and any(block.get(key) for key in texts)
            yield NamedObject((*path, "id"), str(block["id"]), "a stored item", "item" if has_text else "object")
        elif mode == _PLAIN and self._items_at and "id" in block and _fold(str(block.get("type"))) == "itemreference":
            yield NamedObject((*path, "id"), str(block["id"]), "a stored item", "object")
        for key, value in block.items():
            if value is None:
                continue
            if mode == _MAP:
                waiting.append((value, parent, (*path, key), _PLAIN))
                continue
            name, found = key, self.class_of(parent, key)
            if found is None and mode in _READ:
                name = self._alias_of(key)
                found = None if name == key else self.class_of(parent, name)
                other = self._folded.get(_fold(key)) if found is None else name if name in block else None
                if other is not None and other != key:
                    yield NamedObject((*path, key), "", other, "variant")
                    continue
            if mode == _REFERENCE and found not in _JUDGED and not self._is_place(parent, name):
                below = mode  # of a name in the form of an object, any other string may be the name
            elif mode in _READ:
                below = _unknown(key) if found is None else found
            elif found in _JUDGED or f"{parent}.{key}" in self.rows:
                below = cast("int", found)
            else:
                below = _LOOSE if mode == _LOOSE else _unknown(key)
            if below == _PLAIN and isinstance(value, str):
                if _names_file(value):
                    yield NamedObject((*path, key), value[:_LONGEST_NAME], "a file", "object")
                continue
            if below == _DATA or (below == _LOOSE and isinstance(value, str)):
                continue
            waiting.append((value, name, (*path, key), below))

    def _is_place(self, parent: str, key: str) -> bool:
        """Whether a key is known in this place, and not only in others."""
        return (parent, key) in self._places or f"{parent}.{key}" in self.rows

    def _judge(self, value: object, key: str, path: Path, mode: int) -> NamedObject | None:
        text = value if isinstance(value, str) else str(value)
        if mode == _MODEL:
            return NamedObject(path, text, "a model", "model") if text.strip() else None
        if mode == _ADDRESS:
            return None if is_public(text) else NamedObject(path, text, "an address of the account", "address")
        if mode == _REFERENCE:
            return NamedObject(path, text, self._what(path, key), "object") if text.strip() else None
        if (mode == _UNKNOWN and not (isinstance(value, str) and may_name(text))) or not text.strip():
            return None
        return NamedObject(path, text, "something", "unknown")

    def _what(self, path: Path, key: str) -> str:
        keys = [self._alias_of(each) for each in path if isinstance(each, str)]
        names = (f"{'.'.join(keys[-2:])}", key, *reversed(keys))
        return next((self._whats[name] for name in names if name in self._whats), "something")

    def _alias_of(self, key: str) -> str:
        if not self.has_aliases or "_" not in key or len(key) > _LONGEST_KEY:
            return key
        return _TO_CAMEL.sub(lambda found: found[1].upper(), key)

    def _is_looked_up(self, block: Block) -> bool:
        """Whether an item names a stored one: it has an id, and not what an item of its type consists of."""
        if not block.get("id"):
            return False
        kind = block.get("type")
        if kind is None and "role" in block:
            kind = "message"
        needed = self._whole.get(kind) if isinstance(kind, str) else None
        return needed is None or not all(block.get(key) for key in needed)

    @property
    def has_texts(self) -> bool:
        """Whether there are items that can be sent without their id."""
        return bool(self._texts)

    def names_reply(self, body: Block) -> bool:
        """Whether a body has a field in which the next request names the reply to it."""
        return not body.keys().isdisjoint(self._continued_by)

    def names_in(self, reply: object) -> set[str]:
        """Return the names in parts of a reply, which a later request of the same client may have.

        What a tool, a server or the client wrote into the reply, such as schemas, lists of tools and results, gives
        nobody a name: a client chooses its servers, and they write what they like.
        """
        found: set[str] = set()
        waiting: list[tuple[object, str, bool]] = [(reply, "", False)]
        for value, parent, is_name in waiting:  # grows meanwhile
            if type(value) is not dict and not isinstance(value, Mapping):
                if isinstance(value, (list, tuple)):
                    waiting += zip(cast("list[object]", value), repeat(parent), repeat(is_name))
                elif is_name and isinstance(value, str) and value and not (value[:4] == "http" and is_public(value)):
                    found.add(value)
                continue
            block = cast("Block", value)
            kind = block.get("type")
            is_written = isinstance(kind, str) and _OF_SERVERS.search(kind) is not None
            for key, each in block.items():
                if type(each) in _SIMPLE:
                    continue
                if kind is None and key not in self._deciding:  # whether its place is known does not matter
                    if type(each) is not str and key not in _WRITTEN_KEYS:
                        waiting.append((each, key, False))
                    continue
                number = self.class_of(parent, key)
                is_item = key == "id" and self._items_at is not None
                is_named = is_item or number in _CHECKED
                if is_named:
                    is_left = is_written and not is_item
                else:
                    is_unknown = number is None and kind is not None
                    is_data = number == _DATA and key not in _REPLY_KEYS
                    is_left = is_written or is_unknown or is_data or key in _WRITTEN_KEYS
                if not is_left and (is_named or not isinstance(each, str)):
                    waiting.append((each, key, is_named))
        return found


def _unknown(key: str) -> int:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[-_LONGEST_KEY:]).lower()
    return _UNKNOWN_NAME if _NAMES.search(words) else _UNKNOWN


def _names_file(text: str) -> bool:
    return _TEXT_NAME in text[:_LONGEST_START].lower()


def _fold(key: str) -> str:
    """Return a key as the most lenient of servers compares it."""
    return _NOT_FOLDED.sub("", _normalized(key[:_LONGEST_KEY]).casefold())


def _normalized(text: str) -> str:
    """Return a text in the letters that it is read as, each by itself: the order of marks takes quadratic time."""
    return text if text.isascii() else "".join([normalize("NFKC", each) for each in text])


def fold_name(name: str) -> str:
    """Return the beginning of a name or an address as the most lenient of servers reads it."""
    start = _HIDDEN.sub("", name[: 4 * _LONGEST_NAME])[:_LONGEST_HOST]
    return _HIDDEN.sub("", _normalized(start)).lower()


def is_public(address: str) -> bool:
    """Whether a provider reads an address without the rights of an account: it is of the web, or the content itself."""
    start = fold_name(address)
    if not start or start.startswith("data:"):
        return True
    web = _WEB.match(start)
    if web is None:
        return len(address) > _LONGEST_NAME and _SCHEME.match(start) is None
    if web.end() == len(start) and len(address) > _LONGEST_HOST:
        return False  # the host is not all of it
    host = unquote(web[1]).rpartition("@")[2].partition(":")[0].strip(".")
    return bool(host) and not any(host == held or host.endswith("." + held) for held in _HELD_DOMAINS)


def may_name(text: str) -> bool:
    """Whether a value of an unknown place can be a name: one word that is not a plain value of an option."""
    name = text.strip()
    if _SCHEME.match(name.lower()) is not None and " " not in name[:_LONGEST_NAME]:
        return not name.lower().startswith("data:")
    if len(name) > _LONGEST_NAME or len(name.split(None, 1)) > 1:
        return False
    return bool(name) and _WORD.fullmatch(name) is None


def places_of(table: Block) -> dict[tuple[str, str], bool]:
    """Return the places of `request_fields.json`: the key around them, their own, and whether they can be a string."""
    objects = cast("Mapping[str, Block]", table["objects"])
    found: dict[tuple[str, str], bool] = {}
    seen: set[tuple[str, str]] = set()
    waiting: list[tuple[str, str]] = [(str(table["body"])[1:], "")]

    def read(field: object, parent: str, key: str) -> bool:
        if isinstance(field, str):
            if field[0] == "#":
                waiting.append((field[1:], key))
            return field in _STRINGS
        given = cast("Block", field)
        if "union" in given:
            members = [read(each, parent, key) for each in cast("list[object]", given["union"])]  # each is read
            return any(members)
        if "list" in given or "map" in given:
            return read(given.get("list", given.get("map")), parent, key)
        return given.get("is") == "string"

    while waiting:
        name, parent = waiting.pop()
        if (name, parent) in seen:
            continue
        seen.add((name, parent))
        for key, field in cast("Block", objects[name]["fields"]).items():
            found[parent, key] = read(field, parent, key) or found.get((parent, key), False)
    return found


@lru_cache
def find_places(protocol: str) -> ObjectPlaces | None:
    """Return the places of a protocol; None if it has no table of them."""
    package = f"segue.protocols.{protocol.replace('-', '_')}"
    table = _read(package, "object_places.json")
    return None if table is None else ObjectPlaces(table, _read(package, "request_fields.json"))


def _read(package: str, name: str) -> Block | None:
    try:
        data = get_data(package, name)
    except (FileNotFoundError, ModuleNotFoundError):
        return None
    return None if data is None else cast("Block", json.loads(data))
