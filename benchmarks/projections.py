"""What it costs to make a history ready for a target, beside serialising that history once with orjson.

At home the target wrote the history itself and nothing changes; abroad every assistant turn is a foreign one. A warm
`Projector` has seen all but the last turn: what it costs for every message it knows already is the slope between a
short and a long history, so that the work for what is new cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

import orjson
from figures import Figure
from measure import Comparison, Effort, compare, time_calls
from transcripts import ABROAD, HOME, as_plain, make_transcript, make_turn

from segue import Context, Model

_TARGETS = (("home", HOME), ("abroad", ABROAD))


class _Projector(Protocol):
    def project(self, context: Context) -> object: ...


def measure_projection(effort: Effort, lengths: Sequence[int]) -> list[Figure]:
    """Measure `project` and a warm `Projector`; a part that does not exist yet is a row that says so."""
    short, long = lengths[0], lengths[-1]
    figures: list[Figure] = []
    project = _find("project")
    for place, model in _TARGETS:
        what = f"project {short:,} messages {place} / orjson.dumps"
        if project is None:
            figures += _not_yet(
                "project", (f"projection.{place}", what), (f"projection.{place}.linear", f"growth {place}")
            )
            continue
        before, after = (_compare_project(project, model, length, effort) for length in (short, long))
        ratio, control = before.ratio("project"), before.control()
        growth = (after.best("project") / long) / (before.best("project") / short)
        figures += [
            Figure(f"projection.{place}", what, "times", ratio.best, ratio.spread()),
            Figure("", f"project {place}, a message", "us", before.best("project") / short / 1e3),
            Figure(
                "",
                f"orjson.dumps / itself, {place}",
                "times",
                control.best,
                control.spread(),
                note="the same thing twice",
            ),
            Figure(
                f"projection.{place}.linear", f"project {place}, a message of {long:,} / of {short:,}", "times", growth
            ),
        ]
    projector = _find("Projector")
    for place, model in _TARGETS:
        if projector is None:
            figures += _not_yet("Projector", (f"projection.{place}.warm", f"warm Projector {place}, every old message"))
            continue
        figures += _measure_warm(projector, place, model, (short, long), effort)
    return figures


def _find(name: str) -> Callable[..., object] | None:
    """Look up a public name that a later version may bring."""
    face = import_module("segue")
    return getattr(face, name) if name in face.__all__ else None


def _not_yet(name: str, *rows: tuple[str, str]) -> list[Figure]:
    note = f"not measured: segue has no `{name}` yet"
    unit = "ns" if name == "Projector" else "times"
    return [Figure(key, what, unit, None, note=note) for key, what in rows]


def _compare_project(project: Callable[..., object], model: Model, length: int, effort: Effort) -> Comparison:
    context = make_transcript(length)
    plain = as_plain(context)
    subjects = {"project": lambda: project(context, model), "orjson.dumps": lambda: orjson.dumps(plain)}
    return compare("orjson.dumps", subjects, effort)


def _measure_warm(
    projector: Callable[..., object], place: str, model: Model, lengths: tuple[int, int], effort: Effort
) -> list[Figure]:
    """Feed growing histories, turn by turn and one after the other, to projectors that keep what they know."""
    short, long = lengths
    turns = 2 + 3 * effort.rounds
    feeds = {
        name: _feed(projector, model, length, turns)
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
        Figure("", f"warm Projector {place} against itself", "ns", noise, note="the same thing twice"),
    ]


def _feed(projector: Callable[..., object], model: Model, length: int, turns: int) -> tuple[_Projector, list[Context]]:
    context = make_transcript(length)
    contexts = [context]
    for turn in range(1, turns):
        contexts.append(contexts[-1].add(*make_turn(HOME, seed=1_000_000 + turn)))
    keeper = projector(model)
    return keeper, contexts  # pyright: ignore[reportReturnType]  # the shape is the design's
