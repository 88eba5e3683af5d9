"""The endpoints of the console: requests, conversations, what they said, costs, figures over time, plans and replays.

With the admin key they show the requests of all clients, with the key of a client its own. Rows have no content; what
requests and replies said is there only if `state.content` is set.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as Scopes

from segue.calls.reading import LONGEST_NAME
from segue.conversation.context import Context
from segue.conversation.messages import Usage
from segue.conversation.stored import dump, dump_message, load, load_message
from segue.errors import SegueError, UnknownModel
from segue.foundation.json_text import encode_valid_json
from segue.foundation.quoting import raw_headers
from segue.gateway.contents import KeptExchange, is_missing, load_content
from segue.gateway.costs import Costs
from segue.gateway.gate import TURN, GateTurn
from segue.gateway.intake import Refused
from segue.gateway.peers import ask_others, choose_after, settle_all, sum_figures
from segue.gateway.records import AttemptRow
from segue.gateway.reloading import describe_held
from segue.gateway.replays import send_again
from segue.gateway.runtime import Runtime
from segue.gateway.series import Series
from segue.gateway.service import Gateway, now_ms
from segue.gateway.shares import SharedCache
from segue.gateway.shown import ShownContent, group_changes, show_message, title_of_content, with_kinds
from segue.gateway.store.database import StoreError
from segue.gateway.store.store import Store
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.planning.plan import plan
from segue.planning.shown import plan_json
from segue.requests.prepare import Request as PreparedRequest
from segue.requests.prepare import prepare

_T = TypeVar("_T")
Scope: TypeAlias = "str | None"
"""The tenant whose requests are shown; None for those of all."""
ScopedEndpoint: TypeAlias = Callable[[Request, Scope], Awaitable[Response]]
_MOST_ROWS: Final = 500
_CHUNK: Final = 2_000
_MOST_SEARCHED: Final = 50_000
"""Rows that one search looks at; the next one goes on from there."""
_MOST_PARTS: Final = 20_000
"""Rows whose sums are kept."""
_MOST_BODY: Final = 100_000
_NAME: Final = f'send {{"model": "provider/id"}}, with at most {LONGEST_NAME} characters'
_ALIKE: Final = (
    "several conversations that begin alike may have this name, because their client gave nothing that separates them,"
    " such as a header x-session-id, user or metadata"
)
_ADMIN_ONLY: Final = "this gateway has an admin key: what requests said, switching, erasing and replays need it"
_HOUR: Final = 3_600_000
_MOST_HOURS: Final = 24 * 366
_MOST_STEPS: Final = 400
_MOST_SHOWN: Final = 16
"""Contents that are kept as they are shown: the page asks for their rows a screen at a time."""
_MOST_ROWS_SHOWN: Final = 200
_LONGEST_SHOWN: Final = 2_000_000
"""How many rows of messages, and how many characters of each text, one answer may have."""
_MOST_TITLES: Final = 2_000
_NEW_TITLES: Final = 40
"""Titles in memory, and how many of them one answer reads from contents, which may be large."""
_PIECE: Final = 1_000_000
"""Bytes of an answer that are sent at once."""
_MOST_PLANNED: Final = 6
_PLANNED_TURNS: Final = 10
"""How many models a plan compares, and for how many requests."""


class _Searched(msgspec.Struct, rename="camel"):
    """The part of a row that a search looks at, and that sums are made of."""

    id: str
    time: int
    client: str
    conversation: str
    protocol: str
    asked: str
    status: int
    outcome: str
    model: str | None = None
    error: str | None = None
    attempts: tuple[AttemptRow, ...] = ()
    usage: Usage | None = None
    saved: float | None = None
    spent: Usage | None = None
    figures: str | None = None
    alike: bool = False

    def has(self, words: list[str]) -> bool:
        kinds = (each.kind for each in self.attempts if each.kind)
        texts = (self.id, self.client, self.conversation, self.protocol, self.asked, self.outcome, str(self.status))
        text = " ".join((*texts, self.model or "", self.error or "", *kinds)).lower()
        return all(word in text for word in words)


class _Sums(msgspec.Struct):
    """Requests of a conversation, their input tokens, those read from a cache, dollars spent and saved.

    `estimated` is the part of `cost` for which no provider gave a figure.
    """

    requests: int = 0
    input: int = 0
    cached: int = 0
    saved: float = 0.0
    cost: float = 0.0
    estimated: float = 0.0

    def add(self, other: _Sums) -> None:
        self.requests += other.requests
        self.input += other.input
        self.cached += other.cached
        self.saved += other.saved
        self.cost += other.cost
        self.estimated += other.estimated


_ROWS: Final = msgspec.json.Decoder(_Searched)


class Console:
    """The endpoints. The second argument of each is the tenant whose requests it may show; None for all."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._models: tuple[Runtime, list[str]] | None = None
        self._parts: dict[str, tuple[str, _Sums]] = {}
        self._shown: SharedCache[tuple[Scope, str], tuple[bytes, ShownContent]] = SharedCache(_MOST_SHOWN)
        self._titles: OrderedDict[tuple[Scope, str], str] = OrderedDict()
        self._titles_of = (0, 0)
        """When the titles were read: the hour, because contents expire, and what was erased until then."""

    def routes(self, guarded: Callable[[ScopedEndpoint], Callable[[Request], object]]) -> list[Route]:
        """Return the routes; `guarded` finds out whose requests an endpoint may show.

        With an admin key, clients without a key of their own see rows and figures; what requests said, and what changes
        or sends something, is for the admin key.
        """
        place = "/segue/conversations/{name}"

        def private(endpoint: ScopedEndpoint) -> ScopedEndpoint:
            async def check(request: Request, scope: Scope) -> Response:
                if scope == "" and self._gateway.runtime.admin_digests:
                    return json_response({"error": _ADMIN_ONLY}, 401)
                return await endpoint(request, scope)

            return check

        return [
            Route("/segue/requests", guarded(self.requests)),
            Route("/segue/requests/{name}", guarded(self.one_request), methods=["GET"]),
            Route("/segue/requests/{name}", guarded(private(self.choose_after)), methods=["PUT", "POST"]),
            Route("/segue/requests/{name}", guarded(private(self.erase_request)), methods=["DELETE"]),
            Route("/segue/requests/{name}/content", guarded(private(self.content))),
            Route("/segue/requests/{name}/view", guarded(private(self.view))),
            Route("/segue/requests/{name}/rows", guarded(private(self.rows)), methods=["POST"]),
            Route("/segue/requests/{name}/images/{key}", guarded(private(self.image))),
            Route("/segue/requests/{name}/replay", guarded(private(self.replay)), methods=["POST"]),
            Route("/segue/series", guarded(self.series)),
            Route("/segue/costs", guarded(self.costs)),
            Route("/segue/conversations", guarded(self.conversations)),
            Route(place, guarded(self.one_conversation), methods=["GET"]),
            Route(place, guarded(private(self.choose)), methods=["PUT", "POST"]),
            Route(place, guarded(private(self.erase)), methods=["DELETE"]),
            Route(f"{place}/session", guarded(private(self.export))),
            Route(f"{place}/plan", guarded(private(self.plan)), methods=["POST"]),
        ]

    async def _settle(self) -> None:
        await settle_all(self._gateway)

    async def requests(self, request: Request, scope: Scope) -> Response:
        """List requests, the newest first: those that have all words of `q`, or of one conversation."""
        store, held = self._gateway.store.store, self._gateway.held
        # For who runs the gateway, not for the clients with a key.
        note: dict[str, object] = {} if scope or held is None else {"configuration": describe_held(held)}
        if store is None:
            return json_response({"requests": [], "next": None, **note})
        given = request.query_params
        limit = min(number_of(given.get("limit"), 50), _MOST_ROWS)
        time, _, name = given.get("before", "").partition(".")
        before = (number_of(time, 0), name or "~") if time else None  # a time alone: only what is older
        words, conversation = given.get("q", "").lower().split(), given.get("conversation")
        await self._settle()
        found = await self._gateway.store.read(
            lambda: search(store, scope, limit, before, words=words, conversation=conversation), is_long=True
        )
        if found is None:
            return away()
        rows, following = found
        body: dict[str, object] = {"requests": [msgspec.Raw(data) for _, _, data in rows], "next": following, **note}
        if scope is None:
            body["keys"] = {name: tenant for name, tenant, _ in rows}
        return json_response(body)

    async def one_request(self, request: Request, scope: Scope) -> Response:
        """Show the row of a request, with its changes grouped by kind."""
        row = await self._find_row(str(request.path_params["name"]), scope)
        return row if isinstance(row, Response) else json_response(with_kinds(row))

    async def _find_row(self, name: str, scope: Scope) -> bytes | Response:
        store = self._gateway.store.store
        row = self._gateway.find_recent_row(name, scope)
        try:
            if row is None and store is not None:
                row = await self._gateway.store.fetch(lambda: store.get_request(name, scope))
                if row is None and self._gateway.board is not None:
                    await self._settle()  # another worker may have it
                    row = await self._gateway.store.fetch(lambda: store.get_request(name, scope))
        except StoreError:
            return away()
        if row is None:
            return json_response({"error": f"there is no request {name!r}; its row may have expired"}, 404)
        return row

    async def content(self, request: Request, scope: Scope) -> Response:
        """Show what a request and its reply said."""
        found = await self._find_data(str(request.path_params["name"]), scope)
        if isinstance(found, Response):
            return found
        return await self._apart(request, scope, lambda: json_response(load_content(found)))

    async def view(self, request: Request, scope: Scope) -> Response:
        """Show the messages of a request next to those that the model was sent, as the inspector does."""
        found = await self._find_shown(request, scope)
        return found if isinstance(found, Response) else await self._apart(request, scope, lambda: _view(found))

    async def rows(self, request: Request, scope: Scope) -> Response:
        """Show further rows of these messages."""
        given = await self._read_body(request, scope)
        if isinstance(given, Response):
            return given
        wanted, length = given.get("rows"), given.get("length")
        if not isinstance(wanted, list) or not isinstance(length, int):
            return json_response({"error": 'send {"rows": [0, 1], "length": 1200}'}, 400)
        found = await self._find_shown(request, scope)
        if isinstance(found, Response):
            return found
        asked = [at for at in cast("list[object]", wanted) if isinstance(at, int)][:_MOST_ROWS_SHOWN]
        most = min(max(length, 1), _LONGEST_SHOWN)
        return await self._apart(request, scope, lambda: json_response(found.rows(asked, most)))

    async def image(self, request: Request, scope: Scope) -> Response:
        """Return an image of rows that were shown."""
        found = await self._find_shown(request, scope)
        if isinstance(found, Response):
            return found
        image = found.find_image(str(request.path_params["key"]))
        if image is None:
            return json_response({"error": "there is no such image"}, 404)
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(image[0], media_type=image[1], headers=headers)

    async def _find_shown(self, request: Request, scope: Scope) -> ShownContent | Response:
        """Find contents as they are shown. The store is asked each time: what it does not give is not shown."""
        name = str(request.path_params["name"])
        data = await self._find_data(name, scope)
        row = data if isinstance(data, Response) else await self._find_row(name, scope)
        if isinstance(data, Response) or isinstance(row, Response):
            return data if isinstance(data, Response) else cast("Response", row)
        kept = self._shown.get((scope, name))
        if kept is not None and kept[0] == data:
            return kept[1]
        model = _ROWS.decode(row).model
        protocol = None if model is None else self._protocol_of(model)
        shown = await self._apart(request, scope, lambda: ShownContent(load_content(data), row, protocol))
        self._shown.put(scope or "", (scope, name), (data, shown))
        return shown

    def _protocol_of(self, name: str) -> str | None:
        try:
            return self._gateway.router.find(name).models[0].protocol
        except UnknownModel:  # of a configuration before this one
            found = self._gateway.router.catalogue.lookup(name)
            return None if found is None else found.protocol

    async def costs(self, request: Request, scope: Scope) -> Response:
        """Return what requests of the last `hours` cost, by key, model, day and client."""
        store = self._gateway.store.store
        hours = min(max(number_of(request.query_params.get("hours"), 24 * 30), 1), _MOST_HOURS)
        costs = Costs(now_ms() - hours * _HOUR)
        if store is not None:
            await self._settle()
            if await self._gateway.store.read(lambda: _add_costs(store, scope, costs) or True, is_long=True) is None:
                return away()
        return json_response(costs.result())

    async def plan(self, request: Request, scope: Scope) -> Response:
        """Compare what the next requests of a conversation would cost at other models, and what would be lost."""
        given = await self._read_body(request, scope)
        if isinstance(given, Response):
            return given
        content = await self._newest_content(request, scope)
        if isinstance(content, Response):
            return content
        listed = given.get("models") or (await self._offered())[:_MOST_PLANNED]
        names = cast("list[object]", listed if isinstance(listed, list) else [])
        if not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in names):
            return json_response({"error": 'send {"models": ["provider/id"]}'}, 400)
        try:
            found = [self._gateway.router.find(str(name)).models[0] for name in names[:_MOST_PLANNED]]
            models = [*{model.full_name(): model for model in found}.values()]  # routes may begin with the same model
            made = await self._apart(
                request, scope, lambda: _plan(content, models, self._gateway.router.catalogue, now_ms())
            )
        except UnknownModel as error:
            return json_response({"error": str(error)}, 404)
        except SegueError as error:
            return json_response({"error": str(error)}, 422)
        return json_response(made)

    async def series(self, request: Request, scope: Scope) -> Response:
        """Return figures over time: `hours` back from now, in so many `steps` of the same length."""
        store, given = self._gateway.store.store, request.query_params
        steps = min(max(number_of(given.get("steps"), 48), 1), _MOST_STEPS)
        hours = min(max(number_of(given.get("hours"), 24), 1), _MOST_HOURS)
        series = Series(now_ms() - hours * _HOUR, hours * _HOUR, steps)
        if store is not None:
            await self._settle()
            if await self._gateway.store.read(lambda: _add_rows(store, scope, series) or True, is_long=True) is None:
                return away()
        return json_response(series.result())

    async def replay(self, request: Request, scope: Scope) -> Response:
        """Make the request for another model; send it only with the admin key, and if `send` is true."""
        data = await self._find_data(str(request.path_params["name"]), scope)
        if isinstance(data, Response):
            return data
        found = await self._apart(request, scope, lambda: load_content(data))
        if found.redacted:
            return json_response(
                {"error": 'only texts that are stored can be sent again; set state.content = "full"'}, 409
            )
        given = await self._read_body(request, scope)
        if isinstance(given, Response):
            return given
        name = given.get("model")
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            return json_response({"error": _NAME}, 400)
        try:
            model = self._gateway.router.find(name).models[0]
            context, made, sent = await self._apart(request, scope, lambda: _prepare(found, model))
        except UnknownModel as error:
            return json_response({"error": str(error)}, 404)
        except SegueError as error:
            return json_response({"model": given.get("model"), "error": str(error)}, 422)
        if given.get("send") is True and scope is not None:
            return json_response({"error": "only the admin key sends a request again; set listen.admin_key"}, 403)
        changes = [
            {"code": change.code, "path": change.path, "loss": change.loss, "detail": change.detail}
            for change in made.report.changes
        ]
        kinds = group_changes(made.report.changes)
        body = {
            "model": model.full_name(),
            "changes": changes,
            "kinds": kinds,
            "sent": msgspec.Raw(sent),
        }
        if given.get("send") is True:
            answer = await send_again(
                self._gateway, context, found.options, model, run=lambda work: self._apart(request, scope, work)
            )
            body |= answer
            body["shown"] = _show_reply(answer.get("reply"))
        return await self._apart(request, scope, lambda: json_response(body))

    async def conversations(self, _: Request, scope: Scope) -> Response:
        """List conversations, what they cost, the models to choose from, and what was new in replies."""
        if self._gateway.store.store is not None:
            await self._settle()
        rows = await self._gateway.conversations.list_rows(scope)
        body = {
            "conversations": rows,
            "caching": await self._sum_up(scope, frozenset(row.id for row in rows)),
            "models": await self._offered(),
            "drift": (await sum_figures(self._gateway))[1],
            "content": self._gateway.config.state.content,
            "titles": await self._find_titles(scope, [row.id for row in rows]),
        }
        return json_response(body)

    async def one_conversation(self, request: Request, scope: Scope) -> Response:
        """List the requests of a conversation, the oldest first."""
        store, name = self._gateway.store.store, str(request.path_params["name"])
        if store is None:
            return json_response({"error": "requests are not stored; set state.store"}, 404)
        await self._settle()
        rows = await self._gateway.store.read(lambda: store.list_requests(scope, _MOST_ROWS, None, name), is_long=True)
        if rows is None:
            return away()
        if not rows:
            return json_response({"error": f"there is no conversation {name!r}"}, 404)
        return json_response({"id": name, "requests": [msgspec.Raw(data) for _, _, data in reversed(rows)]})

    async def export(self, request: Request, scope: Scope) -> Response:
        """Return a conversation as a session of segue."""
        content = await self._newest_content(request, scope)
        if isinstance(content, Response):
            return content
        lines = await self._apart(request, scope, lambda: _session_of(content))
        headers = {"content-disposition": 'attachment; filename="session.jsonl"'}
        return _InPieces(lines, media_type="application/jsonl", headers=headers)

    async def _newest_content(self, request: Request, scope: Scope) -> KeptExchange | Response:
        """Find what the newest request of a conversation and its reply said."""
        store, name = self._gateway.store.store, str(request.path_params["name"])
        if store is None or self._gateway.config.state.content != "full":
            return json_response({"error": 'this needs contents that are stored; set state.content = "full"'}, 409)
        await self._settle()
        data = await self._gateway.store.read(lambda: store.newest_content(name, scope), is_long=True)
        if data is None:
            return json_response({"error": f"there is no content of the conversation {name!r}"}, 404)
        return await self._apart(request, scope, lambda: load_content(data))

    async def _find_titles(self, scope: Scope, names: list[str]) -> dict[str, str]:
        """Find the first words of conversations, for those who may read what requests said.

        They are read from contents, so a conversation without one has no title; a few at a time, the latest first.
        """
        store = self._gateway.store.store
        is_private = scope == "" and bool(self._gateway.runtime.admin_digests)
        if store is None or is_private or self._gateway.config.state.content != "full":
            return {}
        if self._titles_of != (state := (now_ms() // _HOUR, self._gateway.erased)):
            self._titles.clear()
            self._titles_of = state
        known = self._titles

        def read() -> dict[str, str]:
            missing = [name for name in names if (scope, name) not in known][:_NEW_TITLES]
            for name in missing:
                data = store.newest_content(name, scope)
                known[scope, name] = "" if data is None else title_of_content(load_content(data))
            while len(known) > _MOST_TITLES:
                known.popitem(last=False)
            return {name: title for name in names if (title := known.get((scope, name)))}

        found = await self._gateway.store.read(read, is_long=True) or {}
        if self._titles_of[1] != self._gateway.erased:
            self._titles_of = (0, 0)  # something of what was read may be erased
        return found

    def _forget_shown(self) -> None:
        """Drop what is kept of contents, because something of them is erased."""
        self._shown = SharedCache(_MOST_SHOWN)
        self._titles.clear()

    async def choose(self, request: Request, scope: Scope) -> Response:
        """Send a conversation to a model from now on."""
        model = await self._read_model(request, scope)
        if isinstance(model, Response):
            return model
        name = str(request.path_params["name"])
        if await self._is_alike(name, scope):
            return json_response({"error": f"{_ALIKE}; PUT /segue/requests/ID switches what continues a request"}, 409)
        try:
            is_known = await self._gateway.conversations.choose(name, model, scope, now_ms())
        except StoreError:
            return away()
        if not is_known:
            return json_response({"error": f"there is no conversation {name!r}"}, 404)
        return json_response({"conversation": name, "model": model})

    async def choose_after(self, request: Request, scope: Scope) -> Response:
        """Send what continues a request to a model; its conversation, if that has its own name."""
        model = await self._read_model(request, scope)
        if isinstance(model, Response):
            return model
        name, conversations = str(request.path_params["name"]), self._gateway.conversations
        if not await choose_after(self._gateway, name, model, scope):
            data = await self._find_row(name, scope)
            if isinstance(data, Response):
                return data
            row = _ROWS.decode(data)
            try:
                is_known = not row.alike and await conversations.choose(row.conversation, model, scope, now_ms())
            except StoreError:
                return away()
            if not is_known:
                return json_response({"error": f"the request {name!r} is too old to be switched; use a newer one"}, 404)
        return json_response({"request": name, "model": model})

    async def erase_request(self, request: Request, scope: Scope) -> Response:
        """Erase what is kept of a request."""
        store, name = self._gateway.store.store, str(request.path_params["name"])
        await self._settle()
        self._gateway.forget_row(name, scope)
        self._forget_shown()
        await ask_others(self._gateway, "forget row", name=name, tenant=scope)
        if store is None:
            return json_response({"erased": 0})
        try:
            count = await self._gateway.store.fetch(lambda: store.delete_request(name, scope), is_long=True)
        except StoreError:
            return away()
        return json_response({"erased": count})

    async def _is_alike(self, name: str, scope: Scope) -> bool:
        await self._gateway.conversations.load(name)
        return self._gateway.conversations.is_alike(name, scope)

    async def _read_model(self, request: Request, scope: Scope) -> str | Response | None:
        """Read the model of a choice; None ends one."""
        given = await self._read_body(request, scope)
        if isinstance(given, Response):
            return given
        model = given.get("model", "")
        if model is not None and (not isinstance(model, str) or not 0 < len(model) <= LONGEST_NAME):
            return json_response({"error": f'{_NAME}, or {{"model": null}} to end the choice'}, 400)
        if model is not None:
            try:
                self._gateway.router.find(model)
            except UnknownModel as error:
                return json_response({"error": str(error)}, 404)
        return model

    async def erase(self, request: Request, scope: Scope) -> Response:
        """Erase everything of a conversation."""
        store, name = self._gateway.store.store, str(request.path_params["name"])
        await self._settle()
        if await self._is_alike(name, scope):
            return json_response({"error": f"{_ALIKE}; DELETE /segue/requests/ID erases a request"}, 409)
        self._gateway.forget_rows(name, scope)
        self._forget_shown()
        self._gateway.conversations.forget(name, scope)
        await ask_others(self._gateway, "forget conversation", name=name, tenant=scope)
        if store is None:
            return json_response({"erased": 0})
        try:
            count = await self._gateway.store.fetch(lambda: store.delete_conversation(name, scope), is_long=True)
        except StoreError:
            return away()
        return json_response({"erased": count})

    async def _find_data(self, name: str, scope: Scope) -> bytes | Response:
        store = self._gateway.store.store
        if store is None or self._gateway.config.state.content == "off":
            return json_response({"error": 'contents are not stored; set state.content = "full" or "redacted"'}, 404)
        await self._settle()
        try:
            data = await self._gateway.store.fetch(lambda: store.get_content(name, scope), is_long=True)
        except StoreError:
            return away()
        if data is None:
            return json_response({"error": f"there is no content of {name!r}; it may have expired"}, 404)
        return data

    async def _apart(self, request: Request, scope: Scope, work: Callable[[], _T]) -> _T:
        """Run work on contents, which may be as large as a body, in the thread that reads bodies."""
        turn: GateTurn = request.scope[TURN]
        run = self._gateway.intake.in_thread
        return await turn.in_thread(lambda measured: run(scope or "", measured), work)

    async def _offered(self) -> list[str]:
        """Return the names that a conversation can be switched to: those of routes, else the models that have a key."""
        runtime = self._gateway.runtime
        if self._models is None or self._models[0] is not runtime:  # the keys are those of the configuration
            self._models = runtime, await asyncio.to_thread(_find_offered, runtime)
        return self._models[1]

    async def _sum_up(self, scope: Scope, listed: frozenset[str]) -> dict[str, _Sums]:
        """Add up tokens and dollars of the conversations that are listed, over the newest requests.

        In the thread of the store; a row does not change, so each is decoded once.
        """
        store, known = self._gateway.store.store, self._parts
        if store is None:
            return {}

        def add_up() -> dict[str, _Sums]:
            found: dict[str, _Sums] = {}
            for name, _, data in store.list_requests(scope, _CHUNK):
                part = known.get(name)
                if part is None:
                    if len(known) >= _MOST_PARTS:
                        known.clear()
                    part = known[name] = _part_of(data)
                conversation, numbers = part
                if conversation in listed:
                    found.setdefault(conversation, _Sums()).add(numbers)
            return found

        return await self._gateway.store.read(add_up, is_long=True) or {}

    async def _read_body(self, request: Request, scope: Scope) -> dict[str, object] | Response:
        """Read a small JSON object."""
        try:
            with self._gateway.intake.admitted(
                scope or "", self._gateway.runtime, turn=request.scope[TURN]
            ) as admission:
                body = await admission.read_body(request.receive, request.headers)
            given: object = msgspec.json.decode(body) if len(body) < _MOST_BODY else None
        except Refused as refused:
            return json_response({"error": str(refused)}, refused.status or 429)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            given = None
        return given if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _part_of(data: bytes) -> tuple[str, _Sums]:
    """Return the conversation of a row, and what the row adds to its sums."""
    row = _ROWS.decode(data)
    usage, billed = row.usage or row.spent, row.spent or row.usage
    if usage is None:
        return row.conversation, _Sums(requests=1)
    cost = 0.0 if billed is None or billed.cost is None else billed.cost.total
    return row.conversation, _Sums(
        requests=1,
        input=usage.input + usage.cache_read + usage.cache_write,
        cached=usage.cache_read,
        saved=row.saved or 0.0,
        cost=cost,
        estimated=cost if row.figures == "estimated" else 0.0,
    )


def _view(shown: ShownContent) -> Response:
    return json_response(shown.view())


def _show_reply(reply: object) -> object:
    """Return a reply that was just made as messages are shown."""
    return None if not isinstance(reply, msgspec.Raw) else show_message(load_message(bytes(reply)))


def _plan(content: KeptExchange, models: list[Model], catalogue: Catalogue, now: int) -> object:
    context = load(bytes(content.context))
    if not is_missing(content.reply):
        context = context.add(load_message(bytes(content.reply)))
    made = plan(context, models, turns=_PLANNED_TURNS, now=now, options=content.options, catalogue=catalogue)
    return plan_json(made, _PLANNED_TURNS)


def _find_offered(runtime: Runtime) -> list[str]:
    listed = list(runtime.router.listed())
    if listed:
        return listed
    return [model.full_name() for model in runtime.router.catalogue.find() if runtime.client.has_key(model)]


def _prepare(found: KeptExchange, model: Model) -> tuple[Context, PreparedRequest, bytes]:
    context = load(bytes(found.context))
    made = prepare(context, model, options=found.options)
    return context, made, made.content


def _session_of(content: KeptExchange) -> bytes:
    """Write a conversation as a session of segue."""
    context = load(bytes(content.context))
    lines = [dump(msgspec.structs.replace(context, messages=())), *map(dump_message, context.messages)]
    if not is_missing(content.reply):
        lines.append(bytes(content.reply))
    return b"\n".join(lines) + b"\n"


def search(
    store: Store,
    scope: Scope,
    limit: int,
    before: tuple[int, str] | None = None,
    *,
    words: list[str],
    conversation: str | None = None,
) -> tuple[list[tuple[str, str, bytes]], str | None]:
    """Find rows that have all words, the newest first; give also where the next search goes on."""
    if not words:
        rows = store.list_requests(scope, limit + 1, before, conversation)
        return rows[:limit], _cursor(rows[limit - 1][2]) if len(rows) > limit else None
    found: list[tuple[str, str, bytes]] = []
    plain = [word.encode() for word in words if word.isascii() and word.isprintable() and not {'"', "\\"} & {*word}]
    for _ in range(0, _MOST_SEARCHED, _CHUNK):
        rows = store.list_requests(scope, _CHUNK, before, conversation)
        for row in rows:
            text = row[2].lower()
            if all(word in text for word in plain) and _ROWS.decode(row[2]).has(words):
                found.append(row)
                if len(found) == limit:
                    return found, _cursor(row[2])
        if len(rows) < _CHUNK:
            return found, None
        last = _ROWS.decode(rows[-1][2])
        before = last.time, last.id
    return found, None if before is None else f"{before[0]}.{before[1]}"


def _add_rows(store: Store, scope: Scope, series: Series) -> None:
    """Add the newest rows to a series, back to its start; the oldest of very many rows are left out."""
    before: tuple[int, str] | None = None
    for _ in range(0, _MOST_SEARCHED, _CHUNK):
        rows = store.list_requests(scope, _CHUNK, before)
        last = series.add(data for _, _, data in rows)
        if last is None or len(rows) < _CHUNK or last[0] < series.start:
            return
        before = last
    series.is_cut = True


def _add_costs(store: Store, scope: Scope, costs: Costs) -> None:
    """Add the newest rows to costs, back to their start; the oldest of very many rows are left out."""
    before: tuple[int, str] | None = None
    for _ in range(0, _MOST_SEARCHED, _CHUNK):
        rows = store.list_requests(scope, _CHUNK, before)
        last = costs.add(rows)
        if last is None or len(rows) < _CHUNK or last[0] < costs.start:
            return
        before = last
    costs.is_cut = True


def _cursor(data: bytes) -> str:
    row = _ROWS.decode(data)
    return f"{row.time}.{row.id}"


def away() -> Response:
    """Answer while the database does not."""
    response = json_response({"error": "the database of the gateway does not answer; try again"}, 503)
    response.headers["retry-after"] = "2"
    return response


def number_of(text: str | None, default: int) -> int:
    """Read a number of a query."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 16 else default


class _InPieces(Response):
    """Sends a large body in pieces: contents may have tens of megabytes, and each write takes the event loop."""

    async def __call__(self, scope: Scopes, receive: Receive, send: Send) -> None:
        if len(self.body) <= _PIECE:
            await super().__call__(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": self.status_code, "headers": raw_headers(self.headers)})
        body = memoryview(self.body)
        for at in range(0, len(body), _PIECE):
            piece = bytes(body[at : at + _PIECE])
            await send({"type": "http.response.body", "body": piece, "more_body": at + _PIECE < len(body)})


def json_response(value: object, status: int = 200) -> Response:
    """Answer with JSON that no browser and no proxy keeps."""
    headers = {"cache-control": "no-store"}
    return _InPieces(encode_valid_json(value), status_code=status, media_type="application/json", headers=headers)
