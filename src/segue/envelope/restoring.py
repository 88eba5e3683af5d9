"""Puts the replies that a client returns together again from their states.

Texts and arguments come from the client, everything else from the state. Where the client changed a text or the
arguments of a call, the client's own count, and the signature of that piece is dropped. What remains of an envelope
after that is removed: it is of no use to any provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from operator import is_
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.envelope.canonical import canonical_json, text_bytes
from segue.envelope.envelopes import MARK, bare_id, has_envelope
from segue.envelope.keys import LEAST_THOUGHT, plain_thought
from segue.envelope.state import Piece, State, arguments_digest, digest_of

_JOINTS: Final = (0, 1, 2)
"""How many blanks a protocol may put between two texts that it joins."""


@final
class RestoredTurn(msgspec.Struct, frozen=True):
    """A turn with its state, the ids of its calls (as the client knows them -> its own), and whether it was changed.

    `look_ups` are its calls that the client never saw, and what they search (`Piece.searched`).
    """

    message: AssistantMessage
    ids: dict[str, str]
    is_changed: bool
    look_ups: tuple[tuple[ToolCall, tuple[int, int]], ...] = ()


class _Turn:
    """What a client sent of a turn, while it is put together."""

    def __init__(self, turn: AssistantMessage, state: State) -> None:
        thoughts = [
            plain_thought(piece.content.thinking)
            for piece in state.pieces
            if piece.content.kind == "thinking" and piece.content.thinking
        ]
        # After a switch of models some clients send the thinking as text, by itself or before the text.
        texts = [piece.text for piece in turn.content if piece.kind == "text"]
        text = "".join(text for text in texts if not text.strip() or plain_thought(text) not in thoughts)
        for thought in thoughts:
            if len(thought) >= LEAST_THOUGHT and text.lstrip().startswith(thought):  # a text may begin with "Look"
                text = text.lstrip().removeprefix(thought)
        self.text: str = text
        self.at: int = 0
        self.calls: list[ToolCall] = list(turn.tool_calls())
        shown = [piece.shown for piece in state.pieces if piece.content.kind == "toolCall" and piece.searched is None]
        known = {bare_id(call.id) for call in self.calls} | {call.id for call in self.calls}
        # Some clients drop the ids of calls; then the order counts.
        self.by_place: bool = not known.intersection(shown) and len(shown) == len(self.calls)
        self.is_changed: bool = False

    def take_text(self, piece: Piece, content: TextContent) -> TextContent | None:
        if not piece.digest:
            return content  # the client did not see it
        for gap in _JOINTS:
            start = self.at + gap
            found = self.text[start : start + piece.size]
            if self.text[self.at : start].strip():
                break
            if len(found) == piece.size and digest_of(found) == piece.digest:
                self.at = start + piece.size
                return replace(content, text=found)
        self.is_changed = True
        return None

    def take_rest(self) -> str:
        rest, self.at = self.text[self.at :], len(self.text)
        return rest if rest.strip() else ""

    def take_call(self, piece: Piece, own: ToolCall) -> tuple[ToolCall, str] | None:
        for at, call in enumerate(self.calls):
            if is_shown(call.id, piece.shown) or (self.by_place and at == 0):
                del self.calls[at]
                is_same = not piece.digest or arguments_digest(call) == piece.digest
                if is_same and call.name == (piece.name or own.name):
                    return replace(own, arguments=call.arguments), call.id
                self.is_changed = True
                return replace(call, id=own.id, thought_signature=None, extra=None), call.id
        self.is_changed = True
        return None


def is_shown(given: str, shown: str) -> bool:
    """Whether the id of a call that a client returned is one that it was given, with or without an envelope in it."""
    return given == shown or bare_id(given) == shown


def restore_turn(turn: AssistantMessage, state: State) -> RestoredTurn:
    """Put a turn together from what the client sent and its state."""
    given = _Turn(turn, state)
    content: list[AssistantContent] = []
    look_ups: list[tuple[ToolCall, tuple[int, int]]] = []
    ids: dict[str, str] = {}
    if state.shown:
        if digest_of("".join(given.text.split())) == state.shown:
            given.take_rest()
        else:
            given.is_changed = True
    for piece in state.pieces:
        own = piece.content
        match own.kind:
            case "text":
                if state.shown and given.is_changed:
                    continue
                text = given.take_text(piece, own)
                if text is None:
                    rest = given.take_rest()
                    text = TextContent(text=rest) if rest else None
                if text is not None:
                    content.append(text)
            case "toolCall" if piece.searched is not None:
                content.append(own)
                look_ups.append((own, piece.searched))
            case "toolCall":
                found = given.take_call(piece, own)
                if found is not None:
                    content.append(found[0])
                    ids[found[1]] = found[0].id
            case "thinking" | "native":
                content.append(own)
    _add_rest(content, given, state)
    message = _with_head(turn, state, content, is_changed=given.is_changed)
    return RestoredTurn(message, ids, given.is_changed, tuple(look_ups))


def _add_rest(content: list[AssistantContent], given: _Turn, state: State) -> None:
    """Add what the state does not have: the end of a reply whose state is partial, and what the client added."""
    rest = given.take_rest()
    if rest:
        calls = [at for at, piece in enumerate(content) if piece.kind == "toolCall"]
        content.insert(calls[0] if calls and state.is_whole else len(content), TextContent(text=rest))
    content += [strip_call(call) for call in given.calls]
    if state.is_whole and (rest or given.calls):
        given.is_changed = True


def _with_head(
    turn: AssistantMessage, state: State, content: Sequence[AssistantContent], *, is_changed: bool
) -> AssistantMessage:
    head = state.head
    if head is not None and not is_changed:
        return replace(head, content=tuple(content))
    return replace(
        turn,
        content=tuple(content),
        protocol=state.protocol,
        provider=state.provider,
        model=state.model,
        sent=state.made_after,  # what really came before, whatever the client changed
        extra=None,
    )


# -- envelopes that are left -------------------------------------------------------------------------------------------


def strip_turn(turn: AssistantMessage, *, native: bool) -> AssistantMessage:
    """Remove envelopes from a turn without a state; with `native`, other signatures stay."""
    content = tuple([stripped for piece in turn.content if (stripped := _strip(piece, native=native)) is not None])
    is_same = len(content) == len(turn.content) and all(map(is_, content, turn.content))
    return turn if is_same else replace(turn, content=content)


def _strip(piece: AssistantContent, *, native: bool) -> AssistantContent | None:
    match piece.kind:
        case "thinking":
            return _strip_thinking(piece, native=native)
        case "text":
            if piece.text_signature is None or (native and not has_envelope(piece.text_signature)):
                return piece
            return replace(piece, text_signature=None) if piece.text else None
        case "toolCall":
            if not native and piece.thought_signature is not None:
                piece = replace(piece, thought_signature=None)
            return strip_call(piece)
        case "native":
            return None if _holds_mark(piece) else piece


def _strip_thinking(piece: ThinkingContent, *, native: bool) -> ThinkingContent | None:
    if piece.thinking_signature is None or (native and not has_envelope(piece.thinking_signature)):
        return piece
    if piece.redacted or not piece.thinking:
        return None
    return replace(piece, thinking_signature=None)


def _holds_mark(piece: NativeContent) -> bool:
    return MARK.encode() in canonical_json(piece.block)


def strip_call(call: ToolCall) -> ToolCall:
    """Remove envelopes from a call: its signature, and an id that is one."""
    if has_envelope(call.thought_signature):
        call = replace(call, thought_signature=None)
    return replace(call, id=short_id(call.id)) if has_envelope(call.id) else call


def short_id(given: str) -> str:
    """Return a short id in place of one that is an envelope; equal ids stay equal."""
    return "call_" + sha256(text_bytes(given)).hexdigest()[:24] if has_envelope(given) else given


def rename_ids(ids: Mapping[str, str], given: str) -> str:
    """Return the id of a call for a result that names it as the client knows it."""
    return ids.get(given) or short_id(given)
