"""A server that streams the replies of `streamed`: `python benchmarks/stream_server.py`.

It is a separate process, so that its time is not counted, and ends with its standard input. It prints its address. The
first part of a path is the protocol, the second the way of streaming: `live`, one event at a time with a short pause,
so that each is read alone, or `at-once`, everything in one write.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import BinaryIO, Final

from cases import WRITERS, is_supported
from streamed import mixed_stream

_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END: Final = b"0\r\n\r\n"
_MOMENT: Final = 0.0001
"""Seconds between two events. Real servers are a hundred times slower; the reader has to wait for each event."""


def write_replies() -> Mapping[str, tuple[bytes, ...]]:
    """Make the replies of every protocol, in the chunks of the network."""
    replies: dict[str, tuple[bytes, ...]] = {}
    for protocol, model in WRITERS.items():
        if not is_supported(protocol):
            pieces = mixed_stream(model).pieces
            replies[protocol] = tuple(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return replies


def serve(connection: socket.socket, replies: Mapping[str, tuple[bytes, ...]]) -> None:
    """Answer requests until the client disconnects."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, connection.makefile("rb") as incoming:
        while path := read_request(incoming):
            chunks = replies[path.split("/")[1]]
            if path.split("/")[2] != "live":
                connection.sendall(_HEAD + b"".join(chunks) + _END)
                continue
            connection.sendall(_HEAD)
            for chunk in chunks:
                time.sleep(_MOMENT)
                connection.sendall(chunk)
            connection.sendall(_END)


def read_request(incoming: BinaryIO) -> str:
    """Read one request; return its path, or an empty string at the end."""
    first = incoming.readline().split()
    length = 0
    while (line := incoming.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    incoming.read(length)
    return first[1].decode() if first else ""


def main() -> None:
    """Listen until standard input is closed."""
    replies = write_replies()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection, replies), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        sys.stdin.read()


if __name__ == "__main__":
    main()
