"""Server-sent events are the same however the bytes are split."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.framing.sse import SseDecoder, SseEvent


def events_of(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.finish()


CASES: dict[str, tuple[bytes, list[SseEvent]]] = {
    "a named event": (b'event: ping\ndata: {"a":1}\n\n', [SseEvent("ping", b'{"a":1}')]),
    "an event without a name": (b"data: x\n\n", [SseEvent("", b"x")]),
    "lines that end in CRLF": (
        b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
        [SseEvent("a", b"1"), SseEvent("", b"2")],
    ),
    "lines that end in CR": (b"event: a\rdata: 1\r\rdata: 2\r\r", [SseEvent("a", b"1"), SseEvent("", b"2")]),
    "line ends of all kinds in one event": (b"event: a\rdata: 1\r\ndata: 2\n\r", [SseEvent("a", b"1\n2")]),
    "several data lines are joined": (b"data: one\ndata:\ndata: three\n\n", [SseEvent("", b"one\n\nthree")]),
    "comments are skipped": (b": keep-alive\n\n:\ndata: 1\n: between\n\n", [SseEvent("", b"1")]),
    "an event without data is dropped": (b"event: a\n\ndata: 1\n\n", [SseEvent("", b"1")]),
    "an empty data line is data": (b"data\n\ndata:\n\n", [SseEvent("", b""), SseEvent("", b"")]),
    "one space after the colon is not part of the value": (
        b"data:  x\n\ndata:x\n\n",
        [SseEvent("", b" x"), SseEvent("", b"x")],
    ),
    "the last name of an event holds": (b"event: a\nevent:b\ndata: 1\n\n", [SseEvent("b", b"1")]),
    "an id stays until the next one": (
        b"id: 7\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n",
        [SseEvent("", b"1", "7"), SseEvent("", b"2", "7"), SseEvent("", b"3", "")],
    ),
    "an id with a NUL is no id": (b"id: a\0b\ndata: 1\n\n", [SseEvent("", b"1")]),
    "unknown fields are skipped": (b"retry: 10\nnonsense\nfoo: bar\ndata: 1\n\n", [SseEvent("", b"1")]),
    "a field name may not be indented": (b" data: 1\n\ndata: 2\n\n", [SseEvent("", b"2")]),
    "a byte order mark comes first": (b"\xef\xbb\xbfdata: 1\n\n", [SseEvent("", b"1")]),
    "only the first byte order mark is one": (b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\ndata: 2\n\n", [SseEvent("", b"2")]),
    "half a byte order mark is no mark": (b"\xef\xbbdata: 1\n\ndata: 2\n\n", [SseEvent("", b"2")]),
    "line ends of Unicode end no line": (
        "data: a\u2028b\u0085c\x0bd\x0ce\n\n".encode(),
        [SseEvent("", "a\u2028b\u0085c\x0bd\x0ce".encode())],
    ),
    "characters of several bytes": ("data: Grüße 🌍\n\n".encode(), [SseEvent("", "Grüße 🌍".encode())]),
    "the last event lacks its empty line": (
        b"data: 1\n\nevent: e\ndata: 2\n",
        [SseEvent("", b"1"), SseEvent("e", b"2")],
    ),
    "the last line lacks its end": (b"data: 1\n\ndata: [DONE]", [SseEvent("", b"1"), SseEvent("", b"[DONE]")]),
    "the last event has no data": (b"data: 1\n\nevent: e\n", [SseEvent("", b"1")]),
    "names that take turns, and none between them": (
        b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\nevent: a\ndata: 3\n\ndata: 4\n\nevent: a\ndata: 5\n\n",
        [SseEvent("a", b"1"), SseEvent("b", b"2"), SseEvent("a", b"3"), SseEvent("", b"4"), SseEvent("a", b"5")],
    ),
    "a known name with several data lines, and with an id": (
        b"event: a\ndata: 1\n\nevent: a\ndata: 2\ndata: 3\n\nevent: a\ndata: 4\nid: 7\n\nevent: a\ndata: 5\n\n",
        [SseEvent("a", b"1"), SseEvent("a", b"2\n3"), SseEvent("a", b"4", "7"), SseEvent("a", b"5", "7")],
    ),
    "an empty stream": (b"", []),
    "a byte order mark and nothing else": (b"\xef\xbb\xbf", []),
    "two bytes that could have become a mark": (b"\xef\xbb", []),
}


@pytest.mark.parametrize(("stream", "expected"), CASES.values(), ids=CASES.keys())
def test_a_stream_gives_its_events(stream: bytes, expected: list[SseEvent]):
    assert events_of(stream) == expected


@pytest.mark.parametrize(("stream", "expected"), CASES.values(), ids=CASES.keys())
def test_every_single_cut_gives_the_same_events(stream: bytes, expected: list[SseEvent]):
    assert events_of(*(stream[at : at + 1] for at in range(len(stream)))) == expected
    for at in range(len(stream) + 1):
        assert events_of(stream[:at], b"", stream[at:]) == expected


@pytest.mark.parametrize(("stream", "expected"), CASES.values(), ids=CASES.keys())
def test_an_event_at_a_time_gives_the_same_events(stream: bytes, expected: list[SseEvent]):
    assert events_of(*(block + b"\n\n" for block in stream.removesuffix(b"\n\n").split(b"\n\n"))) == expected


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: a",
                b"data",
                b"event: e",
                b"id: 1",
                b":c",
                b"\n",
                b"\r",
                b"\r\n",
                b"",
                "é".encode(),
                b"\xef\xbb\xbf",
            ]
        )
    ),
    st.lists(st.integers(0, 80)),
)
def test_any_cuts_of_any_lines_give_the_same_events(pieces: list[bytes], cuts: list[int]):
    stream = b"".join(pieces)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert events_of(*(stream[a:b] for a, b in itertools.pairwise(places))) == events_of(stream)


def test_an_event_is_given_as_soon_as_its_empty_line_is_there():
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\r\n\r") == [SseEvent("", b"1")]
    assert decoder.feed(b"\ndata: 2\r\n\r\n") == [SseEvent("", b"2")]


def test_a_line_that_comes_in_many_pieces_costs_its_length():
    def seconds(count: int) -> float:
        decoder, piece = SseDecoder(), b"x" * 16
        began = time.process_time()
        decoder.feed(b"data: ")
        for _ in range(count):
            decoder.feed(piece)
        (event,) = decoder.feed(b"\n\n")
        assert len(event.data) == 16 * count
        return time.process_time() - began

    small = min(seconds(5_000) for _ in range(3))
    large = min(seconds(50_000) for _ in range(3))
    assert large < 30 * small, "ten times the pieces may not cost a hundred times the work"


def test_reading_a_chunk_of_many_events_costs_little_more_than_splitting_it():
    payload = json.dumps(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word " * 8}}
    )
    event = f"event: content_block_delta\ndata: {payload}\n\n".encode()
    chunk = event * (65_536 // len(event))

    def seconds(action) -> float:
        began = time.process_time()
        for _ in range(20):
            action()
        return time.process_time() - began

    def split() -> None:
        for block in chunk.split(b"\n\n"):
            block.partition(b"\n")

    decoded = min(seconds(lambda: SseDecoder().feed(chunk)) for _ in range(5))
    assert decoded < 20 * min(seconds(split) for _ in range(5))
