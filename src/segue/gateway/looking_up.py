"""Look-ups of a model in what was cut from its request: answered here, from the history, in the client's place.

A reply with a look-up alone is followed by another request, with the answer, and the client sees one reply: the pieces
of all rounds but the look-ups. It never returns these, so later requests have none, and what the last round thought
after them is not valid any more at models that bind reasoning to its prefix.

A look-up next to calls of the client waits for their results: the client gets its own calls, the state of the reply
has the look-up, and the request with the results has the answer too. What was cut is not in the state, so the answer
is found again in the history that the client sends, in each request alike. Without a store the look-up is left out,
because the client has the state of its calls before the end of the reply is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, cast, final

from msgspec.structs import replace

from segue.client.flow.recall import RECALL, Recall, answer_later
from segue.conversation.content import AssistantContent, TextContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage
from segue.envelope.state import State, with_look_ups

MOST: Final = 4
"""Rounds of look-ups for one request. A model that asks on gets the reply that it has written."""
_AT_ONCE: Final = 8
"""Look-ups of one reply that are answered: each is a search in all that was cut."""
_TOO_MANY: Final = f"Not searched: at most {_AT_ONCE} look-ups at once are answered. Ask again."
_BEFORE: Final = frozenset({"start", "usage", "notice", "ping"})


@final
class LookUps:
    """The rounds of one request. `context` is what the next round is asked with.

    With `has_store`, look-ups next to calls of the client are answered with the results of these.
    """

    def __init__(self, context: Context, *, has_store: bool = False) -> None:
        self.recall: Recall = Recall()
        self.context: Context = context
        self.rounds: int = 0
        self.left_out: int = 0
        """Look-ups that were not answered."""
        self.unseen: list[tuple[int, ToolCall]] = []
        """Look-ups that are answered with the results of the client's calls, and their places in the reply."""
        self._has_store = has_store
        self._due: tuple[AssistantMessage, list[ToolCall]] | None = None
        """The last reply and its look-ups, if another request has to be made."""
        self._kept: tuple[AssistantContent, ...] = ()
        """What the client has of earlier rounds."""
        self._places: dict[int, int] = {}
        """The pieces of this round that the client sees: their index in the reply -> in what the client sees."""
        self._unnamed: dict[int, list[Event]] = {}
        """Calls whose name is still to come."""
        self._hidden: set[int] = set()
        self._held: list[Event] = []
        """The start of a round, until the client sees something of it."""
        self._has_begun: bool = False

    def begin(self) -> Context:
        """Begin a round, perhaps again with another model, and return what is asked.

        Look-ups are answered here: a search in a large history is work for a thread.
        """
        if self._due is not None:
            message, asked = self._due
            answers = [
                _answer(call, at, partial(self.recall.answer, call, self.context)) for at, call in enumerate(asked)
            ]
            self.context = self.context.add(message, *answers)
            self._due = None
        self._held.clear()
        self._places.clear()
        self._unnamed.clear()
        self._hidden.clear()
        return self.context

    @property
    def is_due(self) -> bool:
        """Whether the last reply was a look-up, after which another request has to be made."""
        return self._due is not None

    def complete(self, state: State) -> State:
        """Add the look-ups that the client did not see to the state of the reply."""
        return with_look_ups(state, self.unseen, self.recall.searched) if self.unseen else state

    def take(self, message: AssistantMessage) -> AssistantMessage | None:
        """Take a whole reply; return it as the client sees it, or None if another round follows."""
        for index, piece in enumerate(message.content):
            if not self._is_look_up(piece):
                self._place(index)
        return self._end(message)

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Take events of a reply, and return those that the client sees; a round that is not the last has no end."""
        seen: list[Event] = []
        for event in events:
            for shown in self._feed(event):
                if self._has_begun or shown.type in _BEFORE:
                    (seen if self._has_begun else self._held).append(shown)
                else:
                    seen += [*self._held, shown]
                    self._has_begun = True
        return seen

    def _feed(self, event: Event) -> list[Event]:
        match event.type:
            case "start" if self._has_begun:
                return []
            case "start":
                return [event]
            case "done":
                ended = self._end(event.message)
                return [] if ended is None else [replace(event, message=ended, reason=ended.stop_reason)]
            case "error":
                return [replace(event, message=self._joined(event.message))]
            case "usage" | "notice" | "ping":
                return [event]
            case "toolcall_start" if not event.name:
                self._unnamed[event.index] = [event]
                return []
            case "toolcall_start" if self._is_name(event.name):
                self._hidden.add(event.index)
                return []
            case "toolcall_end" if event.index in self._unnamed:
                held = self._unnamed.pop(event.index)
                return [] if self._is_look_up(event.tool_call) else [self._moved(each) for each in (*held, event)]
            case _:
                if event.index in self._hidden:
                    return []
                if event.index in self._unnamed:
                    self._unnamed[event.index].append(event)
                    return []
                return [self._moved(event)]

    def _moved(self, event: Event) -> Event:
        index = cast("int", getattr(event, "index"))  # noqa: B009 - every event of a piece has one
        place = self._place(index)
        return event if place == index else replace(event, index=place)

    def _place(self, index: int) -> int:
        return self._places.setdefault(index, len(self._kept) + len(self._places))

    def _is_name(self, name: str) -> bool:
        return name == RECALL.name and self.recall.is_offered

    def _is_look_up(self, piece: AssistantContent) -> bool:
        return piece.kind == "toolCall" and self._is_name(piece.name)

    def _end(self, message: AssistantMessage) -> AssistantMessage | None:
        calls = message.tool_calls()
        asked = [call for call in calls if self._is_name(call.name)]
        joined = self._joined(message)
        if not asked:
            return joined
        if len(asked) < len(calls) and self._has_store and message.stop_reason == StopReason.TOOL_USE:
            kept = len(self._kept)
            self.unseen = [(kept + at, each) for at, each in enumerate(message.content) if each in asked]
            return joined
        if len(asked) < len(calls) or self.rounds >= MOST or message.stop_reason != StopReason.TOOL_USE:
            self.left_out += len(asked)
            stopped = message.stop_reason == StopReason.TOOL_USE and len(asked) == len(calls)
            return replace(joined, stop_reason=StopReason.STOP, raw_stop_reason=None) if stopped else joined
        self.rounds += 1
        self._due = message, asked
        self._kept = joined.content
        return None

    def _joined(self, message: AssistantMessage) -> AssistantMessage:
        """Return a reply with the pieces of earlier rounds, and without look-ups."""
        for index, piece in enumerate(message.content):
            if not self._is_look_up(piece):
                self._place(index)
        if not self._kept and len(self._places) == len(message.content):
            return message
        own = sorted((place, index) for index, place in self._places.items() if index < len(message.content))
        return replace(message, content=(*self._kept, *(message.content[index] for _, index in own)))


def answer_unseen(
    before: Sequence[Message],
    messages: Sequence[Message],
    look_ups: Mapping[int, Sequence[tuple[ToolCall, tuple[int, int]]]],
) -> tuple[Message, ...]:
    """Return messages with the results of look-ups that the client never saw.

    `look_ups` are by the index of their turn, `before` is what comes before the messages.
    """
    whole = list(before)
    for index, message in enumerate(messages):
        whole.append(message)
        found = look_ups.get(index)
        if found:
            asked_after = tuple(whole[:-1])
            whole += [
                _answer(call, at, partial(answer_later, call, asked_after, *searched))
                for at, (call, searched) in enumerate(found)
            ]
    return tuple(whole[len(before) :])


def _answer(call: ToolCall, at: int, find: Callable[[], str]) -> ToolResultMessage:
    text = find() if at < _AT_ONCE else _TOO_MANY
    return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text=text),))
