"""Compacted histories: a summary in an envelope, as the item that clients of the Responses protocol return unread.

Facts:
- `{"type": "compaction", "id", "encrypted_content"}` replaces everything before it except the user's messages, and is
  sent back with the next requests.                            (openai 3.49.0: ResponseCompactionItem; read 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message, UserMessage
from segue.envelope.envelopes import Envelopes, has_envelope
from segue.envelope.state import Piece, State

ITEM: Final = "compaction"
_HOLDER: Final = "encrypted_content"
_SUMMARY: Final = "Summary of the conversation before this point:\n\n"


def write_compaction(summary: str, name: str, protocol: str, envelopes: Envelopes, tenant: str) -> dict[str, object]:
    """Write a summary as an item that only this gateway reads."""
    state = State(protocol=protocol, provider="", model="", pieces=(Piece(0, TextContent(text=summary)),))
    return {"id": name, "type": ITEM, _HOLDER: envelopes.write(state, tenant)}


def open_compactions(context: Context, envelopes: Envelopes, tenant: str) -> Context:
    """Replace this gateway's own items by their summaries, as messages of the user that every model reads.

    An item of a provider stays unchanged.
    """
    turns = [message for message in context.messages if message.role == "assistant"]
    if not any(map(_envelope_of, [piece for turn in turns for piece in turn.content if piece.kind == "native"])):
        return context
    messages = (part for message in context.messages for part in _opened(message, envelopes, tenant))
    return replace(context, messages=tuple(messages))


def _envelope_of(piece: AssistantContent) -> str:
    """Return the envelope of a compaction; an empty text if the piece is not one."""
    if piece.kind != "native" or piece.block.get("type") != ITEM:
        return ""
    given = piece.block.get(_HOLDER)
    return given if isinstance(given, str) and has_envelope(given) else ""


def _opened(message: Message, envelopes: Envelopes, tenant: str) -> Iterator[Message]:
    if not isinstance(message, AssistantMessage):
        yield message
        return
    rest: list[AssistantContent] = []
    for piece in message.content:
        envelope = _envelope_of(piece)
        state = envelopes.read(envelope, tenant) if envelope else None
        summary = state.pieces[0].content if state is not None and state.pieces else None
        if not isinstance(summary, TextContent):
            rest.append(piece)
            continue
        if rest:
            yield replace(message, content=tuple(rest))
        rest = []
        yield UserMessage.of(_SUMMARY + summary.text)
    if rest:
        yield replace(message, content=tuple(rest))
