"""What the two shells have in common: where a request stands, and what the caller has not taken yet.

A shell is given steps by the flow and does them, one with threads and one with tasks; this part does nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from segue.client.flow.attempts import Attempt, render_failure
from segue.client.flow.request_flow import Ask, Flow
from segue.client.flow.steps import Aborted, Answer, Moment, Step
from segue.client.http.outgoing_request import RequestBuilder
from segue.client.http.settings import OnAttempt
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.errors import RequestFailed
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.projection.report import Report

OnEnd: TypeAlias = Callable[[AssistantMessage, tuple[Attempt, ...]], None]
"""Called once, when the message is finished, before the caller is told."""

TERMINAL: Final = frozenset({"done", "error"})
"""The types of the events that end a reply."""

_RANDOM: Final = random.SystemRandom()


class Shell:
    """One request under way."""

    def __init__(
        self,
        ask: Ask,
        builder: RequestBuilder,
        conceal: Callable[[str], str],
        *,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
    ) -> None:
        self._builder = builder
        self._first = ask.owner or ask.candidates[0].provider
        self._on_attempt = on_attempt
        self._on_end = on_end
        self._emits = ask.emits
        self._flow = Flow(ask, conceal)
        self._steps = self._flow.run()
        self._ready: list[Event] = []  # the next one last
        self._is_closing = False
        self._is_aborted = False
        self._step = cast("Step | None", next(self._steps))
        while (step := self._step) is not None and step.kind == "now":
            # Up to the first thing that leaves this process, so that what a caller got wrong shows at once.
            self._go_on(take_moment())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.full_name()}, {len(self.attempts)} attempts)"

    @property
    def is_over(self) -> bool:
        """Whether it has ended; the caller may not have taken the last events yet."""
        return self._step is None

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt that is over, the one that was answered among them."""
        return self._flow.attempts

    @property
    def message(self) -> AssistantMessage:
        """The message as far as it has come; after the terminal event the finished one, which can be stored."""
        return self._flow.message

    @property
    def model(self) -> Model:
        """Who is being asked, or has answered."""
        return self._flow.model

    @property
    def report(self) -> Report:
        """What projection changed for the request under way."""
        return self._flow.report

    def _take(self, answer: Answer) -> None:
        """Take what came of a step: events for the caller, or an answer for the flow.

        What was heard before someone closed is told all the same, and a reply that was whole stays so.
        """
        if not isinstance(answer, list):
            self._go_on(answer)
        elif answer[-1].type in TERMINAL:
            self._go_on(answer, is_whole=True)
        else:
            if self._emits:
                self._ready.extend(reversed(answer))
            if self._is_closing:
                self._go_on(None)

    def _go_on(self, answer: Answer, *, is_whole: bool = False) -> None:
        """Answer the flow and take its next step; whoever closes ends it instead, once."""
        try:
            if self._is_closing and not self._is_aborted and not is_whole:
                self._is_aborted = True
                step = self._steps.throw(Aborted())
            else:
                step = self._steps.send(answer)
        except BaseException:
            self._step = None
            raise
        self._step = step
        if step.kind == "emit":
            self._step = None
            self._steps.close()
            self._ready[:0] = reversed(step.events)  # behind what the caller has not taken yet
            if self._on_end is not None:
                self._on_end(self._flow.message, self._flow.attempts)

    def _finished(self) -> AssistantMessage:
        """Give the reply if it ended well.

        Raises:
            RequestFailed: it did not; the error carries what arrived.
        """
        flow = self._flow
        if flow.ending is not None and flow.ending.type == "done":
            return flow.message
        last = flow.attempts[-1].failure if flow.attempts else None
        raise RequestFailed(
            render_failure(flow.attempts),
            failure=last or Failure(kind=FailureKind.UNKNOWN, message=flow.message.error_message or ""),
            attempts=flow.attempts,
            reply=flow.message,
        )


def take_moment() -> Moment:
    """Read the clocks, and ask chance."""
    return Moment(time.monotonic(), time.time_ns() // 1_000_000, _RANDOM.random())
