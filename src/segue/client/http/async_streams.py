"""The streamed reply of the async client: the same as `streams`, with `await`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from inspect import isawaitable
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from segue.client.flow.request_flow import Ask
from segue.client.flow.steps import Answer as StepAnswer
from segue.client.flow.steps import Broken, Head, Moment, Step, Summarise, Summarised
from segue.client.flow.typed_answers import Answer, T
from segue.client.http.async_sending import AsyncWire, ChunkRelay
from segue.client.http.counting import SingleCall
from segue.client.http.outgoing_request import OutgoingRequest, RequestBuilder
from segue.client.http.settings import OnAttempt
from segue.client.http.shell import GROWING, TERMINAL, OnEnd, Shell, read_moment
from segue.client.http.telemetry import Observation
from segue.conversation.context import Context
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.errors import MissingExtra, SettingsError
from segue.models.model import Model
from segue.requests.prepare import Request, prepare

_Value = TypeVar("_Value")

AsyncSummariseStep: TypeAlias = Callable[[Summarise], Awaitable[Summarised | None]]
"""Summarises the messages that a request leaves out."""
Settle: TypeAlias = Callable[[], Awaitable[None]]
"""Awaited before each request is sent and after `on_end`: waits for work that was started and not awaited."""


class AsyncStream(Shell):
    """A streamed reply: iterate over its events with `async for`. Made by `AsyncClient.stream`.

    The last event is always `done` or `error`, and there is only one of them. Closing early (`close`, the end of an
    `async with` block, cancellation) ends the reply with an `error` event whose message has the stop reason `aborted`:
    it is in `message`, can be stored, and is the next event of the iteration. A cancelled reader stays cancelled.
    """

    def __init__(
        self,
        ask: Ask,
        builder: RequestBuilder,
        wire: AsyncWire,
        *,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
        settle: Settle | None = None,
        summarise: AsyncSummariseStep | None = None,
        began: Moment | None = None,
        observation: Observation | None = None,
    ) -> None:
        self._wire = wire
        self._summarise = summarise
        self._settle = settle
        self._is_busy = False
        super().__init__(
            ask, builder, wire.conceal, on_attempt=on_attempt, on_end=on_end, began=began, observation=observation
        )

    def relay_by(self, relay: ChunkRelay) -> None:
        """Pass the bytes of the reply to `relay` before they are decoded, from the next ones on."""
        self._wire.relay = relay

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Event:
        ready = self._ready
        while not ready:
            step = self._step
            if step is None:
                raise StopAsyncIteration
            self._is_busy = True
            try:
                answer = await (
                    self._wire.read_events(step.feed) if step.kind == "read_events" else self._perform(step)
                )
            except BaseException:
                self._is_closing = True
                await self._finish()
                raise
            finally:
                self._is_busy = False
            if isinstance(answer, list) and len(answer) == 1 and self._emits and not self._is_closing:
                event = answer[0]  # the common case
                if event.type not in TERMINAL:
                    return event
            self._handle_answer(answer)
            if self._step is None and self._settle is not None:
                await self._settle()
        return ready.pop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        # An unread stream would keep its connection open. Only its event loop can close it.
        if getattr(self, "_step", None) is not None:
            self._wire.schedule_close(self.close)

    async def result(self) -> AssistantMessage:
        """Read to the end and return the message.

        Raises:
            RequestFailed: the reply failed or is incomplete; the error has what arrived.
        """
        async for _ in self:
            pass
        return self._result_or_raise()

    async def close(self) -> None:
        """End the reply, if it has not ended, and release its connection."""
        if self._step is None:
            return
        self._is_closing = True
        if self._is_busy:
            await self._wire.interrupt()  # the task that is reading notices it and ends the reply
        else:
            await self._finish()

    aclose = close

    async def _finish(self) -> None:
        if self._step is not None:
            self._advance(None)
        while (step := self._step) is not None:
            self._advance(await self._perform(step))
        if self._settle is not None:
            await self._settle()

    async def _perform(self, step: Step) -> StepAnswer:
        match step.kind:
            case "read":
                return await self._wire.read()
            case "now":
                return read_moment()
            case "summarise":
                return None if self._summarise is None else await self._summarise(step)
            case "send":
                return await self._send(step.request)
            case "wait":
                return await self._wire.wait(step.seconds)
            case "drain":
                return await self._wire.drain()
            case "close":
                return await self._wire.close()
            case "note":
                if self._on_attempt is not None:
                    self._on_attempt(step.attempt)
                return None
            case "read_events" | "emit":
                return None

    async def _send(self, request: Request) -> StepAnswer:
        if self._settle is not None:
            await self._settle()
        builder, hook = self._builder, self._builder.setup.on_request
        body = None if hook is None else await _await_if_needed(hook(request))
        token = await _await_if_needed(builder.ask_auth(request.model, self._first))
        try:
            outgoing = builder.write(request, body, token, self._first)
            if isinstance(outgoing, Broken):
                return outgoing
            if self._observation is not None:
                self._observation.begin(request, outgoing.headers, outgoing.url)
            await _sign(outgoing, builder)
        except SettingsError as error:
            return builder.explain(error)
        return None if self._is_closing else await self._wire.send(outgoing)


class AsyncTypedStream(AsyncStream, Generic[T]):
    """A streamed reply with a value of a type. Made by `AsyncClient.stream(..., output=...)`."""

    @property
    def partial(self) -> Any:  # noqa: ANN401 - JSON
        """What has arrived of the value, as plain JSON: dicts, lists, texts and numbers. None before it begins."""
        return self._read_partial()

    async def partials(self) -> AsyncIterator[Any]:
        """Read to the end, and yield the value so far each time that more of it has arrived."""
        last: Any = None
        async for event in self:
            if event.type in GROWING and not self.has_ready and (value := self.partial) != last:
                last = value
                yield value
        if (value := self.partial) != last:  # the end arrived with the rest
            yield value

    async def answer(self) -> Answer[T]:
        """Read to the end and return the value with its message, like `TypedStream.answer`."""
        async for _ in self:
            pass
        return self._answer_or_raise()


async def ask_once_async(
    call: SingleCall[_Value],
    builder: RequestBuilder,
    wire: AsyncWire,
    run: Callable[[Callable[[], Any]], Awaitable[Any]],
) -> _Value | None:
    """Ask an endpoint once; None if it does not answer. `run` does what takes time."""
    token = await _await_if_needed(call.ask_auth())
    outgoing = await run(lambda: call.write(token))
    if outgoing is None:
        return None
    try:
        head, body = await _send_whole(outgoing, builder, wire)
    except (SettingsError, MissingExtra):
        return None
    return call.read(head, body)


async def fetch_async(
    model: Model, path: str, builder: RequestBuilder, wire: AsyncWire, *, method: str, content: bytes
) -> tuple[Head | Broken, bytes]:
    """Send a request to an endpoint below that of replies, and read the whole answer."""
    request = prepare(Context(messages=(UserMessage.of("-"),)), model)
    token = await _await_if_needed(builder.ask_auth(model, model.provider))
    outgoing = builder.write(request, None, token, model.provider, url=request.url + path)
    if isinstance(outgoing, Broken):
        return outgoing, b""
    outgoing.method, outgoing.content = method, content
    return await _send_whole(outgoing, builder, wire)


async def _send_whole(
    outgoing: OutgoingRequest, builder: RequestBuilder, wire: AsyncWire
) -> tuple[Head | Broken, bytes]:
    await _sign(outgoing, builder)
    body = bytearray()
    try:
        head = await wire.send(outgoing)
        while isinstance(chunk := await wire.read(), bytes):
            body += chunk
    finally:
        await wire.close()
    return head, bytes(body)


async def _sign(outgoing: OutgoingRequest, builder: RequestBuilder) -> None:
    if not outgoing.is_signed:
        import anyio

        await anyio.to_thread.run_sync(builder.sign, outgoing)  # fetching credentials would block the event loop


async def _await_if_needed(value: _Value | Awaitable[_Value]) -> _Value:
    """Await a value that a hook returned, if it is awaitable."""
    if isawaitable(value):
        return await value
    return cast("_Value", value)
