"""The emulator: it signs, verifies, refuses, streams by script, counts and fails, on the wires of all its providers."""

from __future__ import annotations

import json
from typing import cast

import anthropic
import httpx2
import openai
import pytest
from msgspec.structs import replace

from segue.client.flow.backoff import Retry
from segue.client.http.clients import Client
from segue.conversation.content import TextContent
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, ToolResultMessage, UserMessage
from segue.errors import RequestFailed, SettingsError
from segue.failures.failure import FailureKind
from segue.models.model import Model
from segue.protocols.api import encode_request, resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.routing import Route
from segue.protocols.registry import all_protocols
from segue.requests.prepare import prepare
from segue.testing.emulator import EmulatedCall, Emulator, EmulatorServer, Step, emulate, load_steps

MODELS = (
    Model("claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True),
    Model("gpt-5.4", "openai", "openai-responses", reasoning=True),
    Model("gemini-3.1-pro-preview", "google", "google-genai", reasoning=True),
    Model("gemini-3.1-pro-preview", "google", "google-interactions", reasoning=True),
    Model("deepseek/deepseek-v4-pro", "openrouter", "openai-chat", reasoning=True),
)
PATHS = {"anthropic": "", "openai": "/v1", "google": "/v1beta", "openrouter": "/v1"}
TOOL = ToolDefinition(
    name="read", description="Read a file.", parameters={"type": "object", "properties": {"path": {"type": "string"}}}
)
CALL = Step(thinking="I have to look.", text="Reading.", calls=(EmulatedCall(name="read", arguments={"path": "a"}),))
THINK = Options(thinking="medium", max_tokens=4000)


def _at(model: Model, server: EmulatorServer) -> Model:
    return replace(model, base_url=server.url + PATHS[model.provider])


def _client() -> Client:
    keys = dict.fromkeys(PATHS, "any")
    return Client(api_key=keys, retry=Retry(max_retries=0))


def _loop(client: Client, context: Context, model: Model, *, stream: bool) -> Context:
    """Ask, and answer the calls until there are none."""
    for _ in range(3):
        options = replace(THINK, stream=stream)
        reply = client.complete(context, model, options=options)
        context = context.add(reply)
        if not reply.tool_calls():
            break
        context = context.add(
            *(
                ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="content"),))
                for call in reply.tool_calls()
            )
        )
    return context


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_a_model_accepts_its_own_signatures(model: Model, stream: bool) -> None:
    with emulate(CALL) as server, _client() as client:
        context = Context(messages=(UserMessage.of("read a"),), tools=(TOOL,))
        context = _loop(client, context, _at(model, server), stream=stream)
        context = _loop(client, context.add(UserMessage.of("again")), _at(model, server), stream=stream)
        assert [request.status for request in server.emulator.requests] == [200, 200, 200]
        first = context.messages[1]
        assert isinstance(first, AssistantMessage)
        assert first.text() == "Reading."
        assert first.usage is not None
        assert first.usage.input > 0


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_signatures_of_another_endpoint_are_refused_and_the_client_leaves_them_out(model: Model) -> None:
    with emulate(CALL) as server, emulate(key="another") as other, _client() as client:
        context = Context(messages=(UserMessage.of("read a"),), tools=(TOOL,))
        context = _loop(client, context, _at(model, server), stream=True)
        in_tool_loop = replace(context, messages=context.messages[:3])
        reply = client.complete(in_tool_loop, _at(model, other), options=THINK)
        assert [(note.details or {})["kind"] for note in reply.diagnostics] == [FailureKind.OPAQUE_REJECTED]
        assert [request.refusal for request in other.emulator.requests] == ["signature", None]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_a_conversation_of_all_models_is_never_refused(model: Model) -> None:
    with emulate() as server, _client() as client:
        context = Context(tools=(TOOL,))
        order = (model, *MODELS, model)
        for number, each in enumerate(order):
            server.emulator.script.add(CALL)
            context = context.add(UserMessage.of(f"question {number}"))
            context = _loop(client, context, _at(each, server), stream=bool(number % 2))
        assert {request.refusal for request in server.emulator.requests} == {None}
        assert len(server.emulator.requests) == 2 * len(order)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_what_check_names_is_refused_in_the_form_of_the_provider(model: Model) -> None:
    with emulate() as server:
        request = prepare(Context(messages=(UserMessage.of("hi"),)), _at(model, server), options=Options(max_tokens=9))
        body = {key: value for key, value in request.body.items() if key not in ("messages", "input", "contents")}
        reply = httpx2.post(request.url, json=body, headers=request.headers)
        assert reply.status_code == 400
        assert server.emulator.requests[0].refusal


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_faults_are_those_of_the_script(model: Model) -> None:
    steps = (Step(status=429, retry_after=2), Step(status=529), Step(cut_after=3), Step(fail_after=3), Step(text="ok"))
    kinds: list[object] = []
    waits: list[float | None] = []
    with emulate(*steps) as server, _client() as client:
        for _ in steps:
            try:
                client.complete(
                    Context(messages=(UserMessage.of("hi"),)), _at(model, server), options=replace(THINK, stream=True)
                )
                kinds.append("ok")
            except RequestFailed as error:
                kinds.append(error.failure.kind)
                waits.append(error.failure.retry_after)
    assert waits[0] == 2
    assert kinds[:3] == [FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.NETWORK]
    assert kinds[3] in (FailureKind.OVERLOADED, FailureKind.SERVER)
    assert kinds[4] == "ok"


