"""Whole replies: why they ended, what they counted, what failed."""

from __future__ import annotations

import pytest

from protocols.google_genai.endpoints import NEWER, OLDER
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.protocols.detection import detect_reply
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC


def read(body, endpoint=OLDER, tool_names=None):
    message = CODEC.decode_response(body, endpoint, tool_names or {})
    if not tool_names:
        assert CODEC.encode_response(message, endpoint) == body
    return message


def reply(*parts, **candidate):
    first = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", **candidate}
    return {"candidates": [first], "modelVersion": "gemini-2.5-flash-001"}


CALL = {"functionCall": {"id": "c", "name": "f", "args": {}}}
REASONS = {
    "an end": ("STOP", (), StopReason.STOP),
    "an end with calls": ("STOP", (CALL,), StopReason.TOOL_USE),
    "a limit": ("MAX_TOKENS", (), StopReason.LENGTH),
    "a limit behind calls": ("MAX_TOKENS", (CALL,), StopReason.LENGTH),
    "a limit that can be gone on from": ("CONTINUATION", (), StopReason.LENGTH),
    "safety": ("SAFETY", (), StopReason.ERROR),
    "recitation": ("RECITATION", (), StopReason.ERROR),
    "a broken call": ("MALFORMED_FUNCTION_CALL", (), StopReason.ERROR),
    "too many calls": ("TOO_MANY_TOOL_CALLS", (), StopReason.ERROR),
    "an unknown reason": ("MOON_PHASE", (), StopReason.ERROR),
    "no reason": (None, (), StopReason.STOP),
    "no reason with calls": (None, (CALL,), StopReason.TOOL_USE),
}


@pytest.mark.parametrize(("raw", "parts", "stop"), REASONS.values(), ids=REASONS.keys())
def test_the_stop_reason_of_a_reply(raw, parts, stop):
    message = read(reply({"text": "x"}, *parts, finishReason=raw))
    assert (message.stop_reason, message.raw_stop_reason) == (stop, raw)
    assert (message.error_message is not None) is (stop == StopReason.ERROR)


NUMBERS = {
    "an end": (1, "STOP", StopReason.STOP),
    "a limit": (2, "MAX_TOKENS", StopReason.LENGTH),
    "safety": (3, "SAFETY", StopReason.ERROR),
    "a number the endpoints disagree about": (9, "9", StopReason.ERROR),
    "unspecified": (0, None, StopReason.STOP),
}


@pytest.mark.parametrize(("number", "raw", "stop"), NUMBERS.values(), ids=NUMBERS.keys())
def test_a_reason_that_is_a_number(number, raw, stop):
    body = reply({"text": "x"}, finishReason=number)
    message = read(body)
    assert (message.stop_reason, message.raw_stop_reason) == (stop, raw)
    assert CODEC.encode_response(message, OLDER) == body


def test_a_reply_without_content_and_reason_has_failed():
    message = read({"candidates": [{"content": {"role": "model"}}], "responseId": "r"})
    assert (message.stop_reason, message.raw_stop_reason) == (StopReason.ERROR, None)


