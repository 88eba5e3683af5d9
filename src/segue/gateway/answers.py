"""Sends the reply of an exchange to the client: streamed or whole, or an error in the client's own form."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias, cast

from msgspec.structs import replace

from segue.calls.replies import encode_error, stream_encoder
from segue.client.flow.misreported_errors import explain_error as explain_reply
from segue.client.flow.reading import parse_body
from segue.client.flow.steps import Broken, Head
from segue.client.http.async_streams import AsyncStream
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.conversation.replayed import message_events
from segue.errors import EncodeError, RequestFailed, SegueError, UnknownModel
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.foundation.json_text import encode_json
from segue.foundation.quoting import raw_headers
from segue.framing.writing import frame_encoder
from segue.gateway.exchange import Exchange, failure_of, is_content
from segue.gateway.hints import fit_last_frame, status_of_refused_key
from segue.gateway.looking_up import LookUps
from segue.gateway.relaying import ENDS, StreamRelay
from segue.gateway.service import LOG, now_ms
from segue.gateway.straight_replies import StraightReply
from segue.gateway.writing import ClientStream, Headers, Send
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.api import encode_response
from segue.protocols.kit.json_values import object_of
from segue.protocols.registry import get_protocol

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

_LEFT_SECONDS: Final = 60.0
"""How long a reply is read on that its client left, for the provider's figures; then all that was reserved counts."""
_PAGE_TEXT: Final = "Text of the page:"
_SOURCE: Final = re.compile(
    r"<(?:!doctype|html|head|body|script|title|center)\b|Traceback \(most recent|^\s*File \"", re.IGNORECASE
)
"""Source of a web page, or lines of a program, in the error of a provider or a proxy before it."""
_TYPES: Final = {
    "sse": "text/event-stream; charset=utf-8",
    "ndjson": "application/x-ndjson",
    "json-array": "application/json",
    "aws-event-stream": "application/vnd.amazon.eventstream",
    "aws-chunks": "application/vnd.amazon.eventstream",
}


async def send_json(
    send: Send,
    status: int,
    body: object,
    headers: dict[str, str] | None = None,
    *,
    drop: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Send a JSON document; `drop` runs between the document and the end of the reply."""
    data = body if isinstance(body, bytes) else encode_json(body)
    given = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": raw_headers(given)})
    if drop is not None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
        await drop()
        data = b""
    await send({"type": "http.response.body", "body": data})


async def send_failure(
    send: Send,
    failure: Failure,
    protocol: str,
    headers: dict[str, str] | None = None,
    status: int | None = None,
    *,
    transport: str | None = None,
    drop: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Send a failure in the form of a protocol; return the status. `drop` runs before the end of the reply."""
    reply = encode_error(failure, protocol=protocol, transport=transport)
    code = reply.status if status is None else status
    await send_json(send, code, reply.body, {**reply.headers, **(headers or {})}, drop=drop)
    return code


def explain_error(error: SegueError) -> Failure:
    """Describe an error of segue as a failure of the request."""
    if isinstance(error, RequestFailed):
        return error.failure
    if isinstance(error, UnknownModel):
        return Failure(kind=FailureKind.NOT_FOUND, status=404, message=str(error))
    found = classify(error)
    if found.kind in (FailureKind.UNKNOWN, FailureKind.NOT_FOUND):
        return Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=str(error))
    return found


def explain_to_client(failure: Failure, client: str, provider: str | None) -> tuple[Failure, dict[str, str]]:
    """Return a failure as a client may see it, and its headers: a refused key is the gateway's own, not the client's.

    What a client cannot use is left out: exceptions, addresses of this network, the source of web pages.
    """
    failure = _without_details(failure, provider)
    if failure.kind != FailureKind.AUTH:
        return failure, {}
    name = provider or failure.provider or "the provider"
    row = PROVIDERS.get(name)
    variables = "" if row is None else " or ".join(row.key_variables)
    given = failure.message.partition(", or pass api_key")[0].rstrip(".;, ") or "the API key is invalid"
    text = (
        f"{name} did not accept this gateway: {given}. This is not about the key of the client: set"
        f" {f'{variables} or ' if variables else ''}providers.{name}.key where the gateway runs, and start it again."
    )
    shown = Failure(kind=FailureKind.AUTH, provider=name, status=status_of_refused_key(client), message=text)
    return shown, {"x-should-retry": "false"}


