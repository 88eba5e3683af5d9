"""Compactions that a provider made: kept verbatim for the model that wrote them, replaced or reported for others."""

from __future__ import annotations

from typing import Final

import pytest

from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.conversation.stored import dump, load
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss
from segue.protocols.api import decode_request, decode_response, encode_request
from segue.protocols.registry import all_protocols
from segue.requests.prepare import prepare

GPT: Final = Model("gpt-5", "openai", "openai-responses", reasoning=True)
CLAUDE: Final = Model("claude-opus-4-6", "anthropic", "anthropic-messages", reasoning=True)

ENCRYPTED: Final = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABp4W"}
READABLE: Final[dict[str, object]] = {
    "type": "compaction",
    "content": "The user wants tea.",
    "encrypted_content": "z",
    "signature": "s",
}
FAILED: Final[dict[str, object]] = {"type": "compaction", "content": None}

OPENAI_REPLY: Final = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5",
    "output": [
        ENCRYPTED,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Tea it is.", "annotations": []}],
        },
    ],
    "usage": {"input_tokens": 847, "output_tokens": 3, "total_tokens": 850},
}


def claude_reply(block: dict[str, object]) -> dict[str, object]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [block, {"type": "text", "text": "Tea it is."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 847, "output_tokens": 3},
    }


def after(reply: AssistantMessage) -> Context:
    """A stored conversation that goes on after the compaction."""
    return load(dump(Context(messages=(UserMessage.of("What shall we drink?"), reply, UserMessage.of("Sure?")))))


ENCRYPTED_HISTORY: Final = after(decode_response(OPENAI_REPLY, model=GPT))
READABLE_HISTORY: Final = after(decode_response(claude_reply(READABLE), model=CLAUDE))
FAILED_HISTORY: Final = after(decode_response(claude_reply(FAILED), model=CLAUDE))

OTHERS: Final = [record.example for record in all_protocols()]
each_other = pytest.mark.parametrize("model", OTHERS, ids=lambda model: model.protocol)


def test_the_maker_of_an_encrypted_compaction_gets_it_verbatim():
    request = prepare(ENCRYPTED_HISTORY, GPT)
    assert request.report.lossless
    assert ENCRYPTED in request.body["input"]


@pytest.mark.parametrize("block", [READABLE, FAILED], ids=["a summary", "a failure"])
def test_the_maker_of_a_readable_compaction_gets_it_verbatim(block: dict[str, object]):
    request = prepare(after(decode_response(claude_reply(block), model=CLAUDE)), CLAUDE)
    assert request.report.lossless
    assert block in request.body["messages"][1]["content"]


@each_other
def test_another_model_gets_a_readable_compaction_as_text(model: Model):
    request = prepare(READABLE_HISTORY, model)
    assert b"The user wants tea." in request.content
    assert b'"signature":"s"' not in request.content
    changes = {change.code: change for change in request.report.changes}
    assert changes[ChangeCode.NATIVE_REPLACED].path == ("messages", 1, "content", 0)
    assert changes[ChangeCode.NATIVE_REPLACED].loss == Loss.OPAQUE


@each_other
@pytest.mark.parametrize("context", [ENCRYPTED_HISTORY, FAILED_HISTORY], ids=["encrypted", "failed"])
def test_for_another_model_a_compaction_that_cannot_be_read_is_lost_content(model: Model, context: Context):
    request = prepare(context, model)
    assert b"compaction" not in request.content
    assert b"gAAAAABp4W" not in request.content
    assert b"Tea it is." in request.content
    changes = {change.code: change for change in request.report.changes}
    assert changes[ChangeCode.NATIVE_DROPPED].path == ("messages", 1, "content", 0)
    assert changes[ChangeCode.NATIVE_DROPPED].loss == Loss.CONTENT


def test_a_request_with_a_compaction_is_read_and_written_unchanged():
    openai = {"model": "gpt-5", "input": [ENCRYPTED, {"role": "user", "content": "Sure?"}]}
    assert encode_request(decode_request(openai, protocol="openai-responses"), protocol="openai-responses") == openai
    anthropic = {
        "model": "claude-opus-4-6",
        "max_tokens": 10,
        "messages": [{"role": "assistant", "content": [READABLE]}, {"role": "user", "content": "Sure?"}],
    }
    prompt = decode_request(anthropic, protocol="anthropic-messages")
    assert encode_request(prompt, protocol="anthropic-messages") == anthropic


def test_the_history_before_a_compaction_stays_and_serves_others():
    context = Context(messages=(UserMessage.of("I want green tea."), *ENCRYPTED_HISTORY.messages))
    for model in OTHERS:
        assert b"I want green tea." in prepare(context, model).content
