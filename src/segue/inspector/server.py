"""The inspector's server: one page and three questions, for one person on this machine.

Who may ask: whoever knows the random token in the address. The name under which the server is asked has to be its own,
so that no other site can be made to point here, and a request that a page of another origin sends is refused. Nothing
leaves the machine: the page loads nothing from elsewhere, and its policy forbids it to try.
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
"""Bytes of a conversation that the page may send; more would only fill this machine's memory."""


@final
class _Question(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    source: str | None = None
    targets: tuple[str, ...] = ()
    reasoning: ReasoningPolicy = "auto"


def new_token() -> str:
    """Make a word that nobody guesses."""
    return token_urlsafe(18)


def make_app(token: str, hosts: frozenset[str], catalogue: Catalogue, opened: str = "") -> ASGIApp:
    """Make the server. `hosts` are the names it answers to; `opened` is a conversation that is there from the start."""

    async def start(_: Request) -> Response:
        models = [{"name": model.full_name(), "protocol": model.protocol} for model in catalogue.models]
        return _json({"models": models, "protocols": list(PROTOCOLS), "opened": opened})

    async def inspected(request: Request) -> Response:
        return await _answer(request, lambda asked: _inspect(asked, catalogue))

    async def wire(request: Request) -> Response:
        return await _answer(request, lambda asked: _wire(asked, catalogue))

    routes = [
        Route("/", _file("index.html")),
        Route("/inspector.css", _file("inspector.css")),
        Route("/inspector.js", _file("inspector.js")),
        Route("/api/start", start),
        Route("/api/inspect", inspected, methods=["POST"]),
        Route("/api/wire", wire, methods=["POST"]),
    ]
    return _Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), hosts)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    data = files("segue.inspector").joinpath("page", name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(_: Request) -> Response:
        return Response(data, media_type=kind)

    return serve


async def _answer(request: Request, work: Callable[[_Question], bytes]) -> Response:
    """Read a question and answer it beside the loop; what is wrong with it is said in a sentence."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            return _json({"error": "this conversation is too large for the page"}, status=413)
    try:
        asked = msgspec.json.decode(body, type=_Question)
        return Response(await run_in_threadpool(work, asked), media_type="application/json")
    except msgspec.DecodeError as error:
        return _json({"error": f"not a question of this page: {error}"}, status=400)
    except SegueError as error:
        return _json({"error": str(error)}, status=422)


def _inspect(asked: _Question, catalogue: Catalogue) -> bytes:
    document = open_pasted(asked.text, asked.source)
    models = [_find(name, catalogue) for name in asked.targets]
    return msgspec.json.encode(inspect(document, models, Policy(reasoning=asked.reasoning)))


def _wire(asked: _Question, catalogue: Catalogue) -> bytes:
    document = open_pasted(asked.text, asked.source)
    return wire_json(document, _find(asked.targets[0], catalogue), Policy(reasoning=asked.reasoning))


def _find(name: str, catalogue: Catalogue) -> Model:
    """Find a model by its name, or any model of a protocol by the protocol's."""
    if name in PROTOCOLS:
        return Model("any", get_protocol(name).provider, name, reasoning=True)
    return catalogue.get(name)


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


class _Guard:
    """Lets in who asks for this server by its own name, from its own page, and tells the browser to trust nobody."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if headers.get("host") not in self._hosts or (origin and origin.partition("://")[2] not in self._hosts):
            await PlainTextResponse("refused: not this server's own page", 403)(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                guards = [(name.encode(), value.encode()) for name, value in _GUARDS.items()]
                message["headers"] = [*message["headers"], *guards]
            await send(message)

        await self._app(scope, receive, send_guarded)
