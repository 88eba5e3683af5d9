"""Models of llm over segue's emulator: in Python, and in the real program with its log between the commands."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import llm
import pytest
from llm_segue import AsyncSegueModel, SegueModel, register_models

import segue
from segue.testing.emulator import EmulatorServer, emulate

MODELS = (
    "anthropic/claude-opus-5-5",
    "openai/gpt-5.4",
    "google/gemini-3.1-pro-preview",
    "deepseek/deepseek-v4-pro",
)
STEP = {"thinking": "I have to look.", "text": "Let me see.", "calls": [{"name": "look", "arguments": {"at": "sky"}}]}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def look(at: str) -> str:
    """Look at something."""
    return f"{at}: blue"


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with emulate() as running:
        yield running


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """llm keeps its keys and its log here."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    keys = dict.fromkeys((name.partition("/")[0] for name in MODELS), "any")
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    return tmp_path


def make(name: str) -> SegueModel:
    return SegueModel(name)


def opaque_part(signature: str) -> str:
    """Give what a request has of a signature: of OpenAI it is an item, with the encrypted content."""
    return json.loads(signature)["encrypted_content"] if signature.startswith("{") else signature


def refusals(server: EmulatorServer) -> list[object]:
    return [each.refusal for each in server.emulator.requests]


def signatures(parts: list[Any]) -> list[str]:
    states = [json.loads(part.provider_metadata["segue"]["message"]) for part in parts]
    return [
        value
        for state in states
        for piece in state["content"]
        for field, value in piece.items()
        if field.endswith("Signature")
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_tool_is_called_and_reasoning_comes_back_with_the_next_request(server, name, stream):
    """The emulator signs reasoning, and refuses or drops what is not the one that it made."""
    server.emulator.script.add(STEP)
    chain = make(name).chain(
        "What colour is the sky?",
        tools=[look],
        stream=stream,
        options={"thinking": "low", "max_tokens": 2000, "base_url": server.url},
    )
    assert chain.text().endswith("sky: blue")
    assert refusals(server) == [None, None]
    first = chain._responses[0]
    found = signatures(first.messages()[0].parts)
    assert found
    assert server.emulator.withheld(server.emulator.requests[1], found) == ()
    if not name.startswith("deepseek"):  # it has no opaque state
        assert opaque_part(found[0]) in str(server.emulator.requests[1].body)
    assert first.usage().input > 0


@pytest.mark.parametrize("after", [name for name in MODELS if not name.startswith("anthropic")])
def test_a_switch_of_model_and_back_keeps_the_signature_of_the_first(server, after):
    server.emulator.script.add({"thinking": "Blue, I think.", "text": "Blue."})
    options = {"thinking": "low", "max_tokens": 2000, "base_url": server.url}
    messages = [llm.user("The sky?")]
    for name, text in ((MODELS[0], "The sea?"), (after, "The grass?"), (MODELS[0], "")):
        response = make(name).prompt(messages=messages, options=options)
        messages += [*response.messages(), llm.user(text)]
    assert refusals(server) == [None] * 3
    (signature,) = signatures(messages[1].parts)[:1]
    _, elsewhere, back = server.emulator.requests
    assert signature not in str(elsewhere.body)
    assert signature in str(back.body)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_fallback_gets_the_history_projected_for_it(server, stream):
    server.emulator.script.add({"thinking": "Blue, I think.", "text": "Blue."})
    options = {"thinking": "low", "max_tokens": 2000, "base_url": server.url, "fallbacks": MODELS[1]}
    model = make(MODELS[0])
    messages = [llm.user("The sky?"), *model.prompt(messages=[llm.user("The sky?")], options=options).messages()]
    server.emulator.script.add(*[{"status": 529, "model": "claude-opus-5-5"}] * 3)
    answer = model.prompt(messages=[*messages, llm.user("The sea?")], options=options, stream=stream)
    assert answer.text() == "You wrote: The sea?"
    assert answer.resolved_model == "gpt-5.4"
    assert server.emulator.requests[-1].refusal is None


def test_a_failure_is_raised(server):
    server.emulator.script.add({"status": 400, "message": "no"})
    with pytest.raises(segue.RequestFailed):
        make(MODELS[1]).prompt("Hi", options={"base_url": server.url}).text()


def test_it_also_runs_asynchronously(server):
    async def ask() -> str:
        response = AsyncSegueModel(MODELS[2]).prompt("Hi", options={"base_url": server.url})
        return await response.text()

    assert asyncio.run(ask()) == "You wrote: Hi"


@pytest.mark.parametrize("name", MODELS[:3])
def test_a_schema_and_an_attachment(server, name):
    server.emulator.script.add({"text": '{"name": "blue"}'})
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    picture = llm.Attachment(type="image/png", content=PNG)
    options = {"base_url": server.url}
    reply = make(name).prompt("Which colour?", schema=schema, attachments=[picture], options=options)
    assert json.loads(reply.text()) == {"name": "blue"}
    assert refusals(server) == [None]
    assert "iVBORw0KGgo" in str(server.emulator.requests[0].body)


def test_the_models_that_have_a_key_are_registered_and_echo(home, monkeypatch):
    for name in [name for name in os.environ if name.endswith(("_KEY", "_TOKEN")) or name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))

    def registered() -> list[str]:
        names: list[str] = []
        register_models(lambda model, _: names.append(model.model_id))
        return names

    names = registered()  # the keys of `llm keys`
    assert {f"segue/{name}" for name in MODELS} <= set(names)
    assert {name.split("/")[1] for name in names} == {name.partition("/")[0] for name in MODELS} | {"segue"}
    (home / "keys.json").unlink()
    assert registered() == ["segue/segue/echo"]
    monkeypatch.setenv("MISTRAL_API_KEY", "any")
    assert {name.split("/")[1] for name in registered()} == {"mistral", "segue"}


def run(*words: str) -> str:
    command = [sys.executable, "-m", "llm", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not entry_points(group="llm", name="segue"), reason="as a plug-in (it is not installed)")
def test_the_program_continues_a_conversation_on_another_model_and_back(server, home):
    server.emulator.script.add({"thinking": "Blue, I think.", "text": "Blue."})
    more = ("-o", "base_url", server.url, "-o", "max_tokens", "2000", "-o", "thinking", "low")
    assert run("-m", f"segue/{MODELS[0]}", "The sky?", *more).strip() == "Blue."
    assert run("-c", "-m", f"segue/{MODELS[1]}", "The sea?", *more).strip() == "You wrote: The sea?"
    assert run("-c", "-m", f"segue/{MODELS[0]}", "The grass?", *more).strip() == "You wrote: The grass?"
    assert refusals(server) == [None] * 3
    with sqlite3.connect(home / "logs.db") as log:
        assert "thinkingSignature" in str(log.execute("select payload from parts").fetchall())
    first = next(turn for turn in server.emulator.requests[2].body["messages"] if turn["role"] == "assistant")
    assert first["content"][0]["type"] == "thinking"
