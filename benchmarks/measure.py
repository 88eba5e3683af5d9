"""How times are measured and compared.

- CPU time of the process, not wall-clock time: other programs share the machine.
- All subjects of a comparison run in turn in one process, in rotating order, so that other load affects all of them.
  The garbage collector is on, as in applications; objects that existed before are frozen in all processes, so that
  figures do not depend on other histories.
- The value is the best time divided by the best time of the reference: the run with the least interference. The
  quartiles of the ratios of single rounds show how reliable it is.
- Before each sample, one call is not counted, because the processor's caches hold the data of another subject.
- The reference is measured twice, under two names. Its ratio to itself shows the measurement error of the run.
- A subject in another process also runs in every round, with the reference in that process: two processes are compared
  as multiples of the reference, because their times are not comparable.
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
    """The effort: rounds for each comparison, and the length of a sample."""

    rounds: int
    sample_ns: int


FULL: Final = Effort(rounds=40, sample_ns=10_000_000)
QUICK: Final = Effort(rounds=3, sample_ns=200_000)


@dataclass(frozen=True)
class Ratio:
    """A ratio of times: best divided by best, and the quartiles of the rounds."""

    best: float
    low: float
    high: float

    def spread(self) -> str:
        """Write the quartiles of the rounds."""
        return f"{self.low:.2f} to {self.high:.2f}"

    def spread_as_part(self) -> str:
        """Write the quartiles of the rounds as fractions."""
        return f"{as_part(self.high)} to {as_part(self.low)}"


@dataclass(frozen=True)
class Comparison:
    """Samples in nanoseconds for a call, one for each round, of all subjects."""

    yardstick: str
    samples: Mapping[str, tuple[float, ...]]

    def best(self, name: str) -> float:
        """Return the best sample in nanoseconds for a call."""
        return min(self.samples[name])

    def ratio(self, name: str, yardstick: str | None = None) -> Ratio:
        """Return the ratio of `name` to the reference, or to another subject."""
        unit = yardstick or self.yardstick
        rounds = [mine / its for mine, its in zip(self.samples[name], self.samples[unit], strict=True)]
        return Ratio(self.best(name) / self.best(unit), *_quartiles(rounds))

    def against(self, name: str, other: str) -> Ratio:
        """Return the ratio of `name` to `other`, which ran in another process, by multiples of the reference."""
        there = f"{other}: yardstick"
        columns = (self.samples[key] for key in (name, self.yardstick, other, there))
        rounds = [(mine / unit) / (its / its_unit) for mine, unit, its, its_unit in zip(*columns, strict=True)]
        return Ratio(self.ratio(name).best / self.ratio(other, there).best, *_quartiles(rounds))

    def control(self) -> Ratio:
        """Return the ratio of the reference to itself: 1, apart from the measurement error."""
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
    """Measure all subjects in turn; `yardstick` is the name of the reference.

    Subjects in `elsewhere` run in other processes; each returns its samples by name, once a round.
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
    """Exclude existing objects from garbage collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def time_calls(subject: Callable[[], object], calls: int = 1) -> float:
    """Return the CPU nanoseconds of one call, averaged over `count` calls; freeing the results is included."""
    before = time.process_time_ns()
    for _ in range(calls):
        subject()
    return (time.process_time_ns() - before) / calls


def _calls_for_sample(subject: Callable[[], object], sample_ns: int) -> int:
    once = min(time_calls(subject) for _ in range(2))
    return max(1, round(sample_ns / max(once, 1.0)))
