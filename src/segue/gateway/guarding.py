"""Who may use a gateway: keys of clients, and the Host and Origin headers.

A page in a browser can send requests to this machine; a Host header that is not one of the gateway's own (DNS
rebinding) and an Origin of another site are refused. Keys are found by their whole digest: how long that takes says
nothing about the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

from segue.gateway.keys import digest_of

_LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


def find_digest(headers: Mapping[str, str], query: str) -> bytes | None:
    """Return the digest of the key that a request has in its headers or its query; None if it has none."""
    given = headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("api-key")
    authorization = headers.get("authorization", "")
    if not given and authorization[:7].lower() == "bearer ":
        given = authorization[7:].strip()
    if not given and "key=" in query:
        given = dict(parse_qsl(query)).get("key")
    return digest_of(given) if given else None


def is_remote(client: object) -> bool:
    """Whether the client of a connection, `(host, port)`, is another machine. Sockets without an address are local."""
    try:
        return _is_remote_host(cast("tuple[str, int]", client)[0])
    except (TypeError, IndexError, ValueError):
        return False


@lru_cache(maxsize=1_000)  # asked twice for each request
def _is_remote_host(host: str) -> bool:
    return not ip_address(host).is_loopback


def is_own_host(headers: Mapping[str, str], names: frozenset[str]) -> bool:
    """Whether the Host header, and the Origin header if there is one, name this gateway."""
    if not _is_named(headers.get("host", ""), names):
        return False
    origin = headers.get("origin")
    return origin is None or _is_named(_netloc(origin), names)


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_named(given: str, names: frozenset[str]) -> bool:
    name = given.rpartition(":")[0] if given.rpartition(":")[2].isdecimal() else given
    return name.lower() in _LOCAL_NAMES or given.lower() in names or name.lower() in names
