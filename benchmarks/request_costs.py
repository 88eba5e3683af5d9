"""What it costs to make a request of a stored history, and to read one: beside orjson, and beside other libraries.

At home the target wrote the history itself, and everything it sealed goes back to it; abroad another model did. What is
timed is all of `prepare(context, model).body`: projection with its report, options and tools, then the codec, down to
plain values. The yardstick is `orjson.dumps` of that very body; for reading it, `orjson.loads` of its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import orjson
from figures import Figure
from measure import Comparison, Effort, compare
from msgspec.structs import replace
from peer_processes import PeerProcess, Task, start_peer
from peers import Environment
from replies import make_history
from transcripts import as_plain, make_transcript

from segue import Context, Model, UnknownProtocol, get_model
from segue.protocols.doors import decode_request, get_codec
from segue.request import prepare

CLAUDE: Final = get_model("anthropic/claude-sonnet-4-5")
GPT: Final = get_model("openai/gpt-5.4")
DEEPSEEK: Final = get_model("deepseek/deepseek-v4-pro")
GPT_CHAT: Final = Model("gpt-5.4", "openai", "openai-chat", reasoning=True)

WRITERS: Final[Mapping[str, Model]] = {
    "anthropic-messages": CLAUDE,
    "openai-chat": DEEPSEEK,
    "openai-responses": GPT,
}
"""Who speaks each wire at home. OpenAI tells no reasoning over its chat wire, DeepSeek does."""


@dataclass(frozen=True)
class Passage:
    """A history on its way: where it goes, and who wrote it."""

    place: str
    writer: Model
    target: Model

    @property
    def wire(self) -> str:
        """The protocol that the target speaks."""
        return self.target.protocol

    @property
    def name(self) -> str:
        """What to call it in tables and tasks."""
        return f"{self.wire} {self.place}"


PASSAGES: Final = (
    Passage("home", CLAUDE, CLAUDE),
    Passage("abroad", GPT, CLAUDE),
    Passage("home", DEEPSEEK, DEEPSEEK),
    Passage("abroad", CLAUDE, GPT_CHAT),
    Passage("home", GPT, GPT),
    Passage("abroad", CLAUDE, GPT),
)

_RIVALS: Final[Mapping[str, frozenset[str]]] = {
    "pydantic-ai": frozenset({"anthropic-messages", "openai-chat", "openai-responses"}),
    "litellm": frozenset({"anthropic-messages", "openai-chat"}),
}
"""Which wires each peer is measured on."""
_PASSES_THROUGH: Final = "its own form is this wire: nearly a pass-through"


def is_spoken(protocol: str) -> str:
    """Say why a wire cannot be measured; nothing when it can."""
    try:
        get_codec(protocol)
    except UnknownProtocol:
        return f"not measured: segue does not speak {protocol} yet"
    return ""


def measure_requests(effort: Effort, length: int, environments: Sequence[Environment]) -> list[Figure]:
    """Measure every passage, with the peers that can make it, and reading what was made at home."""
    figures: list[Figure] = []
    means: dict[str, list[float]] = {}
    spoken = [passage for passage in PASSAGES if not _missing(passage)]
    with ExitStack() as stack:
        peers = [
            stack.enter_context(start_peer(it, _tasks(it, spoken, length), effort.sample_ns)) for it in environments
        ]
        for passage in PASSAGES:
            rivals = [peer for peer in peers if passage.wire in _RIVALS[peer.name]]
            if passage in spoken:
                figures += _measure_passage(passage, length, effort, rivals, means)
            else:
                figures += _unmeasured(passage, rivals)
    figures += [_mean(peer.name, means.get(peer.name, [])) for peer in peers]
    for passage in PASSAGES:
        if passage.place == "home":
            figures += _measure_reading(passage, length, effort)
    return figures


def _missing(passage: Passage) -> str:
    return is_spoken(passage.writer.protocol) or is_spoken(passage.wire)


def _make(passage: Passage, length: int) -> tuple[Context, dict[str, object]]:
    """Make the history and the request; a passage home that changes anything is not the one that was meant."""
    context = make_history(length, passage.writer)
    request = prepare(context, passage.target)
    if passage.place == "home" and request.report.changes:
        raise AssertionError(f"{passage.name} is not free: {request.report.changes[:3]}")
    return context, request.body


def _without_replies(context: Context) -> Context:
    """Forget what the replies said beyond our words, as a history has it that was kept in our types from the start."""
    return replace(
        context,
        messages=tuple(
            replace(message, extra=None) if message.role == "assistant" else message for message in context.messages
        ),
    )


def _tasks(environment: Environment, passages: Sequence[Passage], length: int) -> list[Task]:
    tasks: list[Task] = []
    for passage in passages:
        if passage.wire in _RIVALS[environment.peer.name]:
            target = {"protocol": passage.wire, "provider": passage.target.provider, "id": passage.target.id}
            # Before it was decoded: peers have signatures and ids in places of their own.
            told = as_plain(make_transcript(length, model=passage.writer))
            tasks.append(Task(passage.name, target, told, _make(passage, length)[1]))
    return tasks


def _measure_passage(
    passage: Passage, length: int, effort: Effort, peers: Sequence[PeerProcess], means: dict[str, list[float]]
) -> Iterator[Figure]:
    context, body = _make(passage, length)
    plain, target = _without_replies(context), passage.target
    able = [peer for peer in peers if not peer.reasons[passage.name]]
    compared = compare(
        "orjson.dumps",
        {
            "prepare": lambda: prepare(context, target).body,
            "prepare plain": lambda: prepare(plain, target).body,
            "orjson.dumps": lambda: orjson.dumps(body),
        },
        effort,
        [peer.sampler(passage.name) for peer in able],
    )
    key, wire, place = f"requests.{passage.place}", passage.wire, passage.place
    ratio, bare = compared.ratio("prepare"), compared.ratio("prepare plain")
    each = compared.best("prepare") / 1e3 / len(context.messages)
    count = f"{len(context.messages):,} messages"
    yield Figure(key, f"{wire}: prepare {count} {place} / orjson.dumps", "times", ratio.best, ratio.spread())
    yield Figure(key, f"{wire}: {place}, without the replies' extra / orjson.dumps", "times", bare.best, bare.spread())
    yield Figure("", f"{wire}: prepare {place}, a message", "us", each)
    yield _control(f"{passage.name}: orjson.dumps / itself", compared, "control", "orjson.dumps")
    for peer in peers:
        yield from _held_against(passage, peer, compared if peer in able else None, means)


def _held_against(
    passage: Passage, peer: PeerProcess, compared: Comparison | None, means: dict[str, list[float]]
) -> Iterator[Figure]:
    passes = peer.name == "litellm" and passage.wire == "openai-chat"
    key = "" if passes else f"requests.{peer.name}"
    what = f"{passage.wire}: prepare {passage.place} / {peer.name}"
    if compared is None:
        yield Figure(key, what, "part", None, note=f"not measured: {peer.reasons[passage.name]}")
        return
    there = f"{peer.name}: yardstick"
    ratio, its = compared.against("prepare", peer.name), compared.ratio(peer.name, there)
    if not passes:
        means.setdefault(peer.name, []).append(ratio.best)
    yield Figure(key, what, "part", ratio.best, ratio.spread_as_part(), note=_PASSES_THROUGH if passes else "")
    yield Figure("", f"{passage.wire}: {peer.name} {passage.place} / orjson.dumps", "times", its.best, its.spread())
    yield _control(
        f"{passage.name}: orjson.dumps / itself beside {peer.name}", compared, f"{peer.name}: control", there
    )


def _unmeasured(passage: Passage, peers: Sequence[PeerProcess]) -> Iterator[Figure]:
    note = _missing(passage)
    yield Figure(f"requests.{passage.place}", f"{passage.name} / orjson.dumps", "times", None, note=note)
    for peer in peers:
        yield Figure(f"requests.{peer.name}", f"{passage.name} / {peer.name}", "part", None, note=note)


def _mean(peer: str, ratios: Sequence[float]) -> Figure:
    what, key = f"prepare / {peer}, geometric mean of the wires above", f"requests.{peer}.mean"
    if not ratios:
        return Figure(key, what, "part", None, note="not measured: none of the wires was")
    return Figure(key, what, "part", math.exp(math.fsum(map(math.log, ratios)) / len(ratios)))


def _measure_reading(passage: Passage, length: int, effort: Effort) -> Iterator[Figure]:
    what = f"{passage.wire}: decode_request / orjson.loads of the body"
    if missing := _missing(passage):
        yield Figure("requests.decode", what, "times", None, note=missing)
        return
    context, written = _make(passage, length)
    data = orjson.dumps(written)
    body: dict[str, object] = orjson.loads(data)
    protocol, target = passage.wire, passage.target
    compared = compare(
        "orjson.loads",
        {
            "decode_request": lambda: decode_request(body, protocol=protocol, model=target),
            "orjson.loads": lambda: orjson.loads(data),
        },
        effort,
    )
    ratio = compared.ratio("decode_request")
    yield Figure("requests.decode", what, "times", ratio.best, ratio.spread())
    count = len(context.messages)
    yield Figure("", f"{passage.wire}: decode_request, a message", "us", compared.best("decode_request") / 1e3 / count)
    yield _control(f"{passage.wire}: orjson.loads / itself", compared, "control", "orjson.loads")


def _control(what: str, compared: Comparison, name: str, yardstick: str) -> Figure:
    ratio = compared.ratio(name, yardstick)
    return Figure("", what, "times", ratio.best, ratio.spread(), note="the same thing twice")
