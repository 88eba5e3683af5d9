"""What it costs to make a request of a stored history, and to read one: beside orjson, and beside other libraries.

At home the target wrote the history itself, and everything it sealed goes back to it; abroad another model did. What is
timed is all of `prepare(context, model).body`: projection with its report, options and tools, then the codec, down to
plain values. The yardstick is `orjson.dumps` of that very body; for reading it, `orjson.loads` of its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

import orjson
from figures import Figure, Mark
from measure import Comparison, Effort, compare
from passages import PASSAGES, Journey, make_journey, without_replies
from peer_processes import PeerProcess, start_peer
from peers import Environment
from rivals import BEDROCK, GOOGLE, is_aside, less_work, make_task, make_tasks, why_not

from segue.protocols.api import decode_request
from segue.request import convert, prepare

_CHIEF: Final = ("pydantic-ai", "litellm")
"""Peers that every wire has a goal against; they are measured as often as segue is, the others now and then."""
_NEWER: Final = frozenset({GOOGLE, BEDROCK})
"""Wires with goals of their own against those."""
_READS_TOO: Final = "llm-rosetta"


def measure_requests(effort: Effort, length: int, environments: Sequence[Environment]) -> list[Figure]:
    """Measure every passage, with the peers that can make it, and reading what was made at home."""
    figures: list[Figure] = []
    journeys = [make_journey(passage, length) for passage in PASSAGES]
    few = Effort(max(3, effort.rounds // 5), effort.sample_ns)
    against = _Against()
    with ExitStack() as stack:
        peers = [
            stack.enter_context(start_peer(it, make_tasks(it.peer.name, journeys), effort.sample_ns))
            for it in environments
        ]
        chief = [peer for peer in peers if peer.name in _CHIEF]
        others = [peer for peer in peers if peer.name not in _CHIEF]
        for journey in journeys:
            # By itself first: a peer that takes its turn leaves little of what was in the processor's caches.
            figures += _measure_passage(journey, effort)
            for them, how in ((chief, effort), (others, few)):
                if them:
                    compared = _compare(journey, how, them)
                    figures += [against.figure(journey, peer, compared) for peer in them]
    figures += against.summary([peer.name for peer in peers])
    figures += _measure_conversions(journeys, few, environments)
    for journey in journeys:
        if journey.passage.place == "home":
            figures += _measure_reading(journey, effort)
    return figures


def _able(peers: Sequence[PeerProcess], journey: Journey) -> list[PeerProcess]:
    return [peer for peer in peers if not peer.reasons.get(journey.passage.name, "it was not asked")]


def _compare(journey: Journey, effort: Effort, peers: Sequence[PeerProcess]) -> Comparison:
    context, plain, target = journey.context, without_replies(journey.context), journey.passage.target
    body = journey.body
    return compare(
        "orjson.dumps",
        {
            "prepare": lambda: prepare(context, target).body,
            "prepare plain": lambda: prepare(plain, target).body,
            "orjson.dumps": lambda: orjson.dumps(body),
        },
        effort,
        [peer.sampler(journey.passage.name) for peer in _able(peers, journey)],
    )


def _measure_passage(journey: Journey, effort: Effort) -> Iterator[Figure]:
    compared = _compare(journey, effort, [])
    wire, place, name = journey.passage.wire, journey.passage.place, journey.passage.name
    ratio, bare = compared.ratio("prepare"), compared.ratio("prepare plain")
    count = len(journey.context.messages)
    each = compared.best("prepare") / 1e3 / count
    key = f"requests.{place}"
    mark = Mark("cold", name, "segue", ratio.best)
    yield Figure(
        key,
        f"{wire}: prepare {count:,} messages {place} / orjson.dumps",
        "times",
        ratio.best,
        ratio.spread(),
        mark=mark,
    )
    yield Figure(key, f"{wire}: {place}, without the replies' extra / orjson.dumps", "times", bare.best, bare.spread())
    yield Figure("", f"{wire}: prepare {place}, a message", "us", each)
    yield _control(f"{name}: orjson.dumps / itself", compared, "control", "orjson.dumps")


class _Against:
    """Segue held against peers, and what all of the comparisons come to."""

    def __init__(self) -> None:
        self.ratios: dict[str, list[float]] = {}
        self.controls: list[float] = []

    def figure(self, journey: Journey, peer: PeerProcess, compared: Comparison) -> Figure:
        """Hold one passage against what a peer needs for it."""
        passage = journey.passage
        aside = is_aside(peer.name, passage)
        key = f"requests.{peer.name}"
        if peer.name in _CHIEF and passage.wire in _NEWER:
            key += f".{passage.wire}"
        key = "" if aside or peer.name not in _CHIEF else key
        what = f"{passage.wire}: prepare {passage.place} / {peer.name}"
        if reason := why_not(peer.name, passage) or peer.reasons[passage.name]:
            return Figure(key, what, "part", None, note=f"not measured: {reason}")
        there = f"{peer.name}: yardstick"
        ratio, its = compared.against("prepare", peer.name), compared.ratio(peer.name, there)
        if not aside:
            self.ratios.setdefault(peer.name, []).append(ratio.best)
        self.controls.append(compared.ratio(f"{peer.name}: control", there).best)
        note = f"it needs {its.best:.1f} x orjson.dumps"
        less = less_work(peer.name, passage)
        if less:
            note += f"; {less}"
        mark = Mark("cold", passage.name, peer.name + ("*" if less else ""), its.best)
        return Figure(key, what, "part", ratio.best, ratio.spread_as_part(), note, mark)

    def summary(self, peers: Sequence[str]) -> Iterator[Figure]:
        """Give the geometric means, and how far the same thing was from itself over there."""
        for peer in peers:
            yield _mean(f"requests.{peer}.mean", f"prepare / {peer}", self.ratios.get(peer, []))
        if self.controls:
            low, high = min(self.controls), max(self.controls)
            what = f"orjson.dumps / itself beside the peers, the lowest and highest of {len(self.controls)}"
            farthest = max(low, high, key=lambda value: abs(value - 1))
            yield Figure("", what, "times", farthest, f"{low:.2f} to {high:.2f}", note="the same thing twice")


def _mean(key: str, what: str, ratios: Sequence[float]) -> Figure:
    if not ratios:
        return Figure(key, f"{what}, geometric mean", "part", None, note="not measured: none of the wires was")
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return Figure(key, f"{what}, geometric mean of {len(ratios)} passages", "part", mean)


def _measure_conversions(
    journeys: Sequence[Journey], effort: Effort, environments: Sequence[Environment]
) -> Iterator[Figure]:
    """Hold `convert` against the peer that reads requests too: from one wire to another, reading and writing."""
    environment = next((it for it in environments if it.peer.name == _READS_TOO), None)
    if environment is None:
        return
    cross_model = [it for it in journeys if it.passage.place == "abroad" and not why_not(_READS_TOO, it.passage)]
    tasks = [make_task(_READS_TOO, journey, reads=True) for journey in cross_model]
    ratios: list[float] = []
    with start_peer(environment, tasks, effort.sample_ns) as peer:
        for journey in cross_model:
            writer, target = journey.passage.writer, journey.passage.target
            what = f"{writer.protocol} to {target.protocol}: convert / {_READS_TOO}, reading and writing"
            if reason := peer.reasons[journey.passage.name]:
                yield Figure("", what, "part", None, note=f"not measured: {reason}")
                continue
            compared = _compare_conversion(journey, effort, peer)
            ratio = compared.against("convert", _READS_TOO)
            ratios.append(ratio.best)
            yield Figure("", what, "part", ratio.best, ratio.spread_as_part())
    yield _mean("", f"convert / {_READS_TOO}", ratios)


def _compare_conversion(journey: Journey, effort: Effort, peer: PeerProcess) -> Comparison:
    source, protocol = journey.source, journey.passage.writer.protocol
    target, body = journey.passage.target, journey.body
    return compare(
        "orjson.dumps",
        {
            "convert": lambda: convert(source, source=protocol, target=target).body,
            "orjson.dumps": lambda: orjson.dumps(body),
        },
        effort,
        [peer.sampler(journey.passage.name)],
    )


def _measure_reading(journey: Journey, effort: Effort) -> Iterator[Figure]:
    protocol, target = journey.passage.wire, journey.passage.target
    data = orjson.dumps(journey.body)
    body: dict[str, object] = orjson.loads(data)
    compared = compare(
        "orjson.loads",
        {
            "decode_request": lambda: decode_request(body, protocol=protocol, model=target),
            "orjson.loads": lambda: orjson.loads(data),
        },
        effort,
    )
    ratio = compared.ratio("decode_request")
    what = f"{protocol}: decode_request / orjson.loads of the body"
    yield Figure("requests.decode", what, "times", ratio.best, ratio.spread())
    each = compared.best("decode_request") / 1e3 / len(journey.context.messages)
    yield Figure("", f"{protocol}: decode_request, a message", "us", each)
    yield _control(f"{protocol}: orjson.loads / itself", compared, "control", "orjson.loads")


def _control(what: str, compared: Comparison, name: str, yardstick: str) -> Figure:
    ratio = compared.ratio(name, yardstick)
    return Figure("", what, "times", ratio.best, ratio.spread(), note="the same thing twice")
