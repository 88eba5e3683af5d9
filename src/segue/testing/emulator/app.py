"""The emulator as an ASGI application: the endpoints of every protocol, and a few for tests.

- `GET /emulator/requests`: the requests so far, with what was answered; `DELETE` empties the list.
- `POST /emulator/steps`: adds steps to the script.
- `GET /emulator/bill`: what the requests cost, by API key; `DELETE` starts new bills.
- `POST /emulator/clock` with `{"seconds": 300}`: lets time pass for the prompt caches.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import replace

from segue.calls.reading import Call, read_call
from segue.calls.replies import encode_error, encode_model_list
from segue.errors import CallError, SegueError
from segue.failures.failure import Failure, FailureKind
from segue.foundation.json_text import encode_json
from segue.framing.writing import frame_encoder
from segue.models.catalogue import find_models
from segue.protocols.kit.reading import text_of
from segue.protocols.registry import get_protocol, protocol_names
from segue.testing.emulator.answering import EmulatedAnswer, EmulatedProvider, framing_of
from segue.testing.emulator.binding import AccountLedger, Caller, Recipient, Transformation
from segue.testing.emulator.bodies import BodyReader
from segue.testing.emulator.claude import claude_of
from segue.testing.emulator.decisions import PATH, answer_decision
from segue.testing.emulator.prices import Bill
from segue.testing.emulator.prompt_cache import PromptCache
from segue.testing.emulator.script import Script, StepInput, load_steps
from segue.testing.emulator.signing import Signer
from segue.testing.emulator.versions import refuse_by_version

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_CONTENT_TYPES: Final = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "json-array": "application/json",
    "none": "application/json",
    "aws-event-stream": "application/vnd.amazon.eventstream",
    "aws-chunks": "application/vnd.amazon.eventstream",
}
_JSON: Final = {"content-type": "application/json"}
_STATE_REFUSALS: Final = frozenset(("signature", "prefix"))
_SIGNED: Final = re.compile(r"Credential=([^/,\s]+)/")


@final
class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A request that the emulator got, and its answer.

    `refusal` says why the provider would refuse it, `rule` which rule it breaks, with the row and the source of it.
    """

    method: str
    path: str
    protocol: str | None
    model: str | None
    status: int
    refusal: str | None = None
    rule: str | None = None
    body: object = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    organization: str | None = None
    """The account that sent it."""
    transformations: tuple[Transformation, ...] = ()
    """Thinking that was dropped or let through, reported to the client or not."""
    bill: Bill | None = None
    """What it cost; None if it was refused."""

    @property
    def is_refused_for_state(self) -> bool:
        """Whether it was refused because of reasoning that it sent back."""
        return self.refusal in _STATE_REFUSALS


@final
class EmulatedReply(NamedTuple):
    """A whole answer of the emulator."""

    status: int
    headers: dict[str, str]
    body: bytes


