"""The gateway as an ASGI application: `create_app(config)`.

Paths of protocols are read by `read_call`; `/segue/...` and `/health` are the gateway's own. Decisions rest on the
parsed path alone, and nothing that a request has becomes code, a command or an address.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from segue.calls import Call, read_call
from segue.conversation.context import Context
from segue.errors import CallError, SegueError, UnknownModel
from segue.failures.failure import Failure, FailureKind
from segue.gateway.answers import answer_stream, answer_whole, explain_error, send_failure, send_json
from segue.gateway.config import Config, load_config, read_config
from segue.gateway.exchange import Exchange, random_name, read_asked
from segue.gateway.guarding import find_tenant, is_own_host
from segue.gateway.pages import pages
from segue.gateway.responses import find_history, previous_id
from segue.gateway.service import LOG, Gateway
from segue.gateway.store.database import StoreError
from segue.models.model import Model
from segue.protocols.registry import get_protocol
from segue.reply_encoding import encode_model, encode_model_list, encode_token_count

_DEFAULT_PROTOCOL: Final = "openai-chat"
"""The form of errors for paths that belong to no protocol."""
_BODY_STATUSES: Final[Mapping[int, FailureKind]] = {
    400: FailureKind.INVALID_REQUEST,
    413: FailureKind.PAYLOAD_TOO_LARGE,
}


def create_app(config: Config | str | Path | None = None, *, gateway: Gateway | None = None) -> Starlette:
    """Make the application of a gateway.

    `config` is a configuration, the path of a configuration file, which is watched, or None for the defaults.

    Raises:
        SettingsError: the configuration is wrong.
    """
    if gateway is None:
        if isinstance(config, (str, Path)):
            gateway = Gateway(read_config(config), path=Path(config))
        else:
            gateway = Gateway(load_config("") if config is None else config)
    running = gateway

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await running.start()
        try:
            yield
        finally:
            await running.close()

    routes: list[Route | Mount] = [*pages(gateway), Mount("/", app=ProtocolApp(gateway))]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.gateway = gateway
    return app


class ProtocolApp:
    """Serves the paths of all protocols."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await _refuse_websocket(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        raw = scope.get("raw_path")
        path: str = raw.decode("latin-1") if raw else quote(scope["path"])  # the server decoded it
        path = path.partition("?")[0]
        if query := scope["query_string"]:
            path += "?" + query.decode("latin-1")
        try:
            await self._serve(scope["method"], path, headers, receive, send)
        except _Refused as refused:
            failure = Failure(kind=refused.kind, status=refused.status, message=str(refused))
            await send_failure(send, failure, refused.protocol, {"connection": "close"}, refused.status)

    async def _serve(self, method: str, path: str, headers: dict[str, str], receive: Receive, send: Send) -> None:
        gateway = self._gateway
        names = frozenset(name.lower() for name in gateway.config.listen.host_names)
        if not is_own_host(headers, names):
            raise _Refused("the Host or Origin header is not one of this gateway; see listen.host_names", 403)
        if "websocket" in headers.get("upgrade", "").lower():
            body = b""
        else:
            body = await _read_body(receive, headers, gateway.config.limits.body_megabytes)
        try:
            call = read_call(method, path, headers, body, catalogue=gateway.router.catalogue)
        except CallError as error:
            kind = _BODY_STATUSES.get(error.status, FailureKind.NOT_FOUND)
            failure = Failure(kind=kind, status=error.status, message=str(error))
            given = {"allow": ", ".join(error.methods)} if error.methods else {}
            await send_failure(send, failure, error.protocol or _DEFAULT_PROTOCOL, given, error.status)
            return
        tenant = find_tenant(headers, call.query, gateway.key_digests)
        if tenant is None:
            raise _Refused("the key is not one of this gateway", 401, call.protocol, FailureKind.AUTH)
        try:
            await self._answer(call, headers, tenant, receive, send, raw=body)
        except UnknownModel as error:
            await send_failure(send, explain_error(error), call.protocol, status=404)
        except SegueError as error:
            await send_failure(send, explain_error(error), call.protocol)

    async def _answer(
        self, call: Call, headers: dict[str, str], tenant: str, receive: Receive, send: Send, *, raw: bytes
    ) -> None:
        match call.kind:
            case "generate":
                context = await self._continued(call, tenant)
                asked = await read_asked(self._gateway, call, headers, tenant, raw=raw, context=context)
                exchange = Exchange(self._gateway, asked, "req_" + random_name())
                if call.stream:
                    await answer_stream(exchange, send, receive)
                else:
                    await answer_whole(exchange, send, receive)
            case "count":
                asked = await read_asked(self._gateway, call, headers, tenant)
                tokens = await self._gateway.client.count_tokens(
                    asked.context, asked.candidates[0], options=asked.options, policy=asked.policy
                )
                await send_json(send, 200, encode_token_count(tokens, protocol=call.protocol))
            case "models":
                await send_json(send, 200, self._models(call))
            case "version":
                await send_json(send, 200, call.answer or {})

    async def _continued(self, call: Call, tenant: str) -> Context | None:
        """Give the whole history of a request that names the reply before it; None for any other request."""
        name = previous_id(call)
        if name is None or call.prompt is None:
            return None
        try:
            history = await find_history(self._gateway, name, tenant)
        except StoreError as error:
            text = "The database with the stored replies does not answer; try again, or send the whole history."
            raise _Refused(text, 503, call.protocol, FailureKind.OVERLOADED) from error
        if history is not None:
            return replace(call.prompt.context, messages=(*history, *call.prompt.context.messages))
        author = self._gateway.router.find(call.model or "", call.protocol).author
        if author is not None and author.protocol == call.protocol and author.id == call.model:
            return None  # the provider itself may have it
        raise _Refused(f"Previous response with id {name!r} not found.", 400, call.protocol, FailureKind.NOT_FOUND)

    def _models(self, call: Call) -> dict[str, object]:
        router = self._gateway.router
        if call.model is not None:
            model = router.find(call.model, call.protocol).models[0]
            return encode_model(_as_listed(model, call.model, call.protocol), protocol=call.protocol)
        listed = [
            _as_listed(router.find(name, call.protocol).models[0], name, call.protocol) for name in router.listed()
        ]
        if not listed:
            provider = get_protocol(call.protocol).provider
            listed = [model for model in router.catalogue.find(provider=provider) if not model.deprecated]
        return encode_model_list(listed, protocol=call.protocol)


