"""What a format stores around a message: kept in `extra`, under the name of the format, and restored for it.

    {"claude-code": {"uuid": ..., "requestId": ...}, "agent": {"own": True}}

Both keys name no protocol, so projection keeps them and no codec sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from segue.conversation.content import Extra, TextContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage

AGENT: Final = "agent"
"""The key of what is the same for every agent: `own` marks a text that the agent added by itself."""

M = TypeVar("M", bound=UserMessage | AssistantMessage | ToolResultMessage | SystemMessage)


def with_envelope(message: M, format_name: str, fields: Mapping[str, object], *, own: bool = False) -> M:
    """Add the fields that a format stores around a message, and the mark of a text that the agent added."""
    return replace(message, extra=envelope_extra(message.extra, format_name, fields, own=own))


def envelope_extra(
    extra: Extra | None, format_name: str, fields: Mapping[str, object], *, own: bool = False
) -> dict[str, Mapping[str, object]]:
    """Return `extra` of a message with these fields: for callers that replace more of the message at once."""
    made = {format_name: fields} if extra is None else {**extra, format_name: fields}
    if own:
        made[AGENT] = {"own": True}
    return made


def find_envelope(message: Message, format_name: str) -> Mapping[str, object] | None:
    """Return the fields that a format stored around a message; None if it was not read from that format."""
    return None if message.extra is None else message.extra.get(format_name)


def is_own_text(message: Message) -> bool:
    """Whether the agent added this text by itself."""
    agent = None if message.extra is None else message.extra.get(AGENT)
    return agent is not None and agent.get("own") is True


def plain_text(message: Message) -> str:
    """Join the texts of a message."""
    return "\n".join(content.text for content in message.content if isinstance(content, TextContent))


def find_title(messages: Iterable[Message]) -> str | None:
    """Return the first text of the user that the agent did not add."""
    for message in messages:
        if message.role == "user" and not is_own_text(message) and (text := plain_text(message).strip()):
            return text
    return None


def name_results(messages: Sequence[Message]) -> list[Message]:
    """Set the tool name of each result from the call that it answers."""
    if not any(message.role == "toolResult" for message in messages):
        return list(messages)
    names: dict[str, str] = {}
    named: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            names.update((call.id, call.name) for call in message.tool_calls())
        elif message.role == "toolResult" and not message.tool_name and message.tool_call_id in names:
            named.append(replace(message, tool_name=names[message.tool_call_id]))
            continue
        named.append(message)
    return named
