"""A regression check: the cost of no function may grow faster than its input. Part of `make check`.

Every function runs on a small input and on one eight times as large, in one process and in CPU time, without the
garbage collector. The time for each item may grow by caches and hash tables, so a function fails only if it grows to
`TOLERATED` times; a quadratic function grows to eight times as soon as its quadratic part is most of it. A suspect is
measured again, at once and up to three times after all others, and the best times count, so that load of other
programs raises no alarm. Nothing depends on how fast the machine is.

Tokens are counted only in conversations that are nearly as long as the window of the target, which costs several times
as much as the rest. So the windows are unlimited, or they grow with the input: then everything is counted and cut in
the small input as in the large one.

The inputs are conversations in which one thing is repeated (`growth_histories`), their bodies, streams and files.

    python scripts/check_growth.py            fails if a function is not linear
    python scripts/check_growth.py outbox     only those whose name contains a text; prints every growth
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from growth_histories import HISTORIES, History
from measure import time_calls
from msgspec.structs import replace

from segue import (
    Context,
    EncodeError,
    Model,
    Outbox,
    ReplyProjector,
    TextContent,
    ToolCall,
    UserMessage,
    append_message,
    check,
    dump,
    estimate_tokens,
    frame_encoder,
    get_model,
    load,
    prepare,
    project,
    read_session,
    stream_encoder,
)
from segue.events import (
    Event,
    StartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from segue.models.origin import new_assistant_message
from segue.projection.projector import Projector
from segue.protocols.api import decode_request, decode_response, encode_request, encode_response, stream_decoder
from segue.protocols.kit.json_values import is_list, is_object
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import all_protocols
from segue.testing.frames import split_stream, write_frame

SMALL: Final = 400
LARGE: Final = 8 * SMALL
TOLERATED: Final = 2.5
"""How much the time for one item may grow from the small to the large input."""
_TRIES: Final = 3
_PAUSES: Final = (0, 10, 20)
"""Seconds before a suspect is measured again: other programs may take the caches of the processor for seconds."""
_NEGLIGIBLE_NS: Final = 3_000_000
"""A large input that takes less is not judged: the fixed part of the small one is most of its time."""

_WRITER: Final = Model("writer", "elsewhere", "anthropic-messages", reasoning=True)
"""The model that wrote the histories: another one than every target, so that every pass has something to do."""
_TARGETS: Final = tuple(
    replace(model, context_window=0, max_input=0)
    for model in (
        get_model("anthropic/claude-sonnet-4-5"),
        get_model("openai/gpt-5.4"),
        get_model("mistral/mistral-large-latest"),
        Model("reader", "plain-text", "plain-text"),
    )
)
"""Few changes; no foreign thinking; strict ids and turns; no tools and no media."""
_BODIES: Final = (
    "steps",
    "calls of one turn",
    "reversed results",
    "equal ids in one turn",
    "texts of one message",
    "signed thinking",
    "images of one message",
    "files by id",
    "text files",
    "native blocks of one message",
    "marks of one message",
    "tools",
    "a wide schema",
    "later instructions",
)
"""The histories whose bodies differ in what is repeated; codecs and checks of every protocol run on them."""
_OWN: Final = ("native blocks of every turn", "native calls with one id", "results beside a native call")
"""The histories that differ where the target wrote them itself: blocks of another provider are not sent."""
_GROWING: Final = ("steps", "missing results of one turn", "marks of every turn", "images of results", "extras")

Call = Callable[[], object]
Maker = Callable[[int], Call | None]
"""Gives the function to time for an input of some size; None if the protocol does not support the input."""


@dataclass(frozen=True)
class Growing:
    """A function whose cost is compared for two sizes of its input."""

    name: str
    make: Maker


def make_functions(folder: Path) -> Iterator[Growing]:
    """List the functions; `folder` is for their files."""
    for name, history in HISTORIES.items():
        yield Growing(f"dump: {name}", lambda size, history=history: _dumping(history(size, _WRITER)))
        yield Growing(f"load: {name}", lambda size, history=history: _loading(history(size, _WRITER)))
        for target in _TARGETS:
            yield Growing(f"prepare {target.protocol}: {name}", _preparing(history, target))
            yield Growing(f"fit {target.protocol}: {name}", _fitting(history, target))
    for name in _OWN:
        for target in _TARGETS[:2]:
            yield Growing(f"prepare {target.protocol}, its own: {name}", _preparing(HISTORIES[name], target, target))
    for protocol in all_protocols():
        for name in _BODIES:
            yield from _codec_functions(protocol, name, HISTORIES[name])
        yield from _stream_functions(protocol)
        yield from _writing_functions(protocol)
    yield Growing("stream of one reasoning detail", lambda size: _reasoning_details(size, is_one=True))
    yield Growing("stream of many reasoning details", lambda size: _reasoning_details(size, is_one=False))
    for name in _GROWING:
        for target in _TARGETS[:2]:
            yield Growing(f"outbox {target.protocol}, one more turn: {name}", _one_more_turn(HISTORIES[name], target))
            yield Growing(f"projector {target.protocol}, turn by turn: {name}", _turn_by_turn(HISTORIES[name], target))
            yield Growing(
                f"projector {target.protocol}, turn by turn, fitting: {name}",
                _turn_by_turn(HISTORIES[name], target, fits=True),
            )
    yield Growing("append_message behind a torn line", lambda size: _appending(folder / "torn.jsonl", size))
    yield Growing("read_session", lambda size: _reading(folder / f"session{size}.jsonl", size))


# -- stored JSON -------------------------------------------------------------------------------------------------------


def _dumping(context: Context) -> Call:
    return lambda: dump(context)


def _loading(context: Context) -> Call:
    data = dump(context)
    return lambda: load(data)


def _appending(path: Path, size: int) -> Call:
    torn = b'{"format":"segue/1"}\n{"role":"user","content":"' + b"x" * (4000 * size)

    def append() -> None:
        path.write_bytes(torn)
        append_message(path, UserMessage.of("hi"))
        path.with_name(f"{path.name}.torn").unlink()

    return append


def _reading(path: Path, size: int) -> Call:
    path.write_bytes(b'{"format":"segue/1"}\n' + b'{"role":"user","content":"hi"}\n' * (4 * size))
    return lambda: read_session(path)


# -- requests ----------------------------------------------------------------------------------------------------------


def _preparing(history: History, target: Model, writer: Model = _WRITER) -> Maker:
    def make(size: int) -> Call:
        context = history(size, writer)
        return lambda: prepare(context, target).content

    return make


def _narrow(target: Model, context: Context) -> Model:
    """Give a target whose window holds about half of a conversation, so that every size of it is cut."""
    return replace(target, context_window=estimate_tokens(context, target) // 2)


def _fitting(history: History, target: Model) -> Maker:
    def make(size: int) -> Call:
        context = history(size, _WRITER)
        narrow = _narrow(target, context)
        return lambda: project(context, narrow)

    return make


def _codec_functions(protocol: Protocol, name: str, history: History) -> Iterator[Growing]:
    """Give the codec and the check on a body, with projection; without it where the codec can write the history."""
    model = protocol.example

    def prepared(size: int) -> Mapping[str, object]:
        return prepare(history(size, model), model).body

    def written(size: int) -> Mapping[str, object] | None:
        try:
            return encode_request(history(size, model), model=model)
        except EncodeError:
            return None

    def decoding(size: int) -> Call:
        body = prepared(size)
        return lambda: decode_request(body, protocol=protocol.name, model=model)

    def checking(size: int) -> Call:
        body = written(size) or prepared(size)
        return lambda: check(body, protocol=protocol.name, model=model)

    def encoding(size: int) -> Call | None:
        context = history(size, model)
        return None if written(size) is None else lambda: encode_request(context, model=model)

    def replying(size: int) -> Call | None:
        turns = [each for each in history(size, model).messages if each.role == "assistant" and len(each.content) > 1]
        if not turns:
            return None
        try:
            body = encode_response(turns[0], protocol=protocol.name, model=model)
        except EncodeError:
            return None
        return lambda: decode_response(body, protocol=protocol.name, model=model)

    yield Growing(f"decode_request {protocol.name}: {name}", decoding)
    yield Growing(f"check {protocol.name}: {name}", checking)
    yield Growing(f"encode_request {protocol.name}: {name}", encoding)
    yield Growing(f"decode_response {protocol.name}: {name}", replying)


def _one_more_turn(history: History, target: Model) -> Maker:
    def make(size: int) -> Call:
        context, outbox = history(size, _WRITER), Outbox(target)
        turn = (new_assistant_message(target, content=(TextContent(text="So."),)), UserMessage.of("Go on."))
        for _ in range(2):
            outbox.prepare(context)
            context = context.add(*turn)
        return lambda: outbox.prepare(context)

    return make


def _turn_by_turn(history: History, target: Model, *, fits: bool = False) -> Maker:
    """The number of calls does not depend on the size, because each call copies the history once."""

    def make(size: int) -> Call:
        context = history(size, _WRITER)
        model = _narrow(target, context) if fits else target
        steps = [context.messages[: len(context.messages) * part // 8] for part in range(1, 9)]
        contexts = [Context(tools=context.tools, messages=messages) for messages in steps if messages]

        def grow() -> None:
            projector = Projector(model)
            for grown in contexts:
                projector.project(grown)

        return grow

    return make


# -- streams -----------------------------------------------------------------------------------------------------------


def _stream_functions(protocol: Protocol) -> Iterator[Growing]:
    """Give the decoder of streams in which one frame of a sample is repeated: with long texts, and with new indexes."""
    for sample in protocol.samples():
        frames = sample.stream or ()
        for at, frame in enumerate(frames):
            name = f"stream {protocol.name} {sample.name}, frame {at}"
            long = _lengthened(frame)
            yield Growing(name, _streaming(protocol, frames, at, lambda size, long=long: [long] * size))
            numbered = _numbered(frame, 1)
            if numbered != frame:
                yield Growing(
                    f"{name} renumbered",
                    _streaming(
                        protocol, frames, at, lambda size, frame=frame: [_numbered(frame, more) for more in range(size)]
                    ),
                )
        if sample.stream:
            yield Growing(f"framing {protocol.name} {sample.name}", _framing(protocol, frames))
            break


Frames = Sequence[Mapping[str, object]]


def _streaming(protocol: Protocol, frames: Frames, at: int, repeat: Callable[[int], Iterable[object]]) -> Maker:
    def make(size: int) -> Call:
        stream = [*frames[:at], *repeat(size), *frames[at + 1 :]]

        def decode() -> None:
            decoder = stream_decoder(model=protocol.example)
            for frame in stream:
                decoder.feed(frame)  # pyright: ignore[reportArgumentType]  # frames of samples
            decoder.finish()

        return decode

    return make


def _writing_functions(protocol: Protocol) -> Iterator[Growing]:
    """Give the encoder of streams in which a delta is repeated, and parts of every kind; a projector is before it."""
    if protocol.stream_encoder is None:
        return
    text = TextContent(text="x")
    call = ToolCall(id="call_1", name="f", arguments={"a": 1})
    kinds: dict[str, Callable[[int], list[Event]]] = {
        "text": lambda size: [TextStart(index=0), *[TextDelta(index=0, delta="x" * 400)] * size],
        "arguments": lambda size: [
            ToolCallStart(index=0, id="call_1", name="f"),
            *[ToolCallDelta(index=0, delta="x" * 400)] * size,
        ],
        "texts": lambda size: [TextEnd(index=at, content=text) for at in range(size)],
        "calls": lambda size: [ToolCallEnd(index=at, tool_call=replace(call, id=f"call_{at}")) for at in range(size)],
    }
    for name, events in kinds.items():
        yield Growing(f"write stream {protocol.name}, {name}", _writing(protocol, events))


def _writing(protocol: Protocol, events: Callable[[int], list[Event]]) -> Maker:
    def make(size: int) -> Call:
        given = [StartEvent(id="r"), *events(size)]

        def write() -> None:
            projector = ReplyProjector(protocol=protocol.name, source=_WRITER)
            encoder, writer = stream_encoder(model=protocol.example), frame_encoder(protocol.framing)
            for event in given:
                for shown in projector.feed(event):
                    for frame in encoder.feed(shown):
                        writer.feed(frame)
            for shown in projector.finish():
                encoder.feed(shown)

        return write

    return make


_INDEXES: Final = frozenset({"index", "output_index", "content_index", "summary_index", "contentBlockIndex"})


_TEXTS: Final = frozenset({"text", "delta", "thinking", "partial_json", "arguments", "content", "signature", "data"})


def _lengthened(value: object, key: str = "") -> object:
    """Lengthen the texts of a frame, to show when they are joined one by one, each time copying what is before."""
    if is_object(value):
        return {name: _lengthened(inner, name) for name, inner in value.items()}
    if isinstance(value, str) and key in _TEXTS:
        return (value * 400)[:400]
    return [_lengthened(inner, key) for inner in value] if is_list(value) else value


def _reasoning_details(size: int, *, is_one: bool) -> Call:
    """Decode reasoning in the format of OpenRouter: one entry in many pieces, or many entries."""
    model = Model("some/model", "openrouter", "openai-chat", reasoning=True)

    def chunk(at: int) -> dict[str, object]:
        entry = {"type": "reasoning.text", "text": "x" * 400, "index": 0 if is_one else at}
        return {"choices": [{"index": 0, "delta": {"reasoning_details": [entry]}}]}

    chunks = [chunk(at) for at in range(size)]

    def decode() -> None:
        decoder = stream_decoder(model=model)
        for frame in chunks:
            decoder.feed(frame)
        decoder.finish()

    return decode


def _numbered(value: object, more: int) -> object:
    """Add a number to the indexes in a frame, so that it belongs to another block."""
    if is_object(value):
        return {
            key: inner + more if key in _INDEXES and isinstance(inner, int) else _numbered(inner, more)
            for key, inner in value.items()
        }
    return [_numbered(inner, more) for inner in value] if is_list(value) else value


def _framing(protocol: Protocol, frames: Frames) -> Maker:
    def make(size: int) -> Call:
        whole = b"".join(write_frame(protocol.framing, frame) for frame in frames)
        long = write_frame(protocol.framing, {"contentBlockDelta": {"text": "x" * (200 * size)}})
        stream = whole * (size // 50) + long
        return lambda: split_stream(protocol.framing, stream, 100)

    return make


# -- the comparison ----------------------------------------------------------------------------------------------------


@contextmanager
def _without_collector() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def measure_growth_of(
    function: Growing, tries: int = _TRIES, timer: Callable[[Call], float] = time_calls
) -> float | None:
    """Return how many times longer one item takes in the large input; None if the function cannot be judged.

    A function that seems to grow is measured up to `tries` times.
    """
    small, large = function.make(SMALL), function.make(LARGE)
    if small is None or large is None:
        return None
    best_small = best_large = float("inf")
    growth = float("inf")
    with _without_collector():
        for _ in range(tries):
            best_small = min(best_small, timer(small), timer(small))
            best_large = min(best_large, timer(large))
            growth = best_large / best_small / (LARGE / SMALL)
            if best_large < _NEGLIGIBLE_NS:
                return None
            if growth <= TOLERATED:
                break
    return growth


def _describe(function: Growing, growth: float) -> str:
    return f"{function.name}: an item of {LARGE:,} takes {growth:.1f} times as long as one of {SMALL:,}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Check every function, or those whose name contains a text."""
    texts = sys.argv[1:] if arguments is None else arguments
    judged = 0
    suspects: list[Growing] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for function in make_functions(Path(folder)):
            if texts and not any(text in function.name for text in texts):
                continue
            growth = measure_growth_of(function)
            if growth is None:
                continue
            judged += 1
            if texts:
                print(_describe(function, growth))
            if growth > TOLERATED:
                suspects.append(function)
        for pause in _PAUSES:
            time.sleep(pause if suspects else 0)
            again = [(function, measure_growth_of(function)) for function in suspects]
            still = [(function, growth) for function, growth in again if growth is not None and growth > TOLERATED]
            suspects = [function for function, _ in still]
            failed = [_describe(function, growth) for function, growth in still]
    for line in failed:
        print(line, file=sys.stderr)
    if failed:
        raise SystemExit(f"{len(failed)} of {judged} functions grow faster than their input")
    print(f"{judged} functions grow with their input")


if __name__ == "__main__":
    main()
