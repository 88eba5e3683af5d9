"""Who may use a gateway: keys of clients, and the Host and Origin headers.

A page in a browser can send requests to this machine; a Host header that is not one of the gateway's own (DNS
rebinding) and an Origin of another site are refused. Keys are compared by their whole digest, in constant time.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

_KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key", "api-key")
_LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


def find_tenant(headers: Mapping[str, str], query: str, digests: frozenset[bytes]) -> str | None:
    """Give the tenant of a request by its headers or its query; None if it has no valid key.

    Without keys there is one tenant.
    """
    if not digests:
        return ""
    given = next((value for name in _KEY_HEADERS if (value := headers.get(name))), None)
    authorization = headers.get("authorization", "")
    if given is None and authorization[:7].lower() == "bearer ":
        given = authorization[7:].strip()
    if not given and "key=" in query:
        given = dict(parse_qsl(query)).get("key")
    if not given:
        return None
    digest = sha256(given.encode("utf-8", "replace")).digest()
    is_known = False
    for known in digests:
        is_known |= hmac.compare_digest(digest, known)
    return digest.hex()[:16] if is_known else None


def is_remote(client: object) -> bool:
    """Whether the client of a connection, `(host, port)`, is another machine. Sockets without an address are local."""
    try:
        return not ip_address(cast("tuple[str, int]", client)[0]).is_loopback
    except (TypeError, IndexError, ValueError):
        return False


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
    name = given.rpartition(":")[0] if given.rpartition(":")[2].isdigit() else given
    return name.lower() in _LOCAL_NAMES or given.lower() in names or name.lower() in names
