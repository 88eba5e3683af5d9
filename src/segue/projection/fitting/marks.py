"""Where the cuts of a request are."""

from __future__ import annotations

from segue.counting.estimates import NOTHING_LEARNT, Calibration


class Marks:
    """Where the cuts are at one point; all of them are indexes of projected messages and only grow."""

    __slots__ = (
        "cuts",
        "evicted",
        "gone",
        "lean",
        "learnt",
        "noted",
        "point",
        "running",
        "saved",
        "since",
        "spare",
        "tight",
    )

    def __init__(self, quotas: int) -> None:
        self.point: int = 1
        """The next point to look at."""
        self.gone: int = 0
        """Messages between the first user message and here are left out."""
        self.lean: int = 0
        """Messages between the first user message and here are shortened."""
        self.evicted: list[int] = [0] * quotas
        """For each quota, how many of its oldest media are replaced by a placeholder."""
        self.running: dict[int, int] = {}
        """Results that were shortened while their unit was running, and to how many characters."""
        self.saved: dict[int, float] = {}
        """The tokens that this saves."""
        self.cuts: int = 0
        self.since: int = 0
        """Where the last cut was. The next one loses the reasoning after it, if that is bound to its prefix."""
        self.noted: tuple[int, int] = (0, 0)
        """The point of the last cut that left messages out, and `lean` there. The note is made from what was sent then,
        so it stays the same until the next such cut."""
        self.tight: int = 0
        """How often the room of the note is halved."""
        self.spare: float = 0.0
        """What the last cut freed beyond the low mark, because only whole units are left out: the note may have it."""
        self.learnt: Calibration = NOTHING_LEARNT
        """What the usage of the replies so far shows about the estimates."""

    def copy(self) -> Marks:
        """Return marks that continue from these without changing them."""
        new = Marks(0)
        new.point, new.gone, new.lean, new.cuts = self.point, self.gone, self.lean, self.cuts
        new.since, new.noted, new.tight, new.spare = self.since, self.noted, self.tight, self.spare
        new.learnt = self.learnt
        new.evicted, new.running, new.saved = list(self.evicted), dict(self.running), dict(self.saved)
        return new