def _as_listed(model: Model, name: str, protocol: str) -> Model:
    """Give a model under the name that clients ask for."""
    return replace(model, id=name, protocol=protocol, name=model.name or model.id)


class _Refused(Exception):
    def __init__(
        self,
        text: str,
        status: int,
        protocol: str = _DEFAULT_PROTOCOL,
        kind: FailureKind = FailureKind.INVALID_REQUEST,
    ) -> None:
        super().__init__(text)
        self.status: int = status
        self.protocol: str = protocol
        self.kind: FailureKind = kind


async def _read_body(receive: Receive, headers: Mapping[str, str], megabytes: float) -> bytes:
    """Read a body up to the limit."""
    most = round(megabytes * 1_000_000)
    text = f"the body is larger than {megabytes:g} MB, the limit of this gateway"
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise _Refused(text, 413, kind=FailureKind.PAYLOAD_TOO_LARGE)
    first = await receive()
    body: bytes = first.get("body", b"")
    if not first.get("more_body"):
        if len(body) > most:
            raise _Refused(text, 413, kind=FailureKind.PAYLOAD_TOO_LARGE)
        return body
    pieces = bytearray(body)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused("the client left before its body was complete", 400)
        pieces += message.get("body", b"")
        if len(pieces) > most:
            raise _Refused(text, 413, kind=FailureKind.PAYLOAD_TOO_LARGE)
        if not message.get("more_body"):
            return bytes(pieces)


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a WebSocket with 426, so that codex sends a POST request at once."""
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-type", b"application/json"), (b"upgrade", b"HTTP/1.1"), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": 426, "headers": headers})
    body = b'{"error":{"message":"This endpoint does not support WebSockets; send a POST request.","type":"upgrade"}}'
    await send({"type": "websocket.http.response.body", "body": body})
    LOG.debug("a WebSocket was refused")
