"""Failures of this protocol when a conversation changed model, and what is sent instead. Rows name the threads."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.mistral_chat.endpoints import LARGE, MEDIUM
from protocols.mistral_chat.referee import complaints
from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.projection.policy import Texts
from segue.protocols.api import resolve_endpoint
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

TEXTS = Texts()
HI = UserMessage.of("hi")
HI_WIRE = {"role": "user", "content": "hi"}
TEXT_ONLY = replace(LARGE.model, input=("text",))


def message_given(*pieces, model=LARGE.model) -> AssistantMessage:
    content = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in pieces)
    return AssistantMessage(content=content, protocol=model.protocol, provider=model.provider, model=model.id)


def foreign(*pieces) -> AssistantMessage:
    return message_given(*pieces, model=Model("claude-opus-4-8", "anthropic", "anthropic-messages"))


def result(call_id, *pieces, **fields) -> ToolResultMessage:
    content = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in pieces)
    return ToolResultMessage(tool_call_id=call_id, tool_name="f", content=content, **fields)


def sent(model: Model, *messages: Message) -> list[dict[str, Any]]:
    """Prepare a history, check it with every validator, and return its messages."""
    request = prepare(Context(messages=messages), model)
    endpoint = resolve_endpoint(model)
    assert CODEC.check(request.body, endpoint) == []
    assert complaints(request.body, endpoint) == []
    turns = request.body["messages"]
    assert isinstance(turns, list)
    return turns


CALL = ToolCall(id="abcdef123", name="f")
CALL_WIRE = {"id": "abcdef123", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL_WIRE]}
DONE = {"role": "tool", "tool_call_id": "abcdef123", "name": "f", "content": "ok"}

ROWS: dict[str, tuple[Model, tuple[Message, ...], list[dict[str, Any]]]] = {
    "a user message follows a tool result directly (recorded traffic: answered with 200)": (
        LARGE.model,
        (HI, message_given(CALL), result("abcdef123", "ok"), HI),
        [HI_WIRE, CALLING, DONE, HI_WIRE],
    ),
    "a history that ends with the assistant goes on with the user (rig #1130)": (
        LARGE.model,
        (HI, message_given("yes")),
        [HI_WIRE, {"role": "assistant", "content": "yes"}, {"role": "user", "content": TEXTS.last_turn}],
    ),
    "an empty assistant message is left out (OpenHands #8685, pydantic-ai)": (
        LARGE.model,
        (HI, message_given(""), HI),
        [HI_WIRE, HI_WIRE],
    ),
    "thinking is a chunk and never reasoning_content (qwen-code #3304, crush #1590, litellm #30835)": (
        MEDIUM.model,
        (HI, foreign(ThinkingContent(thinking="hm", thinking_signature="signature"), "yes"), HI),
        [
            HI_WIRE,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "yes"},
                ],
            },
            HI_WIRE,
        ],
    ),
    "a model that does not reason is not shown thinking (strands #1150)": (
        LARGE.model,
        (HI, foreign(ThinkingContent(thinking="hm"), "yes"), HI),
        [HI_WIRE, {"role": "assistant", "content": "yes"}, HI_WIRE],
    ),
    "text beside calls is kept (any-llm, new-api #1182)": (
        LARGE.model,
        (HI, message_given("Let me see.", CALL), result("abcdef123", "ok")),
        [HI_WIRE, {**CALLING, "content": "Let me see."}, DONE],
    ),
    "an image from a tool moves to a user message behind all results (OpenHands #7700)": (
        LARGE.model,
        (HI, message_given(CALL), result("abcdef123", "ok", ImageContent(data="AAAA", mime_type="image/png"))),
        [
            HI_WIRE,
            CALLING,
            DONE,
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": TEXTS.tool_media},
                    {"type": "image_url", "image_url": "data:image/png;base64,AAAA"},
                ],
            },
        ],
    ),
    "a call without a result gets one (ellmer #459)": (
        LARGE.model,
        (HI, message_given(CALL)),
        [HI_WIRE, CALLING, {**DONE, "content": TEXTS.missing_result}],
    ),
}


@pytest.mark.parametrize(("model", "given", "wire"), ROWS.values(), ids=ROWS.keys())
def test_what_is_sent_instead(model, given, wire):
    assert sent(model, *given) == wire


def test_sixty_ids_that_begin_alike_are_sixty_ids_of_nine_characters():
    # code 3280: opencode #1680, gptel #1203, omlx #1997, langchain #24668
    calls = [ToolCall(id=f"tooluse_{number:020d}", name="f") for number in range(60)]
    turns = sent(LARGE.model, HI, foreign(*calls), *(result(call.id, "ok") for call in calls))
    ids = [call["id"] for call in turns[1]["tool_calls"]]
    assert len(set(ids)) == 60
    assert all(len(name) == 9 and name.isalnum() and name.isascii() for name in ids)
    assert [turn["tool_call_id"] for turn in turns[2:]] == ids


def test_instructions_in_mid_conversation_keep_their_text_and_lose_their_role():
    # "Unexpected role 'system' after role 'assistant'" (spring-ai #2380)
    turns = sent(LARGE.model, HI, message_given("yes"), SystemMessage.of("Be brief."), HI)
    assert [turn["role"] for turn in turns if turn["role"] == "system"] == []
    assert "Be brief." in str(turns[2:])


def test_images_become_placeholders_where_the_model_does_not_support_them():
    # "unknown variant `image_url`, expected `text`" and its like (kimi-code #2669)
    turns = sent(TEXT_ONLY, UserMessage.of("look", ImageContent(data="AAAA", mime_type="image/png")))
    assert "image_url" not in str(turns)
