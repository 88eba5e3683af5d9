"""The time to make the bytes of one more request when all earlier messages were already sent.

An agent makes a step: one assistant message and three results. `Outbox` has encoded the rest. It is compared with one
copy of the same body, the least that sending needs, and with pydantic-ai, which each time encodes the whole history and
serializes it, as the provider's client does (`json.dumps`) or with the fastest library (orjson).

Every round begins with a new outbox, so that the history keeps its length. The first two turns of a round are not
counted, and the best of the others is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import orjson
from cases import CASES, PreparedCase, prepare_case
from figures import Figure, Mark
from measure import CONTROL, Comparison, Effort, settled, time_calls
from peer_processes import PeerProcess, start_peer
from peer_support import ANTHROPIC, CHAT, RESPONSES, make_task
from peers import Environment
from transcripts import make_turn

from segue import Context, Outbox, prepare

_NOT_COUNTED: Final = 2
_COUNTED: Final = 4
_CLIENTS_DUMP: Final = frozenset({ANTHROPIC, CHAT, RESPONSES})
"""Protocols whose clients serialize dicts; pydantic-ai's results for the others have no such step."""
_DUMPS: Final = ("json", "orjson")


def measure_warm(effort: Effort, lengths: Sequence[int], environment: Environment) -> list[Figure]:
    """Measure a warm turn of every case at every length; same-model cases with the peer."""
    figures: list[Figure] = []
    rounds = Effort(max(3, effort.rounds // 2), effort.sample_ns)
    for case in CASES:
        for length in lengths:
            figures += _measure(prepare_case(case, length), length, rounds, environment)
    return figures


def _measure(prepared: PreparedCase, length: int, effort: Effort, environment: Environment) -> Iterator[Figure]:
    is_held = prepared.case.place == "same-model" and prepared.case.wire in _CLIENTS_DUMP
    name = environment.peer.name
    tasks = [make_task(name, prepared, name=dumps, dumps=dumps) for dumps in _DUMPS] if is_held else []
    with start_peer(environment, tasks, effort.sample_ns) as peer:
        compared = _compare(prepared, effort, peer)
    wire, place = prepared.case.wire, prepared.case.place
    label = f"{wire}: warm turn {place} after {length:,} messages"
    ratio, control = compared.ratio("warm"), compared.control()
    mark = Mark("warm", f"{wire}, {length:,} messages", "segue", compared.best("warm") / 1e6) if is_held else None
    yield Figure("warm.copy", f"{label} / one copy of the body", "times", ratio.best, ratio.spread(), mark=mark)
    yield Figure("", f"{label}", "us", compared.best("warm") / 1e3)
    if is_held:
        floor = Mark("warm", f"{wire}, {length:,} messages", "one copy of the body", compared.best("copy") / 1e6)
        yield Figure("", f"{wire}: one copy of {length:,} messages", "us", compared.best("copy") / 1e3, mark=floor)
    yield Figure(
        "",
        f"{wire} {place}, {length:,}: copy / itself",
        "times",
        control.best,
        control.spread(),
        "the same thing twice",
    )
    for task in tasks:
        yield _held_against(f"{label} / {name}, map + {task.name}.dumps", task.dumps, peer, compared, mark)


def _held_against(what: str, dumps: str, peer: PeerProcess, compared: Comparison, mark: Mark | None) -> Figure:
    key = "warm.pydantic-ai" if dumps == "json" else ""
    if reason := peer.reasons[dumps]:
        return Figure(key, what, "part", None, note=f"not measured: {reason}")
    there = f"{dumps}: yardstick"
    ratio = Comparison("orjson.dumps", compared.samples).against("warm", dumps)
    needed = compared.ratio(dumps, there).best * compared.best("orjson.dumps") / 1e6
    note = f"it needs {needed:.1f} ms" + (": what its client does" if key else "")
    plotted = None if mark is None else Mark(mark.plot, mark.row, f"pydantic-ai + {dumps}", needed)
    return Figure(key, what, "part", ratio.best, ratio.spread_as_part(), note, plotted)


def _compare(prepared: PreparedCase, effort: Effort, peer: PeerProcess) -> Comparison:
    contexts = [prepared.context]
    for turn in range(_NOT_COUNTED + _COUNTED - 1):
        contexts.append(contexts[-1].add(*make_turn(prepared.case.writer, seed=1_000_000 + turn)))
    body, target = prepared.body, prepared.case.target
    sent = _send(prepared, contexts)
    samples: dict[str, list[float]] = {"warm": [], "copy": [], CONTROL: [], "orjson.dumps": []}
    with settled():
        for _ in range(effort.rounds):
            outbox = Outbox(target)
            best = dict.fromkeys(("warm", "copy", CONTROL), float("inf"))
            for turn, context in enumerate(contexts):
                spent = time_calls(lambda outbox=outbox, context=context: outbox.prepare(context).content)
                if turn < _NOT_COUNTED:
                    continue
                best["warm"] = min(best["warm"], spent)
                for name in ("copy", CONTROL) if turn % 2 else (CONTROL, "copy"):
                    spent = time_calls(lambda content=sent[name][turn]: bytes(content))
                    best[name] = min(best[name], spent)
            for name, spent in best.items():
                samples[name].append(spent)
            samples["orjson.dumps"].append(time_calls(lambda: orjson.dumps(body)))
            for dumps, reason in peer.reasons.items():
                if not reason:
                    sample = peer.sampler(dumps)()
                    samples.setdefault(dumps, []).append(sample[peer.name])
                    samples.setdefault(f"{dumps}: yardstick", []).append(sample[f"{peer.name}: yardstick"])
    return Comparison("copy", {name: tuple(taken) for name, taken in samples.items()})


def _send(prepared: PreparedCase, contexts: Sequence[Context]) -> dict[str, list[memoryview]]:
    """Return two copies of the body of each turn; check that a warm outbox gives the same bytes as a full encoding.

    Two copies, because bytes that were just copied are in the processor's cache and the kept bytes of an outbox are
    not: the measurement and its control each read their own memory once a turn.
    """
    target = prepared.case.target
    outbox = Outbox(target)
    bodies = [outbox.prepare(context).content for context in contexts]
    if bodies[-1] != prepare(contexts[-1], target).content:
        raise AssertionError(f"{prepared.case.name}: the outbox gave other bytes, so its figures would be wrong")
    again = [bytes(memoryview(body)) for body in bodies]
    return {"copy": [memoryview(body) for body in bodies], CONTROL: [memoryview(body) for body in again]}
