"""The state of a running request, shared by `Stream` and `AsyncStream`.

A shell performs the steps that the request flow yields (see `flow.steps`). This base class does no I/O.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from segue.client.flow.attempts import Attempt, render_failure
from segue.client.flow.request_flow import Ask, Flow
from segue.client.flow.steps import Aborted, Moment, Step
from segue.client.flow.steps import Answer as StepAnswer
from segue.client.flow.typed_answers import Answer, explain_problem
from segue.client.http.outgoing_request import RequestBuilder
from segue.client.http.settings import OnAttempt
from segue.client.http.telemetry import Observation
from segue.client.output.replies import Problem
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.errors import RequestFailed
from segue.failures.failure import Failure, FailureKind
from segue.foundation.plurals import counted
from segue.models.model import Model
from segue.projection.report import Report

OnEnd: TypeAlias = Callable[[AssistantMessage, tuple[Attempt, ...]], None]
"""Called once with the finished message and the attempts, before the caller gets the terminal event."""

TERMINAL: Final = frozenset({"done", "error"})
"""The types of the events that end a reply."""

GROWING: Final = frozenset({"text_delta", "text_end"})
"""The types of the events after which there may be more of a value."""
_OBSERVED: Final = frozenset({"read_events", "note"})
_RANDOM: Final = random.Random()  # noqa: S311 - it spreads retries, nothing else


class Shell:
    """One running request."""

    def __init__(
        self,
        ask: Ask,
        builder: RequestBuilder,
        conceal: Callable[[str], str],
        *,
        on_attempt: OnAttempt | None = None,
        on_end: OnEnd | None = None,
        began: Moment | None = None,
        observation: Observation | None = None,
    ) -> None:
        self._builder = builder
        self._first = ask.owner or ask.candidates[0].provider
        self._on_attempt = on_attempt
        self._on_end = on_end
        self._observation = observation or builder.setup.observe()
        self._emits = ask.emits
        self._flow = Flow(ask, conceal)
        self._steps = self._flow.run()
        self._ready: list[Event] = []  # in reverse order
        self._is_closing = False
        self._is_aborted = False
        self._step = cast("Step | None", next(self._steps))
        while (step := self._step) is not None and step.kind == "now":
            # Run up to the first I/O, so that errors in the arguments are raised by the call itself.
            self._advance(began or read_moment())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.full_name()}, {counted(len(self.attempts), 'attempt')})"

    @property
    def is_over(self) -> bool:
        """Whether the reply has ended; the caller may not have read the last events yet."""
        return self._step is None

    @property
    def has_ready(self) -> bool:
        """Whether the next event is here already, so that reading it does not wait."""
        return bool(self._ready)

    def take_ready(self) -> list[Event]:
        """Return the events that have arrived already, so that they can be handled with the one before them."""
        events = self._ready[::-1]
        self._ready.clear()
        return events

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt that has ended, including the successful one."""
        return self._flow.attempts

    @property
    def message(self) -> AssistantMessage:
        """The message so far; after the terminal event the finished message, which can be stored."""
        return self._flow.message

    @property
    def model(self) -> Model:
        """The model of the current attempt, or the one that answered."""
        return self._flow.model

    @property
    def report(self) -> Report:
        """What projection changed for the current attempt."""
        return self._flow.report

    def _handle_answer(self, answer: StepAnswer) -> None:
        """Handle the answer to a step: events for the caller, or an answer for the flow.

        Events that arrived before `close` still reach the caller, and a complete reply stays complete.
        """
        if not isinstance(answer, list):
            self._advance(answer)
        elif answer[-1].type in TERMINAL:
            self._advance(answer, is_whole=True)
        else:
            if self._emits:
                self._ready.extend(reversed(answer))
            if self._is_closing:
                self._advance(None)

    def _advance(self, answer: StepAnswer, *, is_whole: bool = False) -> None:
        """Send an answer to the flow and get its next step; after `close`, throw `Aborted` into it instead, once."""
        try:
            if self._is_closing and not self._is_aborted and not is_whole:
                self._is_aborted = True
                step = self._steps.throw(Aborted())
            else:
                step = self._steps.send(answer)
        except BaseException:
            self._step = None
            raise
        if self._observation is not None and step.kind in _OBSERVED:
            step = self._observe(self._observation, step)
        self._step = step
        if step.kind == "emit":
            self._step = None
            self._steps.close()
            self._ready[:0] = reversed(step.events)  # after the events that the caller has not read yet
            if self._on_end is not None:
                self._on_end(self._flow.message, self._flow.attempts)

    def _observe(self, observation: Observation, step: Step) -> Step:
        if step.kind == "read_events":
            return observation.timed(step)
        if step.kind == "note":
            observation.end(step.attempt, self._flow.message)
        return step

    def _result_or_raise(self) -> AssistantMessage:
        """Return the finished message.

        Raises:
            RequestFailed: the reply failed or is incomplete; the error has what arrived.
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

    def _answer_or_raise(self) -> Answer[Any]:
        """Return the value of the finished reply.

        Raises:
            OutputError: the reply has no value; its classes say why.
            RequestFailed: the reply failed or is incomplete.
        """
        flow = self._flow
        problem = flow.judged.problem
        try:
            message = self._result_or_raise()
        except RequestFailed as error:
            if error.failure.kind != FailureKind.REFUSED:
                raise
            problem = Problem("refused", error.failure.message or error.message.error_message or "no reason given")
            raise explain_problem(problem, error.message, flow.attempts) from error
        if problem is not None:
            raise explain_problem(problem, message, flow.attempts)
        return Answer(value=flow.judged.value, message=message, report=flow.report, attempts=flow.attempts)

    def _read_partial(self) -> Any:  # noqa: ANN401 - JSON
        """Read what there is of the value."""
        output = self._flow.ask.output
        return None if output is None else output.type.read_partial(self._flow.message.text())


def read_moment() -> Moment:
    """Read the clocks and draw a random number."""
    return Moment(time.monotonic(), time.time_ns() // 1_000_000, _RANDOM.random())
