"""The time to decode a stream to events and the whole message, compared with orjson on each payload.

The bytes arrive one event at a time, as from a server; in one row they arrive in chunks of 16 KB, as from a file.
orjson gets the payloads already split and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import orjson
from cases import SAME_MODEL_CASES
from figures import Figure
from measure import Comparison, Effort, compare
from streamed import Stream, argument_stream, mixed_stream

from segue import Model, ReplyProjector, frame_encoder, stream_encoder
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.framing.sse import SseDecoder
from segue.protocols import get_protocol
from segue.protocols.api import decode_response, stream_decoder

_PIECE: Final = 16_384
_WHOLE_CALLS: Final = frozenset({"google-genai"})
"""Protocols that do not stream arguments."""
_FRAMINGS: Final = {"bedrock-converse": AwsEventStreamDecoder}
"""The others send server-sent events."""


def measure_streams(effort: Effort, sizes: tuple[int, int]) -> list[Figure]:
    """Measure a mixed stream and a long argument of two sizes, for each protocol."""
    figures: list[Figure] = []
    for case in SAME_MODEL_CASES:
        figures += _measure_wire(case.wire, case.writer, effort, sizes)
    return figures


def _measure_wire(protocol: str, model: Model, effort: Effort, sizes: tuple[int, int]) -> Iterator[Figure]:
    streams = {"mixed": mixed_stream(model)}
    if protocol not in _WHOLE_CALLS:
        streams |= {f"argument {size // 1000} KB": argument_stream(model, size) for size in sizes}
    compared = _compare(streams, model, effort)
    each: dict[str, float] = {}
    for name, stream in streams.items():
        ratio = compared.ratio(name, f"{name}: loads")
        each[name] = compared.best(name) / len(stream.payloads)
        key = f"streams.{name.split()[0]}"
        yield Figure(key, f"{protocol}: {name} / orjson.loads", "times", ratio.best, ratio.spread())
        yield Figure("", f"{protocol}: {name}, an event of {len(stream.payloads):,}", "us", each[name] / 1e3)
    ratio = compared.ratio("in pieces", "mixed: loads")
    yield Figure("", f"{protocol}: mixed, in chunks of 16 KB / orjson.loads", "times", ratio.best, ratio.spread())
    if protocol not in _WHOLE_CALLS:
        short, long = list(streams)[1:]
        what = f"{protocol}: an event of {long} / of {short}"
        yield Figure("streams.growth", what, "times", each[long] / each[short])
        floors = [compared.best(f"{name}: loads") / len(streams[name].payloads) for name in (long, short)]
        yield Figure("", f"{protocol}: orjson.loads, the same", "times", floors[0] / floors[1], note="for comparison")
    control = compared.control()
    yield Figure(
        "",
        f"{protocol}: orjson.loads / itself",
        "times",
        control.best,
        control.spread(),
        note="the same code twice: measurement error",
    )


def _compare(streams: dict[str, Stream], model: Model, effort: Effort) -> Comparison:
    subjects: dict[str, Callable[[], object]] = {}
    for name, stream in streams.items():
        _check(stream, model)
        subjects[name] = lambda pieces=stream.pieces: read_stream(pieces, model)
        subjects[f"{name}: loads"] = lambda payloads=stream.payloads: _loads(payloads)
    whole = streams["mixed"].whole
    cut = [whole[place : place + _PIECE] for place in range(0, len(whole), _PIECE)]
    subjects["in pieces"] = lambda: read_stream(cut, model)
    return compare("mixed: loads", subjects, effort)


def read_stream(pieces: Sequence[bytes], model: Model) -> object:
    """Decode a stream like an application that looks at each event and keeps the last."""
    frames: SseDecoder | AwsEventStreamDecoder = _FRAMINGS.get(model.protocol, SseDecoder)()
    decoder = stream_decoder(model=model)
    last: object = None
    for piece in pieces:
        for frame in frames.feed(piece):
            for event in decoder.feed(frame.data):
                last = event
    for frame in frames.finish():
        for event in decoder.feed(frame.data):
            last = event
    for event in decoder.finish():
        last = event
    return last


def relay_stream(pieces: Sequence[bytes], model: Model, protocol: str) -> int:
    """Decode a stream, show it to a client of a protocol, and encode it: give the number of bytes written.

    The client asked for the model that answers, so that a stream of the same protocol is passed on unchanged.
    """
    frames: SseDecoder | AwsEventStreamDecoder = _FRAMINGS.get(model.protocol, SseDecoder)()
    decoder = stream_decoder(model=model)
    projector = ReplyProjector(protocol=protocol, source=model)
    encoder, writer = stream_encoder(protocol=protocol), frame_encoder(get_protocol(protocol).framing)
    written = 0
    for piece in pieces:
        for frame in frames.feed(piece):
            for event in decoder.feed(frame.data):
                for shown in projector.feed(event):
                    for made in encoder.feed(shown):
                        written += len(writer.feed(made))
    for event in decoder.finish():
        for shown in projector.feed(event):
            for made in encoder.feed(shown):
                written += len(writer.feed(made))
    for made in encoder.finish():
        written += len(writer.feed(made))
    return written + len(writer.finish())


def encoded_frames(pieces: Sequence[bytes], model: Model, protocol: str) -> Sequence[object]:
    """Give the frames that `relay_stream` writes."""
    frames: SseDecoder | AwsEventStreamDecoder = _FRAMINGS.get(model.protocol, SseDecoder)()
    decoder, encoder = stream_decoder(model=model), stream_encoder(protocol=protocol)
    projector = ReplyProjector(protocol=protocol, source=model)
    events = [event for piece in pieces for frame in frames.feed(piece) for event in decoder.feed(frame.data)]
    shown = [made for event in [*events, *decoder.finish()] for made in projector.feed(event)]
    return [made for event in shown for made in encoder.feed(event)] + list(encoder.finish())


def _loads(payloads: Sequence[bytes]) -> None:
    loads = orjson.loads
    for payload in payloads:
        loads(payload)


def _check(stream: Stream, model: Model) -> None:
    """Check that the stream was decoded to the same message as the whole reply."""
    last = read_stream(stream.pieces, model)
    whole = decode_response(stream.reply, model=model)
    message = getattr(last, "message", None)
    if getattr(last, "type", "") != "done" or message is None or message.content != whole.content:
        raise AssertionError(
            f"the stream of {model.full_name()} was not decoded correctly, so its figures would be wrong"
        )
