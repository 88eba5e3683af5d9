"""The slow path of loading: foreign files (of pi-ai and ktsoator/or), and segue's own files with unknown fields.

Facts:
- pi-ai 1.5.0 (types.d.ts, read 2026-11-15) stores `{systemPrompt?, messages, tools?}`: `api` on assistant messages,
  a string in place of a list of content, seven stop reasons, `cacheWrite1h` and `totalFromProvider` in the usage,
  diagnostics with an `error`, a timestamp on every message, and the system prompt as a leading system message.
- ktsoator/or llm e3b9904 (message_json.go, read 2026-11-15) stores the same structure with `protocol` in place of
  `api`, no timestamps on user messages and tool results, `null` for an empty list or object, `providerRequestId`.
- Both use their own names of protocols.                                                        (the same)

Each object is converted to the fields of segue's types; then msgspec builds and validates the values. What does not
fit is an error with its path. Unknown fields are kept under `extra["stored"]` of their object.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import Final, TypeVar, cast, get_args

import msgspec

from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    FallbackContent,
    SystemContent,
    TextContent,
    ToolResultContent,
    UserContent,
    Value,
)
from segue.conversation.context import Context, Origin, Summary, Tool
from segue.conversation.messages import Diagnostic, Message, Sent, StopReason, SystemMessage, Usage, UsageCost
from segue.errors import LoadError, NewerFormat, Path

FORMAT: Final = "segue/1"

PROTOCOLS: Final[Mapping[str, str]] = {
    "azure-openai-responses": "openai-responses",
    "bedrock-converse-stream": "bedrock-converse",
    "google-gemini-cli": "google-genai",
    "google-generative-ai": "google-genai",
    "google-vertex": "google-genai",
    "mistral-conversations": "mistral-chat",
    "openai-codex-responses": "openai-responses",
    "openai-completions": "openai-chat",
}
"""Names of protocols in foreign files -> segue's names, where they differ. Unknown names are kept."""

_Fields = dict[str, object]
_Kinds = Mapping[str, type[Value]]
_T = TypeVar("_T")


def _by_tag(union: object) -> _Kinds:
    kinds: tuple[type[Value], ...] = get_args(union)
    return {str(kind.__struct_config__.tag): kind for kind in kinds}


_MESSAGES: Final = _by_tag(Message)
_TOOLS: Final = _by_tag(Tool)
_CONTENTS: Final = _by_tag(AnyContent)
_ALLOWED: Final[Mapping[str, frozenset[type[Value]]]] = {
    "user": frozenset(get_args(UserContent)),
    "assistant": frozenset(get_args(AssistantContent)),
    "toolResult": frozenset(get_args(ToolResultContent)),
    "system": frozenset(get_args(SystemContent)),
    "fallback": frozenset(get_args(FallbackContent)),
}
"""Content types by role; `fallback` is the part of native content that other targets get."""

_FIELDS: Final[Mapping[type[Value], frozenset[str]]] = {
    kind: frozenset({*kind.__struct_encode_fields__, kind.__struct_config__.tag_field or ""})
    for kind in (
        Context,
        Usage,
        UsageCost,
        Diagnostic,
        Sent,
        Summary,
        Origin,
        *_MESSAGES.values(),
        *_TOOLS.values(),
        *_CONTENTS.values(),
    )
}
_COUNTS: Final = frozenset({"timestamp", "covers", *Usage.__struct_encode_fields__})
"""Integer fields. JSON has one type of number, and some programs write 1.0 for 1."""

_STOP_REASONS: Final = frozenset(map(str, StopReason))

_DATA_URL: Final = re.compile(r"data:(?P<mime>[^;,]*)(?P<parameters>(?:;[^;,]*)*),", re.IGNORECASE)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*")
_STANDARD: Final = str.maketrans("-_", "+/", " \t\r\n=")

_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")


# -- plain values -> segue's types ------------------------------------------------------------------------------------


