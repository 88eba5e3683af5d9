"""Laws over samples: each takes one sample exchange of a protocol's record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.errors import DecodeError, Path, render_path
from segue.protocols.api import resolve_endpoint
from segue.protocols.detection import detect_protocol, detect_reply
from segue.protocols.kit.clues import Clues
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.kit.storable import UNREADABLE
from segue.protocols.kit.streaming import Frame
from segue.testing.broken_law import expect_equal, fail
from segue.testing.call_laws import check_sent_requests
from segue.testing.frames import split_stream, write_stream
from segue.testing.reply_laws import check_own_replies
from segue.testing.stream_laws import check_stream_round_trip, check_streamed_reply, check_written_bytes
from segue.testing.value_laws import (
    check_call_arguments,
    check_half_surrogates,
    check_shifted_indexes,
    check_wrong_values,
)

SampleLaw: TypeAlias = Callable[[Protocol, Sample], None]
"""A function that checks one law on a sample of the protocol."""


def check_request_round_trip(record: Protocol, sample: Sample) -> None:
    """A request that was read is written back unchanged, and `check` accepts it.

    Raises:
        BrokenLaw: it is not.
    """
    if sample.request is None:
        return
    law, endpoint = "a request is written back unchanged", resolve_endpoint(record.example)
    prompt = record.decode_request(sample.request, endpoint)
    expect_equal(record, law, sample.name, record.encode_request(prompt, endpoint), sample.request)
    named = endpoint if prompt.model is None else resolve_endpoint(replace(record.example, id=prompt.model))
    if violations := record.check(sample.request, named):
        fail(record, "check accepts a request that the provider accepts", sample.name, repr(violations))


def check_detection(record: Protocol, sample: Sample) -> None:
    """A request and a reply are recognised, where the record has clues for them.

    Raises:
        BrokenLaw: detection names another protocol.
    """
    law = "a body is recognised"
    if sample.request is not None and replace(record.clues, reply_keys={}, turns_key="messages") != Clues():
        expect_equal(record, law, f"{sample.name}, request", detect_protocol(sample.request), record.name)
    keys = record.clues.reply_keys
    if sample.response is not None and not keys.keys().isdisjoint(sample.response):
        expect_equal(record, law, f"{sample.name}, response", detect_reply(sample.response), record.name)


def check_response_round_trip(record: Protocol, sample: Sample) -> None:
    """A whole reply that was read is written back unchanged.

    Raises:
        BrokenLaw: it is not.
    """
    if sample.response is not None:
        law, endpoint = "a reply is written back unchanged", resolve_endpoint(record.example)
        message = record.decode_response(sample.response, endpoint, {})
        expect_equal(record, law, sample.name, record.encode_response(message, endpoint), sample.response)


def check_folded_stream(record: Protocol, sample: Sample) -> None:
    """The folded stream equals the whole reply; `start` comes first, one terminal event last, and nothing after it.

    Raises:
        BrokenLaw: one of these does not hold.
    """
    if sample.stream is None:
        return
    law = "the folded stream equals the whole reply"
    events, message = _decode_stream(record, sample.stream)
    _check_events(record, sample.name, events)
    last = events[-1]
    final = last.message if last.type == "done" or last.type == "error" else None
    expect_equal(record, law, sample.name, final, message)
    if final is not None:
        _check_parts(record, sample.name, events, final)
    if sample.response is not None:
        whole = record.decode_response(sample.response, resolve_endpoint(record.example), {})
        expect_equal(record, law, sample.name, msgspec.to_builtins(message), msgspec.to_builtins(whole))


def _check_parts(record: Protocol, where: str, events: Sequence[Event], final: AssistantMessage) -> None:
    """Compare the events with the message: the parts that they end, the id and the model of the start."""
    law = "the events hold all of the message"
    first = events[0]
    if first.type == "start":
        expect_equal(record, law, f"{where}, id", first.id or final.response_id, final.response_id)
        expect_equal(record, law, f"{where}, model", first.model or final.response_model, final.response_model)
    ended: dict[int, str] = {}
    for event in events:
        match event.type:
            case "text_end" | "thinking_end" | "native":
                ended[event.index] = event.content.kind
            case "toolcall_end":
                ended[event.index] = "toolCall"
            case _:
                pass
    expect_equal(record, law, where, ended, {at: piece.kind for at, piece in enumerate(final.content)})


def check_split_stream(record: Protocol, sample: Sample) -> None:
    """Any split of the bytes of a stream gives the same events.

    Raises:
        BrokenLaw: a split gives other events.
    """
    if sample.stream is None or record.framing == "none":
        return
    wanted, _ = _decode_stream(record, sample.stream)
    stream = b"".join(write_stream(record.framing, sample))
    for size in (1, 2, 7, 64, len(stream)):
        events, _ = _decode_stream(record, split_stream(record.framing, stream, size))
        expect_equal(record, "any split of the bytes gives the same events", f"{sample.name}, {size}", events, wanted)


def check_broken_stream(record: Protocol, sample: Sample) -> None:
    """A stream that stops after any frame, or reports an error, ends with exactly one terminal event.

    Raises:
        BrokenLaw: it has none or several, or an error in the stream does not give an `error` event.
    """
    frames = sample.stream or ()
    for count in range(len(frames)):
        events, _ = _decode_stream(record, frames[:count])
        _check_events(record, f"{sample.name}, first {count} frames", events)
    if sample.stream_error is not None:
        for count in (0, len(frames) // 2):
            events, _ = _decode_stream(record, (*frames[:count], sample.stream_error))
            where = f"{sample.name}, an error after {count} frames"
            _check_events(record, where, events)
            expect_equal(record, "an error in a stream ends it", where, events[-1].type, "error")


def check_tool_names(record: Protocol, sample: Sample) -> None:
    """Tool names that were changed for the request are mapped back, in a whole reply and in a stream.

    Raises:
        BrokenLaw: a call has the changed name.
    """
    law, endpoint = "tool names are mapped back", resolve_endpoint(record.example)
    if sample.response is not None:
        wire = [call.name for call in record.decode_response(sample.response, endpoint, {}).tool_calls()]
        names = {name: f"mcp.{name}" for name in wire}
        mapped = record.decode_response(sample.response, endpoint, names).tool_calls()
        expect_equal(record, law, sample.name, [call.name for call in mapped], [names[name] for name in wire])
    if sample.stream is not None:
        wire = [call.name for call in _decode_stream(record, sample.stream)[1].tool_calls()]
        names = {name: f"mcp.{name}" for name in wire}
        mapped = _decode_stream(record, sample.stream, names)[1].tool_calls()
        expect_equal(record, law, f"{sample.name}, stream", [c.name for c in mapped], [names[name] for name in wire])


def check_damaged_stream(record: Protocol, sample: Sample) -> None:
    """A stream ends with one terminal event even if a frame has a key removed, replaced or added at any depth.

    Raises:
        BrokenLaw: the decoder raises, or the stream has no terminal event, or several.
    """
    frames = list(sample.stream or ())
    for at, frame in enumerate(frames):
        for damaged, change in _damaged(frame):
            where = f"{sample.name}, frame {at}{change}"
            try:
                events, message = _decode_stream(record, [*frames[:at], damaged, *frames[at + 1 :]])
            except Exception as error:  # noqa: BLE001 - any exception is the finding
                fail(record, "a damaged stream is read", where, f"{type(error).__name__}: {error}")
            if UNREADABLE in (message.error_message or ""):
                fail(record, "a damaged stream is read", where, message.error_message or "")
            _check_events(record, where, events)


def check_damaged_bodies(record: Protocol, sample: Sample) -> None:
    """A body with a key removed, replaced or added at any depth is written back unchanged, or refused.

    Raises:
        BrokenLaw: `check` or the codec raises anything but `DecodeError`, or the body is not written back unchanged.
    """
    endpoint, law = resolve_endpoint(record.example), "a damaged body is read or refused"
    for body, where in _damaged(sample.request):
        try:
            record.check(body, endpoint)
            back = record.encode_request(record.decode_request(body, endpoint), endpoint)
        except DecodeError as error:
            if error.reason.startswith(UNREADABLE):
                fail(record, law, f"{sample.name}, request{where}", str(error))
            continue
        except Exception as error:  # noqa: BLE001 - any exception is the finding
            fail(record, law, f"{sample.name}, request{where}", f"{type(error).__name__}: {error}")
        expect_equal(record, law, f"{sample.name}, request{where}", back, body)
    for body, where in _damaged(sample.response):
        try:
            back = record.encode_response(record.decode_response(body, endpoint, {}), endpoint)
        except DecodeError as error:
            if error.reason.startswith(UNREADABLE):
                fail(record, law, f"{sample.name}, response{where}", str(error))
            continue
        except Exception as error:  # noqa: BLE001 - the same
            fail(record, law, f"{sample.name}, response{where}", f"{type(error).__name__}: {error}")
        expect_equal(record, law, f"{sample.name}, response{where}", back, body)


_ODD_VALUES: Final[tuple[object, ...]] = (None, 7, "odd", [], {}, [None])
_UNKNOWN: Final = "vendor_key"


def _damaged(value: object, path: Path = ()) -> Iterator[tuple[Any, str]]:
    """Yield copies of a JSON value, each with one key removed, replaced or added, and a description of the change.

    The change is in an object at any depth.
    """
    if isinstance(value, dict):
        node = cast("dict[str, object]", value)
        for key, inner in node.items():
            place = render_path((*path, key))
            yield {name: item for name, item in node.items() if name != key}, f" without {place}"
            for odd in _ODD_VALUES:
                yield {**node, key: odd}, f" with {place}: {odd!r}"
            for changed, where in _damaged(inner, (*path, key)):
                yield {**node, key: changed}, where
        for added in (None, {"a": [1]}):
            yield {**node, _UNKNOWN: added}, f" with {render_path((*path, _UNKNOWN))}: {added!r}"
    elif isinstance(value, list):
        items = cast("list[object]", value)
        for at, item in enumerate(items):
            for changed, where in _damaged(item, (*path, at)):
                yield [*items[:at], changed, *items[at + 1 :]], where


def _decode_stream(
    record: Protocol, frames: Sequence[Frame], names: Mapping[str, str] | None = None
) -> tuple[list[Event], AssistantMessage]:
    decoder = record.stream_decoder(resolve_endpoint(record.example), names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()], decoder.message


def _check_events(record: Protocol, where: str, events: Sequence[Event]) -> None:
    law = "a stream begins with start and ends with one terminal event"
    kinds = [event.type for event in events]
    if not kinds or kinds[0] != "start" or kinds.count("start") != 1:
        fail(record, law, where, f"the events begin with {kinds[:3]}")
    if [kind for kind in kinds if kind in ("done", "error")] != [kinds[-1]]:
        fail(record, law, where, f"the events end with {kinds[-3:]}")


SAMPLE_LAWS: Final[tuple[SampleLaw, ...]] = (
    check_request_round_trip,
    check_response_round_trip,
    check_detection,
    check_folded_stream,
    check_split_stream,
    check_broken_stream,
    check_tool_names,
    check_damaged_stream,
    check_damaged_bodies,
    check_wrong_values,
    check_half_surrogates,
    check_call_arguments,
    check_shifted_indexes,
    check_stream_round_trip,
    check_streamed_reply,
    check_written_bytes,
    check_sent_requests,
    check_own_replies,
)
"""The laws that are checked on the samples of a protocol."""
