"""What can break below a request, told in our words: the errors of httpx2, sorted, without the secrets in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.client.flow.steps import Broken
from segue.client.http.keys import conceal
from segue.client.http.settings import import_httpx2
from segue.failures.failure import FailureKind

_KINDS: Final[Mapping[str, FailureKind]] = {
    "DecodingError": FailureKind.SERVER,
    "InvalidURL": FailureKind.INVALID_REQUEST,
    "LocalProtocolError": FailureKind.INVALID_REQUEST,
    "UnsupportedProtocol": FailureKind.INVALID_REQUEST,
}
"""By the name of the error; whatever is not here is the network's fault."""

_STALE: Final = frozenset({"ReadError", "RemoteProtocolError", "WriteError"})
"""How it shows that nobody is at the other end any more."""
CONNECTING: Final = "connection.connect_"
"""How the names of steps begin that a transport takes for a new connection.            (httpcore2 2.16.0: trace)"""

_MESSAGES: Final[Mapping[str, str]] = {
    "ConnectTimeout": "no connection in time",
    "PoolTimeout": "no free connection in time",
    "ReadTimeout": "nothing came in time",
    "WriteTimeout": "the request could not be sent in time",
}


def list_faults() -> tuple[type[Exception], ...]:
    """Give every error that means: this exchange is broken, another one may not be."""
    httpx2 = import_httpx2()
    return (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)


def is_stale(error: Exception, *, is_new: bool) -> bool:
    """Whether a kept connection was closed at the other end before it was used again: nobody has heard us yet."""
    return not is_new and type(error).__name__ in _STALE


def explain_fault(error: Exception, secrets: tuple[str, ...]) -> Broken:
    """Say what broke. The error itself is not kept: its text may hold a header, its frames the whole request."""
    name = type(error).__name__
    text = conceal(str(error), secrets) or "no more is known"
    return Broken(
        f"{_MESSAGES.get(name, 'the connection failed')} ({name}: {text})", _KINDS.get(name, FailureKind.NETWORK)
    )