def read_context(value: object) -> Context:
    """Read a document: one of segue's, or a foreign one, which has no `format` and may be a bare list of messages.

    A leading system message of a foreign document becomes the system prompt, if there is no other prompt and nothing
    is lost.

    Raises:
        LoadError: the document is neither, or a value in it does not fit; `path` locates the problem.
        NewerFormat: the document was written by a later version of segue.
    """
    if isinstance(value, list):
        bare = [_message(item, (index,), foreign=True) for index, item in enumerate(cast("list[object]", value))]
        return with_leading_prompt(Context(messages=_build(bare, tuple[Message, ...])))
    document = _object(value, ())
    if "format" not in document:
        if "messages" not in document:
            message = f'is missing; a conversation has "format": "{FORMAT}", or at least a list of messages'
            raise LoadError(message, path=("messages",))
        return with_leading_prompt(_build(_context(document, foreign=True), Context))
    name = document["format"]
    check_format(name)
    if name == FORMAT:
        ours = {field: item for field, item in document.items() if field != "format"}
        return _build(_context(ours, foreign=False), Context)
    raise LoadError(f"unknown format {name!r}; expected {FORMAT!r}", path=("format",))


def check_format(name: object) -> None:
    """Refuse the name of a format of a later version.

    Raises:
        NewerFormat: the document was written by a later version of segue.
    """
    if name != FORMAT and isinstance(name, str) and name.startswith("segue/"):
        message = f"{name} is newer than this version of segue, which reads and writes {FORMAT}; upgrade segue"
        raise NewerFormat(message, path=("format",))


def read_message(value: object, *, foreign: bool) -> Message:
    """Read one message, segue's own or a foreign one.

    Raises:
        LoadError: a value in it does not fit; `path` locates it.
    """
    return _build(_message(value, (), foreign=foreign), cast("type[Message]", Message))


def read_summary(value: object) -> Summary:
    """Read one summary. There are no foreign ones.

    Raises:
        LoadError: a value in it does not fit; `path` locates it.
    """
    return _build(_summary(value, (), foreign=False), Summary)


def read_message_of_unknown_origin(value: object) -> Message:
    """Read one message: as segue's own if it fits, otherwise as a foreign one.

    Raises:
        LoadError: a value in it does not fit; `path` locates it.
    """
    try:
        message = _build(value, cast("type[Message]", Message))
    except LoadError:
        return read_message(value, foreign=True)
    if message.role == "assistant" and message.protocol in PROTOCOLS:
        return read_message(value, foreign=True)
    return message


def _build(converted: object, kind: type[_T]) -> _T:
    """Let msgspec build the value; convert its errors to `LoadError`."""
    try:
        return msgspec.convert(converted, kind)
    except msgspec.ValidationError as error:
        raise _load_error(error) from error
    except UnicodeEncodeError as error:
        # A string with a lone surrogate is in place of a number or an object. msgspec fails on the surrogate
        # before it can report the wrong type.
        raise _load_error_of_surrogate(converted, kind) from error


def _load_error_of_surrogate(converted: object, kind: type) -> LoadError:
    """Find the path by letting msgspec convert the same value with the surrogates replaced."""
    try:
        msgspec.convert(json.loads(json.dumps(converted, ensure_ascii=False).encode(errors="replace")), kind)
    except msgspec.ValidationError as error:
        return _load_error(error)
    return LoadError("a lone surrogate is in a field that is not text; remove it")


def _load_error(error: msgspec.ValidationError) -> LoadError:
    reason, _, place = str(error).rpartition(" - at `$")
    if not reason:
        reason, place = place, ""
    path: Path = tuple(int(index) if index else name for name, index in _STEP.findall(place))
    if missing := _MISSING.fullmatch(reason):
        return LoadError("is missing; the field is required", path=(*path, missing[1]))
    return LoadError(reason, path=path)


