"""The index of each projected message in the given conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final


@final
class JoinedPlaces:
    """The places of the settled messages and of the last segment, joined without copying them."""

    __slots__ = ("_behind", "_settled")

    def __init__(self, settled: list[int], behind: Sequence[int]) -> None:
        self._settled = settled
        self._behind = behind

    def __getitem__(self, index: int) -> int:
        count = len(self._settled)
        return self._settled[index] if index < count else self._behind[index - count]

    def __len__(self) -> int:
        return len(self._settled) + len(self._behind)

    def after(self, index: int) -> int:
        """Return the first index of the given conversation at or after a projected message; its length without one.

        Inserted messages have none.
        """
        for at in range(index, len(self)):  # nearly always the first one
            place = self[at]
            if place >= 0:
                return place
        return 1 + max((self[at] for at in range(len(self))), default=-1)

    def before(self, index: int) -> int:
        """Return the last index of the given conversation before a projected message; -1 if there is none."""
        for at in range(index - 1, -1, -1):
            place = self[at]
            if place >= 0:
                return place
        return -1
