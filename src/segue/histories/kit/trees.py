"""Conversations that are stored as a tree: each entry names the one before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, final

from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.history import Branch
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import View
from segue.projection.report import ChangeCode, Loss


@final
class Tree:
    """Entries by id, in the order of the file, with the id of the one before each."""

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._parents: Final = parents

    def path(self, end: str | None) -> list[str]:
        """Return the ids from the beginning to an entry; a loop is followed once."""
        found: dict[str, None] = {}
        while end is not None and end in self._parents and end not in found:
            found[end] = None
            end = self._parents[end]
        return list(found)[::-1]

    def ids(self) -> Iterator[str]:
        """Return an iterator over all entries, in the order of the file."""
        return iter(self._parents)

    def ends(self) -> Iterator[str]:
        """Yield the entries that no other one follows, the last of the file first; after them one of each loop."""
        inner, passed = set(self._parents.values()), set[str]()
        newest = list(self._parents)[::-1]
        for entry in (*(each for each in newest if each not in inner), *(each for each in newest if each in inner)):
            if entry in passed:
                continue
            yield entry
            above: str | None = entry
            while above is not None and above in self._parents and above not in passed:
                passed.add(above)
                above = self._parents[above]

    def end(self, view: View, default: str | None) -> str | None:
        """Return the end of the view: the branch that it asks for, else the given one, else the last of the file.

        Raises:
            LoadError: there is no such branch.
        """
        if view.branch is not None:
            if view.branch not in self._parents:
                raise LoadError(f"the conversation has no branch {view.branch!r}; the report lists the branches")
            return view.branch
        return default if default in self._parents else next(self.ends(), None)

    def branches(
        self,
        used: list[str],
        notes: Notes,
        *,
        is_message: Callable[[str], bool],
        text_of: Callable[[str], str],
        time_of: Callable[[str], int | None],
    ) -> tuple[Branch, ...]:
        """List the other ends, each with the number of its own messages, and note that they are left out."""
        shared, found = set(used), list[Branch]()
        for end in self.ends():
            own = [each for each in self.path(end) if each not in shared and is_message(each)]
            if not own:
                continue
            detail = f"{end}: {counted(len(own), 'message')}"
            notes.add(ChangeCode.BRANCH_LEFT_OUT, ("branches", len(found)), Loss.CONTENT, detail)
            text = next((text for each in own if (text := text_of(each))), "")
            found.append(Branch(id=end, messages=len(own), updated=time_of(end), text=text[:200]))
        return tuple(found)
