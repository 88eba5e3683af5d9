"""Puts the state of a reply into the reply while it streams to a client.

An event of the provider's reply goes in with the events that the client may see of it (`project_reply`); what comes out
is written. The envelope of a piece comes with the piece or before the next one, so nothing is held back. At the end the
state of the whole reply is known: it goes to the store.

The ids of calls are new ones, because some providers send the same ids in every reply, and because they are the key
that every client returns. Without a store, and where a protocol has no other field, the id is the envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.events import (
    Event,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
)
from segue.conversation.messages import AssistantMessage, Sent
from segue.envelope.envelopes import join_id
from segue.envelope.state import Piece, State, begin_piece, finish_state, has_opaque_data, make_piece, make_state
from segue.models.model import Model
from segue.protocols.kit.facts import StateSlots

DELTAS: Final[frozenset[type]] = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})


class Attachment:
    """The state of one reply. `write` makes the text of an envelope, `new_id` the random part of an id.

    `keeps_native`: the client gets signatures and ids unchanged; the state is only recorded.
    `has_store`: calls are found by their ids, so that ids are short.
    `sent`: returns what the reply is made after, as far as it is known when an envelope is written.
    """

    def __init__(
        self,
        slots: StateSlots,
        model: Model,
        base_url: str | None,
        *,
        write: Callable[[State], str],
        new_id: Callable[[], str],
        keeps_native: bool = False,
        has_store: bool = True,
        sent: Callable[[], Sent | None] = lambda: None,
    ) -> None:
        self._slots = slots
        self._model = model
        self._base_url = base_url
        self._write = write
        self._new_id = new_id
        self._keeps_native = keeps_native
        self._has_store = has_store
        self._sent = sent
        self._has_long_ids = slots.long_ids and not has_store
        self._pieces: dict[int, Piece] = {}
        self._pending: list[Piece] = []  # pieces that no envelope has yet
        self._ids: dict[int, str] = {}  # ids of calls as the client sees them, by their index
        self._names: dict[int, str] = {}  # names of calls as the client sees them, by their index
        self._ahead: dict[int, ToolCall] = {}  # calls whose end is known already
        self._places: dict[int, int] = {}  # indexes of the written parts
        self._count = 0
        self._seen: dict[int, AssistantContent] = {}
        self._inserted = 0
        self.state: State | None = None
        """The state of the whole reply, once it is complete."""
        self.seen: AssistantMessage | None = None
        """The reply as the client sees it, once it is complete."""

    def look_ahead(self, events: Sequence[Event]) -> None:
        """Note the events that arrived together: a call whose end is among them gets its envelope before it."""
        for event in events:
            if event.type == "toolcall_end":
                self._ahead[event.index] = event.tool_call

    def feed(self, event: Event, projected: Sequence[Event]) -> list[Event]:
        """Add an event of the provider, and return the events to write in place of the projected ones."""
        if type(event) in DELTAS and len(projected) == 1 and type(projected[0]) in DELTAS:  # nearly all events
            delta: TextDelta | ThinkingDelta | ToolCallDelta = projected[0]  # pyright: ignore[reportAssignmentType]
            place = self._place(delta.index)
            return [delta if place == delta.index else replace(delta, index=place)]
        self._capture(event)
        written: list[Event] = []
        for shown in projected:
            if shown.type == "done" or shown.type == "error":
                self._end(event, shown.message, written)
                written.append(replace(shown, message=self.seen or shown.message))
            else:
                self._show(event, shown, written)
        is_left_out = event.type == "thinking_end" and all(shown.type != "thinking_end" for shown in projected)
        if is_left_out and self._slots.is_ordered and self._needs_insertion():
            self._insert(written)
        return written

    # -- the provider's reply ------------------------------------------------------------------------------------------

    def _capture(self, event: Event) -> None:
        match event.type:
            case "text_end" | "thinking_end" | "native":
                self._add(make_piece(event.index, event.content))
            case "toolcall_end":
                call = event.tool_call
                self._add(make_piece(event.index, call, self._shown_id(event.index, call.id)))
                self._ahead.pop(event.index, None)
            case _:
                pass

    def _add(self, piece: Piece) -> None:
        if piece.index not in self._pieces:
            self._pieces[piece.index] = piece
            self._pending.append(piece)

    def _has_opaque(self) -> bool:
        return not self._keeps_native and any(has_opaque_data(piece.content) for piece in self._pending)

    def _needs_insertion(self) -> bool:
        """Whether content of the gateway's own has to hold an envelope now.

        With a store, the signature of a text and the ids of items do not count: no provider requires them.
        """
        if not self._has_store:
            return self._has_opaque()
        return not self._keeps_native and any(map(_is_required, self._pending))

    def _take_envelope(self) -> str:
        pieces, self._pending = self._pending, []
        return self._envelope(pieces)

    def _envelope(self, pieces: Sequence[Piece]) -> str:
        return self._write(make_state(self._model, self._base_url, pieces, self._sent()))

    # -- what the client sees ------------------------------------------------------------------------------------------

    def _shown_id(self, index: int, given: str, begun: Piece | None = None) -> str:
        """Return the id of a call as the client sees it; `begun` is a call whose arguments are still to come."""
        if self._keeps_native:
            return given
        found = self._ids.get(index)
        if found is None:
            ahead = self._ahead.get(index)
            found = self._slots.prefix + self._new_id()
            if self._has_long_ids and (ahead is not None or begun is not None):
                self._ids[index] = found
                if ahead is not None:
                    self._add(make_piece(index, ahead, found))
                if self._has_opaque():
                    unfinished = () if ahead is not None or begun is None else (replace(begun, shown=found),)
                    found = join_id(found, self._envelope((*self._pending, *unfinished)))
            self._ids[index] = found
        return found

    def _place(self, index: int) -> int:
        found = self._places.get(index)
        if found is None:
            found = self._places[index] = self._count
            self._count += 1
        return found

    def _show(self, event: Event, shown: Event, written: list[Event]) -> None:
        match shown.type:
            case "thinking_end":
                content = self._signed_thinking(shown.content)
                place = self._place(shown.index)
                self._seen[place] = content
                written.append(ThinkingEnd(index=place, content=content))
            case "text_end":
                text = shown.content if self._keeps_native else self._signed_text(event, shown.content)
                place = self._place(shown.index)
                self._seen[place] = text
                written.append(TextEnd(index=place, content=text))
            case "toolcall_start":
                index = _index_of(event, shown.index)
                self._announce(index, written)
                begun = begin_piece(event, shown.name) if event.type == "toolcall_start" and event.id else None
                shown_id = self._shown_id(index, shown.id, begun)
                written.append(replace(shown, index=self._place(shown.index), id=shown_id))
            case "toolcall_end":
                index = _index_of(event, shown.index)
                call = replace(shown.tool_call, id=self._shown_id(index, shown.tool_call.id))
                if not self._keeps_native:
                    opaque = self._slots.call and self._has_opaque()
                    call = replace(call, thought_signature=self._take_envelope() if opaque else None)
                self._names[index] = call.name
                place = self._place(shown.index)
                self._seen[place] = call
                written.append(replace(shown, index=place, tool_call=call))
            case "native":
                place = self._place(shown.index)
                self._seen[place] = shown.content
                written.append(replace(shown, index=place))
            case "text_start" | "thinking_start" | "text_delta" | "thinking_delta" | "toolcall_delta":
                written.append(replace(shown, index=self._place(shown.index)))
            case _:
                written.append(shown)

    def _signed_thinking(self, content: ThinkingContent) -> ThinkingContent:
        if self._keeps_native:
            return content
        is_signed = self._slots.thinking == "plain" and self._has_opaque()
        return replace(content, thinking_signature=self._take_envelope() if is_signed else None)

    def _signed_text(self, event: Event, content: TextContent) -> TextContent:
        is_signed = self._slots.text and event.type == "text_end" and self._has_opaque()
        return replace(content, text_signature=self._take_envelope() if is_signed else None)

    def _announce(self, index: int, written: list[Event]) -> None:
        """Write the envelope of what comes before a call, and of the call itself if all of it is known."""
        if self._keeps_native or not self._slots.is_ordered:
            return
        ahead = self._ahead.get(index)
        if ahead is not None:
            self._add(make_piece(index, ahead, self._shown_id(index, ahead.id)))
        if self._needs_insertion():
            self._insert(written)

    def _new_name(self) -> str:
        self._inserted += 1
        return next(reversed(self._ids.values()), f"env_{self._inserted}")

    def _insert(self, written: list[Event]) -> None:
        """Write content of the gateway's own that holds an envelope."""
        place = self._count
        self._count += 1
        content: TextContent | ThinkingContent
        if self._slots.insert == "text":
            content = TextContent(text="", text_signature=self._take_envelope())
            written += [TextStart(index=place), TextEnd(index=place, content=content)]
        else:
            signature = _write_signature(self._slots, self._take_envelope(), self._new_name())
            content = ThinkingContent(thinking="", thinking_signature=signature, redacted=self._slots.is_redacted)
            written += [ThinkingStart(index=place), ThinkingEnd(index=place, content=content)]
        self._seen[place] = content

    def _end(self, event: Event, shown: AssistantMessage, written: list[Event]) -> None:
        """Write the envelope of what is left, and make the state of the whole reply."""
        if event.type == "done" and self._slots.insert is not None and self._needs_insertion():
            self._insert(written)
        for at, piece in enumerate(shown.content):
            place = self._places.get(at, -1)
            seen = self._seen.get(place)
            if piece.kind == "text" and seen is not None and seen.kind == "text" and piece.extra is not None:
                self._seen[place] = replace(seen, extra=piece.extra)  # such as log probabilities, known at the end
        self.seen = replace(shown, content=tuple(self._seen[place] for place in sorted(self._seen)))
        if event.type == "done":
            message = event.message
            pieces = [self._piece(at, each) for at, each in enumerate(message.content)]
            self.state = finish_state(message, self._base_url, pieces, self.seen)

    def _piece(self, index: int, content: AssistantContent) -> Piece:
        piece = self._pieces.get(index) or make_piece(index, content)
        name = self._names.get(index, "")
        is_renamed = content.kind == "toolCall" and name not in ("", content.name)
        return replace(piece, name=name) if is_renamed else piece


def state_of_whole(message: AssistantMessage, base_url: str | None) -> State:
    """Return the state of a whole reply that the client gets unchanged; it did not fail."""
    pieces = [make_piece(at, each, getattr(each, "id", "")) for at, each in enumerate(message.content)]
    return finish_state(message, base_url, pieces, message)


def _is_required(piece: Piece) -> bool:
    """Whether a provider may refuse the turn without this piece's opaque data."""
    content = piece.content
    match content.kind:
        case "text":
            return False
        case "toolCall":
            return content.thought_signature is not None and not content.thought_signature.startswith("{")
        case "thinking" | "native":
            return has_opaque_data(content)


def _index_of(event: Event, default: int) -> int:
    """Return the index of the provider's event that an event for the client comes from."""
    return cast("int", getattr(event, "index", default))


def _write_signature(slots: StateSlots, envelope: str, name: str) -> str:
    """Write an envelope as the signature of thinking; `name` is unique in the reply."""
    if slots.thinking == "details":
        entry = {"type": "reasoning.encrypted", "data": envelope, "id": name, "format": "segue-envelope-v1"}
        return msgspec.json.encode([entry]).decode()
    return envelope
