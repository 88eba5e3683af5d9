"""Replies over a WebSocket: the Responses protocol on one connection that remembers the newest reply.

A client sends `response.create` with the body of a request and gets the events of the reply, each as a message. The
newest reply and its history stay in the memory of the connection, also with `store: false`: a request that names it
sends new items alone, and only these are read, projected and encoded.

Facts (openai 3.49.0: resources/responses, types/responses; OpenAI documentation: WebSocket mode;
codex @343074d4; read 2026-11-17):
- `response.create` is the body of a request without `stream` and `background`, with `generate` (false: nothing is
  generated, and the id can be continued) and `stream_id`. Without `stream_id` it belongs to the default lane, whose
  requests are answered one after the other. Several lanes are an option of the server.
- An error is `{"type": "error", "status", "headers"?, "error": {"type", "code", "message", "param"}}`. An unknown
  `previous_response_id` has the code `previous_response_not_found`: the client sends the whole input. A continuation
  that fails removes the id. A lane too many has the code `websocket_stream_limit_reached`, a connection that is too old
  `websocket_connection_limit_reached`.
- A steer that is not accepted is answered with `response.steer.failed` and its input.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from segue.calls.reading import Call, has_socket, parse_body, read_continued, read_further
from segue.calls.replies import encode_error, stream_encoder
from segue.client.session.outboxes import Outboxes
from segue.conversation.events import DoneEvent, StartEvent
from segue.conversation.messages import StopReason, Usage
from segue.errors import CallError, SegueError, UnknownModel
from segue.failures.failure import Failure
from segue.foundation.json_text import encode_json
from segue.foundation.quoting import raw_headers
from segue.gateway.answers import Receive, answer_stream, explain_error, explain_to_client
from segue.gateway.asking import Continuation, read_asked
from segue.gateway.exchange import Exchange, random_name
from segue.gateway.gate import GateTurn
from segue.gateway.hints import find_client
from segue.gateway.intake import Admission, Refused, check_values, read_limited
from segue.gateway.provider_objects import check_body
from segue.gateway.responses import WholeRequest, find_whole, previous_id, turns_of_request, without_previous
from segue.gateway.service import Gateway
from segue.gateway.writing import Send
from segue.models.catalogue import Catalogue
from segue.models.origin import new_assistant_message
from segue.protocols.registry import get_protocol

_CREATE: Final = "response.create"
_STEER: Final = "response.steer"
_SOCKET_KEYS: Final = frozenset({"type", "generate", "stream", "stream_id", "background"})
"""Keys of a message that the body of a request does not have, or that have no meaning here."""
_READ_WITH_TURNS: Final = ("model", "instructions", "tools")
"""Fields of a request with which its turns are read: the model, whether a first message is the system prompt, tools."""
_SHOWN_HEADERS: Final = (b"retry-after", b"x-should-retry", b"x-segue-request-id")
_TOO_BIG: Final = 1009
_TRY_LATER: Final = 1013
_OK: Final = 1000


class _Gone(Exception):
    """The client closed the connection."""


class _Reply:
    """Takes what is written for HTTP: the lines of a stream become messages, an error status becomes an error."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._status = 200
        self._headers: list[tuple[bytes, bytes]] = []
        self.has_failed: bool = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
            return
        data: bytes = message.get("body", b"")
        if self._status < 400:
            for line in data.split(b"\n"):
                if line:
                    await self._send({"type": "websocket.send", "text": line.decode()})
        elif data:
            self.has_failed = True
            shown = {name.decode(): value.decode() for name, value in self._headers if name in _SHOWN_HEADERS}
            body: Any = msgspec.json.decode(data)
            await _send(
                self._send, {"type": "error", "status": self._status, "headers": shown, "error": body.get("error")}
            )


async def _send(send: Send, frame: Mapping[str, object]) -> None:
    await send({"type": "websocket.send", "text": encode_json(frame).decode()})


