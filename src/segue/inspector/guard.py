"""Who may talk to the inspector.

Facts:
- A page of another site can make the browser send requests to any address, also to this machine; it cannot read the
  random token in the address, and browsers send its Origin.                           (Fetch standard)
- DNS rebinding needs a name that the attacker controls. A Host header with an IP address, or `localhost`, cannot be the
  result of it.                                                                          (RFC 6761; Fetch standard)
- A forwarded port has another number, and a proxy may keep the name that the browser used in Origin and put its own
  into Host, or the other way round. So ports are not compared with the server's, but Origin with Host.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ADDED: Final[Mapping[str, str]] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_OWN_REQUESTS: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site of the page itself, and of an address that the user typed or opened."""


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can connect to this address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@final
class Guard:
    """Refuses requests with another Host or Origin, and adds security headers to every response.

    `names` are those of this machine, without `localhost` and IP addresses. `allowed` are names under which a proxy
    makes the server reachable; it may put another name into Host.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str], allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = frozenset(map(str.lower, allowed))
        self._names = self._allowed | {"localhost"} | set(map(str.lower, names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._find_refusal(Headers(scope=scope))
        if refused is not None:
            await PlainTextResponse(f"refused: {refused}", 403)(scope, receive, _add_headers(send))
            return
        await self._app(scope, receive, _add_headers(send))

    def _find_refusal(self, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if not self._is_allowed(host):
            name = _name_of(host) or host
            return f"the inspector does not answer to the name {name!r}; start it with --allow-host {name}"
        origin = headers.get("origin")
        if origin is not None:
            netloc = urlsplit(origin).netloc
            if netloc != host and _name_of(netloc) not in self._allowed:
                return "the request comes from another page; open the address that `segue ui` printed"
        is_navigation = headers.get("sec-fetch-mode") == "navigate"
        if not is_navigation and headers.get("sec-fetch-site", "none") not in _OWN_REQUESTS:
            return "the request comes from another page; open the address that `segue ui` printed"
        return None

    def _is_allowed(self, host: str) -> bool:
        name = _name_of(host)
        if name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def _name_of(netloc: str) -> str:
    """Return the name or address of `name:port`, in lower case; empty if it is not valid."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def _add_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.encode(), value.encode()) for name, value in _ADDED.items()]
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return send_with_headers
