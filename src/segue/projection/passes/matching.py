"""Find the call that each result answers, in the order of the messages; ids alone do not identify a call.

Facts:
- Ids are reused in later turns (`functions.read:0`, `call_0`): a result belongs to the newest turn before it that has
  a call of that id, never to an older one.                                       (eca #233, pi-ai 1.5.0 run 2026-11)
- One turn may have two calls with the same id; the results answer them in call order.  (maka #1976, vercel/ai #14277)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from segue.conversation.messages import Message
from segue.projection.workspace.prefix_state import PrefixState

Call = tuple[int, int]
"""The index of an assistant message and the position of the call among that message's calls."""


class Unsettled(Exception):
    """A result answers a call of the settled prefix, so the prefix has to be processed again."""


class Matches:
    """Result index -> the call it answers, or (`duplicates`) the call that has a result already; others are orphans."""

    __slots__ = ("answers", "duplicates")

    def __init__(self) -> None:
        self.answers: dict[int, Call] = {}
        self.duplicates: dict[int, Call] = {}

    def owners(self) -> dict[int, Call]:
        """Return the call of every result that has one."""
        return {**self.answers, **self.duplicates}


def match_results(messages: Sequence[Message], prefix_state: PrefixState) -> Matches:
    """Find for every result the call it answers.

    Raises:
        Unsettled: a result answers a call of the settled prefix.
    """
    matches = Matches()
    newest: dict[str, list[Call]] = {}  # id -> its unanswered calls in the newest turn that has any, the next one last
    answered: dict[str, Call] = {}
    for index, message in enumerate(messages):
        if message.role == "assistant":
            batch: dict[str, list[Call]] = {}
            for position, call in enumerate(message.tool_calls()):
                batch.setdefault(call.id, []).append((index, position))
            for waiting in batch.values():
                waiting.reverse()
            newest.update(batch)
        elif message.role == "toolResult":
            call_id = message.tool_call_id
            waiting = newest.get(call_id)
            if waiting:
                matches.answers[index] = answered[call_id] = waiting.pop()
            elif waiting is not None:
                matches.duplicates[index] = answered[call_id]
            elif prefix_state.made_call(call_id):
                raise Unsettled
    return matches


def last_turn(messages: Sequence[Message], owners: Mapping[int, Call], *, keeps_orphans: bool) -> int:
    """Find the last message that will not be a result; results without a call are none if they become texts."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role != "toolResult" or (keeps_orphans and index not in owners):
            return index
    return -1
