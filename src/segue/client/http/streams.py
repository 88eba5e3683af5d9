"""The streamed reply of the sync client: performs the steps of the flow. `async_streams` is the same for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from segue.client.flow.request_flow import Ask
from segue.client.flow.steps import Answer as StepAnswer
from segue.client.flow.steps import Broken, Step, Summarise, Summarised
from segue.client.flow.typed_answers import Answer, T
from segue.client.http.counting import SingleCall
from segue.client.http.outgoing_request import RequestBuilder
from segue.client.http.sending import Wire
from segue.client.http.settings import OnAttempt
from segue.client.http.shell import GROWING, TERMINAL, OnEnd, Shell, read_moment
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.errors import MissingExtra, SettingsError
from segue.requests.prepare import Request

_Value = TypeVar("_Value")

SummariseStep: TypeAlias = Callable[[Summarise], Summarised | None]
"""Summarises the messages that a request leaves out."""


class Stream(Shell):
    """A streamed reply: iterate over its events. Made by `Client.stream`.

    The last event is always `done` or `error`, and there is only one of them. Closing early (`close`, the end of a
    `with` block, an exception) ends the reply with an `error` event whose message has the stop reason `aborted`: it is
    in `message`, can be stored, and is the next event of the iteration. `close` may be called from another thread; it
    ends the iteration.
    """

    def __init__(
        self,
        ask: Ask,
        builder: RequestBuilder,
        wire: Wire,
        *,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
        summarise: SummariseStep | None = None,
    ) -> None:
        self._wire = wire
        self._summarise = summarise
        self._turn = Lock()  # held by the thread that is reading
        super().__init__(ask, builder, wire.conceal, on_attempt=on_attempt, on_end=on_end)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Event:
        ready = self._ready
        with self._turn:
            while not ready:
                step = self._step
                if step is None:
                    raise StopIteration
                try:
                    answer = self._wire.read_events(step.feed) if step.kind == "read_events" else self._perform(step)
                except BaseException:
                    self._is_closing = True
                    self._finish()
                    raise
                if isinstance(answer, list) and len(answer) == 1 and self._emits and not self._is_closing:
                    event = answer[0]  # the common case
                    if event.type not in TERMINAL:
                        return event
                self._handle_answer(answer)
            return ready.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # An unread stream would keep its connection open.
        if getattr(self, "_step", None) is not None:
            self.close()

    def result(self) -> AssistantMessage:
        """Read to the end and return the message.

        Raises:
            RequestFailed: the reply failed or is incomplete; the error has what arrived.
        """
        for _ in self:
            pass
        return self._result_or_raise()

    def close(self) -> None:
        """End the reply, if it has not ended, and release its connection."""
        if self._step is None:
            return
        self._is_closing = True
        if self._turn.acquire(blocking=False):
            try:
                self._finish()
            finally:
                self._turn.release()
        else:
            self._wire.interrupt()  # the thread or hook that is reading notices it and ends the reply

    def _finish(self) -> None:
        if self._step is not None:
            self._advance(None)
        while (step := self._step) is not None:
            self._advance(self._perform(step))

    def _perform(self, step: Step) -> StepAnswer:
        match step.kind:
            case "read":
                return self._wire.read()
            case "now":
                return read_moment()
            case "summarise":
                return None if self._summarise is None else self._summarise(step)
            case "send":
                return self._send(step.request)
            case "wait":
                return self._wire.wait(step.seconds)
            case "drain":
                return self._wire.drain()
            case "close":
                return self._wire.close()
            case "note":
                if self._on_attempt is not None:
                    self._on_attempt(step.attempt)
                return None
            case "read_events" | "emit":
                return None

    def _send(self, request: Request) -> StepAnswer:
        builder, hook = self._builder, self._builder.setup.on_request
        body = None if hook is None else refuse_awaitable(hook(request), "on_request")
        token = refuse_awaitable(builder.ask_auth(request.model, self._first), "auth")
        try:
            outgoing = builder.write(request, body, token, self._first)
            if isinstance(outgoing, Broken):
                return outgoing
            if self._observation is not None:
                self._observation.begin(request, outgoing.headers, outgoing.url)
            if not outgoing.is_signed:
                builder.sign(outgoing)
        except SettingsError as error:
            return builder.explain(error)
        return None if self._is_closing else self._wire.send(outgoing)


class TypedStream(Stream, Generic[T]):
    """A streamed reply with a value of a type. Made by `Client.stream(..., output=...)`."""

    @property
    def partial(self) -> Any:  # noqa: ANN401 - JSON
        """What has arrived of the value, as plain JSON: dicts, lists, texts and numbers. None before it begins."""
        return self._read_partial()

    def partials(self) -> Iterator[Any]:
        """Read to the end, and yield the value so far each time that more of it has arrived."""
        last: Any = None
        for event in self:
            if event.type in GROWING and not self.has_ready and (value := self.partial) != last:
                last = value
                yield value
        if (value := self.partial) != last:  # the end arrived with the rest
            yield value

    def answer(self) -> Answer[T]:
        """Read to the end and return the value with its message.

        Raises:
            OutputError: the reply has no value; its classes say why.
            RequestFailed: the reply failed or is incomplete; the error has what arrived.
        """
        for _ in self:
            pass
        return self._answer_or_raise()


def ask_once(call: SingleCall[_Value], builder: RequestBuilder, wire: Wire) -> _Value | None:
    """Ask an endpoint once; None if it does not answer."""
    outgoing = call.write(refuse_awaitable(call.ask_auth(), "auth"))
    if outgoing is None:
        return None
    try:
        if not outgoing.is_signed:
            builder.sign(outgoing)
    except (SettingsError, MissingExtra):
        return None
    head, body = wire.send(outgoing), bytearray()
    try:
        while isinstance(chunk := wire.read(), bytes):
            body += chunk
    finally:
        wire.close()
    return call.read(head, bytes(body))


def refuse_awaitable(value: _Value | Awaitable[_Value], name: str) -> _Value:
    """Check that a hook returned a value and not an awaitable."""
    if isawaitable(value):
        if iscoroutine(value):
            value.close()
        raise SettingsError(
            f"{name}= is an async function, which Client cannot await; use AsyncClient, or pass a sync function",
            key=name,
        )
    return cast("_Value", value)
