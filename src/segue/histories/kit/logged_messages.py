"""Messages as tracing programs log them: in the form of whatever library the application calls its model with.

Facts (public documentation and types of Langfuse, LangSmith and OpenInference, 2026-11-18):
- What is logged is the argument of the client: messages of Chat, Anthropic blocks, parts of Google or of the Vercel AI
  SDK, or messages of LangChain, as constructors (`lc`) or as plain objects with `type`.
- A message can be in an object under `message`, and a whole value can be JSON as a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.documents import json_text, parse_text
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import UNKNOWN, set_origin
from segue.histories.kit.pieces import make_call, read_media, stop_of, string_of

_ROLES: Final[Mapping[str, str]] = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user",
    "assistant": "assistant", "model": "assistant", "ai": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_CLASSES: Final[Mapping[str, str]] = {
    "SystemMessage": "system", "HumanMessage": "user", "AIMessage": "assistant",
    "ToolMessage": "tool", "FunctionMessage": "tool",
}  # fmt: skip
_THOUGHTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking", "redacted-reasoning"})
_CALLS: Final = frozenset({"tool_use", "tool-call", "tool_call", "function_call"})
_RESULTS: Final = frozenset({"tool_result", "tool-result"})
_ANTHROPIC: Final = "anthropic-messages"


def fields_of(entry: object) -> tuple[str, dict[str, Any]]:
    """Return the role and the fields of a logged message; the role is empty if it is not a message."""
    fields = object_of(entry)
    inner = object_of(fields.get("message"))
    if inner and "role" not in fields:
        fields = inner
    kind = text_of(fields.get("role")) or text_of(fields.get("type")) or ""
    if fields.get("lc") is not None and isinstance(fields.get("kwargs"), dict):
        names = items_of(fields.get("id"))
        fields = object_of(fields["kwargs"])
        name = str(names[-1]).removesuffix("Chunk") if names else ""
        return _CLASSES.get(name) or _ROLES.get(text_of(fields.get("type")) or "", ""), fields
    if isinstance(fields.get("data"), dict) and "content" not in fields:
        fields = object_of(fields["data"])
    return _ROLES.get(kind.removesuffix("MessageChunk").lower(), ""), fields


def messages_in(value: object) -> list[object]:
    """Return the messages of a logged value: a list, an object with one, JSON as a text, or a list in a list."""
    parsed = parse_text(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        fields = object_of(cast("object", parsed))
        for key in ("messages", "contents", "input"):
            if items_of(fields.get(key)):
                return messages_in(fields[key])
        return [fields] if fields_of(fields)[0] else []
    items = items_of(parsed)
    if len(items) == 1 and items_of(items[0]):  # LangChain sends a batch of one
        return messages_in(items[0])
    return [item for item in items if fields_of(item)[0]]


def reply_in(value: object) -> list[object]:
    """Return the messages of a logged reply: one, several, choices of Chat, generations of LangChain, or a text."""
    parsed = parse_text(value) if isinstance(value, str) else value
    if parsed is None:
        return [{"role": "assistant", "content": value}] if isinstance(value, str) and value else []
    fields = object_of(parsed)
    choices = objects_of(fields.get("choices"))
    if choices:
        return [{"role": "assistant", **object_of(choices[0].get("message"))}]
    batch = items_of(fields.get("generations"))
    if batch:
        generations = objects_of(batch[0]) or objects_of(batch)
        return [each.get("message") or {"role": "assistant", "content": each.get("text")} for each in generations[:1]]
    found = messages_in(parsed)
    if not found and "content" in fields:
        return [{**fields, "role": "assistant"}]
    return found or ([{"role": "assistant", "content": value}] if isinstance(value, str) else [])


def prompt_in(value: object) -> str | None:
    """Return the instructions that a logged value has next to its messages."""
    fields = object_of(parse_text(value) if isinstance(value, str) else value)
    found = fields.get("system", fields.get("instructions"))
    if isinstance(found, str):
        return found or None
    return "\n\n".join(text for block in objects_of(found) if (text := text_of(block.get("text")))) or None


def read_logged_message(entry: object, origin: Origin = UNKNOWN) -> list[Message]:
    """Read one message; nothing if it is none. A message of the user can have results, which come before its words."""
    role, fields = fields_of(entry)
    content = fields.get("content", fields.get("parts"))
    blocks = _blocks_of(content)
    match role:
        case "system":
            return [SystemMessage(content=tuple(TextContent(text=text) for text in _texts(blocks)))]
        case "assistant":
            answer = _read_answer(fields, blocks)
            signed = any(piece.kind == "thinking" and piece.thinking_signature for piece in answer)
            if signed and not origin.protocol:
                origin = Origin(protocol=_ANTHROPIC, provider=origin.provider, model=origin.model)
            made = AssistantMessage(content=answer, stop_reason=stop_of(fields.get("finish_reason"), answer))
            return [set_origin(made, origin), *(_read_result(block) for block in blocks if _is_result(block))]
        case "tool" if not any(_is_result(block) for block in blocks):
            return [_read_result({**fields, "content": content})]
        case "user" | "tool":
            results: list[Message] = [_read_result(block) for block in blocks if _is_result(block)]
            words = tuple(_user_pieces(block for block in blocks if not _is_result(block)))
            return [*results, UserMessage(content=words)] if words or not results else results
        case _:
            return []


def _blocks_of(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    items = items_of(content) if not isinstance(content, dict) else [cast("object", content)]
    blocks = [{"type": "text", "text": item} if isinstance(item, str) else object_of(item) for item in items]
    return [object_of(block.get("message_content")) or block for block in blocks]


def _texts(blocks: Iterable[Mapping[str, Any]]) -> list[str]:
    return [text for block in blocks if isinstance(text := block.get("text"), str)]


def _user_pieces(blocks: Iterable[Mapping[str, Any]]) -> list[UserContent]:
    found: list[UserContent] = []
    for block in blocks:
        text = block.get("text")
        media = None if isinstance(text, str) else read_media(block)
        if isinstance(text, str):
            found.append(TextContent(text=text))
        elif media is not None:
            found.append(media)
    return found


def _is_result(block: Mapping[str, Any]) -> bool:
    return text_of(block.get("type")) in _RESULTS or isinstance(block.get("functionResponse"), dict)


def _read_result(fields: Mapping[str, Any]) -> ToolResultMessage:
    fields = {**fields, **object_of(fields.get("functionResponse"))}
    names = ("tool_call_id", "tool_use_id", "toolCallId", "call_id", "id")
    call_id = next((found for name in names if (found := text_of(fields.get(name)))), "")
    output = object_of(fields.get("output"))
    value: object = output.get("value", output) if output else fields.get("output")
    for name in ("content", "result", "response"):
        value = fields.get(name) if value is None else value
    content = [] if isinstance(value, dict) else _user_pieces(_blocks_of(value))
    if not content and value not in (None, "", [], {}):
        content = [TextContent(text=json_text(cast("object", value)))]
    failed = fields.get("is_error") is True or fields.get("isError") is True or fields.get("status") == "error"
    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=text_of(fields.get("toolName")) or text_of(fields.get("name")) or "",
        content=tuple(content),
        is_error=failed or (text_of(output.get("type")) or "").startswith("error"),
    )


def _read_answer(fields: Mapping[str, Any], blocks: list[dict[str, Any]]) -> tuple[AssistantContent, ...]:
    pieces: list[AssistantContent] = [_read_thought(block) for block in objects_of(fields.get("thinking_blocks"))]
    words = text_of(fields.get("reasoning_content")) or text_of(fields.get("reasoning"))
    if words and not pieces:
        pieces.append(ThinkingContent(thinking=words))
    for block in blocks:
        kind, text = text_of(block.get("type")) or "", block.get("text")
        if kind in _THOUGHTS or block.get("thought") is True:
            pieces.append(_read_thought(block))
        elif kind in _CALLS or isinstance(block.get("functionCall"), dict):
            pieces.append(_read_call(block))
        elif isinstance(text, str) and not _is_result(block):
            pieces.append(TextContent(text=text))
    known = {piece.id for piece in pieces if piece.kind == "toolCall" and piece.id}
    listed = [*objects_of(fields.get("tool_calls")), *objects_of(fields.get("toolCalls"))]
    listed += objects_of(fields.get("invalid_tool_calls"))
    listed += [{"function": fields["function_call"]}] if isinstance(fields.get("function_call"), dict) else []
    calls = [_read_call(call) for call in listed]
    pieces += [call for call in calls if call.id not in known]
    return tuple(pieces)


def _read_call(block: Mapping[str, Any]) -> ToolCall:
    block = object_of(block.get("tool_call")) or block
    fields = object_of(block.get("function")) or object_of(block.get("functionCall")) or block
    call_id = next((found for key in ("id", "toolCallId", "call_id") if (found := text_of(block.get(key)))), None)
    names = ("arguments", "args", "input", "parameters")
    arguments = next((fields[key] for key in names if fields.get(key) is not None), None)
    return make_call(call_id or fields.get("id"), fields.get("name", fields.get("toolName")), arguments)


def _read_thought(block: Mapping[str, Any]) -> ThinkingContent:
    given = object_of(object_of(block.get("providerOptions")).get("anthropic"))
    redacted = string_of(block.get("data")) or string_of(given.get("redactedData"))
    words = next((text for key in ("thinking", "reasoning", "text") if (text := string_of(block.get(key)))), "")
    if not words:
        words = "\n".join(_texts(objects_of(block.get("summary"))))
    if redacted is not None and not words:
        return ThinkingContent(thinking="", thinking_signature=redacted, redacted=True)
    signature = string_of(block.get("signature", given.get("signature")))
    return ThinkingContent(thinking=words, thinking_signature=signature)