def with_leading_prompt(context: Context) -> Context:
    """Make a leading system message the system prompt, if there is no other prompt and no key of `extra` collides."""
    first = context.messages[0] if context.messages else None
    if context.system_prompt is not None or not isinstance(first, SystemMessage) or not first.content:
        return context
    extra = {name: dict(fields) for name, fields in (context.extra or {}).items()}
    for name, fields in (first.extra or {}).items():
        kept = extra.setdefault(name, {})
        if not kept.keys().isdisjoint(fields):
            return context
        kept.update(fields)
    text = _find_only_text(first.content)
    return Context(
        system_prompt=first.content if text is None else text,
        messages=context.messages[1:],
        tools=context.tools,
        summaries=context.summaries,
        pins=tuple(at - 1 for at in context.pins if at),
        extra=extra or None,
    )


def _find_only_text(content: tuple[SystemContent, ...]) -> str | None:
    """Return the text if the content is only one text."""
    match content:
        case (TextContent(text=text, text_signature=None, extra=None),):
            return text
        case _:
            return None


# -- fields of segue's types ------------------------------------------------------------------------------------------


def _context(document: _Fields, *, foreign: bool) -> _Fields:
    converted = _convert(document, Context, (), foreign=foreign)
    if isinstance(prompt := converted.get("systemPrompt"), list):
        converted["systemPrompt"] = _contents(cast("object", prompt), "system", ("systemPrompt",), foreign=foreign)
    for name in ("summaries", "pins"):
        if foreign and name in converted:
            # They are segue's own; a foreign field of that name is something else.
            _keep(converted, {name: converted.pop(name)})
    for field, read_item in (("messages", _message), ("tools", _tool), ("summaries", _summary)):
        items = _list(converted.get(field, []), (field,))
        converted[field] = [read_item(item, (field, index), foreign=foreign) for index, item in enumerate(items)]
    return converted


def _tool(value: object, path: Path, *, foreign: bool) -> _Fields:
    """A tool without a type is a function: foreign files have no other tools."""
    fields = {"type": "function", **_object(value, path)}
    return _convert(fields, _kind(fields, "type", _TOOLS, path), path, foreign=foreign)


def _summary(value: object, path: Path, *, foreign: bool) -> _Fields:
    converted = _convert({"type": Summary.kind, **_object(value, path)}, Summary, path, foreign=foreign)
    if "origin" in converted:
        converted["origin"] = _convert(converted["origin"], Origin, (*path, "origin"), foreign=foreign)
    return converted


def _message(value: object, path: Path, *, foreign: bool) -> _Fields:
    fields = _object(value, path)
    kind = _kind(fields, "role", _MESSAGES, path)
    role = str(fields["role"])
    if foreign and role == "assistant" and fields.get("protocol") is None and isinstance(fields.get("api"), str):
        fields = {"protocol" if name == "api" else name: item for name, item in fields.items() if name != "protocol"}
    converted = _convert(fields, kind, path, foreign=foreign)
    converted["content"] = _contents(converted.get("content"), role, (*path, "content"), foreign=foreign)
    if role == "assistant":
        _convert_report(converted, path, foreign=foreign)
    return converted


def _convert_report(converted: _Fields, path: Path, *, foreign: bool) -> None:
    """Convert usage, diagnostics, protocol and stop reason of an assistant message."""
    if "usage" in converted:
        usage = converted["usage"] = _convert(converted["usage"], Usage, (*path, "usage"), foreign=foreign)
        if "cost" in usage:
            usage["cost"] = _convert(usage["cost"], UsageCost, (*path, "usage", "cost"), foreign=foreign)
    if foreign and "sent" in converted:  # another program's field of this name
        _keep(converted, {"sent": converted.pop("sent")})
    if converted.get("sent") is not None:
        converted["sent"] = _convert(converted["sent"], Sent, (*path, "sent"), foreign=foreign)
    if "diagnostics" in converted:
        place = (*path, "diagnostics")
        converted["diagnostics"] = [
            _convert(item, Diagnostic, (*place, index), foreign=foreign)
            for index, item in enumerate(_list(converted["diagnostics"], place))
        ]
    if not foreign:
        return
    if isinstance(protocol := converted.get("protocol"), str):
        converted["protocol"] = PROTOCOLS.get(protocol, protocol)
    reason = converted.get("stopReason")
    if isinstance(reason, str) and reason not in _STOP_REASONS:
        converted["stopReason"] = StopReason.ERROR.value
        if converted.setdefault("rawStopReason", reason) != reason:
            _keep(converted, {"stopReason": reason})


