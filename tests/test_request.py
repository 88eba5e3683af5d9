"""Where projection and codec meet: requests that are ready to send, and one wire turned into another."""

from __future__ import annotations

from typing import Any

import pytest

from segue import (
    AssistantMessage,
    Context,
    DecodeError,
    EmptyConversation,
    ImageContent,
    Model,
    Options,
    Policy,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    Usage,
    UserMessage,
    check,
    convert,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    estimate_tokens,
    get_model,
    new_assistant_message,
    prepare,
    stream_decoder,
    transcribe,
)

CLAUDE = get_model("anthropic/claude-sonnet-4-5")
GPT = get_model("openai/gpt-5.4")
LOCAL = Model("tiny", "llama.cpp", "openai-chat")
TOOL = ToolDefinition(name="files/read file", description="Read.", parameters={"type": "object", "properties": {}})


def reply(*content: Any, model: Model = CLAUDE, stop: StopReason = StopReason.STOP) -> AssistantMessage:
    return AssistantMessage(
        content=content, protocol=model.protocol, provider=model.provider, model=model.id, stop_reason=stop
    )


def test_a_request_says_where_it_goes_and_holds_no_secret():
    request = prepare(Context(messages=(UserMessage.of("hi"),)), CLAUDE)
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers == {"content-type": "application/json", "anthropic-version": "2026-10-21"}  # its client's
    assert request.protocol == "anthropic-messages"
    assert prepare(Context(messages=(UserMessage.of("hi"),)), GPT).url == "https://api.openai.com/v1/responses"
    assert request.content.startswith(b"{")


NOTHING = {
    "no messages": (),
    "a blank message": (UserMessage.of("  \n"),),
    "an empty message": (UserMessage(content=()),),
    "unfinished turns alone": (reply(TextContent(text="half"), stop=StopReason.ABORTED),),
    "instructions alone": (SystemMessage.of("Be brief."), SystemMessage.of("And kind.")),
    "a result without a call": (ToolResultMessage(tool_call_id="x", content=(TextContent(text="r"),)),),
    "thinking alone, of another model": (reply(ThinkingContent(thinking="hm"), model=LOCAL),),
}


@pytest.mark.parametrize("model", [CLAUDE, GPT, LOCAL], ids=lambda model: model.full_name())
@pytest.mark.parametrize("messages", NOTHING.values(), ids=NOTHING.keys())
def test_nothing_to_say_is_said_before_anything_is_sent(messages, model):
    with pytest.raises(EmptyConversation):
        prepare(Context(messages=messages), model, policy=Policy(reasoning="drop"))


def test_thinking_is_turned_off_where_the_running_tool_cycle_demands_it():
    cycle = Context(
        messages=(
            UserMessage.of("go"),
            reply(ToolCall(id="c1", name="run"), model=GPT, stop=StopReason.TOOL_USE),
            ToolResultMessage(tool_call_id="c1", tool_name="run", content=(TextContent(text="ok"),)),
        )
    )
    request = prepare(cycle, CLAUDE, options=Options(thinking="high", max_tokens=20_000))
    assert request.body["thinking"] == {"type": "disabled"}
    assert [change.path for change in request.report.changes if change.code == "option_removed"] == [
        ("options", "thinking")
    ]
    later = prepare(
        cycle.add(reply(TextContent(text="done"), model=GPT), UserMessage.of("and now?")),
        CLAUDE,
        options=Options(thinking="high", max_tokens=20_000),
    )
    assert later.body["thinking"] == {"type": "enabled", "budget_tokens": 16384}


def test_a_tool_name_the_target_refuses_comes_back_as_it_was_given():
    request = prepare(Context(messages=(UserMessage.of("read"),), tools=(TOOL,)), LOCAL)
    (tool,) = request.body["tools"]  # type: ignore[misc]
    wire_name = tool["function"]["name"]
    assert wire_name != TOOL.name
    answer = request.decode(
        {
            "id": "x",
            "object": "chat.completion",
            "model": "tiny",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": wire_name, "arguments": "{}"}}
                        ],
                    },
                }
            ],
        }
    )
    assert [call.name for call in answer.tool_calls()] == [TOOL.name]


