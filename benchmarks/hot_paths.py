"""The functions that applications wait for, each with the work that orjson needs for the same data.

`speed_guard.py` times them. Every path is reached through public names, so the same file runs on an earlier commit,
and every timed call gives a result that has to be computed: a missing pair of parentheses is an error here.

`through` names a function that the path has to call. The tests look whether it does, and a slowdown that is planted
there has to be found.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from cases import CASES, SAME_MODEL_CASES, PreparedCase, prepare_case
from gateway_calls import GatewayCalls
from measure import time_calls
from msgspec.structs import replace
from replies import make_history
from stream_costs import encoded_frames, read_stream, relay_stream
from streamed import mixed_stream
from transcripts import make_turn
from windows import count_all

from segue import Model, Outbox, Projector, convert, dump, load, prepare, project, read_session, write_session
from segue.counting.counter import TokenCounter
from segue.protocols.api import decode_request

_OTHER: Final = {"anthropic-messages": "openai-chat", "openai-chat": "openai-responses"}
"""The protocol of a client that reads a stream of another one; for all others it is Anthropic's."""
_LENGTH: Final = 200

Call = Callable[[], object]


@dataclass(frozen=True)
class HotPath:
    """The timed function, and the reference on the same data. `begin` makes a function that is called once.

    `measure` gives the cost of one call: CPU nanoseconds of this process, unless the path says otherwise.
    """

    name: str
    begin: Callable[[], Call]
    yardstick: Call
    through: str
    measure: Callable[[Call], float] = time_calls


@contextmanager
def open_paths(length: int = _LENGTH) -> Generator[list[HotPath]]:
    """List the functions that applications wait for; a file and a gateway belong to them while the block runs."""
    with tempfile.TemporaryDirectory() as folder, GatewayCalls(Path(folder)) as calls:
        yield list(_make_paths(length, Path(folder), calls))


def _make_paths(length: int, folder: Path, calls: GatewayCalls) -> Iterator[HotPath]:
    for case in SAME_MODEL_CASES:
        yield from _storing(case.writer, length)
    yield _reading_a_session(length, folder)
    for case in CASES:
        prepared = prepare_case(case, length)
        yield _content_of(prepared)
        yield _body_of(prepared)
        if case in SAME_MODEL_CASES:
            yield _reading(prepared)
            yield _one_more_turn(prepared)
        else:
            yield _converting(prepared)
    yield _counting(prepare_case(SAME_MODEL_CASES[0], length))
    yield _fitting(prepare_case(SAME_MODEL_CASES[0], length))
    yield _one_more_turn_cut(prepare_case(SAME_MODEL_CASES[0], length))
    for case in SAME_MODEL_CASES:
        yield _streaming(case.wire, case.writer)
    for case in SAME_MODEL_CASES:
        yield _relaying(case.writer, case.wire)
        yield _relaying(case.writer, _OTHER.get(case.wire, "anthropic-messages"))
    yield from _serving(calls)
    yield from _importing()
    yield _measuring_memory(length)


def _folder_of(protocol: str) -> str:
    return f"segue.protocols.{protocol.replace('-', '_')}"


def _storing(writer: Model, length: int) -> Iterator[HotPath]:
    """A stored history with the other fields of replies, which take more space than the rest of a short turn."""
    data = dump(make_history(length, writer))
    context = load(data)  # in memory as it was read: how far apart the objects of a reader are is a tenth of this path
    plain: object = orjson.loads(data)
    storing = "segue.conversation.stored"
    yield HotPath(f"load {writer.protocol}", lambda: lambda: load(data), lambda: orjson.loads(data), f"{storing}:load")
    yield HotPath(
        f"dump {writer.protocol}", lambda: lambda: dump(context), lambda: orjson.dumps(plain), f"{storing}:dump"
    )


def _reading_a_session(length: int, folder: Path) -> HotPath:
    path = folder / "session.jsonl"
    write_session(path, make_history(length, SAME_MODEL_CASES[0].writer))
    lines = path.read_bytes().splitlines()
    return HotPath(
        "read_session",
        lambda: lambda: read_session(path),
        lambda: [orjson.loads(line) for line in lines],
        "segue.histories.sessions:read_session",
    )


def _content_of(prepared: PreparedCase) -> HotPath:
    """What the client sends, in the first request from a conversation: it remembers nothing yet."""
    context, target, body = prepared.context, prepared.case.target, prepared.body
    return HotPath(
        f"content {prepared.case.name}",
        lambda: lambda: prepare(replace(context), target).content,
        lambda: orjson.dumps(body),
        f"{_folder_of(prepared.case.wire)}.request:encode_request",
    )


def _body_of(prepared: PreparedCase) -> HotPath:
    """The body for a provider's own client, which the caller may change, in a later request."""
    context, target, body = prepared.context, prepared.case.target, prepared.body
    return HotPath(
        f"body {prepared.case.name}",
        lambda: lambda: prepare(context, target).body,
        lambda: orjson.dumps(body),
        f"{_folder_of(prepared.case.wire)}.request:encode_request",
    )


def _converting(prepared: PreparedCase) -> HotPath:
    """A request of one protocol, converted to another: what the gateway and the corpus do."""
    writer, target, source, body = prepared.case.writer, prepared.case.target, prepared.source, prepared.body
    data = orjson.dumps(source)
    return HotPath(
        f"convert {writer.protocol} -> {target.protocol}",
        lambda: lambda: convert(source, source=writer.protocol, target=target).content,
        lambda: (orjson.loads(data), orjson.dumps(body)),
        "segue.requests.prepare:convert",
    )