def _contents(value: object, role: str, path: Path, *, foreign: bool) -> list[_Fields]:
    """Convert a list of content. A string is one text; null means no content."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [_content(item, role, (*path, index), foreign=foreign) for index, item in enumerate(_list(value, path))]


def _content(value: object, role: str, path: Path, *, foreign: bool) -> _Fields:
    fields = _object(value, path)
    kind = _kind(fields, "type", _CONTENTS, path)
    if kind not in _ALLOWED[role]:
        allowed = ", ".join(name for name, each in _CONTENTS.items() if each in _ALLOWED[role])
        raise LoadError(f"{fields['type']!r} is not allowed in {role}; allowed: {allowed}", path=(*path, "type"))
    converted = _convert(fields, kind, path, foreign=foreign)
    if "fallback" in converted:
        converted["fallback"] = _contents(converted["fallback"], "fallback", (*path, "fallback"), foreign=foreign)
    if foreign and isinstance(data := converted.get("data"), str):
        converted["data"], mime_type = _standard_base64(data)
        if mime_type:
            converted.setdefault("mimeType", mime_type)
    return converted


def _standard_base64(data: str) -> tuple[str, str]:
    """Convert to standard base64, and return the media type of a data URL; what is not base64 is returned unchanged."""
    mime_type, payload = "", data
    if url := _DATA_URL.match(data):
        mime_type, payload = url["mime"], data[url.end() :]
        if not url["parameters"].lower().endswith(";base64"):
            from urllib.parse import unquote_to_bytes  # costs more to import than all of this file, for one rare case

            return binascii.b2a_base64(unquote_to_bytes(payload), newline=False).decode("ascii"), mime_type
    original = payload.translate(_STANDARD)
    if len(original) % 4 == 1 or not _BASE64.fullmatch(original):
        return data, ""
    return original + "=" * (-len(original) % 4), mime_type


# -- one object -------------------------------------------------------------------------------------------------------


def _convert(value: object, kind: type[Value], path: Path, *, foreign: bool) -> _Fields:
    """Take the fields of `kind`, keep the others under `extra["stored"]`, and drop null."""
    known: _Fields = {}
    unknown: _Fields = {}
    for name, item in _object(value, path).items():
        if name not in _FIELDS[kind]:
            unknown[name] = item
        elif name in _COUNTS and isinstance(item, float) and item.is_integer():
            known[name] = int(item)
        elif item is not None:
            known[name] = item
    if "extra" in known and not _is_extra(known["extra"]):
        if not foreign:
            raise LoadError("expected an object of objects, keyed by protocol", path=(*path, "extra"))
        # A field of a foreign file that happens to have the same name.
        unknown["extra"] = known.pop("extra")
    if unknown:
        _keep(known, unknown)
    return known


def _keep(converted: _Fields, unknown: _Fields) -> None:
    extra = cast("dict[str, _Fields]", converted.get("extra", {}))
    converted["extra"] = {**extra, "stored": {**extra.get("stored", {}), **unknown}}


def _is_extra(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, dict) for item in cast("_Fields", value).values())


def _kind(fields: _Fields, tag: str, kinds: _Kinds, path: Path) -> type[Value]:
    """Find the type that an object names."""
    name = fields.get(tag)
    if isinstance(name, str) and name in kinds:
        return kinds[name]
    expected = f"expected one of {', '.join(kinds)}"
    raise LoadError(
        f"is missing; {expected}" if name is None else f"unknown {tag} {name!r}; {expected}", path=(*path, tag)
    )


def _object(value: object, path: Path) -> _Fields:
    if isinstance(value, dict):
        return cast("_Fields", value)
    raise LoadError(f"expected an object, got {_quote_value(value)}", path=path)


def _list(value: object, path: Path) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    raise LoadError(f"expected a list, got {_quote_value(value)}", path=path)


def _quote_value(value: object) -> str:
    return "null" if value is None else type(value).__name__
