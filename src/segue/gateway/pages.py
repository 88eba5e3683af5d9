"""The endpoints of the gateway itself: health, metrics, rows of requests, conversations, and a page to switch models.

They show rows without content. Where clients need a key, these endpoints need it, too; otherwise they answer only to
this machine, because the gateway then listens nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from segue.conversation.messages import Usage
from segue.errors import UnknownModel
from segue.gateway.guarding import find_tenant, is_own_host, is_remote
from segue.gateway.intake import Refused
from segue.gateway.metrics import CONTENT_TYPE
from segue.gateway.service import Gateway, now_ms
from segue.gateway.store.database import StoreError
from segue.json_text import encode_valid_json
from segue.version import __version__

_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_TenantEndpoint: TypeAlias = Callable[[Request, str], Awaitable[Response]]
_GREETING: Final = "This is a segue gateway. Use this address as the base URL of a client; /health tells its version.\n"
_MOST_ROWS: Final = 500
_PAGE: Final = "index.html"
_PAGE_TYPES: Final = {_PAGE: "text/html", "page.js": "text/javascript", "page.css": "text/css"}
_PAGE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""The page has no content of its own: its script asks the endpoints, with the key that the user typed."""


class _BilledRow(msgspec.Struct, rename="camel"):
    """The part of a row that caching concerns."""

    conversation: str
    usage: Usage | None = None
    saved: float | None = None


class _Caching(msgspec.Struct):
    """What caching did: requests, their input tokens, those read from a cache, and dollars saved."""

    requests: int = 0
    input: int = 0
    cached: int = 0
    saved: float = 0.0


def pages(gateway: Gateway) -> list[Route]:
    """Give the routes."""

    async def health(_: Request) -> Response:
        return _json({"status": "ok", "version": __version__})

    async def root(_: Request) -> Response:
        return Response(_GREETING, media_type="text/plain")

    ready, metrics = _operator_endpoints(gateway)
    requests, one_request = _request_endpoints(gateway)
    conversations, choose = _conversation_endpoints(gateway)

    def guarded(endpoint: _TenantEndpoint) -> _Endpoint:
        async def check(request: Request) -> Response:
            headers = dict(request.headers)
            runtime = gateway.runtime
            if not is_own_host(headers, runtime.host_names):
                return _json({"error": "the Host or Origin header is not one of this gateway"}, 403)
            tenant = find_tenant(headers, request.url.query, runtime.key_digests)
            if tenant is None:
                return _json({"error": "the key is not one of this gateway"}, 401)
            if not runtime.key_digests and not gateway.authenticated and is_remote(request.scope.get("client")):
                return _json({"error": "clients of other machines need a key; set listen.keys"}, 403)
            return await endpoint(request, tenant)

        return check

    async def page(request: Request) -> Response:
        name = str(request.path_params.get("name", _PAGE))
        kind = _PAGE_TYPES.get(name)
        if kind is None or not is_own_host(dict(request.headers), gateway.runtime.host_names):
            return _json({"error": "there is no such page"}, 404)
        data = files("segue.gateway").joinpath("page", name).read_bytes()
        return Response(data, media_type=kind, headers=_PAGE_HEADERS)

    return [
        Route("/", root),
        Route("/health", health),
        Route("/readyz", ready),
        Route("/metrics", metrics),
        Route("/segue", page),
        Route("/segue/page/{name}", page),
        Route("/segue/requests", guarded(requests)),
        Route("/segue/requests/{name}", guarded(one_request)),
        Route("/segue/conversations", guarded(conversations)),
        Route("/segue/conversations/{name}", guarded(choose), methods=["PUT", "POST"]),
    ]


def _operator_endpoints(gateway: Gateway) -> tuple[_Endpoint, _Endpoint]:
    """Give the endpoints for who runs the gateway: whether it can take requests, and its counters."""

    async def ready(_: Request) -> Response:
        if gateway.has_store and not gateway.store.is_available:
            return _away()
        return _json({"status": "ready"})

    async def metrics(request: Request) -> Response:
        runtime = gateway.runtime
        digests = runtime.metrics_digests
        if not digests and (runtime.key_digests or gateway.authenticated):
            return _json({"error": "these are counts of all clients; set listen.metrics_key"}, 403)
        if not is_own_host(dict(request.headers), runtime.host_names):
            return _json({"error": "the Host or Origin header is not one of this gateway"}, 403)
        if find_tenant(request.headers, "", digests) is None:
            return _json({"error": "the key is not that of listen.metrics_key"}, 401)
        gauges = {
            "requests_running": gateway.intake.running,
            "store_available": gateway.store.is_available or not gateway.has_store,
        }
        return Response(gateway.metrics.render(gauges), media_type=CONTENT_TYPE)

    return ready, metrics


