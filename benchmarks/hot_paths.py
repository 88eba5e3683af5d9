"""A regression check: no function that applications wait for may become 50 % slower unnoticed.

Every path is compared with orjson on the same data, in one process and in turn, in CPU time: the ratio of the best of
many calls is nearly the same on a busy and on an idle machine. The recorded ratios are in `hot_paths.json`. A path that
is 50 % slower is measured twice more, and the best result counts, so that a short load spike raises no alarm.

    python scripts/check_speed.py             fails if a path became 50 % slower
    python scripts/check_speed.py --record    records the current ratios, after a deliberate change
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
from cases import CASES, SAME_MODEL_CASES, PreparedCase, prepare_case
from measure import settled, time_calls
from msgspec.structs import replace
from stream_costs import read_stream
from streamed import mixed_stream
from transcripts import as_plain, make_transcript, make_turn
from windows import count_all

from segue import Model, Projector, dump, load, project
from segue.counting.counter import TokenCounter
from segue.outbox import Outbox
from segue.protocols.api import decode_request
from segue.request import prepare

TABLE: Final = Path(__file__).with_name("hot_paths.json")
TOLERATED: Final = 1.5
"""A path fails if its ratio is this many times the recorded one."""
_LENGTH: Final = 200
_ROUNDS: Final = 25
_TRIES: Final = 3
_RECORDINGS: Final = 5

Call = Callable[[], object]
Timer = Callable[[Call], float]


@dataclass(frozen=True)
class HotPath:
    """The timed function, and orjson's on the same data. `begin` makes a function that is called once."""

    name: str
    begin: Callable[[], Call]
    yardstick: Call


def make_paths(length: int = _LENGTH) -> Iterator[HotPath]:
    """List the functions that applications wait for."""
    context = make_transcript(length)
    data, plain = dump(context), as_plain(context)
    yield HotPath("load", lambda: lambda: load(data), lambda: orjson.loads(data))
    yield HotPath("dump", lambda: lambda: dump(context), lambda: orjson.dumps(plain))
    for case in CASES:
        prepared = prepare_case(case, length)
        yield _preparing(prepared)
        if case in SAME_MODEL_CASES:
            yield _body_of(prepared)
            yield _reading(prepared)
            yield _one_more_turn(prepared)
    yield _counting(prepare_case(SAME_MODEL_CASES[0], length))
    yield _fitting(prepare_case(SAME_MODEL_CASES[0], length))
    yield _one_more_turn_cut(prepare_case(SAME_MODEL_CASES[0], length))
    for case in SAME_MODEL_CASES:
        yield _streaming(case.wire, case.writer)


def _preparing(prepared: PreparedCase) -> HotPath:
    """What the client encodes to bytes: it only reads the dicts, so it does not copy them."""
    context, target, body = prepared.context, prepared.case.target, prepared.body
    return HotPath(
        f"prepare {prepared.case.name}",
        lambda: lambda: prepare(context, target)._encoded,  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        lambda: orjson.dumps(body),
    )


def _body_of(prepared: PreparedCase) -> HotPath:
    """The body for a provider's own client: a copy, which the caller may change."""
    context, target, body = prepared.context, prepared.case.target, prepared.body
    return HotPath(
        f"body {prepared.case.wire}",
        lambda: lambda: prepare(context, target).body,
        lambda: orjson.dumps(body),
    )


def _reading(prepared: PreparedCase) -> HotPath:
    protocol, target = prepared.case.wire, prepared.case.target
    data = orjson.dumps(prepared.body)
    body: dict[str, object] = orjson.loads(data)
    return HotPath(
        f"decode_request {protocol}",
        lambda: lambda: decode_request(body, protocol=protocol, model=target),
        lambda: orjson.loads(data),
    )


def _one_more_turn(prepared: PreparedCase) -> HotPath:
    target, body = prepared.case.target, prepared.body
    before = prepared.context.add(*make_turn(prepared.case.writer, seed=1_000_000))
    now = before.add(*make_turn(prepared.case.writer, seed=1_000_001))

    def begin() -> Call:
        outbox = Outbox(target)
        for context in (prepared.context, before):
            _ = outbox.prepare(context).content
        return lambda: outbox.prepare(now).content

    return HotPath(f"outbox {prepared.case.wire}", begin, lambda: orjson.dumps(body))


def _counting(prepared: PreparedCase) -> HotPath:
    context, body = prepared.context, prepared.body
    counter = TokenCounter(prepared.case.target)
    return HotPath("count tokens", lambda: lambda: count_all(context, counter), lambda: orjson.dumps(body))


def _small(prepared: PreparedCase) -> Model:
    """Give the target with a window that holds a third of the history."""
    tokens = count_all(prepared.context, TokenCounter(prepared.case.target))
    return replace(prepared.case.target, context_window=max(2000, round(tokens / 3)), max_input=0)


def _fitting(prepared: PreparedCase) -> HotPath:
    context, model, body = prepared.context, _small(prepared), prepared.body
    return HotPath("project in a small window", lambda: lambda: project(context, model), lambda: orjson.dumps(body))


def _one_more_turn_cut(prepared: PreparedCase) -> HotPath:
    model, body, writer = _small(prepared), prepared.body, prepared.case.writer
    before = prepared.context.add(*make_turn(writer, seed=1_000_000))
    now = before.add(*make_turn(writer, seed=1_000_001))

    def begin() -> Call:
        projector = Projector(model)
        for context in (prepared.context, before):
            projector.project(context)
        return lambda: projector.project(now)

    return HotPath("warm turn in a small window", begin, lambda: orjson.dumps(body))


def _streaming(protocol: str, model: Model) -> HotPath:
    stream = mixed_stream(model, steps=3)
    pieces, payloads = stream.pieces, stream.payloads
    return HotPath(
        f"stream {protocol}",
        lambda: lambda: read_stream(pieces, model),
        lambda: [orjson.loads(payload) for payload in payloads],
    )


def measure_paths(paths: Sequence[HotPath], rounds: int = _ROUNDS, timer: Timer = time_calls) -> dict[str, float]:
    """Return the best of many calls of every path, as a multiple of the best of its reference.

    Every round measures all paths, so that each is also measured while the machine is idle.
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
    """Return the ratios of the paths that are 50 % slower than recorded in every attempt."""
    suspects = list(paths)
    best = {path.name: float("inf") for path in suspects}
    for _ in range(tries):
        for name, ratio in measure(suspects).items():
            best[name] = min(best[name], ratio)
        suspects = [path for path in suspects if best[path.name] > recorded[path.name] * TOLERATED]
    return {path.name: best[path.name] for path in suspects}


def read_table(path: Path = TABLE) -> dict[str, float]:
    """Read the recorded ratios."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, float])


def main(arguments: Sequence[str] | None = None) -> None:
    """Check every path, or record the current ratios."""
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
    """Write the median of several measurements of every path."""
    taken = [measure_paths(paths) for _ in range(_RECORDINGS)]
    middle = {it.name: round(sorted(ratios[it.name] for ratios in taken)[_RECORDINGS // 2], 2) for it in paths}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(middle), indent=2) + b"\n")


if __name__ == "__main__":
    main()
