"""What is kept by hand about providers, and how to find one.

One row a provider; adding an OpenAI-compatible vendor is adding a row. The rows stand in `makers` (who serve what they
make) and `hosts` (who serve other people's models: hosts, gateways, servers at home).

Left out are two names of the catalogue that speak none of our protocols: `radius` and `typesafe`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from segue.models.first_party import FIRST_PARTY
from segue.models.provider import Provider
from segue.models.third_party import THIRD_PARTY

__all__ = ["PROVIDERS", "Provider", "find_row"]

PROVIDERS: Final[Mapping[str, Provider]] = {row.name: row for row in (*FIRST_PARTY, *THIRD_PARTY)}


def _host(url: str | None) -> str | None:
    try:
        return urlsplit(url).hostname if url else None
    except ValueError:
        # Whether an address can be reached is the client's to say.
        return None


_LOCAL: Final = frozenset({"localhost", "127.0.0.1", None})
_BY_HOST: Final[Mapping[str | None, Provider]] = {
    host: row
    for row in reversed(tuple(PROVIDERS.values()))  # the first row of a host is the one to keep
    for host in [_host(row.base_url)]
    if host not in _LOCAL and "{" not in str(host)
}


def find_row(name: str, base_url: str | None = None) -> Provider | None:
    """Find a row by its name, else by the host of a base URL: a vendor stays itself under a name of one's own."""
    return PROVIDERS.get(name) or _BY_HOST.get(_host(base_url))