def _request_endpoints(gateway: Gateway) -> tuple[_TenantEndpoint, _TenantEndpoint]:
    """Give the endpoints that list the rows of requests and show one."""

    async def requests(request: Request, tenant: str) -> Response:
        store = gateway.store.store
        if store is None:
            return _json({"requests": []})
        limit = _number(request.query_params.get("limit"), 50)
        before = request.query_params.get("before")
        rows = await gateway.store.read(
            lambda: store.list_requests(tenant, min(limit, _MOST_ROWS), None if before is None else _number(before, 0))
        )
        if rows is None:
            return _away()
        return _json({"requests": [msgspec.Raw(row) for row in rows]})

    async def one_request(request: Request, tenant: str) -> Response:
        store = gateway.store.store
        name = str(request.path_params["name"])
        row = gateway.find_recent_row(name, tenant)
        try:
            if row is None and store is not None:
                row = await gateway.store.fetch(lambda: store.get_request(name, tenant))
        except StoreError:
            return _away()
        if row is None:
            return _json({"error": f"there is no request {name!r}; its row may have expired"}, 404)
        return Response(row, media_type="application/json")

    return requests, one_request


async def _sum_caching(gateway: Gateway, tenant: str) -> dict[str, _Caching]:
    """Add up what caching did in each conversation, over the newest requests."""
    store = gateway.store.store
    found: dict[str, _Caching] = {}
    listed = None if store is None else await gateway.store.read(lambda: store.list_requests(tenant, _MOST_ROWS, None))
    for data in listed or []:
        row = msgspec.json.decode(data, type=_BilledRow)
        if row.usage is not None:
            sums = found.setdefault(row.conversation, _Caching())
            sums.requests += 1
            sums.input += row.usage.input + row.usage.cache_read + row.usage.cache_write
            sums.cached += row.usage.cache_read
            sums.saved += row.saved or 0.0
    return found


def _conversation_endpoints(gateway: Gateway) -> tuple[_TenantEndpoint, _TenantEndpoint]:
    """Give the endpoints that list conversations and send one to another model."""

    async def conversations(_: Request, tenant: str) -> Response:
        rows = await gateway.conversations.list_rows(tenant)
        caching, listed = await _sum_caching(gateway, tenant), gateway.router.listed()
        return _json({"conversations": rows, "caching": caching, "models": listed, "drift": gateway.drift})

    async def choose(request: Request, tenant: str) -> Response:
        try:
            with gateway.intake.admitted(tenant, gateway.runtime) as admission:
                body = await admission.read_body(request.receive, request.headers)
            given: object = msgspec.json.decode(body)
        except Refused as refused:
            return _json({"error": str(refused)}, refused.status or 429)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            given = None
        model = given.get("model", "") if isinstance(given, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if model is not None and (not isinstance(model, str) or not model):
            return _json({"error": 'send {"model": "provider/id"}, or {"model": null} to end the choice'}, 400)
        if model is not None:
            try:
                gateway.router.find(model)
            except UnknownModel as error:
                return _json({"error": str(error)}, 404)
        name = str(request.path_params["name"])
        try:
            is_known = await gateway.conversations.choose(name, model, tenant, now_ms())
        except StoreError:
            return _away()
        if not is_known:
            return _json({"error": f"there is no conversation {name!r}"}, 404)
        return _json({"conversation": request.path_params["name"], "model": model})

    return conversations, choose


def _away() -> Response:
    response = _json({"error": "the database of the gateway does not answer; try again"}, 503)
    response.headers["retry-after"] = "2"
    return response


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 16 else default


def _json(value: object, status: int = 200) -> Response:
    return Response(encode_valid_json(value), status_code=status, media_type="application/json")
