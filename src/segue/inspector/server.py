"""The server of the inspector: one page and a few endpoints, for one user.

Every URL contains a random token, and `guard.py` refuses requests of other pages. Nothing leaves the machine: the page
loads nothing from other servers, and its content security policy forbids it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from secrets import token_urlsafe
from typing import Final, TypeAlias, TypeVar, final

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from segue.errors import DecodeError, LoadError, SegueError
from segue.inspector.guard import Guard
from segue.inspector.inspection import find_target, open_conversation, wire_json
from segue.inspector.library import SHORT, Library, OpenConversation
from segue.inspector.local_sessions import list_sessions
from segue.inspector.pieces import find_image
from segue.inspector.side_by_side import SideBySide
from segue.json_text import encode_valid_json
from segue.models.catalogue import Catalogue
from segue.projection.policy import Policy, ReasoningPolicy
from segue.protocols.registry import PROTOCOLS

_TYPES: Final[Mapping[str, str]] = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_PARTS: Final = ("inspector.css", "inspector.js", "before.js", "elements.js", "rows.js", "targets.js")
"""The files of the page, besides `index.html`."""
_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of the largest conversation that the page may send; a larger one would fill the memory."""
_MOST_ROWS: Final = 200
_LONGEST: Final = 2_000_000
"""How many rows, and how many characters of each text, one answer may have."""


@final
class _Query(msgspec.Struct, frozen=True, kw_only=True):
    document: str
    target: str = ""
    reasoning: ReasoningPolicy = "auto"
    rows: tuple[int, ...] = ()
    length: int = SHORT
    beside: str = ""
    """Another target, whose request is shown in the place of the stored conversation."""
    text: str = ""
    """What to find."""
    other: str = ""
    """The key of another open conversation: the one to show beside this one, both as stored, or the request before."""


@final
class _SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    title: str = ""


_Asked = TypeVar("_Asked")
_Inspected: TypeAlias = Callable[[_Query, OpenConversation, OpenConversation | None], bytes]
"""Answers a question about an open conversation, and about the other one that it names."""


def new_token() -> str:
    """Make a random token for the URL."""
    return token_urlsafe(18)


def make_app(
    token: str,
    library: Library,
    catalogue: Catalogue,
    *,
    names: frozenset[str],
    allowed: frozenset[str],
    shows_sessions: bool = False,
    example: Path | None = None,
) -> ASGIApp:
    """Make the server; `Guard` explains `names` and `allowed`.

    `shows_sessions` lets the page list and read the sessions of agents on this machine. `example` is a session that the
    page offers to open.
    """

    async def start(_: Request) -> Response:
        begun = await run_in_threadpool(_start, library, has_example=example is not None)
        return Response(begun, media_type="application/json")

    async def models(_: Request) -> Response:
        return _json([[model.full_name(), model.protocol] for model in catalogue.models])

    async def opened(request: Request) -> Response:
        given = request.query_params
        protocol = given.get("source") or None

        def work(data: bytes) -> bytes:
            if (key := given.get("document")) is not None:
                other = _find(library, key)
                if not given.get("nth", "").isdecimal():
                    return encode_valid_json(other.describe())
                name, found = other.name, other.opened.open_nth(int(given["nth"]), protocol)
            elif "example" in given and example is not None:
                name, found = example.name, open_conversation(example.read_bytes(), example.name, None)
            else:
                name = given.get("name", "")
                try:
                    found = open_conversation(data, name or "the pasted text", protocol)
                except (LoadError, DecodeError) as error:
                    raise LoadError(f"{name}: {error}" if name else str(error)) from error
            return encode_valid_json(library.add(name, found).describe())

        return await _answer(request, bytes, work)

    def inspected(of: _Inspected) -> Callable[[Request], Awaitable[Response]]:
        def work(query: _Query) -> bytes:
            other = _find(library, query.other) if query.other else None
            return of(query, _find(library, query.document), other)

        async def answer(request: Request) -> Response:
            return await _answer(request, lambda data: msgspec.json.decode(data, type=_Query), work)

        return answer

    def wire(query: _Query, found: OpenConversation, _: OpenConversation | None) -> bytes:
        found.inspect(query.target, query.reasoning)
        model = find_target(query.target, found.document, catalogue)
        return wire_json(found.document, model, Policy(reasoning=query.reasoning))

    async def image(request: Request) -> Response:
        found = library.find(request.path_params["document"])
        data = None if found is None else found.find_image(request.path_params["image"])
        shown = None if data is None else await run_in_threadpool(find_image, data)
        if shown is None:
            return _json({"error": "there is no such image"}, status=404)
        return Response(shown[0], media_type=shown[1])

    routes = [
        Route("/", _file("index.html")),
        *(Route(f"/{name}", _file(name)) for name in _PARTS),
        Route("/api/start", start),
        Route("/api/models", models),
        Route("/api/open", opened, methods=["POST"]),
        *_session_routes(library, shows_sessions=shows_sessions),
        Route("/api/inspect", inspected(_summary), methods=["POST"]),
        Route("/api/facts", inspected(_facts), methods=["POST"]),
        Route("/api/rows", inspected(_rows), methods=["POST"]),
        Route("/api/find", inspected(_matches), methods=["POST"]),
        Route("/api/before", inspected(_compared), methods=["POST"]),
        Route("/api/wire", inspected(wire), methods=["POST"]),
        Route("/api/images/{document}/{image}", image),
    ]
    return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)]), names, allowed)


