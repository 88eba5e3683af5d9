"""A written reply has every field that the official SDK of its protocol requires, whole and streamed.

The types are those of the installed SDKs; at Bedrock, the output shapes of botocore. A reply is written here for a
client that did not ask its maker: without an id, a time or counts, in the sentences and calls of every other protocol.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final, cast

import anthropic.types
import botocore.session
import cohere
import ollama
import openai.types.chat
import openai.types.responses
import pytest
from google.genai import interactions as google_interactions
from google.genai import types as google_types
from mistralai.client.models import ChatCompletionResponse, CompletionChunk
from pydantic import TypeAdapter

from protocols.sdk_accumulation import typed_by_google
from segue.calls.replies import stream_encoder
from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.projection.replies.projector import project_reply
from segue.protocols.api import decode_response, encode_response
from segue.protocols.registry import all_protocols, get_protocol

CALL: Final = ToolCall(id="call_1", name="read", arguments={"path": "a"})
MADE: Final = {
    "nothing": AssistantMessage(content=()),
    "a text": AssistantMessage(content=(TextContent(text="hi"),)),
    "a call": AssistantMessage(content=(CALL,), stop_reason=StopReason.TOOL_USE),
    "a text and calls": AssistantMessage(
        content=(TextContent(text="hi"), CALL, ToolCall(id="call_2", name="read", arguments={})),
        stop_reason=StopReason.TOOL_USE,
    ),
    "thinking": AssistantMessage(content=(ThinkingContent(thinking="hm"), TextContent(text="hi"))),
    "a cut text": AssistantMessage(content=(TextContent(text="hi"),), stop_reason=StopReason.LENGTH),
    "a failure": AssistantMessage(content=(), stop_reason=StopReason.ERROR, error_message="it failed"),
    "counts": AssistantMessage(content=(TextContent(text="hi"),), usage=Usage(input=3, output=4, total_tokens=7)),
    "cached counts": AssistantMessage(
        content=(TextContent(text="hi"),),
        usage=Usage(input=3, output=4, cache_read=5, cache_write=6, reasoning=2, total_tokens=18),
    ),
}
TYPES: Final[Mapping[str, tuple[Any, Any]]] = {
    "anthropic-messages": (anthropic.types.Message, anthropic.types.RawMessageStreamEvent),
    "openai-chat": (openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk),
    "openai-responses": (openai.types.responses.Response, openai.types.responses.ResponseStreamEvent),
    "mistral-chat": (ChatCompletionResponse, CompletionChunk),
    "google-genai": (google_types.GenerateContentResponse, google_types.GenerateContentResponse),
    "google-interactions": (google_interactions.Interaction, google_interactions.InteractionSSEEvent),
    "cohere-chat": (cohere.V2ChatResponse, cohere.V2ChatStreamResponse),
    "ollama-chat": (ollama.ChatResponse, ollama.ChatResponse),
}
WITHOUT_SDK: Final = frozenset({"cohere-v1"})
"""Protocols that clients speak, and no SDK that is installed here."""


def _made_by_others(protocol: str) -> Iterator[tuple[str, AssistantMessage]]:
    """Give the samples of the other protocols; one of its own is written as it was received."""
    for record in all_protocols():
        for sample in record.samples() if record.name != protocol else ():
            if sample.response is not None:
                yield f"{record.name}: {sample.name}", decode_response(sample.response, protocol=record.name)


def _validators() -> Mapping[str, tuple[Callable[[Any], object], Callable[[Any], object]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            name: tuple(TypeAdapter(cast("type[object]", kind)).validate_python for kind in kinds)
            for name, kinds in TYPES.items()
        }
    check = partial(_check_google, found["google-genai"][0])
    google = (check, check)
    return {**cast("Any", found), "google-genai": google, "bedrock-converse": (_check_converse, _check_converse_event)}


def _check_google(validate: Callable[[Any], object], frame: Mapping[str, Any]) -> None:
    validate(typed_by_google(frame))


@lru_cache
def _converse(operation: str) -> Any:
    return botocore.session.get_session().get_service_model("bedrock-runtime").operation_model(operation).output_shape


def _check_converse(body: Mapping[str, Any]) -> None:
    _check_shape(_converse("Converse"), body, "")


def _check_converse_event(frame: Mapping[str, Any]) -> None:
    _check_shape(_converse("ConverseStream").members["stream"], frame, "")


def _check_shape(shape: Any, value: Any, path: str) -> None:
    """Require the required members of a shape, at any depth."""
    if shape.type_name == "structure" and isinstance(value, Mapping):
        for name in shape.required_members:
            assert name in value, f"{path}.{name} is missing"
        for name, inner in cast("Mapping[str, Any]", value).items():
            if name in shape.members:
                _check_shape(shape.members[name], inner, f"{path}.{name}")
    elif shape.type_name == "list" and isinstance(value, list):
        for item in cast("list[Any]", value):
            _check_shape(shape.member, item, f"{path}[]")


VALIDATORS: Final = _validators()


def test_every_protocol_with_an_sdk_is_checked() -> None:
    spoken = {record.name for record in all_protocols() if record.routes}
    unchecked = spoken - VALIDATORS.keys() - WITHOUT_SDK
    assert unchecked == set(), "add the types of its SDK to TYPES; without an SDK, its name to WITHOUT_SDK"


@pytest.mark.parametrize("protocol", VALIDATORS)
def test_a_whole_reply_is_read_by_the_official_sdk(protocol: str) -> None:
    validate = VALIDATORS[protocol][0]
    for name, message in (*MADE.items(), *_made_by_others(protocol)):
        if message.stop_reason == StopReason.ERROR and protocol != "openai-responses":
            continue  # a gateway answers with an error
        projected = project_reply(message, protocol=protocol).message
        try:
            validate(encode_response(projected, protocol=protocol))
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.mark.parametrize("protocol", VALIDATORS)
def test_every_frame_of_a_streamed_reply_is_read_by_the_official_sdk(protocol: str) -> None:
    validate = VALIDATORS[protocol][1]
    if get_protocol(protocol).stream_encoder is None:
        pytest.skip("no stream")
    for name, message in (*MADE.items(), *_made_by_others(protocol)):
        if message.stop_reason == StopReason.ERROR:
            continue
        encoder = stream_encoder(protocol=protocol)
        projected = project_reply(message, protocol=protocol).message
        frames = [frame for event in message_events(projected) for frame in encoder.feed(event)]
        for frame in (*frames, *encoder.finish()):
            if not isinstance(frame, Mapping):
                continue  # `[DONE]`
            try:
                validate(frame)
            except Exception as error:
                raise AssertionError(f"{name}: {frame}: {error}") from error
