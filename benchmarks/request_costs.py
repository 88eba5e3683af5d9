"""The time to make a request from a stored history, and to decode one, compared with orjson and other libraries.

"same-model": the target wrote the history and gets its signatures back. "cross-model": another model wrote it. The time
is that of `prepare(context, model).body`: projection with its report, options and tools, then encoding to dicts and
lists. A conversation remembers what projection found in its messages, so the first request from it takes longer than
all others: it has a row of its own. The reference is `orjson.dumps` of the same body; for decoding, `orjson.loads` of
its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

import orjson
from cases import CASES, PreparedCase, prepare_case, without_replies
from figures import Figure, Mark
from measure import Comparison, Effort, compare
from msgspec.structs import replace
from peer_processes import PeerProcess, start_peer
from peer_support import BEDROCK, GOOGLE, has_no_goal, less_work, make_task, make_tasks, why_unsupported
from peers import Environment

from segue import convert, prepare
from segue.protocols.api import decode_request

_CHIEF: Final = ("pydantic-ai", "litellm")
"""Peers with a goal for every protocol; they are measured as often as segue, the others less often."""
_NEWER: Final = frozenset({GOOGLE, BEDROCK})
"""Protocols with their own goals against those."""
_READS_TOO: Final = "llm-rosetta"


def measure_requests(effort: Effort, length: int, environments: Sequence[Environment]) -> list[Figure]:
    """Measure every case, with the peers that support it, and the decoding of same-model requests."""
    figures: list[Figure] = []
    prepared_cases = [prepare_case(case, length) for case in CASES]
    few = Effort(max(3, effort.rounds // 5), effort.sample_ns)
    against = _Against()
    with ExitStack() as stack:
        peers = [
            stack.enter_context(start_peer(it, make_tasks(it.peer.name, prepared_cases), effort.sample_ns))
            for it in environments
        ]
        chief = [peer for peer in peers if peer.name in _CHIEF]
        others = [peer for peer in peers if peer.name not in _CHIEF]
        for prepared in prepared_cases:
            # By itself first: a peer that takes its turn leaves little of what was in the processor's caches.
            figures += _measure_case(prepared, effort)
            for them, how in ((chief, effort), (others, few)):
                if them:
                    compared = _compare(prepared, how, them)
                    figures += [against.figure(prepared, peer, compared) for peer in them]
    figures += against.summary([peer.name for peer in peers])
    figures += _measure_conversions(prepared_cases, few, environments)
    for prepared in prepared_cases:
        if prepared.case.place == "same-model":
            figures += _measure_reading(prepared, effort)
    return figures


def _able(peers: Sequence[PeerProcess], prepared: PreparedCase) -> list[PeerProcess]:
    return [peer for peer in peers if not peer.reasons.get(prepared.case.name, "not measured")]


def _compare(prepared: PreparedCase, effort: Effort, peers: Sequence[PeerProcess]) -> Comparison:
    context, plain, target = prepared.context, without_replies(prepared.context), prepared.case.target
    body = prepared.body
    return compare(
        "orjson.dumps",
        {
            "prepare": lambda: prepare(context, target).body,
            "prepare plain": lambda: prepare(plain, target).body,
            "prepare first": lambda: prepare(replace(context), target).body,
            "content": lambda: prepare(context, target).content,
            "orjson.dumps": lambda: orjson.dumps(body),
        },
        effort,
        [peer.sampler(prepared.case.name) for peer in _able(peers, prepared)],
    )


def _measure_case(prepared: PreparedCase, effort: Effort) -> Iterator[Figure]:
    compared = _compare(prepared, effort, [])
    wire, place, name = prepared.case.wire, prepared.case.place, prepared.case.name
    ratio, bare = compared.ratio("prepare"), compared.ratio("prepare plain")
    count = len(prepared.context.messages)
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
    first = compared.ratio("prepare first")
    yield Figure("", f"{wire}: {place}, the first request / orjson.dumps", "times", first.best, first.spread())
    sent = compared.ratio("content")
    what = f"{wire}: {place}, the bytes that are sent / orjson.dumps"
    yield Figure(f"requests.content.{place}", what, "times", sent.best, sent.spread())
    yield Figure("", f"{wire}: prepare {place}, a message", "us", each)
    yield _control(f"{name}: orjson.dumps / itself", compared, "control", "orjson.dumps")


class _Against:
    """Comparisons of segue with peers, and their means."""

    def __init__(self) -> None:
        self.ratios: dict[str, list[float]] = {}
        self.controls: list[float] = []

    def figure(self, prepared: PreparedCase, peer: PeerProcess, compared: Comparison) -> Figure:
        """Compare one case with a peer."""
        case = prepared.case
        aside = has_no_goal(peer.name, case)
        key = f"requests.{peer.name}"
        if peer.name in _CHIEF and case.wire in _NEWER:
            key += f".{case.wire}"
        key = "" if aside or peer.name not in _CHIEF else key
        what = f"{case.wire}: prepare {case.place} / {peer.name}"
        if reason := why_unsupported(peer.name, case) or peer.reasons[case.name]:
            return Figure(key, what, "part", None, note=f"not measured: {reason}")
        there = f"{peer.name}: yardstick"
        ratio, its = compared.against("prepare", peer.name), compared.ratio(peer.name, there)
        if not aside:
            self.ratios.setdefault(peer.name, []).append(ratio.best)
        self.controls.append(compared.ratio(f"{peer.name}: control", there).best)
        note = f"it needs {its.best:.1f} x orjson.dumps"
        less = less_work(peer.name, case)
        if less:
            note += f"; {less}"
        mark = Mark("cold", case.name, peer.name + ("*" if less else ""), its.best)
        return Figure(key, what, "part", ratio.best, ratio.spread_as_part(), note, mark)

    def summary(self, peers: Sequence[str]) -> Iterator[Figure]:
        """Return the geometric means, and the largest error of the reference in the peers' processes."""
        for peer in peers:
            yield _mean(f"requests.{peer}.mean", f"prepare / {peer}", self.ratios.get(peer, []))
        if self.controls:
            low, high = min(self.controls), max(self.controls)
            what = f"orjson.dumps / itself beside the peers, the lowest and highest of {len(self.controls)}"
            farthest = max(low, high, key=lambda value: abs(value - 1))
            yield Figure(
                "", what, "times", farthest, f"{low:.2f} to {high:.2f}", note="the same code twice: measurement error"
            )


