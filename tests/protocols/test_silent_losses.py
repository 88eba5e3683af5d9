"""What a request or a reply has beside the conversation is kept, or its loss is reported."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from segue import AssistantMessage, Context, Model, Options, TextContent, UserMessage, prepare, project_reply
from segue.projection.report import ChangeCode, Loss
from segue.protocols.api import decode_request, decode_response, encode_request, encode_response, stream_decoder
from segue.protocols.detection import detect_protocol
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.prepare import convert

HI: list[Any] = [{"role": "user", "content": "hi"}]
TWO_IDS = {"model": "gpt-5.4", "messages": HI, "user": "u1", "safety_identifier": "s1"}


@pytest.mark.parametrize("target", ["anthropic/claude-opus-4-8", "openai/gpt-5.4"])
def test_a_second_name_of_the_user_is_reported_where_it_is_lost(target: str) -> None:
    request = convert(TWO_IDS, source="openai-chat", target=target)
    assert [(change.code, change.loss) for change in request.report.changes] == [
        (ChangeCode.EXTRA_REMOVED, Loss.OPAQUE)
    ]


def test_both_names_of_the_user_reach_a_target_that_has_both() -> None:
    request = convert(TWO_IDS, source="openai-chat", target="openai/gpt-5.4", target_protocol="openai-chat")
    assert (request.body["user"], request.body["safety_identifier"]) == ("u1", "s1")


@pytest.mark.parametrize(
    "names", [{"user": "u1"}, {"safety_identifier": "u1"}, {"user": "u", "safety_identifier": "u"}]
)
def test_one_user_is_an_option_under_either_name(names: Mapping[str, str]) -> None:
    body = {"model": "gpt-5.4", "messages": HI, **names}
    prompt = decode_request(body, protocol="openai-chat")
    assert prompt.options.user_id
    assert encode_request(prompt, protocol="openai-chat") == body


@pytest.mark.parametrize("value", ["x", [1], 3])
def test_a_tool_config_that_is_no_object_is_kept_and_reported(value: object) -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "toolConfig": value}
    assert encode_request(decode_request(body, protocol="bedrock-converse"), protocol="bedrock-converse") == body
    report = convert(body, source="bedrock-converse", target="anthropic/claude-opus-4-8").report
    assert [change.code for change in report.changes] == [ChangeCode.EXTRA_REMOVED]


def _chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def test_a_streamed_function_call_is_written_as_one() -> None:
    decoder = stream_decoder(protocol="openai-chat")
    for frame in (
        _chunk({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}),
        _chunk({"function_call": {"arguments": '{"a":1}'}}),
        _chunk({}, "function_call"),
    ):
        decoder.feed(frame)
    decoder.finish()
    choice = encode_response(decoder.message, protocol="openai-chat")["choices"][0]
    called = {"name": "f", "arguments": '{"a":1}'}
    assert choice["message"] == {"role": "assistant", "content": None, "function_call": called}
    whole = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    assert decode_response(whole, protocol="openai-chat").content == decoder.message.content


def test_a_body_for_venice_is_one_of_openai_although_the_model_is_of_mistral() -> None:
    body = {"model": "mistral-31-24b", "messages": HI, "venice_parameters": {"enable_web_search": "auto"}}
    assert detect_protocol(body) == "openai-chat"


@pytest.mark.parametrize(
    ("fields", "losses"),
    [({}, {Loss.NONE}), ({"content": None}, {Loss.NONE}), ({"content": None, "vendor": 1}, {Loss.NONE, Loss.OPAQUE})],
    ids=["nothing else", "null", "a field of a vendor"],
)
def test_a_system_message_without_content_is_kept_and_its_fields_are_reported(
    fields: Mapping[str, object], losses: set[Loss]
) -> None:
    body = {"model": "gpt-5.4", "messages": [{"role": "system", **fields}, *HI]}
    prompt = decode_request(body, protocol="openai-chat")
    assert encode_request(prompt, protocol="openai-chat")["messages"] == body["messages"]
    converted = convert(body, source="openai-chat", target="anthropic/claude-opus-4-8")
    assert {change.loss for change in converted.report.changes} == losses


PLAIN = Context(
    system_prompt="Be brief.",
    messages=(
        UserMessage.of("hi"),
        AssistantMessage(content=(TextContent(text="Hello"),)),
        UserMessage.of("and?"),
    ),
)


@pytest.mark.parametrize("source", PROTOCOLS)
def test_a_plain_conversation_of_every_protocol_loses_nothing_on_the_way_to_any_other(source: str) -> None:
    models = {name: Model("any", get_protocol(name).provider, name) for name in PROTOCOLS}
    body = prepare(PLAIN, models[source]).body
    for target, model in models.items():
        request = convert(body, source=source, target=model)
        lost = [change for change in request.report.losses if change.path[0] != "options"]  # a limit that one requires
        assert lost == [], (target, request.report.summary())


_CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}
_CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1"}
_CLAUDE = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": "a"}]}
REPLIES: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "log probabilities": (
        "openai-chat",
        {**_CHAT, "choices": [{**_CHOICE, "logprobs": {"content": [{"token": "a", "logprob": -1}]}}]},
        "logprobs",
    ),
    "further answers": ("openai-chat", {**_CHAT, "choices": [_CHOICE, {**_CHOICE, "index": 1}]}, "choices"),
    "a tier": ("openai-chat", {**_CHAT, "service_tier": "flex", "choices": [_CHOICE]}, "service_tier"),
    "a refusal": (
        "openai-chat",
        {**_CHAT, "choices": [{**_CHOICE, "message": {"role": "assistant", "content": None, "refusal": "No."}}]},
        "refusal",
    ),
    "a stop sequence": (
        "anthropic-messages",
        {
            **_CLAUDE,
            "stop_reason": "stop_sequence",
            "stop_sequence": "END",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "stop_sequence",
    ),
}


_SHOWN = {
    "service_tier": (
        *("openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse", "google-interactions"),
        "mistral-chat",
    ),
    "logprobs": ("openai-chat", "openai-responses", "mistral-chat", "google-genai", "ollama-chat", "cohere-chat"),
    "refusal": ("openai-chat", "openai-responses"),
    "choices": ("openai-chat", "mistral-chat", "google-genai"),
}
"""Fields of replies -> the protocols that have a place for them."""


@pytest.mark.parametrize(("protocol", "body", "field"), REPLIES.values(), ids=REPLIES.keys())
def test_what_only_a_reply_of_another_protocol_has_is_reported(
    protocol: str, body: Mapping[str, Any], field: str
) -> None:
    message = decode_response(body, protocol=protocol)
    for client in PROTOCOLS:
        reply = project_reply(message, protocol=client)
        told = " ".join(change.detail for change in reply.report.changes)
        has_place = field in _SHOWN and client in _SHOWN[field]
        assert has_place or client == protocol or field in told, client


_UNKNOWN: Mapping[str, tuple[str, Any, tuple[tuple[Any, ...], ...]]] = {
    "openai-chat": (
        "openai-chat",
        {**_CHAT, "choices": [_CHOICE], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
        ((), ("usage",), ("choices", 0), ("choices", 0, "message")),
    ),
    "anthropic-messages": (
        "anthropic-messages",
        {**_CLAUDE, "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
        ((), ("usage",), ("content", 0)),
    ),
    "google-genai": (
        "google-genai",
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        },
        ((), ("usageMetadata",), ("candidates", 0), ("candidates", 0, "content", "parts", 0)),
    ),
    "bedrock-converse": (
        "bedrock-converse",
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "a"}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        },
        ((), ("usage",)),
    ),
    "cohere-chat": (
        "cohere-chat",
        {
            "id": "c",
            "finish_reason": "COMPLETE",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            "usage": {"tokens": {"input_tokens": 1, "output_tokens": 1}},
        },
        ((), ("usage",), ("usage", "tokens"), ("message",)),
    ),
}


@pytest.mark.parametrize(("protocol", "body", "places"), _UNKNOWN.values(), ids=_UNKNOWN.keys())
def test_a_field_of_a_reply_that_nobody_knows_is_reported(
    protocol: str, body: Any, places: tuple[tuple[Any, ...], ...]
) -> None:
    for place in places:
        given = copy.deepcopy(body)
        at: Any = given
        for key in place:
            at = at[key]
        at["weather_of_the_day"] = {"sun": 7}
        message = decode_response(given, protocol=protocol)
        for client in PROTOCOLS:
            told = " ".join(change.detail for change in project_reply(message, protocol=client).report.changes)
            assert client == protocol or "weather_of_the_day" in told, (place, client)


_CITED: Mapping[str, Any] = {
    "openai-responses": {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "gpt-5.4",
        "output": [
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {
                        "type": "output_text",
                        "text": "Größe: 7 km.",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": "https://a.example",
                                "title": "A",
                                "start_index": 7,
                                "end_index": 11,
                            }
                        ],
                    }
                ],
            }
        ],
    },
    "openai-chat": {
        **_CHAT,
        "choices": [
            {
                **_CHOICE,
                "message": {
                    "role": "assistant",
                    "content": "Größe: 7 km.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {
                                "url": "https://a.example",
                                "title": "A",
                                "start_index": 7,
                                "end_index": 11,
                            },
                        }
                    ],
                },
            }
        ],
    },
    "google-genai": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "Größe: 7 km."}]},
                "finishReason": "STOP",
                "index": 0,
                "groundingMetadata": {
                    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
                    "groundingSupports": [
                        {"segment": {"startIndex": 9, "endIndex": 13, "text": "7 km"}, "groundingChunkIndices": [0]}
                    ],
                },
            }
        ]
    },
    "google-interactions": {
        "id": "i",
        "status": "completed",
        "model": "gemini-2.5-flash",
        "steps": [
            {
                "type": "model_output",
                "content": [
                    {
                        "type": "text",
                        "text": "Größe: 7 km.",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": "https://a.example",
                                "title": "A",
                                "start_index": 9,
                                "end_index": 13,
                            }
                        ],
                    }
                ],
            }
        ],
    },
}
"""The same citation on four wires; two of them count in bytes."""


def _spans(protocol: str, body: Any) -> list[tuple[int, int]]:
    """Find the places of citations, in the units of the wire."""
    found: list[tuple[int, int]] = []
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            names = ("startIndex", "endIndex") if protocol == "google-genai" else ("start_index", "end_index")
            if names[1] in node:
                found.append((node.get(names[0], 0), node[names[1]]))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return sorted(set(found))


@pytest.mark.parametrize("source", _CITED)
@pytest.mark.parametrize("client", _CITED)
def test_a_page_is_cited_for_the_same_characters(source: str, client: str) -> None:
    message = decode_response(_CITED[source], protocol=source)
    shown = encode_response(project_reply(message, protocol=client).message, protocol=client)
    assert _spans(client, shown) == [(9, 13) if client.startswith("google") else (7, 11)]


def test_a_page_is_cited_in_the_second_text_where_its_place_is() -> None:
    blocks = [
        {"type": "text", "text": "One. "},
        {
            "type": "text",
            "text": "Two.",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": "https://a.example",
                    "title": "A",
                    "encrypted_index": "x",
                    "cited_text": "2",
                }
            ],
        },
    ]
    message = decode_response({**_CLAUDE, "content": blocks, "stop_reason": "end_turn"}, protocol="anthropic-messages")
    shown = encode_response(project_reply(message, protocol="openai-chat").message, protocol="openai-chat")
    assert _spans("openai-chat", shown) == [(5, 9)]


def test_a_common_tier_is_not_reported() -> None:
    message = decode_response({**_CHAT, "service_tier": "default", "choices": [_CHOICE]}, protocol="openai-chat")
    assert not project_reply(message, protocol="anthropic-messages").report.changes


_NARROWED = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["a"]}},
    "generationConfig": {"thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": False}},
}


@pytest.mark.parametrize("target", ["google/gemini-2.5-flash", "google/gemini-2.5-pro"])
def test_a_narrowed_choice_and_hidden_thoughts_stay(target: str) -> None:
    request = convert(_NARROWED, source="google-genai", target=target)
    assert {key: request.body[key] for key in ("toolConfig", "generationConfig")} == {
        key: _NARROWED[key] for key in ("toolConfig", "generationConfig")
    }
    elsewhere = convert(_NARROWED, source="google-genai", target="anthropic/claude-sonnet-4-5")
    assert [tool["name"] for tool in elsewhere.body["tools"]] == ["a"]  # type: ignore[index]
    assert elsewhere.report.of(ChangeCode.TOOL_REMOVED)
    assert elsewhere.body["thinking"]["display"] == "omitted"  # type: ignore[index]


def test_an_effort_is_read_where_the_body_names_no_model() -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "outputConfig": {"effort": "low"}}
    request = convert(body, source="bedrock-converse", target="amazon-bedrock/anthropic.claude-opus-5-5")
    assert '"effort":"low"' in request.content.decode()


@pytest.mark.parametrize("provider", ["vllm", "sglang", "llama.cpp", "mine", ""])
@pytest.mark.parametrize("thinking", ["off", 0])
def test_thinking_that_is_off_is_reported_where_a_server_may_think_all_the_same(provider: str, thinking: Any) -> None:
    model = Model("any", provider, "openai-chat")
    request = prepare("Hi", model, options=Options(thinking=thinking))
    assert [(one.code, one.path) for one in request.report.changes] == [
        (ChangeCode.OPTION_REMOVED, ("options", "thinking"))
    ]


def test_thinking_that_is_off_is_no_loss_for_a_model_that_is_known_not_to_think() -> None:
    assert not prepare("Hi", "openai/gpt-4.1", options=Options(thinking="off")).report.changes
