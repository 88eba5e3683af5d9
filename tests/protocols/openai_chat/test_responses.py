"""Whole replies: what they mean, what they cost, why they stopped; and each comes out as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from protocols.openai_chat.endpoints import GPT, endpoint, reply, write
from segue.conversation.content import NativeContent, TextContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Price
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def decode(body, at=GPT, **names) -> Any:
    return CODEC.decode_response(body, at, names)


REPLIES = {
    "plain": reply({"content": "a"}),
    "every key of OpenAI": reply(
        {"content": "a", "refusal": None, "annotations": []},
        system_fingerprint="fp",
        service_tier="default",
        usage={
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    ),
    "calls beside an empty string": reply({"content": "", "tool_calls": [CALL]}, "tool_calls"),
    "calls without content": reply({"tool_calls": [CALL]}, "tool_calls"),
    "calls with an index": reply({"content": None, "tool_calls": [{**CALL, "index": 0}]}, "tool_calls"),
    "calls without a type": reply(
        {"content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]}, "stop"
    ),
    "no calls, in a list": reply({"content": "a", "tool_calls": []}),
    "reasoning and its repetition": reply({"content": "a", "reasoning": "t", "reasoning_content": "t"}),
    "reasoning with details": reply(
        {"content": "a", "reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]}
    ),
    "reasoning that is null": reply({"content": "a", "reasoning": None}),
    "citations": reply({"content": "a"}, citations=["https://x.org"], search_results=[{"title": "x"}]),
    "a vendor's own keys": reply({"content": "a"}, x_groq={"id": "q"}, time_info={"total": 1.5}, provider="Google"),
    "log probabilities": reply({"content": "a"})
    | {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a"},
                "finish_reason": "stop",
                "logprobs": {"content": []},
            }
        ]
    },
    "no index, no reason": {"choices": [{"message": {"role": "assistant", "content": "a"}}]},
    "a null reason": reply({"content": "a"}, None),
    "nothing but a choice": {"choices": [{"index": 0, "finish_reason": "stop"}]},
    "a null message": {"id": "r", "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
    "no choices": reply({}) | {"choices": []},
    "an error": {"error": {"message": "no", "code": 502}, "user_id": "u"},
    "an empty id": reply({"content": "a"}, id="", model="", object=None),
    "null usage": reply({"content": "a"}, usage=None),
    "usage in the choice": {
        "id": "r",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a"},
                "finish_reason": "stop",
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            }
        ],
    },
    "two choices": reply({"content": "a"})
    | {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
            {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
        ]
    },
    "sound": reply({"content": None, "audio": {"id": "a", "data": "AAAA", "transcript": "hi", "expires_at": 9}}),
    "pictures": reply(
        {"content": "a", "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}
    ),
    "a refusal": reply({"content": None, "refusal": "no"}),
    "a refusal behind text": reply({"content": "a", "refusal": "no"}),
    "a refusal that is a part": reply({"content": [{"type": "refusal", "refusal": "no", "x": 1}]}),
    "a call of an unknown type": reply(
        {"content": None, "tool_calls": [{"id": "c", "type": "mcp", "mcp": {"x": 1}}, CALL]}, "tool_calls"
    ),
    "an old call": reply({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call"),
    "a custom call": reply(
        {"content": None, "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}]},
        "tool_calls",
    ),
    "content that is a list": reply({"content": [{"type": "text", "text": "a"}]}),
    "content that is an object": reply({"content": {"name": "Zoë", "tags": ["a", None]}}),
    "content that is a list of values": reply({"content": [1, "b"]}),
    "content that is a number": reply({"content": 7}),
    "another role": reply({"content": "a"})
    | {"choices": [{"index": 0, "message": {"role": "model", "content": "a"}, "finish_reason": "stop"}]},
}


@pytest.mark.parametrize("body", REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_comes_out_as_it_was(body):
    assert CODEC.encode_response(decode(body), GPT) == body


ODD_REPLIES = {
    "an index that is false": reply({"content": "a"})
    | {"choices": [{"index": False, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]},
    "a time that is false": reply({"content": "a"}, created=False),
    "counts that are false": reply(
        {"content": "a"}, usage={"prompt_tokens": False, "completion_tokens": False, "total_tokens": False}
    ),
    "one count that is true": reply(
        {"content": "a"}, usage={"prompt_tokens": True, "completion_tokens": 1, "total_tokens": 1}
    ),
    "an empty refusal": reply({"content": "a", "refusal": "", "audio": None, "function_call": None}),
    "calls that are an object": reply({"content": "a", "tool_calls": {}}),
    "calls beside null": reply({"content": None, "tool_calls": [CALL]}, "tool_calls"),
    "calls with spaces": reply(
        {"content": "a", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{ "a": 1 }'}}]}, "tool_calls"
    ),
    "calls that are cut off": reply(
        {"content": "a", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"a": '}}]}, "length"
    ),
    "a tag before the text": reply({"content": "<think>t</think>a"}),
    "a reason of another vendor": reply({"content": "a"}, "eos"),
}


@pytest.mark.parametrize("body", [*REPLIES.values(), *ODD_REPLIES.values()], ids=[*REPLIES, *ODD_REPLIES])
def test_a_reply_comes_out_as_the_same_json(body):
    """True is not 1, as `==` says."""
    written = CODEC.encode_response(decode(body), GPT)
    assert json.dumps(written, sort_keys=True) == json.dumps(body, sort_keys=True)


def test_a_reply_in_the_default_format_keeps_nothing():
    body = reply({"content": "a", "tool_calls": [CALL]}, "tool_calls", created=0)
    assert decode(body).extra is None


def test_a_reply_with_renamed_calls_keeps_their_names():
    body = reply({"content": "a", "tool_calls": [CALL]}, "tool_calls")
    message = decode(body, f="own name")
    assert message.tool_calls()[0].name == "own name"
    assert CODEC.encode_response(message, GPT) == body


@pytest.mark.parametrize("body", REPLIES.values(), ids=REPLIES.keys())
def test_the_format_of_a_reply_does_not_go_into_a_request(body):
    message = decode(body)
    if message.stop_reason == "error":
        return
    wire = write(message)["messages"][0]
    sent = {"role", "content", "tool_calls", "function_call", "refusal", "audio", "images"}
    assert wire.keys() <= sent | {"reasoning", "reasoning_content", "reasoning_details"}
    for call in wire.get("tool_calls", ()):
        assert call.keys() == {"id", "type", call["type"]}
        assert isinstance(call.get("function", {}).get("arguments", ""), str)


def test_a_reply_names_its_model_and_its_response_model():
    message = decode(reply({"content": "a"}))
    assert (message.protocol, message.provider, message.model) == ("openai-chat", "openai", "gpt-4o")
    assert (message.response_model, message.response_id) == ("m", "r1")
    assert message.content == (TextContent(text="a"),)


def test_audio_goes_back_by_its_id_and_has_its_transcript():
    message = decode(REPLIES["sound"])
    native = message.content[0]
    assert isinstance(native, NativeContent)
    assert native.fallback == (TextContent(text="hi"),)
    assert write(message)["messages"] == [{"role": "assistant", "content": None, "audio": {"id": "a"}}]


def test_a_refusal_can_be_read_and_goes_back_as_one():
    message = decode(reply({"content": None, "refusal": "no"}))
    assert message.text() == "no"
    assert write(message)["messages"] == [{"role": "assistant", "content": None, "refusal": "no"}]


VALUES = {
    "an object": ({"name": "Zoë", "tags": ["a", None]}, '{"name":"Zoë","tags":["a",null]}'),
    "a list": ([1, "b"], '[1,"b"]'),
    "a number": (0, "0"),
    "a truth": (True, "true"),
}


@pytest.mark.parametrize(("value", "text"), VALUES.values(), ids=VALUES.keys())
def test_a_value_in_place_of_text_is_read_as_its_json(value, text):
    message = decode(reply({"content": value}))
    assert message.content == (TextContent(text=text),)
    assert write(message)["messages"] == [{"role": "assistant", "content": text}]


def test_changed_text_takes_the_place_of_a_value():
    message = replace(decode(reply({"content": {"a": 1}})), content=(TextContent(text="b"),))
    assert CODEC.encode_response(message, GPT) == reply({"content": "b"})


def test_a_tools_name_is_mapped_back():
    message = CODEC.decode_response(reply({"content": None, "tool_calls": [CALL]}), GPT, {"f": "f.1"})
    assert message.content == (ToolCall(id="c1", name="f.1"),)


STOPS = {
    "stop": StopReason.STOP,
    "end": StopReason.STOP,
    "eos": StopReason.STOP,
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.ERROR,
    "network_error": StopReason.ERROR,
    "sensitive": StopReason.ERROR,
    "insufficient_system_resource": StopReason.ERROR,
    "tired": StopReason.STOP,
    None: StopReason.STOP,
}


@pytest.mark.parametrize(("reason", "stop"), STOPS.items(), ids=str)
def test_a_finish_reason_is_read(reason, stop):
    message = decode(reply({"content": "a"}, reason))
    assert message.stop_reason == stop
    assert message.raw_stop_reason == reason
    assert (message.error_message is not None) == (stop == StopReason.ERROR)


def test_an_unknown_reason_after_nothing_is_a_failure():
    assert decode(reply({"content": None}, "tired")).stop_reason == StopReason.ERROR


def test_a_reply_that_calls_stopped_for_its_tools_with_any_reason():
    assert decode(reply({"content": None, "tool_calls": [CALL]}, "stop")).stop_reason == StopReason.TOOL_USE
    assert decode(reply({"content": None, "tool_calls": [CALL]}, "length")).stop_reason == StopReason.LENGTH


ERRORS = {
    "in place of choices": ({"error": {"message": "no", "code": 502}}, "no"),
    "in the choice": (
        reply({"content": ""}) | {"choices": [{"index": 0, "error": {"message": "gone"}, "finish_reason": "error"}]},
        "gone",
    ),
    "in place of choices, at the top": ({"object": "error", "message": "no", "code": 400}, "no"),
    "in a choice that stopped well": (
        {"choices": [{"message": {"content": "a"}, "finish_reason": "stop", "error": {"message": "no"}}]},
        "no",
    ),
    "no choices at all": ({"id": "x", "choices": []}, "the reply has no choices"),
}


@pytest.mark.parametrize(("body", "given"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_in_a_reply_is_a_message_that_failed(body, given):
    message = decode(body)
    assert message.stop_reason == StopReason.ERROR
    assert message.error_message == given
    assert CODEC.encode_response(message, GPT) == body


def test_repaired_arguments_are_noted():
    broken = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "b'}}
    message = decode(reply({"content": None, "tool_calls": [broken]}, "length"))
    assert message.tool_calls()[0].arguments == {"a": "b"}
    assert message.diagnostics[0].type == "tool_arguments_recovered"


@pytest.mark.parametrize(
    "body", [{"choices": "x"}, {"choices": [7]}, {"choices": [{"message": {"tool_calls": 7}}]}], ids=str
)
def test_a_body_that_is_no_reply_is_refused(body):
    with pytest.raises(DecodeError, match=r"^choices"):
        decode(body)


@pytest.mark.parametrize("body", [{}, {"id": "x"}, {"choices": None}, {"error": None}, {"detail": "no"}], ids=str)
def test_a_body_without_choices_or_an_error_is_no_reply(body):
    with pytest.raises(DecodeError, match="neither choices nor an error"):
        decode(body)


def test_another_wires_message_becomes_a_reply():
    message = AssistantMessage(
        content=(TextContent(text="a"), ToolCall(id="c", name="f")),
        protocol="anthropic-messages",
        model="claude",
        response_id="msg_1",
        stop_reason=StopReason.TOOL_USE,
        raw_stop_reason="tool_use",
        usage=Usage(input=5, output=2, cache_read=3, cache_write=1, reasoning=1),
        timestamp=5000,
    )
    assert CODEC.encode_response(message, GPT) == {
        "id": "msg_1",
        "object": "chat.completion",
        "created": 5,
        "model": "claude",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "a",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    }


# -- usage -------------------------------------------------------------------------------------------------------------


def counts(wire, at=GPT):
    return decode(reply({"content": "a"}, usage=wire), at).usage


USAGES = {
    "OpenAI's": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        Usage(input=30, output=20, cache_read=60, cache_write=10, reasoning=5, total_tokens=120),
    ),
    "DeepSeek's": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "total_tokens": 15,
            "prompt_cache_hit_tokens": 8,
            "prompt_cache_miss_tokens": 4,
        },
        Usage(input=4, output=3, cache_read=8, total_tokens=15),
    ),
    "thinking that only the total shows": (
        {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 126},
        Usage(input=35, output=91, reasoning=79, total_tokens=126),
    ),
    "cached tokens that only the total includes are no thinking": (
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35, "cache_read_input_tokens": 20},
        Usage(input=0, output=5, cache_read=20, total_tokens=35),
    ),
    "cached tokens in Claude's own keys": (
        {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15, "cache_read_input_tokens": 8},
        Usage(input=4, output=3, cache_read=8, total_tokens=15),
    ),
    "Kimi's": (
        {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50, "cached_tokens": 10},
        Usage(input=10, output=30, cache_read=10, total_tokens=50),
    ),
    "xAI's, whose completion leaves reasoning out": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 1,
            "total_tokens": 303,
            "prompt_tokens_details": {"cached_tokens": 11},
            "completion_tokens_details": {"reasoning_tokens": 290},
        },
        Usage(input=1, output=291, cache_read=11, reasoning=290, total_tokens=303),
    ),
    "one without a total": ({"prompt_tokens": 2, "completion_tokens": 3}, Usage(input=2, output=3, total_tokens=5)),
    "one that caches more than it read": (
        {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5, "cached_tokens": 9},
        Usage(input=0, output=3, cache_read=9, total_tokens=5),
    ),
    "one of nulls": (
        {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None, "prompt_tokens_details": None},
        Usage(),
    ),
}


@pytest.mark.parametrize(("wire", "usage"), USAGES.values(), ids=USAGES.keys())
def test_usage_is_read_by_category_and_comes_out_as_it_was(wire, usage):
    read = counts(wire)
    assert (read.input, read.output, read.cache_read, read.cache_write, read.reasoning, read.total_tokens) == (
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.total_tokens,
    )
    body = reply({"content": "a"}, usage=wire)
    assert CODEC.encode_response(decode(body), GPT) == body


PRICED = endpoint(cost=Price(input=2.0, output=10.0, cache_read=1.0))
SPENT = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "total_tokens": 1_100_000, "cached_tokens": 500_000}


def test_cost_is_the_models_price():
    cost = counts(SPENT, PRICED).cost
    assert (cost.input, cost.cache_read, cost.output, cost.total) == (1.0, 0.5, 1.0, 2.5)


def test_no_price_is_no_cost():
    assert counts(SPENT).cost is None


BILLED = {
    "by a gateway": ({"cost": 0.25}, 0.25),
    "by a gateway and its upstream": (
        {"cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}},
        0.75,
    ),
    "by a gateway alone, although an upstream cost is given": (
        {"cost": 0.25, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.5}},
        0.25,
    ),
    "as an object": ({"cost": {"total_cost": 0.5, "request_cost": 0.1}}, 0.5),
    "in ticks": ({"cost_in_usd_ticks": 5_000_000_000}, 0.5),
}


@pytest.mark.parametrize(("beside", "total"), BILLED.values(), ids=BILLED.keys())
def test_what_the_provider_charges_is_what_it_costs(beside, total):
    assert counts(SPENT | beside).cost.total == pytest.approx(total)
    priced = counts(SPENT | beside, PRICED).cost
    assert priced.total == pytest.approx(total)
    assert priced.input == 1.0