def _mean(key: str, what: str, ratios: Sequence[float]) -> Figure:
    if not ratios:
        return Figure(key, f"{what}, geometric mean", "part", None, note="not measured: none of the wires was")
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return Figure(key, f"{what}, geometric mean of {len(ratios)} cases", "part", mean)


def _measure_conversions(
    prepared_cases: Sequence[PreparedCase], effort: Effort, environments: Sequence[Environment]
) -> Iterator[Figure]:
    """Compare `convert` with the peer that also decodes requests: from one protocol to another."""
    environment = next((it for it in environments if it.peer.name == _READS_TOO), None)
    if environment is None:
        return
    cross_model = [
        it for it in prepared_cases if it.case.place == "cross-model" and not why_unsupported(_READS_TOO, it.case)
    ]
    tasks = [make_task(_READS_TOO, prepared, reads=True) for prepared in cross_model]
    ratios: list[float] = []
    with start_peer(environment, tasks, effort.sample_ns) as peer:
        for prepared in cross_model:
            writer, target = prepared.case.writer, prepared.case.target
            what = f"{writer.protocol} to {target.protocol}: convert / {_READS_TOO}, reading and writing"
            if reason := peer.reasons[prepared.case.name]:
                yield Figure("", what, "part", None, note=f"not measured: {reason}")
                continue
            compared = _compare_conversion(prepared, effort, peer)
            ratio = compared.against("convert", _READS_TOO)
            ratios.append(ratio.best)
            yield Figure("", what, "part", ratio.best, ratio.spread_as_part())
    yield _mean("", f"convert / {_READS_TOO}", ratios)


def _compare_conversion(prepared: PreparedCase, effort: Effort, peer: PeerProcess) -> Comparison:
    source, protocol = prepared.source, prepared.case.writer.protocol
    target, body = prepared.case.target, prepared.body
    return compare(
        "orjson.dumps",
        {
            "convert": lambda: convert(source, source=protocol, target=target).body,
            "orjson.dumps": lambda: orjson.dumps(body),
        },
        effort,
        [peer.sampler(prepared.case.name)],
    )


def _measure_reading(prepared: PreparedCase, effort: Effort) -> Iterator[Figure]:
    protocol, target = prepared.case.wire, prepared.case.target
    data = orjson.dumps(prepared.body)
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
    each = compared.best("decode_request") / 1e3 / len(prepared.context.messages)
    yield Figure("", f"{protocol}: decode_request, a message", "us", each)
    yield _control(f"{protocol}: orjson.loads / itself", compared, "control", "orjson.loads")


def _control(what: str, compared: Comparison, name: str, yardstick: str) -> Figure:
    ratio = compared.ratio(name, yardstick)
    return Figure("", what, "times", ratio.best, ratio.spread(), note="the same code twice: measurement error")
