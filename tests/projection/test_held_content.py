"""Content that only a provider holds: earlier responses, cached and stored prompts, stored items."""

from __future__ import annotations

from typing import Any

import pytest

from projection.building import FABLE, GEMINI, GPT, SONNET, user
from segue.conversation.content import NativeContent, TextContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import ToolResultMessage, UserMessage
from segue.errors import EmptyConversation, ProjectionRefused
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode, Loss
from segue.projection.requirements import HistoryNeeded
from segue.protocols.api import check
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.outbox import Outbox
from segue.requests.prepare import Request, convert, prepare

ASK = {"role": "user", "content": "And now?"}
ARN = "arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ:1"
NOVA = get_model("amazon-bedrock/amazon.nova-pro-v1:0")

HELD: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "an earlier response": (
        "openai-responses",
        {"model": "gpt-5", "previous_response_id": "resp_1", "input": [ASK]},
        "previous_response_id",
        "resp_1",
    ),
    "a conversation by its id": (
        "openai-responses",
        {"model": "gpt-5", "conversation": "conv_1", "input": [ASK]},
        "conversation",
        "conv_1",
    ),
    "a conversation as an object": (
        "openai-responses",
        {"model": "gpt-5", "conversation": {"id": "conv_1"}, "input": [ASK]},
        "conversation",
        "conv_1",
    ),
    "a prompt": (
        "openai-responses",
        {"model": "gpt-5", "prompt": {"id": "pmpt_1", "variables": {"a": "b"}}, "input": [ASK]},
        "prompt",
        "pmpt_1",
    ),
    "an item": (
        "openai-responses",
        {"model": "gpt-5", "input": [{"type": "item_reference", "id": "msg_1"}, ASK]},
        "item_reference",
        "msg_1",
    ),
    "a generated image": (
        "openai-responses",
        {"model": "gpt-5", "input": [ASK, {"type": "image_generation_call", "id": "ig_1"}, ASK]},
        "image_generation_call",
        "ig_1",
    ),
    "a cache": (
        "google-genai",
        {"contents": [{"role": "user", "parts": [{"text": "And now?"}]}], "cachedContent": "cachedContents/a"},
        "cachedContent",
        "cachedContents/a",
    ),
    "a cache, in snake case": (
        "google-genai",
        {"contents": [{"role": "user", "parts": [{"text": "And now?"}]}], "cached_content": "cachedContents/a"},
        "cachedContent",
        "cachedContents/a",
    ),
    "a container": (
        "anthropic-messages",
        {"model": "claude-sonnet-4-5", "max_tokens": 9, "container": "container_1", "messages": [ASK]},
        "container",
        "container_1",
    ),
    "a thread": (
        "anthropic-messages",
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "thread": {"type": "continue", "id": "thread_1"},
            "messages": [ASK],
        },
        "thread",
        "thread_1",
    ),
    "a stored prompt of Bedrock": (
        "bedrock-converse",
        {"modelId": ARN, "messages": [{"role": "user", "content": [{"text": "And now?"}]}]},
        "modelId",
        ARN,
    ),
    "its variables": (
        "bedrock-converse",
        {
            "promptVariables": {"a": {"text": "b"}},
            "messages": [{"role": "user", "content": [{"text": "And now?"}]}],
        },
        "promptVariables",
        "",
    ),
    "an agent": ("mistral-chat", {"agent_id": "ag_1", "messages": [ASK]}, "agent_id", "ag_1"),
    "spoken words": (
        "openai-chat",
        {"model": "gpt-4o-audio-preview", "messages": [ASK, {"role": "assistant", "audio": {"id": "audio_1"}}, ASK]},
        "audio",
        "audio_1",
    ),
}


