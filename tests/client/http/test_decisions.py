"""`decide`: closed questions, at an endpoint for decisions and by schema."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from openai import BadRequestError, OpenAI
from openai.types.decision_create_params import DecisionCreateParams
from pydantic import TypeAdapter

from projection.building import PNG
from segue import (
    AssistantMessage,
    AsyncClient,
    ChangeCode,
    Client,
    Context,
    FileContent,
    ImageContent,
    Loss,
    Options,
    OutputRefused,
    Policy,
    ProjectionRefused,
    SettingsError,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    decide,
    decode_request,
    get_model,
    prepare,
)
from segue.client.flow.deciding import Deciding, Question
from segue.testing.emulator import Step, emulate

NATIVE = "openai/gpt-6-luna"
HISTORY = Context(
    system_prompt="You help customers.",
    messages=(
        UserMessage.of("My parcel is lost, again.", ImageContent(data=PNG, mime_type="image/png")),
        AssistantMessage(
            content=(
                TextContent(text="One moment."),
                ToolCall(id="call_1", name="find", arguments={"id": 7}),
            ),
        ),
        ToolResultMessage(tool_call_id="call_1", tool_name="find", content=(TextContent(text="In Oslo."),)),
        UserMessage.of("And?"),
    ),
)


@pytest.mark.parametrize(
    ("choices", "ordered", "text", "value", "kind"),
    [
        (bool, False, "false", False, "predicate"),
        (bool, False, "true", True, "predicate"),
        (["calm", "angry"], False, "angry", "angry", "choice"),
        ({"calm": "Friendly.", "angry": "Not at all."}, False, "angry", "angry", "choice"),
        ([True, False], False, "False", False, "choice"),
        (["low", "middle", "high"], True, "high", "high", "score"),
    ],
)
def test_a_model_with_an_endpoint_for_decisions_answers_there_with_probabilities(
    choices: Any, ordered: bool, text: str, value: object, kind: str
):
    with emulate(Step(text=text)) as server, Client(base_url=f"{server.url}/v1", api_key="any") as client:
        decision = client.decide(HISTORY, "How is the customer?", choices, NATIVE, ordered=ordered)
        (sent,) = server.emulator.requests
    assert (sent.path, sent.status) == ("/v1/decisions", 200)
    assert (decision.value, decision.asked) == (value, "native decision")
    assert type(decision.value) is type(value)
    assert decision.confidence == pytest.approx(0.9)
    assert sum(decision.probabilities.values()) == pytest.approx(1)
    assert decision.usage is not None
    assert decision.usage.cost is not None


def test_what_is_sent_for_a_decision_is_the_conversation():
    with emulate(Step(text="angry")) as server, Client(base_url=f"{server.url}/v1", api_key="any") as client:
        client.decide(HISTORY, "How?", {"calm": "Friendly.", "angry": ""}, NATIVE, options=Options(user_id="u1"))
        sent: Any = server.emulator.requests[0].body
    TypeAdapter(DecisionCreateParams).validate_python(sent)  # the official types
    assert [item.get("role", item["type"]) for item in sent["input"]] == [
        *("developer", "user", "assistant", "function_call", "function_call_output", "user"),
    ]
    assert sent["input"][1]["content"][1]["image_url"] == f"data:image/png;base64,{PNG}"
    assert sent["safety_identifier"] == "u1"
    assert sent["questions"] == [
        {
            "type": "choice",
            "instructions": "How?",
            "choices": [{"value": "calm", "description": "Friendly."}, {"value": "angry"}],
        }
    ]


def test_the_emulator_answers_the_official_client():
    questions: list[Any] = [
        {"type": "predicate", "instructions": "Angry?", "name": "anger"},
        {"type": "choice", "instructions": "Which?", "choices": [{"value": "a"}, {"value": True}]},
        {"type": "score", "instructions": "How?", "levels": [{"label": "low"}, {"label": "high"}]},
    ]
    with emulate() as server, OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as official:
        answered = official.decisions.create(model="gpt-6-luna", input="It is lost.", questions=questions)
        assert [answer.type for answer in answered.answers] == ["predicate", "choice", "score"]
        for fault in (
            {"model": "gpt-5.4", "input": "a", "questions": questions},
            {"model": "gpt-6-luna", "input": "a", "questions": []},
            {"model": "gpt-6-luna", "input": [{"type": "reasoning", "summary": []}], "questions": questions},
            {"model": "gpt-6-luna", "input": "a", "questions": [{**questions[1], "choices": [{"value": "a"}] * 2}]},
        ):
            with pytest.raises(BadRequestError):
                official.decisions.create(**fault)


@pytest.mark.parametrize(
    ("model", "reply", "choices", "value"),
    [
        ("anthropic/claude-opus-4-8", "angry", ["calm", "angry"], "angry"),
        ("openai/gpt-5.4", "high", ["low", "high"], "high"),
        ("google/gemini-2.5-flash", True, bool, True),
        ("cohere/command-a-03-2025", False, [True, False], False),
    ],
)
def test_any_other_model_is_asked_by_schema(model: str, reply: object, choices: Any, value: object):
    step = Step(text=json.dumps({"value": reply}))
    with emulate(step) as server, Client(base_url=server.url, api_key="any") as client:
        decision = client.decide("It is lost.", "How is the customer?", choices, model)
        (sent,) = server.emulator.requests
    assert decision.value == value
    assert (decision.probabilities, decision.confidence) == ({}, None)
    assert decision.score == list(decision.choices).index(value) + 1
    assert decision.asked
    assert decision.message is not None
    assert sent.path != "/v1/decisions"
    assert "How is the customer?" in json.dumps(sent.body)


def test_an_endpoint_that_does_not_answer_is_replaced_by_the_schema():
    steps = (Step(status=503), Step(text='{"value": "b"}'))
    with emulate(*steps) as server, Client(base_url=f"{server.url}/v1", api_key="any") as client:
        decision = client.decide("Hi", "Which?", ["a", "b"], NATIVE)
        paths = [request.path for request in server.emulator.requests]
    assert (decision.value, decision.asked) == ("b", "native schema")
    assert paths == ["/v1/decisions", "/v1/responses"]


def test_a_conversation_that_the_endpoint_does_not_take_is_asked_by_schema():
    document = FileContent(data="JVBERi0xLjQKJSVFT0YK", mime_type="application/pdf", name="a.pdf")
    context = Context(messages=(UserMessage.of("Read.", document),))
    steps = (Step(text='{"value": "b"}'),)
    with emulate(*steps) as server, Client(base_url=f"{server.url}/v1", api_key="any") as client:
        assert client.decide(context, "Which?", ["a", "b"], NATIVE).value == "b"
        assert [request.path for request in server.emulator.requests] == ["/v1/responses"]


def test_what_a_decision_leaves_out_is_reported_and_can_be_refused():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA=="}
    hello = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
    body = {"model": "gpt-6-luna", "input": [{"role": "user", "content": "Hi"}, item, hello]}
    context = decode_request(body, protocol="openai-responses").context
    options = Options(temperature=0.5)
    with emulate(Step(text="b")) as server, Client(base_url=f"{server.url}/v1", api_key="any") as client:
        decision = client.decide(context, "Which?", ["a", "b"], NATIVE, options=options)
        assert ("thinking_dropped", "messages") in {(change.code, change.path[0]) for change in decision.report.changes}
        assert ("options", "temperature") in {change.path for change in decision.report.changes}
        with pytest.raises(ProjectionRefused):
            client.decide(context, "Which?", ["a", "b"], NATIVE, policy=Policy(refuse=frozenset({Loss.OPAQUE})))
        assert len(server.emulator.requests) == 1
        server.emulator.script.add_first(Step(text="b"))
        without = Context(messages=tuple(each for each in context.messages if each.role == "user"))
        assert client.decide(without, "Which?", ["a", "b"], NATIVE).report.of(ChangeCode.THINKING_DROPPED) == ()


def test_a_refusal_is_an_error():
    with (
        emulate(Step(text="refusal")) as server,
        Client(base_url=f"{server.url}/v1", api_key="any") as client,
        pytest.raises(OutputRefused, match="declined"),
    ):
        client.decide("Hi", "Which?", ["a", "b"], NATIVE)


def test_an_async_client_decides_too():
    async def run(base_url: str) -> tuple[str, str]:
        async with AsyncClient(base_url=base_url, api_key="any") as client:
            native = await client.decide("Hi", "Which?", ["a", "b"], NATIVE)
            asked = await client.decide("Hi", "Which?", ["a", "b"], "openai/gpt-5.4")
            return native.value, asked.value

    with emulate(Step(text="b"), Step(text='{"value": "a"}')) as server:
        assert asyncio.run(run(f"{server.url}/v1")) == ("b", "a")
        assert [request.path for request in server.emulator.requests] == ["/v1/decisions", "/v1/responses"]


def test_a_single_decision_needs_no_client():
    with emulate(Step(text="b")) as server:
        decision = decide("Hi", "Which?", ["a", "b"], NATIVE, base_url=f"{server.url}/v1", api_key="any")
    assert (decision.value, decision.score) == ("b", pytest.approx(1.9))


@pytest.mark.parametrize("choices", ["ab", ["a"], ["a", "a"], [1, 2], 5, [str(number) for number in range(256)]])
def test_choices_that_cannot_be_asked_are_refused(choices: Any):
    with pytest.raises(SettingsError, match="choices"):
        Question("Which?", choices)


def test_a_scale_has_no_booleans():
    with pytest.raises(SettingsError, match="levels"):
        Question("Which?", bool, ordered=True)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"answers": []},
        {"answers": [{"type": "choice", "choice": "a", "probabilities": [{"value": "a", "probability": 1}]}]},
        {"answers": [{"type": "choice", "choice": "a", "probabilities": "x"}]},
    ],
)
def test_an_answer_in_another_form_is_none(answer: Any):
    context = Context(messages=(UserMessage.of("Hi"),))
    deciding = Deciding(Question("Which?", ["a", "b"]), context, get_model(NATIVE), None)
    assert deciding.read(answer, prepare(context, NATIVE)) is None