def test_what_the_official_client_does_not_name_stands_under_extra_body():
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "top_k": 5, "temperature": 0.5}
    request = convert(body, source="openai-chat", target=Model("m", "vllm", "openai-chat"))
    arguments = request.sdk_arguments()
    assert arguments["extra_body"] == {"top_k": 5}
    assert arguments["temperature"] == 0.5
    old = get_model("anthropic/claude-sonnet-4-5")
    request = prepare(Context(messages=(UserMessage.of("hi"),)), old, options=Options(temperature=0.5))
    assert request.sdk_arguments()["extra_body"] == {"temperature": 0.5}  # this client no longer names it


CHAT = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
    ],
    "tools": [{"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}],
    "temperature": 0.2,
}  # fmt: skip


@pytest.mark.parametrize("target", ["anthropic/claude-opus-4-8", "openai/gpt-5.4", "deepseek/deepseek-v4-pro"])
def test_a_foreign_body_becomes_a_request_for_another_model(target):
    request = convert(CHAT, target=target)
    assert check(request.body, protocol=request.protocol, model=target) == []
    prompt = decode_request(request.body, protocol=request.protocol, model=target)
    assert [message.role for message in prompt.context.messages] == ["user", "assistant", "toolResult"]
    assert prompt.context.system_prompt == "Be brief." or prompt.context.system_prompt == (
        TextContent(text="Be brief."),
    )


def test_a_target_the_catalogue_does_not_know_needs_a_protocol():
    request = convert(CHAT, target="house-model", target_protocol="anthropic-messages")
    assert request.body["model"] == "house-model"
    with pytest.raises(DecodeError):
        convert({"what": "is this"}, target="anthropic/claude-opus-4-8")


def test_reading_and_writing_without_projection_changes_nothing():
    prompt = decode_request(CHAT, protocol="openai-chat")
    assert encode_request(prompt, protocol="openai-chat") == CHAT
    assert prompt.model == "gpt-4o"
    assert prompt.context.messages[1].provider == "openai"  # type: ignore[union-attr]


def test_a_reply_is_read_from_a_mapping_or_an_sdk_object():
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 90},
    }  # fmt: skip

    class SdkObject:
        def model_dump(self, **_: object) -> dict[str, object]:
            return body

    message = decode_response(body, model=CLAUDE)
    assert message == decode_response(SdkObject(), model=CLAUDE)
    assert message.usage is not None
    assert (message.usage.input, message.usage.cache_read, message.usage.output) == (10, 90, 2)
    assert message.usage.cost is not None
    assert message.usage.cost.total == pytest.approx((10 * 3 + 90 * 0.3 + 2 * 15) / 1e6)
    assert encode_response(message, protocol="anthropic-messages") == body
    with pytest.raises(DecodeError):
        decode_response(7, model=CLAUDE)


def test_a_stream_decoder_is_found_by_protocol_or_model():
    for decoder in (stream_decoder(protocol="openai-chat"), stream_decoder(model=LOCAL)):
        decoder.feed({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})
        decoder.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        (*_, done) = decoder.finish()
        assert (done.type, decoder.message.text()) == ("done", "Hi")


def test_tokens_are_counted_by_the_provider_where_it_did_and_guessed_behind():
    context = Context(system_prompt="x" * 350, messages=(UserMessage.of("y" * 700),))
    assert estimate_tokens(context, CLAUDE) == 300
    counted = AssistantMessage(content=(TextContent(text="z"),), usage=Usage(input=1000, output=200, total_tokens=1200))
    assert estimate_tokens(context.add(counted, UserMessage.of("y" * 350)), CLAUDE) == 1300


def test_a_conversation_is_told_in_words():
    context = Context(system_prompt="Be brief.").add(
        UserMessage.of("Weather?", ImageContent(data="aGk=", mime_type="image/png")),
        new_assistant_message(
            get_model("anthropic/claude-sonnet-4-5"),
            content=(ToolCall(id="t1", name="look", arguments={"city": "Bergen"}),),
        ),
        ToolResultMessage(tool_call_id="t1", tool_name="look", content=(TextContent(text="Rain"),)),
    )
    told = transcribe(context)
    for said in ("system:\nBe brief.", "user:\nWeather?", "[Image: image/png]", "[Tool Use: look]", "Rain"):
        assert said in told
