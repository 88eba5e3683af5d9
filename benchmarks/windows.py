"""What counting and fitting add to a turn: a projector that fits, compared with one that does not.

The history is larger than the window, so that every turn sends a cut history, and sometimes moves the cut. All
projectors are given the same growing history, one step of an agent at a time, in turn. Every round begins with new
projectors; the first two turns of a round are not counted, and of every other turn the best round is. What fitting adds
is the median of the differences of the turns: one with a cut, which is rare, does not change it. The projector that
does not fit runs twice, and its difference from itself is the measurement error.

Counting is measured cold, over the whole history, and given for a million tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

import orjson
from cases import SAME_MODEL_CASES, Case, prepare_case
from figures import Figure
from measure import CONTROL, Effort, compare, settled, time_calls
from msgspec.structs import replace
from replies import make_history
from transcripts import as_plain, make_turn

from segue import Context, Model, Policy, Projector
from segue.counting.counter import TokenCounter

_NOT_COUNTED: Final = 2
_COUNTED: Final = 12
_WINDOW: Final = 128_000
_UNCUT: Final = Policy(fit=None)


def measure_windows(effort: Effort, lengths: Sequence[int]) -> list[Figure]:
    """Measure what fitting adds to a warm turn of every protocol at every length, and what counting takes."""
    figures: list[Figure] = []
    for case in SAME_MODEL_CASES:
        for length in lengths:
            figures += _measure_added(case, length, effort)
    for case in SAME_MODEL_CASES:
        figures += _measure_count(case, lengths[0], effort)
    return figures


def _measure_added(case: Case, length: int, effort: Effort) -> Iterator[Figure]:
    turns = _time_turns(case, length, max(2, effort.rounds // 6))
    middle = {name: median(spent) / 1e3 for name, spent in turns.items()}
    added, error = (
        median(mine - its for mine, its in zip(turns[name], turns["uncut"], strict=True)) / 1e3
        for name in ("fit", CONTROL)
    )
    what = f"{case.wire}: fitting, added to a warm turn after {length:,} messages"
    yield Figure("windows.added", what, "us", max(0.0, added))
    yield Figure("", f"{case.wire}: the whole turn, cut, {length:,}", "us", middle["fit"])
    yield Figure("", f"{case.wire}: the whole turn, not cut, {length:,}", "us", middle["uncut"])
    what = f"{case.wire}: not cut against itself, {length:,}"
    yield Figure("", what, "us", abs(error), note="the same code twice: measurement error")


def _time_turns(case: Case, length: int, rounds: int) -> dict[str, list[float]]:
    """Return the best time of every turn, by projector."""
    contexts = _growing(case.writer, length, _NOT_COUNTED + _COUNTED)
    # Small enough that the shorter history does not fit either.
    model = replace(case.target, context_window=min(_WINDOW, 60 * length), max_input=0)
    if not Projector(model).project(contexts[0]).report.changes:
        raise AssertionError(f"{case.name}: nothing was cut, so the figures would be wrong")
    best = {name: [float("inf")] * _COUNTED for name in ("fit", "uncut", CONTROL)}
    names = list(best)
    with settled():
        for _ in range(rounds):
            projectors = {name: Projector(model, None if name == "fit" else _UNCUT) for name in names}
            for turn, context in enumerate(contexts):
                start = turn % len(names)
                for name in names[start:] + names[:start]:
                    spent = time_calls(lambda keeper=projectors[name], context=context: keeper.project(context))
                    if turn >= _NOT_COUNTED:
                        best[name][turn - _NOT_COUNTED] = min(best[name][turn - _NOT_COUNTED], spent)
    return best


def _growing(writer: Model, length: int, turns: int) -> list[Context]:
    contexts = [make_history(length, writer)]
    for turn in range(1, turns):
        contexts.append(contexts[-1].add(*make_turn(writer, seed=1_000_000 + turn)))
    return contexts


def _measure_count(case: Case, length: int, effort: Effort) -> Iterator[Figure]:
    context = prepare_case(case, length).context
    plain, counter = as_plain(context), TokenCounter(case.target)
    tokens = count_all(context, counter)
    subjects = {"count": lambda: count_all(context, counter), "orjson.dumps": lambda: orjson.dumps(plain)}
    compared = compare("orjson.dumps", subjects, effort)
    ratio, control = compared.ratio("count"), compared.control()
    each = compared.best("count") / tokens
    yield Figure("windows.count", f"{case.wire}: counting a million tokens", "ms", each)  # ns a token = ms a million
    what = f"{case.wire}: counting {length:,} messages / orjson.dumps"
    yield Figure("", what, "times", ratio.best, ratio.spread())
    what = f"{case.wire}: orjson.dumps / itself, {length:,}"
    yield Figure("", what, "times", control.best, control.spread(), note="the same code twice: measurement error")


def count_all(context: Context, counter: TokenCounter) -> float:
    """Count every message."""
    return sum(sum(counter.message(message)) for message in context.messages)
