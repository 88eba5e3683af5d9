"""What the replies of several wires have is shown to a client of another one, or reported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import pytest

from segue import (
    AssistantMessage,
    TextContent,
    Usage,
    decode_response,
    encode_response,
    project_reply,
    stream_decoder,
)
from segue.calls.replies import stream_encoder
from segue.conversation.events import DoneEvent, TextStart
from segue.conversation.replayed import message_events
from segue.projection.replies import shared
from segue.projection.replies.projector import ReplyProjector
from segue.protocols.registry import all_protocols
from segue.protocols.shared_replies import HOUSEKEEPING, REPLY_FIELDS, ReplyField

CODECS: Final = {codec.name: codec for codec in all_protocols()}

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
    assert 'service_tier: "priority"' in shown(TIERED, "openai-chat", "cohere-chat")[1]


def test_the_common_tier_has_the_name_of_the_wire():
    assert shown({**CHAT, "service_tier": "default"}, "openai-chat", "anthropic-messages")[0]["usage"][
        "service_tier"
    ] == ("standard")


def test_tokens_of_audio_are_shown_or_reported():
    body, told = shown(HEARD, "openai-chat", "google-genai")
    details = body["usageMetadata"]["promptTokensDetails"]
    assert (details, told) == (
        [{"modality": "TEXT", "tokenCount": 75}, {"modality": "AUDIO", "tokenCount": 25}],
        "",
    )
    assert shown(HEARD, "openai-chat", "anthropic-messages")[1] == 'input_modalities: {"audio": 25}'


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


PAGE: Final = {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5}


def cited(*places: tuple[int, int]) -> dict[str, Any]:
    """Give a reply of Chat that cites a page for some characters of its text."""
    notes = [
        {"type": "url_citation", "url_citation": {**PAGE, "start_index": start, "end_index": end}}
        for start, end in places
    ]
    message = {"role": "assistant", "content": "Hello.", "annotations": notes}
    return {**CHAT, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.mark.parametrize(
    ("client", "places", "told"),
    [
        ("bedrock-converse", ((0, 5),), "places of cited pages"),  # it cites for the whole text
        ("bedrock-converse", ((0, 6),), ""),
        ("openai-responses", ((0, 5), (5, 6)), ""),
        ("google-genai", ((0, 5),), ""),
        ("google-interactions", ((0, 5),), ""),
    ],
)
def test_a_place_that_the_wire_cannot_cite_for_is_reported(client: str, places: Any, told: str):
    assert shown(cited(*places), "openai-chat", client)[1] == told


def test_a_place_in_an_earlier_text_is_reported_where_texts_cite_by_themselves():
    parts = [{"text": "One. "}, {"executableCode": {"language": "PYTHON", "code": "1"}}, {"text": "Two."}]
    for start, told in ((0, "places of cited pages"), (5, "")):
        segment = {"startIndex": start, "endIndex": start + 3}
        grounding = {
            "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
        }
        candidate = {
            "content": {"role": "model", "parts": parts},
            "finishReason": "STOP",
            "groundingMetadata": grounding,
        }
        message = decode_response({"candidates": [candidate]}, protocol="google-genai")
        details = [change.detail for change in project_reply(message, protocol="openai-responses").report.changes]
        assert ("places of cited pages" in details) is bool(told)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_reply_that_is_not_finished_is_none_elsewhere(status: str):
    google = {"id": "i", "status": status, "model": "m", "steps": []}
    body, told = shown(google, "google-interactions", "openai-responses")
    assert (body["status"], body["error"], told) == (status, None, "")
    assert shown(body, "openai-responses", "google-interactions")[0]["status"] == status
    assert f'stop_reason: "{status}"' in shown(google, "google-interactions", "openai-chat")[1]


def test_a_call_that_could_not_be_read_ends_a_reply_of_google():
    said = {"message": {"role": "assistant", "content": [{"text": "Hello."}]}}
    bedrock = {"output": said, "stopReason": "malformed_tool_use"}
    body, told = shown(bedrock, "bedrock-converse", "google-genai")
    assert (body["candidates"][0]["finishReason"], told) == ("MALFORMED_FUNCTION_CALL", "")


def test_tokens_of_tools_and_texts_are_counted_on_googles_other_wire():
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 22, "toolUsePromptTokenCount": 7}
    google = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}], "usageMetadata": counts}
    body, told = shown(google, "google-genai", "google-interactions")
    assert (body["usage"]["total_tool_use_tokens"], told) == (7, "")
    assert shown(body, "google-interactions", "google-genai")[0]["usageMetadata"]["toolUsePromptTokenCount"] == 7
    assert shown(google, "google-genai", "openai-chat")[1] == "tool_tokens: 7"


def test_tokens_of_a_prediction_are_counted_at_mistral():
    details = {"accepted_prediction_tokens": 2, "rejected_prediction_tokens": 1}
    body, told = shown(
        {**CHAT, "usage": {**CHAT["usage"], "completion_tokens_details": details}}, "openai-chat", "mistral-chat"
    )
    assert (body["usage"]["completion_tokens_details"], told) == (details, "")


# -- the law -----------------------------------------------------------------------------------------------------------

TOKENS: Final = [{"token": "Hi", "logprob": -0.5, "alternatives": [{"token": "Ho", "logprob": -1.5}]}]
NEUTRAL: Final[Mapping[str, tuple[object, ...]]] = {
    "service_tier": ("priority", "fast", "default"),
    "metadata": ({"team": "a"},),
    "moderation": ({"input": {"type": "moderation_result", "model": "m", "flagged": True}},),
    "input_transformations": ([{"at": "x", "reason": "prefix_mismatch"}],),
    "input_modalities": ({"audio": 4}, {"image": 3}, {"text": 6, "audio": 4}),
    "output_modalities": ({"audio": 2},),
    "tool_tokens": (7,),
    "tool_modalities": ({"text": 7, "image": 2},),
    "system_fingerprint": ("fp_1",),
    "searches": (2,),
    "cache_writes": ({"1h": 3},),
    "logprobs": (TOKENS,),
    "cached_modalities": ({"audio": 3},),
    "stop_sequence": ("END",),
    "stop_details": ({"type": "refusal", "category": "cyber", "explanation": "No."},),
    "context_management": ({"applied_edits": [{"type": "clear_tool_uses_20250919"}]},),
    "inference_geo": ("us",),
    "fetches": (2,),
    "image_tokens": ({"input_tokens": 7, "output_tokens": 9, "total_tokens": 16},),
    "cache_diagnostics": ({"type": "cache_miss", "reason": "prefix_changed", "cache_missed_tokens": 9},),
    "guardrail_trace": ({"guardrail": {"actionReason": "blocked"}},),
    "performance": ({"latency": "optimized"},),
    "safety_ratings": ([{"category": "HARM_CATEGORY_HARASSMENT", "probability": "MEDIUM"}],),
    "prompt_feedback": ({"safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}]},),
    "finish_message": ("It was recited.",),
    "searched_for": (["bears of Bern"],),
    "average_logprobs": (-0.5,),
    "recited_sources": ({"citationSources": [{"uri": "https://example.com", "license": "mit"}]},),
    "grounding": ({"groundingChunks": [{"retrievedContext": {"title": "Handbook", "text": "7 km"}}]},),
    "fetched_pages": ({"urlMetadata": [{"retrievedUrl": "https://example.com"}]},),
    "traffic_type": ("PROVISIONED_THROUGHPUT",),
    "predicted_tokens": (4,),
    "mispredicted_tokens": (1,),
    "content_filters": ({"hate": {"filtered": False, "severity": "low"}},),
    "prompt_filters": ([{"prompt_index": 0, "content_filter_results": {}}],),
}
COUNTED: Final = Usage(input=10, output=9, cache_write=5, total_tokens=24)


def body_at(body: Any, path: str, value: object = None) -> Any:
    """Return the value at a path of a body; set it if one is given. A path of a text begins at the only one."""
    keys = path.split(".")
    if keys[0] == "text":
        body, keys = body["output"][0]["content"][0], keys[1:]
    for key in keys[:-1]:
        body = body[int(key)] if key.isdigit() else body.setdefault(key, {}) if value is not None else body.get(key, {})
    if value is not None:
        held = body.get(keys[-1])
        body[keys[-1]] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
    return body.get(keys[-1])


def reply_cases() -> Iterator[tuple[ReplyField, str, str, object]]:
    for row in REPLY_FIELDS:
        for source in row.places:
            for client in CODECS:
                for neutral in NEUTRAL[row.name]:
                    yield row, source, client, neutral


def comparable(neutral: object) -> object:
    """Return a value without the parts that not every wire has: bytes, alternatives at Cohere, text tokens."""
    if isinstance(neutral, dict):
        return {key: value for key, value in cast("dict[str, object]", neutral).items() if key != "text"}
    if not isinstance(neutral, list) or "token" not in neutral[0]:
        return neutral
    return [(one["token"], one["logprob"]) for one in cast("list[dict[str, object]]", neutral)]


def is_lost(row: ReplyField, source: str, client: str, neutral: object, *, streamed: bool) -> bool:
    """Whether a field of a reply is neither shown with the same meaning nor reported."""
    plain = AssistantMessage(content=(TextContent(text="Hi."),), protocol=source, model="m", usage=COUNTED)
    body = json.loads(json.dumps(encode_response(plain, protocol=source)))
    place = next((place for place in row.places[source] if place.write(neutral) is not None), None)
    if place is None:
        return False
    body_at(body, place.path, place.write(neutral))
    given = place.read(body_at(body, place.path))
    message = decode_response(body, protocol=source)
    if streamed:
        projector, encoder = ReplyProjector(protocol=client, source=message), stream_encoder(protocol=client)
        events = [made for event in message_events(message) for made in projector.feed(event)]
        decoder, report = stream_decoder(protocol=client), projector.report
        frames = [frame for event in (*events, *projector.finish()) for frame in encoder.feed(event)]
        read = [event for frame in frames for event in decoder.feed(frame)]
        done = [event for event in (*read, *decoder.finish()) if isinstance(event, DoneEvent)]
        shown_body: Any = encode_response(done[-1].message, protocol=client)
    else:
        reply = project_reply(message, protocol=client)
        report, shown_body = reply.report, encode_response(reply.message, protocol=client)
    for own in row.places.get(client, ()):
        held = body_at(shown_body, own.path)
        if held is not None and comparable(own.read(held)) == comparable(given):
            return False
    names = {row.name, *place.path.split(".")}
    is_said = given == "default" or row.name in HOUSEKEEPING  # they say nothing of the answer
    return not is_said and not any(name in change.detail for change in report.changes for name in names)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("row", REPLY_FIELDS, ids=lambda row: row.name)
def test_a_shared_field_of_a_reply_is_shown_or_reported(row: ReplyField, streamed: bool):
    lost = [
        (source, client, neutral)
        for case, source, client, neutral in reply_cases()
        if case is row and CODECS[client].stream_encoder and CODECS[source].stream_encoder
        if is_lost(row, source, client, neutral, streamed=streamed)
    ]
    assert lost == []


def test_the_law_finds_a_field_of_a_reply_that_is_lost(monkeypatch: pytest.MonkeyPatch):
    row = next(row for row in REPLY_FIELDS if row.name == "searches")
    assert not is_lost(row, "anthropic-messages", "openai-responses", 2, streamed=False)
    monkeypatch.setattr(shared, "REPLY_FIELDS", ())
    monkeypatch.setattr(shared, "places_of", lambda _: ())
    assert is_lost(row, "anthropic-messages", "openai-responses", 2, streamed=False)


def test_a_client_of_the_same_protocol_keeps_what_another_model_reported():
    body = {**TIERED, "choices": [*CHAT["choices"], SECOND]}
    message = decode_response(body, protocol="openai-chat", model="groq/llama-3.3-70b-versatile")
    reply = project_reply(message, protocol="openai-chat", model="openai/gpt-4.1")
    shown_body = encode_response(reply.message, protocol="openai-chat")
    assert (shown_body["service_tier"], len(shown_body["choices"])) == ("priority", 2)


def test_log_probabilities_of_every_chunk_are_kept():
    decoder = stream_decoder(protocol="google-genai")
    for text, ends in (("Hi", {}), (".", {"finishReason": "STOP"})):
        entry = {"chosenCandidates": [{"token": text, "logProbability": -0.5}]}
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "logprobsResult": entry, **ends}
        decoder.feed({"candidates": [candidate]})
    [done] = [event for event in decoder.finish() if isinstance(event, DoneEvent)]
    shown_body: Any = encode_response(
        project_reply(done.message, protocol="openai-chat").message, protocol="openai-chat"
    )
    assert [one["token"] for one in shown_body["choices"][0]["logprobs"]["content"]] == ["Hi", "."]
