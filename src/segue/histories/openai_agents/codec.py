"""Items of the OpenAI Agents SDK: input items of the Responses API, also where another API was asked.

Facts this file rests on (openai-agents 0.24.0, 2026-11-15):
- `to_input_list()` and `SQLiteSession` store the items as they are sent; unknown fields are kept.
- Over Chat every item has the id `__fake_id__`, and `provider_data` with the model and the id of the reply; both are
  removed before a request.
- Items over Responses do not name their model. A result has no error flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import ThinkingContent
from segue.conversation.messages import AssistantMessage, Message
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.origins import find_origin
from segue.histories.kit.wire import TurnCodec
from segue.projection.report import ChangeCode

NAME: Final = "openai-agents"
WIRE: Final = TurnCodec("openai-responses", "input", lead={"role": "user", "content": "-"})
_FAKE: Final = "__fake_id__"
_DATA: Final = "provider_data"


def _is_reply(entry: Mapping[str, Any]) -> bool:
    kind, role = text_of(entry.get("type")) or "message", text_of(entry.get("role"))
    if kind == "message":
        return role == "assistant"
    return not kind.endswith("_output") and role is None


def _split(entries: list[Entry]) -> list[list[Entry]]:
    """Give the items of one reply as one run."""

    def key(entry: Entry) -> tuple[bool, str]:
        data = object_of(entry.get(_DATA))
        return _is_reply(entry), str(data.get("response_id")) + str(data.get("model"))

    runs: list[list[Entry]] = []
    for (is_reply, _), group in groupby(entries, key):
        run = list(group)
        runs += [run] if is_reply else [[entry] for entry in run]
    return runs


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    data = object_of(run[0].get(_DATA))
    model = text_of(data.get("model")) or ""
    messages = list(WIRE.decode([_bare(entry) for entry in run], model, "openai"))
    if model:
        return [_over_chat(message, model, text_of(data.get("response_id"))) for message in messages]
    if _is_reply(run[0]):
        reading.note_once(ChangeCode.MODEL_UNKNOWN, "items over Responses do not name their model")
    return messages


def _bare(entry: Entry) -> Entry:
    """Give an item as it is sent."""
    return {key: value for key, value in entry.items() if key != _DATA and not (key == "id" and value == _FAKE)}


def _over_chat(message: Message, model: str, response_id: str | None) -> Message:
    """Set the origin of a reply over Chat, whose reasoning has no signature."""
    if not isinstance(message, AssistantMessage):
        return message
    origin = find_origin(model, "", "chatcmpl")
    content = tuple(
        replace(piece, thinking_signature=None) if isinstance(piece, ThinkingContent) else piece
        for piece in message.content
    )
    provider = origin.provider or "openai"
    return replace(
        message, content=content, protocol="openai-chat", provider=provider, model=model, response_id=response_id
    )


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:  # noqa: ARG001 - the messages are projected
    model = next((message.model for message in messages if isinstance(message, AssistantMessage)), "")
    return WIRE.encode(messages, model, "openai")


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, split=_split)
