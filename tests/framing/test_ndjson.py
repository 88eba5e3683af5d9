"""Lines of JSON are the same however the bytes are split."""

from __future__ import annotations

import time

import pytest

from segue.framing.ndjson import NdjsonDecoder


def lines_of(*chunks: bytes) -> list[bytes]:
    decoder = NdjsonDecoder()
    lines = [line for chunk in chunks for line in decoder.feed(chunk)]
    return lines + decoder.finish()


CASES: dict[str, tuple[bytes, list[bytes]]] = {
    "one value a line": (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    "lines that end in CRLF": (b"{}\r\n[]\r\n", [b"{}", b"[]"]),
    "empty and blank lines are skipped": (b"\n{}\n\n \t\r\n[]\n", [b"{}", b"[]"]),
    "the last line lacks its end": (b'{}\n{"error":"x"}', [b"{}", b'{"error":"x"}']),
    "a CR inside a line ends nothing": (b'{"a":\r1}\n', [b'{"a":\r1}']),
    "characters of several bytes": ('{"a":"é🌍"}\n'.encode(), ['{"a":"é🌍"}'.encode()]),
    "a byte order mark comes first": (b"\xef\xbb\xbf{}\n", [b"{}"]),
    "an empty stream": (b"", []),
}


@pytest.mark.parametrize(("stream", "expected"), CASES.values(), ids=CASES.keys())
def test_any_cut_gives_the_same_lines(stream: bytes, expected: list[bytes]):
    assert lines_of(stream) == expected
    assert lines_of(*(stream[at : at + 1] for at in range(len(stream)))) == expected
    for at in range(len(stream) + 1):
        assert lines_of(stream[:at], b"", stream[at:]) == expected


def test_a_line_that_comes_in_many_pieces_costs_its_length():
    def seconds(count: int) -> float:
        decoder, piece = NdjsonDecoder(), b"x" * 16
        began = time.process_time()
        for _ in range(count):
            decoder.feed(piece)
        (line,) = decoder.feed(b"\n")
        assert len(line) == 16 * count
        return time.process_time() - began

    small = min(seconds(5_000) for _ in range(3))
    large = min(seconds(50_000) for _ in range(3))
    assert large < 30 * small, "ten times the pieces may not cost a hundred times the work"
