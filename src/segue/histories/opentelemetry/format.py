"""The record of OpenTelemetry's messages: the value of `gen_ai.input.messages`.

Messages of OpenTelemetry's conventions for generative AI: `gen_ai.input.messages`.

Facts (semantic-conventions-genai b49cb9d; dumps of pydantic-ai, 2026-11-15):
- A message has a role and parts: text, reasoning (pydantic-ai writes `thinking`), tool_call, tool_call_response, blob
  and uri (pydantic-ai writes `binary`). The schema allows further fields.
- There is no error flag and no signature; here both are further fields, under our own name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.framework import Framework, close_list, framework_format, give_json, items_of, list_opener
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import SEGUE, UNKNOWN, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import encode_json, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms, Template, write_turns
from segue.projection.report import ChangeCode

NAME: Final = "opentelemetry"
TITLE: Final = "OpenTelemetry"
_FINISH: Final = {"toolUse": "tool_call", "aborted": "error"}
_MEDIA: Final = {"modality": "$modality", "mime_type": "$mime_type?"}
_MEDIA_FORMS: Final = (
    {"type": "blob", **_MEDIA, "content": "$data!"},
    {"type": "uri", **_MEDIA, "uri": "$url!"},
    {"type": "file", **_MEDIA, "file_id": "$file_id!"},
    {"type": "binary", "media_type": "$mime_type", "content": "$data!"},
    {"type": "binary", "media_type": "$mime_type", "data": "$data!"},
)
_THINKING: Final = {
    "type": "reasoning",
    "content": "$thinking",
    f"{SEGUE}?": {"redacted": "$redacted?", "signature": "$thinking_signature?"},
}
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="type",
    keeps=True,
    text={"type": "text", "content": "$text", f"{SEGUE}?": {"signature": "$text_signature?"}},
    thinking=(_THINKING, {**_THINKING, "type": "thinking"}),
    toolCall={"type": "tool_call", "id": "$id", "name": "$name", "arguments": "$arguments_or_text"}
    | {f"{SEGUE}?": {"signature": "$thought_signature?"}},
    media=_MEDIA_FORMS,
)
_RESULT: Final = Template(
    "result",
    {"type": "tool_call_response", "id": "$tool_call_id", "response": "$content", "name": "$tool_name_or_none?"}
    | {f"{SEGUE}?": {"is_error": "$is_error?"}},
)


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    parts = objects_of(entry.get("parts"))
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    role = text_of(entry.get("role"))
    if role == "assistant":
        reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model; their spans do")
        pieces = _FORMS.read_reply(parts)
        message = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(entry.get("finish_reason"), pieces))
        return [set_origin(message, marked_origin(UNKNOWN, entry))]
    messages: list[Message] = [_read_result(part) for part in results]
    others = [part for part in parts if part not in results]
    if role == "system":
        messages.append(SystemMessage(content=_FORMS.read_texts(others)))
    elif role == "user" and (others or not results):
        messages.append(UserMessage(content=_FORMS.read_content(others)))
    return messages


def _read_result(part: Mapping[str, Any]) -> ToolResultMessage:
    value = part.get("response", part.get("result"))
    found: list[UserContent] = []
    for item in items_of(value):
        block = object_of(item)
        if isinstance(item, str):
            found.append(TextContent(text=item))
        elif block:
            found += _FORMS.read_content([{**block, "type": block.get("type") or block.get("kind")}])
    if not found and value not in (None, ""):
        found = [TextContent(text=value if isinstance(value, str) else encode_json(value))]
    return _RESULT.read(part, tuple(found))


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    def reply(message: AssistantMessage) -> Entry:
        finish = _FINISH.get(str(message.stop_reason), str(message.stop_reason))
        entry: Entry = {"role": "assistant", "parts": _FORMS.write(message, writing), "finish_reason": finish}
        return {**entry, **origin_mark(message, UNKNOWN)}

    return write_turns(
        messages,
        reply=reply,
        results=lambda run: {"role": "tool", "parts": [_write_result(each, writing) for each in run]},
        other=lambda message: {"role": message.role, "parts": _FORMS.write(message, writing)},
    )


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry | None:
    parts = _FORMS.write(message, writing)
    texts = [part["content"] for part in parts if part["type"] == "text"]
    return _RESULT.write(message, "\n".join(texts) if len(texts) == len(parts) else parts)


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)


_PARTS: Final = frozenset(
    {"text", "reasoning", "thinking", "tool_call", "tool_call_response", "blob", "binary", "uri", "file"}
)


def _is_message(entry: Mapping[str, Any]) -> bool:
    parts = objects_of(entry.get("parts"))
    known = all(text_of(part.get("type")) in _PARTS and "text" not in part for part in parts)
    return text_of(entry.get("role")) is not None and isinstance(entry.get("parts"), list) and known


FRAMEWORK: Final = Framework(codec=CODEC, title=TITLE, open=list_opener(_is_message), close=close_list)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    title="OpenTelemetry GenAI messages",
    source="semantic-conventions-genai b49cb9d; dumps of pydantic-ai",
)
