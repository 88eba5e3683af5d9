"""The time to project a history for a target, compared with serializing the history once with orjson.

"same-model": the target wrote the history, and nothing changes. "cross-model": another model wrote every assistant
turn. A warm `Projector` has seen all but the last turn. Its time for each known message is the slope between a short
and a long history, which cancels out the time for new messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import orjson
from figures import Figure
from measure import Comparison, Effort, compare, time_calls
from transcripts import CROSS_MODEL, OWN_MODEL, as_plain, make_transcript, make_turn

from segue import Context, Model, Projector, project

_TARGETS: Final = (("same-model", OWN_MODEL), ("cross-model", CROSS_MODEL))


def measure_projection(effort: Effort, lengths: Sequence[int]) -> list[Figure]:
    """Measure `project` and a warm `Projector`."""
    short, long = lengths[0], lengths[-1]
    figures: list[Figure] = []
    for place, model in _TARGETS:
        figures += _measure_whole(place, model, (short, long), effort)
    for place, model in _TARGETS:
        figures += _measure_warm(place, model, (short, long), effort)
    return figures


def _measure_whole(place: str, model: Model, lengths: tuple[int, int], effort: Effort) -> Iterator[Figure]:
    short, long = lengths
    before, after = (_compare_project(model, length, effort) for length in lengths)
    ratio, control = before.ratio("project"), before.control()
    what = f"project {short:,} messages {place} / orjson.dumps"
    yield Figure(f"projection.{place}", what, "times", ratio.best, ratio.spread())
    yield Figure("", f"project {place}, a message", "us", before.best("project") / short / 1e3)
    what = f"orjson.dumps / itself, {place}"
    yield Figure("", what, "times", control.best, control.spread(), note="the same code twice: measurement error")
    growth = (after.best("project") / long) / (before.best("project") / short)
    what = f"project {place}, a message of {long:,} / of {short:,}"
    yield Figure(f"projection.{place}.linear", what, "times", growth)


def _compare_project(model: Model, length: int, effort: Effort) -> Comparison:
    context = make_transcript(length)
    plain = as_plain(context)
    subjects = {"project": lambda: project(context, model), "orjson.dumps": lambda: orjson.dumps(plain)}
    return compare("orjson.dumps", subjects, effort)


def _measure_warm(place: str, model: Model, lengths: tuple[int, int], effort: Effort) -> list[Figure]:
    """Measure projectors with growing histories, one turn at a time."""
    short, long = lengths
    turns = 2 + 3 * effort.rounds
    feeds = {
        name: (Projector(model), _growing(length, turns))
        for name, length in (("short", short), ("again", short), ("long", long))
    }
    best = dict.fromkeys(feeds, float("inf"))
    for turn in range(turns):
        for name, (keeper, contexts) in feeds.items():
            spent = time_calls(lambda keeper=keeper, context=contexts[turn]: keeper.project(context))
            if turn > 1:  # the first call is cold, and the second may still settle things
                best[name] = min(best[name], spent)
    old = long - short
    slope, noise = (best["long"] - best["short"]) / old, abs(best["again"] - best["short"]) / old
    return [
        Figure(f"projection.{place}.warm", f"warm Projector {place}, every old message", "ns", slope),
        Figure("", f"warm turn {place} after {short:,} messages", "us", best["short"] / 1e3),
        Figure("", f"warm turn {place} after {long:,} messages", "us", best["long"] / 1e3),
        Figure(
            "", f"warm Projector {place} against itself", "ns", noise, note="the same code twice: measurement error"
        ),
    ]


def _growing(length: int, turns: int) -> list[Context]:
    contexts = [make_transcript(length)]
    for turn in range(1, turns):
        contexts.append(contexts[-1].add(*make_turn(OWN_MODEL, seed=1_000_000 + turn)))
    return contexts
