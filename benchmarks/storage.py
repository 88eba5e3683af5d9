"""The time to load and dump a stored history, compared with orjson on the same bytes.

orjson makes dicts and checks nothing; `load` makes frozen values and checks every field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import orjson
from figures import Figure
from measure import Comparison, Effort, compare
from transcripts import make_transcript

from segue import Context, dump, load

_FLOOR: Final = "the floor: without our checks"


def measure_stored(effort: Effort, lengths: Sequence[int]) -> list[Figure]:
    """Measure both directions at the first length, also with images, and the growth to the last length."""
    short, long = lengths[0], lengths[-1]
    reading, writing = _compare_directions(effort, short, images=False)
    figures = [
        Figure("stored.load", f"load {short:,} messages / orjson.loads", "times", *_ratio(reading, "load")),
        Figure("stored.dump", f"dump {short:,} messages / orjson.dumps", "times", *_ratio(writing, "dump")),
        Figure("stored.load.message", "load, a message", "us", reading.best("load") / short / 1e3),
        Figure("stored.dump.message", "dump, a message", "us", writing.best("dump") / short / 1e3),
        Figure(
            "", "msgspec alone into the same types / orjson.loads", "times", *_ratio(reading, "msgspec"), note=_FLOOR
        ),
        Figure(
            "", "msgspec alone from the same types / orjson.dumps", "times", *_ratio(writing, "msgspec"), note=_FLOOR
        ),
        _control("stored.load.control", "orjson.loads / itself", reading),
        _control("stored.dump.control", "orjson.dumps / itself", writing),
    ]
    shown, drawn = _compare_directions(effort, short, images=True)
    figures += [
        Figure("stored.load.images", "load with images / orjson.loads", "times", *_ratio(shown, "load")),
        Figure("stored.dump.images", "dump with images / orjson.dumps", "times", *_ratio(drawn, "dump")),
    ]
    reading_long, writing_long = _compare_directions(effort, long, images=False)
    for name, before, after in (("load", reading, reading_long), ("dump", writing, writing_long)):
        growth = [(after.best(which) / long) / (before.best(which) / short) for which in (name, before.yardstick)]
        what = f"{name}, a message of {long:,} / of {short:,}"
        figures.append(Figure(f"stored.{name}.linear", what, "times", growth[0]))
        figures.append(Figure("", f"{before.yardstick}, the same", "times", growth[1], note="for comparison"))
    return figures


def _compare_directions(effort: Effort, length: int, *, images: bool) -> tuple[Comparison, Comparison]:
    context = make_transcript(length, images=images)
    data = dump(context)
    plain: object = orjson.loads(data)
    if load(data) != context:
        raise AssertionError("what was stored is not what is loaded: the figures would mean nothing")
    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Context).decode
    unnamed = encode(context)  # the same document but for the name of its format
    reading = compare(
        "orjson.loads",
        {"load": lambda: load(data), "orjson.loads": lambda: orjson.loads(data), "msgspec": lambda: decode(unnamed)},
        effort,
    )
    writing = compare(
        "orjson.dumps",
        {
            "dump": lambda: dump(context),
            "orjson.dumps": lambda: orjson.dumps(plain),
            "msgspec": lambda: encode(context),
        },
        effort,
    )
    return reading, writing


def _ratio(comparison: Comparison, name: str) -> tuple[float, str]:
    ratio = comparison.ratio(name)
    return ratio.best, ratio.spread()


def _control(key: str, what: str, comparison: Comparison) -> Figure:
    ratio = comparison.control()
    return Figure(key, what, "times", ratio.best, ratio.spread(), note="the same code twice: measurement error")
