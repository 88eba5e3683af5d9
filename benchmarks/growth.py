"""The time for each message as the history grows from ten messages to ten thousand.

It is constant if nothing is quadratic. The fixed part of a request (tools, options) shows in short histories, cache
misses of the processor in long ones. Peers are measured with one protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import orjson
from cases import SAME_MODEL_CASES, PreparedCase, prepare_case
from figures import Figure, Mark
from measure import Comparison, Effort, compare
from peer_processes import PeerProcess, start_peer
from peer_support import ANTHROPIC, make_task
from peers import Environment

from segue import prepare

_LONGEST: Final[Mapping[str, int]] = {"langchain": 1_000}
"""Peers are not measured above this length, where one call takes seconds."""


def measure_growth(effort: Effort, lengths: Sequence[int], environments: Sequence[Environment]) -> list[Figure]:
    """Measure every same-model case at every length; one of them with the peers."""
    figures: list[Figure] = []
    few = Effort(max(3, effort.rounds // 2), effort.sample_ns)
    for case in SAME_MODEL_CASES:
        prepared_cases = {length: prepare_case(case, length) for length in lengths}
        with ExitStack() as stack:
            peers: list[PeerProcess] = []
            if case.wire == ANTHROPIC:
                peers = [_start(stack, it, prepared_cases, few) for it in environments]
            compared = {length: _compare(prepared, length, few, peers) for length, prepared in prepared_cases.items()}
        figures += _figures(case.wire, compared, peers)
    return figures


def _start(
    stack: ExitStack, environment: Environment, prepared_cases: Mapping[int, PreparedCase], effort: Effort
) -> PeerProcess:
    name = environment.peer.name
    tasks = [
        make_task(name, prepared, name=str(length))
        for length, prepared in prepared_cases.items()
        if length <= _LONGEST.get(name, length)
    ]
    return stack.enter_context(start_peer(environment, tasks, effort.sample_ns))


def _compare(prepared: PreparedCase, length: int, effort: Effort, peers: Sequence[PeerProcess]) -> Comparison:
    context, target, body = prepared.context, prepared.case.target, prepared.body
    subjects = {"prepare": lambda: prepare(context, target).body, "orjson.dumps": lambda: orjson.dumps(body)}
    asked = str(length)
    able = [peer for peer in peers if not peer.reasons.get(asked, "not measured")]
    return compare("orjson.dumps", subjects, effort, [peer.sampler(asked) for peer in able])


def _figures(wire: str, compared: Mapping[int, Comparison], peers: Sequence[PeerProcess]) -> Iterator[Figure]:
    *_, middle, long = compared
    each = {length: it.best("prepare") / length / 1e3 for length, it in compared.items()}
    for length, it in compared.items():
        ratio = it.ratio("prepare")
        mark = Mark("growth", str(length), "segue", each[length]) if wire == ANTHROPIC else None
        note = f"{ratio.best:.2f} x orjson.dumps ({ratio.spread()})"
        yield Figure(
            "", f"{wire}: prepare same-model, a message of {length:,}", "us", each[length], note=note, mark=mark
        )
    growth = each[long] / each[middle]
    yield Figure("growth.prepare", f"{wire}: a message of {long:,} / of {middle:,}", "times", growth)
    floor = (compared[long].best("orjson.dumps") / long) / (compared[middle].best("orjson.dumps") / middle)
    yield Figure("", f"{wire}: orjson.dumps, the same", "times", floor, note="for comparison")
    for peer in peers:
        yield from _figures_of(peer, wire, compared)


def _figures_of(peer: PeerProcess, wire: str, compared: Mapping[int, Comparison]) -> Iterator[Figure]:
    for length, it in compared.items():
        reason = peer.reasons.get(str(length), "it would take too long")
        what = f"{wire}: {peer.name} same-model, a message of {length:,}"
        if reason:
            yield Figure("", what, "us", None, note=f"not measured: {reason}")
            continue
        # In microseconds of this process: multiples of the yardstick over there, times what it costs here.
        ratio = it.ratio(peer.name, f"{peer.name}: yardstick")
        each = ratio.best * it.best("orjson.dumps") / length / 1e3
        note = f"{ratio.best:.2f} x orjson.dumps ({ratio.spread()})"
        yield Figure("", what, "us", each, note=note, mark=Mark("growth", str(length), peer.name, each))
