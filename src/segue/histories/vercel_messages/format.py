"""The record of model messages of the Vercel AI SDK.

Reads model messages of the Vercel AI SDK: `response.messages`, and what `convertToModelMessages` returns.

Facts (vercel/ai, `content-part.ts` of versions 4 to 7; read 2026-11-18):
- Content is a text or a list of parts: `text`, `reasoning`, `image`, `file`, `tool-call`, `tool-result` and others.
- A call has `input`, a result `output` with a `type` and a `value`; in version 4 they were `args` and `result`.
- The signature of Anthropic is in `providerOptions.anthropic.signature`, in replies in `providerMetadata`; redacted
  thinking in `redactedData`. Those of OpenAI are `itemId` and `reasoningEncryptedContent`.
- Data of media is base64, a URL, or in version 7 an object tagged `data`, `url`, `reference` or `text`.
- Messages have no ids, no times and no models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, load_value, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, set_origin
from segue.histories.kit.pieces import make_call, media_of, reasoning_item, stop_of, string_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.unread import note_unread

NAME: Final = "vercel-messages"
_ERRORS: Final = frozenset({"error-text", "error-json", "execution-denied"})
_NOT_OUTPUT: Final = (
    "type", "toolCallId", "toolName", "output", "isError", "experimental_content", "providerOptions",
    "providerMetadata", "providerExecuted", "input", "args", "dynamic", "preliminary",
)  # fmt: skip
"""Fields of a result, and of its output, that are not what the tool returned."""
_ANTHROPIC: Final = Origin(protocol="anthropic-messages", provider="anthropic", model="")
_OPENAI: Final = Origin(protocol="openai-responses", provider="openai", model="")


def read(source: Source, view: View) -> History:
    """Read one list of messages.

    Raises:
        LoadError: the source has no list of messages.
    """
    refuse_branch(view, "the Vercel AI SDK")
    notes = Notes(keep=view.keep_records)
    value = load_value(source)
    listed = object_of(value).get("messages", value)
    if not isinstance(listed, list):
        raise LoadError("no conversation found: a list of messages of the Vercel AI SDK is expected")
    messages: list[Message] = []
    system: list[str] = []
    for number, item in enumerate(cast("list[object]", listed), 1):
        fields, since = object_of(item), notes.left_out
        if fields.get("role") == "system":
            system.append(string_of(fields.get("content")) or "")
            continue
        made = list(_read_message(fields, notes, number))
        note_unread({"message": item}, made, number, notes, since=since)
        messages += made
    items = enumerate(cast("list[object]", listed), 1)
    return finish_history(NAME, notes, messages, system_prompt="\n\n".join(system) or None, given=items)


def _read_message(fields: dict[str, Any], notes: Notes, number: int) -> Iterator[Message]:
    content = fields.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else objects_of(content)
    envelope = without(fields, ("role", "content"))
    match fields.get("role"):
        case "user":
            pieces: list[UserContent] = []
            for part in parts:
                if (piece := _read_user(part)) is not None:
                    pieces.append(piece)
                else:
                    _note(part, notes, number)
            yield with_envelope(UserMessage(content=tuple(pieces)), NAME, envelope)
        case "assistant":
            yield from _read_assistant(parts, envelope, notes, number)
        case "tool":
            for part in parts:
                if part.get("type") == "tool-result":
                    yield _read_result(part)
                else:
                    _note(part, notes, number)
        case role:
            notes.unreadable(number, f"the role {role!r} is unknown")


def _read_user(part: dict[str, Any]) -> UserContent | None:
    if part.get("type") == "text":
        return TextContent(text=string_of(part.get("text")) or "")
    given = part.get("image") if part.get("type") == "image" else part.get("data")
    mime = part.get("mediaType") or part.get("mimeType") or ("image/png" if part.get("type") == "image" else None)
    tagged = object_of(given)
    if tagged:
        if tagged.get("type") == "text":
            return TextContent(text=string_of(tagged.get("text")) or "")
        given = tagged.get("data") or tagged.get("url") or tagged.get("value")
    is_url = isinstance(given, str) and given.startswith(("http:", "https:", "data:"))
    return media_of(mime, data=None if is_url else given, url=given if is_url else None, name=part.get("filename"))


def _note(part: dict[str, Any], notes: Notes, number: int) -> None:
    """Note a part of an unknown kind."""
    name = text_of(part.get("type")) or "unknown part"
    notes.record(name, number, len(json_text(part)), part if notes.keeps else None)


def _read_assistant(
    parts: list[dict[str, Any]], envelope: dict[str, object], notes: Notes, number: int
) -> Iterator[Message]:
    pieces: list[AssistantContent] = []
    results: list[Message] = []
    origin = UNKNOWN
    for part in parts:
        match part.get("type"):
            case "text":
                pieces.append(TextContent(text=string_of(part.get("text")) or ""))
            case "reasoning" | "redacted-reasoning":
                piece, found = _read_thought(part)
                pieces.append(piece)
                origin = found or origin
            case "tool-call":
                arguments = part.get("input", part.get("args"))
                pieces.append(make_call(part.get("toolCallId"), part.get("toolName"), arguments))
            case "tool-result":  # of a tool that the provider runs
                results.append(_read_result(part))
            case _:
                _note(part, notes, number)
    answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces))
    yield with_envelope(set_origin(answer, origin), NAME, envelope)
    yield from results


def _read_thought(part: dict[str, Any]) -> tuple[ThinkingContent, Origin | None]:
    options = {**object_of(part.get("providerMetadata")), **object_of(part.get("providerOptions"))}
    anthropic, openai = object_of(options.get("anthropic")), object_of(options.get("openai"))
    words = string_of(part.get("text")) or ""
    redacted = text_of(anthropic.get("redactedData")) or text_of(part.get("data"))
    if redacted is not None:
        return ThinkingContent(thinking=words, thinking_signature=redacted, redacted=True), _ANTHROPIC
    if openai:
        encrypted = text_of(openai.get("reasoningEncryptedContent"))
        return reasoning_item(words, text_of(openai.get("itemId")), encrypted), _OPENAI
    signature = text_of(anthropic.get("signature")) or text_of(part.get("signature"))
    return ThinkingContent(thinking=words, thinking_signature=signature), _ANTHROPIC if signature else None


def _read_result(part: dict[str, Any]) -> Message:
    output = object_of(part.get("output"))
    other = without(output or part, _NOT_OUTPUT) or None  # the value, under another name
    value = output.get("value", output.get("reason", other)) if output else part.get("result", other)
    blocks = objects_of(value) if output.get("type") == "content" else objects_of(part.get("experimental_content"))
    content: tuple[UserContent, ...] = tuple(piece for block in blocks if (piece := _read_user(block)) is not None)
    if not content and value not in (None, ""):
        content = (TextContent(text=json_text(value)),)
    return ToolResultMessage(
        tool_call_id=text_of(part.get("toolCallId")) or "",
        tool_name=text_of(part.get("toolName")) or "",
        content=content,
        is_error=text_of(output.get("type")) in _ERRORS or part.get("isError") is True,
    )


FORMAT: Final = Format(
    name=NAME,
    read=read,
    samples=read_samples(__package__),
    title="model messages of the Vercel AI SDK",
    kind="export",
    reads_lines=False,
    source="vercel/ai, content-part.ts of versions 4 to 7",
    read_on="2026-11-18",
)