@pytest.mark.parametrize(("source", "body", "field", "reference"), HELD.values(), ids=HELD.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_lost_reference_is_a_loss_of_content(
    protocol: str, source: str, body: dict[str, Any], field: str, reference: str
):
    if protocol == source:
        return
    target = get_protocol(protocol).example
    request = convert(body, source=source, target=target)
    lost = request.report.of(ChangeCode.PROVIDER_HISTORY)
    assert [change.loss for change in lost] == [Loss.CONTENT]
    assert field in lost[0].detail
    needed = [each for each in request.requirements if isinstance(each, HistoryNeeded)]
    assert [(each.field, each.reference, each.path) for each in needed] == [(field, reference, lost[0].path)]
    with pytest.raises(ProjectionRefused):
        convert(body, source=source, target=target, policy=Policy(refuse=frozenset({Loss.CONTENT})))


@pytest.mark.parametrize(("source", "body", "field", "reference"), HELD.values(), ids=HELD.keys())
def test_the_same_provider_and_model_gets_the_reference(source: str, body: dict[str, Any], field: str, reference: str):
    named = body.get("model") or body.get("modelId") or get_protocol(source).example.id
    target = Model(str(named), get_protocol(source).provider, source)
    request = convert(body, source=source, target=target)
    assert reference in str(request.body) or field in request.body or reference == request.model.id
    assert not request.report.of(ChangeCode.PROVIDER_HISTORY)
    assert request.requirements == ()


def lost_of(request: Request) -> list[str]:
    return [change.detail.partition(":")[0] for change in request.report.of(ChangeCode.PROVIDER_HISTORY)]


def test_another_provider_of_the_same_protocol_does_not_have_it():
    items = [{"type": "item_reference", "id": "msg_1"}, ASK]
    body = {"model": "gpt-5", "previous_response_id": "resp_1", "input": items}
    request = convert(body, source="openai-responses", target="azure/gpt-5", source_model="openai/gpt-5")
    assert lost_of(request) == ["item_reference msg_1", "previous_response_id resp_1"]
    assert "previous_response_id" not in request.body
    assert request.body["input"] == [ASK]


def test_a_body_that_names_a_model_of_another_provider_does_not_have_it():
    body = {"model": "gpt-5", "previous_response_id": "resp_1", "input": [ASK]}
    request = convert(body, source="openai-responses", target=Model("grok-4", "xai", "openai-responses"))
    assert lost_of(request) == ["previous_response_id resp_1"]
    assert "previous_response_id" not in request.body


def test_a_cache_is_valid_for_one_model():
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "cachedContent": "cachedContents/a"}
    other = convert(body, source="google-genai", target=GEMINI, source_model="google/gemini-2.5-flash")
    assert lost_of(other) == ["cachedContent cachedContents/a"]
    assert "cachedContent" not in other.body
    same = convert(body, source="google-genai", target=GEMINI, source_model=GEMINI)
    assert same.body["cachedContent"] == "cachedContents/a"


def test_a_stored_prompt_is_not_sent_as_the_name_of_another_model():
    body = {
        "modelId": ARN,
        "promptVariables": {"a": {"text": "b"}},
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
    }
    request = convert(body, source="bedrock-converse", target=NOVA)
    assert sorted(request.body) == ["messages"]
    assert len(lost_of(request)) == 2


def test_a_container_of_skills_alone_holds_nothing():
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "container": {"skills": [{"type": "anthropic", "skill_id": "xlsx"}]},
        "messages": [ASK],
    }
    request = convert(body, source="anthropic-messages", target=GPT)
    assert lost_of(request) == []
    assert request.report.of(ChangeCode.EXTRA_REMOVED)


# -- results whose calls the provider holds ----------------------------------------------------------------------------

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
CONTINUED: dict[str, dict[str, Any]] = {
    "of an earlier response": {"model": "gpt-5", "previous_response_id": "resp_1", "input": [OUTPUT]},
    "of a conversation": {"model": "gpt-5", "conversation": "conv_1", "input": [OUTPUT, ASK]},
    "of a stored item": {"model": "gpt-5", "input": [{"type": "item_reference", "id": "fc_1"}, OUTPUT]},
}


@pytest.mark.parametrize("body", CONTINUED.values(), ids=CONTINUED.keys())
def test_a_result_stays_where_the_provider_has_its_call(body: dict[str, Any]):
    target = get_model("openai/gpt-5")
    request = convert(body, source="openai-responses", target=target)
    assert request.body["input"] == body["input"]
    assert request.report.lossless
    assert check(request.body, protocol="openai-responses", model=target) == []


def test_elsewhere_the_refusal_names_what_is_missing():
    with pytest.raises(EmptyConversation, match="previous_response_id resp_1"):
        convert(CONTINUED["of an earlier response"], source="openai-responses", target=SONNET)
    with pytest.raises(EmptyConversation, match="a stored prompt"):
        convert({"model": "gpt-5", "prompt": {"id": "pmpt_1"}}, source="openai-responses", target=FABLE)


def test_a_stored_prompt_alone_is_a_request():
    body = {"model": "gpt-5", "prompt": {"id": "pmpt_1"}}
    request = convert(body, source="openai-responses", target="openai/gpt-5")
    assert request.body["prompt"] == {"id": "pmpt_1"}


def test_a_growing_history_is_projected_as_a_whole():
    target = get_model("openai/gpt-5")
    held = Options(extra={"openai-responses": {"previous_response_id": "resp_1"}})
    result = ToolResultMessage(tool_call_id="call_1", tool_name="read", content=(TextContent(text="ok"),))
    item = UserMessage.of(NativeContent(protocol="openai-responses", block={"type": "item_reference", "id": "fc_1"}))
    reply = convert({"model": "gpt-5", "input": [ASK, {"role": "assistant", "content": "yes"}]}, target=target)
    turn = reply.projection.context.messages[1]
    messages = (result, user("so?"), turn, item, user("and?"), turn, result, user("well?"), turn)
    projector, outbox = Projector(target), Outbox(target)
    for count in range(1, len(messages) + 1):
        context = Context(messages=messages[:count])
        for options in (held, None):
            assert projector.project(context, options=options) == project(context, target, options=options)
            if count > 1:
                assert (
                    outbox.prepare(context, options=options).content
                    == prepare(context, target, options=options).content
                )
