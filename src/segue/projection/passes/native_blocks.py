"""Pass 3, part 1: find native blocks that the target would refuse, although it wrote them itself.

Facts:
- Half of a native pair is refused, and with it every later request; `kit.replay` has the sources.
- A turn with signed thinking is bound to its other blocks: without one of them the thinking is refused.
                                                                  (oh-my-pi #6496, 2026-07-24; vercel/ai #7099)
- The input of a call that ended at the token limit may be cut.        (anthropic 2.8.0 resumes only `pause_turn`)

A refused block is replaced by its fallback in the next pass, like a block of another protocol. Removing it may leave
another block without its partner, or a call that names the removed one, so the search is repeated until nothing is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from segue.conversation.content import Extra, NativeContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.projection.passes.held_content import has_reference, is_continued
from segue.projection.passes.matching import Matches, Unsettled, last_turn
from segue.projection.passes.order import inserted_before
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import INSERTED, Workspace
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import NO_CALL, NO_RESULT, TOOL_RESULT, Halves, Replay, Role, Turn, find_halves
from segue.protocols.kit.verbatim import data_of

Key: TypeAlias = tuple[int, int]
"""The place of a message, and the position of a native block in its content; -1 for a tool result."""

_Block: TypeAlias = tuple[Key, NativeContent, str, Block]
"""A native block: its key, the content, its kind, and the object that has its ids."""

_MALFORMED: Final = "malformed"
_DANGLING: Final = "its call is not sent"
_MOST_PASSES: Final = 16
"""How often a segment is searched for repeated calls that may be sent. All are refused then: each search reads all of
the segment, and in a hostile one every turn repeats a call."""


def refuse_native_blocks(workspace: Workspace, matches: Matches | None) -> NativeBlocks | None:
    """Find the native blocks that have to be replaced, and remove references that point to nothing.

    `matches` are the results and their calls; None if each result comes after its call already. Gives what to
    `record` when the segment is paired; None if it has no native blocks.
    """
    replay = workspace.target.protocol.replay
    blocks: NativeBlocks | None = None
    if workspace.scan.native or workspace.prefix_state.waiting:
        blocks = NativeBlocks(workspace, matches)
        blocks.run()
    if replay.reference is not None and workspace.scan.extra:
        _strip_references(workspace, blocks.sent if blocks is not None else [])
    return blocks


class NativeBlocks:
    """Searches one segment."""

    def __init__(self, workspace: Workspace, matches: Matches | None) -> None:
        self.workspace = workspace
        self.matches = matches
        self.protocol: str = workspace.target.model.protocol
        self.replay: Replay = workspace.target.protocol.replay
        self.result_keys: tuple[str, ...] = tuple(
            key for pair in self.replay.pairs if TOOL_RESULT in pair.results for key in pair.result_id
        )
        self.refused: dict[Key, str] = dict(workspace.refused)
        self.is_continued: bool = is_continued(workspace) or any(
            has_reference(message, self.protocol) for message in workspace.messages
        )
        self.messages: list[Message] = workspace.messages  # pairing replaces the list, and `record` comes after it
        self.found: Halves[Key] = Halves()
        self.sent: list[set[str]] = []
        """The ids of the native calls that each message sends."""
        self.sent_calls: frozenset[str] = frozenset()
        """All of them, of the search that is running."""
        self.turn_places: list[int] = []
        """The place of each turn that the pairs were searched in."""
        self.blocks: list[list[_Block]] = [
            self.find_natives(index, message) for index, message in enumerate(workspace.messages)
        ]
        outer = self.replay.reference[0] if self.replay.reference is not None else None
        self.has_references: bool = outer is not None and (
            workspace.scan.extra or any(outer in piece.block for blocks in self.blocks for _, piece, _, _ in blocks)
        )
        self.indexes: dict[int, int] = {place: index for index, place in enumerate(workspace.places)}

    def message_at(self, place: int) -> Message:
        """Return the message with an original index."""
        return self.messages[self.indexes[place]]

    def read_at(self, key: Key) -> tuple[str, Block]:
        """Read the kind and the ids of a native block."""
        piece = self.message_at(key[0]).content[key[1]]
        return self.replay.read(piece.block) if piece.kind == "native" else ("", {})

    def run(self) -> None:
        """Search until nothing is new, and record what was found."""
        workspace = self.workspace
        for index in range(len(workspace.messages)):
            self.find_malformed(index)
        passes = 0
        while True:
            passes += 1
            halves = self.halves()
            found = halves.refused | self.unanswered(halves)
            if self.is_continued:  # the calls of these results are held by the provider
                found = {key: why for key, why in found.items() if why != NO_CALL}
            if halves.lost or self.answers_prefix(found):
                raise Unsettled
            if halves.repeated and passes < _MOST_PASSES:
                # A result without a call may be that of a repeated one, which may be sent yet.
                certain = {key: why for key, why in found.items() if why != NO_CALL and key not in halves.repeated}
                found = certain or self.first_repeated(halves)
            found |= self.dangling(found)
            if not found:
                break
            self.refused |= found
            for place, _ in found:
                self.lose_signature(place)
        if any(pair.results == (TOOL_RESULT,) for pair in self.replay.pairs):
            workspace.scan.paired = False  # a native call may need a tool result
        workspace.refused = self.refused
        workspace.native_answers = halves.answers
        workspace.joined = {self.turn_places[number] for number in halves.joined}
        self.found, self.sent = halves, self.call_ids({})

    def natives(self, index: int) -> list[_Block]:
        """Return the native blocks of a message that would be sent, in order."""
        found = self.blocks[index]
        if not found or (self.messages[index].role == "assistant" and not self.workspace.is_own(index)):
            return []
        return [block for block in found if block[0] not in self.refused] if self.refused else found

    def find_natives(self, index: int, message: Message) -> list[_Block]:
        """Read the native blocks of a message."""
        place = self.workspace.places[index]
        return [
            ((place, position), piece, *self.replay.read(piece.block))
            for position, piece in enumerate(message.content)
            if piece.kind == "native" and piece.protocol == self.protocol
        ]

    def find_malformed(self, index: int) -> None:
        """Refuse blocks that lack a field, or have a value of another type there."""
        acceptance = self.workspace.target.acceptance
        found: dict[Key, str] = {}
        for key, piece, kind, _ in self.natives(index):
            if kind in self.replay.malformed or (
                not self.replay.is_known(kind) and acceptance.refuses_block(self.messages[index], piece)
            ):
                found[key] = _MALFORMED
        if found:
            self.refused |= found
            self.lose_signature(self.workspace.places[index])

    # -- halves --------------------------------------------------------------------------------------------------------

    def halves(self) -> Halves[Key]:
        """Pair the blocks that are not refused so far."""
        workspace, rules = self.workspace, self.workspace.target.rules
        turns: list[Turn[Key]] = []
        self.turn_places = []
        if self.matches is not None and self.result_keys:
            self.sent_calls = frozenset[str]().union(*self.call_ids({}))
        answered = self.answered_turns()
        for index, message in enumerate(workspace.messages):
            previous = turns[-1].role if turns else None
            turn = self.turn(index, message, previous)
            if turn is not None:
                if previous in ("assistant", "other") and inserted_before(message) is not None:
                    turns.append(Turn("user", []))  # it is inserted again: the provider finishes no call before it
                    self.turn_places.append(INSERTED)
                turns.append(turn)
                self.turn_places.append(workspace.places[index])
            if index in answered:
                turns.append(Turn("results", []))
                self.turn_places.append(INSERTED)
        return find_halves(
            turns,
            self.replay,
            alternate=rules.alternate,
            may_wait=not rules.has("pending_calls"),
            waiting=workspace.prefix_state.waiting,
            standing=workspace.prefix_state.standing,
            continues=workspace.prefix_state.last_role == "assistant",
            replaces=not self.is_continued,
        )

    def turn(self, index: int, message: Message, previous: Role | None) -> Turn[Key] | None:
        """Return what a message means for pairs; None if nothing."""
        blocks = [(key, kind, inner) for key, _, kind, inner in self.natives(index)]
        match message.role:
            case "assistant":
                is_own = self.workspace.is_own(index)
                is_cut = message.stop_reason == StopReason.LENGTH
                after_gap = bool(self.turn_places) and self.workspace.places[index] > self.turn_places[-1] + 1
                callers = self.callers(index, message)
                return Turn("assistant" if is_own else "other", blocks, callers, is_cut, after_gap)
            case "toolResult":
                role = self.role_of_result(index, message)
                if self.matches is None or role != "results":  # the result of a function call answers no native call
                    return None if role is None else Turn(role, [])
                ids: Block = dict.fromkeys(self.result_keys, message.tool_call_id)
                key = (self.workspace.places[index], -1)
                return Turn("results", [(key, TOOL_RESULT, ids)] if ids else [])
            case "user":
                results = {kind for pair in self.replay.pairs for kind in pair.results}
                is_result = len(blocks) == len(message.content) and all(kind in results for _, kind, _ in blocks)
                return Turn("results" if is_result and blocks else "user", blocks)
            case "system":
                # After a turn of the model, and where there are no instructions, they become a turn of the user.
                is_user = self.workspace.target.rules.system_messages == "none" or previous in ("assistant", "other")
                return Turn("user", blocks) if is_user else None

    def answered_turns(self) -> set[int]:
        """Return the turns after which pairing will put results, where they are not there yet."""
        if self.matches is None:
            return set()
        calling = {
            index for index, message in enumerate(self.messages) if message.role == "assistant" and message.tool_calls()
        }
        last = self.last_turn()
        if self.is_open() and not any(turn == last for turn, _ in self.matches.answers.values()):
            calling.discard(last)
        return calling

    def role_of_result(self, index: int, message: ToolResultMessage) -> Role | None:
        """Return what a tool result is where it is: nothing if pairing moves it after its call or drops it."""
        if self.matches is None:
            return "results"
        if index in self.matches.answers or index in self.matches.duplicates:
            return None
        if self.is_continued or (self.result_keys and message.tool_call_id in self.sent_calls):
            return "results"
        return "user" if self.workspace.target.policy.orphan_results == "text" else None

    def callers(self, index: int, message: AssistantMessage) -> frozenset[str]:
        """Return the calls that the calls and blocks of a turn point to."""
        if not self.has_references:
            return frozenset()
        holders: list[Mapping[str, object]] = [piece.block for _, piece, _, _ in self.natives(index)]
        if self.workspace.scan.extra:
            calls = (piece for piece in message.content if piece.kind == "toolCall" and piece.extra is not None)
            holders += [data_of(call.extra, self.protocol) for call in calls]
        return frozenset(found for holder in holders if (found := self.replay.reference_of(holder)))

    def unanswered(self, halves: Halves[Key]) -> dict[Key, str]:
        """Return the calls of the client's tools without a result, unless the policy leaves those of the end open."""
        found: dict[Key, str] = {}
        last = self.last_turn() if self.is_open() else -1
        for key in halves.unanswered:
            if self.indexes[key[0]] == last:
                continue
            pair = self.replay.call_of(self.read_at(key)[0])
            if pair is not None and pair.results != (TOOL_RESULT,):  # else the next pass inserts a result
                found[key] = NO_RESULT
        return found

    def is_open(self) -> bool:
        """Whether calls at the end stay without a result."""
        return self.workspace.final and self.workspace.target.policy.trailing_calls == "open"

    def last_turn(self) -> int:
        """Return the index of the last message that will not be a result; -1 if there is none."""
        owners = {} if self.matches is None else self.matches.owners()
        keeps_orphans = self.matches is not None and self.workspace.target.policy.orphan_results == "text"
        return last_turn(self.messages, owners, keeps_orphans=keeps_orphans)

    def answers_prefix(self, found: Mapping[Key, str]) -> bool:
        """Whether a result answers a call of the settled prefix."""
        prefix_state = self.workspace.prefix_state
        return any(why == NO_CALL and prefix_state.made_native(self.result_id(key)) for key, why in found.items())

    def result_id(self, key: Key) -> str:
        """Return the id of the call that a result names; an empty text if it names none."""
        kind, inner = self.read_at(key)
        names = (name for pair in self.replay.pairs if kind in pair.results for name in pair.result_id)
        return next((found for name in names if (found := text_of(inner.get(name)))), "")

    def dangling(self, found: Mapping[Key, str]) -> dict[Key, str]:
        """Return the blocks that point to a call that is not sent before them."""
        if not self.has_references:
            return {}
        dangling: dict[Key, str] = {}
        sent: set[str] = set()
        for index, ids in enumerate(self.call_ids(found)):
            sent |= ids
            for key, piece, _, _ in self.natives(index):
                caller = self.replay.reference_of(piece.block)
                is_sent = caller is None or caller in sent or self.workspace.prefix_state.sent_native(caller)
                if key not in found and not is_sent:
                    dangling[key] = _DANGLING
        return dangling

    def call_ids(self, found: Mapping[Key, str]) -> list[set[str]]:
        """Return the ids of the native calls that each message sends."""
        every: list[set[str]] = []
        for index, blocks in enumerate(self.blocks):
            ids: set[str] = set()
            if not blocks:
                every.append(ids)
                continue
            for key, _, kind, inner in self.natives(index):
                pair = self.replay.call_of(kind)
                call_id = text_of(inner.get(pair.call_id)) if pair is not None and key not in found else None
                if call_id:
                    ids.add(call_id)
            every.append(ids)
        return every

    def first_repeated(self, halves: Halves[Key]) -> dict[Key, str]:
        """Return the first calls that have the id of an earlier one, when nothing else is refused.

        Those after a turn that loses its signature with them wait: the calls of that turn may not be sent at all.
        """
        places = sorted({place for place, _ in halves.repeated})
        last = next((place for place in places if self.is_signed(place)), places[-1] if places else -1)
        return {key: halves.refused[key] for key in halves.repeated if key[0] <= last}

    def lose_signature(self, place: int) -> None:
        """Treat a turn like one of another model if its thinking was signed together with a block that is refused."""
        if self.is_signed(place):
            self.workspace.cross_model.add(place)

    def is_signed(self, place: int) -> bool:
        """Whether a turn has signed thinking."""
        message = self.message_at(place)
        return message.role == "assistant" and any(
            piece.kind == "thinking" and piece.thinking_signature for piece in message.content
        )

    # -- for later passes and segments ---------------------------------------------------------------------------------

    def record(self) -> None:
        """Record what the next segment needs to know."""
        prefix_state = self.workspace.prefix_state
        before, prefix_state.waiting = prefix_state.waiting, {}
        prefix_state.standing = self.found.standing
        for call_id, key in self.found.waiting.items():
            prefix_state.waiting[call_id] = before[call_id] if key is None else self.read_at(key)[0]
        prefix_state.native_ids.update(*self.sent)
        if prefix_state.native_ids and prefix_state.native_name is None:
            names = (text_of(inner.get("name")) for blocks in self.blocks for _, _, _, inner in blocks)
            prefix_state.native_name = next((name for name in names if name), None)
        for key, why in self.refused.items():
            kind, inner = self.read_at(key)
            pair = self.replay.call_of(kind)
            if why == NO_RESULT and pair is not None and pair.scope == "later":
                prefix_state.unanswered.add(text_of(inner.get(pair.call_id)) or "")