def test_a_step_can_be_for_one_model_only() -> None:
    with emulate(Step(text="for gpt", model="gpt-5.4"), Step(text="for all")) as server, _client() as client:
        texts = [
            client.complete(Context(messages=(UserMessage.of("hi"),)), _at(model, server)).text()
            for model in (MODELS[0], MODELS[1])
        ]
        assert texts == ["for all", "for gpt"]


def test_official_clients_count_and_are_answered() -> None:
    with (
        emulate(Step(thinking="hm", text="hello there"), Step(text="second")) as server,
        anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as sdk,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as chat,
    ):
        messages = [{"role": "user", "content": "hi"}]
        count = sdk.messages.count_tokens(model="claude-opus-4-8", messages=cast("list", messages))
        assert count.input_tokens > 0
        with sdk.messages.stream(
            model="claude-opus-4-8", max_tokens=50, messages=cast("list", messages), thinking={"type": "adaptive"}
        ) as stream:
            final = stream.get_final_message()
        assert [block.type for block in final.content] == ["thinking", "text"]
        reply = chat.chat.completions.create(model="gpt-5.4", messages=cast("list", messages))
        assert reply.choices[0].message.content == "second"


def test_a_wrong_key_is_refused() -> None:
    with (
        emulate(api_key="right") as server,
        anthropic.Anthropic(base_url=server.url, api_key="wrong", max_retries=0) as sdk,
        pytest.raises(anthropic.AuthenticationError),
    ):
        sdk.messages.create(model="claude-opus-4-8", max_tokens=9, messages=[{"role": "user", "content": "hi"}])


def test_steps_and_requests_are_reachable_over_http() -> None:
    with emulate() as server, _client() as client:
        assert httpx2.post(f"{server.url}/emulator/steps", json=[{"text": "posted"}]).status_code == 200
        reply = client.complete(Context(messages=(UserMessage.of("hi"),)), _at(MODELS[1], server))
        assert reply.text() == "posted"
        listed = httpx2.get(f"{server.url}/emulator/requests").json()
        assert [(each["model"], each["status"]) for each in listed] == [("gpt-5.4", 200)]
        assert httpx2.delete(f"{server.url}/emulator/requests").status_code == 200
        assert httpx2.get(f"{server.url}/emulator/requests").json() == []
        assert httpx2.post(f"{server.url}/emulator/steps", content=b"{").status_code == 400


def test_a_script_with_a_misspelt_key_is_refused() -> None:
    with pytest.raises(SettingsError, match="`txt`"):
        load_steps(b'[{"txt": "x"}]')


