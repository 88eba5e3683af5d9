"""Stored replies and compacted histories of the Responses protocol, with the openai SDK as the client."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from google import genai
from google.genai import types
from tests.gateway.running import KEYS, Running, config_text, make_gateway, running

from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.testing.emulator import EmulatedCall, Step, emulate, serve_in_thread

CLIENT_KEYS = {"KEY_A": "sgw-" + "a" * 40, "KEY_B": "sgw-" + "b" * 40}
TENANTS = '[listen]\nkeys = ["env:KEY_A", "env:KEY_B"]'
TOOLS: Any = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]


@contextmanager
def sdk(url: str, key: str = "client-key") -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        yield client


@pytest.fixture
def gateway(tmp_path: Path) -> Generator[Running]:
    with running(store=f"sqlite:{tmp_path}/g.db") as made:
        yield made


@pytest.mark.parametrize("model", ["m-anthropic", "m-gemini", "m-chat"])
def test_a_stored_reply_is_read_listed_and_deleted(gateway: Running, model: str) -> None:
    gateway.upstream.emulator.script.add(
        Step(thinking="look", text="looking", calls=(EmulatedCall(name="read"),)), Step(text="done")
    )
    with sdk(gateway.url) as client:
        first = client.responses.create(model=model, input="question one", tools=TOOLS)
        call = next(item for item in first.output if item.type == "function_call")
        second = client.responses.create(
            model=model,
            input=[{"type": "function_call_output", "call_id": call.call_id, "output": "file"}],
            previous_response_id=first.id,
            tools=TOOLS,
        )
        found = client.responses.retrieve(second.id)
        assert found.output_text == "done" == second.output_text
        assert (found.id, found.model, found.status) == (second.id, model, "completed")
        assert found.previous_response_id == first.id
        assert found.created_at == second.created_at > 1_700_000_000
        assert found.usage == second.usage
        assert found.model_dump()["store"] is True
        assert [item.model_dump() for item in client.responses.retrieve(first.id).output] == [
            item.model_dump() for item in first.output
        ]

        items = list(client.responses.input_items.list(second.id, order="asc", limit=2))
        kinds = [item.type for item in items if item.type != "reasoning"]
        assert kinds == ["message", "message", "function_call", "function_call_output"]
        assert len({item.id for item in items}) == len(items)
        texts = [item.content[0].text for item in items if item.type == "message"]  # pyright: ignore[reportAttributeAccessIssue, reportOptionalSubscript]
        assert texts == ["question one", "looking"]
        newest = client.responses.input_items.list(second.id, limit=1)
        assert newest.data[0].type == "function_call_output"
        assert newest.has_more

        client.responses.delete(second.id)
        for use in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
            with pytest.raises(openai.NotFoundError, match="not found"):
                use(second.id)
        with pytest.raises(openai.BadRequestError, match="not found"):
            client.responses.create(model=model, input="on", previous_response_id=second.id)
        assert client.responses.retrieve(first.id).id == first.id


REFUSALS: dict[str, tuple[Any, str]] = {
    "a synchronous reply is not cancelled": (lambda client, name: client.responses.cancel(name), "synchronous"),
    "a synchronous reply is not streamed again": (
        lambda client, name: client.responses.retrieve(name, stream=True),
        "background",
    ),
    "an order has to be one of two": (
        lambda client, name: client.responses.input_items.list(name, order="up"),
        "'order'",
    ),
    "a page has at most 100 items": (lambda client, name: client.responses.input_items.list(name, limit=101), "100"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_stored_reply_cannot_do_is_refused_in_openais_form(gateway: Running, case: str) -> None:
    use, message = REFUSALS[case]
    with sdk(gateway.url) as client:
        reply = client.responses.create(model="m-anthropic", input="hi")
        with pytest.raises(openai.BadRequestError, match=message) as caught:
            use(client, reply.id)
        assert caught.value.type == "invalid_request_error"


def test_another_key_cannot_see_or_delete_a_stored_reply(tmp_path: Path) -> None:
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=TENANTS))
        made = Gateway(config, environment={**KEYS, **CLIENT_KEYS})
        with (
            serve_in_thread(create_app(gateway=made)) as url,
            sdk(url, CLIENT_KEYS["KEY_A"]) as owner,
            sdk(url, CLIENT_KEYS["KEY_B"]) as other,
        ):
            for model in ("m-anthropic", "gpt-5.4"):  # stored here, and by the provider
                reply = owner.responses.create(model=model, input="a secret")
                asked = len(upstream.emulator.requests)
                for use in (other.responses.retrieve, other.responses.delete, other.responses.input_items.list):
                    with pytest.raises(openai.NotFoundError):
                        use(reply.id)
                with pytest.raises(openai.NotFoundError):
                    other.responses.cancel(reply.id)
                assert len(upstream.emulator.requests) == asked
            assert owner.responses.retrieve(owner.responses.create(model="m-anthropic", input="x").id)


KEPT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}


class Provider:
    """An ASGI application that keeps replies as OpenAI does, and notes who asks."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = dict(scope["headers"])
        query = scope["query_string"].decode()
        self.seen.append((scope["method"], scope["path"], query, headers.get(b"authorization", b"").decode()))
        reply: dict[str, Any] = {"id": "resp_kept", "object": "response", "status": "completed", "model": "gpt-5.4"}
        reply |= {"created_at": 1_800_000_000, "output": [KEPT], "usage": None}
        if scope["path"].endswith("/compact"):
            given = json.loads(body)["input"]
            item = {"id": "cmp_1", "type": "compaction", "encrypted_content": "of-the-provider"}
            usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
            reply = {"id": "resp_c", "object": "response.compaction", "created_at": 1, "output": [*given, item]}
            reply["usage"] = usage
        elif scope["path"].endswith("/input_items"):
            reply = {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}
        elif scope["method"] == "DELETE":
            reply = {"id": "resp_kept", "object": "response", "deleted": True}
        data = json.dumps(reply).encode()
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": data})