def _reading(prepared: PreparedCase) -> HotPath:
    protocol, target = prepared.case.wire, prepared.case.target
    data = orjson.dumps(prepared.body)
    body: dict[str, object] = orjson.loads(data)
    return HotPath(
        f"decode_request {protocol}",
        lambda: lambda: decode_request(body, protocol=protocol, model=target),
        lambda: orjson.loads(data),
        f"{_folder_of(protocol)}.request:decode_request",
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

    return HotPath(
        f"warm turn {prepared.case.wire}", begin, lambda: orjson.dumps(body), "segue.requests.outbox:Outbox.prepare"
    )


def _counting(prepared: PreparedCase) -> HotPath:
    context, body = prepared.context, prepared.body
    counter = TokenCounter(prepared.case.target)
    return HotPath(
        "count tokens",
        lambda: lambda: count_all(context, counter),
        lambda: orjson.dumps(body),
        "segue.counting.counter:TokenCounter.message",
    )


def _small(prepared: PreparedCase) -> Model:
    """Give the target with a window that holds a third of the history; the turn that is measured is none that cuts."""
    tokens = count_all(prepared.context, TokenCounter(prepared.case.target))
    return replace(prepared.case.target, context_window=max(2000, round(tokens / 3.1)), max_input=0)


def _fitting(prepared: PreparedCase) -> HotPath:
    context, model, body = prepared.context, _small(prepared), prepared.body
    return HotPath(
        "project in a small window",
        lambda: lambda: project(context, model),
        lambda: orjson.dumps(body),
        "segue.projection.projector:project",
    )


def _one_more_turn_cut(prepared: PreparedCase) -> HotPath:
    model, body, writer = _small(prepared), prepared.body, prepared.case.writer
    before = prepared.context.add(*make_turn(writer, seed=1_000_000))
    now = before.add(*make_turn(writer, seed=1_000_001))

    def begin() -> Call:
        projector = Projector(model)
        for context in (prepared.context, before):
            projector.project(context)
        return lambda: projector.project(now)

    return HotPath(
        "warm turn in a small window",
        begin,
        lambda: orjson.dumps(body),
        "segue.projection.projector:Projector.project",
    )


def _streaming(protocol: str, model: Model) -> HotPath:
    stream = mixed_stream(model, steps=3)
    pieces, payloads = stream.pieces, stream.payloads
    return HotPath(
        f"stream {protocol}",
        lambda: lambda: read_stream(pieces, model),
        lambda: [orjson.loads(payload) for payload in payloads],
        f"{_folder_of(protocol)}.stream:read",
    )


def _relaying(model: Model, protocol: str) -> HotPath:
    """Read a stream, show it to a client and write it; the yardstick reads and writes the same JSON."""
    stream = mixed_stream(model, steps=3)
    pieces, payloads = stream.pieces, stream.payloads
    frames = encoded_frames(pieces, model, protocol)

    def yardstick() -> object:
        return [orjson.loads(payload) for payload in payloads], [orjson.dumps(frame) for frame in frames]

    return HotPath(
        f"relay {model.protocol} -> {protocol}",
        lambda: lambda: relay_stream(pieces, model, protocol),
        yardstick,
        f"{_folder_of(protocol)}.{'stream_writer' if protocol == 'openai-responses' else 'stream'}:finish",
    )


def _serving(calls: GatewayCalls) -> Iterator[HotPath]:
    """One request to a gateway, and one reply that it translates event by event."""
    body, stream = calls.bodies[False], mixed_stream(SAME_MODEL_CASES[1].writer, steps=3)
    payloads = stream.payloads
    yield HotPath(
        "gateway request",
        lambda: lambda: calls.call(stream=False),
        lambda: orjson.dumps(orjson.loads(body)),
        "segue.calls.reading:read_call",
    )
    yield HotPath(
        "gateway stream",
        lambda: lambda: calls.call(stream=True),
        lambda: [orjson.dumps(orjson.loads(payload)) for payload in payloads],
        "segue.gateway.answers:answer_stream",
    )


def _importing() -> Iterator[HotPath]:
    """New interpreters; the reference imports the one dependency."""
    statements = {
        "import of the types": ("from segue import Context, dump, load", "segue._lazy"),
        "import of prepare": ("from segue import prepare", "segue.requests.prepare"),
        "segue --help": (
            'import sys; sys.argv = ["segue", "--help"]; from segue.cli.entry import main; main()',
            "segue.cli.entry",
        ),
    }
    for name, (statement, module) in statements.items():
        yield HotPath(
            name, lambda code=statement: lambda: _run(code), lambda: _run("import msgspec"), module, _of_children
        )


def _run(statement: str) -> int:
    command = [sys.executable, "-c", f"try:\n    {statement}\nexcept SystemExit:\n    pass\nprint('done')"]
    return len(subprocess.run(command, check=True, capture_output=True).stdout)


def _of_children(call: Call) -> float:
    """Give the CPU nanoseconds of the processes that a call starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9


def _measuring_memory(length: int) -> HotPath:
    """The memory of a history that was loaded, against the same values as dicts and lists."""
    data = dump(make_history(length, SAME_MODEL_CASES[0].writer))
    return HotPath(
        "memory of stored messages",
        lambda: lambda: load(data),
        lambda: orjson.loads(data),
        "segue.conversation.stored:load",
        _memory_of,
    )


def _memory_of(call: Call) -> float:
    """Give the bytes that the result of a call takes."""
    call()  # what is computed once is not part of the result
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = call()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result is not None
    return float(after - before)