class Socket:
    """One connection: what it remembers, and the requests on it, one after the other."""

    def __init__(
        self, gateway: Gateway, headers: dict[str, str], path: str, receive: Receive, send: Send, *, turn: GateTurn
    ) -> None:
        self._gateway = gateway
        self._turn = turn
        self._headers = headers
        self._path = path
        self._receive = receive
        self._send = send
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._gone = asyncio.Event()
        self._outboxes = Outboxes()
        self._latest: tuple[str, Continuation] | None = None
        self._held = 0
        self._is_large = False
        """Whether a message of what is remembered made much work."""

    async def serve(self, tenant: str) -> None:
        """Accept the connection and serve it to its end."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        self._turn.leave()  # each message has its own turn
        limits = self._gateway.config.limits
        end = monotonic() + limits.socket_minutes * 60
        pump = asyncio.create_task(self._pump())
        try:
            while True:
                left = end - monotonic()
                if left <= 0:
                    text = f"The connection is older than {limits.socket_minutes:g} minutes; open another one."
                    await self._fail(400, text, "websocket_connection_limit_reached")
                    await self._close(_OK)
                    return
                try:
                    data = await asyncio.wait_for(self._messages.get(), min(left, limits.socket_idle_seconds))
                except TimeoutError:
                    if limits.socket_idle_seconds < left:
                        await self._close(_OK, "idle")
                        return
                    continue  # uvloop's timers may be a millisecond early
                if data is None or not await self._serve_message(data, tenant):
                    return
        except _Gone:
            return
        finally:
            pump.cancel()
            self._gateway.intake.release(tenant, self._held)

    async def _pump(self) -> None:
        """Read messages; one waits while another is answered, and the rest stay with the server."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._gone.set()
                await self._messages.put(None)
                return
            text = message.get("text")
            await self._messages.put(text.encode("utf-8", "surrogatepass") if text is not None else message["bytes"])

    async def _close(self, code: int, reason: str = "") -> None:
        with suppress(Exception):  # the client may be gone already
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _fail(self, status: int, message: str, code: str | None = None, param: str | None = None) -> None:
        error = {"type": "invalid_request_error", "code": code, "message": message, "param": param}
        await _send(self._send, {"type": "error", "status": status, "error": error})

    async def _serve_message(self, data: bytes, tenant: str) -> bool:
        """Serve one message; False if the connection ends with it."""
        runtime = self._gateway.runtime
        try:
            key = self._gateway.authenticate(self._headers, self._path.partition("?")[2], runtime)
        except Refused:
            key = None
        if key is None or key.tenant != tenant:
            await self._fail(401, "the key is not one of this gateway any more", "invalid_api_key")
            await self._close(_TRY_LATER)
            return False
        try:
            with runtime.used(), self._gateway.intake.admitted(tenant, runtime, key, turn=self._turn) as admission:
                admission.hold(len(data))
                admission.weigh(data)
                if self._latest is not None:
                    admission.weigh_history(len(self._latest[1].turns), is_large=self._is_large)
                await self._turn.renew()
                await self._serve_event(data, admission)
        except Refused as refused:
            await self._fail_with(refused.failure, refused.status)
            if refused.status == 413:
                await self._close(_TOO_BIG)
                return False
        except CallError as error:
            await self._fail(error.status, str(error))
        except UnknownModel as error:
            await self._fail_with(explain_error(error), 404)
        except SegueError as error:
            shown, _ = explain_to_client(explain_error(error), find_client(self._headers), None)
            await self._fail_with(shown, None)
        finally:
            self._turn.leave()
        return not self._gone.is_set()

    async def _fail_with(self, failure: Failure, status: int | None) -> None:
        reply = encode_error(failure, protocol=SOCKET_PROTOCOL)
        frame = {"type": "error", "status": status or reply.status, "headers": reply.headers, **reply.body}
        await _send(self._send, frame)

    async def _serve_event(self, data: bytes, admission: Admission) -> None:
        check_values(data, admission.limits)
        event = await admission.run(parse_body, data, SOCKET_PROTOCOL)
        if admission.tenant:
            await admission.run(check_body, data, event, SOCKET_PROTOCOL)
        kind = None if event is None else event.get("type")
        if event is not None and kind == _STEER:
            await self._refuse_steer(event)
        elif event is None or kind != _CREATE:
            await self._fail(400, f"Invalid value: {kind!r}; send {_CREATE!r}.", "invalid_event", "type")
        elif event.get("stream_id") is not None:
            await self._refuse_lane(event["stream_id"])
        elif event.get("background"):
            await self._fail(400, "A reply on a WebSocket cannot be made in the background.", None, "background")
        else:
            await self._create(event, admission)

    async def _refuse_steer(self, event: Mapping[str, object]) -> None:
        steer = {"input": event.get("input", ""), "previous_response_id": event.get("previous_response_id", "")}
        message = "This server does not support steering; send the input with the next response.create."
        error = {"type": "invalid_request_error", "code": "steering_not_supported", "message": message}
        await _send(self._send, {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer})

    async def _refuse_lane(self, name: object) -> None:
        is_valid = isinstance(name, str) and 0 < len(name) <= 256 and set(name) <= _LANE_ALPHABET
        error = {
            "type": "invalid_request_error",
            "code": "websocket_stream_limit_reached" if is_valid else "invalid_stream_id",
            "message": "This server has the default lane only; leave out stream_id."
            if is_valid
            else "A stream_id has 1 to 256 letters, digits, and the characters '_', '.', '-'.",
            "param": "stream_id",
        }
        shown = {"stream_id": name} if is_valid else {}
        await _send(self._send, {"type": "error", "status": 400, **shown, "error": error})

    async def _create(self, event: Mapping[str, object], admission: Admission) -> None:
        body = {key: value for key, value in event.items() if key not in _SOCKET_KEYS}
        if isinstance(body.get("input"), str):  # the same in the form of the requests that continue it
            body["input"] = [{"role": "user", "content": body["input"]}]
        catalogue = admission.runtime.router.catalogue
        call = await admission.run(
            read_limited,
            "POST",
            self._path,
            self._headers,
            body,
            catalogue=catalogue,
            limits=admission.limits,
        )
        call = replace(call, stream=True, framing="ndjson")
        name, continued = previous_id(call), None
        whole = WholeRequest(call, turns_of_request(call))
        if name is not None:
            if self._latest is not None and self._latest[0] == name:
                whole, continued = await admission.run(_read_whole, self._latest[1], call, catalogue)
            elif (found := await find_whole(self._gateway, admission, call)) is not None:
                whole = found
            else:
                text = f"Previous response with id '{name[:200]}' not found."
                await self._fail(400, text, "previous_response_not_found", "previous_response_id")
                return
        asked = await read_asked(
            self._gateway,
            admission,
            whole.call,
            self._headers,
            is_continued=whole.call is not call,
            continued=continued,
            outboxes=self._outboxes,
        )
        is_new = self._latest is None or self._latest[0] != name
        self._latest = None  # whatever happens now, the reply before is not the newest any more
        with Exchange(self._gateway, asked, "req_" + random_name()) as exchange:
            if event.get("generate") is False:
                made = await self._prepare_only(exchange, call)
            else:
                reply = _Reply(self._send)
                await answer_stream(exchange, reply, self._wait_until_gone)
                made = None if reply.has_failed else exchange.continuation()
        if made is not None:
            self._remember(exchange.reply_id, replace(made, turns=whole.turns), admission, is_new=is_new)

    async def _prepare_only(self, exchange: Exchange, call: Call) -> Continuation:
        """Answer a request that generates nothing: its history waits for the request that continues it."""
        assert call.prompt is not None, "a request has a prompt"
        model = exchange.reply_model()
        encoder = stream_encoder(protocol=call.protocol, model=model, options=call.prompt.options)
        message = replace(
            new_assistant_message(model),
            response_id=exchange.reply_id,
            response_model=exchange.asked.name,
            usage=Usage(),
            stop_reason=StopReason.STOP,
        )
        start = StartEvent(id=exchange.reply_id, model=exchange.asked.name)
        for event in (start, DoneEvent(reason=StopReason.STOP, message=message)):
            for frame in encoder.feed(event):
                await _send(self._send, cast("Mapping[str, object]", frame))
        return exchange.unanswered()

    def _remember(self, name: str, made: Continuation, admission: Admission, *, is_new: bool) -> None:
        """Keep a reply in the memory of the connection; what it takes up counts for the key like a body."""
        intake, tenant = self._gateway.intake, admission.tenant
        if is_new:
            intake.release(tenant, self._held)
            self._held = 0
        try:
            intake.hold(tenant, admission.held, admission.limits)
        except Refused:
            return  # the client sends the whole input
        self._held += admission.held
        self._is_large = admission.is_large
        self._latest = name, made

    async def _wait_until_gone(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}


