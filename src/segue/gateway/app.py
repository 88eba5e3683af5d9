"""The gateway as an ASGI application: `create_app(config)`.

Paths of protocols are read by `read_call`; `/segue/...` and `/health` are the gateway's own. Decisions depend on the
parsed path alone, and nothing that a request has becomes code, a command or an address.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Lifespan, Receive, Scope, Send

from segue.calls.reading import Call, find_error_form
from segue.calls.replies import encode_model, encode_model_list, encode_token_count
from segue.client.http.telemetry import Telemetry
from segue.errors import CallError, SegueError, UnknownModel
from segue.failures.failure import Failure, FailureKind
from segue.foundation.json_text import encode_json
from segue.gateway.admin import admin_routes
from segue.gateway.answers import answer_stream, answer_whole, explain_error, explain_to_client, send_failure, send_json
from segue.gateway.asking import read_asked
from segue.gateway.compaction import answer_compact
from segue.gateway.config import SAME, Config, load_config, read_config
from segue.gateway.exchange import Exchange, timed_name
from segue.gateway.gate import TURN
from segue.gateway.guarding import is_own_host, is_remote
from segue.gateway.hints import find_client, status_of_spent_budget
from segue.gateway.histories import ReadRequest
from segue.gateway.intake import Admission, Refused, check_head, drop_body
from segue.gateway.keys import ANYONE, ClientKey
from segue.gateway.leaving import LEAVING
from segue.gateway.pages import pages
from segue.gateway.peers import with_peers
from segue.gateway.provider_objects import check_body
from segue.gateway.responses import WholeRequest, find_whole, is_own_reply, previous_id, turns_of_request
from segue.gateway.routing import Router
from segue.gateway.runtime import Runtime
from segue.gateway.service import Gateway
from segue.gateway.sockets import Socket, check_socket, refuse_socket
from segue.gateway.spending import check_name, select_models, usable_models
from segue.gateway.stored_replies import answer_stored
from segue.models.model import Model
from segue.protocols.registry import DEFAULT_PROTOCOL, get_protocol

_TOO_SLOW: Final = 408
_MOST_LISTS: Final = 100
"""Lists of models that are kept, for keys with different rights."""
_UNGATED: Final = ("/health", "/readyz")
_HEAD: Final = "segue.head"
"""Where the scope of a request has its headers, and its path with the query."""


def create_app(
    config: Config | str | Path | None = None,
    *,
    gateway: Gateway | None = None,
    authenticated: bool = False,
    telemetry: Telemetry | None = None,
) -> Starlette:
    """Make the application of a gateway.

    `config` is a configuration, the path of a configuration file, which is watched, or None for the defaults. Without
    keys in it, clients of other machines are refused, unless an application around this one has `authenticated` them.
    `telemetry` replaces that of the configuration.

    Raises:
        SettingsError: the configuration is wrong.
    """
    if gateway is None:
        if isinstance(config, (str, Path)):
            path: Path | None = Path(config)
            config = read_config(config)
        else:
            path = None
        given = load_config("") if config is None else config
        gateway = Gateway(given, path=path, authenticated=authenticated, telemetry=telemetry)
    running = gateway

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await running.start()
        try:
            async with with_peers(running):
                yield
        finally:
            await running.close()

    protocols = ProtocolApp(gateway)
    routes: list[Route | Mount] = [*pages(gateway), *admin_routes(gateway), Mount("/", app=protocols)]
    app = _Application(protocols, routes=routes, lifespan=lifespan)
    app.state.gateway, app.state.protocols = gateway, protocols
    return app


class _Application(Starlette):
    """Passes requests for most endpoints of protocols to the last route at once, without a look at all others.

    Where the application is below a path or has a middleware, requests go the usual way. Every request passes the
    fair gate (`gate.py`) first, but those of who watches the process.
    """

    def __init__(
        self, protocols: ProtocolApp, *, routes: list[Route | Mount], lifespan: Lifespan[_Application]
    ) -> None:
        super().__init__(routes=routes, lifespan=lifespan)
        self._protocols = protocols

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in _UNGATED:
            await super().__call__(scope, receive, send)
            return
        gateway = self._protocols.gateway
        gate, head = gateway.gate, _read_head(scope)
        turn = gate.begin(gateway.name_client(scope.get("client"), *head))
        if not turn.has_place:
            await turn.renew()
        scope[_HEAD], scope[TURN] = head, turn
        is_plain = not self.user_middleware and not scope.get("root_path")
        is_plain = is_plain and scope["type"] == "http" and scope["path"].startswith("/v1/")
        serve = self._protocols if is_plain else super().__call__
        try:
            await gate.metered(turn, serve(scope, receive, send))
        finally:
            turn.leave()


class ProtocolApp:
    """Serves the paths of all protocols."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway: Gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await self._connect(scope, receive, send)
            return
        headers, path = scope[_HEAD]
        runtime = self.gateway.runtime
        try:
            with runtime.used():
                key = self._admit(runtime, scope, path, headers)
                with self.gateway.intake.admitted(key.tenant, runtime, key, turn=scope[TURN]) as admission:
                    admission.connection = scope.get(LEAVING)
                    await self._serve(admission, headers, receive, send, method=scope["method"], path=path)
        except Refused as refused:
            protocol, transport = find_error_form(scope["method"], path, headers)
            protocol = refused.protocol or protocol or DEFAULT_PROTOCOL
            failure, status = refused.failure, refused.status
            if failure.kind == FailureKind.QUOTA:
                status = status_of_spent_budget(find_client(headers))
                failure = replace(failure, status=status)
            is_slow = refused.status == _TOO_SLOW

            async def drop() -> None:
                if not is_slow:
                    await drop_body(receive, headers)

            if refused.protocol is not None:  # the body was read
                await send_failure(send, failure, protocol, None, status, transport=transport)
                return
            # The rest of the body is not the next request: the connection ends with this answer.
            given = {"connection": "close"}
            await send_failure(send, failure, protocol, given, refused.status, transport=transport, drop=drop)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket; everything that its head decides is decided before it is accepted."""
        headers, path = scope[_HEAD]
        runtime = self.gateway.runtime
        try:
            key = self._admit(runtime, scope, path, headers)
            check_socket(path, headers)
            with self.gateway.intake.connected(key.tenant, runtime.config.limits):
                await Socket(self.gateway, headers, path, receive, send, turn=scope[TURN]).serve(key.tenant)
        except Refused as refused:
            await receive()
            await refuse_socket(send, refused.failure, scope.get("extensions") or {}, refused.status)

    def _admit(self, runtime: Runtime, scope: Scope, path: str, headers: dict[str, str]) -> ClientKey:
        """Decide by the head alone whether a request is served; return its key.

        Raises:
            Refused: it is not.
        """
        check_head(scope["headers"], len(path), runtime.config.limits)
        if not is_own_host(headers, runtime.host_names):
            raise Refused("the Host or Origin header is not one of this gateway; see listen.host_names", 403)
        key = self.gateway.authenticate(headers, path.partition("?")[2], runtime)
        if key is ANYONE and not self.gateway.authenticated and is_remote(scope.get("client")):
            raise Refused("clients of other machines need a key; set listen.keys", 403, FailureKind.AUTH)
        return key

    async def _serve(
        self, admission: Admission, headers: dict[str, str], receive: Receive, send: Send, *, method: str, path: str
    ) -> None:
        is_socket = "websocket" in headers.get("upgrade", "").lower()
        body = b"" if is_socket else await admission.read_body(receive, headers)
        if encoding := headers.get("content-encoding"):
            body = await admission.decompress(body, encoding)
        histories, runtime = self.gateway.histories, admission.runtime
        try:
            read = await admission.run(histories.read, admission.tenant, runtime, method, path, headers, body)
        except CallError as error:
            # Not NOT_FOUND: clients of OpenAI's protocols would read that the model does not exist.
            failure = Failure(kind=FailureKind.INVALID_REQUEST, status=error.status, message=str(error))
            given = {"allow": ", ".join(error.methods)} if error.methods else {}
            _, transport = find_error_form(method, path, headers)
            protocol = error.protocol or DEFAULT_PROTOCOL
            await send_failure(send, failure, protocol, given, error.status, transport=transport)
            return
        call = read.call
        if admission.tenant:
            admission.is_written = await admission.run(check_body, body, call.body, call.protocol, read)
        if call.headers:
            headers = {**headers, **call.headers}
        try:
            await self._answer(admission, read, headers, receive, send, raw=body)
        except UnknownModel as error:
            await send_failure(send, explain_error(error), call.protocol, status=404, transport=call.transport)
        except SegueError as error:
            failure, given = explain_to_client(explain_error(error), find_client(headers), None)
            await send_failure(send, failure, call.protocol, given, transport=call.transport)

    async def _answer(
        self,
        admission: Admission,
        read: ReadRequest,
        headers: dict[str, str],
        receive: Receive,
        send: Send,
        *,
        raw: bytes,
    ) -> None:
        runtime, call = admission.runtime, read.call
        match call.kind:
            case "generate":
                name = previous_id(call)
                whole = None if name is None else await self._continued(admission, call, name)
                if whole is None:
                    asked = await read_asked(self.gateway, admission, call, headers, raw=raw, read=read)
                else:
                    asked = await read_asked(self.gateway, admission, whole.call, headers, raw=raw, is_continued=True)
                with Exchange(self.gateway, asked, "req_" + timed_name()) as exchange:
                    if call.stream:
                        await answer_stream(exchange, send, receive)
                    else:
                        await answer_whole(exchange, send, receive)
            case "count":
                whole = await find_whole(self.gateway, admission, call)
                counted = call if whole is None else whole.call
                asked = await read_asked(self.gateway, admission, counted, headers, is_continued=counted is not call)
                tokens = await runtime.client.count_tokens_by(
                    admission.run, asked.context, asked.candidates[0], options=asked.options, policy=asked.policy
                )
                await send_json(send, 200, encode_token_count(tokens, protocol=call.protocol))
            case "models":
                if call.model is not None:
                    found: object = _describe_model(runtime.router, call.model, call.protocol, admission.key)
                else:
                    found = await _list_models(admission, call.protocol)
                await send_json(send, 200, found)
            case "version":
                await send_json(send, 200, call.answer or {})
            case "compact":
                name = previous_id(call)
                whole = None if name is None else await self._continued(admission, call, name)
                whole = whole or WholeRequest(call, turns_of_request(call))
                asked = await read_asked(
                    self.gateway, admission, whole.call, headers, raw=raw, is_continued=whole.call is not call
                )
                await answer_compact(self.gateway, asked, whole.turns, send)
            case "retrieve" | "delete" | "cancel" | "input_items":
                await answer_stored(self.gateway, admission, call, find_client(headers), send)

    async def _continued(self, admission: Admission, call: Call, name: str) -> WholeRequest | None:
        """Read a request that names the reply before it with the whole history; None if the provider may have it."""
        whole = await find_whole(self.gateway, admission, call)
        if whole is not None:
            return whole
        # What the provider keeps, it keeps for the operator: a client continues only replies that it got itself.
        is_shared = not admission.tenant or admission.runtime.config.listen.provider_ids
        may_continue = is_shared or await is_own_reply(self.gateway, name, admission, call)
        author = admission.runtime.router.find(call.model or "", call.protocol).author
        if may_continue and author is not None and author.protocol == call.protocol and author.id == call.model:
            return None  # the provider itself may have it
        raise Refused(f"Previous response with id {name!r} not found.", 400, FailureKind.INVALID_HISTORY, call.protocol)


def _describe_model(router: Router, name: str, protocol: str, key: ClientKey) -> dict[str, object]:
    """Describe the model that a call names."""
    check_name(name, key, protocol)
    model = select_models(router.find(name, protocol).models, key, protocol)[0]
    return encode_model(_as_listed(model, name, protocol), protocol=protocol)


async def _list_models(admission: Admission, protocol: str) -> bytes:
    """Describe the models that a key may ask for. The list is kept: it takes a tenth of a second to make."""
    runtime, rights = admission.runtime, admission.key.rights
    name = (protocol, rights.routes, rights.models, rights.has_money_budget)
    found = runtime.lists.get(name)
    if found is None:
        listed = await admission.in_thread(lambda: _find_listed(runtime, protocol, admission.key))
        found = encode_json(encode_model_list(listed, protocol=protocol))
        if len(runtime.lists) >= _MOST_LISTS:
            runtime.lists.clear()
        runtime.lists[name] = found
    return found


def _find_listed(runtime: Runtime, protocol: str, key: ClientKey) -> list[Model]:
    """Find what a list has: the names of the routes; else the models of the protocol's own vendor; else all with a key.

    Each represents the models that answer for it: under a route for every name those are the route's own.
    """
    router = runtime.router

    def usable(names: Iterable[str]) -> list[Model]:
        found: list[Model] = []
        for name in names:
            if key.rights.may_ask(name):
                with suppress(UnknownModel):
                    models = usable_models(router.find(name, protocol).models, key)
                    found += [_as_listed(model, name, protocol) for model in models[:1]]
        return found

    if names := router.listed():
        return usable(names)
    offered = [model for model in router.catalogue.models if not model.deprecated]
    vendor = get_protocol(protocol).provider
    if found := usable(model.id for model in offered if model.provider == vendor):
        return found
    can_be_asked: dict[str, bool] = {}
    for model in offered:
        if model.provider not in can_be_asked:
            can_be_asked[model.provider] = runtime.client.find_missing(model) is None
    asked = [model for model in offered if can_be_asked[model.provider]]
    targets = [name for route in router.config.models.values() for name in route.targets if name != SAME]
    return usable([*(model.full_name() for model in asked), *targets]) or usable(model.id for model in asked)


def _as_listed(model: Model, name: str, protocol: str) -> Model:
    """Return a model under the name that clients ask for."""
    return replace(model, id=name, protocol=protocol, name=model.name or model.id)


def _read_head(scope: Scope) -> tuple[dict[str, str], str]:
    """Return the headers of a request, and its path with the query."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    raw = scope.get("raw_path")
    path: str = raw.decode("latin-1") if raw else quote(scope["path"])  # the server decoded it
    path = path.partition("?")[0]
    if query := scope["query_string"]:
        path += "?" + query.decode("latin-1")
    return headers, path
