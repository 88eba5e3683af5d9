"""Failures that people met when a conversation came to Bedrock or left it, each with what is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocols.bedrock_converse.endpoints import DEEPSEEK, GPT, KIMI, LLAMA, NOVA, OSS, SONNET
from protocols.bedrock_converse.referee import complaints
from segue.conversation.content import FileContent, ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ANTHROPIC = get_model("anthropic/claude-sonnet-4-5")
GPT_4O = get_model("openai/gpt-4o")


def reply(model: Model, *content, stop=StopReason.STOP):
    return AssistantMessage(
        content=content, protocol=model.protocol, provider=model.provider, model=model.id, stop_reason=stop
    )


def call(call_id="a", name="f"):
    return ToolCall(id=call_id, name=name, arguments={})


def result(call_id, *content, is_error=False):
    return ToolResultMessage(tool_call_id=call_id, tool_name="f", content=content, is_error=is_error)


def body_of(context: Context, model: Model, options: Options | None = None) -> Any:
    return prepare(context, model, options=options).body


def sent(model, *messages, **options) -> Any:
    """Prepare a request, see that it would be taken, and give its turns."""
    body = body_of(Context(messages=messages), model, Options(**options) if options else None)
    if model.protocol == "bedrock-converse":
        endpoint = next(e for e in (SONNET, NOVA, OSS, KIMI, DEEPSEEK, LLAMA, GPT) if e.model == model)
        assert CODEC.check(body, endpoint) == []
        assert complaints(body, endpoint) == []
    return body["messages"]


HI = UserMessage.of("hi")
HM = TextContent(text="Hello.")
SIGNED = ThinkingContent(thinking="Let me see.", thinking_signature="signature-1")


@pytest.mark.parametrize("endpoint", [OSS, KIMI, DEEPSEEK, GPT, NOVA, LLAMA], ids=lambda e: e.model.id)
def test_reasoning_of_claude_takes_no_signature_to_the_other_models_of_bedrock(endpoint):
    turns = sent(endpoint.model, HI, reply(SONNET.model, SIGNED, HM), UserMessage.of("so?"))
    assert "signature" not in json.dumps(turns)
    assert "signature-1" not in json.dumps(turns)


def test_reasoning_of_claude_at_bedrock_is_its_own_at_anthropic_and_the_other_way_round():
    at_anthropic = sent(ANTHROPIC, HI, reply(SONNET.model, SIGNED, HM), UserMessage.of("so?"))
    assert at_anthropic[1]["content"][0] == {"type": "thinking", "thinking": "Let me see.", "signature": "signature-1"}
    at_bedrock = sent(SONNET.model, HI, reply(ANTHROPIC, SIGNED, HM), UserMessage.of("so?"))
    written = {"reasoningText": {"text": "Let me see.", "signature": "signature-1"}}
    assert at_bedrock[1]["content"][0] == {"reasoningContent": written}


def test_redacted_reasoning_is_the_same_data_at_bedrock_and_at_anthropic():
    data = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT"
    body = {
        "output": {
            "message": {"role": "assistant", "content": [{"reasoningContent": {"redactedContent": data.encode()}}]}
        }
    }
    read = CODEC.decode_response({**body, "stopReason": "end_turn"}, SONNET, {})
    turns = sent(ANTHROPIC, HI, reply(SONNET.model, *read.content, HM), UserMessage.of("so?"))
    assert turns[1]["content"][0] == {"type": "redacted_thinking", "data": data}


def test_reasoning_without_readable_text_is_replayed_with_an_empty_text():
    withheld = ThinkingContent(thinking="", thinking_signature="signature-1")
    turns = sent(SONNET.model, HI, reply(SONNET.model, withheld, HM), UserMessage.of("so?"))
    assert turns[1]["content"][0] == {"reasoningContent": {"reasoningText": {"text": "", "signature": "signature-1"}}}


def test_a_blank_text_in_a_signed_turn_stays_where_it_was_signed():
    turns = sent(SONNET.model, HI, reply(SONNET.model, SIGNED, TextContent(text="\n"), HM), UserMessage.of("so?"))
    assert turns[1]["content"][1] == {"text": "\n"}


def test_a_turn_that_was_opened_by_another_model_turns_a_budget_off():
    history = (HI, reply(GPT_4O, call(), stop=StopReason.TOOL_USE), result("a", TextContent(text="1")))
    request = prepare(Context(messages=history), SONNET.model, options=Options(thinking="low"))
    assert request.body["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}}


def test_history_with_calls_and_no_tools_brings_the_tools_it_used():
    history = (HI, reply(GPT_4O, call(name="mcp.server/look"), stop=StopReason.TOOL_USE), result("a", HM))
    request, body = prepare(Context(messages=history), NOVA.model), body_of(Context(messages=history), NOVA.model)
    (spec,) = body["toolConfig"]["tools"]
    name = body["messages"][1]["content"][0]["toolUse"]["name"]
    assert spec["toolSpec"]["name"] == name != "mcp.server/look"
    assert request.tool_names == {name: "mcp.server/look"}


def test_all_results_of_a_batch_share_one_turn_with_the_text_after_them():
    turns = sent(
        SONNET.model,
        HI,
        reply(GPT_4O, call("a"), call("b"), stop=StopReason.TOOL_USE),
        result("b", TextContent(text="2")),
        result("a", TextContent(text="1")),
        UserMessage.of("so?"),
    )
    assert [next(iter(block)) for block in turns[2]["content"]] == ["toolResult", "toolResult", "text"]
    assert [block["toolResult"]["toolUseId"] for block in turns[2]["content"][:2]] == ["a", "b"]


def test_results_have_their_own_turn_for_llama_and_text_follows_a_short_answer():
    turns = sent(
        LLAMA.model, HI, reply(GPT_4O, call(), stop=StopReason.TOOL_USE), result("a", HM), UserMessage.of("so?")
    )
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]


def test_an_empty_result_says_that_it_is_empty():
    turns = sent(KIMI.model, HI, reply(GPT_4O, call(), stop=StopReason.TOOL_USE), result("a"))
    assert turns[2]["content"][0]["toolResult"]["content"][0]["text"].strip()


def test_the_first_turn_is_the_users():
    turns = sent(NOVA.model, reply(GPT_4O, HM), UserMessage.of("so?"))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]


def test_an_image_by_url_is_asked_for_and_never_fetched():
    picture = ImageContent(url="https://example.org/a.png")
    request = prepare(Context(messages=(UserMessage.of("Look.", picture),)), SONNET.model)
    assert [needed.reference for needed in request.requirements if needed.kind == "mediaNeeded"] == [
        "https://example.org/a.png"
    ]
    assert "example.org" not in json.dumps(request.body)


def test_a_picture_in_a_result_stays_there_for_claude_and_moves_behind_it_for_kimi():
    picture = ImageContent(data=PNG, mime_type="image/png")
    history = (HI, reply(GPT_4O, call(), stop=StopReason.TOOL_USE), result("a", HM, picture))
    assert "image" in sent(SONNET.model, *history)[2]["content"][0]["toolResult"]["content"][1]
    seeing = Model("moonshotai.kimi-k2.5", "amazon-bedrock", "bedrock-converse", input=("text", "image"))
    blocks = body_of(Context(messages=history), seeing)["messages"][2]["content"]
    assert [next(iter(block)) for block in blocks] == ["toolResult", "text", "image"]


def test_a_document_alone_gets_a_caption():
    file = FileContent(data="JVBERi0xLjQK", mime_type="application/pdf", name="a_b.pdf")
    blocks = sent(SONNET.model, UserMessage(content=(file,)))[0]["content"]
    assert {next(iter(block)) for block in blocks} == {"document", "text"}
    assert blocks[0]["document"]["name"] == "a b"


def test_ids_that_restart_in_every_turn_pair_with_their_own():
    history = [HI]
    for text in ("1", "2"):
        history += [
            reply(KIMI.model, call("functions.f:0"), stop=StopReason.TOOL_USE),
            result("functions.f:0", TextContent(text=text)),
        ]
    turns = sent(KIMI.model, *history)
    written = [block["toolResult"] for turn in turns for block in turn["content"] if "toolResult" in block]
    assert [(one["toolUseId"], one["content"][0]["text"]) for one in written] == [
        ("functions.f:0", "1"),
        ("functions.f:0", "2"),
    ]
