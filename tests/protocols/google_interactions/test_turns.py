"""What only this protocol has: thoughts before calls, results, media, stored interactions, streams of steps."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from protocols.google_interactions.endpoints import NEWER, NEWEST, OLDER
from segue import AssistantMessage, Context, Model, Policy, StopReason, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import ToolResultMessage, UserMessage
from segue.projection.report import ChangeCode

NAME = "google-interactions"
PLACEHOLDER = {"type": "thought", "signature": "skip_thought_signature_validator"}
CALL = ToolCall(id="c1", name="read", arguments={"path": "a"})
SECOND = ToolCall(id="c2", name="read", arguments={"path": "b"})
CLAUDE = ("anthropic-messages", "anthropic", "claude-opus-4-8")
OWN = (NAME, "google", NEWER.model.id)
GENERATE = ("google-genai", "google", NEWER.model.id)


def turn(origin: tuple[str, str, str], *content: Any) -> AssistantMessage:
    protocol, provider, model = origin
    return AssistantMessage(
        content=content, protocol=protocol, provider=provider, model=model, stop_reason=StopReason.TOOL_USE
    )


def answered(message: AssistantMessage) -> Context:
    results = [
        ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="x"),))
        for call in message.tool_calls()
    ]
    return Context(messages=(UserMessage.of("hi"), message, *results))


def steps_of(request: segue.Request) -> list[dict[str, Any]]:
    steps: Any = request.body["input"]
    return steps


def kinds(request: segue.Request) -> list[str]:
    return [step["type"] for step in steps_of(request)]


SIGNED = ThinkingContent(thinking="hm", thinking_signature="c2VhbA==")
TURNS = {
    "calls of another model get the placeholder at the head of the turn": (
        turn(CLAUDE, TextContent(text="I look."), CALL, SECOND),
        ["thought", "model_output", "function_call", "function_call"],
        True,
    ),
    "a signature of generateContent is not sent": (
        turn(GENERATE, ToolCall(id="c1", name="read", arguments={}, thought_signature="c2VhbA==")),
        ["thought", "function_call"],
        True,
    ),
    "a thought of the model itself is sent as it was": (turn(OWN, SIGNED, CALL), ["thought", "function_call"], False),
    "a call of the model itself without its thought gets the placeholder": (
        turn(OWN, CALL),
        ["thought", "function_call"],
        True,
    ),
    "a turn without calls needs no thought": (turn(CLAUDE, TextContent(text="done")), ["model_output"], False),
}


@pytest.mark.parametrize(("message", "wanted", "placed"), TURNS.values(), ids=TURNS.keys())
def test_a_thought_stands_before_calls(message, wanted, placed):
    request = segue.prepare(answered(message), NEWER.model, policy=Policy(reasoning="drop"))
    assert kinds(request)[1 : 1 + len(wanted)] == wanted
    assert (steps_of(request)[1] == PLACEHOLDER) is placed
    assert (ChangeCode.SIGNATURE_PLACEHOLDER in {change.code for change in request.report.changes}) is placed
    assert segue.check(request.body, protocol=NAME, model=NEWER.model) == []


def test_models_without_signatures_get_no_placeholder():
    request = segue.prepare(answered(turn(CLAUDE, CALL)), OLDER.model)
    assert "thought" not in kinds(request)


def test_the_placeholder_is_a_text_of_the_policy():
    policy = Policy(texts=segue.Texts(thought_signature="b3RoZXI="))
    request = segue.prepare(answered(turn(CLAUDE, CALL)), NEWER.model, policy=policy)
    assert steps_of(request)[1] == {"type": "thought", "signature": "b3RoZXI="}


def test_fitting_a_window_keeps_the_thoughts_before_calls():
    model = Model(NEWER.model.id, "google", NAME, reasoning=True, context_window=3000, max_tokens=500)
    messages: list[Any] = []
    for number in range(30):
        call = ToolCall(id=f"c{number}", name="read", arguments={})
        result = ToolResultMessage(tool_call_id=call.id, tool_name="read", content=(TextContent(text="word " * 90),))
        messages += [UserMessage.of(f"question {number}"), turn(OWN, SIGNED, call), result]
        messages.append(turn(OWN, TextContent(text="done")))
    messages.append(UserMessage.of("and?"))
    request = segue.prepare(Context(messages=tuple(messages)), model, policy=Policy(fit=segue.Fit()))
    found = kinds(request)
    calls = [at for at, kind in enumerate(found) if kind == "function_call"]
    assert calls
    assert all(steps_of(request)[at - 1] == {**steps_of(request)[at - 1], "signature": "c2VhbA=="} for at in calls)


REFUSED = {
    "a call without a thought": (
        [{"type": "function_call", "id": "a", "name": "f", "arguments": {}}],
        NEWER.model,
        {"signature_missing"},
    ),
    "a call without a thought, of a model without signatures": (
        [{"type": "function_call", "id": "a", "name": "f", "arguments": {}}],
        OLDER.model,
        set[str](),
    ),
    "a call whose thought has no signature": (
        [{"type": "thought"}, {"type": "function_call", "id": "a", "name": "f", "arguments": {}}],
        NEWER.model,
        {"signature_missing"},
    ),
    "calls behind one thought": (
        [PLACEHOLDER, {"type": "function_call", "id": "a", "name": "f", "arguments": {}}],
        NEWER.model,
        set[str](),
    ),
}


@pytest.mark.parametrize(("steps", "model", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_check_finds_calls_without_a_signature(steps, model, codes):
    result = {"type": "function_result", "call_id": "a", "name": "f", "result": "x"}
    body = {"input": [{"type": "user_input", "content": []}, *steps, result]}
    assert {found.code for found in segue.check(body, protocol=NAME, model=model)} == codes


USER = {"type": "user_input", "content": [{"type": "text", "text": "hi"}]}
FAULTS = {
    "a result without a name": (
        {"input": [USER, {"type": "function_result", "call_id": "a", "result": "x"}], "previous_interaction_id": "v1"},
        {"result_name_wrong"},
    ),
    "a result without a call": (
        {"input": [USER, {"type": "function_result", "call_id": "a", "name": "f", "result": "x"}]},
        {"result_orphaned"},
    ),
    "a call without a result": (
        {"input": [USER, PLACEHOLDER, {"type": "function_call", "id": "a", "name": "f", "arguments": {}}, USER]},
        {"result_missing"},
    ),
    "a call that waits for its result": (
        {"input": [USER, PLACEHOLDER, {"type": "function_call", "id": "a", "name": "f", "arguments": {}}]},
        {"last_turn_wrong"},
    ),
    "no input": ({"model": "m"}, {"messages_missing"}),
    "no input of a continuation": ({"previous_interaction_id": "v1", "continuation_token": "t"}, set[str]()),
    "an agent and a model": ({"model": "m", "agent": "a", "input": "hi"}, {"options_conflict"}),
    "an image without bytes": ({"input": [{"type": "image", "mime_type": "image/png"}]}, {"content_missing"}),
    "a level that the model lacks": (
        {"input": "hi", "generation_config": {"thinking_level": "minimal"}},
        {"effort_unsupported"},
    ),
    "a choice without tools": (
        {"input": "hi", "generation_config": {"tool_choice": "any"}},
        {"tool_choice_without_tools"},
    ),
    "a key of another API": ({"input": "hi", "top_k": 5}, {"field_unknown"}),
    "a key of another API inside": ({"input": "hi", "generation_config": {"topK": 5}}, {"field_unknown"}),
    "two tools of one name": (
        {"input": "hi", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]},
        {"value_duplicate"},
    ),
    "a tool that takes a list": (
        {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": {"type": "array"}}]},
        {"schema_root_invalid"},
    ),
    "a tool that takes an object, in any case": (
        {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": {"type": "OBJECT"}}]},
        set(),
    ),
}


@pytest.mark.parametrize(("body", "codes"), FAULTS.values(), ids=FAULTS.keys())
def test_check_finds_what_the_provider_refuses(body, codes):
    assert {found.code for found in segue.check(body, protocol=NAME, model=NEWEST.model)} == codes


INPUTS = {
    "a text": "hi",
    "one content": {"type": "text", "text": "hi"},
    "a list of contents": [{"type": "text", "text": "hi"}],
    "a list of steps": [USER],
}


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS.keys())
def test_every_form_of_the_input_is_one_turn_of_the_user(given):
    body = {"model": "gemini-3.5-flash", "input": given}
    prompt = segue.decode_request(body, protocol=NAME)
    assert prompt.context.messages[0].content == (TextContent(text="hi"),)
    assert segue.encode_request(prompt, protocol=NAME) == body
    grown = prompt.context.add(AssistantMessage(content=(TextContent(text="yes"),)), UserMessage.of("on"))
    steps = segue.encode_request(grown, protocol=NAME)["input"]
    assert steps == [USER, {"type": "model_output", "content": [{"type": "text", "text": "yes"}]}, {
        "type": "user_input", "content": [{"type": "text", "text": "on"}]
    }]  # fmt: skip


def test_a_stored_interaction_is_lost_for_another_provider():
    body = {"model": "gemini-3.5-flash", "input": "on", "previous_interaction_id": "v1_abc"}
    same = segue.convert(body, source=NAME, target=NEWER.model)
    assert same.body["previous_interaction_id"] == "v1_abc"
    other = segue.convert(body, source=NAME, target="anthropic/claude-opus-4-8")
    assert "previous_interaction_id" not in str(other.body)
    assert any("previous_interaction_id" in str(needed) for needed in other.requirements)


FILES = {
    "an image": (segue.ImageContent(data="iVBORw0KGgo=", mime_type="image/png"), "image"),
    "a PDF": (segue.FileContent(data="JVBERi0=", mime_type="application/pdf", name="a.pdf"), "document"),
    "a sound": (segue.FileContent(data="UklGRg==", mime_type="audio/wav"), "audio"),
    "a film of the Files API": (segue.FileContent(file_id="files/abc", mime_type="video/mp4"), "video"),
}


@pytest.mark.parametrize(("piece", "kind"), FILES.values(), ids=FILES.keys())
def test_media_are_contents_of_their_type(piece, kind):
    model = Model("gemini-3.5-flash", "google", NAME, input=("text", "image", "document", "audio", "video"))
    request = segue.prepare(Context(messages=(UserMessage.of("see", piece),)), model)
    (step,) = steps_of(request)
    assert step["content"][1]["type"] == kind
    assert request.report.lossless
    assert segue.check(request.body, protocol=NAME, model=model) == []


def test_a_stream_that_is_resumed_begins_with_a_delta():
    decoder = segue.stream_decoder(protocol=NAME, model=NEWER.model)
    for frame in (
        {"event_type": "step.delta", "index": 3, "delta": {"type": "text", "text": "the rest"}},
        {"event_type": "step.stop", "index": 3},
        {"event_type": "interaction.completed", "interaction": {"id": "v1", "status": "completed"}},
    ):
        decoder.feed(frame)
    assert decoder.message.text() == "the rest"
    assert decoder.message.stop_reason == StopReason.STOP


STATUSES = {
    "completed": StopReason.STOP,
    "requires_action": StopReason.TOOL_USE,
    "incomplete": StopReason.LENGTH,
    "requires_continuation": StopReason.LENGTH,
    "budget_exceeded": StopReason.LENGTH,
    "failed": StopReason.ERROR,
    "in_progress": StopReason.ERROR,
    "cancelled": StopReason.ABORTED,
    "a newer one": StopReason.STOP,
}


@pytest.mark.parametrize(("status", "stop"), STATUSES.items())
def test_a_status_is_a_stop_reason_and_comes_back(status, stop):
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "yes"}]}]
    body = {"id": "v1", "model": "gemini-3.5-flash", "status": status, "steps": steps}
    message = segue.decode_response(body, protocol=NAME, model=NEWER.model)
    assert message.stop_reason == stop
    assert segue.encode_response(message, protocol=NAME) == body


def test_a_withheld_reply_names_the_filter():
    errors = [{"code": "safety", "message": "blocked"}]
    body = {"id": "v1", "model": "m", "status": "failed", "errors": errors, "steps": []}
    message = segue.decode_response(body, protocol=NAME, model=NEWER.model)
    assert (message.raw_stop_reason, message.error_message) == ("safety", "blocked")
    assert segue.classify(message).kind == segue.FailureKind.REFUSED


def test_the_kind_of_a_file_is_that_of_its_type_in_any_case():
    context = segue.Context().add(segue.UserMessage.of(segue.FileContent(data="AAAA", mime_type="VIDEO/mp4; x=1")))
    model = segue.Model("gemini-3-pro-preview", "google", "google-interactions", input=("text", "video"))
    (step,) = segue.prepare(context, model).body["input"]
    assert step["content"] == [{"type": "video", "data": "AAAA", "mime_type": "video/mp4"}]


TYPES = {None: {}, "image/*": {}, "image/png": {"mime_type": "image/png"}, "Image/PNG; x=1": {"mime_type": "image/png"}}


@pytest.mark.parametrize(("given", "written"), TYPES.items())
def test_an_image_is_written_with_its_type_if_that_is_known(given, written):
    image = segue.ImageContent(url="https://e.org/a", mime_type=given)
    (step,) = segue.encode_request(Context().add(UserMessage.of(image)), protocol=NAME)["input"]
    assert step["content"] == [{"type": "image", "uri": "https://e.org/a", **written}]
