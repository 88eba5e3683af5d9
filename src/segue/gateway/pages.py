"""The endpoints of the gateway itself: health, metrics, and the console (`console.py`) with its page.

Where clients need a key, these endpoints need it, too; otherwise they answer only to this machine, because the gateway
then listens nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from segue.foundation.version import __version__
from segue.gateway.console import Console, ScopedEndpoint, away, json_response
from segue.gateway.guarding import find_digest, is_own_host, is_remote
from segue.gateway.intake import Refused
from segue.gateway.keys import ANYONE
from segue.gateway.metrics import CONTENT_TYPE
from segue.gateway.peers import sum_figures
from segue.gateway.reloading import describe_held
from segue.gateway.service import Gateway

_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_GREETING: Final = "This is a segue gateway. Use this address as the base URL of a client; /health tells its version.\n"
_PAGE: Final = "index.html"
_PAGE_FILES: Final = {
    _PAGE: ("segue.gateway", "text/html"),
    "console.js": ("segue.gateway", "text/javascript"),
    "contents.js": ("segue.gateway", "text/javascript"),
    "costs.js": ("segue.gateway", "text/javascript"),
    "keys.js": ("segue.gateway", "text/javascript"),
    "plots.js": ("segue.gateway", "text/javascript"),
    "console.css": ("segue.gateway", "text/css"),
    # One design: the page of the inspector is in the same package.
    "elements.js": ("segue.inspector", "text/javascript"),
    "plan.js": ("segue.inspector", "text/javascript"),
    "rows.js": ("segue.inspector", "text/javascript"),
    "inspector.css": ("segue.inspector", "text/css"),
}
_PAGE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""The page has no content itself: its script asks the endpoints, with the key that the user typed."""


def pages(gateway: Gateway) -> list[Route]:
    """Return the routes."""

    async def health(request: Request) -> Response:
        found: dict[str, object] = {"status": "ok", "version": __version__}
        if (held := gateway.held) is not None:
            is_near = not is_remote(request.scope.get("client"))
            is_own = is_near and is_own_host(dict(request.headers), gateway.runtime.host_names)
            # Names of providers and hosts are not for everyone who can reach the gateway.
            found["configuration"] = describe_held(held) if is_own else {"state": "held"}
        return json_response(found)

    async def root(_: Request) -> Response:
        return Response(_GREETING, media_type="text/plain")

    ready, metrics = _operator_endpoints(gateway)

    def guarded(endpoint: ScopedEndpoint) -> _Endpoint:
        async def check(request: Request) -> Response:
            headers = dict(request.headers)
            runtime = gateway.runtime
            if not is_own_host(headers, runtime.host_names):
                return json_response({"error": "the Host or Origin header is not one of this gateway"}, 403)
            is_away = is_remote(request.scope.get("client"))
            if find_digest(headers, "") in runtime.admin_digests:
                if is_away and not runtime.config.listen.admin_remote:
                    return json_response({"error": "the admin key is for this machine; see listen.admin_remote"}, 403)
                return await endpoint(request, None)
            try:
                key = gateway.authenticate(headers, request.url.query, runtime)
            except Refused as refused:
                return json_response({"error": str(refused)}, 401)
            if key is ANYONE and not gateway.authenticated and is_away:
                return json_response({"error": "clients of other machines need a key; set listen.keys"}, 403)
            return await endpoint(request, key.tenant)

        return check

    async def page(request: Request) -> Response:
        name = str(request.path_params.get("name", _PAGE))
        package, kind = _PAGE_FILES.get(name, ("", ""))
        if not package or not is_own_host(dict(request.headers), gateway.runtime.host_names):
            return json_response({"error": "there is no such page"}, 404)
        data = files(package).joinpath("page", name).read_bytes()
        return Response(data, media_type=kind, headers=_PAGE_HEADERS)

    return [
        Route("/", root),
        Route("/health", health),
        Route("/readyz", ready),
        Route("/metrics", metrics),
        Route("/segue", page),
        Route("/segue/page/{name}", page),
        *Console(gateway).routes(guarded),
    ]


def _operator_endpoints(gateway: Gateway) -> tuple[_Endpoint, _Endpoint]:
    """Return the endpoints for who runs the gateway: whether it can take requests, and its counters."""

    async def ready(_: Request) -> Response:
        if gateway.has_store and not gateway.store.is_available:
            return away()
        return json_response({"status": "ready"})

    async def metrics(request: Request) -> Response:
        runtime = gateway.runtime
        digests = runtime.metrics_digests
        if not digests and (gateway.needs_key(runtime) or gateway.authenticated):
            return json_response({"error": "these are counts of all clients; set listen.metrics_key"}, 403)
        if not is_own_host(dict(request.headers), runtime.host_names):
            return json_response({"error": "the Host or Origin header is not one of this gateway"}, 403)
        if digests and find_digest(request.headers, "") not in digests:
            return json_response({"error": "the key is not that of listen.metrics_key"}, 401)
        counted, _, running = await sum_figures(gateway)
        gauges = {
            "requests_running": running,
            "store_available": gateway.store.is_available or not gateway.has_store,
        }
        return Response(counted.render(gauges), media_type=CONTENT_TYPE)

    return ready, metrics
