"""What one more turn costs, down to the bytes of the body, when all that came before it was sent already.

An agent takes a step: one message of the assistant's and three results. `Outbox` has seen the rest. It is held against
one copy of the same body, which is what sending it costs at least, and against what pydantic-ai does each turn: map the
whole history and serialise it, as the provider's client would (`json.dumps`) and with the fastest there is (orjson).

Every round begins with a new outbox, so that the history does not outgrow its name; of the turns that it is shown, the
first two are not counted, and the best of the others is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import orjson
from figures import Figure, Mark
from measure import CONTROL, Comparison, Effort, settled, time_calls
from passages import PASSAGES, Journey, make_journey
from peer_processes import PeerProcess, start_peer
from peers import Environment
from rivals import ANTHROPIC, CHAT, RESPONSES, make_task
from transcripts import make_turn

from segue import Context
from segue.outbox import Outbox
from segue.request import prepare

_NOT_COUNTED: Final = 2
_COUNTED: Final = 4
_CLIENTS_DUMP: Final = frozenset({ANTHROPIC, CHAT, RESPONSES})
"""Wires whose clients serialise plain values: what pydantic-ai makes for the others has no such step."""
_DUMPS: Final = ("json", "orjson")


def measure_warm(effort: Effort, lengths: Sequence[int], environment: Environment) -> list[Figure]:
    """Measure a warm turn on every passage at every length; at home beside the peer."""
    figures: list[Figure] = []
    rounds = Effort(max(3, effort.rounds // 2), effort.sample_ns)
    for passage in PASSAGES:
        for length in lengths:
            figures += _measure(make_journey(passage, length), length, rounds, environment)
    return figures


def _measure(journey: Journey, length: int, effort: Effort, environment: Environment) -> Iterator[Figure]:
    is_held = journey.passage.place == "home" and journey.passage.wire in _CLIENTS_DUMP
    name = environment.peer.name
    tasks = [make_task(name, journey, name=dumps, dumps=dumps) for dumps in _DUMPS] if is_held else []
    with start_peer(environment, tasks, effort.sample_ns) as peer:
        compared = _compare(journey, effort, peer)
    wire, place = journey.passage.wire, journey.passage.place
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


def _compare(journey: Journey, effort: Effort, peer: PeerProcess) -> Comparison:
    contexts = [journey.context]
    for turn in range(_NOT_COUNTED + _COUNTED - 1):
        contexts.append(contexts[-1].add(*make_turn(journey.passage.writer, seed=1_000_000 + turn)))
    body, target = journey.body, journey.passage.target
    sent = _send(journey, contexts)
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
                    said = peer.sampler(dumps)()
                    samples.setdefault(dumps, []).append(said[peer.name])
                    samples.setdefault(f"{dumps}: yardstick", []).append(said[f"{peer.name}: yardstick"])
    return Comparison("copy", {name: tuple(taken) for name, taken in samples.items()})


def _send(journey: Journey, contexts: Sequence[Context]) -> dict[str, list[memoryview]]:
    """Give the bodies of all turns, each twice; see that a warm outbox writes what is written from the whole.

    They are twice there because what was copied a moment ago lies in the caches of the processor, where the kept bytes
    of an outbox do not lie: the thing and its control read memory of their own, once a turn.
    """
    target = journey.passage.target
    outbox = Outbox(target)
    bodies = [outbox.prepare(context).content for context in contexts]
    if bodies[-1] != prepare(contexts[-1], target).content:
        raise AssertionError(f"{journey.passage.name}: the outbox wrote something else: the figures would mean nothing")
    again = [bytes(memoryview(body)) for body in bodies]
    return {"copy": [memoryview(body) for body in bodies], CONTROL: [memoryview(body) for body in again]}
