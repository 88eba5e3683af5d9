"""The bytes of a reply: decompressed in small pieces, and no more of them than a reply can have.

The iterators of an HTTP client are not used: they decompress each piece that arrives as a whole, so that 0.4 MB of a
reply became 2.3 GB in memory. A test looks for other readers of replies.

Facts:
- `zlib` decompresses at most `max_length` bytes at a time and keeps the rest of its input.  (Python 3.11: zlib)
- `deflate` is the zlib format; some servers send the raw one.                                (RFC 9110, 8.4.1.2)
- A server sends only encodings that the request names.                                       (RFC 9110, 12.5.3)
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Final

from segue.client.flow.steps import Broken
from segue.client.http.settings import import_httpx2
from segue.failures.failure import FailureKind

ACCEPTED: Final[dict[str, str]] = {"accept-encoding": "gzip, deflate"}
"""The encodings that requests ask for, unless they name others: those whose decompression can be limited."""
LARGEST_REPLY: Final = 100_000_000
"""Bytes of the largest reply, decompressed. Replies with several images in base64 have some ten million."""
TOO_LARGE: Final = Broken(
    f"the reply is larger than {LARGEST_REPLY // 1_000_000} MB; the rest was not read",
    FailureKind.UNKNOWN,  # the same request would get, and be billed for, the same again
)
_PIECE: Final = 65_536
_GZIP: Final = zlib.MAX_WBITS | 16


class _Inflater:
    """Decompresses one encoding."""

    def __init__(self, encoding: str) -> None:
        self._is_deflate = encoding == "deflate"
        self._inner = zlib.decompressobj(zlib.MAX_WBITS if self._is_deflate else _GZIP)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what a piece of input gives, in small pieces."""
        try:
            out = self._inner.decompress(data, _PIECE)
        except zlib.error:
            if not self._is_deflate:
                raise
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
            out = self._inner.decompress(data, _PIECE)
        self._is_deflate = False  # only the beginning decides the form
        while out:
            yield out
            out = self._inner.decompress(self._inner.unconsumed_tail, _PIECE)


class _Inflaters:
    """Decompresses what was compressed by several encodings in turn."""

    def __init__(self, encodings: str) -> None:
        names = [name.strip().lower().removeprefix("x-") for name in encodings.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        for name in names:
            if name not in ("gzip", "deflate"):
                raise import_httpx2().DecodingError(f"the reply is compressed with {name!r}, which was not asked for")
        self._each = [_Inflater(name) for name in reversed(names)]

    def feed(self, data: bytes) -> Iterator[bytes]:
        pieces: Iterator[bytes] = iter((data,))
        for each in self._each:
            pieces = _through(each, pieces)
        return pieces


def _through(inflater: _Inflater, pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        for piece in pieces:
            yield from inflater.feed(piece)
    except zlib.error as error:
        raise import_httpx2().DecodingError(f"the reply cannot be decompressed: {error}") from error


def decompressed(chunks: Iterator[bytes], encodings: str) -> Generator[bytes]:
    """Yield the bytes of a compressed reply in small pieces.

    Raises:
        httpx2.DecodingError: it has another encoding than was asked for, or is damaged.
    """
    inflaters = _Inflaters(encodings)
    for chunk in chunks:
        yield from inflaters.feed(chunk)


async def decompressed_async(chunks: AsyncIterator[bytes], encodings: str) -> AsyncGenerator[bytes]:
    """Yield the bytes of a compressed reply in small pieces, as `decompressed`."""
    inflaters = _Inflaters(encodings)
    async for chunk in chunks:
        for piece in inflaters.feed(chunk):
            yield piece