class Emulator:
    """An ASGI application that answers like the providers.

    - `key` makes the signatures: an emulator with another key refuses them.
    - `account`: "new" refuses Claude thinking of another conversation as accounts created since 2026-08-31 do, "old" as
      older accounts do: most models let it through.
    - `organizations` has the organization of each API key; other keys belong to "org_emulator". At Bedrock it is
      another account.
    - `withholds`: OpenAI does not refuse reasoning of another organization, model or prefix, but withholds it from the
      model and says so in the reply.
    - `ledger` is what the emulator remembers of its replies: pass that of another emulator to continue where it ended.
    - `clock` gives the time in seconds, for the prompt caches; `advance` lets time pass.
    - `strict=False` accepts what only a strict provider refuses: bodies in which `check` finds something, models that
      are not served, prompts that are longer than the window. `models` are names that are served in addition to the
      catalogue, such as deployments. `api_key` is the only key that is accepted; None accepts any.
    """

    def __init__(
        self,
        *steps: StepInput,
        key: str = "emulator",
        account: Literal["old", "new"] = "new",
        organizations: Mapping[str, str] | None = None,
        ledger: AccountLedger | None = None,
        strict: bool = True,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        models: Collection[str] = (),
        withholds: bool = False,
    ) -> None:
        self.script: Script = Script(steps)
        self.requests: list[RecordedRequest] = []
        self.ledger: AccountLedger = AccountLedger() if ledger is None else ledger
        self._bodies = BodyReader()
        self._api_key = api_key
        self._is_old = account == "old"
        self._organizations = dict(organizations or {})
        self._strict = strict
        self._skipped = 0.0
        self.compacts: bool = False
        """Whether `/responses/compact` is served."""
        self.bills: dict[str, Bill] = {}
        """What the requests of each API key cost."""
        cache = PromptCache(lambda: clock() + self._skipped)
        signer = Signer(sha256(key.encode()).digest())
        self._provider = EmulatedProvider(
            self.script, signer, self.ledger, cache, strict=strict, models=models, withholds=withholds
        )

    def respond(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        step: StepInput | None = None,
        is_recorded: bool = True,
    ) -> EmulatedReply:
        """Answer a request without a server, whole and without delays; `path` has the query.

        `step` is the answer, before the script. With `is_recorded=False` the request is not listed: that is how a test
        gets a reply of an earlier time.
        """
        if step is not None:
            self.script.add_first(step)
        answer, call = self._handle(method, path, _lowered(headers), body, is_recorded=is_recorded)
        framing = "none" if call is None else framing_of(call)
        if answer.frames is None:
            return EmulatedReply(answer.status, {**_JSON, **answer.headers}, encode_json(answer.body))
        encoder = frame_encoder(framing)
        data = b"".join(encoder.feed(frame) for frame in answer.frames[: answer.step.cut_after])  # pyright: ignore[reportArgumentType]
        return EmulatedReply(answer.status, {**_stream_headers(framing), **answer.headers}, data + encoder.finish())

    def bill(self, key: str | None = None) -> Bill:
        """Return what the requests of an API key cost; without a key, of all keys."""
        return sum(self.bills.values(), Bill()) if key is None else self.bills.get(key, Bill())

    def advance(self, seconds: float) -> None:
        """Let time pass: entries of the prompt caches expire."""
        self._skipped += seconds

    def refused_for_state(self) -> list[RecordedRequest]:
        """Return the requests that were refused because of reasoning that they sent back."""
        return [request for request in self.requests if request.is_refused_for_state]

    def repeated(self) -> list[RecordedRequest]:
        """Return the requests that a client sent again, body and headers unchanged, after they had been refused."""
        refused: set[bytes] = set()
        found: list[RecordedRequest] = []
        for request in self.requests:
            betas = request.headers.get("anthropic-beta")
            sent = msgspec.json.encode((request.path, request.organization, betas, request.body), order="sorted")
            if sent in refused:
                found.append(request)
            if request.refusal is not None:
                refused.add(sent)
        return found

    def withheld(self, request: RecordedRequest, known: Collection[str]) -> tuple[str, ...]:
        """Return the signatures that a request did not send although the model would have accepted them.

        `known` is what the client had: signatures that the emulator made. Of reasoning items it is their encrypted
        content.
        """
        model = claude_of(request.model or "")
        wire = None if request.protocol is None else get_protocol(request.protocol).signatures.claude
        if not request.body:
            return ()
        if model is None or wire is None:
            body = msgspec.json.encode(request.body)
            call = read_call(request.method, request.path, request.headers, body)
            return self._provider.given_up(call, self._caller(request.path, request.headers), known)
        asked = self._bodies.read(wire, cast("Mapping[str, Any]", request.body))
        caller = self._caller(request.path, request.headers)
        return self.ledger.withheld(asked, known, Recipient(wire, model, caller))

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
        target = f"{path}?{query}" if query else path
        answer, call = self._handle(method, target, headers, bytes(body))
        await _send(send, answer, "none" if call is None else framing_of(call))

    def _handle(
        self, method: str, path: str, headers: dict[str, str], body: bytes, *, is_recorded: bool = True
    ) -> tuple[EmulatedAnswer, Call | None]:
        caller, call, decided = self._caller(path, headers), None, None
        try:
            call = read_call(method, path, headers, body)
        except CallError as error:
            is_decision = method == "POST" and path.partition("?")[0] == PATH
            answer, decided = answer_decision(body, self.script) if is_decision else (_refuse_call(error), None)
        else:
            answer = self._answer(call, caller, headers)
        if call is not None and answer.status < 400:  # refusals do not name it
            answer = replace(answer, headers={**answer.headers, **_organization_header(call.protocol, caller)})
        if answer.bill is not None and is_recorded:
            key = _key_in(path, headers)
            self.bills[key] = self.bill(key) + answer.bill
        if is_recorded:
            self.requests.append(
                RecordedRequest(
                    method=method,
                    path=path.partition("?")[0],
                    protocol=None if call is None else call.protocol,
                    model=text_of((decided or {}).get("model")) if call is None else call.model,
                    status=answer.status,
                    refusal=answer.refusal,
                    rule=answer.rule,
                    body=decided if call is None else call.body,
                    headers=headers,
                    organization=caller.organization,
                    transformations=answer.transformations,
                    bill=answer.bill,
                )
            )
        return answer, call

    def _caller(self, path: str, headers: dict[str, str]) -> Caller:
        key = _key_in(path, headers)
        organization = self._organizations.get(key, "org_emulator")
        is_bedrock = path.startswith("/model/")
        betas = (beta.strip() for beta in headers.get("anthropic-beta", "").split(","))
        return Caller(
            organization=f"aws:{organization}" if is_bedrock else organization,
            betas=frozenset(beta for beta in betas if beta),
            old_account=self._is_old,
            surface="vertex" if "/publishers/" in path else "gemini",
        )

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
        if path == "/emulator/bill" and method == "GET":
            return 200, {"keys": self.bills, "total": self.bill()}
        if path == "/emulator/bill" and method == "DELETE":
            self.bills.clear()
            return 200, {}
        if path == "/emulator/clock" and method == "POST":
            try:
                self.advance(msgspec.json.decode(body, type=dict[str, float])["seconds"])
            except (msgspec.DecodeError, KeyError):
                return 400, {"error": 'send {"seconds": 300}'}
            return 200, {}
        return 404, {"error": f"the emulator has no {method} {path}"}

    def _answer(self, call: Call, caller: Caller, headers: dict[str, str]) -> EmulatedAnswer:
        record = get_protocol(call.protocol)
        if record.encode_error is None or (call.stream and record.stream_encoder is None):
            body_of: dict[str, object] = {"error": f"{call.protocol} has no errors or streams to write"}
            return EmulatedAnswer(status=404, headers={}, body=body_of, refusal="protocol")
        if self._api_key is not None and _key_in("", headers, call.query) != self._api_key:
            failure = Failure(kind=FailureKind.AUTH, status=401)
            reply = encode_error(failure, protocol=call.protocol, transport=call.transport)
            return EmulatedAnswer(status=reply.status, headers=reply.headers, body=reply.body, refusal="key")
        if call.answer is not None:
            return EmulatedAnswer(status=200, headers={}, body=dict(call.answer))
        if call.kind == "models":
            listed = encode_model_list(find_models(protocol=call.protocol)[:50], protocol=call.protocol)
            return EmulatedAnswer(status=200, headers={}, body=listed)
        if call.kind == "compact" and self.compacts:
            return self._provider.compact(call, caller)
        if call.kind not in ("generate", "count"):
            text = "The emulator keeps no replies and compacts no history."
            failure = Failure(kind=FailureKind.INVALID_REQUEST, status=404, message=text)
            return EmulatedAnswer(status=404, headers={}, body=encode_error(failure, protocol=call.protocol).body)
        refused = refuse_by_version(call, headers, caller.surface) if self._strict else None
        return refused or self._provider.answer(call, caller)


