"""HTTP for the sync client, over httpx2. `async_sending` is the same for asyncio.

Facts:
- A connection is reused only if its reply was read to the end, which often comes after the last event.
                                                                                     (httpcore2 2.16.0, HTTP/1.1)
- A server may close an idle connection at the moment it is reused. The server has not read that request, so it is sent
  again over a new connection.                                                             (RFC 9112, 9.3.1; llama.cpp)
- A blocked read returns when another thread shuts down its socket.                         (POSIX, shutdown(2))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Event as Signal
from threading import Timer
from typing import TYPE_CHECKING, Final, cast

from segue.client.flow.steps import Broken, Head
from segue.client.http.faults import CONNECTING, explain_fault, is_stale, list_faults
from segue.client.http.keys import conceal
from segue.client.http.outgoing_request import OutgoingRequest
from segue.client.http.reply_bytes import ACCEPTED, LARGEST_REPLY, TOO_LARGE, decompressed
from segue.conversation.events import Event

if TYPE_CHECKING:
    import socket

    import httpx2

DRAIN_SECONDS: Final = 0.5
"""Seconds that a server has to end a reply after its last event; after that the connection is closed."""


class Wire:
    """Sends the HTTP requests of one call and reads the replies, one at a time."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http
        self._secrets: tuple[str, ...] = ()
        self._response: httpx2.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._is_read = True  # the reply was read to its end
        self._left = LARGEST_REPLY
        self._woken = Signal()

    def __repr__(self) -> str:
        return "Wire()"

    def conceal(self, text: str) -> str:
        """Remove the keys that were sent from a text."""
        return conceal(text, self._secrets)

    def send(self, outgoing: OutgoingRequest) -> Head | Broken:
        """Send an HTTP request and wait for the status and headers of the reply."""
        self._secrets = (*outgoing.secrets, *self._secrets)
        try:
            response = self._post(outgoing)
        except list_faults() as error:
            return explain_fault(error, self._secrets, outgoing.url)
        self._response = response
        self._is_read = False
        # Compressed streams are rare, and a decompressing iterator costs a tenth of reading (measured 2026-11-15).
        encodings = response.headers.get("content-encoding")
        self._chunks = _iterate(response) if encodings is None else decompressed(_iterate(response), encodings)
        self._left = LARGEST_REPLY
        return Head(response.status_code, dict(response.headers))

    def _post(self, outgoing: OutgoingRequest) -> httpx2.Response:
        http, connecting = self._http, list[str]()

        def note(step: str, _info: object) -> None:
            if step.startswith(CONNECTING):
                connecting.append(step)

        def post() -> httpx2.Response:
            request = http.build_request(
                "POST",
                outgoing.url,
                headers=ACCEPTED | outgoing.headers,
                content=outgoing.content,
                extensions={"trace": note},
            )
            return http.send(request, stream=True)

        try:
            return post()
        except list_faults() as error:
            if not is_stale(error, is_new=bool(connecting)):
                raise
        return post()

    def read(self) -> bytes | Broken | None:
        """Return the next bytes of the reply; None at its end."""
        try:
            for chunk in self._chunks:
                self._left -= len(chunk)
                return chunk if self._left >= 0 else TOO_LARGE
        except list_faults() as error:
            return explain_fault(error, self._secrets)
        self._is_read = True
        return None

    def read_events(self, feed: Callable[[bytes], list[Event]]) -> list[Event] | Broken | None:
        """Read until `feed` returns events; None at the end of the reply."""
        try:
            for chunk in self._chunks:
                self._left -= len(chunk)
                if self._left < 0:
                    return TOO_LARGE
                if events := feed(chunk):
                    return events
        except list_faults() as error:
            return explain_fault(error, self._secrets)
        self._is_read = True
        return None

    def drain(self) -> None:
        """Read a complete reply to its end, if that comes soon, and release it."""
        if self._is_read:
            self.close()
            return
        watch = Timer(DRAIN_SECONDS, self._shut_down)
        watch.start()
        try:
            with suppress(*list_faults()):
                for _ in self._chunks:
                    pass
        finally:
            watch.cancel()
            watch.join()
            self.close()

    def close(self) -> None:
        """Release the reply; its connection is reused only if the reply was read to its end."""
        response, self._response, self._chunks = self._response, None, iter(())
        if response is not None:
            with suppress(*list_faults()):
                response.close()

    def wait(self, seconds: float) -> None:
        """Wait until the time is over or `interrupt` is called."""
        self._woken.wait(seconds)

    def interrupt(self) -> None:
        """End a running `wait` or `read`, from another thread. A `send` without a reply yet cannot be interrupted."""
        self._woken.set()
        self._shut_down()

    def _shut_down(self) -> None:
        response = self._response
        stream = None if response is None else response.extensions.get("network_stream")
        if stream is not None:
            _shut_down(cast("socket.socket | None", stream.get_extra_info("socket")))


def _iterate(response: httpx2.Response) -> Iterator[bytes]:
    # The echo model has its own stream, for programs without httpx2; a sync client returns no other ones.
    return iter(cast("Iterable[bytes]", response.stream))


def _shut_down(connection: socket.socket | None) -> None:
    import socket

    if connection is not None:
        with suppress(OSError):
            # Shut down the socket below TLS: TLS's own shutdown would wait for a lock that the reader holds.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)
