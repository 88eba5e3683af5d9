"""What the replies of several wires have is shown to a client of another one, or reported."""

from __future__ import annotations

from typing import Any, Final

import pytest

from segue import decode_response, encode_response, project_reply
from segue.calls.replies import stream_encoder
from segue.conversation.events import TextStart
from segue.conversation.replayed import message_events
from segue.projection.replies.projector import ReplyProjector

CHAT: Final[dict[str, Any]] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4.1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
}
CLAUDE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 100, "output_tokens": 50},
}
TIERED: Final = {**CHAT, "service_tier": "priority"}
HEARD: Final = {**CHAT, "usage": {**CHAT["usage"], "prompt_tokens_details": {"audio_tokens": 25}}}
STOPPED: Final = {**CLAUDE, "stop_reason": "stop_sequence", "stop_sequence": "END"}
REFUSED: Final = {
    **CHAT,
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": None, "refusal": "I cannot."}, "finish_reason": "stop"}
    ],
}


def shown(body: dict[str, Any], source: str, client: str) -> tuple[dict[str, Any], str]:
    reply = project_reply(decode_response(body, protocol=source), protocol=client)
    told = " ".join(change.detail for change in reply.report.changes)
    return encode_response(reply.message, protocol=client), told


@pytest.mark.parametrize("client", ["openai-responses", "anthropic-messages", "bedrock-converse"])
def test_the_tier_of_a_reply_is_shown(client: str):
    body, told = shown(TIERED, "openai-chat", client)
    held = {**body, **body["usage"]}
    assert (held.get("service_tier") or held["serviceTier"]["type"], told) == ("priority", "")


def test_a_tier_is_reported_where_a_wire_has_none():
    assert 'service_tier: "priority"' in shown(TIERED, "openai-chat", "google-genai")[1]


def test_the_common_tier_has_the_name_of_the_wire():
    assert shown({**CHAT, "service_tier": "default"}, "openai-chat", "anthropic-messages")[0]["usage"][
        "service_tier"
    ] == ("standard")


def test_tokens_of_audio_are_shown_or_reported():
    body, told = shown(HEARD, "openai-chat", "google-genai")
    details = body["usageMetadata"]["promptTokensDetails"]
    assert (details, told) == (
        [{"modality": "AUDIO", "tokenCount": 25}, {"modality": "TEXT", "tokenCount": 75}],
        "",
    )
    assert shown(HEARD, "openai-chat", "anthropic-messages")[1] == "audio_tokens: 25"


@pytest.mark.parametrize(
    ("client", "field", "value"),
    [("bedrock-converse", "stopReason", "stop_sequence"), ("cohere-chat", "finish_reason", "STOP_SEQUENCE")],
)
def test_the_end_at_a_stop_text_is_shown(client: str, field: str, value: str):
    body, told = shown(STOPPED, "anthropic-messages", client)
    assert body[field] == value
    assert told == 'stop_sequence: "END"'  # which text it was


def test_a_refusal_stays_one():
    body, told = shown(REFUSED, "openai-chat", "openai-responses")
    assert [part["type"] for item in body["output"] for part in item["content"]] == ["refusal"]
    assert told == ""


def test_every_answer_is_shown_where_the_wire_has_several():
    second = {"index": 1, "message": {"role": "assistant", "content": "Second."}, "finish_reason": "length"}
    body, told = shown({**CHAT, "choices": [*CHAT["choices"], second]}, "openai-chat", "google-genai")
    assert [one["content"]["parts"][0]["text"] for one in body["candidates"]] == ["Hello.", "Second."]
    assert (body["candidates"][1]["finishReason"], body["candidates"][1]["index"], told) == ("MAX_TOKENS", 1, "")
    assert "choices" in shown({**CHAT, "choices": [*CHAT["choices"], second]}, "openai-chat", "anthropic-messages")[1]


SECOND: Final = {"index": 1, "message": {"role": "assistant", "content": "Second."}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("body", "source", "client", "sign"),
    [
        (TIERED, "openai-chat", "anthropic-messages", "'service_tier': 'priority'"),
        (TIERED, "openai-chat", "bedrock-converse", "{'type': 'priority'}"),
        (HEARD, "openai-chat", "google-genai", "{'modality': 'AUDIO', 'tokenCount': 25}"),
        (STOPPED, "anthropic-messages", "bedrock-converse", "'stop_sequence'"),
        (REFUSED, "openai-chat", "openai-responses", "'refusal': 'I cannot.'"),
        ({**CHAT, "choices": [*CHAT["choices"], SECOND]}, "openai-chat", "google-genai", "'Second.'"),
    ],
    ids=["tier of Claude", "tier of Bedrock", "audio tokens", "stop text", "refusal", "second answer"],
)
def test_a_stream_shows_the_same(body: dict[str, Any], source: str, client: str, sign: str):
    message = decode_response(body, protocol=source)
    projector, encoder = ReplyProjector(protocol=client, source=message), stream_encoder(protocol=client)
    events = [made for event in message_events(message) for made in projector.feed(event)]
    sent = [payload for event in (*events, *projector.finish()) for payload in encoder.feed(event)]
    assert sign in str(sent)


def test_a_refusal_begins_as_one_in_a_stream():
    projector = ReplyProjector(protocol="openai-responses")
    [begun] = projector.feed(TextStart(index=0, extra={"openai-chat": {"field": "refusal"}}))
    assert begun == TextStart(index=0, extra={"openai-responses": {"field": "refusal"}})
