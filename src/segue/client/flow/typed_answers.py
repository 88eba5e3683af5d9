"""The answer to a request for a type: its value, or the error that says why there is none."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar, final

import msgspec

from segue.client.flow.attempts import Attempt
from segue.client.output.ladder import WantedOutput
from segue.client.output.output_types import OutputType
from segue.client.output.replies import Problem, judge_reply
from segue.conversation.context import Options
from segue.conversation.messages import AssistantMessage, Usage
from segue.errors import (
    ConversationError,
    OutputCut,
    OutputError,
    OutputInvalid,
    OutputPending,
    OutputRefused,
    SettingsError,
)
from segue.models.price import add_usage
from segue.projection.report import ChangeCode, Report

T = TypeVar("T")
_SHOWN: Final = 300
"""Characters of a reply that an error quotes."""


@final
class Answer(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A reply with a value: `value` has the type that was asked for, `message` is what a conversation stores.

    `report` says what was changed for the model that answered, and how it was asked for the type. `attempts` are all
    requests, also those that were sent again because a reply did not fit.
    """

    value: T
    message: AssistantMessage
    report: Report = Report(())
    attempts: tuple[Attempt, ...] = ()

    @property
    def asked(self) -> str:
        """How the model was asked for the type, such as "native schema"."""
        return next((change.detail for change in self.report.of(ChangeCode.OUTPUT_ASKED)), "")

    @property
    def usage(self) -> Usage:
        """What all attempts used."""
        return add_usage([attempt.usage for attempt in self.attempts if attempt.usage is not None])

    def text(self) -> str:
        """Return the text of the reply."""
        return self.message.text()


def make_output(
    type_: Any,  # noqa: ANN401 - a type form
    retries: int,
    options: Options | None,
) -> WantedOutput | None:
    """Make what is asked for from the arguments of a request; None if no type is.

    Raises:
        SettingsError: the type has no JSON schema, or the options have their own schema.
    """
    if type_ is None:
        return None
    if options is not None and options.output_schema is not None:
        raise SettingsError(
            "output= and Options(output_schema=...) both describe the answer; pass one of them", key="output"
        )
    if not isinstance(retries, int) or retries < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"output_retries={retries!r}: expected a number of at least 0", key="output_retries")
    return WantedOutput(OutputType(type_), retries)


def read_output(message: AssistantMessage, type_: type[T]) -> T:
    """Read the value of a type in a reply, also one that was received elsewhere.

    Raises:
        OutputError: the reply has no such value; its classes say why.
        ConversationError: it is not a message.
    """
    if not isinstance(message, AssistantMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConversationError(f"expected an AssistantMessage, got a value of type {type(message).__name__}")
    value, problem = judge_reply(message, OutputType(type_))
    if problem is not None:
        raise explain_problem(problem, message, ())
    return value


def explain_problem(problem: Problem, message: AssistantMessage, attempts: tuple[Attempt, ...]) -> OutputError:
    """Make the error for a reply without a value."""
    model = f"{message.provider}/{message.model}" if message.model else "the model"
    match problem.kind:
        case "cut":
            text = f"{model}: {problem.reason}, so its value is not complete; raise Options(max_tokens=...)"
            return OutputCut(text, reply=message, attempts=attempts)
        case "refused":
            return OutputRefused(f"{model} refused to answer: {problem.reason}", reply=message, attempts=attempts)
        case "calls":
            text = f"{model} calls tools before it answers: {problem.reason}; add their results and ask again"
            return OutputPending(text, reply=message, attempts=attempts)
        case "invalid":
            shown = message.text()
            shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
            text = f"the reply of {model} does not fit: {problem.reason}; it is {shown!r}"
            return OutputInvalid(text, reason=problem.reason, place=problem.place, reply=message, attempts=attempts)