ENDPOINTS = [
    pytest.param(record, route, id=f"{record.name} {route.method} {route.path}")
    for record in all_protocols()
    for route in record.routes
]


@pytest.mark.parametrize(("record", "route"), ENDPOINTS)
def test_every_endpoint_of_every_protocol_is_answered(record: Protocol, route: Route) -> None:
    prompt = Prompt(context=Context().add(UserMessage.of("hi")), model=record.example.id)
    body = encode_request(replace(prompt, options=Options(max_tokens=100)), model=record.example)
    if route.kind == "count" and record.token_count is not None:
        body = record.token_count.body(body, resolve_endpoint(record.example))
    query = "&".join(f"{name[1:]}={value}" for name, value in route.evidence.items() if name.startswith("?"))
    headers = {name: value for name, value in route.evidence.items() if not name.startswith("?")}
    headers["anthropic-version"] = "2023-06-01"
    path = route.path.replace("{model}", record.example.id).replace("{reply}", "resp_1")
    reply = Emulator().respond(route.method, f"{path}?{query}", headers, json.dumps(body).encode())
    is_served = route.kind in ("generate", "count", "models", "version")
    assert reply.status == (200 if is_served else 404), reply.body


def test_the_call_of_a_function_in_a_namespace_names_it():
    function = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}
    group = {"type": "namespace", "name": "files", "description": "Files.", "tools": [function]}
    body = json.dumps({"model": "gpt-5.4", "input": "Hi", "tools": [group]}).encode()
    emulator = Emulator(Step(calls=(EmulatedCall(name="read"),)))
    reply = emulator.respond("POST", "/v1/responses", {"authorization": "Bearer any"}, body)
    (call,) = [item for item in json.loads(reply.body)["output"] if item["type"] == "function_call"]
    assert (call["name"], call["namespace"]) == ("read", "files")


STEPS = {
    "fields with hyphens": ({"text": "Hi", "retry-after": 2}, Step(text="Hi", retry_after=2)),
    "fields with underscores": ({"text": "Hi", "retry_after": 2}, Step(text="Hi", retry_after=2)),
    "calls as dicts": ({"calls": [{"name": "read", "arguments": {"path": "a"}}]}, Step(calls=CALL.calls)),
}


@pytest.mark.parametrize(("given", "meant"), STEPS.values(), ids=STEPS.keys())
def test_a_dict_with_the_fields_of_a_step_is_one(given, meant):
    assert Emulator(given).script.take("m") == meant
    emulator = Emulator()
    emulator.script.add(given)
    assert emulator.script.take("m") == meant


NO_STEPS = {
    "an unknown field": ({"txt": "Hi"}, "step 1: Object contains unknown field `txt`; the fields of a step are"),
    "a wrong type": ({"text": 5}, "step 1: Expected `str | null`, got `int`"),
    "a wrong type in a Step": (Step(text=5), "step 1: Expected `str | null`, got `int`"),  # pyright: ignore[reportArgumentType]
    "a text": ("Hi", "step 1 is of type str; pass a Step, or a dict with its fields"),
    "a wrong call": ({"calls": [{"tool": "read"}]}, "step 1: Object contains unknown field `tool`"),
}


@pytest.mark.parametrize(("given", "reason"), NO_STEPS.values(), ids=NO_STEPS.keys())
def test_what_is_no_step_is_refused_with_a_sentence_when_it_is_given(given, reason):
    with pytest.raises(SettingsError) as caught:
        Emulator(given)
    assert str(caught.value).startswith(reason)


def test_a_server_of_the_users_own_may_have_loaded_any_family_of_models():
    with emulate() as running, Client(base_url=running.url, retry=0) as client:
        for name in ("ollama/qwen3", "ollama/gemma4", "ollama/qwen3:8b", "ollama/llama3.2"):
            assert client.complete("Hello", name).text()
        with pytest.raises(RequestFailed, match="model 'no-such-family' not found"):
            client.complete("Hello", "ollama/no-such-family")