def _without_details(failure: Failure, provider: str | None) -> Failure:
    text = failure.message
    if failure.kind == FailureKind.NETWORK:
        # The exception and the address are in parentheses, or after the first colon (`segue.client.http.faults`).
        text = text.partition(" (")[0].partition(": http")[0]
        text = f"{provider or failure.provider or 'the provider'}: {text}"
    elif _PAGE_TEXT in text:
        text = text.partition(_PAGE_TEXT)[0].strip()
    elif _SOURCE.search(text):
        text = f"{provider or failure.provider or 'the provider'} failed"
    return failure if text == failure.message else replace(failure, message=text)


async def send_fetched(
    send: Send, head: Head | Broken, body: bytes, protocol: str, *, client: str, model: Model
) -> None:
    """Send the answer of a provider to a request of the client's own protocol; an error has the protocol's form."""
    if isinstance(head, Broken):
        failure = Failure(kind=head.kind, provider=model.provider, message=head.text)
    elif (head.status < 300 and not isinstance(parse_body(body), str)) or (
        head.status not in (401, 403) and head.status >= 300 and _is_error(body)
    ):
        await send_json(send, head.status, body, {"x-segue-model": model.full_name()})
        return
    elif head.status < 300:
        failure = Failure(kind=FailureKind.SERVER, provider=model.provider, message="the reply is not JSON")
    else:
        failure = explain_reply(body.decode("utf-8", "replace"), head, model.provider)
    shown, headers = explain_to_client(failure, client, model.provider)
    await send_failure(send, shown, protocol, headers)


def _is_error(body: bytes) -> bool:
    """Whether a body is an error as providers write it, which is more exact than what is known of it here."""
    error = object_of(object_of(parse_body(body)).get("error"))
    return isinstance(error.get("message"), str) and not error.keys().isdisjoint(("type", "code"))


# -- whole replies -----------------------------------------------------------------------------------------------------


async def answer_whole(exchange: Exchange, send: Send, receive: Receive) -> None:
    """Send a reply that is not streamed. It needs no flow, unless its first attempt fails."""
    protocol = exchange.asked.call.protocol
    model: Model | None = None
    leaving: _Leaving | None = None
    try:
        exchange.let_look_up()
        first = await exchange.asked.admission.run(exchange.try_first)
        if first is not None:
            exchange.asked.admission.turn.leave()
            leaving = _Leaving(exchange, first.wire.interrupt, receive)
        message = None if first is None else await exchange.send_first(first)
        if message is None:
            stream = await exchange.begin_apart(exchange.asked.candidates, first)
            model = stream.model
            if leaving is None:
                leaving = _Leaving(exchange, stream.close, receive)
            else:
                await leaving.close_by(stream.close)
            try:
                message = await stream.result()
            finally:
                model = stream.model
            if exchange.look_ups is not None:
                message, model = await _look_up(exchange, message, model, leaving, exchange.look_ups)
        else:
            model = exchange.asked.candidates[0]
        exchange.asked.admission.turn.finish()
        shown = exchange.convert_whole(message, model)
        await exchange.store_state(message)
        if exchange.is_unstored and exchange.attach_again():
            shown = exchange.convert_whole(message, model)
        body: object = exchange.repair_whole(message, model) if exchange.is_straight else b""
        if not body:
            body = encoded = encode_response(exchange.named(shown), protocol=protocol, model=exchange.reply_model())
            exchange.mark_stored(encoded)
    except SegueError as error:
        failure = explain_error(error)
        exchange.learn()
        if model is None or not await _send_refusal(exchange, send, error, failure, model):
            await end_with_status(exchange, send, failure, model)
        return
    finally:
        if leaving is not None:
            leaving.end()
    exchange.first_byte = now_ms()
    exchange.record(200, "done")  # before the reply ends: its client may ask for the row at once
    await send_json(send, 200, body, exchange.response_headers(model))


