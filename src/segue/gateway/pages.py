"""The endpoints of the gateway itself: health, rows of requests, conversations.

They show rows without content. Where clients need a key, these endpoints need it, too; otherwise they answer only to
this machine, because the gateway then listens nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from segue.errors import UnknownModel
from segue.gateway.guarding import find_tenant, is_own_host
from segue.gateway.service import Gateway
from segue.version import __version__

_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_MOST_ROWS: Final = 500


def pages(gateway: Gateway) -> list[Route]:
    """Give the routes."""

    async def health(_: Request) -> Response:
        return _json({"status": "ok", "version": __version__})

    async def requests(request: Request) -> Response:
        store = gateway.store.store
        if store is None:
            return _json({"requests": []})
        limit = _number(request.query_params.get("limit"), 50)
        before = request.query_params.get("before")
        rows = await gateway.store.read(
            lambda: store.list_requests(min(limit, _MOST_ROWS), None if before is None else _number(before, 0))
        )
        return _json({"requests": [msgspec.Raw(row) for row in rows or []]})

    async def one_request(request: Request) -> Response:
        store = gateway.store.store
        name = str(request.path_params["name"])
        row = None if store is None else await gateway.store.read(lambda: store.get_request(name))
        if row is None:
            return _json({"error": f"there is no request {name!r}; its row may have expired"}, 404)
        return Response(row, media_type="application/json")

    conversations, choose = _conversation_endpoints(gateway)

    def guarded(endpoint: _Endpoint) -> _Endpoint:
        async def check(request: Request) -> Response:
            headers = dict(request.headers)
            names = frozenset(name.lower() for name in gateway.config.listen.host_names)
            if not is_own_host(headers, names):
                return _json({"error": "the Host or Origin header is not one of this gateway"}, 403)
            if find_tenant(headers, dict(request.query_params), gateway.key_digests) is None:
                return _json({"error": "the key is not one of this gateway"}, 401)
            return await endpoint(request)

        return check

    return [
        Route("/health", health),
        Route("/segue/requests", guarded(requests)),
        Route("/segue/requests/{name}", guarded(one_request)),
        Route("/segue/conversations", guarded(conversations)),
        Route("/segue/conversations/{name}", guarded(choose), methods=["PUT", "POST"]),
    ]


def _conversation_endpoints(gateway: Gateway) -> tuple[_Endpoint, _Endpoint]:
    """Give the endpoints that list conversations and send one to another model."""

    async def conversations(_: Request) -> Response:
        return _json({"conversations": gateway.conversations.listed()})

    async def choose(request: Request) -> Response:
        try:
            given: object = msgspec.json.decode(await request.body())
        except msgspec.DecodeError:
            given = None
        model = given.get("model", "") if isinstance(given, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if model is not None and (not isinstance(model, str) or not model):
            return _json({"error": 'send {"model": "provider/id"}, or {"model": null} to end the choice'}, 400)
        if model is not None:
            try:
                gateway.router.find(model, "openai-chat")
            except UnknownModel as error:
                return _json({"error": str(error)}, 404)
        gateway.conversations.choose(str(request.path_params["name"]), model)
        return _json({"conversation": request.path_params["name"], "model": model})

    return conversations, choose


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 16 else default


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")
