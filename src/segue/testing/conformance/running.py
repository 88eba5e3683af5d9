"""Sends the cases to a server or gateway, with a scripted provider after it that shows what arrives.

The provider is the emulator: it answers by the script of each case, refuses what the real one refuses, and signs its
reasoning. The gateway has to send its requests there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast, final
from urllib.parse import quote

import msgspec

from segue.calls.reading import read_call
from segue.conversation.messages import AssistantMessage
from segue.errors import MissingExtra, SegueError
from segue.framing.sse import SseDecoder
from segue.protocols.api import decode_response, stream_decoder
from segue.testing.conformance.card import Card, Outcome
from segue.testing.conformance.cases import CaseStep, ConformanceCase, WireCases, load_wire, wire_names
from segue.testing.conformance.judging import FAILING, Received, find_losses, find_reply_faults, state_of
from segue.testing.emulator import Emulator, serve_in_thread
from segue.testing.emulator.app import Receive, Scope, Send

try:
    import httpx2
except ModuleNotFoundError as _missing:
    raise MissingExtra("the conformance suite needs httpx2, which is not installed", extra="client") from _missing

REPORT_HEADERS: Final = ("x-segue-changes", "warning")
"""Headers by which a gateway tells a client that something was changed; "0" means nothing."""
_TIMEOUT: Final = 60.0
_SHOWN: Final = 200
_REPEATED: Final = 3
"""How often a gateway may send a request again."""
_SIMPLE: Final = frozenset(("text", "thinking"))
"""What a step may have for which any reply will do."""


@final
class Upstream:
    """The scripted provider, as an ASGI application that keeps its replies."""

    def __init__(self, models: Collection[str] = ()) -> None:
        self.emulator: Emulator = Emulator(models=models)
        self.replies: list[bytearray] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        reply = bytearray()
        self.replies.append(reply)  # at once: the client may have read the reply before the server is done with it

        async def keep(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            reply.extend(message.get("body", b""))
            await send(message)

        await self.emulator(scope, receive, keep)

    def received(self, since: int) -> Received | None:
        """Return the newest request for a reply that was accepted, of those since a number."""
        for request in reversed(self.emulator.requests[since:]):
            if request.status == 200 and request.body and request.method == "POST":
                call = read_call(request.method, request.path, request.headers, msgspec.json.encode(request.body))
                if call.kind == "generate":
                    return Received(call, cast("Mapping[str, Any]", request.body))
        return None

    def refusals(self, since: int) -> list[str]:
        """Return why requests since a number were refused."""
        return [f"the provider refuses it: {each.refusal}" for each in self.emulator.requests[since:] if each.refusal]


@contextmanager
def run_upstream(port: int = 0, models: Collection[str] = ()) -> Generator[tuple[str, Upstream]]:
    """Run a scripted provider on this machine while the block runs; gives its URL, and the provider."""
    upstream = Upstream(models)
    with serve_in_thread(upstream, port=port) as url:
        yield url, upstream


def run_suite(
    url: str,
    *,
    upstream: Upstream | None = None,
    wires: Sequence[str] = (),
    cases: Collection[str] = (),
    model: str | None = None,
    key: str = "any",
    report_headers: Sequence[str] = REPORT_HEADERS,
    headers: Mapping[str, str] | None = None,
    on_case: Callable[[Outcome], None] | None = None,
) -> Card:
    """Send the cases of some wires, or of all, to a server or gateway.

    `url` is its address without the `/v1` of a wire. Without `upstream`, what arrives is not judged. `model` is the
    name to ask for, in place of the one that a case is written for; `headers` are sent with every request.
    """
    outcomes: list[Outcome] = []
    skipped = 0
    # A slow server may close a connection that waits at the moment when it is used again.
    alone = httpx2.Limits(max_keepalive_connections=0)
    with httpx2.Client(timeout=_TIMEOUT, trust_env=False, headers=headers, limits=alone) as client:
        for wire in wires or wire_names():
            rows = load_wire(wire)
            target = _Target(_root(url), client, rows, upstream, model, key, tuple(report_headers))
            for case in rows.cases:
                if cases and case.id not in cases:
                    continue
                if upstream is None and not all(_SIMPLE.issuperset(step.upstream) for step in case.steps):
                    skipped += 1
                    continue
                outcomes.append(target.run(case))
                if on_case is not None:
                    on_case(outcomes[-1])
    return Card(target=url, outcomes=tuple(outcomes), skipped=skipped)


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1beta").removesuffix("/v1")


@final
class _Answer(NamedTuple):
    """What the client received: the wire's reply if it was whole, the decoded one, and what is wrong with it."""

    body: Mapping[str, Any]
    reply: AssistantMessage | None
    pieces: Sequence[str] | None
    is_reported: bool
    fault: str | None = None


@final
class _Run(NamedTuple):
    """A case, sent whole or streamed."""

    refused: list[str]
    lost: list[str]
    reply_faults: list[str]
    is_reported: bool


