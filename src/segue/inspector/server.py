"""The server of the inspector: one page and a few endpoints, for one user.

Every URL contains a random token, and `guard.py` refuses requests of other pages. Nothing leaves the machine: the page
loads nothing from other servers, and its content security policy forbids it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from secrets import token_urlsafe
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from segue.inspector.answers import Answers, PageAnswer, failed
from segue.inspector.guard import Guard

_TYPES: Final[Mapping[str, str]] = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
PARTS: Final = (
    "inspector.css",
    "inspector.js",
    "before.js",
    "elements.js",
    "plan.js",
    "rows.js",
    "targets.js",
    "transport.js",
)
"""The files of the page, in addition to `index.html`."""
_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of the largest conversation that the page may send; a larger one would fill the memory."""
_TOO_LARGE: Final = "the conversation is larger than 256 MB, the limit of this page; use `segue convert`"


def new_token() -> str:
    """Make a random token for the URL."""
    return token_urlsafe(18)


def make_app(token: str, answers: Answers, *, names: frozenset[str], allowed: frozenset[str]) -> ASGIApp:
    """Make the server; `Guard` explains `names` and `allowed`."""

    async def answer(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST:
                return _response(failed(_TOO_LARGE, 413))
        path, given = request.path_params["path"], dict(request.query_params)
        return _response(await run_in_threadpool(answers.answer, path, given, bytes(body)))

    routes = [
        Route("/", _file("index.html")),
        *(Route(f"/{name}", _file(name)) for name in PARTS),
        Route("/api/{path:path}", answer, methods=["GET", "POST"]),
    ]
    return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), names, allowed)


def _response(answer: PageAnswer) -> Response:
    return Response(answer.data, status_code=answer.status, media_type=answer.kind)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    data = files("segue.inspector").joinpath("page", name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(_: Request) -> Response:
        return Response(data, media_type=kind)

    return serve
