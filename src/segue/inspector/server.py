"""The server of the inspector: one page and five endpoints, for one user on this machine.

Every URL contains a random token. The Host header has to be that of the server, which prevents DNS rebinding, and
requests with another Origin are refused. Nothing leaves the machine: the page loads nothing from other servers, and its
content security policy forbids it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from secrets import token_urlsafe
from typing import Final, final

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from segue.errors import SegueError
from segue.inspector.inspection import inspect, open_pasted, wire_json
from segue.inspector.local_sessions import list_sessions, open_session
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.projection.policy import Policy, ReasoningPolicy
from segue.protocols.registry import PROTOCOLS, get_protocol

_TYPES: Final[Mapping[str, str]] = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_GUARDS: Final[Mapping[str, str]] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of the largest conversation that the page may send; a larger one would fill the memory."""


@final
class _Query(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    source: str | None = None
    targets: tuple[str, ...] = ()
    reasoning: ReasoningPolicy = "auto"


def new_token() -> str:
    """Make a random token for the URL."""
    return token_urlsafe(18)


def make_app(
    token: str, host_names: frozenset[str], catalogue: Catalogue, opened: str = "", *, shows_sessions: bool = False
) -> ASGIApp:
    """Make the server.

    `host_names` are the allowed Host headers; `opened` is the text that the page starts with. `shows_sessions` lets the
    page read the sessions of agents on this machine.
    """

    async def start(_: Request) -> Response:
        models = [{"name": model.full_name(), "protocol": model.protocol} for model in catalogue.models]
        return _json({"models": models, "protocols": list(PROTOCOLS), "opened": opened})

    async def sessions(_: Request) -> Response:
        return _json(await run_in_threadpool(list_sessions) if shows_sessions else [])

    async def session(request: Request) -> Response:
        if not shows_sessions:
            return _json({"error": "sessions are shown only on 127.0.0.1; run `segue ui` without --host"}, status=403)
        return await _answer(request, lambda query: msgspec.json.encode(open_session(query.text)))

    async def inspected(request: Request) -> Response:
        return await _answer(request, lambda query: _inspect(query, catalogue))

    async def wire(request: Request) -> Response:
        return await _answer(request, lambda query: _wire(query, catalogue))

    routes = [
        Route("/", _file("index.html")),
        Route("/inspector.css", _file("inspector.css")),
        Route("/inspector.js", _file("inspector.js")),
        Route("/api/start", start),
        Route("/api/sessions", sessions),
        Route("/api/session", session, methods=["POST"]),
        Route("/api/inspect", inspected, methods=["POST"]),
        Route("/api/wire", wire, methods=["POST"]),
    ]
    return _Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), host_names)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    data = files("segue.inspector").joinpath("page", name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(_: Request) -> Response:
        return Response(data, media_type=kind)

    return serve


async def _answer(request: Request, work: Callable[[_Query], bytes]) -> Response:
    """Read a request of the page and answer it from a thread; an error is one sentence."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            return _json(
                {"error": "the conversation is larger than 256 MB, the limit of this page; use `segue convert`"},
                status=413,
            )
    try:
        query = msgspec.json.decode(body, type=_Query)
        return Response(await run_in_threadpool(work, query), media_type="application/json")
    except msgspec.DecodeError as error:
        return _json({"error": f"the page sent an invalid request: {error}; reload the page"}, status=400)
    except SegueError as error:
        return _json({"error": str(error)}, status=422)


def _inspect(query: _Query, catalogue: Catalogue) -> bytes:
    document = open_pasted(query.text, query.source)
    models = [_find(name, catalogue) for name in query.targets]
    return msgspec.json.encode(inspect(document, models, Policy(reasoning=query.reasoning)))


def _wire(query: _Query, catalogue: Catalogue) -> bytes:
    document = open_pasted(query.text, query.source)
    return wire_json(document, _find(query.targets[0], catalogue), Policy(reasoning=query.reasoning))


def _find(name: str, catalogue: Catalogue) -> Model:
    """Find a model by its name; the name of a protocol stands for any model of it."""
    if name in PROTOCOLS:
        return Model("any", get_protocol(name).provider, name, reasoning=True)
    return catalogue.get(name)


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


class _Guard:
    """Refuses requests with another Host or Origin header, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, host_names: frozenset[str]) -> None:
        self._app = app
        self._host_names = host_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        names = self._host_names
        if headers.get("host") not in names or (origin and origin.partition("://")[2] not in names):
            text = "refused: open the inspector with the address that `segue ui` printed"
            await PlainTextResponse(text, 403)(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                guards = [(name.encode(), value.encode()) for name, value in _GUARDS.items()]
                message["headers"] = [*message["headers"], *guards]
            await send(message)

        await self._app(scope, receive, send_guarded)