async def _look_up(
    exchange: Exchange, message: AssistantMessage, model: Model, leaving: _Leaving, look_ups: LookUps
) -> tuple[AssistantMessage, Model]:
    """Answer the look-ups of a reply; return the reply that the client gets, and its model."""
    while (shown := look_ups.take(message)) is None:
        stream = await exchange.begin_apart(exchange.next_round(model))
        await leaving.close_by(stream.close)
        message = await stream.result()
        model = stream.model
    return shown, model


def _is_refusal(exchange: Exchange, failure: Failure, message: AssistantMessage) -> bool:
    """Whether a failure is a reply that ended as a refusal, and the client's protocol has such an end too."""
    refusals = get_protocol(exchange.asked.call.protocol).reply_form.refusals
    return failure.kind == FailureKind.REFUSED and message.raw_stop_reason is not None and bool(refusals)


async def _send_refusal(exchange: Exchange, send: Send, error: SegueError, failure: Failure, model: Model) -> bool:
    """Send a reply that ended as a refusal, and say whether the failure is one."""
    if not isinstance(error, RequestFailed) or not _is_refusal(exchange, failure, error.message):
        return False
    shown = exchange.named(exchange.convert_whole(error.message, model))
    body: object = exchange.take_bytes() if exchange.is_straight else b""
    body = body or encode_response(shown, protocol=exchange.asked.call.protocol, model=exchange.reply_model())
    exchange.record(200, "error", failure=failure)
    await send_json(send, 200, body, exchange.response_headers(model))
    return True


