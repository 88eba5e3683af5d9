"""The emulator as an ASGI application: the endpoints of Anthropic, OpenAI and Google, and three of its own.

- `GET /emulator/requests`: the requests so far, with what was answered; `DELETE` empties the list.
- `POST /emulator/steps`: adds steps to the script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from hashlib import sha256
from typing import Any, Final, TypeAlias, final

import msgspec

from segue.calls import Call, read_call
from segue.errors import CallError, SegueError
from segue.failures.failure import Failure, FailureKind
from segue.framing.writing import frame_encoder
from segue.models.catalogue import find_models
from segue.reply_encoding import encode_error, encode_model_list
from segue.testing.emulator.answering import Answer, Provider, framing_of
from segue.testing.emulator.script import Script, Step, load_steps
from segue.testing.emulator.signing import PROTOCOLS, Signer
from segue.testing.emulator.versions import refuse_by_version

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_CONTENT_TYPES: Final = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "json-array": "application/json",
    "none": "application/json",
}


@final
class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A request that the emulator got, and its answer: `refusal` says why the provider would refuse it."""

    method: str
    path: str
    protocol: str | None
    model: str | None
    status: int
    refusal: str | None = None
    body: object = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class Emulator:
    """An ASGI application that answers like the providers.

    `key` makes the signatures: an emulator with another key refuses them. With `binds_prefix`, a signature is valid
    only after the same conversation. `strict=False` accepts bodies that `check` refuses. `api_key` is the only key
    that is accepted; None accepts any.
    """

    def __init__(
        self,
        *steps: Step,
        key: str = "emulator",
        binds_prefix: bool = False,
        strict: bool = True,
        api_key: str | None = None,
    ) -> None:
        self.script: Script = Script(steps)
        self.requests: list[RecordedRequest] = []
        self._api_key = api_key
        signer = Signer(sha256(key.encode()).digest(), binds_prefix=binds_prefix)
        self._strict = strict
        self._provider = Provider(self.script, signer, strict=strict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await _serve_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        path = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        query = scope.get("query_string", b"").decode("latin-1")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method: str = scope["method"]
        if path.startswith("/emulator/"):
            await _send_json(send, *self._control(method, path, bytes(body)))
            return
        answer, call = self._answer(method, f"{path}?{query}" if query else path, headers, bytes(body))
        self.requests.append(
            RecordedRequest(
                method=method,
                path=path,
                protocol=None if call is None else call.protocol,
                model=None if call is None else call.model,
                status=answer.status,
                refusal=answer.refusal,
                body=None if call is None else call.body,
                headers=headers,
            )
        )
        await _send(send, answer, "none" if call is None else framing_of(call))

    def _control(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        if path == "/emulator/requests" and method == "GET":
            return 200, self.requests
        if path == "/emulator/requests" and method == "DELETE":
            self.requests.clear()
            return 200, {}
        if path == "/emulator/steps" and method == "POST":
            try:
                self.script.add(*load_steps(body))
            except SegueError as error:
                return 400, {"error": str(error)}
            return 200, {}
        return 404, {"error": f"the emulator has no {method} {path}"}

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[Answer, Call | None]:
        try:
            call = read_call(method, path, headers, body)
        except CallError as error:
            kind = FailureKind.NOT_FOUND if error.status in (404, 405, 426) else FailureKind.INVALID_REQUEST
            reply = encode_error(
                Failure(kind=kind, status=error.status, message=str(error)), protocol=error.protocol or PROTOCOLS[0]
            )
            return Answer(status=error.status, headers=reply.headers, body=reply.body, refusal="call"), None
        if call.protocol not in PROTOCOLS:
            body_of: dict[str, object] = {"error": f"the emulator does not serve {call.protocol}"}
            return Answer(status=404, headers={}, body=body_of, refusal="protocol"), call
        if not self._is_allowed(headers, call):
            reply = encode_error(Failure(kind=FailureKind.AUTH, status=401), protocol=call.protocol)
            return Answer(status=reply.status, headers=reply.headers, body=reply.body, refusal="key"), call
        if call.kind == "models":
            listed = encode_model_list(find_models(protocol=call.protocol)[:50], protocol=call.protocol)
            return Answer(status=200, headers={}, body=listed), call
        refused = refuse_by_version(call, headers) if self._strict else None
        return refused or self._provider.answer(call), call

    def _is_allowed(self, headers: dict[str, str], call: Call) -> bool:
        if self._api_key is None:
            return True
        given = headers.get("x-api-key") or headers.get("x-goog-api-key") or call.query.get("key")
        given = given or headers.get("authorization", "").removeprefix("Bearer ")
        return given == self._api_key


async def _serve_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _send_json(send: Send, status: int, value: object) -> None:
    await _send_body(send, status, {}, msgspec.json.encode(value))


async def _send_body(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    given = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    await send({"type": "http.response.start", "status": status, "headers": _raw(given)})
    await send({"type": "http.response.body", "body": body})


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _send(send: Send, answer: Answer, framing: str) -> None:
    step = answer.step
    if step.first_byte:
        await asyncio.sleep(step.first_byte)
    if answer.frames is None:
        await _send_body(send, answer.status, answer.headers, msgspec.json.encode(answer.body))
        return
    encoder = frame_encoder(framing)
    headers = {"content-type": _CONTENT_TYPES.get(framing, "application/json"), **answer.headers}
    await send({"type": "http.response.start", "status": answer.status, "headers": _raw(headers)})
    for number, frame in enumerate(answer.frames):
        if step.cut_after is not None and number >= step.cut_after:
            raise ConnectionAbortedError("the script cuts the stream here")
        if step.pause and number:
            await asyncio.sleep(step.pause)
        data = encoder.feed(frame)  # pyright: ignore[reportArgumentType]
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": encoder.finish()})