def _refuse_call(error: CallError) -> EmulatedAnswer:
    kind = FailureKind.NOT_FOUND if error.status in (404, 405, 426) else FailureKind.INVALID_REQUEST
    failure = Failure(kind=kind, status=error.status, message=str(error))
    reply = encode_error(failure, protocol=error.protocol or protocol_names()[0])
    return EmulatedAnswer(status=error.status, headers=reply.headers, body=reply.body, refusal="call")


def _key_in(path: str, headers: Mapping[str, str], query: Mapping[str, str] | None = None) -> str:
    """Return the API key of a request; for a signed request, the id of its key."""
    given = headers.get("x-api-key") or headers.get("x-goog-api-key")
    given = given or (dict(parse_qsl(path.partition("?")[2])) if query is None else query).get("key")
    authorization = headers.get("authorization", "")
    signed = _SIGNED.search(authorization)
    return given or (signed[1] if signed is not None else authorization.removeprefix("Bearer "))


def _organization_header(protocol: str, caller: Caller) -> dict[str, str]:
    name = get_protocol(protocol).dialect.account_header
    return {name: caller.organization} if name else {}


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _stream_headers(framing: str) -> dict[str, str]:
    return {"content-type": _CONTENT_TYPES.get(framing, "application/json")}


async def _serve_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _send_json(send: Send, status: int, value: object) -> None:
    await _send_body(send, status, {}, encode_json(value))


async def _send_body(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    given = {**_JSON, "content-length": str(len(body)), **headers}
    await send({"type": "http.response.start", "status": status, "headers": _raw(given)})
    await send({"type": "http.response.body", "body": body})


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _send(send: Send, answer: EmulatedAnswer, framing: str) -> None:
    step = answer.step
    if step.first_byte:
        await asyncio.sleep(step.first_byte)
    if answer.frames is None:
        await _send_body(send, answer.status, answer.headers, encode_json(answer.body))
        return
    encoder = frame_encoder(framing)
    headers = {**_stream_headers(framing), **answer.headers}
    await send({"type": "http.response.start", "status": answer.status, "headers": _raw(headers)})
    for number, frame in enumerate(answer.frames):
        if step.cut_after is not None and number >= step.cut_after:
            raise ConnectionAbortedError("the script cuts the stream here")
        if step.pause and number:
            await asyncio.sleep(step.pause)
        data = encoder.feed(frame)  # pyright: ignore[reportArgumentType]
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": encoder.finish()})