def _read_whole(before: Continuation, call: Call, catalogue: Catalogue) -> tuple[WholeRequest, Continuation | None]:
    """Read a request with the whole history before it.

    The history is not read again, and the continuation is returned, if nothing that is new can change what is read of
    it.
    """
    turns = [*before.turns, *before.reply, *turns_of_request(call)]
    known, prompt = before.call, call.prompt
    assert known.prompt is not None, "it was read"
    assert prompt is not None, "a request has a prompt"
    context = known.prompt.context
    new = prompt.context.messages
    follows = bool(new) and new[0].role != "assistant"  # else they are one turn with the reply
    if before.reply and follows and context.tools == prompt.context.tools and _read_alike(known) == _read_alike(call):
        key = get_protocol(known.body_protocol).turns_key or ""
        same = replace(known, body={**(known.body or {}), key: [*before.turns]})
        count = len(before.turns)
        read = read_further(same, count, len(context.messages), turns[count:], catalogue)
        if read is not None and read.prompt is not None:
            options = without_previous(prompt.options)
            whole = replace(call, prompt=replace(prompt, context=read.prompt.context, options=options))
            return WholeRequest(whole, turns), before
    return WholeRequest(read_continued(call, turns, catalogue), turns), None


def _read_alike(call: Call) -> dict[str, object]:
    """Return the fields of a request that decide how its turns are read."""
    body = call.body or {}
    return {key: body[key] for key in _READ_WITH_TURNS if key in body}


SOCKET_PROTOCOL: Final = "openai-responses"
_LANE_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def check_socket(path: str, headers: Mapping[str, str]) -> None:
    """Check that an endpoint takes requests over a WebSocket; after a 426 codex sends a POST request at once.

    Raises:
        Refused: it does not.
    """
    if not has_socket(path, headers):
        raise Refused("This endpoint does not support WebSockets; send a POST request.", 426)


async def refuse_socket(send: Send, failure: Failure, extensions: Mapping[str, object], status: int | None) -> None:
    """Answer the request for a WebSocket with an error."""
    if "websocket.http.response" not in extensions:
        await send({"type": "websocket.close"})
        return
    encode = get_protocol(SOCKET_PROTOCOL).encode_error
    assert encode is not None, "the protocol has errors"
    reply = encode(failure)
    headers = {"content-type": "application/json", **reply.headers, "connection": "close"}
    if status == 426:
        headers["upgrade"] = "HTTP/1.1"
    code = status or reply.status
    await send({"type": "websocket.http.response.start", "status": code, "headers": raw_headers(headers)})
    await send({"type": "websocket.http.response.body", "body": encode_json(reply.body)})
