"""The time to pass a stream on: decoded, shown to a client and encoded, compared with orjson on the same JSON.

The bytes arrive one event at a time. orjson reads the payloads, already split, and writes the frames, already made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import orjson
from cases import SAME_MODEL_CASES
from figures import Figure
from measure import Effort, compare
from stream_costs import encoded_frames, relay_stream
from streamed import argument_stream, mixed_stream

from segue import Model

_CLIENTS: Final = ("anthropic-messages", "openai-chat")
"""What most agents read."""
_WHOLE_CALLS: Final = frozenset({"google-genai"})
"""Protocols that do not stream arguments."""


def measure_relays(effort: Effort, sizes: tuple[int, int]) -> list[Figure]:
    """Measure a mixed stream to a client of the same protocol and of two others, and long arguments."""
    figures: list[Figure] = []
    for case in SAME_MODEL_CASES:
        for protocol in dict.fromkeys((case.wire, *_CLIENTS)):
            figures += _measure_pair(case.writer, protocol, effort)
        if case.wire not in _WHOLE_CALLS:
            figures += _measure_growth(case.writer, effort, sizes)
    return figures


def _measure_pair(model: Model, protocol: str, effort: Effort) -> Iterator[Figure]:
    stream = mixed_stream(model)
    payloads, frames = stream.payloads, encoded_frames(stream.pieces, model, protocol)
    subjects: dict[str, Callable[[], object]] = {
        "orjson": lambda: _read_and_write(payloads, frames),
        "relay": lambda: relay_stream(stream.pieces, model, protocol),
    }
    compared = compare("orjson", subjects, effort)
    ratio = compared.ratio("relay", "orjson")
    is_same = model.protocol == protocol
    what = f"{model.protocol} to {protocol}"
    key = "relays.same" if is_same else "relays.other"
    yield Figure(key, f"{what}: mixed / orjson.loads and dumps", "times", ratio.best, ratio.spread())
    each = compared.best("relay") / max(len(payloads), len(frames))
    yield Figure("relays.event" if is_same else "", f"{what}: mixed, an event", "us", each / 1e3)


def _measure_growth(model: Model, effort: Effort, sizes: tuple[int, int]) -> Iterator[Figure]:
    short, long = (argument_stream(model, size) for size in sizes)
    subjects: dict[str, Callable[[], object]] = {
        "short": lambda: relay_stream(short.pieces, model, model.protocol),
        "long": lambda: relay_stream(long.pieces, model, model.protocol),
    }
    compared = compare("short", subjects, effort)
    each = [compared.best(name) / len(stream.payloads) for name, stream in (("long", long), ("short", short))]
    names = [f"{size // 1000} KB" for size in sizes]
    what = f"{model.protocol}: an event of an argument of {names[1]} / of {names[0]}"
    yield Figure("relays.growth", what, "times", each[0] / each[1])


def _read_and_write(payloads: Sequence[bytes], frames: Sequence[object]) -> None:
    loads, dumps = orjson.loads, orjson.dumps
    for payload in payloads:
        loads(payload)
    for frame in frames:
        dumps(frame)
