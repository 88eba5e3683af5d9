"""A reply as it comes, with threads: does what the flow asks. `async_streams` is the same with tasks."""

from __future__ import annotations

from inspect import isawaitable, iscoroutine
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar, cast

from segue.client.flow.request_flow import Ask
from segue.client.flow.steps import Answer, Broken, Step
from segue.client.http.keys import Token, ask_auth
from segue.client.http.outgoing_request import RequestBuilder
from segue.client.http.sending import Wire
from segue.client.http.settings import Body, OnAttempt
from segue.client.http.shell import TERMINAL, OnEnd, Shell, take_moment
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.errors import SettingsError
from segue.request import Request

_Value = TypeVar("_Value")


class Stream(Shell):
    """A reply as it comes: iterate over its events. Made by `Client.stream`.

    The last event is always `done` or `error`, and there is never a second one. Closing early (`close`, the end of a
    `with` block, an exception) ends the reply with an `error` event whose message was `aborted`: it is in `message`,
    can be stored, and is what the iteration gives next. `close` may come from another thread; the reader then ends.
    """

    def __init__(
        self,
        ask: Ask,
        builder: RequestBuilder,
        wire: Wire,
        *,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
    ) -> None:
        self._wire = wire
        self._turn = Lock()  # held by whoever is at work
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
                    self._run_out()
                    raise
                if isinstance(answer, list) and len(answer) == 1 and self._emits and not self._is_closing:
                    event = answer[0]  # as it nearly always is
                    if event.type not in TERMINAL:
                        return event
                self._take(answer)
            return ready.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Whoever forgets a stream half way would keep its connection for ever.
        if getattr(self, "_step", None) is not None:
            self.close()

    def result(self) -> AssistantMessage:
        """Read to the end and give the message.

        Raises:
            RequestFailed: it did not end well; the error carries what arrived.
        """
        for _ in self:
            pass
        return self._finished()

    def close(self) -> None:
        """End the reply here, if it has not ended; its connection is let go."""
        if self._step is None:
            return
        self._is_closing = True
        if self._turn.acquire(blocking=False):
            try:
                self._run_out()
            finally:
                self._turn.release()
        else:
            self._wire.interrupt()  # whoever is at work, in another thread or in a hook, notices and ends it

    def _run_out(self) -> None:
        if self._step is not None:
            self._go_on(None)
        while (step := self._step) is not None:
            self._go_on(self._perform(step))

    def _perform(self, step: Step) -> Answer:
        match step.kind:
            case "read":
                return self._wire.read()
            case "now":
                return take_moment()
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

    def _send(self, request: Request) -> Answer:
        builder, hook = self._builder, self._builder.setup.on_request
        body = None if hook is None else cast("Body | None", _at_once(hook(request), "on_request"))
        auth = builder.find_auth(request.model, self._first)
        token = None if auth is None else cast("Token", _at_once(ask_auth(auth, request.model), "auth"))
        try:
            outgoing = builder.write(request, body, token, self._first)
            if isinstance(outgoing, Broken):
                return outgoing
            if not outgoing.is_signed:
                builder.sign(outgoing)
        except SettingsError as error:
            return builder.explain(error)
        return None if self._is_closing else self._wire.send(outgoing)


def _at_once(value: _Value, name: str) -> _Value:
    """Refuse what would have to be awaited."""
    if isawaitable(value):
        if iscoroutine(value):
            value.close()
        raise SettingsError(f"{name!r} is async: give it to an AsyncClient", key=name)
    return value
