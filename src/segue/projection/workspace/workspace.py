"""The mutable state of one projection: the messages so far, their original indexes, and the changes.

Passes change only the lists here. Indexes of `messages` shift as messages are inserted, dropped and moved. `places` and
`blocks` map a message and its content to their original indexes, which changes are reported with.

An inserted message has a negative place, an index into the pending insertions. Insertions are reported after all
passes: only then is it certain that the message was not merged into another one, and which message it follows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, TypeAlias

from segue.conversation.content import AnyContent, Extra, SystemContent
from segue.conversation.context import Options, Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.policy import Policy
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.requirements import HistoryNeeded, MediaNeeded
from segue.projection.workspace.acceptance import Acceptance
from segue.projection.workspace.namespace_table import NamespaceTable
from segue.projection.workspace.ownership import Ownership
from segue.projection.workspace.prefix_state import PrefixState
from segue.projection.workspace.scan import Scan, scan_messages
from segue.projection.workspace.surrogates import TextLength
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.facts import FunctionName
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol

SystemPrompt: TypeAlias = str | tuple[SystemContent, ...] | None

ToolsKey: TypeAlias = tuple[tuple[Tool, ...], Extra | None, bool, tuple[FunctionName, ...]]

ROLE_CODES: Final = {"user": "u", "assistant": "a", "toolResult": "t", "system": "s"}
INSERTED: Final = -1
"""The original index of content that was inserted."""


class FittedTools:
    """The tools of a request after fitting them to the target, the `extra` of the options, and the changes.

    `key` is what they were fitted for: the given tools and `extra`, and what the history calls.
    """

    __slots__ = ("changes", "extra", "key", "tools", "wire_names")

    def __init__(
        self,
        key: ToolsKey,
        tools: tuple[Tool, ...],
        extra: Extra | None,
        changes: list[Change],
        wire_names: dict[str, str],
    ) -> None:
        self.key: ToolsKey = key
        self.tools: tuple[Tool, ...] = tools
        self.extra: Extra | None = extra
        self.changes: list[Change] = changes
        self.wire_names: dict[str, str] = wire_names

    def is_for(self, key: ToolsKey) -> bool:
        """Whether the tools were fitted for the same request: the same tools and `extra`, equal calls."""
        return self.key[0] is key[0] and self.key[1] is key[1] and self.key[2:] == key[2:]


class Target:
    """Everything the passes need to know about the target, resolved once; `fitted_tools` caches the last tools."""

    __slots__ = (
        "acceptance",
        "dialect",
        "fitted_tools",
        "model",
        "namespaces",
        "ownership",
        "policy",
        "protocol",
        "rules",
    )

    def __init__(self, endpoint: Endpoint, policy: Policy) -> None:
        model = endpoint.model
        self.model: Model = model
        self.rules: Rules = endpoint.rules
        self.dialect: Dialect = endpoint.dialect
        """Used only to find out which thinking options it can express."""
        self.policy: Policy = policy
        self.protocol: Protocol = get_protocol(model.protocol)
        self.acceptance: Acceptance = Acceptance(self.protocol, endpoint)
        self.ownership: Ownership = Ownership(model, policy.same_model, policy.routers)
        self.fitted_tools: FittedTools | None = None
        self.namespaces: NamespaceTable | None = None
        """The namespaces among the tools of the request that is projected."""


class Settings:
    """Tools and options of a request; the last pass replaces the given ones.

    `before` are the projected messages before the segment that has the settings.
    """

    __slots__ = ("before", "options", "tools")

    def __init__(self, tools: tuple[Tool, ...], options: Options, before: Sequence[Message] = ()) -> None:
        self.tools: tuple[Tool, ...] = tools
        self.options: Options = options
        self.before: Sequence[Message] = before


KnownTools: TypeAlias = list[tuple[Model, Policy, FittedTools]]
"""Tools that were fitted for the last targets, of requests that have the same tuple of tools, not an equal one."""


class Workspace:
    """A segment of messages that the passes change.

    Only the last segment has `settings`; `final` is True for it. `scan` is what is known of the messages already.
    """

    __slots__ = (
        "_given_before",
        "_added",
        "_insertions",
        "_start",
        "blocks",
        "prefix_state",
        "changed",
        "changes",
        "end",
        "cross_model",
        "final",
        "follows",
        "given",
        "has_moves",
        "joined",
        "messages",
        "native_answers",
        "needed",
        "places",
        "refused",
        "reordered",
        "results",
        "settings",
        "scan",
        "target",
        "thinking_off",
    )

    def __init__(
        self,
        messages: Sequence[Message],
        target: Target,
        prefix_state: PrefixState,
        *,
        offset: int = 0,
        settings: Settings | None = None,
        scan: Scan | None = None,
    ) -> None:
        self.given: Sequence[Message] = messages
        self.messages: list[Message] = list(messages)
        self.places: Sequence[int] = range(offset, offset + len(messages))
        self.blocks: dict[int, list[int]] = {}
        self.scan: Scan = scan_messages(messages) if scan is None else scan
        self.scan.conclude(messages, target.ownership)
        self.changes: list[Change] = []
        self.needed: list[MediaNeeded | HistoryNeeded] = []
        self.cross_model: set[int] = set()
        """Places of own turns that lost a signed block: their other signatures cannot be replayed either."""
        self._added: int | None = 0
        """How many characters the passes added at most; None if that is not known."""
        self.changed: bool = False
        self.reordered: bool = False
        """Whether any message was changed; whether messages were inserted, dropped or moved, or changed their role."""
        self.target: Target = target
        self.prefix_state: PrefixState = prefix_state
        self.settings: Settings | None = settings
        self.final: bool = settings is not None
        self.follows: int | None = prefix_state.last_place
        """The place of the last given message that was kept in the segment before."""
        self._start = offset
        self.end: int = offset + len(messages)
        self.has_moves: bool = False
        self.results: set[int] = set()
        """Whether results may have moved, and the places of those that may have."""
        self.thinking_off: bool = False
        """Whether the request turns thinking off and the target then refuses thinking in a tool cycle."""
        self.refused: dict[tuple[int, int], str] = {}
        """Native blocks that the target would refuse: (place, position in the content) -> why."""
        self.native_answers: dict[tuple[int, int], tuple[int, int]] = {}
        """Tool results that answer a native call: (place, -1) -> (place, position) of the call."""
        self.joined: set[int] = set()
        """Places of assistant turns that directly follow one with a call that the provider has not finished."""
        self._insertions: list[tuple[ChangeCode, str]] = []
        self._given_before: list[int] | None = None
        """For each message the place of the last given one up to it, computed when an inserted one needs it."""

    # -- changes -------------------------------------------------------------------------------------------------------

    def note(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        """Record one change."""
        self.changes.append(Change(code=code, path=path, loss=loss, detail=detail))

    def insertion(self, code: ChangeCode, detail: str = "") -> int:
        """Return the place of an inserted message, and keep what to report about it."""
        self._insertions.append((code, detail))
        return -len(self._insertions)

    def note_places(self) -> None:
        """Report inserted messages, each with the path of the message before it, and moved results."""
        if self.has_moves:
            self._note_moves([place for place in self.places if place >= 0])
        if self._insertions:
            for index, place in enumerate(self.places):
                if place < 0:
                    code, detail = self._insertions[-1 - place]
                    self.note(code, self.path(index), Loss.NONE, detail)

    def _note_moves(self, order: list[int]) -> None:
        """Report the results that moved: the fewest that explain the new order; all other messages kept theirs."""
        kept: set[int] = set()
        gap: list[int] = []
        start = -1
        for place in order:
            if place in self.results:
                gap.append(place)
                continue
            kept.update(_longest_increasing([moved for moved in gap if start < moved < place]))
            gap, start = [], place
        kept.update(_longest_increasing([moved for moved in gap if moved > start]))
        for place in order:
            if place in self.results and place not in kept:
                self.note(ChangeCode.RESULT_MOVED, ("messages", place), Loss.NONE)

    def length(self) -> TextLength | None:
        """Return the length of the messages; None if it is not known what passes added, or if they have media."""
        scan = self.scan
        return None if self._added is None or scan.media or scan.unmeasured else scan.measured(self._added)

    def stays(self) -> bool:
        """Whether an answer after the segment changes nothing in it: no pass relied on the segment being the last one.

        Passes ask for that only where calls wait for results, in an assistant turn at the end, and in native blocks.
        """
        scan = self.scan
        is_as_given = scan.paired and not scan.native and not self.reordered
        return is_as_given and bool(self.given) and self.given[-1].role in ("user", "toolResult")

    # -- original indexes ----------------------------------------------------------------------------------------------

    def is_given(self, index: int) -> bool:
        """Whether the message at `index` was given. Modifying an inserted message is not reported as a change."""
        return self.places[index] >= 0

    def is_own(self, index: int) -> bool:
        """Whether the target wrote the turn at `index`, and its signed blocks are complete."""
        place = self.places[index]
        return place - self._start not in self.scan.foreign and place not in self.cross_model

    def path(self, index: int) -> Path:
        """Return the original path of the message at `index`; for an inserted one, of the message before it."""
        place = self.places[index]
        if place >= 0:
            return ("messages", place)
        if self._given_before is None:
            # All of them at once: looking back from each of many insertions in a row would be quadratic.
            last = -1 if self.follows is None else self.follows
            self._given_before = [last := place if place >= 0 else last for place in self.places]
        before = self._given_before[index]
        return ("messages",) if before < 0 else ("messages", before)

    def content_path(self, index: int, block: int) -> Path:
        """Return the original path of content `block` of the message at `index`."""
        place = self.places[index]
        if place < 0:
            return self.path(index)
        origins = self.blocks.get(place)
        if origins is None:
            return ("messages", place, "content", block)
        if origins[block] == INSERTED:
            return ("messages", place, "content")
        return ("messages", place, "content", origins[block])

    def origins(self, index: int) -> list[int]:
        """Return the original index of each content of the message at `index`."""
        known = self.blocks.get(self.places[index])
        return list(known) if known is not None else list(range(len(self.messages[index].content)))

    # -- modification --------------------------------------------------------------------------------------------------

    def put(self, index: int, message: Message, origins: list[int] | None = None, *, added: int | None = None) -> None:
        """Replace a message; pass `origins` if its content does not correspond one to one to the previous content.

        `added` is how many characters the new one has more at most; see `add`.
        """
        self.messages[index] = message
        self.changed = True
        self.add(added)
        if origins is not None and self.places[index] >= 0:
            self.blocks[self.places[index]] = origins

    def add(self, characters: int | None) -> None:
        """Record that a pass added characters; with None, a long request has to be measured message by message."""
        self._added = None if self._added is None or characters is None else self._added + characters

    def keep(self, messages: list[Message], places: Sequence[int], *, added: int | None = None) -> None:
        """Replace all messages after inserting, dropping or moving some; `added` as in `put`."""
        self.add(added)
        self.messages = messages
        self.places = places
        self._given_before = None
        self.changed = self.reordered = True


def _longest_increasing(places: list[int]) -> list[int]:
    """Return the longest increasing subsequence; the earliest places if several are equally long."""
    lowest: list[int] = []  # the lowest place that ends an increasing subsequence of each length
    ends: list[int] = []  # for each length, the index of that place
    before: list[int] = []
    for index, place in enumerate(places):
        length = bisect_left(lowest, place)
        before.append(ends[length - 1] if length else -1)
        if length == len(lowest):
            lowest.append(place)
            ends.append(index)
        else:
            lowest[length], ends[length] = place, index
    found: list[int] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        found.append(places[index])
        index = before[index]
    found.reverse()
    return found


def roles_of(workspace: Workspace) -> str:
    """Return the current roles of the messages, one letter each."""
    if workspace.reordered:
        return "".join([ROLE_CODES[message.role] for message in workspace.messages])
    return workspace.scan.roles


def joined_text(content: Sequence[AnyContent]) -> str:
    """Join the texts among some content with line breaks."""
    return "\n".join(piece.text for piece in content if piece.kind == "text")
