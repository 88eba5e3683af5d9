"""`segue ask`: one question and one answer, in pipes and in a terminal, with files, sessions and schemas."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from cli.answering import AnsweringServer
from cli.running import run
from cli.terminal import NO_KEYS, Terminal
from cli.test_chat import SlowServer
from segue import read_session

pytest.importorskip("httpx2")

PNG = b"\x89PNG\r\n\x1a\n"


def ask(*arguments: object, stdin: str | bytes = b"", env: dict[str, str] | None = None):
    return run("ask", *arguments, stdin=stdin, env={**NO_KEYS, **(env or {})})


@pytest.fixture
def server():
    servers: list[AnsweringServer] = []

    def start(*arguments: str, **settings: object):
        servers.append(AnsweringServer(*arguments, **settings))
        return servers[-1], ("-m", "local/x", "--protocol", "openai-chat", "--base-url", servers[-1].url)

    yield start
    for each in servers:
        each.close()


QUESTIONS = {
    "an argument": (("hello there",), "", "hello there\n"),
    "several arguments": (("hello", "there"), "", "hello there\n"),
    "a pipe": ((), "from a pipe\n", "from a pipe\n"),
    "a pipe by name": (("-",), "from a pipe\n", "from a pipe\n"),
    "a pipe and an argument": (("what is it?",), "data\n", "data what is it?\n"),
}


@pytest.mark.parametrize(("arguments", "piped", "answer"), QUESTIONS.values(), ids=QUESTIONS.keys())
def test_the_answer_alone_goes_to_standard_output(arguments, piped, answer):
    assert ask(*arguments, "-m", "echo", stdin=piped) == (0, answer, "")


def test_an_answer_that_ends_its_line_gets_no_other_line_break(server):
    _, target = server("Yes.\n")
    assert ask("well?", *target).out == "Yes.\n"


def test_files_are_sent_by_their_content(server, tmp_path):
    picture, notes = tmp_path / "picture", tmp_path / "notes.txt"
    picture.write_bytes(PNG)
    notes.write_text("remember the milk")
    answering, target = server()
    assert ask("look", "-f", picture, "--file", notes, *target).status == 0
    content = answering.requests[0]["messages"][0]["content"]
    assert any(part.get("image_url", {}).get("url", "").startswith("data:image/png;base64,") for part in content)
    assert "remember the milk" in json.dumps(content)
    assert content[-1]["text"] == "look"


def test_an_image_can_come_from_a_pipe(server):
    answering, target = server()
    assert ask("what is it?", *target, stdin=PNG + b"\xff\xfe").status == 0
    assert any("image_url" in part for part in answering.requests[0]["messages"][0]["content"])


def test_a_session_is_continued_with_its_last_model(tmp_path):
    session = tmp_path / "s.jsonl"
    ask("one", "-m", "echo", "-s", session, "--system", "Be brief.")
    second = ask("two", "--session", session)
    assert (second.status, second.out) == (0, "two\n")
    assert f"(segue/echo: the model of the last answer in {session})" in second.err
    stored = read_session(session)
    assert (stored.system_prompt, len(stored.messages)) == ("Be brief.", 4)


def test_a_schema_makes_the_answer_json(server, tmp_path):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    answering, target = server('{"a": 1}')
    for given in (json.dumps(schema), file):
        assert ask("give", "--schema", given, *target) == (0, '{"a": 1}\n', "")
    assert answering.requests[0]["response_format"]["json_schema"]["schema"] == schema
    whole = json.loads(ask("give", "--schema", file, "--json", *target).out)
    assert whole["output"] == {"a": 1}


def test_an_answer_that_is_not_json_is_status_1(server):
    _, target = server("Sorry.")
    answered = ask("give", "--schema", "{}", *target)
    assert (answered.status, answered.out) == (1, "Sorry.\n")
    assert "is not JSON" in answered.err


def test_json_has_the_answer_with_its_model_tokens_and_changes():
    whole = json.loads(ask("hello", "-m", "echo", "--json").out)
    assert (whole["text"], whole["model"], whole["stopReason"]) == ("hello", "segue/echo", "stop")
    assert whole["usage"]["output"] == 1
    assert whole["changes"] == []


def test_a_key_can_be_given(server, tmp_path):
    answering, target = server()
    file = tmp_path / "key"
    file.write_text("sk-from-a-file\n")
    ask("hello", "--key", "sk-given", *target)
    ask("hello", "--key", f"@{file}", *target)
    assert answering.keys == ["Bearer sk-given", "Bearer sk-from-a-file"]


def test_the_first_model_whose_key_is_set_answers():
    answered = ask("hello", env={"OPENAI_API_KEY": "sk-x", "HTTPS_PROXY": "http://127.0.0.1:9"})
    assert "OPENAI_API_KEY is set" in answered.err
    assert answered.status == 4


ENDINGS = {
    "no key": (("-m", "openai/gpt-5.4"), {"OPENAI_API_KEY": ""}, 3, "run `segue keys set openai`, or use --key"),
    "no model": ((), {}, 3, "-m echo"),
    "no server": (
        ("-m", "local/x", "--protocol", "openai-chat", "--base-url", "http://127.0.0.1:9"),
        {},
        4,
        "the connection failed",
    ),
    "an unknown model": (("-m", "gtp-5.4"), {}, 2, "openai/gpt-5.4"),
    "a schema that is no JSON": (("-m", "echo", "--schema", "{oops"), {}, 2, "--schema: the schema is not valid JSON"),
    "a schema that is no object": (("-m", "echo", "--schema", __file__), {}, 2, "not valid JSON"),
    "a schema file that is not there": (("-m", "echo", "--schema", "nowhere.json"), {}, 2, "nowhere.json: No such"),
    "a file that is not there": (("-m", "echo", "-f", "nowhere.png"), {}, 2, "nowhere.png"),
    "a key file that is not there": (("-m", "echo", "--key", "@nowhere"), {}, 2, "nowhere: No such"),
}


@pytest.mark.parametrize(("arguments", "env", "status", "text"), ENDINGS.values(), ids=ENDINGS.keys())
def test_every_ending_has_its_status(arguments, env, status, text):
    ended = ask("hello", *arguments, env=env)
    assert (ended.status, ended.out.strip()) == (status, "")
    assert text in ended.err
    assert any(line.startswith("segue: ") for line in ended.err.splitlines())


@pytest.mark.parametrize(("code", "status"), [(401, 3), (403, 3), (400, 4)])
def test_a_refusal_has_its_status(code, status, server):
    _, target = server(status=code)
    answered = ask("hello", *target)
    assert (answered.status, "no, thank you" in answered.err) == (status, True)


def test_an_incomplete_answer_is_status_4(server):
    _, target = server("Once", finish="length")
    answered = ask("hello", *target)
    assert (answered.status, answered.out) == (4, "Once\n")
    assert "--max-tokens" in answered.err


def test_a_call_of_a_tool_is_status_4(server):
    _, target = server(call="read", finish="tool_calls")
    answered = ask("hello", *target)
    assert (answered.status, "(read)" in answered.err) == (4, True)


def test_without_a_question_the_usage_is_shown():
    assert ask("-m", "echo").status == 2


def test_a_closed_standard_input_is_no_question():
    command = f"{sys.executable} -m segue ask hello -m echo <&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_ctrl_c_keeps_the_part_that_arrived(tmp_path):
    slow, session = SlowServer(), tmp_path / "s.jsonl"
    target = ("-m", "local/slow", "--protocol", "openai-chat", "--base-url", slow.url, "-s", session)
    terminal = Terminal("ask", "a story", *target)
    try:
        terminal.wait_for("Once upon")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("stopped")
        assert terminal.process.wait(timeout=60) == 130
    finally:
        terminal.close()
        slow.close()
    last = read_session(session).messages[-1]
    assert last.role == "assistant"
    assert last.stop_reason == "aborted"


def test_a_terminal_asks_for_a_question():
    terminal = Terminal("ask", "-m", "echo")
    try:
        terminal.wait_for("there is no question")
        assert terminal.process.wait(timeout=60) == 2
    finally:
        terminal.close()


def test_the_url_of_the_environment_is_used_and_can_be_refused(server, tmp_path):
    answering, _ = server("From the proxy.")
    env = {"OPENAI_BASE_URL": answering.url, "XDG_CONFIG_HOME": str(tmp_path)}
    words = ("well?", "-m", "openai/some-model", "--protocol", "openai-chat")
    assert ask(*words, env=env).out == "From the proxy.\n"
    refused = ask(*words, "--no-url-variables", env=env)
    assert (refused.status, "there is no API key for openai" in refused.err) == (3, True)
    assert run("config", "set", "url_variables", "maybe", env=env).status == 2
    assert run("config", "set", "url_variables", "off", env=env).status == 0
    assert ask(*words, env=env).status == 3
    assert len(answering.requests) == 1