def _session_routes(library: Library, *, shows_sessions: bool) -> list[Route]:
    """Give the endpoints that list the sessions of agents on this machine, and open one."""

    async def listed(_: Request) -> Response:
        return _json(await run_in_threadpool(list_sessions) if shows_sessions else [])

    async def opened(request: Request) -> Response:
        return await _answer(request, lambda data: msgspec.json.decode(data, type=_SessionQuery), work)

    def work(query: _SessionQuery) -> bytes:
        if not shows_sessions:
            raise _Forbidden("sessions are shown only to this machine; run `segue ui` without --host and --allow-host")
        return encode_valid_json(
            library.add(query.title or query.source, open_conversation(query.source, query.source, None)).describe()
        )

    return [Route("/api/sessions", listed), Route("/api/session", opened, methods=["POST"])]


class _Closed(SegueError):
    """The page asks for a conversation that is not kept any more."""


class _Forbidden(SegueError):
    """The page asks for what this server does not show."""


def _find(library: Library, key: str) -> OpenConversation:
    found = library.find(key)
    if found is None:
        raise _Closed("this conversation is no longer open; open it again")
    return found


def _start(library: Library, *, has_example: bool) -> bytes:
    first = library.first
    opened = None if first is None else {**first.describe(), "first": first.first_screen()}
    beside = None if library.beside is None else library.beside.describe()
    return encode_valid_json({"protocols": list(PROTOCOLS), "opened": opened, "beside": beside, "example": has_example})


def _side(query: _Query, found: OpenConversation, other: OpenConversation | None) -> SideBySide:
    if other is not None:
        return found.compare(other)
    return found.inspect(query.target, query.reasoning, query.beside).side


def _summary(query: _Query, found: OpenConversation, other: OpenConversation | None) -> bytes:
    shown = found.inspect(query.target, query.reasoning, query.beside) if other is None else found.compare(other)
    return encode_valid_json(shown.summary())


def _matches(query: _Query, found: OpenConversation, other: OpenConversation | None) -> bytes:
    return encode_valid_json(_side(query, found, other).find(query.text))


def _rows(query: _Query, found: OpenConversation, other: OpenConversation | None) -> bytes:
    length = min(max(query.length, 1), _LONGEST)
    return encode_valid_json(_side(query, found, other).rows(query.rows[:_MOST_ROWS], length, found.keep_image))


def _compared(query: _Query, found: OpenConversation, other: OpenConversation | None) -> bytes:
    if other is None:
        raise _Closed("no request before is open; open it again")
    return msgspec.json.encode(found.inspect(query.target, query.reasoning).compare_with(other.document))


def _facts(query: _Query, found: OpenConversation, _: OpenConversation | None) -> bytes:
    return encode_valid_json(found.inspect(query.target, query.reasoning).facts)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    data = files("segue.inspector").joinpath("page", name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(_: Request) -> Response:
        return Response(data, media_type=kind)

    return serve


async def _answer(request: Request, read: Callable[[bytes], _Asked], work: Callable[[_Asked], bytes]) -> Response:
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
        asked = read(bytes(body))
        return Response(await run_in_threadpool(work, asked), media_type="application/json")
    except msgspec.DecodeError as error:
        return _json({"error": f"the page sent an invalid request: {error}; reload the page"}, status=400)
    except _Closed as error:
        return _json({"error": str(error)}, status=410)
    except _Forbidden as error:
        return _json({"error": str(error)}, status=403)
    except SegueError as error:
        return _json({"error": str(error)}, status=422)


def _json(value: object, status: int = 200) -> Response:
    return Response(encode_valid_json(value), status_code=status, media_type="application/json")
