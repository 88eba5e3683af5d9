"""Thinking that a gateway returns as redacted, with its text in the signature."""

from __future__ import annotations

import base64
import json

import pytest

from segue.conversation.content import TextContent, ThinkingContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.models.model import Model
from segue.projection.projector import project
from segue.protocols.api import check, decode_request, decode_response, encode_request, encode_response, stream_decoder
from segue.protocols.kit.readable_signatures import read_wrapped
from segue.requests.prepare import prepare

ROUTER = Model("moonshotai/kimi-k3", "openrouter", "anthropic-messages", reasoning=True)
CLAUDE = Model("claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True)
GPT = Model("gpt-5", "openai", "openai-responses", reasoning=True)
DEEPSEEK = Model("deepseek-reasoner", "deepseek", "openai-chat", reasoning=True)


def wrap(item: object, *, encode=base64.b64encode) -> str:
    return "openrouter.reasoning:" + encode(json.dumps(item).encode()).decode()


TEXT = wrap({"type": "reasoning.text", "text": "Let me see.", "signature": "EpME"})
SECRET = wrap({"type": "reasoning.encrypted", "data": "xyz"})

WRAPPERS = {
    "a text": (TEXT, "Let me see."),
    "a summary": (wrap({"type": "reasoning.summary", "summary": "Short."}), "Short."),
    "without padding": (TEXT.rstrip("="), "Let me see."),
    "the alphabet of URLs": (wrap({"text": "\u00fc?\u00ff>"}, encode=base64.urlsafe_b64encode), "\u00fc?\u00ff>"),
    "encrypted data": (SECRET, None),
    "blank text": (wrap({"text": " "}), None),
    "no object": (wrap([1]), None),
    "no JSON": ("openrouter.reasoning:AAAA", None),
    "no base64": ("openrouter.reasoning:!", None),
    "nothing": ("openrouter.reasoning:", None),
    "another signature": ("EpMECmUI", None),
}


@pytest.mark.parametrize(("signature", "text"), WRAPPERS.values(), ids=WRAPPERS.keys())
def test_the_text_of_a_wrapper_is_read(signature, text):
    assert read_wrapped(signature) == text
    block = {"type": "redacted_thinking", "data": signature}
    reply = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block, SAY]}
    (thinking, _) = decode_response(reply, protocol="anthropic-messages").content
    assert thinking == ThinkingContent(thinking=text or "", thinking_signature=signature, redacted=text is None)


SAY = {"type": "text", "text": "so"}
OPEN = {"type": "thinking", "thinking": "Let me see.", "signature": ""}
BLOCKS = {
    "text": [{"type": "redacted_thinking", "data": TEXT}, SAY],
    "after the thinking itself": [OPEN, SAY, {"type": "redacted_thinking", "data": TEXT}, SAY],
    "encrypted": [{"type": "redacted_thinking", "data": SECRET}, SAY],
    "with a mark": [{"type": "redacted_thinking", "data": TEXT, "cache_control": {"type": "ephemeral"}}, SAY],
    "with other keys": [{"type": "redacted_thinking", "data": TEXT, "index": 0}, SAY],
    "as a signature of thinking": [{"type": "thinking", "thinking": "Let me see.", "signature": TEXT}, SAY],
}


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS.keys())
def test_bodies_and_replies_survive_both_directions(blocks):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": blocks}]
    body = {"model": ROUTER.id, "max_tokens": 9, "messages": [*turns, {"role": "user", "content": "and"}]}
    prompt = decode_request(body, protocol="anthropic-messages", model=ROUTER)
    assert encode_request(prompt, protocol="anthropic-messages", model=ROUTER) == body
    usage = {"input_tokens": 1, "output_tokens": 1}
    reply = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": ROUTER.id,
        "content": blocks,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    assert (
        encode_response(decode_response(reply, protocol="anthropic-messages"), protocol="anthropic-messages") == reply
    )


def test_a_streamed_wrapper_is_read_like_a_whole_one():
    decoder = stream_decoder(protocol="anthropic-messages", model=ROUTER)
    start = {"id": "m", "type": "message", "role": "assistant", "model": ROUTER.id, "content": [], "usage": {}}
    frames: list[dict[str, object]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(BLOCKS["text"]):
        frames += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    frames += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    whole = decode_response(
        {**start, "content": BLOCKS["text"], "stop_reason": "end_turn"}, protocol="anthropic-messages"
    )
    assert decoder.message.content == whole.content
    assert "Let me see." in [getattr(event, "delta", None) for event in events]


def turn(*content: ThinkingContent | TextContent) -> Context:
    reply = AssistantMessage(content=content, protocol=ROUTER.protocol, provider=ROUTER.provider, model=ROUTER.id)
    return Context(messages=(UserMessage.of("hi"), reply, UserMessage.of("and")))


READ = ThinkingContent(thinking="Let me see.", thinking_signature=TEXT)
STORED = ThinkingContent(thinking="", thinking_signature=TEXT, redacted=True)
ANSWER = TextContent(text="so")


@pytest.mark.parametrize("thinking", [READ, STORED], ids=["read", "stored as redacted"])
def test_other_models_get_the_text_and_the_same_model_gets_the_block(thinking):
    context = turn(thinking, ANSWER)
    assert project(context, ROUTER).context is context
    for model in (CLAUDE, GPT):
        sent = project(context, model)
        assert sent.context.messages[1].content == (TextContent(text="Let me see."), ANSWER)
        assert [change.code for change in sent.report.changes] == ["thinking_as_text"]
    opened = project(context, DEEPSEEK).context.messages[1].content
    assert opened == (ThinkingContent(thinking="Let me see."), ANSWER)
    for model in (ROUTER, CLAUDE, GPT, DEEPSEEK):
        assert check(prepare(context, model).body, protocol=model.protocol, model=model) == []


def test_a_repetition_of_the_thinking_is_not_sent_twice():
    first = ThinkingContent(thinking="Let me see.", thinking_signature="EpME")
    sent = project(turn(first, ANSWER, READ), GPT).context.messages[1].content
    assert sent == (TextContent(text="Let me see."), ANSWER)
