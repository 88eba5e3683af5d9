"""Templates: the JSON of a framework's messages, with named holes for the values of content.

One template reads and writes. A text that begins with `$` is a hole, with the name of an attribute or a computed value
(`HOLES` lists them); everything else is written verbatim:

    {"type": "reasoning", "content": "$thinking", "extra?": {"signature": "$thinking_signature?"}}

`$name?`, and a key with `?`, are left out where there is no value; a key with `|` is null there. A template with
`$name!` is used only where there is a value: one kind of content can have a form for data and one for addresses.
Templates of one kind are tried in order; those that are never the first to fit are what other versions wrote.

A template is compiled to two expressions, since every message passes through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, TypeAlias, TypeGuard, cast, final

from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    UserContent,
)
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import SettingsError
from segue.histories.kit.entries import Entry, Writing, results_together
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.pieces import (
    ANY_IMAGE,
    Media,
    arguments_text,
    image_of,
    is_base64,
    make_call,
    media_of,
    note_unsupported,
    shown,
    string_of,
    usage_of,
    whole_input,
)
from segue.protocols.kit.reading import data_url

TemplateJson: TypeAlias = Mapping[str, Any]


# -- values of holes ---------------------------------------------------------------------------------------------------


def modality(media: Media) -> str:
    """Return `image`, `audio`, `video` or `document`."""
    kind = "image" if media.kind == "image" else (media.mime_type or "").partition("/")[0]
    return kind if kind in {"image", "audio", "video"} else "document"


def any_type(media: Media) -> str:
    """Return the type of an image or a file; a general one if it is unknown."""
    return media.mime_type or (ANY_IMAGE if media.kind == "image" else "application/octet-stream")


def _data_url(media: Media) -> str | None:
    mime = media.mime_type or (ANY_IMAGE if media.kind == "image" else None)
    return None if media.data is None else data_url(mime, media.data)


def _make_text(text: object = None, text_signature: object = None) -> TextContent | None:
    return TextContent(text=text, text_signature=string_of(text_signature)) if isinstance(text, str) else None


def _make_thinking(
    thinking: object = None, thinking_signature: object = None, redacted: object = None
) -> ThinkingContent:
    words = string_of(thinking) or ""
    return ThinkingContent(thinking=words, thinking_signature=string_of(thinking_signature), redacted=redacted is True)


def _make_media(modality: object = None, mime: object = None, **place: object) -> Media | None:
    return media_of(mime or (ANY_IMAGE if modality == "image" else None), **place)


def _make_result(
    content: tuple[UserContent, ...], tool_call_id: object = None, tool_name: object = None, is_error: object = None
) -> ToolResultMessage:
    call_id, name = text_of(tool_call_id) or "", text_of(tool_name) or ""
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, is_error=is_error is True)


_MAKE: Final[Mapping[str, Callable[..., Any]]] = {
    "text": _make_text,
    "thinking": _make_thinking,
    "toolCall": make_call,
    "image": image_of,
    "file": _make_media,
    "media": _make_media,
    "result": _make_result,
    "usage": usage_of,
}
"""What templates are for, and how it is made of what is read. `media` is an image or a file, depending on its type."""
_MEDIA_HOLES: Final = "data base64 data_url url mime_type any_type modality"
HOLES: Final[Mapping[str, str]] = {
    "text": "text text_signature",
    "thinking": "thinking thinking_signature redacted",
    "toolCall": "id name arguments arguments_or_text arguments_text thought_signature",
    "image": _MEDIA_HOLES,
    "file": f"{_MEDIA_HOLES} name file_id",
    "media": f"{_MEDIA_HOLES} name file_id",
    "result": "tool_call_id tool_name tool_name_or_none is_error content",
    "usage": "whole_input input output cache_read cache_write reasoning total_tokens whole_total",
}
"""The holes of each kind. `arguments` is an object, `arguments_or_text` the text of the provider where it says more;
`base64` is only data that a strict parser accepts; `content` of a result is what the codec makes of it; `whole_input`
includes cached tokens."""
_WRITTEN: Final[Mapping[str, str]] = {
    "any_type": "any_type(x)",
    "arguments": "dict(x.arguments)",
    "arguments_or_text": "dict(x.arguments) if x.arguments_text is None else arguments_text(x)",
    "base64": "x.data if x.data is not None and is_base64(x.data) else None",
    "content": "more",
    "data_url": "data_url(x)",
    "file_id": "getattr(x, 'file_id', None)",
    "modality": "modality(x)",
    "name": "getattr(x, 'name', None)",
    "tool_name_or_none": "x.tool_name or None",
    "whole_input": "whole_input(x)",
    "whole_total": "x.total_tokens or whole_input(x) + x.output",
}
"""The expressions of holes that are not just attributes of `x`; `content` of a result is what the codec makes of it."""
_READ: Final[Mapping[str, str | None]] = {
    "any_type": "mime",
    "arguments_or_text": "arguments",
    "arguments_text": "given",
    "base64": "data",
    "content": None,
    "data_url": "url",
    "id": "call_id",
    "input": None,
    "mime_type": "mime",
    "thought_signature": "signature",
    "tool_name_or_none": "tool_name",
    "total_tokens": "total",
    "whole_input": "total_input",
    "whole_total": "total",
}
"""The parameters that holes are read as, where they have another name; None for holes that are only written."""
_MEDIA_KINDS: Final = frozenset({"image", "file"})
_NAMES: Final = {
    "any_type": any_type,
    "arguments_text": arguments_text,
    "data_url": _data_url,
    "is_base64": is_base64,
    "modality": modality,
    "object_of": object_of,
    "string_of": string_of,
    "whole_input": whole_input,
}


# -- compiled templates ------------------------------------------------------------------------------------------------


@final
class Template:
    """One template of one kind, compiled. `write` returns None where a value that it needs is missing.

    Raises:
        SettingsError: there is no such kind, or it has no such hole.
    """

    def __init__(self, kind: str, template: TemplateJson) -> None:
        _check_holes(kind, template)
        self._make = _MAKE[kind]
        needed: list[str] = []
        written = self._written(template, needed, (f"v{number}" for number in count()))
        self.write: Final[Callable[..., Entry | None]] = self._compile(
            f"lambda x, more=None: {''.join(needed)}{written}"
        )
        """Makes the JSON of a value; the second argument is the content of a result."""
        names = (f"o{number}" for number in count())
        parameters = [*(["more"] if kind == "result" else []), *self._reads(template, lambda: "x", names)]
        self.read: Final[Callable[..., Any]] = self._compile(f"lambda x, more=(): make({', '.join(parameters)})")
        """Makes the value of its JSON; the second argument is the content of a result."""

    def _compile(self, source: str) -> Callable[..., Any]:
        # Nothing of a conversation is in the source: only expressions of this file, and what a template consists of.
        return cast("Callable[..., Any]", eval(source, {**_NAMES, "make": self._make}))  # noqa: S307

    def _written(self, value: object, needed: list[str], names: Iterator[str]) -> str:
        if not isinstance(value, Mapping):
            if not _is_hole(value):
                return repr(value)
            hole = value.strip("$?!")
            expression = _WRITTEN.get(hole, f"x.{hole}")
            if value.endswith("!"):
                name = next(names)
                needed.append(f"None if ({name} := {expression}) is None else ")
                return name
            return expression
        fields: list[str] = []
        for key, item in cast("TemplateJson", value).items():
            written, name = self._written(item, needed, names), key.rstrip("?|")
            if key.endswith("?") or (_is_hole(item) and item.endswith("?")):
                found = next(names)
                # An empty text is a value: a signature can be one.
                fields.append(f"**({{{name!r}: {found}}} if ({found} := {written}) or {found} == '' else {{}})")
            else:
                fields.append(f"{name!r}: ({written}){' or None' if key.endswith('|') else ''}")
        return f"{{{', '.join(fields)}}}"

    def _reads(self, template: TemplateJson, holder: Callable[[], str], names: Iterator[str]) -> Iterator[str]:
        for key, item in template.items():
            name = key.rstrip("?|")
            if isinstance(item, Mapping):
                yield from self._reads(cast("TemplateJson", item), _found_once(holder, name, next(names)), names)
            elif _is_hole(item) and (parameter := _READ.get(hole := item.strip("$?!"), hole)) is not None:
                found = f"{holder()}.get({name!r})"
                is_text = parameter in {"given", "signature"}
                yield f"{parameter}={f'string_of({found})' if is_text else found}"


def _found_once(holder: Callable[[], str], key: str, name: str) -> Callable[[], str]:
    """Return the expression of an inner object: the first one finds it, those that follow name what was found."""
    named: list[str] = []

    def express() -> str:
        if named:
            return named[0]
        found = f"({name} := object_of({holder()}.get({key!r})))"
        named.append(name)
        return found

    return express


def _check_holes(kind: str, template: TemplateJson) -> None:
    if kind not in HOLES:
        raise SettingsError(f"there are no templates of {kind!r}; use one of {', '.join(HOLES)}", key=kind)
    given, known = list(_holes_of(template)), HOLES[kind].split()
    unknown = next((hole for hole in given if hole not in known), None)
    if unknown is not None or not given:
        text = f"a template of {kind!r} has no hole{'' if unknown is None else f' ${unknown}'}; use some of "
        raise SettingsError(f"{text}{', '.join(f'${hole}' for hole in known)}", key=unknown or kind)


def _holes_of(template: TemplateJson) -> Iterator[str]:
    for item in template.values():
        if isinstance(item, Mapping):
            yield from _holes_of(cast("TemplateJson", item))
        elif _is_hole(item):
            yield item.strip("$?!")


def _is_hole(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith("$")


PartReader: TypeAlias = Callable[[Mapping[str, Any]], AssistantContent | UserContent | None]
PartWriter: TypeAlias = Callable[[Any], Entry | None]


@final
class ContentForms:
    """The forms of content of one framework.

    `tag` is the key whose value identifies a form; without it, the first key of a form does. `readers`, and a function
    in place of a template, are for what no template describes. `keeps` says that any other part is kept as a native
    block of the format; it is left out otherwise. Content that has no form is reported; images and files of a reply are
    such unless `media_in_replies`.

    Raises:
        SettingsError: a template that cannot be used.
    """

    def __init__(
        self,
        name: str,
        title: str,
        *,
        tag: str | None = None,
        readers: Mapping[str, PartReader] | None = None,
        keeps: bool = False,
        media_in_replies: bool = True,
        **forms: TemplateJson | Sequence[TemplateJson] | PartWriter,
    ) -> None:
        self._name = name
        self._title = title
        self._tag = tag
        self._keeps = keeps
        self._media_in_replies = media_in_replies
        self._writers: dict[str, list[PartWriter]] = {}
        self._readers: dict[str, list[PartReader]] = {key: [reader] for key, reader in (readers or {}).items()}
        for kind, given in forms.items():
            if callable(given):
                self._writers[kind] = [given]
                continue
            for template in [given] if isinstance(given, Mapping) else given:
                if tag is not None and tag not in template:
                    text = (
                        f"the template of {kind!r} has no key {tag!r}, which tells the forms of {title} apart; add it"
                    )
                    raise SettingsError(text, key=tag)
                form = Template(kind, template)
                for written in _MEDIA_KINDS if kind == "media" else (kind,):
                    self._writers.setdefault(written, []).append(form.write)
                key = next(iter(template)) if tag is None else template[tag]
                self._readers.setdefault(key, []).append(form.read)

    def read(self, part: Mapping[str, Any]) -> AssistantContent | UserContent | None:
        """Read one part."""
        readers: Sequence[PartReader] = ()
        if self._tag is None:
            for key, value in part.items():
                if key in self._readers and (value or value == ""):
                    readers = self._readers[key]
                    break
        elif isinstance(kind := part.get(self._tag), str):
            readers = self._readers.get(kind, ())
        for reader in readers:
            if (piece := reader(part)) is not None:
                return piece
        return self._native(part) if self._keeps else None

    def _native(self, part: Mapping[str, Any], *fallback: Media) -> NativeContent:
        return NativeContent(protocol=self._name, block=dict(part), fallback=fallback)

    def read_content(self, parts: Iterable[Mapping[str, Any]]) -> tuple[UserContent, ...]:
        """Read what a user or a tool says."""
        found: list[UserContent] = []
        for part in parts:
            piece = self.read(part)
            if piece is not None and piece.kind != "thinking" and piece.kind != "toolCall":
                found.append(piece)
            elif piece is not None and self._keeps:
                found.append(self._native(part))
        return tuple(found)

    def read_texts(self, parts: Iterable[Mapping[str, Any]]) -> tuple[TextContent, ...]:
        """Read instructions."""
        return tuple(piece for piece in self.read_content(parts) if piece.kind == "text")

    def read_reply(self, parts: Iterable[Mapping[str, Any]]) -> list[AssistantContent]:
        """Read what a model says; its images and files are native blocks with the image or the file as fallback."""
        found: list[AssistantContent] = []
        for part in parts:
            piece = self.read(part)
            if piece is not None:
                found.append(self._native(part, piece) if piece.kind == "image" or piece.kind == "file" else piece)
        return found

    def write(self, message: Message, writing: Writing) -> list[Entry]:
        """Write the content of a message; what has no form is reported."""
        parts: list[Entry] = []
        for piece in message.content:
            if piece.kind == "native" and piece.protocol == self._name:
                parts.append(dict(piece.block))
                continue
            for each in shown(message, writing, (piece,)) if piece.kind == "native" else (piece,):
                is_left_out = message.role == "assistant" and not self._media_in_replies and each.kind in _MEDIA_KINDS
                part = None if is_left_out else self.write_one(each)
                if part is None:
                    note_unsupported(message, writing, each, self._title)
                else:
                    parts.append(part)
        return parts

    def write_one(self, piece: AnyContent) -> Entry | None:
        """Write one piece of content; None if it has no form."""
        for write in self._writers.get(piece.kind, ()):
            if (part := write(piece)) is not None:
                return part
        return None


# -- messages ----------------------------------------------------------------------------------------------------------


def write_turns(
    messages: Sequence[Message],
    *,
    reply: Callable[[AssistantMessage], Entry],
    results: Callable[[list[ToolResultMessage]], Entry],
    other: Callable[[UserMessage | SystemMessage], Entry],
) -> list[Entry]:
    """Write each message as an entry, results of tools that follow each other as one."""
    entries: list[Entry] = []
    for run in results_together(messages):
        first = run[0]
        if first.role == "assistant":
            entries.append(reply(first))
        elif first.role == "toolResult":
            entries.append(results(cast("list[ToolResultMessage]", run)))
        else:
            entries.append(other(first))
    return entries