def test_a_reply_that_the_provider_keeps_is_asked_for_there(tmp_path: Path) -> None:
    provider = Provider()
    with serve_in_thread(provider) as upstream:
        made = make_gateway(load_config(config_text(upstream, store=f"sqlite:{tmp_path}/g.db")))
        with serve_in_thread(create_app(gateway=made)) as url, sdk(url) as client:
            reply = client.responses.create(model="gpt-5.4", input="hi")
            assert reply.id == "resp_kept"
            assert client.responses.retrieve(reply.id, include=["reasoning.encrypted_content"]).id == reply.id
            assert client.responses.cancel(reply.id).id == reply.id
            assert list(client.responses.input_items.list(reply.id, order="asc")) == []
            client.responses.delete(reply.id)
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(reply.id)
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve("resp_of_another_program")
    base = "/v1/responses"
    assert [(method, path) for method, path, _, _ in provider.seen] == [
        ("POST", base),
        ("GET", f"{base}/resp_kept"),
        ("POST", f"{base}/resp_kept/cancel"),
        ("GET", f"{base}/resp_kept/input_items"),
        ("DELETE", f"{base}/resp_kept"),
    ]
    assert provider.seen[3][2] == "order=asc"
    assert {key for _, _, _, key in provider.seen} == {"Bearer sk-upstream-key"}