class _Leaving:
    """Closes the request to the provider when the client leaves; later, if its true cost has to be known."""

    def __init__(self, exchange: Exchange, close: Callable[[], Awaitable[None]], receive: Receive) -> None:
        self._exchange = exchange
        self._close = close
        self._is_due = False
        self._connection = exchange.asked.admission.connection
        self._closing: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        if self._connection is None:
            self._task = asyncio.create_task(self._wait(receive))
        else:
            self._connection.add(self._note)

    async def _wait(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._note()

    def _note(self) -> None:
        """Note that the client left; if all that the request may cost is reserved, the reply is read on for a while."""
        self._exchange.is_left = True
        if self._exchange.is_reserved:
            self._closing = asyncio.get_running_loop().call_later(_LEFT_SECONDS, self._close_now)
        else:
            self._close_now()

    def _close_now(self) -> None:
        self._is_due = True
        _run_soon(self._close())

    async def close_by(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close something else from now on; at once, if it is time."""
        self._close = close
        if self._is_due:
            await close()

    def end(self) -> None:
        """Stop waiting."""
        if self._connection is not None:
            self._connection.remove(self._note)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        if self._closing is not None:
            self._closing.cancel()


# -- streamed replies --------------------------------------------------------------------------------------------------


async def answer_stream(exchange: Exchange, send: Send, receive: Receive) -> None:
    """Send a streamed reply; try the next model as long as nothing of a reply was sent."""
    exchange.let_look_up()
    candidates = exchange.asked.candidates
    call, limits = exchange.asked.call, exchange.asked.admission.limits
    assert call.prompt is not None, "only requests with a prompt are streamed"
    current: list[AsyncStream] = []

    def model() -> Model | None:
        return current[0].model if current else None

    def head() -> Headers:
        kind = _TYPES.get(call.framing, "application/json")
        exchange.first_byte = now_ms()
        is_running = bool(current) and not current[0].is_over
        given = {
            "content-type": kind,
            "cache-control": "no-cache",
            **exchange.response_headers(model(), is_running=is_running),
        }
        return raw_headers(given)

    def leave() -> None:
        exchange.is_left = True
        if current:
            _run_soon(current[0].close())

    async def close() -> None:
        if current:
            await current[0].close()

    encoder = stream_encoder(protocol=call.protocol, model=exchange.reply_model(), options=call.prompt.options)
    writer = ClientStream(
        send,
        encoder,
        frame_encoder(call.framing),
        start=StartEvent(id=exchange.reply_id, model=exchange.asked.name),
        head=head,
        give_up=leave,
        hold=limits.hold_seconds,
        beat=limits.heartbeat_seconds,
    )
    leaving = _Leaving(exchange, close, receive)
    try:
        while True:
            try:
                stream = await exchange.begin_apart(candidates)
            except SegueError as error:
                await _end_with(exchange, writer, send, explain_error(error), encoder.fail)
                return
            current[:] = [stream]
            try:
                failure = await _relay(exchange, stream, writer, encoder.feed)
            finally:
                await stream.close()
            exchange.learn()
            if failure is None:
                candidates = exchange.next_round(stream.model)
                if candidates:
                    continue
                return
            if exchange.is_left:
                exchange.record(499, "aborted")
                return
            rest = await exchange.rest_after(candidates, stream.model)
            if writer.has_begun or not rest or failure.kind == FailureKind.REFUSED:
                await _end_with(exchange, writer, send, failure, encoder.fail)
                return
            candidates = rest
    finally:
        writer.close()
        leaving.end()
        current.clear()


_CLOSING: Final[set[asyncio.Future[None]]] = set()


def _run_soon(work: Awaitable[None]) -> None:
    task = asyncio.ensure_future(work)
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)


async def _relay(
    exchange: Exchange, stream: AsyncStream, writer: ClientStream, encode: Callable[[Event], list[Any]]
) -> Failure | None:
    """Write the events of a reply; return the failure if it ends with one before its end was written."""
    held: list[Event] = []
    has_content = False
    straight: StraightReply | None = None
    async for first in stream:
        events: list[Event] = [first, *stream.take_ready()]
        if exchange.look_ups is not None:
            events = exchange.look_ups.feed(events)
            if not events:
                continue
        last = events[-1]
        if last.type == "error" and last.reason == StopReason.ABORTED:
            exchange.record(499, "aborted")  # the client left
            return None
        if last.type == "error" and not has_content and not any(map(is_content, events)):
            failure = failure_of(stream)
            if not _is_refusal(exchange, failure, last.message):
                return failure
        if not has_content:
            held += events
            if not any(map(is_content, events)) and last.type not in ("done", "error"):
                continue
            events, held, has_content = held, [], True
        if exchange.is_straight and (straight is not None or not writer.has_encoded):
            straight = straight or exchange.straight_reply(stream.model)
            failure = await _pass_events(exchange, stream, writer, encode, events, straight=straight)
        else:
            failure = await _write_events(exchange, stream, writer, encode, events)
        if failure is not None:
            return failure
        if last.type in ("done", "error"):
            return None
    if exchange.next_round(stream.model):  # what the model asked for is looked up
        return None
    return failure_of(stream)


async def _pass_events(
    exchange: Exchange,
    stream: AsyncStream,
    writer: ClientStream,
    encode: Callable[[Event], list[Any]],
    events: list[Event],
    *,
    straight: StraightReply,
) -> Failure | None:
    """Write the bytes of events unchanged while they keep to the protocol; return the failure if they cannot be."""
    last, protocol = events[-1], exchange.asked.call.protocol
    is_last = last.type in ("done", "error")
    if last.type == "done":
        exchange.asked.admission.turn.finish()
        exchange.convert_whole(last.message, stream.model)
        await exchange.store_state(last.message)
    await writer.settle()
    if writer.has_encoded and straight.is_fresh:  # the head was sent meanwhile, as the encoder writes it
        return await _write_events(exchange, stream, writer, encode, events, is_stored=True)
    straight.is_wrong = straight.is_wrong or writer.has_encoded
    data: bytes | None = None
    try:
        if straight.is_wrong:
            frames = [*straight.take_frames(), *straight.write(events, encode)]
        else:
            data = straight.check(exchange.take_bytes(is_last=is_last), events, encode, is_last=is_last)
            frames = straight.take_frames() if data is None or is_last else []
            if data is None:
                exchange.note_repair()
        if data is None and last.type == "done":
            _fit_end(exchange, frames)
    except EncodeError as error:
        return _cannot_write(error)
    if is_last:
        _record_end(exchange, stream, last)
    if data is None:
        await writer.write(frames, is_last=is_last)
        return None
    # A provider that fails writes its own error; a connection that breaks leaves the stream without an end.
    is_cut = last.type == "error" and (failure_of(stream).kind == FailureKind.NETWORK or not straight.has_error)
    if is_last:
        data = straight.whole_frames(data, is_cut=is_cut)
    await writer.write_bytes(data, is_last=is_last and not is_cut)
    if last.type == "error" and is_cut:
        frames = frames or straight.write(message_events(last.message), encode)
        await writer.write(_error_frames(frames), is_last=True)
    elif not is_last and straight.is_calm and not straight.is_relayed and protocol in ENDS:
        straight.is_relayed = True
        stream.relay_by(StreamRelay(exchange, writer, protocol, straight))
    return None


def _cannot_write(error: EncodeError) -> Failure:
    LOG.warning("a reply could not be written: %s", error)
    return Failure(kind=FailureKind.SERVER, message="the reply cannot be written in this protocol")


async def _write_events(
    exchange: Exchange,
    stream: AsyncStream,
    writer: ClientStream,
    encode: Callable[[Event], list[Any]],
    events: list[Event],
    *,
    is_stored: bool = False,
) -> Failure | None:
    """Write events in the client's protocol; return the failure if they cannot be."""
    last = events[-1]
    is_last = last.type in ("done", "error")
    converted = exchange.convert(events, stream.model)
    if last.type == "done" and not is_stored:
        exchange.asked.admission.turn.finish()
        await exchange.store_state(last.message)
    try:
        frames = [frame for event in converted for frame in encode(event)]
        if last.type == "done":
            _fit_end(exchange, frames)
    except EncodeError as error:
        return _cannot_write(error)
    if is_last:
        _record_end(exchange, stream, last)
    await writer.write(frames, is_last=is_last)
    return None


def _record_end(exchange: Exchange, stream: AsyncStream, last: Event) -> None:
    is_done = last.type == "done"
    exchange.record(200, "done" if is_done else "error", failure=None if is_done else failure_of(stream))


def _error_frames(frames: list[Any]) -> list[Any]:
    """Return the last object of a stream that failed, which is the error, and the mark of the end after it."""
    at = next((at for at in reversed(range(len(frames))) if isinstance(frames[at], dict)), -1)
    return frames[at:]


def _fit_end(exchange: Exchange, frames: list[Any]) -> None:
    """Complete the last frame of a stream of the Responses protocol: whether the reply is stored; the client's end."""
    last: object = frames[-1] if frames else None
    if not isinstance(last, dict):
        return
    frame = cast("dict[str, object]", last)
    whole = frame.get("response")
    if isinstance(whole, dict):
        exchange.mark_stored(cast("dict[str, Any]", whole))
        fit_last_frame(exchange.asked.client, frame)


async def _end_with(
    exchange: Exchange, writer: ClientStream, send: Send, failure: Failure, fail: Callable[[object], list[Any]]
) -> None:
    """End a reply with a failure: as a status if nothing was sent, else as the last frame."""
    model = exchange.attempts[-1].model if exchange.attempts else None
    if not writer.has_begun:
        writer.close()
        await end_with_status(exchange, send, failure, model)
        return
    shown, _ = explain_to_client(failure, exchange.asked.client, model and model.provider)
    exchange.record(200, "error", failure=failure)
    await writer.write(fail(shown), is_last=True)


async def end_with_status(exchange: Exchange, send: Send, failure: Failure, model: Model | None) -> None:
    """Send a failure as a status, in the form of the client's protocol."""
    shown, headers = explain_to_client(failure, exchange.asked.client, model and model.provider)
    call = exchange.asked.call
    reply = encode_error(shown, protocol=call.protocol, transport=call.transport)
    exchange.record(reply.status, "error", failure=failure)
    await send_json(send, reply.status, reply.body, {**reply.headers, **headers, **exchange.response_headers(model)})