def test_the_error_message_is_the_providers():
    broken = read(reply(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: f("))
    assert broken.error_message == "Malformed function call: f("
    blocked = read({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Not this."}})
    assert (blocked.stop_reason, blocked.raw_stop_reason) == (StopReason.ERROR, "SAFETY")
    assert blocked.error_message == "Not this."
    failed = read({"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}})
    assert failed.error_message == "UNAVAILABLE: Busy."


COUNTS = {
    "a plain reply": (
        {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        {"input": 10, "output": 5, "total_tokens": 15},
    ),
    "cached and thought": (
        {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 80,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 7,
            "totalTokenCount": 112,
        },
        {"input": 20, "cache_read": 80, "output": 12, "reasoning": 7, "total_tokens": 112},
    ),
    "with what server tools gave": (
        {"promptTokenCount": 10, "toolUsePromptTokenCount": 90, "candidatesTokenCount": 5, "totalTokenCount": 105},
        {"input": 100, "output": 5, "total_tokens": 105},
    ),
    "without a total": ({"promptTokenCount": 10}, {"input": 10, "total_tokens": 10}),
    "in snake_case": (
        {"prompt_token_count": 10, "candidates_token_count": 5, "total_token_count": 15},
        {"input": 10, "output": 5, "total_tokens": 15},
    ),
}


@pytest.mark.parametrize(("wire", "counts"), COUNTS.values(), ids=COUNTS.keys())
def test_tokens_are_counted_by_category(wire, counts):
    usage = read({**reply({"text": "x"}), "usageMetadata": wire}).usage
    assert usage is not None
    assert {name: getattr(usage, name) for name in counts} == counts
    assert usage.input + usage.cache_read + usage.output == usage.total_tokens
    assert usage.cost is not None
    assert usage.cost.total > 0


KEPT = {
    "grounding, citations and ratings": reply(
        {"text": "x"}, groundingMetadata={"a": 1}, citationMetadata={"b": 2}, safetyRatings=[], avgLogprobs=-0.5
    ),
    "addresses that were read": reply({"text": "x"}, urlContextMetadata={"urlMetadata": []}),
    "several candidates": {
        "candidates": [*reply({"text": "a"})["candidates"], {"content": {"parts": [{"text": "b"}]}, "index": 1}],
        "createTime": "2026-11-15T00:00:00Z",
    },
    "no candidates": {"candidates": [], "usageMetadata": {"promptTokenCount": 1}},
    "a candidate without content": {"candidates": [{"finishReason": "SAFETY"}]},
    "a content without parts": {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
    "a content without a role": {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]},
    "no reason": {"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}}]},
    "no reason and no content": {"candidates": [{"content": {}}]},
    "nothing but who answered": {"modelVersion": "m", "responseId": "r"},
    "snake_case": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "finish_reason": "STOP"}],
        "model_version": "m",
        "response_id": "r",
        "usage_metadata": None,
    },
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_a_reply_comes_out_unchanged(body):
    message = read(body)
    assert (message.protocol, message.provider, message.model) == ("google-genai", "google", "gemini-2.5-flash")


def test_what_only_a_reply_has_is_not_sent_back():
    message = read(reply({"text": "x"}, groundingMetadata={"secret": 1}))
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), OLDER)
    assert body == {"contents": [{"role": "model", "parts": [{"text": "x"}]}]}


def test_names_that_were_changed_are_mapped_back():
    message = read(reply(CALL), tool_names={"f": "mcp/f"})
    assert [call.name for call in message.tool_calls()] == ["mcp/f"]


def test_ids_of_calls_without_ids_are_made_of_the_replys_id():
    bare = {"functionCall": {"name": "f", "args": {}}}
    message = read({**reply(bare, bare), "responseId": "abc"})
    assert [call.id for call in message.tool_calls()] == ["call_abc_0", "call_abc_1"]
    assert [call.id for call in read(reply(bare)).tool_calls()] == ["call_0"]


def test_a_message_of_ones_own_becomes_a_reply():
    message = AssistantMessage(
        content=(TextContent(text="hi"), ToolCall(id="c", name="f")),
        model="gemini-x",
        stop_reason=StopReason.TOOL_USE,
        usage=Usage(input=3, output=2, total_tokens=5),
    )
    assert CODEC.encode_response(message, NEWER) == {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "hi"}, CALL]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
        "modelVersion": "gemini-x",
    }


WRONG = {
    "no reply": ({}, ("candidates",)),
    "candidates that are a text": ({"candidates": "x"}, ("candidates",)),
    "a candidate that is a text": ({"candidates": ["x"]}, ("candidates", 0)),
    "a content that is a text": ({"candidates": [{"content": "x"}]}, ("candidates", 0, "content")),
    "a part that is a text": (
        {"candidates": [{"content": {"parts": ["x"]}}]},
        ("candidates", 0, "content", "parts", 0),
    ),
}


@pytest.mark.parametrize(("body", "path"), WRONG.values(), ids=WRONG.keys())
def test_what_is_not_a_reply_is_refused_with_its_path(body, path):
    with pytest.raises(DecodeError) as refused:
        CODEC.decode_response(body, OLDER, {})
    assert refused.value.path == path


def test_a_reply_is_recognised():
    assert detect_reply({"candidates": []}) == "google-genai"
    assert detect_reply({"promptFeedback": {"blockReason": "SAFETY"}}) == "google-genai"
    assert detect_reply({"prompt_feedback": {"block_reason": "SAFETY"}}) == "google-genai"


# -- errors ------------------------------------------------------------------------------------------------------------

QUOTA = {
    "error": {
        "code": 429,
        "message": "Slow down.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"},
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"},
        ],
    }
}
ERRORS = {
    "an object": (QUOTA, None, (429, "RATE_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "Slow down.")),
    "an object in an array": ([QUOTA], 429, (429, "RATE_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "Slow down.")),
    "bytes": (
        b'[{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}]',
        400,
        (400, "400", "INVALID_ARGUMENT", "No."),
    ),
    "a page": ("<html>Bad gateway</html>", 502, (502, None, None, "<html>Bad gateway</html>")),
    "a text in an object": ({"error": "No."}, 500, (500, None, None, "No.")),
    "a message alone": ({"message": "No."}, 500, (500, None, None, "No.")),
    "nothing": (None, 500, (500, None, None, "")),
    "an empty array": ([], 500, (500, None, None, "")),
}


@pytest.mark.parametrize(("body", "status", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read(body, status, expected):
    error = CODEC.decode_error(body, status)
    assert (error.status, error.code, error.type, error.message) == expected
