"""The record of messages of LangChain in the form of OpenAI.

Reads what LangChain's `convert_to_openai_messages` returns for messages of other providers.

Facts (langchain-core 1.7.2, run 2026-11-18):
- Messages of Chat, but the content of a reply keeps blocks of its provider (`thinking` with its signature,
  `redacted_thinking`, `reasoning` of Responses), next to `tool_calls`.
- `text_format="block"` makes every content a list, `include_id` adds ids. The status of a result is not kept.
"""

from __future__ import annotations

from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.chat_messages import read_content
from segue.histories.kit.documents import finish_history, load_value, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, set_origin
from segue.histories.kit.pieces import make_call, reasoning_item, stop_of, string_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.unread import note_unread

NAME: Final = "langchain-openai"
_OPENAI: Final = Origin(protocol="openai-responses", provider="openai", model="")
_ANTHROPIC: Final = Origin(protocol="anthropic-messages", provider="anthropic", model="")


def read(source: Source, view: View) -> History:
    """Read one list of messages.

    Raises:
        LoadError: the source has no list of messages.
    """
    refuse_branch(view, "LangChain")
    notes = Notes(keep=view.keep_records)
    value = load_value(source)
    listed = object_of(value).get("messages", value)
    if not isinstance(listed, list):
        raise LoadError("no conversation found: a list of messages is expected")
    messages: list[Message] = []
    system: list[str] = []
    for number, item in enumerate(cast("list[object]", listed), 1):
        fields, since = object_of(item), notes.left_out
        content = read_content(fields.get("content"))
        if fields.get("role") in ("system", "developer"):
            system += [piece.text for piece in content if piece.kind == "text"]
            continue
        made = _read_message(fields, notes, number)
        note_unread({"message": item}, made, number, notes, since=since)
        messages += made
    items = enumerate(cast("list[object]", listed), 1)
    return finish_history(NAME, notes, messages, system_prompt="\n\n".join(system) or None, given=items)


def _read_message(fields: dict[str, Any], notes: Notes, number: int) -> list[Message]:
    content = read_content(fields.get("content"))
    envelope = without(fields, ("role", "content", "tool_calls", "tool_call_id"))
    match fields.get("role"):
        case "user":
            return [with_envelope(UserMessage(content=content), NAME, envelope)]
        case "assistant":
            pieces, origin = _read_reply(fields)
            answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces))
            return [with_envelope(set_origin(answer, origin), NAME, envelope)]
        case "tool":
            call_id, name = text_of(fields.get("tool_call_id")) or "", text_of(fields.get("name")) or ""
            return [
                with_envelope(ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content), NAME, envelope)
            ]
        case role:
            notes.unreadable(number, f"the role {role!r} is unknown")
            return []


def _read_reply(fields: dict[str, Any]) -> tuple[list[AssistantContent], Origin]:
    content = fields.get("content")
    pieces: list[AssistantContent] = []
    origin = UNKNOWN
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else objects_of(content):
        match block.get("type"):
            case "text" if block.get("text"):
                pieces.append(TextContent(text=string_of(block.get("text")) or ""))
            case "thinking":
                signature = string_of(block.get("signature"))
                pieces.append(
                    ThinkingContent(thinking=string_of(block.get("thinking")) or "", thinking_signature=signature)
                )
                origin = _ANTHROPIC
            case "redacted_thinking":
                data = string_of(block.get("data"))
                pieces.append(ThinkingContent(thinking="", thinking_signature=data, redacted=True))
                origin = _ANTHROPIC
            case "reasoning":
                parts = objects_of(block.get("summary"))
                words = "\n".join(text for part in parts if (text := text_of(part.get("text"))))
                words = words or string_of(block.get("reasoning")) or ""
                pieces.append(reasoning_item(words, text_of(block.get("id")), text_of(block.get("encrypted_content"))))
                origin = _OPENAI
            case _:
                pass  # a `tool_use` repeats a call; `note_unread` reports one with its own words
    for call in objects_of(fields.get("tool_calls")):
        function = object_of(call.get("function"))
        pieces.append(make_call(call.get("id"), function.get("name"), function.get("arguments")))
    return pieces, origin


FORMAT: Final = Format(
    name=NAME,
    read=read,
    samples=read_samples(__package__),
    title="messages of LangChain in the form of OpenAI",
    kind="export",
    reads_lines=False,
    source="langchain-core 1.7.2, run",
    read_on="2026-11-18",
)
