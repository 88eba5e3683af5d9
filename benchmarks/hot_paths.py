"""The guard: what an application waits for may not get slower by half and nobody notice.

Every path is held against orjson on the same data, in one process and in turn, in CPU time: the ratio of the best of
many calls is nearly the same on a busy machine and on an idle one. What it was when somebody looked at it stands in
`hot_paths.json`. A path that needs half as much again is measured anew, twice, and the best counts. So a busy moment is
no alarm, and a path that really got slower is one every time.

    python scripts/check_speed.py             fails where a path got slower by half
    python scripts/check_speed.py --record    writes the ratios of now, for a change that is worth its price
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import orjson
from measure import settled, time_calls
from passages import HOMES, PASSAGES, Journey, make_journey
from stream_costs import read_stream
from streamed import mixed_stream
from transcripts import as_plain, make_transcript, make_turn

from segue import Model, dump, load
from segue.outbox import Outbox
from segue.protocols.api import decode_request
from segue.request import prepare

TABLE: Final = Path(__file__).with_name("hot_paths.json")
TOLERATED: Final = 1.5
"""A path fails that needs so many times what is recorded."""
_LENGTH: Final = 200
_ROUNDS: Final = 25
_TRIES: Final = 3
_RECORDINGS: Final = 5

Call = Callable[[], object]
Timer = Callable[[Call], float]


@dataclass(frozen=True)
class HotPath:
    """What is timed, and what orjson does with the same data. `begin` makes a call ready that is good for once."""

    name: str
    begin: Callable[[], Call]
    yardstick: Call


def make_paths(length: int = _LENGTH) -> Iterator[HotPath]:
    """List everything that an application waits for."""
    context = make_transcript(length)
    data, plain = dump(context), as_plain(context)
    yield HotPath("load", lambda: lambda: load(data), lambda: orjson.loads(data))
    yield HotPath("dump", lambda: lambda: dump(context), lambda: orjson.dumps(plain))
    for passage in PASSAGES:
        journey = make_journey(passage, length)
        yield _preparing(journey)
        if passage in HOMES:
            yield _reading(journey)
            yield _one_more_turn(journey)
    for passage in HOMES:
        yield _streaming(passage.wire, passage.writer)


def _preparing(journey: Journey) -> HotPath:
    context, target, body = journey.context, journey.passage.target, journey.body
    return HotPath(
        f"prepare {journey.passage.name}",
        lambda: lambda: prepare(context, target).body,
        lambda: orjson.dumps(body),
    )


def _reading(journey: Journey) -> HotPath:
    protocol, target = journey.passage.wire, journey.passage.target
    data = orjson.dumps(journey.body)
    body: dict[str, object] = orjson.loads(data)
    return HotPath(
        f"decode_request {protocol}",
        lambda: lambda: decode_request(body, protocol=protocol, model=target),
        lambda: orjson.loads(data),
    )


def _one_more_turn(journey: Journey) -> HotPath:
    target, body = journey.passage.target, journey.body
    before = journey.context.add(*make_turn(journey.passage.writer, seed=1_000_000))
    now = before.add(*make_turn(journey.passage.writer, seed=1_000_001))

    def begin() -> Call:
        outbox = Outbox(target)
        for context in (journey.context, before):
            _ = outbox.prepare(context).content
        return lambda: outbox.prepare(now).content

    return HotPath(f"outbox {journey.passage.wire}", begin, lambda: orjson.dumps(body))


def _streaming(protocol: str, model: Model) -> HotPath:
    stream = mixed_stream(model, steps=3)
    pieces, payloads = stream.pieces, stream.payloads
    return HotPath(
        f"stream {protocol}",
        lambda: lambda: read_stream(pieces, model),
        lambda: [orjson.loads(payload) for payload in payloads],
    )


def measure_paths(paths: Sequence[HotPath], rounds: int = _ROUNDS, timer: Timer = time_calls) -> dict[str, float]:
    """Give the best of many calls of every path, in units of the best of its yardstick.

    All paths have their turn in every round, so that each of them sees the quiet moments of the machine.
    """
    spent = {path.name: float("inf") for path in paths}
    floor = dict(spent)
    with settled():
        for _ in range(rounds):
            for path in paths:
                for _ in range(2):  # the second finds its data in the processor's caches
                    floor[path.name] = min(floor[path.name], timer(path.yardstick))
                    spent[path.name] = min(spent[path.name], timer(path.begin()))
    return {name: spent[name] / floor[name] for name in spent}


def find_slow(
    paths: Iterable[HotPath],
    recorded: Mapping[str, float],
    measure: Callable[[Sequence[HotPath]], Mapping[str, float]] = measure_paths,
    tries: int = _TRIES,
) -> dict[str, float]:
    """Give the ratios of those paths that need half as much again as was recorded, in every try."""
    suspects = list(paths)
    best = {path.name: float("inf") for path in suspects}
    for _ in range(tries):
        for name, ratio in measure(suspects).items():
            best[name] = min(best[name], ratio)
        suspects = [path for path in suspects if best[path.name] > recorded[path.name] * TOLERATED]
    return {path.name: best[path.name] for path in suspects}


def read_table(path: Path = TABLE) -> dict[str, float]:
    """Read what was recorded."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, float])


def main(arguments: Sequence[str] | None = None) -> None:
    """Check every path, or record what they cost now."""
    parser = argparse.ArgumentParser(description="See that no hot path got slower by half.")
    parser.add_argument("--record", action="store_true", help="write down what the paths cost now")
    paths = list(make_paths())
    if parser.parse_args(arguments).record:
        record(paths)
        return
    recorded = read_table()
    slow = find_slow(paths, recorded)
    for name, ratio in slow.items():
        print(f"{name}: {ratio:.2f} x orjson, and it was {recorded[name]:.2f} x", file=sys.stderr)
    if slow:
        raise SystemExit(f"{len(slow)} of {len(paths)} hot paths got slower by half; is it worth it? then --record")
    print(f"{len(paths)} hot paths are as fast as they were")


def record(paths: Sequence[HotPath], path: Path = TABLE) -> None:
    """Write the middle of several measurements of every path."""
    taken = [measure_paths(paths) for _ in range(_RECORDINGS)]
    middle = {it.name: round(sorted(ratios[it.name] for ratios in taken)[_RECORDINGS // 2], 2) for it in paths}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(middle), indent=2) + b"\n")


if __name__ == "__main__":
    main()
