"""Retry and fallback without a network: the order of requests, and the events that the caller gets."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from client.flow.driving import Run, ScriptedAnswer, bad, good, run
from client.wires import TEXT, WIRES
from segue.client.flow.backoff import FALLBACK_KINDS, Retry, compute_wait
from segue.client.flow.request_flow import Ask, Flow
from segue.client.flow.shortening import window_key
from segue.client.flow.steps import Aborted, Broken, Head, Moment
from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.conversation.stored import dump, load
from segue.errors import DoesNotFit, EmptyConversation, ProjectionRefused, SettingsError
from segue.failures.failure import FailureKind
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import ChangeCode, Loss

HELLO = Context(messages=(UserMessage.of("hello"),))
CLAUDE = Model("claude-opus-4-5", "anthropic", "anthropic-messages", reasoning=True, context_window=1000)
GPT = Model("gpt-5", "openai", "openai-chat", context_window=2000)
QWEN = Model("qwen-3", "alibaba", "openai-chat", context_window=100_000)
STREAMED = Options(stream=True, max_tokens=100)

RATE = bad(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}})
DOWN = bad(503, {"error": {"message": "Service unavailable"}})
NO_KEY = bad(401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}})
TOO_LONG = bad(
    400,
    {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 1500 tokens > 1000 maximum"},
    },
)
BAD_SIGNATURE = bad(
    400,
    {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
        },
    },
)
RESET = ScriptedAnswer(Broken("the connection failed (ReadError: reset)"))


DEFAULT = Retry()


def ask(*candidates: Model, context: Context = HELLO, retry: Retry = DEFAULT, emits: bool = True, **more) -> Ask:
    return Ask(context=context, candidates=candidates or (CLAUDE,), options=STREAMED, retry=retry, emits=emits, **more)


def kinds(reported: Run) -> list[FailureKind | None]:
    return [attempt.failure and attempt.failure.kind for attempt in reported.flow.attempts]


# -- retry -------------------------------------------------------------------------------------------------------------

UNUSABLE = bad(
    400,
    {
        "error": {
            "message": "Failed to call a function. See 'failed_generation' for more details.",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": "<function=look_up>",
        }
    },
)
TRANSIENT = {
    "a rate": RATE,
    "a server that is down": DOWN,
    "a broken connection": RESET,
    "a reply that Groq cannot use": UNUSABLE,
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_transient_failures_are_retried(failure: ScriptedAnswer):
    reported = run(ask(), failure, failure, good("anthropic-messages"))
    assert reported.asked == [CLAUDE.id] * 3
    assert reported.flow.message.text() == TEXT
    assert [attempt.reason for attempt in reported.flow.attempts] == ["first", "retry", "retry"]
    assert reported.waits == [0.25, 0.5]


LASTING = {
    "a wrong key": NO_KEY,
    "a quota": bad(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}),
    "a missing model": bad(404, {"error": {"message": "no such model", "type": "not_found_error"}}),
    "a bad request": bad(400, {"error": {"message": "temperature: must be at most 1"}}),
    "too long a conversation": TOO_LONG,
}


@pytest.mark.parametrize("failure", LASTING.values(), ids=LASTING.keys())
def test_permanent_failures_are_not_retried(failure: ScriptedAnswer):
    reported = run(ask(), failure)
    assert reported.waits == []
    assert len(reported.flow.attempts) == 1
    assert reported.events[-1].type == "error"


def test_retries_are_limited():
    reported = run(ask(retry=Retry(max_retries=3)), RATE, RATE, RATE, RATE)
    assert kinds(reported) == [FailureKind.RATE_LIMIT] * 4
    assert [event.type for event in reported.events] == ["start", "error"]
    assert reported.flow.message.stop_reason == StopReason.ERROR
    assert "Slow down" in (reported.flow.message.error_message or "")


def test_an_error_body_without_end_is_not_read_to_its_end():
    page = b'{"error": {"message": "no such model"}}' + b" " * 600_000
    reported = run(ask(), ScriptedAnswer(Head(404, {}), (page, page, page, page)))
    assert reported.kinds.count("read") == 2
    assert "close" in reported.kinds
    assert "drain" not in reported.kinds
    assert kinds(reported) == [FailureKind.NOT_FOUND]


def test_no_retry_after_an_event_has_reached_the_caller():
    frames = WIRES["anthropic-messages"].frames
    broken = ScriptedAnswer(Head(200, {}), (*frames[:5], Broken("the connection failed")))
    reported = run(ask(CLAUDE, GPT), broken)
    assert reported.asked == [CLAUDE.id]
    assert kinds(reported) == [FailureKind.NETWORK]
    assert reported.flow.message.text() == TEXT[: len("Grüße, wörld → ")]
    assert reported.flow.message.error_message == "the connection failed"
    assert [event.type for event in reported.events].count("error") == 1


def test_an_error_before_the_first_event_is_retried():
    overloaded = ScriptedAnswer(Head(200, {}), (WIRES["anthropic-messages"].error_frame,))
    reported = run(ask(), overloaded, good("anthropic-messages"))
    assert kinds(reported) == [FailureKind.OVERLOADED, None]
    assert [event.type for event in reported.events].count("start") == 1


def test_without_emitted_events_a_broken_stream_is_retried():
    frames = WIRES["anthropic-messages"].frames
    broken = ScriptedAnswer(Head(200, {}), (*frames[:5], Broken("the connection failed")))
    reported = run(ask(emits=False), broken, good("anthropic-messages"))
    assert [event.type for event in reported.events] == ["done"]
    assert kinds(reported) == [FailureKind.NETWORK, None]


def test_a_reply_that_is_complete_before_the_connection_breaks_is_kept():
    frames = WIRES["openai-chat"].frames
    reported = run(ask(GPT), ScriptedAnswer(Head(200, {}), (*frames[:-1], Broken("the connection failed"))))
    assert reported.events[-1].type == "done"
    assert kinds(reported) == [None]


# -- waiting -----------------------------------------------------------------------------------------------------------

WAITS = {
    "the first is short": (0, None, 0.0, 0.25),
    "chance makes it longer": (0, None, 1.0, 0.5),
    "each doubles the one before": (2, None, 0.0, 1.0),
    "the longest is a limit": (20, None, 1.0, 8.0),
    "many retries do not overflow": (5000, None, 1.0, 8.0),
    "what is asked for is obeyed": (0, 3.0, 0.0, 3.0),
    "and never undercut": (0, 3.0, 1.0, 3.3),
    "nothing is nothing": (3, 0.0, 1.0, 0.0),
    "what is asked for is capped": (0, 3600.0, 0.5, 60.0),
    "a time that has passed is now": (0, -5.0, 0.5, 0.0),
}


@pytest.mark.parametrize(("retries", "asked", "chance", "wait"), WAITS.values(), ids=WAITS.keys())
def test_wait_before_a_retry(retries: int, asked: float | None, chance: float, wait: float):
    assert compute_wait(Retry(), retries, asked, chance) == pytest.approx(wait)


def test_retry_after_is_read_from_the_reply_and_obeyed():
    limited = bad(429, {"error": {"message": "Slow down"}}, {"retry-after": "7"})
    reported = run(ask(), limited, good("anthropic-messages"))
    assert reported.waits == [7.0]
    assert [attempt.waited for attempt in reported.flow.attempts] == [0.0, 7.0]


def test_no_request_is_sent_before_a_retry_after_that_is_too_long_to_wait_for():
    limited = bad(429, {"error": {"message": "Slow down"}}, {"retry-after": "3600"})
    alone = run(ask(), limited, good("anthropic-messages"))
    assert (alone.waits, alone.asked) == ([], [CLAUDE.id])
    failure = alone.flow.attempts[-1].failure
    assert failure is not None
    assert failure.retry_after == 3600
    reported = run(ask(CLAUDE, GPT), limited, good("openai-chat"))
    assert reported.waits == []
    assert reported.asked == [CLAUDE.id, GPT.id]


# -- fallback ----------------------------------------------------------------------------------------------------------

ONCE = Retry(max_retries=0)


@pytest.mark.parametrize(
    "failure", [*TRANSIENT.values(), *list(LASTING.values())[:-1]], ids=[*TRANSIENT, *list(LASTING)[:-1]]
)
def test_a_fallback_model_is_used(failure: ScriptedAnswer):
    reported = run(ask(CLAUDE, GPT, retry=ONCE), failure, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, GPT.id]
    assert [attempt.reason for attempt in reported.flow.attempts] == ["first", "fallback"]
    assert (reported.flow.message.provider, reported.flow.message.model) == ("openai", "gpt-5")


def test_each_model_has_its_own_retries():
    reported = run(ask(CLAUDE, GPT, retry=Retry(max_retries=1)), RATE, RATE, DOWN, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, CLAUDE.id, GPT.id, GPT.id]
    assert reported.waits == [0.25, 0.25]


def test_each_attempt_is_recorded_and_noted_in_the_message():
    reported = run(ask(CLAUDE, GPT, retry=ONCE), NO_KEY, good("openai-chat"))
    first, second = reported.flow.attempts
    assert reported.noted == [first, second]
    assert first.model is CLAUDE
    assert (first.failure and first.failure.status) == 401
    assert first.duration == 1.0
    assert second.failure is None
    assert reported.flow.message.timestamp == second.started
    [note] = reported.flow.message.diagnostics
    assert note.type == "attempt_failed"
    assert note.details == {
        "model": "anthropic/claude-opus-4-5",
        "reason": "first",
        "durationMs": 1000,
        "kind": "auth",
        "status": 401,
    }


THOUGHT = AssistantMessage(
    content=(
        ThinkingContent(thinking="hm", thinking_signature="opaque-data"),
        TextContent(text="yes"),
        ToolCall(id="t1", name="look", arguments={}),
    ),
    protocol="anthropic-messages",
    provider="anthropic",
    model=CLAUDE.id,
    stop_reason=StopReason.TOOL_USE,
)
RESULT = ToolResultMessage(tool_call_id="t1", tool_name="look", content=(TextContent(text="seen"),))
TALKED = Context(messages=(UserMessage.of("is it?"), THOUGHT, RESULT, UserMessage.of("sure?")))


def test_the_stored_history_is_projected_anew_for_each_model():
    reported = run(ask(CLAUDE, GPT, context=TALKED, retry=ONCE), DOWN, good("openai-chat"))
    reports = [attempt.report for attempt in reported.flow.attempts]
    assert not reports[0]
    assert {change.code for change in reports[1].changes} >= {ChangeCode.THINKING_DROPPED}
    assert "opaque-data" in str(reported.requests[0].body)
    assert "opaque-data" not in str(reported.requests[1].body)


def test_an_overflow_goes_to_the_first_model_with_a_larger_window():
    reported = run(ask(CLAUDE, CLAUDE, GPT, QWEN), TOO_LONG, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, GPT.id]
    history = AssistantMessage(content=(TextContent(text="word " * 5000),))
    long = Context(messages=(UserMessage.of("a"), history, UserMessage.of("b")))
    # The same model is asked again without what is quoted of the history, then the one that holds all of it.
    reported = run(ask(CLAUDE, GPT, QWEN, context=long), TOO_LONG, TOO_LONG, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, CLAUDE.id, QWEN.id]


def test_the_window_has_to_hold_the_tokens_that_the_provider_counted():
    small = Model("gpt-small", "openai", "openai-chat", context_window=1400)
    reported = run(ask(CLAUDE, small, GPT), TOO_LONG, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, GPT.id]


def test_an_overflow_fails_if_no_window_is_large_enough():
    reported = run(ask(GPT, CLAUDE), bad(400, {"error": {"code": "context_length_exceeded", "message": "too long"}}))
    assert kinds(reported) == [FailureKind.OVERFLOW]


def test_a_silent_overflow_goes_to_a_model_with_a_larger_window():
    crowded = Model(GPT.id, GPT.provider, GPT.protocol, context_window=4)
    whole = Policy(fit=None)
    reported = run(ask(crowded, QWEN, emits=False, policy=whole), good("openai-chat"), good("openai-chat"))
    assert reported.asked == [GPT.id, QWEN.id]
    alone = run(ask(crowded, emits=False, policy=whole), good("openai-chat"))
    assert alone.events[-1].type == "done"


def test_a_silent_overflow_of_a_reply_that_the_caller_has_is_no_failure():
    crowded = Model(GPT.id, GPT.provider, GPT.protocol, context_window=4)
    reported = run(ask(crowded, QWEN, policy=Policy(fit=None)), good("openai-chat"))
    assert reported.asked == [GPT.id]
    assert kinds(reported) == [None]
    assert reported.events[-1].type == "done"


# -- an overflow: once more with less history --------------------------------------------------------------------------

WIDE = Model("gpt-wide", "openai", "openai-chat", context_window=20_000)
UNKNOWN = Model("my-model", "local", "openai-chat")
LONG = Context(
    messages=tuple(
        UserMessage.of(f"question {number // 2}")
        if number % 2 == 0
        else AssistantMessage(content=(TextContent(text=f"answer {number // 2}: " + "word " * 200),))
        for number in range(80)
    )
).add(UserMessage.of("the last question"))


def overflow(used: int | None = None, limit: int | None = None) -> ScriptedAnswer:
    text = "This model's maximum context length is exceeded."
    if limit is not None:
        text = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens."
        )
    return bad(400, {"error": {"code": "context_length_exceeded", "message": text}})


OVERFLOWS = {
    "a limit that is named": (WIDE, overflow(12_500, 12_000)),
    "a limit that is named where no window is known": (UNKNOWN, overflow(12_500, 12_000)),
    "no limit named": (WIDE, overflow()),
    "no limit named where no window is known": (UNKNOWN, overflow()),
    "a count far above the estimate": (WIDE, overflow(40_000, 20_000)),
}


@pytest.mark.parametrize(("model", "refused"), OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_after_an_overflow_less_history_is_sent_once(model: Model, refused: ScriptedAnswer):
    reported = run(ask(model, QWEN, context=LONG), refused, good("openai-chat"))
    assert reported.asked == [model.id, model.id]
    first, second = reported.flow.attempts
    assert (first.reason, second.reason) == ("first", "shortened")
    assert (first.window, second.failure) == (None, None)
    assert second.window
    assert len(reported.requests[1].content) < 0.7 * len(reported.requests[0].content)
    assert ChangeCode.TURNS_DROPPED in {change.code for change in second.report.changes}
    assert "question 0" in str(reported.requests[1].body)
    assert reported.requests[1].body["messages"][-1]["content"] == "the last question"
    assert reported.waits == []


def test_the_limit_that_the_provider_names_is_kept_to_in_its_own_tokens():
    reported = run(ask(WIDE, context=LONG), overflow(40_000, 20_000), good("openai-chat"))
    sizes = [len(request.content) for request in reported.requests]
    assert sizes[1] / sizes[0] * 40_000 < 20_000


def test_less_history_is_sent_only_once_before_the_fallback():
    reported = run(
        ask(WIDE, QWEN, context=LONG), overflow(12_500, 12_000), overflow(11_000, 9_000), good("openai-chat")
    )
    assert reported.asked == [WIDE.id, WIDE.id, QWEN.id]
    assert [attempt.reason for attempt in reported.flow.attempts] == ["first", "shortened", "fallback"]
    assert [attempt.window for attempt in reported.flow.attempts][2] is None
    alone = run(ask(WIDE, context=LONG), overflow(12_500, 12_000), overflow(11_000, 9_000))
    assert kinds(alone) == [FailureKind.OVERFLOW] * 2
    assert [event.type for event in alone.events] == ["start", "error"]


def test_a_fallback_is_shortened_once_as_well():
    wider = Model("gpt-wider", "openai", "openai-chat", context_window=30_000)
    refused = overflow(12_500, 12_000)
    reported = run(ask(WIDE, wider, context=LONG), refused, refused, refused, refused)
    assert [(each.model.id, each.reason) for each in reported.flow.attempts] == [
        (WIDE.id, "first"),
        (WIDE.id, "shortened"),
        (wider.id, "fallback"),
        (wider.id, "shortened"),
    ]


def test_a_shortened_request_is_retried_as_it_is():
    reported = run(ask(WIDE, context=LONG), overflow(12_500, 12_000), DOWN, good("openai-chat"))
    assert [attempt.reason for attempt in reported.flow.attempts] == ["first", "shortened", "retry"]
    assert reported.requests[1].content == reported.requests[2].content


SHORTENED_NEVER = {
    "the policy sends everything": Policy(fit=None),
    "the policy refuses losses": Policy(refuse=frozenset({Loss.CONTENT})),
}


@pytest.mark.parametrize("policy", SHORTENED_NEVER.values(), ids=SHORTENED_NEVER.keys())
def test_history_is_not_shortened_where(policy: Policy):
    reported = run(ask(WIDE, context=LONG, policy=policy), overflow(12_500, 12_000))
    assert kinds(reported) == [FailureKind.OVERFLOW]


def test_a_window_that_was_found_smaller_is_used_from_the_start():
    found = run(ask(WIDE, context=LONG), overflow(12_500, 12_000), good("openai-chat"))
    window = found.flow.attempts[1].window
    assert window is not None
    reported = run(ask(WIDE, context=LONG, windows={window_key(WIDE): window}), good("openai-chat"))
    assert reported.requests[0].content == found.requests[1].content
    assert [(attempt.reason, attempt.window) for attempt in reported.flow.attempts] == [("first", window)]


def test_what_does_not_fit_at_all_goes_to_the_fallback_without_a_request():
    tiny = Model("gpt-tiny", "openai", "openai-chat", context_window=30)
    whole = Context(messages=(UserMessage.of("word " * 200),))
    reported = run(ask(tiny, QWEN, context=whole), good("openai-chat"))
    assert reported.asked == [QWEN.id]
    assert kinds(reported) == [FailureKind.OVERFLOW, None]
    with pytest.raises(DoesNotFit):
        run(ask(tiny, context=whole))


def test_a_refusal_is_an_answer_unless_fallback_on_includes_it():
    refused = bad(400, {"error": {"code": "content_filter", "message": "The response was filtered"}})
    reported = run(ask(GPT, CLAUDE), refused)
    assert kinds(reported) == [FailureKind.REFUSED]
    keen = Retry(fallback_on=FALLBACK_KINDS | {FailureKind.REFUSED})
    assert run(ask(GPT, CLAUDE, retry=keen), refused, good("anthropic-messages")).asked == [GPT.id, CLAUDE.id]


# -- refused signatures ------------------------------------------------------------------------------------------------


def test_a_rejected_signature_is_retried_once_without_earlier_reasoning():
    reported = run(ask(CLAUDE, GPT, context=TALKED), BAD_SIGNATURE, BAD_SIGNATURE, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, CLAUDE.id, GPT.id]
    assert [attempt.reason for attempt in reported.flow.attempts] == ["first", "without_reasoning", "fallback"]
    assert "opaque-data" in str(reported.requests[0].body)
    assert "opaque-data" not in str(reported.requests[1].body)
    assert "hm" not in str(reported.requests[1].body)
    paths = {change.path for change in reported.flow.attempts[1].report.changes}
    assert ("messages", 1, "content", 0) in paths


def test_the_running_tool_cycle_keeps_its_reasoning():
    new = replace(
        THOUGHT, content=(ThinkingContent(thinking="oh", thinking_signature="new-data"), *THOUGHT.content[1:])
    )
    running = Context(messages=(*TALKED.messages, new, RESULT))
    reported = run(ask(context=running), BAD_SIGNATURE, good("anthropic-messages"))
    [first, second] = [str(request.body) for request in reported.requests]
    assert ("opaque-data" in first, "new-data" in first) == (True, True)
    assert ("opaque-data" in second, "new-data" in second) == (False, True)


def test_a_running_tool_cycle_whose_reasoning_is_rejected_goes_on_without_it():
    running = Context(messages=(UserMessage.of("is it?"), THOUGHT, RESULT))
    reported = run(ask(context=running), BAD_SIGNATURE, good("anthropic-messages"))
    assert [attempt.reason for attempt in reported.flow.attempts] == ["first", "without_reasoning"]
    assert "opaque-data" not in str(reported.requests[1].body)


def test_what_was_rejected_is_remembered_with_the_reply_and_never_sent_again():
    reported = run(ask(context=TALKED), BAD_SIGNATURE, good("anthropic-messages"))
    reply = reported.flow.message
    assert reply.sent is not None
    assert len(reply.sent.dropped) == 1
    stored = load(dump(TALKED.add(reply, UserMessage.of("and now?"))))
    again = run(ask(context=stored), good("anthropic-messages"))
    assert "opaque-data" not in str(again.requests[0].body)
    assert kinds(again) == [None]


def test_what_was_rejected_is_remembered_if_the_second_attempt_fails_too():
    reported = run(ask(context=TALKED, retry=ONCE), BAD_SIGNATURE, DOWN)
    failed = reported.flow.message
    assert failed.stop_reason == StopReason.ERROR
    again = run(ask(context=TALKED.add(failed, UserMessage.of("and now?"))), good("anthropic-messages"))
    assert "opaque-data" not in str(again.requests[0].body)


def test_a_rejected_signature_without_earlier_reasoning_is_not_retried():
    reported = run(ask(CLAUDE, GPT), BAD_SIGNATURE, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, GPT.id]


def test_a_rejected_signature_is_removed_whatever_same_model_returns():
    policy = Policy(same_model=lambda message, model: True)
    reported = run(ask(context=TALKED, policy=policy), BAD_SIGNATURE, good("anthropic-messages"))
    assert "opaque-data" not in str(reported.requests[1].body)


def test_a_policy_can_refuse_to_drop_reasoning():
    policy = Policy(refuse=frozenset({Loss.CONTENT}))
    reported = run(ask(context=TALKED, policy=policy), BAD_SIGNATURE)
    assert kinds(reported) == [FailureKind.OPAQUE_REJECTED, FailureKind.INVALID_HISTORY]
    assert reported.asked == [CLAUDE.id]


# -- what the caller got wrong -----------------------------------------------------------------------------------------


def test_an_empty_conversation_raises():
    with pytest.raises(EmptyConversation):
        run(ask(context=Context()))


def test_a_change_refused_for_one_model_leads_to_the_fallback():
    policy = Policy(refuse=frozenset({Loss.CONTENT}))
    with pytest.raises(ProjectionRefused):
        run(ask(GPT, context=TALKED, policy=policy))
    reported = run(ask(GPT, CLAUDE, context=TALKED, policy=policy), good("anthropic-messages"))
    assert reported.asked == [CLAUDE.id]
    assert kinds(reported) == [FailureKind.INVALID_HISTORY, None]
    assert reported.flow.attempts[0].report


# -- replies that are none ---------------------------------------------------------------------------------------------

STRANGE = {
    "no JSON": (b"<html>It works!</html>", FailureKind.SERVER),
    "a list": (b"[]", FailureKind.SERVER),
    "an error with status 200": (b'{"error": {"message": "Rate limit reached", "code": 429}}', FailureKind.RATE_LIMIT),
    "nothing": (b"", FailureKind.SERVER),
}


@pytest.mark.parametrize(("body", "kind"), STRANGE.values(), ids=STRANGE.keys())
def test_a_good_status_with_an_unreadable_body_fails(body: bytes, kind: FailureKind):
    document = ScriptedAnswer(Head(200, {"content-type": "application/json"}), (body,))
    reported = run(ask(GPT, retry=ONCE), document)
    assert kinds(reported) == [kind]
    assert reported.events[-1].type == "error"


def test_a_stream_without_a_terminal_event_fails_and_keeps_its_text():
    frames = WIRES["anthropic-messages"].frames
    reported = run(ask(), ScriptedAnswer(Head(200, {}), frames[:5]))
    assert reported.events[-1].type == "error"
    assert reported.flow.message.text().startswith("Grüße")


def test_an_empty_stream_is_retried():
    reported = run(ask(), ScriptedAnswer(Head(200, {})), good("anthropic-messages"))
    assert kinds(reported) == [FailureKind.NETWORK, None]


def test_closing_after_the_last_event_keeps_the_complete_reply():
    """Between the last event and its way to the caller: the reply is whole, and the attempt is recorded."""
    for place in ("drain", "now", "note"):
        flow = Flow(ask(GPT))
        steps = flow.run()
        step, answer, received = next(steps), None, False
        while step.kind != "emit":
            if step.kind == "read_events":
                answer, received = [*map(step.feed, WIRES["openai-chat"].frames)][-1], True
            elif received and step.kind == place:
                step, received = steps.throw(Aborted()), False
                continue
            else:
                answer = (
                    Moment(1.0, 1000, 0.0) if step.kind == "now" else Head(200, {}) if step.kind == "send" else None
                )
            step = steps.send(answer)
        assert flow.message.text() == TEXT
        assert flow.message.stop_reason == StopReason.STOP
        assert [attempt.failure for attempt in flow.attempts] == [None]


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES.keys())
def test_an_aborted_reply_is_released_at_every_step(wire):
    """At every step: also while it is sent, for an answer may come all the same."""
    places = 0
    while True:
        flow = Flow(ask(wire.model("http://127.0.0.1:1")))
        steps = flow.run()
        step, taken, is_open, is_broken = next(steps), 0, False, False
        while step.kind != "emit":
            is_open = step.kind == "send" or (is_open and step.kind not in ("close", "drain"))
            if taken == places and not is_broken:
                is_broken = True
                step = steps.throw(Aborted())
                continue
            taken += 1
            match step.kind:
                case "now":
                    answer = Moment(1.0, 1000, 0.0)
                case "send":
                    answer = Head(200, {})
                case "read_events":
                    answer = next(
                        (each for each in map(step.feed, wire.frames) if each and each[-1].type == "done"), None
                    )
                case _:
                    answer = None
            step = steps.send(answer)
        assert not is_open
        if not is_broken:
            break
        places += 1
    assert places > 3


def test_an_unpreparable_fallback_is_a_failed_attempt():
    unknown_setting = Model("m", "mine", "openai-chat", rules={"no_such_rule": 1})
    reported = run(ask(CLAUDE, unknown_setting, QWEN, retry=ONCE), DOWN, good("openai-chat"))
    assert reported.asked == [CLAUDE.id, QWEN.id]
    assert kinds(reported) == [FailureKind.OVERLOADED, FailureKind.INVALID_REQUEST, None]
    with pytest.raises(SettingsError, match="no_such_rule"):
        run(ask(unknown_setting, QWEN))


def test_an_image_becomes_text_only_for_a_fallback_without_images():
    blind = Model("blind", "mine", "anthropic-messages", input=("text",))
    picture = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
    shown = Context(messages=(UserMessage.of("what is this?", picture),))
    reported = run(ask(GPT, blind, QWEN, context=shown, retry=ONCE), DOWN, DOWN, good("openai-chat"))
    bodies = [str(request.body) for request in reported.requests]
    assert ["iVBORw0KGgo=" in body for body in bodies] == [True, False, True]
    assert "image omitted" in bodies[1]
    changes = [[change.code for change in attempt.report.changes] for attempt in reported.flow.attempts]
    assert [bool(each) for each in changes] == [False, True, False]


def test_every_reply_is_released():
    reported = run(ask(CLAUDE, GPT), RATE, RESET, DOWN, good("openai-chat"))
    assert reported.kinds.count("drain") + reported.kinds.count("close") == 3
