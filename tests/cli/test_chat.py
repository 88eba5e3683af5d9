"""`segue chat`: in a pipe, in a terminal, and what is stored when it is stopped."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from cli.answering import AnsweringServer
from cli.running import SESSION, run
from cli.terminal import NO_KEYS, Terminal
from client.wires import WIRES
from segue import AssistantMessage, TextContent, UserMessage, append_message, read_session
from segue.cli import answers, progress, prompt
from segue.cli import chat as chat_command
from segue.cli.answers import describe_waiting
from segue.cli.chat_session import ChatSession
from segue.cli.prompt import read_question
from segue.cli.starting import Start, start_local
from segue.client.http.clients import Client
from segue.conversation.context import Options
from segue.models.catalogue import get_model, installed_catalogue
from segue.models.model import Model
from servers.scripted import ScriptedServer

pytest.importorskip("httpx2")


def chat(typed: str, *arguments: object):
    return run("chat", *arguments, stdin=typed, env=NO_KEYS)


def test_the_echo_model_answers_without_a_key():
    chatted = chat("hello there\n", "echo")
    assert (chatted.status, chatted.out) == (0, "hello there\n")


def test_the_model_is_named_as_for_ask():
    assert chat("hello\n", "-m", "echo").out == "hello\n"
    assert "the model is named twice: echo and echo" in chat("hello\n", "echo", "-m", "echo").err


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
        terminal.wait_for(r"last line.*last line *\r\n.*> ")
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
        terminal.wait_for(r"fails.*fails *\r\n.*> ")
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
        terminal.wait_for(r"hello\r\n.*hello\r\n.*> $")  # the answer, and the next prompt
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


def test_a_line_that_ends_with_a_backslash_goes_on():
    typed, asked = iter(["one \\", "two\\", "three"]), []

    def read(prompt: str) -> str:
        asked.append(prompt)
        return next(typed)

    assert read_question(read) == "one \ntwo\nthree"
    assert asked == ["> ", "… ", "… "]


def test_tokens_and_cost_are_shown_and_added_up(tmp_path):
    chatted = chat("one\ntwo\n/cost\n", "echo", "--usage")
    assert chatted.err.count("(1 token in, 1 out, price not known)") == 2
    assert "2 answers: " in chatted.out
    asked = run("ask", "-m", "echo", "one", "--usage", env=NO_KEYS)
    assert (asked.out, asked.err) == ("one\n", "(1 token in, 1 out, price not known)\n")
    assert "tokens" not in run("ask", "-m", "echo", "one", env=NO_KEYS).err
    written = json.loads(run("ask", "-m", "echo", "one", "--json", env=NO_KEYS).out)
    assert (written["usage"]["output"], written["cost"]) == (1, None)


@pytest.mark.parametrize(("name", "begins"), [("c.md", "# c\n"), ("c.html", "<!doctype html>")])
def test_a_chat_is_exported_for_people_and_never_over_a_file(tmp_path, name, begins):
    path = tmp_path / name
    chatted = chat(f"hello\n/export {path}\n/export {path}\n/export\n", "echo")
    assert path.read_text().startswith(begins)
    assert "hello" in path.read_text()
    assert f"{path} already exists and was not changed" in chatted.out
    assert "/export needs a path" in chatted.out


def test_tab_completes_commands_and_models():
    with Client() as client:
        session = ChatSession(
            client, get_model("echo"), installed_catalogue(), path=None, system_prompt=None, options=Options()
        )
        try:
            assert session.complete("/co") == ["/cost"]
            assert set(session.complete("/mo")) == {"/model", "/models"}
            assert "/model anthropic/claude-opus-4-8" in session.complete("/model anthropic/claude-opus-4-8")
            assert session.complete("hello ") == session.complete("") == session.complete("/undo x") == []
        finally:
            session.close()


@pytest.mark.parametrize(
    ("text", "editor", "bound"),
    [
        ("Importing this module enables command line editing using GNU readline.", "readline", "tab: complete"),
        ("Importing this module enables command line editing using libedit.", "libedit", "bind ^I rl_complete"),
        (None, "readline", "tab: complete"),
    ],
)
def test_the_key_that_completes_is_bound_as_the_library_of_the_system_has_it(monkeypatch, text, editor, bound):
    lines: list[str] = []
    library = SimpleNamespace(
        __doc__=text,
        set_completer=lambda _: None,
        set_completer_delims=lambda _: None,
        parse_and_bind=lines.append,
    )
    monkeypatch.setattr(prompt, "import_module", lambda _: library)
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("TERM", "dumb")
    assert prompt._load_editor(lambda _: []) == editor
    assert lines == [bound]


BLOCKS = {
    "a paragraph that is not complete": ("one\ntwo", None),
    "a paragraph": ("one\n\ntwo", 4),
    "blank lines first": ("\n\none\n\n", 6),
    "a blank line in code": ("```\na\n\nb", None),
    "code that is closed": ("```\na\n\nb\n```\n\nrest", 13),
    "another fence in code": ("~~~\n```\n\n~~~\n\n", 13),
}


@pytest.mark.parametrize(("text", "end"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_of_markdown_ends_at_a_blank_line_outside_of_code(text, end):
    assert answers._end_of_block(text) == end


def test_an_answer_in_a_terminal_is_drawn_as_markdown_with_its_words_wrapped():
    server = AnsweringServer(text="**Yes.** " + "word " * 30 + "\n\n- one\n- two")
    arguments = ("x/m", "--protocol", "openai-chat", "--base-url", server.url, "--key", "k")
    terminal = Terminal("chat", *arguments, term="xterm", columns=60)
    try:
        terminal.wait_for("/help lists.*> ")
        terminal.type("Go\r")
        seen = terminal.wait_for(r"•.*two.*> ")
    finally:
        terminal.close()
        server.close()
    assert "**Yes.**" not in seen
    assert "\x1b[1mYes." in seen
    assert all(
        len(re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\r", "", line)) <= 60 for line in seen.split("\r\n") if "word" in line
    )


EAGER = "import segue.cli.progress as p; p.PATIENCE = 0.01; from segue.cli.entry import main; main()"
"""The program, which says at once what it waits for."""


def test_a_program_that_waits_says_on_what():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts connections and says nothing
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        words = ("local/x", "--protocol", "openai-chat", "--base-url", f"http://{place}")
        terminal = Terminal("ask", "hi", "-m", *words, program=(sys.executable, "-c", EAGER))
        try:
            assert "Traceback" not in terminal.wait_for(re.escape(f"(waiting for local/x at {place})"))
        finally:
            terminal.close()


@pytest.mark.parametrize(("typed", "chosen"), [("\n", "one"), ("2\n", "two"), ("3\n", "segue/echo"), ("9\n1\n", "one")])
def test_a_model_is_chosen_by_its_number(monkeypatch, capsys, typed, chosen):
    offered = [Start(Model(name, "acme", "openai-chat"), "acme", "its key is set") for name in ("one", "two")]
    monkeypatch.setattr(chat_command, "offer_models", lambda _: offered)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    start = chat_command._choose(installed_catalogue())
    assert start.model is not None
    assert start.model.full_name().endswith(chosen)
    assert "  1  acme/one  one (its key is set)" in capsys.readouterr().out


def test_a_program_that_waits_for_a_pipe_says_so_in_a_terminal_alone(monkeypatch, capsys):
    before = "import segue.cli.progress as p; p.PATIENCE = 0"
    assert "waiting" not in run("ask", "-m", "echo", stdin="hi", before=before).err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    waiting = progress.Waiting(lambda: "the end of standard input")
    waiting._timer.join(60)
    waiting.end()
    waiting.end()
    assert capsys.readouterr().err.count("(waiting for the end of standard input)") == 1


def test_what_is_waited_for_after_a_failure_is_the_next_attempt():
    with closing(AnsweringServer(status=503)) as server, Client(base_url=server.url, retry=0) as client:
        stream = client.stream("hi", Model("m", "openai", "openai-chat"))
        assert describe_waiting(stream) == f"openai/m at {urlsplit(server.url).netloc}"
        for _ in stream:
            pass
        assert describe_waiting(stream).startswith("the next attempt to ask openai/m: ")
    local = Client().stream("hi", "local")
    assert describe_waiting(local) == "local/default, which is starting on this machine"
    local.close()


def test_a_paragraph_is_shown_while_it_is_written():
    slow = SlowServer()
    words = ("local/slow", "--protocol", "openai-chat", "--base-url", slow.url)
    terminal = Terminal("ask", "hi", "-m", *words, term="xterm")
    try:
        terminal.wait_for("Once upon a time")  # it never ends
    finally:
        terminal.close()
        slow.close()


def test_a_switch_to_a_model_without_a_key_is_warned_of_at_once():
    chatted = chat("/model openai/gpt-5.4\n/model echo\n/model local:/missing.gguf\n", "echo")
    assert chatted.err.count("It cannot answer yet: ") == 2
    assert "there is no API key for openai; set OPENAI_API_KEY" in chatted.err
    assert "use --key" in chatted.err


def test_a_chat_with_a_model_of_this_machine_starts_it_at_once(tmp_path, monkeypatch, capsys):
    from segue.client.local import gguf

    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"x" * 2_000_000)
    started: Queue[Path] = Queue()
    monkeypatch.setattr(gguf, "check_ready", lambda model_id, _: Path(model_id))
    monkeypatch.setattr(gguf, "start", started.put)
    assert start_local(get_model(f"local:{file}"))
    assert started.get(timeout=60) == file
    assert "(starting tiny.gguf, 2 MB, on this machine)" in capsys.readouterr().err
    assert not start_local(get_model("echo"))
