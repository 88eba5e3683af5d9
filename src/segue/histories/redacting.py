"""Histories and conversations without secrets and names of home folders, for what leaves the machine.

Everything that a person, a model, a tool or a program wrote is searched: texts, arguments, results, names of files,
titles, folders, and the fields that segue keeps of a format. What is made by a provider stays: ids, signatures, models,
data of pictures. A signature that no longer fits its text is dropped, because the provider would refuse it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Sent, ToolResultMessage
from segue.foundation.redaction import Redactor
from segue.histories import places
from segue.histories.kit.history import Branch, Child, HistoryOrigin, Parent
from segue.histories.reading import OpenedDocument
from segue.projection.report import Change

_Value = TypeVar("_Value")

_KEPT: Final[Mapping[type, frozenset[str]]] = {
    TextContent: frozenset({"text_signature", "phase"}),
    ThinkingContent: frozenset({"thinking_signature"}),
    ToolCall: frozenset({"thought_signature"}),
    ImageContent: frozenset({"data", "mime_type"}),
    FileContent: frozenset({"data", "mime_type", "file_id"}),
    NativeContent: frozenset({"protocol"}),
    AssistantMessage: frozenset(
        {"protocol", "provider", "model", "response_model", "response_id", "stop_reason", "raw_stop_reason", "usage"}
    ),
    HistoryOrigin: frozenset({"format", "id", "version"}),
    Parent: frozenset({"id", "kind"}),
    Branch: frozenset({"id"}),
    Child: frozenset({"id"}),
    Change: frozenset({"code", "loss"}),
}
"""Fields that a provider or a program made, and that hold no words."""
_IDS: Final[Mapping[type, frozenset[str]]] = {
    ToolCall: frozenset({"id", "name"}),
    ToolResultMessage: frozenset({"tool_call_id", "tool_name"}),
    Child: frozenset({"call_id"}),
}
"""Fields of ids and names: random ones are no secrets."""
_OPAQUE: Final = frozenset({"extra", "details", "block", "definition", "path", "data"})
"""Fields that hold ids and data of providers and programs in addition to words."""
_TEXT_TYPES: Final = ("text/", "application/json", "application/xml", "application/x-", "application/yaml")


def new_redactor() -> Redactor:
    """Return a redactor that knows the home folder of this user."""
    folder = places.user_folder()
    # Of `/root` nobody learns anything, and `/` is not a folder of anybody.
    is_named = folder is not None and (folder.count("/") > 1 or "\\" in folder)
    return Redactor(homes=(folder,) if is_named and folder is not None else ())


def redact(value: _Value, redactor: Redactor) -> _Value:
    """Return a history, a conversation or any part of one without secrets; the same object if there are none.

    What is recognised at one place is taken out at all of them, so it is searched again if there was a new secret.
    """
    known = redactor.knows
    found = cast("_Value", _walk(value, redactor, ""))
    return found if redactor.knows == known else cast("_Value", _walk(found, redactor, ""))


def redact_document(document: OpenedDocument, redactor: Redactor) -> OpenedDocument:
    """Return an opened conversation without secrets, and without the bytes and the body that it was read from."""
    prompt = redact(document.prompt, redactor)
    history = document.history
    if history is not None:
        history = redact(replace(history, context=prompt.context), redactor)
        prompt = replace(prompt, context=history.context)
    body = redactor.value(document.body, words=redactor.opaque)
    return document._replace(
        prompt=prompt, history=history, body=cast("Mapping[str, object] | list[object] | None", body), data=b""
    )


def _walk(value: object, redactor: Redactor, name: str) -> object:
    if isinstance(value, str):
        return redactor.opaque(value) if name in _OPAQUE else redactor.field(name, value)
    if isinstance(value, msgspec.Struct):
        return _walk_struct(value, redactor)
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        made = tuple([_walk(each, redactor, name) for each in items])
        return items if all(one is other for one, other in zip(items, made, strict=True)) else made
    if isinstance(value, (Mapping, list)):
        return redactor.value(cast("object", value), name, words=redactor.opaque if name in _OPAQUE else None)
    return value


def _walk_struct(value: msgspec.Struct, redactor: Redactor) -> msgspec.Struct:
    kind = type(value)
    if kind is Sent:  # digests, and what they are made of
        return value
    kept, ids = _KEPT.get(kind, frozenset[str]()), _IDS.get(kind, frozenset[str]())
    changed: dict[str, object] = {}
    for name in value.__struct_fields__:
        if name in kept:
            continue
        old = getattr(value, name)
        if old is None or isinstance(old, (bool, int, float)):
            continue
        new = redactor.opaque(old) if name in ids and isinstance(old, str) else _walk(old, redactor, name)
        if new is not old and new != old:
            changed[name] = new
    if isinstance(value, ThinkingContent) and "thinking" in changed:
        changed["thinking_signature"] = None
    if isinstance(value, TextContent) and "text" in changed:
        changed["text_signature"] = None
    if isinstance(value, FileContent) and value.data is not None:
        changed |= _redact_file(value, value.data, redactor)
    if isinstance(value, AssistantMessage) and "content" in changed and value.sent is not None:
        changed["sent"] = None  # it describes what was sent, which is no longer there
    return replace(value, **changed) if changed else value


def _redact_file(file: FileContent, data: str, redactor: Redactor) -> dict[str, object]:
    """Redact the words of a file that is text; other files stay."""
    if not (file.mime_type or "").startswith(_TEXT_TYPES):
        return {}
    try:
        text = b64decode(data, validate=True).decode()
    except (Base64Error, ValueError):
        return {}
    found = redactor.text(text)
    return {} if found == text else {"data": b64encode(found.encode()).decode()}
