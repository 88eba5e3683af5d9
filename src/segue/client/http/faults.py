"""Transport errors: the exceptions of httpx2 as kinds of failures, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from segue.client.flow.steps import Broken
from segue.client.http.keys import conceal
from segue.client.http.settings import import_httpx2
from segue.errors import MissingExtra
from segue.failures.failure import FailureKind

_KINDS: Final[Mapping[str, FailureKind]] = {
    "DecodingError": FailureKind.SERVER,
    "InvalidURL": FailureKind.INVALID_REQUEST,
    "LocalProtocolError": FailureKind.INVALID_REQUEST,
    "UnsupportedProtocol": FailureKind.INVALID_REQUEST,
}
"""By the name of the exception; any other is a network failure."""

_STALE: Final = frozenset({"ReadError", "RemoteProtocolError", "WriteError"})
"""The exceptions of a connection that the server has closed."""
CONNECTING: Final = "connection.connect_"
"""The prefix of the trace events of a new connection.                                  (httpcore2 2.16.0: trace)"""

_MESSAGES: Final[Mapping[str, str]] = {
    "ConnectTimeout": "the connection timed out",
    "PoolTimeout": "no connection of the pool became free in time",
    "ReadTimeout": "the server sent nothing within the timeout; a larger timeout= waits longer",
    "WriteTimeout": "sending the request timed out",
}


_CONNECT: Final = frozenset({"ConnectError", "ConnectTimeout"})
"""The exceptions of a connection that could not be made."""
_UNREACHABLE: Final = (
    "{message}: {server} cannot be reached ({error}); check the network, the address, and that the server runs"
)


def list_faults() -> tuple[type[Exception], ...]:
    """Return the exceptions that mean that this HTTP exchange failed."""
    try:
        httpx2 = import_httpx2()
    except MissingExtra:  # only the echo model answers
        return (OSError,)
    return (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)


def is_stale(error: Exception, *, is_new: bool) -> bool:
    """Whether the server closed an idle connection before it was reused, so that it did not read the request."""
    return not is_new and type(error).__name__ in _STALE


def explain_fault(error: Exception, secrets: tuple[str, ...], url: str = "") -> Broken:
    """Describe a transport error; `url` is that of a request for which no connection could be made.

    The exception is not kept: its text and frames may contain secrets.
    """
    name = type(error).__name__
    text = conceal(str(error), secrets) or "no details"
    message = _MESSAGES.get(name, "the connection failed")
    if name in _CONNECT and (server := _origin(url)):
        text = _UNREACHABLE.format(message=message, server=conceal(server, secrets), error=f"{name}: {text}")
    else:
        text = f"{message} ({name}: {text})"
    return Broken(text, _KINDS.get(name, FailureKind.NETWORK), is_unanswered=name == "ReadTimeout")


def _origin(url: str) -> str:
    """Return the scheme, host and port of a URL, without a user, a password or a path."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}" if host else ""
