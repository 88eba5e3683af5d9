"""Run the passes over a conversation: over the whole, or only over the new messages after a settled prefix.

A conversation can be cut before any finished assistant turn that follows a user turn or a tool result: a request was
sent and answered there, and later messages must not change what was sent. `PrefixState` holds what the segment after
the cut needs to know about the messages before it. A result that answers an earlier call affects messages before a cut;
then the prefix is processed again. What does not fit the target's window is cut afterwards, in `fitting`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Final, NamedTuple, TypeAlias

from segue.conversation.context import Context, Options, Tool, is_known_prefix, note_prefix
from segue.conversation.messages import Message
from segue.projection.fitting.fit import Fitter
from segue.projection.fitting.places import JoinedPlaces
from segue.projection.fitting.plan import FitPlan, find_plan
from segue.projection.passes.cache_marks import Mark, find_marks, move_marks
from segue.projection.passes.extra import withhold_extra
from segue.projection.passes.held_content import holds_history
from segue.projection.passes.ids import assign_ids
from segue.projection.passes.instructions import place_instructions
from segue.projection.passes.item_ids import separate_items
from segue.projection.passes.matching import Unsettled
from segue.projection.passes.media import place_media
from segue.projection.passes.names import map_names
from segue.projection.passes.namespaces import name_namespaced
from segue.projection.passes.order import order_turns
from segue.projection.passes.pairing import pair_results
from segue.projection.passes.reasoning import reconcile_reasoning
from segue.projection.passes.settings import fit_settings
from segue.projection.passes.sources import list_sources
from segue.projection.passes.system_prompt import fit_system_prompt
from segue.projection.passes.text import clean_texts
from segue.projection.passes.thinking import is_thinking_off
from segue.projection.passes.turns import repair_turns
from segue.projection.passes.unfinished import leave_out_unfinished
from segue.projection.report import Change, place_of
from segue.projection.requirements import HistoryNeeded, MediaNeeded
from segue.projection.workspace.namespace_table import read_table
from segue.projection.workspace.ownership import ACCOUNT_BOUND
from segue.projection.workspace.prefix_state import PrefixState
from segue.projection.workspace.scan import UNFINISHED, Scan, scan_context
from segue.projection.workspace.surrogates import TextLength
from segue.projection.workspace.workspace import Settings, SystemPrompt, Target, Workspace

Pass: TypeAlias = Callable[[Workspace], None]

_NO_LENGTH: Final = TextLength(0, 0)


def assign_ids_and_names(workspace: Workspace) -> None:
    """Pass 6: ids first, then names; both depend only on earlier messages. Calls that become text keep their names."""
    if workspace.target.rules.tools:
        assign_ids(workspace)
        map_names(workspace)
    if workspace.scan.unfinished or not workspace.target.rules.tools:
        for call_id in workspace.scan.call_ids:
            workspace.prefix_state.note_unsent(call_id)


def arrange_turns(workspace: Workspace) -> None:
    """Pass 7: the content of each turn, then instructions, then the order of turns."""
    repair_turns(workspace)
    withhold_extra(workspace)  # after turns are dropped: the origin of an `extra` is taken from the turn before it
    place_instructions(workspace)
    order_turns(workspace)


PASSES: Final[tuple[Pass, ...]] = (
    leave_out_unfinished,  # first: no pass should repair what will not be sent
    clean_texts,  # before any pass compares, hashes or copies text
    separate_items,  # in the order of the conversation, before pairing moves results and refuses native blocks
    pair_results,  # before media and ids, which expect results directly after their calls
    place_media,  # replaces foreign native blocks by their fallback, so later passes see plain content
    list_sources,  # after media: pages among the results of a search are not listed again
    name_namespaced,  # before reasoning: a signature of another model may hold the namespace of a call
    move_marks,  # before thinking and blank texts are dropped with their marks
    reconcile_reasoning,  # after media: a fallback may add text to a turn
    assign_ids_and_names,  # after every pass that drops or adds calls
    arrange_turns,  # after every pass that drops or adds turns
)
"""Afterwards tools and options are fitted, which depend on the messages that will be sent."""


class Settled:
    """The projection of a prefix that later messages do not change, and the state to continue after it."""

    __slots__ = (
        "blocks",
        "changed",
        "changes",
        "fitter",
        "fitters",
        "given",
        "has_free_json",
        "has_native",
        "last",
        "length",
        "marks",
        "needed",
        "out",
        "places",
        "prefix_state",
        "prompt",
        "refused",
        "sent",
        "source",
    )

    def __init__(self, prompt: SystemPrompt, target: Target, plan: FitPlan) -> None:
        self.prompt: SystemPrompt = prompt
        self.given: list[Message] = []
        self.source: tuple[Message, ...] = ()
        """The messages that it was last a prefix of."""
        self.out: list[Message] = []
        self.places: list[int] = []
        """The index of each message of `out` in `given`; negative for an inserted one."""
        self.blocks: dict[int, list[int]] = {}
        """For messages whose content was rearranged, by their index in `given`: the index of each content there."""
        self.fitter: Fitter = Fitter(target, plan)
        self.fitters: dict[int, Fitter] = {}
        self.length: TextLength | None = _NO_LENGTH
        """The length of `out`; None if it is not known without looking at every message."""
        self.changed: bool = False
        self.needed: list[MediaNeeded | HistoryNeeded] = []
        self.marks: list[Mark] = []
        self.has_native: bool = False
        self.has_free_json: bool = False
        self.refused: frozenset[str] = frozenset()
        """The marks of signatures that a provider refused."""
        self.last: _Last | None = None
        """The segment after this prefix, as last projected."""
        self.sent: tuple[Message, ...] = ()
        """All messages of the projection before, if any was changed."""
        self.prefix_state: PrefixState = PrefixState()
        self.prefix_state.system_prompt, changes = fit_system_prompt(prompt, target)
        self.changes: list[Change] = list(changes)

    def fitter_for(self, window: int | None, target: Target) -> Fitter:
        """Return the fitter for the window that the options ask for, otherwise for that of the model."""
        if window is None or window == self.fitter.plan.window or target.policy.fit is None:
            return self.fitter
        if (fitter := self.fitters.get(window)) is None:
            plan = FitPlan(target.model, target.rules, target.policy, window=window)
            fitter = self.fitters[window] = Fitter(target, plan)
        return fitter

    def extend(self, given: Sequence[Message], workspace: Workspace) -> None:
        """Append a processed segment."""
        self.marks += find_marks(workspace, len(self.out))
        self.changed = self.changed or workspace.changed
        if _append(self.changes, workspace.changes):
            self.changes.sort(key=place_of)
        self.given += given
        self.out += workspace.messages
        self.places += workspace.places
        self.blocks.update(workspace.blocks)
        length = workspace.length()
        self.length = None if self.length is None or length is None else self.length.plus(length)
        self.needed += workspace.needed
        self.has_native = self.has_native or _has_native(workspace)
        self.has_free_json = self.has_free_json or _has_free_json(workspace)
        if workspace.scan.refused:
            self.refused |= frozenset(workspace.scan.refused)

    def extend_by_last(self, messages: Sequence[Message]) -> bool:
        """Append the segment that was the last one, if these messages follow it; False if it has to be made again."""
        last, self.last = self.last, None
        if last is None:
            return False
        workspace, start = last.workspace, len(self.given)
        given = workspace.given
        end = start + len(given)
        if not (len(messages) > end and _is_finished(messages[end]) and all(map(is_, given, messages[start:end]))):
            return False
        workspace.changes, workspace.needed, workspace.prefix_state.wire_names = last.changes, last.needed, last.names
        self.prefix_state.join(workspace.prefix_state)
        self.extend(given, workspace)
        return True

    def begins(self, context: Context) -> bool:
        """Whether a conversation begins with this prefix (the same message objects) and an assistant turn follows."""
        count = len(self.given)
        if count and not (len(context.messages) > count and _is_finished(context.messages[count])):
            return False
        if not is_known_prefix(self.source, context):
            if len(context.messages) >= len(self.source) and all(map(is_, self.source, context.messages)):
                note_prefix(self.source, context)  # whoever asks next need not look
            elif not all(map(is_, self.given, context.messages)):
                return False
        prompt = context.system_prompt
        if isinstance(prompt, tuple) and isinstance(self.prompt, tuple):
            return len(prompt) == len(self.prompt) and all(map(is_, prompt, self.prompt))
        return prompt is self.prompt or (isinstance(prompt, str) and prompt == self.prompt)


class _Last(NamedTuple):
    """The last segment of a projection before tools and options were fitted."""

    workspace: Workspace
    changes: list[Change]
    needed: list[MediaNeeded | HistoryNeeded]
    names: dict[str, str]


class PassOutcome:
    """The results of the passes: the settled prefix and the workspace of the last segment."""

    __slots__ = ("before", "changed", "changes", "settled", "workspace")

    def __init__(self, settled: Settled, workspace: Workspace, before: tuple[Message, ...] = ()) -> None:
        self.before: tuple[Message, ...] = before
        """The messages of the projection before, if these begin with the same objects."""
        self.settled: Settled = settled
        self.workspace: Workspace = workspace
        self.changed: bool = settled.changed or workspace.changed
        self.changes: list[Change] = _joined(settled.changes, workspace.changes)

    def messages(self) -> tuple[Message, ...]:
        """Return all projected messages."""
        out, tail = self.settled.out, self.workspace.messages
        if not out:
            return tuple(tail)
        count = len(out)
        out += tail  # appending and truncating copies the list once; joining two lists copies it twice
        try:
            self.settled.sent = tuple(out)
        finally:
            del out[count:]
        return self.settled.sent

    def places(self) -> JoinedPlaces:
        """Return the index of every projected message in the given conversation; negative for an inserted one."""
        return JoinedPlaces(self.settled.places, self.workspace.places)

    def length(self) -> TextLength | None:
        """Return the length of all messages; None if it is not known without looking at them."""
        settled, last = self.settled.length, self.workspace.length()
        return None if settled is None or last is None else settled.plus(last)

    def origins(self, place: int) -> list[int] | None:
        """Return the original index of each content of a given message; None if they are the same."""
        return self.workspace.blocks.get(place) or self.settled.blocks.get(place)

    def marks(self) -> list[Mark]:
        """Return all cache marks."""
        return [*self.settled.marks, *find_marks(self.workspace, len(self.settled.out))]

    @property
    def has_native(self) -> bool:
        """Whether there may be a native block or a system message."""
        return self.settled.has_native or _has_native(self.workspace)

    @property
    def has_free_json(self) -> bool:
        """Whether there may be a native block, an `extra` that is sent or a cache mark."""
        return self.settled.has_free_json or _has_free_json(self.workspace)

    def refused(self) -> frozenset[str]:
        """Return the marks of all signatures that a provider refused."""
        found, last = self.settled.refused, self.workspace.scan.refused
        return found | frozenset(last) if last else found

    def needed(self) -> tuple[MediaNeeded | HistoryNeeded, ...]:
        """Return all content that the caller can supply."""
        return (*self.settled.needed, *self.workspace.needed)


def _append(earlier: list[Change], later: list[Change]) -> bool:
    """Append changes in the order of the request; True if they have to be sorted with the earlier ones."""
    if not later:
        return False
    later.sort(key=place_of)
    is_behind = not earlier or place_of(earlier[-1]) <= place_of(later[0])
    earlier += later
    return not is_behind


def _joined(earlier: list[Change], later: list[Change]) -> list[Change]:
    """Join changes in the order of the request; those of one message keep their order."""
    joined = earlier.copy()
    if _append(joined, later):
        joined.sort(key=place_of)
    return joined


class Engine:
    """Runs the passes for one target; with `settle` it keeps the projection of a settled prefix between runs."""

    def __init__(self, target: Target, passes: tuple[Pass, ...] = PASSES, *, fits_settings: bool = True) -> None:
        self.target = target
        self.fits_settings = fits_settings
        self.plan: FitPlan = find_plan(target.model, target.rules, target.policy)
        self.passes = passes
        self._settled: dict[bool, Settled] = {}
        """The settled prefix, by whether it was projected for requests with thinking off: a conversation in which both
        kinds alternate is not processed again from the start."""
        self._tools: tuple[Tool, ...] | None = None
        self._refused: frozenset[str] = frozenset()

    def reset(self) -> None:
        """Drop the settled prefix."""
        self._settled.clear()

    def send_with(self, account: str | None, refused: frozenset[str]) -> None:
        """Project for this account from now on, and without these signatures."""
        rules, ownership = self.target.rules, self.target.ownership
        if rules.bound_prefix:  # decided where the request is encoded: see `segue.requests.binding`
            return
        self._refused = refused
        bound = account if rules.bound_account in ACCOUNT_BOUND else None
        if bound != ownership.account:
            ownership.account = bound
            self.reset()

    def run(self, context: Context, options: Options, *, settle: bool = False) -> PassOutcome:
        """Project the whole conversation, or the messages after the settled prefix.

        Nothing is settled while the provider holds earlier turns: results without a call may answer calls there.
        """
        if settle and options.extra is not None and holds_history(options, self.target):
            self.reset()
            settle = False
        self._read_namespaces(context.tools)
        try:
            outcome = self._attempt(context, options, settle=settle)
            ownership, refused = self.target.ownership, outcome.refused() | self._refused
            if refused == ownership.refused or self.target.rules.bound_prefix:
                return outcome
            # A later reply says that signatures of earlier ones are refused.
            ownership.refused = refused
            self.reset()
            return self._attempt(context, options, settle=settle)
        except Unsettled:
            self.reset()
            return self._attempt(context, options, settle=False)
        except BaseException:
            self.reset()  # passes may have changed its state already
            raise

    def _read_namespaces(self, tools: tuple[Tool, ...]) -> None:
        """Read the namespaces of the tools; the names of calls in the settled prefix depend on them."""
        if tools is self._tools:
            return
        table, known = read_table(tools), self.target.namespaces
        if known is not None and known.key != table.key:
            self.reset()
        self.target.namespaces, self._tools = table, tools

    def _attempt(self, context: Context, options: Options, *, settle: bool) -> PassOutcome:
        is_off = self.target.rules.thinking_before_calls and is_thinking_off(options, self.target)
        settled = self._settled.pop(is_off, None)
        if settled is None or not settle or not settled.begins(context):
            settled = Settled(context.system_prompt, self.target, self.plan)
        start = len(settled.given)
        cut = _last_cut(context.messages, start) if settle else start
        before, settled.sent = settled.sent, ()
        if cut > start and settled.extend_by_last(context.messages):
            start = len(settled.given)
        else:
            before = ()
        if cut > start:
            segment = context.messages[start:cut]
            settled.extend(segment, self._new_workspace(segment, settled.prefix_state, start, None, is_off=is_off))
        if settle:
            settled.source = context.messages
            self._settled[is_off] = settled
        rest, settings = context.messages[cut:], Settings(context.tools, options, settled.out)
        # What is not kept needs no separate state after the prefix.
        prefix_state = settled.prefix_state.fork() if settle else settled.prefix_state
        scan = None if cut else scan_context(context)
        workspace = self._new_workspace(rest, prefix_state, cut, settings, is_off=is_off, scan=scan)
        if settle:
            settled.last = None
            if workspace.stays():
                names = prefix_state.wire_names
                settled.last = _Last(workspace, list(workspace.changes), list(workspace.needed), names)
        if self.fits_settings:
            fit_settings(workspace)
        return PassOutcome(settled, workspace, before)

    def _new_workspace(
        self,
        messages: Sequence[Message],
        prefix_state: PrefixState,
        offset: int,
        settings: Settings | None,
        *,
        is_off: bool,
        scan: Scan | None = None,
    ) -> Workspace:
        workspace = Workspace(messages, self.target, prefix_state, offset=offset, settings=settings, scan=scan)
        workspace.thinking_off = is_off
        for step in self.passes:
            step(workspace)
        workspace.note_places()
        return workspace


def _has_native(workspace: Workspace) -> bool:
    return workspace.scan.native or "s" in workspace.scan.roles


def _has_free_json(workspace: Workspace) -> bool:
    return workspace.scan.native or workspace.scan.extra


def _last_cut(messages: Sequence[Message], start: int) -> int:
    """Find the last finished assistant turn after `start` that answers a user turn or a tool result."""
    for index in range(len(messages) - 1, start, -1):
        if _is_finished(messages[index]) and messages[index - 1].role in ("user", "toolResult"):
            return index
    return start


def _is_finished(message: Message) -> bool:
    return message.role == "assistant" and message.stop_reason not in UNFINISHED
