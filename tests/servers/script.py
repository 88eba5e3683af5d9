"""Scripts for the scripted server: replies, how they are split into chunks, and where they break."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Literal, Self


class Phase(StrEnum):
    """Where in an exchange it breaks."""

    CONNECTED = "before the request is read"
    ASKED = "after the request was read"
    HEADERS = "within the headers"
    BODY = "within the body"
    END = "before the end of the body"


@dataclass(frozen=True)
class Break:
    """What goes wrong: a reset, an orderly end too early, or a stall until `go_on` is called or the peer closes.

    `after` is the number of body chunks sent before it; half of them when it is not given.
    """

    phase: Phase
    how: Literal["reset", "close", "stall"]
    after: int | None = None


def _phrase(status: int) -> str:
    """Return the reason phrase of a status; some providers have statuses of their own, such as 529."""
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Something Of Its Own"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What one request is answered with: `chunks` are sent one by one, each in a write of its own."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    chunks: Sequence[bytes] = ()
    framing: Literal["chunked", "length", "close"] = "chunked"
    breaks: Break | None = None
    pause: float = 0.0
    """Seconds before each chunk."""
    keep_alive: bool = True

    @classmethod
    def json(cls, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Self:
        """Make a whole reply."""
        body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        named = {"content-type": "application/json", **(headers or {})}
        return cls(status=status, headers=named, chunks=(body,), framing="length")

    @classmethod
    def stream(cls, body: bytes, content_type: str, *, split: int = 0, breaks: Break | None = None) -> Self:
        """Make a streamed reply: the body in pieces of `split` bytes, or in one."""
        size = split or max(1, len(body))
        pieces = tuple(body[at : at + size] for at in range(0, len(body), size))
        return cls(headers={"content-type": content_type}, chunks=pieces, breaks=breaks)

    @classmethod
    def sse(cls, body: bytes, *, split: int = 0, breaks: Break | None = None) -> Self:
        """Make a stream of server-sent events."""
        return cls.stream(body, "text/event-stream", split=split, breaks=breaks)

    def broken(self, phase: Phase, how: Literal["reset", "close", "stall"], after: int | None = None) -> Self:
        """Give the same reply with something going wrong."""
        return replace(self, breaks=Break(phase, how, after))

    def steps(self) -> Iterator[bytes | None]:
        """Give what is written, in order; None is where it breaks."""
        phase = self.breaks.phase if self.breaks is not None else None
        if phase == Phase.ASKED:
            yield None
        head = self._head()
        if phase == Phase.HEADERS:
            yield head[: len(head) // 2]
            yield None
            head = head[len(head) // 2 :]
        yield head
        broken_at = self._broken_at() if phase == Phase.BODY else -1
        for position, chunk in enumerate(self.chunks):
            if position == broken_at:
                yield None
            yield b"%x\r\n%s\r\n" % (len(chunk), chunk) if self.framing == "chunked" else chunk
        if broken_at >= len(self.chunks) or phase == Phase.END:
            yield None
        if self.framing == "chunked":
            yield b"0\r\n\r\n"

    def _broken_at(self) -> int:
        assert self.breaks is not None
        return len(self.chunks) // 2 if self.breaks.after is None else self.breaks.after

    def _head(self) -> bytes:
        headers = dict(self.headers)
        if self.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif self.framing == "length":
            # One byte more than will be sent, if the end is never sent.
            missing = self.breaks is not None and self.breaks.phase == Phase.END
            headers["content-length"] = str(sum(map(len, self.chunks)) + missing)
        if not self.lasting:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    @property
    def lasting(self) -> bool:
        """Whether the connection may be used again."""
        return self.keep_alive and self.framing != "close"
