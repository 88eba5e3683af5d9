"""`segue chat`: in a pipe, in a terminal, and what is stored when it is stopped."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from cli.answering import AnsweringServer
from cli.running import SESSION, run
from cli.terminal import NO_KEYS, Terminal
from client.wires import WIRES
from segue import AssistantMessage, TextContent, UserMessage, append_message, read_session
from segue.cli.prompt import read_question
from servers.scripted import ScriptedServer

pytest.importorskip("httpx2")


def chat(typed: str, *arguments: object):
    return run("chat", *arguments, stdin=typed, env=NO_KEYS)


def test_the_echo_model_answers_without_a_key():
    chatted = chat("hello there\n", "echo")
    assert (chatted.status, chatted.out) == (0, "hello there\n")


def test_quit_ends_a_chat_in_a_pipe():
    chatted = chat("hello\n/quit\nmore\n", "echo")
    assert (chatted.status, chatted.out) == (0, "hello\n")


def test_switching_models_shows_the_changes(tmp_path):
    session = tmp_path / "s.jsonl"
    session.write_bytes(SESSION.read_bytes())
    chatted = chat("/model openai/gpt-5.4\n/model echo\nand now?\n", "echo", "--session", session)
    assert "Your next message goes to openai/gpt-5.4. " in chatted.out
    assert "the model is now" not in chatted.err  # the echo model answered before, and answers again
    assert "thinking_as_text" in chatted.out
    assert chatted.out.endswith("and now?\n")
    grown = read_session(session)
    assert len(grown.messages) == len(read_session(SESSION).messages) + 2
    assert grown.messages[-1].role == "assistant"
    assert grown.messages[-1].model == "echo"


def test_a_switch_is_reported_when_the_other_model_answers(tmp_path):
    server = AnsweringServer()
    own = tmp_path / "own.json"
    dialect = {"auth": "none"}
    tiny = {"id": "tiny", "provider": "mine", "protocol": "openai-chat", "baseUrl": server.url, "dialect": dialect}
    own.write_text(json.dumps({"models": [tiny]}))
    try:
        chatted = chat("one\n/model mine/tiny\n/model\ntwo\nthree\n/model echo\nfour\n", "echo", "--catalogue", own)
    finally:
        server.close()
    assert chatted.err.count("(the model is now mine/tiny)") == 1
    assert chatted.err.count("(the model is now segue/echo)") == 1
    assert chatted.out.splitlines()[0] == "one"
    assert "Your next message goes to mine/tiny. Nothing was changed." in chatted.out


def test_a_switch_to_a_model_that_does_not_answer_has_not_taken_effect():
    chatted = run("chat", "echo", stdin="/model openai/gpt-5.4\nhello\n", env={**NO_KEYS, "OPENAI_API_KEY": ""})
    assert "the model is now" not in chatted.err
    assert (chatted.status, "use --key" in chatted.err) == (3, True)


REASONS = {
    "a key": ({"MISTRAL_API_KEY": "k"}, (), "Chatting with mistral/", "(MISTRAL_API_KEY is set; $1.50 for a million"),
    "a name": ({}, ("echo",), "Chatting with segue/echo. ", ""),
}


@pytest.mark.parametrize(("env", "arguments", "model", "reason"), REASONS.values(), ids=REASONS.keys())
def test_the_model_that_it_starts_with_is_named_with_the_reason(env, arguments, model, reason):
    started = run("chat", *arguments, stdin="", env={**NO_KEYS, **env}).err
    assert model in started
    assert reason in started


def test_the_model_of_a_session_is_the_reason(tmp_path):
    session = tmp_path / "s.jsonl"
    chat("hello\n", "echo", "--session", session)
    started = chat("", "--session", session).err
    assert f"Chatting with segue/echo (the model of the last answer in {session})" in started


def user_texts(session):
    pieces = [message.content[0] for message in read_session(session).messages if message.role == "user"]
    return [piece.text for piece in pieces if piece.kind == "text"]


@pytest.mark.parametrize("editing", [True, False])
def test_a_pasted_text_is_one_question(editing, tmp_path, monkeypatch):
    """With readline, and without it: then the program asks the terminal for the marks of a pasted text itself."""
    if not editing:
        (tmp_path / "readline.py").write_text("raise ImportError\n")
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    session = tmp_path / "s.jsonl"
    terminal = Terminal("chat", "echo", "--session", session, term="xterm-256color")
    try:
        terminal.wait_for("/help lists.*> ")
        assert "\x1b[?2004h" in terminal.seen
        terminal.type("look: \x1b[200~/first line\nsecond line\n\nlast line\x1b[201~\r")
        terminal.wait_for(r"last line.*last line\r\n.*> ")
        terminal.type("/quit\r")
        terminal.process.wait(timeout=60)
    finally:
        terminal.close()
    assert user_texts(session) == ["look: /first line\nsecond line\n\nlast line"]


def test_a_pasted_text_that_begins_with_a_slash_is_no_command(tmp_path):
    session = tmp_path / "s.jsonl"
    terminal = Terminal("chat", "echo", "--session", session, term="xterm-256color")
    try:
        terminal.wait_for("/help lists.*> ")
        terminal.type("\x1b[200~/usr/bin/x\nfails\x1b[201~\r")
        terminal.wait_for(r"fails.*fails\r\n.*> ")
        terminal.type("\x04")
        terminal.process.wait(timeout=60)
    finally:
        terminal.close()
    assert user_texts(session) == ["/usr/bin/x\nfails"]


def test_lines_that_wait_belong_to_a_pasted_text_without_marks():
    typed = iter(["one", "two", "three"])
    waiting = iter([True, True, False])
    assert read_question(lambda _: next(typed), lambda: next(waiting)) == "one\ntwo\nthree"


def test_an_answer_cannot_send_control_codes_to_the_terminal():
    server = AnsweringServer(text="red \x1b[31m title")
    terminal = Terminal("chat", "local/x", "--protocol", "openai-chat", "--base-url", server.url)
    try:
        terminal.wait_for("/help lists.*> ")
        terminal.type("go\r")
        assert "red \\x1b[31m title" in terminal.wait_for("red .* title")
    finally:
        terminal.close()
        server.close()


def test_undo_removes_the_last_exchange_from_the_file(tmp_path):
    session = tmp_path / "s.jsonl"
    chat("one\ntwo\n/undo\nthree\n", "echo", "--session", session)
    pieces = [message.content[0] for message in read_session(session).messages if message.role == "user"]
    given = [piece.text for piece in pieces if piece.kind == "text"]
    assert given == ["one", "three"]


def test_a_saved_conversation_can_be_continued(tmp_path):
    saved = tmp_path / "saved.jsonl"
    chat(f"one\n/save {saved}\n", "echo", "--system", "Be brief.")
    assert read_session(saved).system_prompt == "Be brief."
    assert "2 messages remain" in chat("two\n/undo\n", "echo", "--session", saved).out


def test_an_existing_file_is_overwritten_only_with_save_bang(tmp_path):
    saved = tmp_path / "notes.txt"
    saved.write_text("mine")
    assert f"/save! {saved}" in chat(f"one\n/save {saved}\n", "echo").out
    assert saved.read_text() == "mine"
    chat(f"one\n/save! {saved}\n", "echo")
    assert len(read_session(saved).messages) == 2


def test_an_attached_image_is_sent_with_the_next_message(tmp_path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert chat(f"/image {picture}\nlook\n", "echo").out.endswith("look (and 1 image)\n")


def test_a_server_of_the_users_own_can_be_left_and_returned_to(tmp_path):
    with ScriptedServer() as server:
        leave_and_return(server, tmp_path / "s.jsonl")


def leave_and_return(server: ScriptedServer, session: Path) -> None:
    answer = WIRES["openai-chat"].stream()
    server.reply(*[answer] * 4)
    typed = "one\n/model echo\ntwo\n/model mine/tiny\nthree\n/undo\n/model echo\n/model mine/tiny\n"
    chatted = chat(typed, "mine/tiny", "--protocol", "openai-chat", "--base-url", server.url, "--session", session)
    assert "no model" not in chatted.err
    assert chatted.out.count("Your next message goes to mine/tiny.") == 2
    assert len(server.requests) == 2
    chatted = chat("four\n/model mine/tiny\nfive\n", "--session", session)
    assert "Chatting with segue/echo" in chatted.err
    assert len(server.requests) == 3
    assert "Chatting with mine/tiny" in chat("six\n", "--session", session).err
    assert len(server.requests) == 4


def test_a_saved_chat_continues_with_a_model_of_the_users_own(tmp_path):
    saved = tmp_path / "saved.jsonl"
    with ScriptedServer() as server:
        server.reply(*[WIRES["openai-chat"].stream()] * 2)
        first = chat(f"one\n/save {saved}\n", "mine/tiny", "--protocol", "openai-chat", "--base-url", server.url)
        assert first.status == 0, first.err
        again = chat("two\n", "--session", saved)
        assert "Chatting with mine/tiny" in again.err
        assert len(server.requests) == 2
    assert [message.role for message in read_session(saved).messages] == ["user", "assistant"] * 2


def test_a_model_of_a_server_on_this_machine_is_found_by_its_name():
    chatted = chat("/model llama.cpp/tiny\n/model ollama/tiny\n/model echo\nhello\n", "lmstudio/tiny")
    assert "Chatting with lmstudio/tiny" in chatted.err
    assert "Your next message goes to llama.cpp/tiny." in chatted.out
    assert "Your next message goes to ollama/tiny." in chatted.out
    assert chatted.out.endswith("hello\n")


MISTAKES = {
    "an unknown command": ("/modle x\n", "There is no command /modle"),
    "an unknown model": ("/model gtp-5.4\n", "openai/gpt-5.4"),
    "a missing image file": ("/image nowhere.png\n", "nowhere.png"),
}


@pytest.mark.parametrize(("typed", "given"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_error_is_printed_and_the_chat_continues(typed, given):
    chatted = chat(f"{typed}still here\n", "echo")
    assert given in chatted.err
    assert chatted.out.endswith("still here\n")


def test_a_missing_key_names_its_variable():
    chatted = run("chat", "openai/gpt-5.4", stdin="hello\n", env={"OPENAI_API_KEY": ""})
    assert "OPENAI_API_KEY" in chatted.err


def test_without_a_key_the_terminal_offers_the_echo_model():
    terminal = Terminal("chat")
    try:
        terminal.wait_for("segue/echo")
        if "Number of the model" in terminal.seen:  # something else answers on this machine
            terminal.type("\n")
        terminal.wait_for("/help lists")
        terminal.type("hello\r")
        terminal.wait_for(r"hello\r\n.*hello\r\n> $")  # the answer, and the next prompt
        terminal.type("\x04")
        terminal.process.wait(timeout=60)
        assert terminal.process.returncode == 0
    finally:
        terminal.close()


def test_ctrl_c_stores_the_aborted_answer(tmp_path):
    session, slow = tmp_path / "s.jsonl", SlowServer()
    try:
        terminal = Terminal(
            "chat", "local/slow", "--protocol", "openai-chat", "--base-url", slow.url, "--session", session
        )
        terminal.wait_for("/help lists")
        terminal.type("write a long story\r")
        terminal.wait_for("Once upon")
        terminal.process.send_signal(signal.SIGINT)  # what a terminal does when someone types Ctrl-C
        terminal.wait_for("stopped; the part that arrived is kept")
        terminal.type("/quit\r")
        terminal.process.wait(timeout=60)
        terminal.close()
    finally:
        slow.close()
    last = read_session(session).messages[-1]
    assert last.role == "assistant"
    assert last.stop_reason == "aborted"
    assert "Once upon" in last.text()


class SlowServer:
    """Begins an answer and never ends it."""

    def __init__(self) -> None:
        import socket
        import threading

        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            connection.recv(65536)
            chunk = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Once upon a time"}}]}
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: "
                + json.dumps(chunk).encode()
                + b"\n\n"
            )

    def close(self) -> None:
        self._listener.close()
        for connection in self._connections:
            connection.close()


def test_an_answer_without_a_model_does_not_choose_one(tmp_path):
    """Files of other tools have such answers; the last answer that names its model decides."""
    session = tmp_path / "s.jsonl"
    chat("hello\n", "echo", "--session", session)
    append_message(session, UserMessage.of("and?"))
    append_message(session, AssistantMessage(content=(TextContent(text="yes"),)))
    chatted = chat("again\n", "--session", session)
    assert chatted.status == 0, chatted.err
    last = read_session(session).messages[-1]
    assert last.role == "assistant"
    assert last.model == "echo"
