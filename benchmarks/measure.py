"""How costs are measured and compared.

- CPU time of the process, never the clock on the wall: other programs share the machine.
- Everything that is compared runs in turn within one process, round after round, in an order that rotates: a busy
  moment hits all of it alike. The garbage collector is left on, because it is on where the library is used; what was
  there before the measuring began is kept out of its sight, here and in other processes alike, so that no figure
  depends on how many other histories wait for their turn.
- The headline is best over best: the least disturbed run is the nearest to what the code itself costs. The quartiles of
  the ratios of single rounds say how far to trust it.
- Before a sample comes one call that is not counted: what ran before it, another subject or another process, has left
  other things in the processor's caches, and a slow subject has fewer calls in its sample to spread that over.
- The yardstick is entered twice under two names. What its ratio to itself differs from one is what this machine could
  not tell apart in this run.
- What has to run in another process takes its turn in every round too, and brings the yardstick's time there with it:
  two processes are compared as multiples of the same work, never by their times.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from figures import as_part

CONTROL: Final = "control"


@dataclass(frozen=True)
class Effort:
    """How much measuring: rounds for each comparison, and how long a single sample should last."""

    rounds: int
    sample_ns: int


FULL: Final = Effort(rounds=40, sample_ns=10_000_000)
QUICK: Final = Effort(rounds=3, sample_ns=200_000)


@dataclass(frozen=True)
class Ratio:
    """A cost in units of another: best over best, and the quartiles of the rounds."""

    best: float
    low: float
    high: float

    def spread(self) -> str:
        """Write the middle half of the rounds."""
        return f"{self.low:.2f} to {self.high:.2f}"

    def spread_as_part(self) -> str:
        """Write the middle half of the rounds as parts of one."""
        return f"{as_part(self.high)} to {as_part(self.low)}"


@dataclass(frozen=True)
class Comparison:
    """Samples in nanoseconds a call, one for each round, of everything that was compared with the yardstick."""

    yardstick: str
    samples: Mapping[str, tuple[float, ...]]

    def best(self, name: str) -> float:
        """Give the best sample in nanoseconds a call."""
        return min(self.samples[name])

    def ratio(self, name: str, yardstick: str | None = None) -> Ratio:
        """Give the cost of `name` in units of the yardstick, or of another that was measured beside it."""
        unit = yardstick or self.yardstick
        rounds = [mine / its for mine, its in zip(self.samples[name], self.samples[unit], strict=True)]
        return Ratio(self.best(name) / self.best(unit), *_quartiles(rounds))

    def against(self, name: str, other: str) -> Ratio:
        """Give the cost of `name` in units of `other`, which ran in another process: multiples of the yardstick."""
        there = f"{other}: yardstick"
        columns = (self.samples[key] for key in (name, self.yardstick, other, there))
        rounds = [(mine / unit) / (its / its_unit) for mine, unit, its, its_unit in zip(*columns, strict=True)]
        return Ratio(self.ratio(name).best / self.ratio(other, there).best, *_quartiles(rounds))

    def control(self) -> Ratio:
        """Give the yardstick in units of itself: one, but for what the machine could not tell apart."""
        return self.ratio(CONTROL)


def _quartiles(rounds: list[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(rounds, n=4)
    return low, high


def compare(
    yardstick: str,
    subjects: Mapping[str, Callable[[], object]],
    effort: Effort,
    elsewhere: Sequence[Callable[[], Mapping[str, float]]] = (),
) -> Comparison:
    """Measure all subjects in turn; `yardstick` names the one that the others are held against.

    What is `elsewhere` measures itself, once a round, and gives its samples by name.
    """
    entered = {**subjects, CONTROL: subjects[yardstick]}
    samples: dict[str, list[float]] = {name: [] for name in entered}
    names = list(entered)
    with settled():
        calls = {name: _calls_for_sample(subject, effort.sample_ns) for name, subject in entered.items()}
        for turn in range(effort.rounds):
            start = turn % len(names)
            for name in names[start:] + names[:start]:
                entered[name]()
                samples[name].append(time_calls(entered[name], calls[name]))
            for sample in elsewhere:
                for name, spent in sample().items():
                    samples.setdefault(name, []).append(spent)
    return Comparison(yardstick, {name: tuple(taken) for name, taken in samples.items()})


@contextmanager
def settled() -> Generator[None]:
    """Keep what is there already out of the garbage collector's sight."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def time_calls(subject: Callable[[], object], calls: int = 1) -> float:
    """Give the CPU nanoseconds of one call, over so many in a row; freeing the results is part of it."""
    before = time.process_time_ns()
    for _ in range(calls):
        subject()
    return (time.process_time_ns() - before) / calls


def _calls_for_sample(subject: Callable[[], object], sample_ns: int) -> int:
    once = min(time_calls(subject) for _ in range(2))
    return max(1, round(sample_ns / max(once, 1.0)))
