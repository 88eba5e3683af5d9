"""The workbench of one projection: the messages as they stand, where each came from, and what was done.

Passes change the lists here and nothing else. Indexes of the working list shift as messages come and go; `places` and
`blocks` lead back to where a message and its content stood in what was given, which is how changes are reported.

A message that was put in has a negative place, which leads to what shall be said about it. It is said when all passes
are done: only then is it certain that the message still stands by itself, and which message it follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from segue.conversation.content import AnyContent, SystemContent
from segue.conversation.context import Options, Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.policy import Policy
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.requirements import MediaNeeded
from segue.projection.workspace.ownership import Ownership
from segue.projection.workspace.prefix_state import PrefixState
from segue.projection.workspace.scan import Scan, scan_messages

SystemPrompt: TypeAlias = str | tuple[SystemContent, ...] | None

ROLE_CODES: Final = {"user": "u", "assistant": "a", "toolResult": "t", "system": "s"}
INSERTED: Final = -1
"""The origin of a block that was not given but put in."""


class FittedTools:
    """What became of the tools of a request, and what was said about it."""

    __slots__ = ("changes", "given", "tools", "wire_names")

    def __init__(
        self, given: tuple[Tool, ...], tools: tuple[Tool, ...], changes: list[Change], wire_names: dict[str, str]
    ) -> None:
        self.given: tuple[Tool, ...] = given
        self.tools: tuple[Tool, ...] = tools
        self.changes: list[Change] = changes
        self.wire_names: dict[str, str] = wire_names


class Target:
    """Everything the passes ask about the target, resolved once; `fitted_tools` are the last ones it was given."""

    __slots__ = ("dialect", "fitted_tools", "ownership", "model", "policy", "rules")

    def __init__(self, model: Model, rules: Rules, dialect: Dialect, policy: Policy) -> None:
        self.model: Model = model
        self.rules: Rules = rules
        self.dialect: Dialect = dialect
        """Asked only how much of a wish for thinking it can spell."""
        self.policy: Policy = policy
        self.ownership: Ownership = Ownership(model, policy.same_model)
        self.fitted_tools: FittedTools | None = None


class Settings:
    """What a request says besides its messages: as given, and as the last pass leaves it."""

    __slots__ = ("options", "tools")

    def __init__(self, tools: tuple[Tool, ...], options: Options) -> None:
        self.tools: tuple[Tool, ...] = tools
        self.options: Options = options


class Workspace:
    """A stretch of messages under work.

    `settings` come with the last stretch alone, and `final` says that this is it. `evicted` says how many of the oldest
    images and files of the whole conversation have to give way.
    """

    __slots__ = (
        "_insertions",
        "_start",
        "blocks",
        "prefix_state",
        "changed",
        "changes",
        "end",
        "cross_model",
        "evicted",
        "final",
        "follows",
        "has_moves",
        "messages",
        "needed",
        "places",
        "reshaped",
        "results",
        "settings",
        "scan",
        "target",
    )

    def __init__(
        self,
        messages: Sequence[Message],
        target: Target,
        prefix_state: PrefixState,
        *,
        offset: int = 0,
        settings: Settings | None = None,
        evicted: tuple[int, int] = (0, 0),
    ) -> None:
        self.messages: list[Message] = list(messages)
        self.places: Sequence[int] = range(offset, offset + len(messages))
        self.blocks: dict[int, list[int]] = {}
        self.scan: Scan = scan_messages(messages, target.ownership)
        self.changes: list[Change] = []
        self.needed: list[MediaNeeded] = []
        self.cross_model: set[int] = set()
        """Places of own turns that lost a signed block: what else is signed there cannot be replayed either."""
        self.changed: bool = False
        self.reshaped: bool = False
        """Whether a message was changed at all; whether messages came, went or moved."""
        self.target: Target = target
        self.prefix_state: PrefixState = prefix_state
        self.settings: Settings | None = settings
        self.final: bool = settings is not None
        self.follows: int | None = prefix_state.last_place
        """The place of the last given message of the stretch before that came out."""
        self._start = offset
        self.end: int = offset + len(messages)
        self.evicted: tuple[int, int] = evicted
        self.has_moves: bool = False
        self.results: set[int] = set()
        """Whether results may have moved, and the places of those that may have."""
        self._insertions: list[tuple[ChangeCode, str]] = []

    # -- what was done -------------------------------------------------------------------------------------------------

    def note(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        """Write down one change."""
        self.changes.append(Change(code=code, path=path, loss=loss, detail=detail))

    def insertion(self, code: ChangeCode, detail: str = "") -> int:
        """Give the place of a message that is put in, and remember what to say about it."""
        self._insertions.append((code, detail))
        return -len(self._insertions)

    def note_places(self) -> None:
        """Write down which messages were put in, each where the message it follows stood, and which results moved."""
        if self.has_moves:
            self._note_moves([place for place in self.places if place >= 0])
        if self._insertions:
            for index, place in enumerate(self.places):
                if place < 0:
                    code, detail = self._insertions[-1 - place]
                    self.note(code, self.path(index), Loss.NONE, detail)

    def _note_moves(self, order: list[int]) -> None:
        """Report every result that now stands before something it stood behind, or the other way round."""
        lowest_behind = list(accumulate(reversed(order), min))
        lowest_behind.reverse()
        highest_before = -1
        for index, place in enumerate(order):
            if place in self.results and (highest_before > place or lowest_behind[index] < place):
                self.note(ChangeCode.RESULT_MOVED, ("messages", place), Loss.NONE)
            highest_before = max(highest_before, place)

    # -- where it stood ------------------------------------------------------------------------------------------------

    def is_given(self, index: int) -> bool:
        """Whether the message now at `index` was given; what happens to one that was put in is no change."""
        return self.places[index] >= 0

    def is_own(self, index: int) -> bool:
        """Whether the target wrote the turn now at `index`, and what it sealed there is whole."""
        place = self.places[index]
        return place - self._start not in self.scan.foreign and place not in self.cross_model

    def path(self, index: int) -> Path:
        """Where the message now at `index` stood; for one that was put in, where the message it follows stood."""
        while index >= 0:
            if self.places[index] >= 0:
                return ("messages", self.places[index])
            index -= 1
        return ("messages",) if self.follows is None else ("messages", self.follows)

    def content_path(self, index: int, block: int) -> Path:
        """Where the block now at `block` of the message now at `index` stood."""
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
        """Where each block of the message now at `index` stood in that message."""
        known = self.blocks.get(self.places[index])
        return list(known) if known is not None else list(range(len(self.messages[index].content)))

    # -- changing it ---------------------------------------------------------------------------------------------------

    def put(self, index: int, message: Message, origins: list[int] | None = None) -> None:
        """Put a changed message where it stood; `origins` only when its blocks are not one for one what they were."""
        self.messages[index] = message
        self.changed = True
        if origins is not None and self.places[index] >= 0:
            self.blocks[self.places[index]] = origins

    def keep(self, messages: list[Message], places: Sequence[int]) -> None:
        """Go on with these messages: some came, went or moved."""
        self.messages = messages
        self.places = places
        self.changed = self.reshaped = True


def roles_of(workspace: Workspace) -> str:
    """Give the roles of the messages as they stand, a letter each."""
    if workspace.reshaped:
        return "".join([ROLE_CODES[message.role] for message in workspace.messages])
    return workspace.scan.roles


def joined_text(content: Sequence[AnyContent]) -> str:
    """Join the texts among some content, a line each."""
    return "\n".join(piece.text for piece in content if piece.kind == "text")
