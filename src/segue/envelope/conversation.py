"""The history of a request with its states: found in envelopes and in a store, and put in place.

Reading takes two steps, because a store is I/O: `find_states` returns the states that are in the request itself and the
keys of the turns without one; `restore` takes what the store had for those keys. A request without states, with changed
ones, or with those of another gateway works like a history of another program: its turns have the origin that the
caller gives, and what was dropped is in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import ToolCall
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message
from segue.envelope.envelopes import Envelopes, find_envelopes, has_envelope
from segue.envelope.keys import (
    START_OF_CHAIN,
    UNIQUE,
    Chain,
    TurnKeys,
    keys_of_turns,
    kind_of,
    signatures_of,
)
from segue.envelope.restoring import RestoredTurn, rename_ids, restore_turn, strip_turn
from segue.envelope.state import State, endpoint_label, merge_states
from segue.projection.report import Change, ChangeCode, Loss, Report

Stored: TypeAlias = Mapping[str, Sequence[State]]
"""The states that a store has for keys, the newest first."""

_ELSEWHERE: Final = "{provider} at another address"
"""The provider of a state whose base URL is not the one that the provider has now: no target is the same model."""
MOST_ENVELOPES: Final = 10_000
MOST_ENVELOPE_BYTES: Final = 16_000_000
"""Envelopes that are read in one request. Each call of a history may have one, of 1 to 3 KB."""
UNKNOWN: Final = "(unknown)"
"""The provider of turns whose author is not known. No target is the same model, so their signatures are dropped."""


@final
class FoundStates(msgspec.Struct, frozen=True):
    """The states in a request, by the index of their turn, and the keys of the turns whose state is not whole."""

    states: dict[int, State]
    turns: tuple[TurnKeys, ...]
    refused: frozenset[int]
    """Turns with an envelope that is not one of this gateway and tenant, or was changed."""
    unread: frozenset[int] = frozenset()
    """Turns with envelopes that were not read, because the request has too many."""
    chain: Chain = START_OF_CHAIN
    """The digests of the whole history: the keys of the reply to it are made with them (`keys_of_reply`)."""

    def wanted(self) -> tuple[str, ...]:
        """Return the keys to look up in a store."""
        return tuple(dict.fromkeys([key for turn in self.turns for key in turn.keys]))


@final
class RestoredHistory(msgspec.Struct, frozen=True):
    """A history with its states, what was changed, and how many turns have their state.

    `look_ups` are calls that the client never saw, by the index of their turn, with what they search
    (`Piece.searched`): they have no results.
    """

    context: Context
    report: Report
    restored: int
    look_ups: dict[int, tuple[tuple[ToolCall, tuple[int, int]], ...]] = {}


def find_states(
    context: Context,
    envelopes: Envelopes,
    tenant: str = "",
    *,
    most: int = MOST_ENVELOPES,
    most_bytes: int = MOST_ENVELOPE_BYTES,
    after: Chain = START_OF_CHAIN,
    digested: tuple[Message, bytes] | None = None,
) -> FoundStates:
    """Read the envelopes of a history as a client sent it: at most so many, and so many bytes, the newest first.

    `after` are the digests of what comes before it, `digested` is a message with its digest, if one is known.
    """
    states: dict[int, State] = {}
    refused: set[int] = set()
    unread: set[int] = set()
    wanted: list[TurnKeys] = []
    turns, digests = keys_of_turns(context.messages, tenant, after=after, digested=digested)
    for turn in reversed(turns):
        message = context.messages[turn.place]
        assert message.role == "assistant", "only assistant turns have keys"
        envelopes_of_turn = _envelopes_of(message, most + 1)
        if not envelopes_of_turn:
            wanted.append(turn)
            continue
        found: list[State] = []
        for text in envelopes_of_turn:
            if most <= 0 or most_bytes < len(text):
                unread.add(turn.place)
                break
            most -= 1
            most_bytes -= len(text)
            state = envelopes.read(text, tenant)
            if state is None:
                refused.add(turn.place)
            else:
                found.append(state)
        merged = merge_states(found)
        if merged is not None:
            states[turn.place] = merged
        if merged is None or not merged.is_whole:
            wanted.append(turn)
    return FoundStates(states, tuple(reversed(wanted)), frozenset(refused), frozenset(unread), digests)


def _envelopes_of(message: AssistantMessage, most: int) -> list[str]:
    """Find the first envelopes of a turn."""
    texts = signatures_of(message)
    texts += [piece.id for piece in message.content if piece.kind == "toolCall"]
    texts = [text for text in texts if has_envelope(text)] if texts else texts
    return list(dict.fromkeys(islice(chain.from_iterable(map(find_envelopes, texts)), most))) if texts else []


def restore(
    context: Context,
    found: FoundStates,
    stored: Stored,
    *,
    author: AssistantMessage | None = None,
    base_urls: Callable[[State], str | None] | None = None,
) -> RestoredHistory:
    """Put the states in place.

    `author` has the origin of turns without a state, by the best evidence there is: the name that the client asked for.
    If it is None, their signatures are dropped. `base_urls` returns the base URL that the model of a state has now: a
    state of another URL is of another account or server, and its signatures are not valid there.
    """
    chosen = _choose(found, stored)
    for index, state in found.states.items():
        chosen.setdefault(index, state)
    messages: list[Message] = []
    changes: list[Change] = []
    ids: dict[str, str] = {}
    look_ups: dict[int, tuple[tuple[ToolCall, tuple[int, int]], ...]] = {}
    for index, message in enumerate(context.messages):
        if message.role == "toolResult":
            own = rename_ids(ids, message.tool_call_id)
            messages.append(message if own == message.tool_call_id else replace(message, tool_call_id=own))
        elif message.role != "assistant":
            messages.append(message)
        else:
            state = chosen.get(index)
            turn = _restored(message, state, author, base_urls)
            ids |= turn.ids
            messages.append(turn.message)
            if turn.look_ups:
                look_ups[index] = turn.look_ups
            if index in found.unread and (state is None or not state.is_whole):
                changes.append(_change(index, "the request has more state of replies than this gateway reads"))
            elif index in found.refused and state is None:
                changes.append(_change(index, "the state that the client returned is not one of this gateway"))
            elif turn.is_changed:
                changes.append(_change(index, "the client changed this turn; its own text and arguments are used"))
    return RestoredHistory(replace(context, messages=tuple(messages)), Report(tuple(changes)), len(chosen), look_ups)


def _choose(found: FoundStates, stored: Stored) -> dict[int, State]:
    """Choose the state of each turn: that of the strongest key."""
    chosen: dict[int, State] = {}
    for turn in found.turns if stored else ():
        for key in turn.keys:
            states = stored.get(key, ())
            if states and (len(states) == 1 or kind_of(key) not in UNIQUE):
                chosen[turn.place] = states[0]
                break
    return chosen


def _restored(
    message: AssistantMessage,
    state: State | None,
    author: AssistantMessage | None,
    base_urls: Callable[[State], str | None] | None,
) -> RestoredTurn:
    if state is None:
        stripped = strip_turn(message, native=author is not None)
        calls = message.tool_calls()
        new = calls if stripped is message else stripped.tool_calls()
        own = {call.id: each.id for call, each in zip(calls, new, strict=True)} if calls else {}
        if author is None:
            return RestoredTurn(replace(stripped, provider=UNKNOWN), own, is_changed=False)
        origin = replace(stripped, protocol=author.protocol, provider=author.provider, model=author.model)
        return RestoredTurn(origin, own, is_changed=False)
    turn = restore_turn(message, state)
    now = None if base_urls is None else base_urls(state)
    if base_urls is not None and endpoint_label(now) != state.endpoint:
        provider = _ELSEWHERE.format(provider=state.provider)
        return replace(turn, message=replace(turn.message, provider=provider))
    return turn


def _change(index: int, detail: str) -> Change:
    return Change(code=ChangeCode.SIGNATURE_REMOVED, path=("messages", index), loss=Loss.OPAQUE, detail=detail)


def has_envelopes(context: Context) -> bool:
    """Whether an envelope is left anywhere in the assistant turns of a history: for tests of the law."""
    for message in context.messages:
        if message.role == "assistant":
            if any(has_envelope(signature) for signature in signatures_of(message)):
                return True
            if any(has_envelope(call.id) for call in message.tool_calls()):
                return True
        elif message.role == "toolResult" and has_envelope(message.tool_call_id):
            return True
    return False
