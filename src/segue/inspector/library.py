"""The conversations that the page has open, and what was computed of them.

The page names a conversation by a key, so that its text is sent once. Only the last few are kept, and of each the last
few inspections; a conversation of the command line stays open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from secrets import token_urlsafe
from threading import Lock
from typing import Final, NamedTuple, TypeVar, final

from segue.errors import SegueError, SettingsError
from segue.histories.opening import OpenedDocument
from segue.histories.places import Watched
from segue.histories.redacting import new_redactor, redact_document
from segue.inspector.inspection import Inspection, OpenedConversation, describe, find_target, suggest_targets
from segue.inspector.pieces import Json, digest
from segue.inspector.side_by_side import SideBySide, compare_histories
from segue.models.catalogue import Catalogue
from segue.projection.policy import Policy, ReasoningPolicy

CHUNK: Final = 24
SHORT: Final = 1200
"""How many rows, and how many characters of each text, the page asks for at a time; `page/rows.js` has the same."""
_MOST_OPEN: Final = 6
_MOST_INSPECTIONS: Final = 8
_MOST_IMAGES: Final = 400
"""More than a screen has; an image that is asked for is always one of rows that were sent before."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@final
class Growing(NamedTuple):
    """A file that its program may be writing, and how it is opened again."""

    watched: Watched
    open: Callable[[], OpenedConversation]


@final
class OpenConversation:
    """One open conversation. Its methods may be called by several threads."""

    def __init__(
        self, key: str, name: str, opened: OpenedConversation, catalogue: Catalogue, growing: Growing | None = None
    ) -> None:
        self.growing: Growing | None = growing
        self.key: str = key
        self.name: str = name
        self.opened: OpenedConversation = opened
        self.document: OpenedDocument = opened.document
        self._catalogue = catalogue
        self._inspections: OrderedDict[tuple[str, str, str], Inspection] = OrderedDict()
        self._comparisons: OrderedDict[str, SideBySide] = OrderedDict()
        self._images: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def suggested(self) -> list[str]:
        """The targets to begin with."""
        return suggest_targets(self.document, self._catalogue)

    def describe(self) -> Json:
        """Return what the page shows of the conversation, with the targets to begin with."""
        named: Json = {"document": self.key, "name": self.name, "targets": self.suggested}
        return {**named, **describe(self.opened), "follows": self.growing is not None}

    def first_screen(self) -> Json:
        """Return the first target with its first rows, so that the page has all of its first screen in one answer."""
        if not self.suggested:
            return {}
        inspection = self.inspect(self.suggested[0], "auto")
        return {"summary": inspection.summary(), "rows": inspection.side.rows(range(CHUNK), SHORT, self.keep_image)}

    def inspect(self, target: str, reasoning: ReasoningPolicy, beside: str = "") -> Inspection:
        """Inspect the conversation for a target, or return the inspection that was made before.

        `beside` names another target: then its request is shown in place of the stored conversation.

        Raises:
            UnknownModel: there is no such target.
            SettingsError: no target is named.
        """
        if not target.strip():
            raise SettingsError("no target is chosen; add a model, or a protocol, to see its request", key="target")
        model = find_target(target, self.document, self._catalogue)
        other = self.inspect(beside, reasoning) if beside else None
        with self._lock:
            known = _get(self._inspections, (target, reasoning, beside))
            if known is None:
                known = Inspection(self.document, model, Policy(reasoning=reasoning), other)
                _put(self._inspections, (target, reasoning, beside), known, _MOST_INSPECTIONS)
            return known

    def compare(self, other: OpenConversation) -> SideBySide:
        """Show another conversation, on the left, next to this one, both as they are stored."""
        with self._lock:
            known = _get(self._comparisons, other.key)
            if known is None:
                known = compare_histories(other.document.prompt.context, self.document.prompt.context)
                _put(self._comparisons, other.key, known, _MOST_OPEN)
            return known

    def inspect_suggested(self) -> None:
        """Inspect the targets that the page begins with, so that they are ready when it opens."""
        for name in self.suggested:
            self.inspect(name, "auto")

    def keep_image(self, data: str) -> str:
        """Keep the data of an image until the page asks for it, and return its key."""
        key = digest(data)
        with self._lock:
            _put(self._images, key, data, _MOST_IMAGES)
        return key

    def find_image(self, key: str) -> str | None:
        """Return the data of an image; None if it is not kept."""
        with self._lock:
            return _get(self._images, key)


@final
class Library:
    """All open conversations."""

    def __init__(self, catalogue: Catalogue, *, redacts: bool = False) -> None:
        self._catalogue = catalogue
        self.redacts: Final = redacts
        """Whether secrets are taken out of every conversation that is opened."""
        self._open: OrderedDict[str, OpenConversation] = OrderedDict()
        self._lock = Lock()
        self.first: OpenConversation | None = None
        """The conversation of the command line."""
        self.beside: OpenConversation | None = None
        """The one that the command line shows next to it."""

    def add(self, name: str, opened: OpenedConversation, growing: Growing | None = None) -> OpenConversation:
        """Add a conversation; with `growing`, the page can follow its file."""
        if self.redacts:
            redactor = new_redactor()
            document = redact_document(opened.document, redactor)
            opened = opened._replace(document=document, left_out=[*opened.left_out, redactor.summary()])
            name = redactor.text(name)
        added = OpenConversation(token_urlsafe(8), name, opened, self._catalogue, growing)
        with self._lock:
            _put(self._open, added.key, added, _MOST_OPEN)
        return added

    def follow(self, found: OpenConversation) -> OpenConversation | None:
        """Open a conversation again if its file has changed; None if it has not, or cannot be read at this moment."""
        growing = found.growing
        if growing is None or not growing.watched.has_changed():
            return None
        try:
            added = self.add(found.name, growing.open(), growing)
        except SegueError:  # it is being written, and changes again
            return None
        if self.first is found:
            self.first = added
        return added

    def find(self, key: str) -> OpenConversation | None:
        """Find a conversation; None if it was closed because of newer ones."""
        for kept in (self.first, self.beside):
            if kept is not None and kept.key == key:
                return kept
        with self._lock:
            return _get(self._open, key)


def _get(kept: OrderedDict[_Key, _Value], key: _Key) -> _Value | None:
    value = kept.get(key)
    if value is not None:
        kept.move_to_end(key)
    return value


def _put(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
