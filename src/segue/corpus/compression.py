"""Compressed files, by the end of their names: gzip, and zstd with Python 3.14 or the package zstandard."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast, final

from segue.errors import MissingExtra

if TYPE_CHECKING:
    from typing import Any


_CHUNK: Final = 1 << 15
"""Compressed bytes that are read at once; chats have seventeen times as many."""


@final
class Compression(NamedTuple):
    """How files of one ending are read and written."""

    reading: Callable[[BinaryIO], BinaryIO]
    writing: Callable[[BinaryIO], BinaryIO]


def _read_gzip(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))


def _write_gzip(file: BinaryIO) -> BinaryIO:
    # Without the time and the name in the header the same requests give the same bytes.
    return cast("BinaryIO", gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0))


def _zstd() -> Any:  # noqa: ANN401 - either of two modules
    try:
        return import_module("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    except ModuleNotFoundError:
        raise MissingExtra("a file that ends in .zst needs the package zstandard", extra="corpus") from None


def _read_zstd(file: BinaryIO) -> BinaryIO:
    module = _zstd()
    if hasattr(module, "ZstdFile"):
        return cast("BinaryIO", module.ZstdFile(file, "rb"))
    return cast("BinaryIO", _Frames(file, module.ZstdDecompressor().decompressobj))


@final
class _Frames(io.RawIOBase):
    """Reads the frames of a zstd file. The reader of zstandard takes a file that was cut for one that is complete."""

    def __init__(self, file: BinaryIO, new_frame: Callable[[], Any]) -> None:
        self._file, self._new_frame = file, new_frame
        self._frame: Any = None
        """The frame that has begun; None between two frames."""
        self._given = b""
        """What was read past the end of the previous frame."""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - as in the base class
        while not self._ready:
            data = self._given or self._file.read(_CHUNK)
            self._given = b""
            if not data:
                if self._frame is not None:
                    raise EOFError("the compressed file ends before the end of its last frame")
                return 0
            frame = self._frame = self._frame or self._new_frame()
            self._ready = memoryview(frame.decompress(data))
            if frame.eof:
                self._given, self._frame = frame.unused_data, None
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def _write_zstd(file: BinaryIO) -> BinaryIO:
    module = _zstd()
    if hasattr(module, "ZstdFile"):
        return cast("BinaryIO", module.ZstdFile(file, "wb"))
    return cast("BinaryIO", module.ZstdCompressor().stream_writer(file, closefd=False))


COMPRESSIONS: Final = {
    ".gz": Compression(_read_gzip, _write_gzip),
    ".zst": Compression(_read_zstd, _write_zstd),
}


def open_reader(file: BinaryIO, ending: str) -> BinaryIO:
    """Return a reader of the content of a file; `ending` is empty for a file that is not compressed."""
    if not ending:
        return file
    return cast("BinaryIO", io.BufferedReader(cast("Any", COMPRESSIONS[ending].reading(file)), 1 << 18))


def open_writer(file: BinaryIO, ending: str) -> BinaryIO:
    """Return a writer that compresses into a file; closing it does not close the file."""
    return COMPRESSIONS[ending].writing(file) if ending else file
