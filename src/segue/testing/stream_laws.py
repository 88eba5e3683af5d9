"""Laws over streams that a protocol writes: what an encoder writes, its own decoder reads.

Laws over samples take a sample exchange of the record; laws over replies take a seed, from which they generate the
events of a reply of no protocol, in a random division and order of parts, as other protocols send them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from segue.calls.replies import encode_error, stream_encoder
from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.events import (
    DoneEvent,
    Event,
    StartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.errors import EncodeError
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.framing.writing import frame_encoder
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.kit.stream_writing import StreamFrame
from segue.protocols.kit.streaming import Frame
from segue.testing.broken_law import expect_equal, fail
from segue.testing.frames import split_stream


def encode_events(record: Protocol, events: Iterable[Event], *, beats: bool = False) -> list[StreamFrame]:
    """Encode events, with a heartbeat after each event if `beats` is set, and finish the stream."""
    encoder = stream_encoder(protocol=record.name, model=record.example)
    frames: list[StreamFrame] = []
    for event in events:
        frames += encoder.feed(event)
        if beats:
            frames += encoder.heartbeat()
    return [*frames, *encoder.finish()]


def decode_frames(record: Protocol, frames: Iterable[Frame]) -> tuple[list[Event], AssistantMessage]:
    """Decode the frames of a stream."""
    decoder = record.stream_decoder(resolve_endpoint(record.example), {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()], decoder.message


# -- laws over samples -------------------------------------------------------------------------------------------------


def check_stream_round_trip(record: Protocol, sample: Sample) -> None:
    """A stream that is decoded and encoded again is decoded to the same message.

    Raises:
        BrokenLaw: the message differs.
    """
    if sample.stream is None or record.stream_encoder is None:
        return
    events, message = decode_frames(record, sample.stream)
    _, back = decode_frames(record, encode_events(record, events))
    expect_equal(record, "a stream is written back", sample.name, _comparable(back), _comparable(message))
    _, beaten = decode_frames(record, encode_events(record, events, beats=True))
    law = "heartbeats change nothing"
    expect_equal(record, law, sample.name, _comparable(beaten), _comparable(message))


def check_streamed_reply(record: Protocol, sample: Sample) -> None:
    """A whole reply, written as a stream, is decoded to the same message.

    Raises:
        BrokenLaw: the message differs.
    """
    if sample.response is None or record.stream_encoder is None:
        return
    message = record.decode_response(sample.response, resolve_endpoint(record.example), {})
    _, back = decode_frames(record, encode_events(record, message_events(message)))
    expect_equal(record, "a whole reply is streamed", sample.name, _comparable(back), _comparable(message))


def check_written_bytes(record: Protocol, sample: Sample) -> None:
    """The bytes of an encoded stream are read back from any split; a cut stream ends with one error.

    Raises:
        BrokenLaw: a split gives other events, or a cut stream does not end with exactly one `error`.
    """
    if sample.stream is None or record.stream_encoder is None:
        return
    events, _ = decode_frames(record, sample.stream)
    frames = encode_events(record, events)
    wanted, _ = decode_frames(record, frames)
    encoder = frame_encoder(record.framing)
    data = b"".join(map(encoder.feed, frames)) + encoder.finish()
    for size in (1, 7, len(data)):
        found, _ = decode_frames(record, split_stream(record.framing, data, size))
        expect_equal(record, "the bytes of a stream are read from any split", f"{sample.name}, {size}", found, wanted)
    for count in range(len(events) - 1):
        cut, _ = decode_frames(record, encode_events(record, events[:count]))
        kinds = [event.type for event in cut if event.type in ("done", "error")]
        expect_equal(record, "a cut stream ends with an error", f"{sample.name}, {count} events", kinds, ["error"])


def _comparable(message: AssistantMessage) -> object:
    """Return the content of a stream in any division: adjacent parts of one kind are joined, reply ids left out."""
    content: list[dict[str, object]] = []
    signatures: list[str] = []
    for piece in message.content:
        plain = {key: value for key, value in msgspec.to_builtins(piece).items() if key != "extra"}
        found = [plain.pop(key, None) for key in ("textSignature", "thinkingSignature", "thoughtSignature")]
        signatures += [signature for signature in found if isinstance(signature, str)]
        last = content[-1] if content else None
        if last is not None and last["type"] == plain["type"] in ("text", "thinking"):
            key = "text" if plain["type"] == "text" else "thinking"
            last[key] = f"{last[key]}{plain[key]}"
        elif plain.get("text") != "":
            content.append(plain)
    return {
        "content": content,
        "signatures": signatures,
        "stop": message.stop_reason,
        "raw": message.raw_stop_reason,
        "usage": None if message.usage is None else msgspec.to_builtins(message.usage),
        "model": message.response_model,
    }


# -- laws over replies -------------------------------------------------------------------------------------------------

_TEXTS: Final = ("Hello", "naïve 🚀 text", "two. Three", "a\nb", "x" * 300)
_ARGUMENTS: Final[tuple[dict[str, object], ...]] = ({}, {"path": "ü"}, {"a": [1, {"b": None}], "c": '"q"\\'})


def make_reply(seed: int, *, thinks: bool = True) -> tuple[list[Event], AssistantMessage]:
    """Generate the events of a reply, and its message, as no protocol in particular: without signatures and `extra`."""
    dice = Random(seed)  # noqa: S311 - the same choices on every platform
    content: list[AssistantContent] = []
    if thinks and dice.random() < 0.6:
        content.append(ThinkingContent(thinking=dice.choice(_TEXTS)))
    if dice.random() < 0.8:
        content.append(TextContent(text=dice.choice(_TEXTS)))
    calls = dice.choice((0, 0, 1, 2))
    content += [
        ToolCall(
            id=f"call_{seed}_{number}", name=dice.choice(("read", "write_file")), arguments=dice.choice(_ARGUMENTS)
        )
        for number in range(calls)
    ]
    if not content:
        content.append(TextContent(text="Hello"))
    stop = StopReason.TOOL_USE if calls else dice.choice((StopReason.STOP, StopReason.LENGTH))
    usage = Usage(input=dice.randrange(1, 900), output=dice.randrange(1, 900), cache_read=dice.choice((0, 50)))
    usage = replace(usage, total_tokens=usage.input + usage.output + usage.cache_read)
    message = AssistantMessage(
        content=tuple(content),
        protocol="none",
        provider="none",
        model="m",
        response_id="r1",
        stop_reason=stop,
        usage=usage,
    )
    return _divide(message, dice), message


def _divide(message: AssistantMessage, dice: Random) -> list[Event]:
    """Divide the parts into deltas; all ends come last in half of the cases, as on a wire without ends."""
    events: list[Event] = [StartEvent(id=message.response_id)]
    late = dice.random() < 0.5
    ends: list[Event] = []
    for index, piece in enumerate(message.content):
        start, delta, end, text = _events_of_part(index, piece)
        events.append(start)
        events += [delta(index=index, delta=part) for part in _pieces(text, dice)]
        (ends if late else events).append(end)
    return [*events, *ends, DoneEvent(reason=StopReason(message.stop_reason), message=message)]


def _events_of_part(
    index: int, piece: AssistantContent
) -> tuple[Event, type[TextDelta | ThinkingDelta | ToolCallDelta], Event, str]:
    match piece.kind:
        case "text":
            return TextStart(index=index), TextDelta, TextEnd(index=index, content=piece), piece.text
        case "thinking":
            return ThinkingStart(index=index), ThinkingDelta, ThinkingEnd(index=index, content=piece), piece.thinking
        case "toolCall":
            start = ToolCallStart(index=index, id=piece.id, name=piece.name)
            return start, ToolCallDelta, ToolCallEnd(index=index, tool_call=piece), encode_arguments(piece.arguments)
        case "native":
            raise EncodeError("generated replies have no native blocks")


def _pieces(text: str, dice: Random) -> list[str]:
    pieces: list[str] = []
    while text:
        size = dice.randrange(1, 40)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def check_any_reply(record: Protocol, model: Model, seed: int) -> None:
    """A reply of another protocol, streamed: text, thinking, calls, stop reason and counts are read back.

    Raises:
        BrokenLaw: one of them differs.
    """
    del model
    if record.stream_encoder is None:
        return
    law, where = "a reply of another protocol is streamed", f"seed {seed}"
    events, message = make_reply(seed)
    try:
        frames = encode_events(record, events)
    except EncodeError:  # the protocol has no thinking
        events, message = make_reply(seed, thinks=False)
        frames = encode_events(record, events)
    _, back = decode_frames(record, frames)
    expect_equal(record, law, where, _given(back, back, record), _given(message, back, record))


def _given(message: AssistantMessage, back: AssistantMessage, record: Protocol) -> object:
    """Return what every protocol carries; counts and stop reasons only if the protocol has them, as `back` shows."""
    has_ids = "id" not in record.not_carried
    usage = message.usage
    return {
        "text": "".join("".join(piece.text.split()) for piece in message.content if piece.kind == "text"),
        "thinking": "".join(piece.thinking for piece in message.content if piece.kind == "thinking"),
        "calls": [(call.id if has_ids else "", call.name, call.arguments) for call in message.tool_calls()],
        "stop": message.stop_reason if back.raw_stop_reason is not None else None,
        "tokens": None
        if usage is None or back.usage is None
        else (usage.input + usage.cache_read + usage.cache_write, usage.output),
    }


def check_written_errors(record: Protocol) -> None:
    """`classify` finds the kind of a failure in what was written for it, as a body and as the end of a stream.

    Raises:
        BrokenLaw: the kind differs, or a status that asks for a wait has no `retry-after`.
    """
    if record.encode_error is None:
        return
    for failure in _failures():
        status, headers, body = encode_error(failure, protocol=record.name)
        where = f"{failure.kind}: {failure.message!r}"
        found = classify(body, status=status, headers=headers)
        _expect_kind(record, "an error keeps its kind", where, found, failure)
        # A spent budget reports when it is full again, if that is known; any other time would be wrong.
        if status in (429, 503, 529) and failure.kind != "quota" and "retry-after" not in headers:
            fail(record, "an error has the time to wait", where, f"no retry-after with status {status}")
        if record.stream_encoder is not None:
            _check_stream_error(record, failure, where)


def _check_stream_error(record: Protocol, failure: Failure, where: str) -> None:
    law = "the error of a stream keeps its kind"
    for count in (0, 3):
        events: Sequence[Event] = make_reply(2, thinks=False)[0][:count]
        encoder = stream_encoder(protocol=record.name, model=record.example)
        frames = [frame for event in events for frame in encoder.feed(event)]
        read, message = decode_frames(record, [*frames, *encoder.fail(failure), *encoder.finish()])
        expect_equal(record, law, where, [event.type for event in read if event.type in ("done", "error")], ["error"])
        _expect_kind(record, law, f"{where}, {count} events", classify(message), failure)


def _expect_kind(record: Protocol, law: str, where: str, found: Failure, failure: Failure) -> None:
    """Compare two kinds; a failure of no known kind may be written as one of the server."""
    if failure.kind != FailureKind.UNKNOWN or found.kind != FailureKind.SERVER:
        expect_equal(record, law, where, found.kind, failure.kind)


_MESSAGES: Final = (
    "",
    "boom",
    "prompt is too long",
    "Rate limit reached",
    "Invalid API key",
    "overloaded",
    "timed out",
)


def _failures() -> list[Failure]:
    plain = [Failure(kind=kind, message=message) for kind in FailureKind for message in _MESSAGES]
    counted = Failure(kind=FailureKind.OVERFLOW, message="too long", used=210_000, limit=200_000)
    return [*plain, counted, Failure(kind=FailureKind.RATE_LIMIT, message="slow", retry_after=1.5)]
