"""`segue probe`: what it finds out about servers that refuse one thing, the emulator, llama.cpp and the gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from cli.running import run
from gateway.running import running
from segue import Catalogue, Context, Model, RequestFailed, UserMessage, load_catalogue, prepare
from segue.cli.statuses import Status
from segue.protocols.api import resolve_endpoint
from segue.testing.emulator import emulate
from segue.testing.probing import Card, probe, quick_client
from servers.llama import WIRES, LlamaServer

Refusing = Callable[[dict[str, Any]], bool]


def ask(refuses: Refusing, model: str = "any", **reply: Any) -> Card:
    """Probe a Chat server that answers everything but what one rule refuses."""

    def serve(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.read())
        if refuses(body):
            return httpx2.Response(400, json={"error": {"message": "This is not supported.", "type": "invalid"}})
        message = {"role": "assistant", "content": "red mango 4711", **reply}
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            call = {"id": "c1", "type": "function", "function": {"name": "look_up_code", "arguments": '{"room": "12"}'}}
            message = {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "c2"}]}
        choice = {"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": "any"}
        if body.get("stream"):
            chunk = {**head, "choices": [{**choice, "delta": message}]}
            return httpx2.Response(
                200,
                headers={"content-type": "text/event-stream"},
                content=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(),
            )
        return httpx2.Response(200, json={**head, "choices": [{**choice, "message": message}], "usage": usage})

    target = Model(model, "mine", "openai-chat", base_url="http://127.0.0.1:1/v1")
    with quick_client(None, transport=httpx2.MockTransport(serve)) as client:
        return probe(target, client)


def verdicts(card: Card) -> dict[str, str]:
    return {finding.question: finding.verdict for finding in card.findings}


def test_a_server_that_accepts_everything():
    card = ask(lambda body: body["model"] != "any")
    assert verdicts(card) == {
        "text": "yes",
        "usage in replies": "yes",
        "streaming": "yes",
        "usage in streams": "no",
        "system prompt": "yes",
        "forced tool choice": "yes",
        "tools": "yes",
        "tool results": "yes",
        "parallel calls": "yes",
        "images": "yes",
        "output schema": "no",
        "sampling options": "yes",
        "reasoning": "no",
        "unknown model refused": "yes",
    }
    assert card.model.rules == {}
    assert card.model.input == ("text", "image")


def holds_image(body: dict[str, Any]) -> bool:
    return "image_url" in json.dumps(body["messages"])


@pytest.mark.parametrize(
    ("question", "refuses", "learned"),
    [
        ("system prompt", lambda body: body["messages"][0]["role"] != "user", {"system_prompt": False}),
        ("tools", lambda body: "tools" in body, {"tools": False, "tool_choices": ["auto", "none"]}),
        ("forced tool choice", lambda body: body.get("tool_choice") == "required", {"tool_choices": ["auto", "none"]}),
        ("images", holds_image, {}),
        ("output schema", lambda body: "response_format" in body, {}),
        ("sampling options", lambda body: "top_p" in body or "seed" in body, {"refused_options": ["top_p", "seed"]}),
        ("tool results", lambda body: body["messages"][-1]["role"] == "tool", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_server_that_refuses_one_thing(question: str, refuses: Refusing, learned: dict[str, object]) -> None:
    card = ask(refuses)
    assert verdicts(card)[question] == "no"
    finding = next(each for each in card.findings if each.question == question and each.verdict == "no")
    assert question == "sampling options" or finding.refusal == "This is not supported."
    assert card.model.rules == learned
    # What was learned becomes a catalogue, and a request by it has nothing that the server refuses.
    catalogue = Catalogue.load(json.dumps(card.catalogue("2026-11-17")))
    model = catalogue.complete(catalogue.get("mine/any"))
    assert model.base_url == "http://127.0.0.1:1/v1"
    context = Context(system_prompt="Be brief.", messages=(UserMessage.of("Hi"),))
    if question != "tool results":
        assert not refuses(json.loads(prepare(context, model).content))
    plain = resolve_endpoint(Model("any", "x", "openai-chat")).rules
    assert all(getattr(resolve_endpoint(model).rules, rule) != getattr(plain, rule) for rule in learned)


def test_a_server_that_does_not_answer_at_all_is_an_error():
    with pytest.raises(RequestFailed):
        ask(lambda body: True)


@pytest.mark.parametrize(
    ("protocol", "path", "model", "window"),
    [
        ("anthropic-messages", "", "claude-opus-5-5", 1_000_000),
        ("openai-chat", "/v1", "gpt-4o", 128_000),
        ("google-genai", "/v1beta", "gemini-3.1-pro-preview", 1_048_576),
    ],
)
def test_the_emulator_says_what_its_providers_say(protocol: str, path: str, model: str, window: int) -> None:
    with emulate() as server, quick_client("any") as client:
        card = probe(Model(model, "here", protocol, base_url=server.url + path), client, overflow=1_100_000)
    found = verdicts(card)
    assert found["unknown model refused"] == found["overflow refused"] == found["streaming"] == "yes"
    assert card.model.context_window == window
    bound = found.get("reasoning bound to its prefix")
    assert bound == ("yes" if protocol == "anthropic-messages" else None)
    assert card.model.rules.get("bound_prefix", False) is (bound == "yes")


@pytest.mark.parametrize("protocol", WIRES)
def test_the_server_of_llama_cpp(llama_server: LlamaServer, protocol: str) -> None:
    with quick_client(None) as client:
        card = probe(llama_server.model(protocol), client, overflow=llama_server.window * 2)
    found = verdicts(card)
    assert {found["text"], found["streaming"], found["tools"], found["tool results"]} == {"yes"}
    assert found["images"] == "no"
    assert found["overflow refused"] == "yes"
    assert found["unknown model refused"] == "no"


def test_the_gateway_itself() -> None:
    with running(store="none") as gateway, quick_client("any") as client:
        card = probe(Model("m-anthropic", "gateway", "openai-chat", base_url=f"{gateway.url}/v1"), client)
    assert verdicts(card)["streaming"] == "yes"
    assert verdicts(card)["usage in streams"] == "yes"


def test_the_command_prints_a_card_and_writes_a_catalogue(tmp_path):
    path = tmp_path / "mine.json"
    with emulate() as server:
        done = run(
            "probe",
            f"{server.url}/v1",
            "--protocol",
            "openai-chat",
            "--model",
            "gpt-4o",
            "--provider",
            "mine",
            "-o",
            path,
        )
        assert done.status == 0, done.err
        assert "unknown model refused" in done.out
        assert load_catalogue(path).get("mine/gpt-4o").protocol == "openai-chat"
        again = run("probe", f"{server.url}/v1", "--protocol", "openai-chat", "--model", "gpt-4o", "-o", path)
        assert (again.status, "is there already" in again.err) == (2, True)
    assert run("probe", f"{server.url}/v1", "--protocol", "openai-chat", "--model", "gpt-4o").status == Status.FAILED
    assert "nowhere is not an address" in run("probe", "nowhere", "--protocol", "openai-chat").err
    unset = run("probe", server.url, "--protocol", "openai-chat", "--key-variable", "NO_SUCH_KEY")
    assert (unset.status, "is not set" in unset.err) == (2, True)
