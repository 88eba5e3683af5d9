"""Many readers of one address at once, in a process of their own: `python crowd.py <url> <how many>`.

Prints how long the replies were, one line for each length, so that whoever started it sees whether all got the same.
A process of its own, because every open stream takes a file descriptor on both sides.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections import Counter


def allow_many_files() -> None:
    """Let this process open as many files as the machine allows it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _read(host: str, port: int) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
    length = 0
    while not (line := await reader.readuntil(b"\r\n")).startswith(b"0\r\n"):
        length += len(line)
    writer.close()
    await writer.wait_closed()
    return length


async def _read_all(url: str, many: int) -> Counter[int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return Counter(await asyncio.gather(*(_read(host, int(port)) for _ in range(many))))


if __name__ == "__main__":
    allow_many_files()
    for seen, times in asyncio.run(_read_all(sys.argv[1], int(sys.argv[2]))).items():
        sys.stdout.write(f"{seen} {times}\n")