def refuse_in_user_turn(workspace: Workspace, place: int, result: ToolResultMessage, user: UserMessage) -> None:
    """Find the native blocks again that have to be replaced in a tool result which is a user turn now.

    They have other positions there, and what may be a part of a result may not be a part of a user turn.
    """
    target, refused = workspace.target, workspace.refused
    reasons = [refused.pop((place, at), None) for at, piece in enumerate(result.content) if piece.kind != "text"]
    for position, (piece, why) in enumerate(zip(user.content[1:], reasons, strict=True), start=1):
        if piece.kind == "native" and piece.protocol == target.model.protocol:
            reason = why or (_MALFORMED if target.acceptance.refuses_block(user, piece) else None)
            if reason is not None:
                refused[place, position] = reason


# -- references --------------------------------------------------------------------------------------------------------


def _strip_references(workspace: Workspace, ids: list[set[str]]) -> None:
    """Remove the name of the calling program from calls and results if the program is not sent before them."""
    sent: set[str] = set()
    for index, message in enumerate(workspace.messages):
        if ids:
            sent |= ids[index]
        if message.role == "assistant":
            _strip_calls(workspace, index, message, sent)
        elif message.role == "toolResult" and message.extra is not None:
            extra = _without_reference(workspace, message.extra, sent)
            if extra is not message.extra:
                workspace.note(ChangeCode.EXTRA_REMOVED, (*workspace.path(index), "extra"), Loss.OPAQUE, _DANGLING)
                workspace.put(index, replace(message, extra=extra))


