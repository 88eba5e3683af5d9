"""`is_context_overflow`: three signs, and nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from segue import AssistantMessage, StopReason, Usage
from segue.failures.classify import classify, is_context_overflow
from segue.failures.failure import FailureKind

WINDOW = 1000
OVERFLOW_TEXT = "prompt is too long: 213462 tokens > 200000 maximum"


def given(stop: StopReason, text: str | None = None, *, raw: str | None = None, **counts: int) -> AssistantMessage:
    usage = replace(Usage(), **counts) if counts else None
    return AssistantMessage(content=(), stop_reason=stop, raw_stop_reason=raw, error_message=text, usage=usage)


CASES = {
    "an error about an overflow": (given(StopReason.ERROR, OVERFLOW_TEXT), 0, True),
    "another error": (given(StopReason.ERROR, "Overloaded"), 0, False),
    "an error without words": (given(StopReason.ERROR), WINDOW, False),
    "an empty error": (given(StopReason.ERROR, ""), WINDOW, False),
    "an error's counts are no sign": (given(StopReason.ERROR, "Overloaded", input=5000), WINDOW, False),
    "the same text in an aborted turn": (given(StopReason.ABORTED, OVERFLOW_TEXT), WINDOW, False),
    "the same text in a successful turn": (given(StopReason.STOP, OVERFLOW_TEXT, input=1), WINDOW, False),
    "a success above the window": (given(StopReason.STOP, input=1001), WINDOW, True),
    "a call above the window": (given(StopReason.TOOL_USE, input=1001), WINDOW, True),
    "a success that fills the window": (given(StopReason.STOP, input=1000), WINDOW, False),
    "cached tokens count": (given(StopReason.STOP, input=1, cache_read=1000), WINDOW, True),
    "written ones too": (given(StopReason.STOP, input=1, cache_write=1000), WINDOW, True),
    "output does not": (given(StopReason.STOP, input=1, output=5000), WINDOW, False),
    "no window, no verdict": (given(StopReason.STOP, input=10**9), 0, False),
    "a success without counts": (given(StopReason.STOP), WINDOW, False),
    "cut with nothing written, 99 % filled": (given(StopReason.LENGTH, input=990), WINDOW, True),
    "cached tokens fill as well": (given(StopReason.LENGTH, input=90, cache_read=800, cache_write=100), WINDOW, True),
    "cut with nothing written, less filled": (given(StopReason.LENGTH, input=989), WINDOW, False),
    "cut after something was written": (given(StopReason.LENGTH, input=999, output=1), WINDOW, False),
    "cut, and no window known": (given(StopReason.LENGTH, input=10**9), 0, False),
    "a stop reason of an overflow": (given(StopReason.LENGTH, raw="model_context_window_exceeded", output=9), 0, True),
    "another stop reason": (given(StopReason.LENGTH, raw="max_tokens", input=1), WINDOW, False),
}


@pytest.mark.parametrize(("message", "window", "expected"), CASES.values(), ids=CASES.keys())
def test_a_reply_shows_an_overflow_or_not(message: AssistantMessage, window: int, expected: bool) -> None:
    assert is_context_overflow(message, window) is expected


def test_the_window_may_be_left_out() -> None:
    assert is_context_overflow(given(StopReason.ERROR, OVERFLOW_TEXT))


@pytest.mark.parametrize("stop", ["error", StopReason.ERROR])
def test_a_stop_reason_may_be_a_plain_string(stop: StopReason) -> None:
    assert is_context_overflow(given(stop, OVERFLOW_TEXT))


@pytest.mark.parametrize("stop", [StopReason.STOP, StopReason.TOOL_USE, StopReason.LENGTH, StopReason.ABORTED])
def test_a_message_that_did_not_fail_is_classified_as_nothing_known(stop: StopReason) -> None:
    failure = classify(given(stop, raw="end"))
    assert failure.kind == FailureKind.UNKNOWN
    assert failure.evidence