def test_a_compacted_history_continues_on_any_model(gateway: Running) -> None:
    script = gateway.upstream.emulator.script
    script.add(Step(text="Goal: count the owls. Exact names: owls.txt"))
    history: Any = [
        {"role": "user", "content": "count the owls"},
        {"role": "assistant", "content": "There are three owls in owls.txt."},
        {"role": "user", "content": "and the cats"},
    ]
    with sdk(gateway.url) as client:
        compacted = client.responses.compact(model="m-anthropic", input=history)
        assert compacted.object == "response.compaction"
        assert compacted.usage.total_tokens > 0
        assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
        assert "Goal" not in compacted.model_dump_json(warnings=False)  # the summary is encrypted
        quoted = json.dumps(gateway.upstream.emulator.requests[-1].body)
        assert "three owls" in quoted

        given: Any = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
        for model in ("m-gemini", "m-responses", "m-anthropic"):
            script.add(Step(text="answer"))
            client.responses.create(model=model, input=[*given, {"role": "user", "content": "go on"}])
            last = gateway.upstream.emulator.requests[-1]
            assert last.refusal is None
            sent = json.dumps(last.body)
            assert "Exact names: owls.txt" in sent
            assert "three owls" not in sent
            assert "segueEnv" not in sent
        # Compacted again, the summary is material, and not a message of the user.
        script.add(Step(text="Goal: count cats."))
        again = client.responses.compact(model="m-anthropic", input=given)
        assert [item.type for item in again.output] == ["message", "message", "compaction"]


def test_a_model_asked_for_by_its_own_id_is_compacted_by_its_provider(tmp_path: Path) -> None:
    provider = Provider()
    with serve_in_thread(provider) as upstream:
        made = make_gateway(load_config(config_text(upstream, store=f"sqlite:{tmp_path}/g.db")))
        with serve_in_thread(create_app(gateway=made)) as url, sdk(url) as client:
            compacted = client.responses.compact(model="gpt-5.4", input=[{"role": "user", "content": "hi"}])
    item = compacted.output[-1]
    assert item.type == "compaction"
    assert item.encrypted_content == "of-the-provider"
    assert [path for _, path, _, _ in provider.seen] == ["/v1/responses/compact"]


def test_a_history_that_cannot_be_compacted_is_refused(gateway: Running) -> None:
    with sdk(gateway.url) as client:
        with pytest.raises(openai.BadRequestError, match="no input"):
            client.responses.compact(model="m-anthropic", input=[])
        gateway.upstream.emulator.script.add(*[Step(status=400, message="no such thing")] * 2)
        with pytest.raises(openai.BadRequestError, match="no such thing"):
            client.responses.compact(model="m-anthropic", input="hi")


@contextmanager
def google(url: str) -> Generator[Any]:
    with closing(genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=url))) as client:
        yield client


@pytest.mark.parametrize("model", ["m-anthropic", "m-chat"])
def test_a_stored_interaction_is_read_and_deleted(gateway: Running, model: str) -> None:
    gateway.upstream.emulator.script.add(Step(thinking="look", text="one"), Step(text="two"))
    with google(gateway.url) as client:
        first = client.interactions.create(model=model, input="question one")
        second = client.interactions.create(model=model, input="question two", previous_interaction_id=first.id)
        found = client.interactions.get(second.id)
        assert (found.id, found.model, found.status, found.output_text) == (second.id, model, "completed", "two")
        assert found.previous_interaction_id == first.id
        assert found.created.startswith("20")
        assert [step.type for step in found.steps] == ["model_output"]
        whole = client.interactions.get(second.id, include_input=True)
        assert [step.type for step in whole.steps] == ["user_input", "model_output"]
        assert whole.steps[0].content[0].text == "question two"
        for use in (client.interactions.cancel, lambda name: client.interactions.get(name, stream=True)):
            with pytest.raises(Exception, match=r"synchronous|background") as refused:
                use(second.id)
            assert getattr(refused.value, "status_code", None) == 400

        client.interactions.delete(second.id)
        for use in (client.interactions.get, client.interactions.delete, client.interactions.cancel):
            with pytest.raises(Exception, match="not found") as gone:
                use(second.id)
            assert getattr(gone.value, "status_code", None) == 404
        assert client.interactions.get(first.id).output_text == "one"
