"""Messages of an AWS event stream are the same however the bytes are split, and the same as botocore's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from struct import pack
from uuid import UUID
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer, ParserError
from hypothesis import given
from hypothesis import strategies as st

from framing.aws_messages import error, event, exception, framed, header
from segue.errors import DecodeError
from segue.framing import aws_event_stream
from segue.framing.aws_chunks import AwsChunksDecoder
from segue.framing.aws_event_stream import AwsEvent, AwsEventStreamDecoder


def events_of(*chunks: bytes) -> list[AwsEvent]:
    decoder = AwsEventStreamDecoder()
    events = [found for chunk in chunks for found in decoder.feed(chunk)]
    return events + decoder.finish()


EVERY_TYPE = b"".join(
    (
        header("yes", None, 0),
        header("no", None, 1),
        header("byte", -5, 2),
        header("short", -300, 3),
        header("int", 70_000, 4),
        header("long", -(2**40), 5),
        header("bytes", b"\x00\xff", 6),
        header("text", "Grüße 🌍"),
        header("time", 1_700_000_000_000, 8),
        header("uuid", UUID("12345678-1234-5678-1234-567812345678"), 9),
    )
)

CASES: dict[str, tuple[bytes, list[tuple[str, object]]]] = {
    "one event": (event("messageStart", {"role": "assistant"}), [("messageStart", {"role": "assistant"})]),
    "several events": (
        event("a", {"n": 1}) + event("b", {"text": "Grüße 🌍"}) + event("a", {"n": 2}),
        [("a", {"n": 1}), ("b", {"text": "Grüße 🌍"}), ("a", {"n": 2})],
    ),
    "an event without a payload": (event("ping"), [("ping", {})]),
    "an exception": (
        exception("throttlingException", {"message": "Too many requests"}),
        [("throttlingException", {"message": "Too many requests"})],
    ),
    "an error, which has no payload": (
        error("InternalError", 'He said "no"'),
        [("error", {"code": "InternalError", "message": 'He said "no"'})],
    ),
    "a name that JSON has to escape": (event('a"b\\', 1), [('a"b\\', 1)]),
    "nothing at all": (b"", []),
}


@pytest.mark.parametrize(("stream", "expected"), CASES.values(), ids=CASES.keys())
def test_any_cut_gives_the_same_frames(stream: bytes, expected: list[tuple[str, object]]):
    assert [(found.data[0], json.loads(found.data[1])) for found in events_of(stream)] == expected
    assert events_of(*(stream[at : at + 1] for at in range(len(stream)))) == events_of(stream)
    for at in range(len(stream) + 1):
        assert events_of(stream[:at], b"", stream[at:]) == events_of(stream)


def test_headers_of_every_type_are_read_as_botocore_reads_them():
    stream = framed(EVERY_TYPE, b"{}")
    buffer = EventStreamBuffer()
    buffer.add_data(stream)
    theirs = dict(next(iter(buffer)).headers)
    (ours,) = events_of(stream)
    moment = theirs.pop("time")
    if isinstance(moment, datetime):
        moment = int(moment.replace(tzinfo=UTC).timestamp() * 1000)
    assert moment == ours.headers["time"] == 1_700_000_000_000
    assert {name: value for name, value in ours.headers.items() if name != "time"} == theirs


DAMAGED = {
    "a changed bit of the payload": lambda raw: raw[:-6] + bytes([raw[-6] ^ 1]) + raw[-5:],
    "a changed bit of the lengths": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "a changed bit of the last checksum": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_messages_before_damage_are_given_and_the_damage_is_raised(damage):
    stream = event("a", {"n": 1}) + damage(event("b", {"n": 2})) + event("c", {"n": 3})
    for size in (1, 7, len(stream)):
        (found,) = ours(stream, size)[0]
        assert (found, ours(stream, size)[1]) == (ours(event("a", {"n": 1}), 1)[0][0], True)


def test_nothing_behind_damage_is_decoded():
    decoder = AwsEventStreamDecoder()
    assert len(decoder.feed(event("a", 1) + b"\x00" * 16)) == 1
    for more in (event("a", 1), event("b"), b""):
        with pytest.raises(DecodeError):
            decoder.feed(more)
    with pytest.raises(DecodeError):
        decoder.finish()


START, DELTA = event("contentBlockStart", {"n": 1}), event("contentBlockDelta", {"n": 1})
"""Two kinds whose messages have the same lengths."""


@pytest.mark.parametrize("at", range(len(DELTA)))
def test_every_changed_byte_is_noticed_in_a_message_with_a_cached_head(at: int):
    turned = DELTA[:at] + bytes([DELTA[at] ^ 4]) + DELTA[at + 1 :]
    for chunks in ([DELTA, DELTA, turned], [DELTA, DELTA + turned], [DELTA, DELTA, turned[:50], turned[50:]]):
        found, stumbled = before_damage([*chunks, START, START])
        assert stumbled
        assert [message.data for message in found] == [("contentBlockDelta", b'{"n": 1}')] * 2


def test_kinds_with_messages_of_the_same_length_are_distinguished():
    assert len(START) == len(DELTA)
    for chunks in ([START, DELTA, DELTA, START] * 3, [START + DELTA + DELTA + START] * 3):
        names = [found.event for found in events_of(*chunks)]
        assert names == ["contentBlockStart", "contentBlockDelta", "contentBlockDelta", "contentBlockStart"] * 3


def test_repeated_messages_without_a_payload_and_errors_are_decoded_alike():
    pings = events_of(*[event("ping")] * 3)
    assert [(found.payload, found.data) for found in pings] == [(b"", ("ping", b"{}"))] * 3
    heads = header(":message-type", "error") + header(":error-code", "Gone") + header(":error-message", "no")
    for found in events_of(*[framed(heads, b"{}")] * 3):
        assert (found.event, found.payload, found.data[0]) == ("Gone", b"{}", "error")
        assert json.loads(found.data[1]) == {"code": "Gone", "message": "no"}


def test_a_stream_of_ever_new_headers_is_not_cached_without_limit():
    decoder = AwsEventStreamDecoder()
    names = [f"{number:x}" for number in range(3_000)]
    for size, name in enumerate(names):
        (found,) = decoder.feed(framed(header(":event-type", name), b"x" * size))
        assert (found.event, len(found.payload)) == (name, size)
    assert len(aws_event_stream._HEADS) <= 512
    assert len(aws_event_stream._KINDS) <= 512
    long = framed(header(":event-type", "a") + header("b", b"x" * 60_000, 6), b"{}")
    known = len(aws_event_stream._KINDS)
    assert [found.event for chunk in (long, long) for found in decoder.feed(chunk)] == ["a", "a"]
    assert len(aws_event_stream._KINDS) == known


def with_wrong_prelude(raw: bytes) -> bytes:
    """Give a message with a wrong checksum of the prelude and a correct one of the whole."""
    before = raw[:8] + bytes([raw[8] ^ 1]) + raw[9:-4]
    return before + pack("!I", crc32(before))


@pytest.mark.parametrize("before", [[], [DELTA], [DELTA, DELTA]], ids=["first", "second", "third"])
def test_the_checksum_of_the_prelude_is_verified_too(before):
    for chunks in ([*before, with_wrong_prelude(DELTA)], [b"".join([*before, with_wrong_prelude(DELTA), DELTA])]):
        with pytest.raises(DecodeError):
            events_of(*chunks)


REFUSED = {
    "a header that comes twice": framed(header("a", "1") + header("a", "2")),
    "a header of a type that is none": framed(header("a", "1")[:2] + b"\x0b"),
    "a header longer than the headers": framed(b"\x01a\x07\x00\x09x"),
    "a name that is not UTF-8": framed(b"\x01\xff\x00"),
    "a number that was cut off": framed(b"\x01a\x04\x00"),
    "a UUID that was cut off": framed(b"\x01a\x09" + b"x" * 15),
    "headers longer than allowed": b"".join((h := pack("!II", 200_000, 131_073), pack("!I", crc32(h)))),
    "a payload longer than allowed": b"".join((p := pack("!II", 2**26, 0), pack("!I", crc32(p)))),
    "a message shorter than its frame": b"".join((s := pack("!II", 12, 0), pack("!I", crc32(s)))),
}


@pytest.mark.parametrize("stream", REFUSED.values(), ids=REFUSED.keys())
def test_an_invalid_message_is_refused(stream):
    with pytest.raises(DecodeError):
        events_of(stream)


def test_an_incomplete_message_is_dropped():
    whole = event("a", {"n": 1})
    assert events_of(whole, event("b", {"n": 2})[:-1]) == events_of(whole)


def theirs(stream: bytes, size: int) -> tuple[list[tuple[object, bytes]], bool]:
    """Give what botocore decodes, and whether it raised."""
    buffer, found = EventStreamBuffer(), []
    try:
        for at in range(0, len(stream), size):
            buffer.add_data(stream[at : at + size])
            for message in buffer:
                found.append((message.headers, message.payload))  # noqa: PERF401 - what came before a stumble counts
    except ParserError:
        return found, True
    return found, False


def before_damage(chunks: Iterable[bytes]) -> tuple[list[AwsEvent], bool]:
    """Give what segue decodes, and whether it raised."""
    decoder, found = AwsEventStreamDecoder(), list[AwsEvent]()
    try:
        for chunk in chunks:
            found += decoder.feed(chunk)
        decoder.finish()
    except DecodeError:
        return found, True
    return found, False


def ours(stream: bytes, size: int) -> tuple[list[tuple[object, bytes]], bool]:
    found, stumbled = before_damage(stream[at : at + size] for at in range(0, len(stream), size))
    return [(dict(message.headers), message.payload) for message in found], stumbled


HEADERS = st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=4)
MESSAGES = st.lists(st.tuples(HEADERS, st.binary(max_size=60)), max_size=5)


@given(
    MESSAGES,
    st.integers(1, 3),
    st.integers(1, 400),
    st.none() | st.tuples(st.integers(0, 800), st.integers(1, 255)),
)
def test_botocore_decodes_the_same_complete_or_damaged(messages, times, size, damage):
    stream = times * b"".join(
        framed(b"".join(header(name, value) for name, value in headers.items()), payload)
        for headers, payload in messages
    )
    if damage is not None and damage[0] < len(stream):
        at, bits = damage
        stream = stream[:at] + bytes([stream[at] ^ bits]) + stream[at + 1 :]
    assert ours(stream, size) == theirs(stream, size)


def test_a_message_that_comes_in_many_pieces_costs_its_length():
    def seconds(count: int) -> float:
        stream = framed(header(":event-type", "a"), b"x" * (16 * count))
        decoder, found = AwsEventStreamDecoder(), []
        began = time.process_time()
        for at in range(0, len(stream), 16):
            found += decoder.feed(stream[at : at + 16])
        assert len(found[0].payload) == 16 * count
        return time.process_time() - began

    small = min(seconds(5_000) for _ in range(3))
    large = min(seconds(50_000) for _ in range(3))
    assert large < 30 * small, "ten times the pieces may not cost a hundred times the work"


BROKEN_CHUNKS = {
    "no UTF-8": b'{"bytes": "\xff"}',
    "too deep": b'{"a": ' + b"[" * 5000,
    "no base64": b'{"bytes": "?"}',
    "no bytes": b"{}",
}


@pytest.mark.parametrize("payload", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS.keys())
def test_a_broken_chunk_is_refused(payload):
    heads = header(":event-type", "chunk") + header(":message-type", "event")
    with pytest.raises(DecodeError, match="a chunk cannot be read"):
        AwsChunksDecoder().feed(framed(heads, payload))


def test_an_exception_of_a_stream_of_chunks_whose_payload_is_too_deep_is_an_error():
    heads = header(":exception-type", "throttlingException") + header(":message-type", "exception")
    (frame,) = AwsChunksDecoder().feed(framed(heads, b"[" * 5000))
    assert json.loads(frame)["type"] == "error"
