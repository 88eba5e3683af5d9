"""Which blocks of a wire belong together: calls and results that are not function calls, and references between blocks.

Facts:
- Half of such a pair is refused like half of a function call, and every later request fails with it.
                                      (sdk-python #961 and #1339, claude-code #95406, openai-agents-python #1855)
- A provider that runs the tool itself may finish a call in a later reply: the call has no result while its turn is the
  last one, or while only tool results follow it.              (sdk-python #1507; pydantic-ai, measured with Claude 4.5)
- A call that a program made names the call of the program; without it the name points to nothing. (anthropic 2.8.0)

Each protocol declares one table (`Replay`). Projection and `check` read the same one with the same function,
`find_halves`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast, final

import msgspec

from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of

Scope: TypeAlias = Literal["turn", "run", "later"]
Role: TypeAlias = Literal["assistant", "results", "user", "other"]
K = TypeVar("K")

TOOL_RESULT: Final = "(tool result message)"
"""The kind of a result of a function call, which is a `ToolResultMessage`."""
NO_RESULT: Final = "no result"
NO_CALL: Final = "no call"
NO_ID: Final = "no id"
EMPTY_NAMES: Final[Mapping[str, str]] = {}


@final
class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of call, and the kinds of blocks that may be its result; `call_id` and `result_id` are keys of them.

    `scope` is where the result has to be: "turn", in the turn of the call; "run", also in a later turn of the model
    with nothing but tool results between them, so that the call may be without a result at the end; "later", anywhere
    after the call. `call_alone` is whether a call without a result is accepted, `without_id` whether halves without
    an id are: these are not paired.
    """

    call: str
    results: tuple[str, ...]
    call_id: str
    result_id: tuple[str, ...]
    scope: Scope = "later"
    call_alone: bool = False
    without_id: bool = False


def no_kind(block: Block) -> tuple[str, Block]:
    """Read a block of a protocol whose blocks have no kinds."""
    return "", block


def read_type(block: Block) -> tuple[str, Block]:
    """Read the kind of a block that has it as its `type`."""
    return text_of(block.get("type")) or "", block