def _strip_calls(workspace: Workspace, index: int, message: AssistantMessage, sent: set[str]) -> None:
    content = list(message.content)
    changed = False
    for position, piece in enumerate(content):
        if piece.kind != "toolCall" or piece.extra is None:
            continue
        extra = _without_reference(workspace, piece.extra, sent)
        if extra is not piece.extra:
            path = (*workspace.content_path(index, position), "extra")
            workspace.note(ChangeCode.EXTRA_REMOVED, path, Loss.OPAQUE, _DANGLING)
            content[position] = replace(piece, extra=extra)
            changed = True
    if changed:
        workspace.put(index, replace(message, content=tuple(content)))


def _without_reference(workspace: Workspace, extra: Extra, sent: set[str]) -> Extra | None:
    """Return an `extra` without a reference to a call that is not sent; the same object if it has none."""
    protocol, replay = workspace.target.model.protocol, workspace.target.protocol.replay
    part = extra.get(protocol)
    caller = replay.reference_of(part) if part is not None else None
    if part is None or replay.reference is None or caller is None:
        return extra
    if caller in sent or workspace.prefix_state.sent_native(caller):
        return extra
    rest = {key: value for key, value in part.items() if key != replay.reference[0]}
    others = {key: inner for key, inner in extra.items() if key != protocol}
    return ({**others, protocol: rest} if rest else others) or None
