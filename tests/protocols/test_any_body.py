"""Random bodies: any JSON is checked, read and written back unchanged, or refused with an error that names the place.

A folder of this package has the strategies of its protocol in `any_body.py`: bodies, replies, frames of a stream, and
the endpoints they are sent to.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_testing import scaled_examples
from protocols.any_bodies import (
    assert_checked,
    assert_reply_comes_back,
    assert_request_comes_back,
    assert_stream_ends_once,
)
from segue.conversation.replayed import message_events
from segue.errors import DecodeError
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.testing.stream_laws import decode_frames, encode_events

HERE = Path(__file__).parent
FOLDERS = {name: package.rpartition(".")[2] for name, package in PROTOCOLS.folders.items()}
NAMES = [name for name, folder in FOLDERS.items() if (HERE / folder / "any_body.py").exists()]


def _draw(name: str, data: st.DataObject, kind: str) -> tuple[Any, Any]:
    """Draw a body of a kind, and the endpoint that it is sent to."""
    given = import_module(f"protocols.{FOLDERS[name]}.any_body")
    strategy = st.lists(given.FRAME, max_size=6) if kind == "FRAME" else getattr(given, kind)
    return data.draw(strategy), data.draw(st.sampled_from(given.ENDPOINTS))


@scaled_examples(4)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_body_is_checked(name, data):
    assert_checked(get_protocol(name), *_draw(name, data, "BODY"))


@scaled_examples(7)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_body_that_can_be_read_comes_out_as_it_was(name, data):
    assert_request_comes_back(get_protocol(name), *_draw(name, data, "BODY"))


@scaled_examples(5)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_reply_that_can_be_read_comes_out_as_it_was(name, data):
    assert_reply_comes_back(get_protocol(name), *_draw(name, data, "REPLY"))


@scaled_examples(4)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_stream_ends_once(name, data):
    assert_stream_ends_once(get_protocol(name), *_draw(name, data, "FRAME"))


def test_a_content_where_a_step_belongs_comes_out_as_it_was():
    from protocols.google_interactions.endpoints import NEWER

    assert_reply_comes_back(get_protocol("google-interactions"), {"steps": [{"type": "text"}]}, NEWER)


def test_a_broken_call_whose_arguments_are_a_number_comes_out_as_it_was():
    from protocols.openai_responses.bodies import endpoint

    body = {"output": [{"type": "function_call", "arguments": 0}]}
    assert_reply_comes_back(get_protocol("openai-responses"), body, endpoint())


REQUESTS: dict[str, tuple[str, Any]] = {
    "a block of content that has calls": (
        "cohere-chat",
        {"messages": [{"role": "assistant", "content": [{"tool_calls": [{"id": "a"}]}]}]},
    ),
    "a chunk of content that has calls": (
        "mistral-chat",
        {"messages": [{"role": "assistant", "content": [{"tool_calls": [{"id": "a"}]}, {"type": "odd"}]}]},
    ),
    "a chunk of content that has a role": (
        "mistral-chat",
        {"messages": [{"role": "assistant", "content": [{"role": "user", "content": "a"}, {"type": "odd"}]}]},
    ),
    "a step of the user among contents": (
        "google-interactions",
        {"input": [{"type": "user_input", "content": [{"type": "user_input", "content": []}]}]},
    ),
    "a content of an unknown type in an output": (
        "google-interactions",
        {"input": [{"type": "model_output", "content": [{"type": "odd"}, {"type": "text", "text": "a"}], "b": 1}]},
    ),
    "an item among the parts of a message": (
        "openai-responses",
        {"input": [{"role": "user", "content": [{"type": "message", "role": "assistant"}], "a": 1}]},
    ),
    "an item among the parts of instructions": (
        "openai-responses",
        {
            "input": [
                {"role": "user", "content": "a"},
                {"role": "system", "content": [{"type": "function_call_output"}]},
            ]
        },
    ),
    "a tool choice whose type is a list": (
        "openai-chat",
        {"messages": [{"role": "user", "content": "a"}], "tool_choice": {"type": []}},
    ),
    "a second result of a call, without the name of the tool": (
        "google-genai",
        {
            "contents": [
                {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": "f", "response": {}}},
                        {"functionResponse": {"id": "a", "response": {}}},
                    ],
                },
            ]
        },
    ),
    "a result of two calls with one id, without the name of the tool": (
        "google-genai",
        {
            "contents": [
                {
                    "role": "model",
                    "parts": [
                        {"functionCall": {"id": "a", "name": "f", "args": {}}},
                        {"functionCall": {"id": "a", "name": "g", "args": {}}},
                    ],
                },
                {"role": "user", "parts": [{"functionResponse": {"id": "a", "response": {}}}]},
            ]
        },
    ),
}


@pytest.mark.parametrize(("name", "body"), REQUESTS.values(), ids=REQUESTS.keys())
def test_a_value_that_belongs_elsewhere_comes_out_where_it_was(name, body):
    codec = get_protocol(name)
    endpoint = resolve_endpoint(codec.example)
    assert codec.encode_request(codec.decode_request(body, endpoint), endpoint) == body


def test_a_message_without_content_is_refused_with_its_path():
    codec = get_protocol("vscode-lm")
    with pytest.raises(DecodeError, match="expected an array") as raised:
        codec.decode_request({"messages": [{"role": "assistant"}]}, resolve_endpoint(codec.example))
    assert raised.value.path == ("messages", 0, "content")


STREAMS: dict[str, tuple[str, list[Any]]] = {
    "a message beside a delta": (
        "mistral-chat",
        [
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {"tool_calls": [{"id": "abcdef125", "function": {"name": "f", "arguments": "{}"}}]},
                        "finish_reason": "tool_calls",
                        "message": {"role": "assistant"},
                    }
                ]
            }
        ],
    ),
    "a message in the end": (
        "cohere-chat",
        [
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "a"}}}},
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "message": 9.0}, "message": []},
        ],
    ),
    "a delta beside the choices": (
        "openai-chat",
        [{"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "delta": {"content": "b"}}],
    ),
    "a content of an unknown type in an output": (
        "google-interactions",
        [
            {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "a"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "odd", "text": "b"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "c"}},
            {"event_type": "interaction.completed", "interaction": {"status": "completed"}},
        ],
    ),
}


@pytest.mark.parametrize(("name", "frames"), STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_equals_the_whole_reply_that_is_written_of_it(name, frames):
    codec = get_protocol(name)
    endpoint = resolve_endpoint(codec.example)
    message = assert_stream_ends_once(codec, frames, endpoint)
    decode_frames(codec, encode_events(codec, decode_frames(codec, frames)[0]))
    whole = codec.decode_response(codec.encode_response(message, endpoint), endpoint, {})
    assert (whole.content, whole.stop_reason) == (message.content, message.stop_reason)
    _, back = decode_frames(codec, encode_events(codec, message_events(message)))
    assert (back.text(), _kinds(back)) == (message.text(), _kinds(message))


def _kinds(message) -> list[str]:
    return [piece.kind for piece in message.content]


def _google_frame(**others: object) -> dict[str, object]:
    return {"candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}, "index": 0}], **others}


DELTAS: dict[str, tuple[str, list[Any]]] = {
    "a block without an index": (
        "anthropic-messages",
        [
            {"type": "message_start", "message": {}},
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}},
        ],
    ),
    "counts that are 0 behind others": (
        "google-genai",
        [
            _google_frame(usageMetadata={"promptTokenCount": 5, "totalTokenCount": 5}),
            _google_frame(usageMetadata={"promptTokenCount": 5, "totalTokenCount": 7}),
            _google_frame(usageMetadata=0),
        ],
    ),
}


@pytest.mark.parametrize(("name", "frames"), DELTAS.values(), ids=DELTAS.keys())
def test_frames_are_read_from_bytes_as_from_objects(name, frames):
    codec = get_protocol(name)
    assert decode_frames(codec, [json.dumps(frame).encode() for frame in frames]) == decode_frames(codec, frames)


def test_all_strategies_are_run():
    assert len(NAMES) == len(list(HERE.glob("*/any_body.py"))) > 0