@final
class _Target(NamedTuple):
    """Where the cases of one wire are sent."""

    root: str
    client: httpx2.Client
    wire: WireCases
    upstream: Upstream | None
    model: str | None
    key: str
    report_headers: tuple[str, ...]

    def run(self, case: ConformanceCase) -> Outcome:
        """Send a case whole, and again with a streamed last reply."""
        whole, streamed = self._run(case, stream=False), self._run(case, stream=True)
        refused = [*dict.fromkeys((*whole.refused, *streamed.refused))]
        lost = [*dict.fromkeys((*whole.lost, *streamed.lost, *whole.reply_faults))]
        faults = [*refused, *lost, *(f"in a stream: {fault}" for fault in streamed.reply_faults)]
        is_lossy = bool(refused or lost)
        return Outcome(
            wire=self.wire.wire,
            case=case.id,
            title=case.title,
            accepted=not refused,
            kept=None if self.upstream is None or refused else not lost,
            reported=(whole.is_reported and streamed.is_reported) if is_lossy else None,
            streamed=None if streamed.refused else not streamed.reply_faults,
            faults=tuple(faults),
        )

    def _run(self, case: ConformanceCase, *, stream: bool) -> _Run:
        answers: list[_Answer] = []
        earlier: list[Received] = []
        state: set[str] = set()
        lost: list[str] = []
        for at, step in enumerate(case.steps):
            is_last = at == len(case.steps) - 1
            requests, replies = 0, 0
            if self.upstream is not None:
                # A request that is sent again gets the same reply, and then it is not cut.
                again = {key: value for key, value in step.upstream.items() if key not in FAILING}
                self.upstream.emulator.script.replace(step.upstream, *(again for _ in range(_REPEATED)))
                requests, replies = len(self.upstream.emulator.requests), len(self.upstream.replies)
            answer = self._send(case, step, answers, stream=stream and is_last)
            answers.append(answer)
            refusals = [] if self.upstream is None else self.upstream.refusals(requests)
            if answer.fault is not None or answer.reply is None:
                return _Run([answer.fault or "there is no reply", *refusals], [], [], answer.is_reported)
            if self.upstream is None:
                continue
            received = self.upstream.received(requests)
            if received is None:
                return _Run(["no request reached the scripted provider", *refusals], [], [], answer.is_reported)
            if is_last:
                lost = find_losses(case.expect, self.wire.wire, received, earlier, state)
            earlier.append(received)
            state.update(*(state_of(bytes(reply)) for reply in self.upstream.replies[replies:]))
        last = answers[-1]
        assert last.reply is not None, "a case without a reply has ended"
        script = case.steps[-1].upstream
        faults = find_reply_faults(last.reply, script, pieces=last.pieces) if self.upstream is not None else []
        if self.upstream is None and last.reply.stop_reason == "error":
            faults = [last.reply.error_message or "the reply ends with an error"]
        return _Run([], lost, faults, last.is_reported)

    def _send(self, case: ConformanceCase, step: CaseStep, answers: Sequence[_Answer], *, stream: bool) -> _Answer:
        model = self.model or case.model or self.wire.model
        body: dict[str, Any] = self._filled(step.body, answers)
        path = (self.wire.stream_path if stream else None) or self.wire.path
        if "{model}" in path:
            path = path.replace("{model}", quote(model, safe=""))
        else:
            body |= {"model": model, "stream": stream}
        headers = {name: value.replace("{key}", self.key) for name, value in self.wire.headers.items()}
        try:
            with self.client.stream("POST", self.root + path, json=body, headers=headers) as response:
                is_reported = any(response.headers.get(name, "0") not in ("", "0") for name in self.report_headers)
                if response.status_code != 200:
                    text = response.read().decode("utf-8", "replace")
                    fault = f"status {response.status_code}: {text[:_SHOWN]}"
                    # A refusal that says something is a report.
                    return _Answer({}, None, None, 400 <= response.status_code < 500 and len(text) > 2, fault)
                if stream:
                    return self._read_stream(response, is_reported=is_reported)
                plain = cast("dict[str, Any]", msgspec.json.decode(response.read()))
                reply = decode_response(plain, protocol=self.wire.wire)
        except (httpx2.HTTPError, msgspec.DecodeError, SegueError) as error:
            fault = f"the answer cannot be read: {type(error).__name__}: {error}"
            return _Answer({}, None, None, is_reported=False, fault=fault)
        return _Answer(plain, reply, None, is_reported)

    def _read_stream(self, response: httpx2.Response, *, is_reported: bool) -> _Answer:
        if "event-stream" not in response.headers.get("content-type", ""):
            return _Answer({}, None, (), is_reported, "a stream was asked for, and the answer is not one")
        decoder, frames = stream_decoder(protocol=self.wire.wire), SseDecoder()
        pieces: list[str] = []
        try:
            for data in response.iter_bytes():
                for frame in frames.feed(data):
                    pieces += [event.delta for event in decoder.feed(frame.data) if event.type == "text_delta"]
        except httpx2.HTTPError:
            pass  # a cut connection is an end that the client sees
        for frame in frames.finish():
            decoder.feed(frame.data)
        decoder.finish()
        return _Answer({}, decoder.message, pieces, is_reported)

    def _filled(self, value: Any, answers: Sequence[_Answer]) -> Any:  # noqa: ANN401 - JSON
        """Put what earlier replies had into their places."""
        if isinstance(value, list):
            filled: list[Any] = []
            for each in cast("list[Any]", value):
                place = cast("dict[str, int]", each).get("$reply") if isinstance(each, dict) else None
                filled += [self._filled(each, answers)] if place is None else self._turns(place, answers)
            return filled
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, Any]", value)
        if "$call" in fields:
            step, at = cast("tuple[int, int]", fields["$call"])
            reply = answers[step].reply
            calls = () if reply is None else reply.tool_calls()
            return calls[at].id if at < len(calls) else "call_that_was_not_made"
        if "$id" in fields:
            return answers[cast("int", fields["$id"])].body.get("id")
        return {key: self._filled(inner, answers) for key, inner in fields.items()}

    def _turns(self, step: int, answers: Sequence[_Answer]) -> list[Any]:
        """Return the turns of a reply, for the next request."""
        found: Any = answers[step].body
        for key in self.wire.reply_path:
            found = found[key]
        if self.wire.reply_role is not None:
            return [{"role": self.wire.reply_role, "content": found}]
        return cast("list[Any]", found) if isinstance(found, list) else [found]
