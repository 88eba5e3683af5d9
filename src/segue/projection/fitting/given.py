"""A projected conversation before fitting, and the result of fitting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from segue.conversation.context import CacheRetention, Summary, Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.projection.fitting.places import JoinedPlaces
from segue.projection.fitting.window import Window
from segue.projection.passes.cache_marks import Mark
from segue.projection.report import Change
from segue.projection.requirements import HistoryNeeded, MediaNeeded, Requirement
from segue.projection.workspace.surrogates import TextLength
from segue.projection.workspace.workspace import SystemPrompt


class Fitted:
    """The result of fitting: the messages to send, and what is reported about them. `is_cut` is False if all fit."""

    __slots__ = ("changes", "is_cut", "marks", "messages", "needed", "requirements", "window")

    def __init__(self, window: Window | None) -> None:
        self.is_cut: bool = False
        self.messages: list[Message] = []
        self.changes: list[Change] = []
        self.marks: list[Mark] = []
        self.needed: tuple[MediaNeeded | HistoryNeeded, ...] = ()
        self.requirements: tuple[Requirement, ...] = ()
        self.window: Window | None = window


class Given:
    """A projected conversation before fitting."""

    __slots__ = (
        "_find_origins",
        "_find_places",
        "_places",
        "changes",
        "covered",
        "find_marks",
        "length",
        "messages",
        "needed",
        "pins",
        "prompt",
        "retention",
        "schema",
        "settled",
        "summaries",
        "tools",
    )

    def __init__(
        self,
        messages: Sequence[Message],
        settled: int,
        *,
        length: TextLength | None,
        prompt: SystemPrompt,
        tools: tuple[Tool, ...],
        schema: Mapping[str, object] | None,
        retention: CacheRetention | None,
        summaries: tuple[Summary, ...],
        pins: tuple[int, ...],
        changes: list[Change],
        needed: tuple[MediaNeeded | HistoryNeeded, ...],
        find_places: Callable[[], JoinedPlaces],
        find_origins: Callable[[int], list[int] | None],
        find_marks: Callable[[], list[Mark]],
        covered: int = 0,
    ) -> None:
        self.messages: Sequence[Message] = messages
        self.settled: int = settled
        """How many of the messages no later message can change."""
        self.length: TextLength | None = length
        """The length of the messages, which have no media; None if that is not known."""
        self.prompt: SystemPrompt = prompt
        self.tools: tuple[Tool, ...] = tools
        self.schema: Mapping[str, object] | None = schema
        self.retention: CacheRetention | None = retention
        self.summaries: tuple[Summary, ...] = summaries
        self.pins: tuple[int, ...] = pins
        self.changes: list[Change] = changes
        self.needed: tuple[MediaNeeded | HistoryNeeded, ...] = needed
        self.covered: int = covered
        """The server reads the message at this index in place of all before it."""
        self.find_marks: Callable[[], list[Mark]] = find_marks
        self._find_places = find_places
        self._find_origins = find_origins
        self._places: JoinedPlaces | None = None

    @property
    def places(self) -> JoinedPlaces:
        """The index of each message in the given conversation, negative for an inserted one; made on first use."""
        if self._places is None:
            self._places = self._find_places()
        return self._places

    def path(self, index: int, position: int | None = None) -> Path:
        """Return the path of the content of a message, or of one piece of it, in the given conversation.

        For a message that projection inserted, such as the one with the media of results, it is the message before.
        """
        if self.places[index] < 0:
            before = self.places.before(index)
            return ("messages", before) if before >= 0 else ("messages",)
        path: Path = ("messages", self.places[index], "content")
        if position is None:
            return path
        origins = self._find_origins(self.places[index])
        origin = position if origins is None else origins[position]
        return path if origin < 0 else (*path, origin)
