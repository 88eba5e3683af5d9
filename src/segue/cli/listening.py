"""Listening on an address: what is wrong if that fails, and what to do about it."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Mapping
from typing import Final

from segue.errors import SettingsError

_REASONS: Final[Mapping[int, str]] = {
    errno.EADDRINUSE: "port {port} of {host} is in use; {another}",
    errno.EACCES: "port {port} may only be used by an administrator; choose one above 1023",
    errno.EADDRNOTAVAIL: "{host} is not an address of this machine; use 127.0.0.1, or 0.0.0.0 for all addresses",
}


def listen(
    host: str,
    port: int,
    *,
    another: str = "choose another one with --port, or leave it out",
    is_shared: bool = False,
) -> socket.socket:
    """Listen on an address; `another` is what to do if the port is in use.

    `is_shared`: others of this user may listen there, too, if they want to share it as well.

    Raises:
        SettingsError: the address cannot be used.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, reuse_port=is_shared)
    except (TypeError, UnicodeError) as error:  # a name that cannot be encoded
        raise _unknown(host) from error
    except OSError as error:
        code = error.errno or 0
        if code < 0:  # an error of the resolver, EAI_NONAME for example
            raise _unknown(host) from error
        reason = _REASONS.get(code, "cannot listen on {host}, port {port}: {error}")
        message = reason.format(host=host, port=port, error=error.strerror or error, another=another)
        raise SettingsError(message, key="port") from error
    # Accepted sockets inherit it. uvloop sets it itself; asyncio only on sockets that name their protocol, which those
    # of `create_server` do not. Without it, the second write of a reply waits 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_often(host: str, port: int, count: int, *, another: str) -> list[socket.socket]:
    """Listen several times on an address: once for each worker where Linux divides connections, else once for all.

    Raises:
        SettingsError: the address cannot be used.
    """
    # One that is not shared: it finds out whether another program has the port, even one that would share it.
    listener = listen(host, port, another=another)
    if sys.platform != "linux":  # macOS gives all connections to the last one that listens
        return [listener] * count
    port = listener.getsockname()[1]
    listener.close()
    return [listen(host, port, another=another, is_shared=True) for _ in range(count)]


def _unknown(host: str) -> SettingsError:
    return SettingsError(f"there is no address {host!r}; use 127.0.0.1, or 0.0.0.0 for all addresses", key="host")