@final
class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider accepts of blocks that it wrote itself.

    - `read(block)`: the kind of a block, and the object that has its ids.
    - `pairs`: calls and their results.
    - `whole`: kinds that are complete in themselves.
    - `malformed`: kinds that the codec reads into its own content; a native block of such a kind lacks a field, or
      has a value of another type there, and is refused.
    - `reference`: the key of a block, and the key in it, that name the call of the program that made a call.
    - `forms`: forms of the wire that are always accepted, named as `json_patch.form_names` does; `check` judges others.
    - `stored`: keys of a body that name history which the provider holds; results in the body may answer calls there.
    """

    read: Callable[[Block], tuple[str, Block]] = no_kind
    pairs: tuple[Pair, ...] = ()
    whole: frozenset[str] = frozenset()
    malformed: frozenset[str] = frozenset()
    reference: tuple[str, str] | None = None
    forms: frozenset[str] = frozenset()
    stored: frozenset[str] = frozenset()

    def call_of(self, kind: str) -> Pair | None:
        """Return the row of a kind of call; None for other kinds."""
        return next((pair for pair in self.pairs if pair.call == kind), None)

    def is_known(self, kind: str) -> bool:
        """Whether the table has this kind of block."""
        return kind in self.whole or any(kind == pair.call or kind in pair.results for pair in self.pairs)

    def keys(self) -> set[str]:
        """Return the kinds of all halves of pairs, and the key of a block that names the call of a program."""
        return {*(self.reference or ())[:1], *(kind for pair in self.pairs for kind in (pair.call, *pair.results))}

    def reference_of(self, holder: Mapping[str, object]) -> str | None:
        """Return the id of the call that an object points to; None if it points to none."""
        if self.reference is None:
            return None
        outer, inner = self.reference
        return text_of(object_of(holder.get(outer)).get(inner))


NO_REPLAY: Final = Replay()


def read_call(block: Block) -> tuple[str, Block]:
    """Read the kind of a block of the chat protocols: a call of an unknown type is kept as `{"tool_calls": [call]}`."""
    calls = block.get("tool_calls")
    if "role" in block or not isinstance(calls, list | tuple):
        return text_of(block.get("type")) or "", block
    listed = cast("Sequence[object]", calls)
    return "tool_calls", object_of(listed[0] if len(listed) == 1 else None)


CHAT_REPLAY: Final = Replay(
    read=read_call,
    pairs=(
        # A call of any type needs a result: "An assistant message with 'tool_calls' must be followed by tool messages
        # responding to each 'tool_call_id'" (ellmer #459, eca #209)
        Pair(call="tool_calls", results=(TOOL_RESULT,), call_id="id", result_id=("tool_call_id",)),
    ),
    forms=frozenset({"name:NoneType", "tool_calls:NoneType"}),  # recorded traffic, 2026-11
)
"""The table of the chat protocols."""


class Turn(NamedTuple, Generic[K]):
    """A turn, as far as pairs are concerned: its native blocks (key, kind, ids) and the calls that it points to.

    Roles: "assistant"; "results", which has only tool results; "user", anything else of the user; "other", a turn of
    another model, whose native blocks are not sent. `is_cut` is whether the reply ended at the token limit: the input
    of a call in it may be incomplete, so the provider cannot finish it. `after_gap` is whether a message before it is
    not sent: a request may have ended there.
    """

    role: Role
    blocks: list[tuple[K, str, Block]]
    callers: frozenset[str] = frozenset()
    is_cut: bool = False
    after_gap: bool = False


class Halves(Generic[K]):
    """What was found: refused halves with the reason, and calls that wait for their result at the end."""

    def __init__(self) -> None:
        self.refused: dict[K, str] = {}
        self.repeated: set[K] = set()
        """Calls among them that have the id of an earlier one, which has no result yet."""
        self.waiting: dict[str, K | None] = {}
        """Calls of tools that the provider runs, which it may still finish: id -> key."""
        self.unanswered: list[K] = []
        """Calls of tools that the client runs, which have no result."""
        self.standing: frozenset[tuple[str, str]] = frozenset()
        """The kinds and ids of calls that have no result at the end and may get it in any later turn."""
        self.lost: bool = False
        """Whether a call of `waiting` that was given did not get its result."""
        self.joined: set[int] = set()
        """Turns (by their number) that directly follow one with a call that the provider may still finish."""
        self.answers: dict[K, K] = {}
        """Results that are not native blocks (`TOOL_RESULT`) -> the native calls that they answer."""


class _Open(NamedTuple, Generic[K]):
    key: K | None
    pair: Pair
    turn: int
    run: int


class _Finder(Generic[K]):
    """Walks over turns and pairs calls with results."""

    def __init__(self, replay: Replay, *, alternate: bool, may_wait: bool, replaces: bool) -> None:
        self.replay = replay
        self.alternate = alternate
        self.may_wait = may_wait
        self.replaces = replaces
        self.found: Halves[K] = Halves()
        self.open: dict[tuple[str, str], _Open[K]] = {}
        self.standing: frozenset[tuple[str, str]] = frozenset()
        self.calls: dict[str, Pair] = {pair.call: pair for pair in replay.pairs}
        self.results: dict[str, list[Pair]] = {}
        for pair in replay.pairs:
            for kind in pair.results:
                self.results.setdefault(kind, []).append(pair)
        self.run = 0
        self.turn = 0
        self.callers: set[str] = set()

    def refuse(self, place: tuple[str, str]) -> None:
        """Abandon a call that did not get its result."""
        call = self.open.pop(place)
        if call.key is None:
            self.found.lost = True
        else:
            self.found.refused[call.key] = NO_RESULT

    def end_run(self) -> None:
        """Abandon calls of an earlier run that this run neither finished nor continued."""
        for place, call in list(self.open.items()):
            if call.pair.scope == "run" and call.run < self.run and place[1] not in self.callers:
                self.refuse(place)
        self.callers.clear()

    def end_turn(self, *, is_cut: bool) -> None:
        """Abandon calls that have to have their result in this turn."""
        for place, call in list(self.open.items()):
            waits = call.pair.scope == "later" or (
                call.pair.scope == "run" and self.may_wait and not (is_cut and call.turn == self.turn)
            )
            if not waits:
                self.refuse(place)

    def interrupt(self) -> None:
        for place, call in list(self.open.items()):
            if call.pair.scope != "later":
                self.refuse(place)

    def add(self, turn: Turn[K], previous: Role | None) -> None:
        """Add the next turn."""
        is_model = turn.role in ("assistant", "other")
        if turn.after_gap and previous == "assistant":
            self.end_run()
        if turn.role == "other" or (turn.role == "assistant" and previous == "assistant" and self.alternate):
            self.end_run()
            self.interrupt()
        elif not is_model and previous == "assistant":
            self.end_run()
            self.run += 1
        if previous == "assistant" and any(call.pair.scope == "run" for call in self.open.values()):
            self.found.joined.add(self.turn)
        self.turn += 1
        self.callers |= turn.callers
        before = len(self.found.refused)
        for key, kind, inner in turn.blocks:
            self.block(key, kind, inner, is_result=not is_model)
        if is_model:
            self.end_turn(is_cut=turn.is_cut)
        elif turn.role == "user" or (self.replaces and len(self.found.refused) > before):
            self.interrupt()

    def block(self, key: K, kind: str, inner: Block, *, is_result: bool) -> None:
        pair = self.calls.get(kind)
        if pair is not None:
            call_id = text_of(inner.get(pair.call_id))
            if call_id:
                if is_result or (kind, call_id) in self.open or (kind, call_id) in self.standing:
                    self.found.refused[key] = NO_RESULT
                    if not is_result:
                        self.found.repeated.add(key)
                else:
                    self.open[kind, call_id] = _Open(key, pair, self.turn, self.run)
            elif not pair.without_id:
                self.found.refused[key] = NO_ID
            return
        pairs = self.results.get(kind)
        if pairs is None:
            return
        result_id = next((found for name in pairs[0].result_id if (found := text_of(inner.get(name)))), None)
        for pair in pairs:
            place = (pair.call, result_id or "")
            if place in self.open:
                call = self.open.pop(place)
                if kind == TOOL_RESULT and call.key is not None:
                    self.found.answers[key] = call.key
                return
        if kind != TOOL_RESULT and not (result_id is None and pairs[0].without_id):
            self.found.refused[key] = NO_CALL

    def finish(self, last: Role | None) -> Halves[K]:
        if last == "assistant":
            self.end_run()
        later = (place for place, call in self.open.items() if call.pair.scope == "later")
        self.found.standing = self.standing.union(later)
        for (_, call_id), call in self.open.items():
            if call.pair.scope == "run":
                self.found.waiting[call_id] = call.key
            elif call.key is not None and not call.pair.call_alone:
                self.found.unanswered.append(call.key)
        return self.found


def find_halves(
    turns: Iterable[Turn[K]],
    replay: Replay,
    *,
    alternate: bool = False,
    may_wait: bool = True,
    waiting: Mapping[str, str] = EMPTY_NAMES,
    standing: frozenset[tuple[str, str]] = frozenset(),
    continues: bool = False,
    replaces: bool = False,
) -> Halves[K]:
    """Find the halves of pairs in a conversation.

    `alternate` is whether the turns of a role have to alternate, `may_wait` whether the provider accepts a call that it
    has not finished. `waiting` are calls before the first turn that wait for their results: id -> kind. `standing` are
    those that may get a result in any later turn: no other call may have their ids. `continues` is whether a turn of
    the model comes directly before the first one. `replaces` is whether results that are refused become other content,
    which makes their turn one of the user.
    """
    finder: _Finder[K] = _Finder(replay, alternate=alternate, may_wait=may_wait, replaces=replaces)
    finder.run = 0 if continues else 1
    finder.standing = standing
    for call_id, kind in waiting.items():
        pair = replay.call_of(kind)
        if pair is not None:
            finder.open[kind, call_id] = _Open(None, pair, -1, 0)
    previous: Role | None = "assistant" if continues else None
    for turn in turns:
        finder.add(turn, previous)
        previous = turn.role
    return finder.finish(previous)
