"""The lines that `segue check` gives: of sessions, of requests over several lines, and of stored conversations."""

from __future__ import annotations

import json
import re

import pytest

from cli.running import SESSION, run
from cli.terminal import Terminal
from segue import Context, dump, load, prepare, read_session
from segue.cli.places import LinesOfPaths
from segue.histories.opening import How, open_source
from segue.protocols.registry import PROTOCOLS

GITHUB = re.compile(r"::\w+ file=([^,]+),line=(\d+),title=(\w+)::(?:messages\[(\d+)\])?")


def github_lines(*arguments: object, stdin: str = "") -> list[tuple[int, int | None]]:
    """The line of each finding, and the message that it is about."""
    out = run("check", *arguments, "--format", "github", "--all", stdin=stdin).out
    found = [GITHUB.match(line) for line in out.splitlines()]
    assert found
    assert all(found)
    return [(int(match[2]), None if match[4] is None else int(match[4])) for match in found if match]


def test_a_finding_in_a_session_has_the_line_of_its_message():
    assert all(line == message + 2 for line, message in github_lines(SESSION, "--for", "openai/gpt-5.4") if message)


def test_blank_lines_and_a_later_header_keep_the_lines(tmp_path):
    lines = SESSION.read_text().splitlines()
    session = tmp_path / "s.jsonl"
    session.write_text("\n".join(("", *lines[:3], "", lines[0], *lines[3:])) + "\n")
    found = github_lines(session, "--for", "openai/gpt-5.4")
    assert [line - message for line, message in found if message] == [3, *[5] * (len(found) - 1)]


def test_a_finding_in_a_formatted_document_has_the_line_of_its_value():
    stored = json.dumps(json.loads(dump(read_session(SESSION))), indent=2)
    lines = stored.splitlines()
    starts = [number for number, line in enumerate(lines, 1) if line == "    {" and '"role"' in lines[number]]
    messages = [*starts, len(lines)]
    for line, message in github_lines("-", "--for", "openai/gpt-5.4", stdin=f"\n{stored}"):
        if message is not None:
            assert messages[message] < line <= messages[message + 1]


def test_a_violation_has_the_line_of_its_value():
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
            {"role": "user", "content": "never mind"},
        ],
    }
    text = json.dumps(body, indent=1)
    found = github_lines("-", "--for", "anthropic-messages", stdin=text)
    assert '"id": "t1"' in "".join(text.splitlines()[found[0][0] - 1 : found[0][0] + 6])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_message_of_a_request_is_found_in_it(protocol, tmp_path):
    """The user turns of the example are written by every protocol; each has to be found where its text is."""
    context = Context(messages=load(dump(read_session(SESSION))).messages)
    body = prepare(context, PROTOCOLS[protocol].example).body
    file = tmp_path / "request.json"
    file.write_text(json.dumps(body, indent=2))
    with file.open("rb") as opened:
        document = open_source(opened, How(protocol=protocol), name="request.json").document
    assert document is not None
    places, lines = LinesOfPaths(document), file.read_text().splitlines()
    messages = document.prompt.context.messages
    found = [places.find_line(("messages", at), is_wire=False) for at in range(len(messages))]
    assert found == sorted(found)
    checked = 0
    for at, (message, line) in enumerate(zip(messages, found, strict=True)):
        if message.role != "user" or not message.content or message.content[0].kind != "text":
            continue
        end = next((later for later in found if later > line), len(lines) + 1)
        text = json.dumps(message.content[0].text)[1:40]
        assert text in "".join(lines[line - 1 : end - 1]), (at, line, text)
        checked += 1
    assert checked >= 2


def test_every_message_of_a_bare_list_of_messages_is_found_in_it(tmp_path):
    file = tmp_path / "messages.json"
    turns = [("user", "one"), ("assistant", "two"), ("user", "three")]
    file.write_text(json.dumps([{"role": role, "content": text} for role, text in turns], indent=2))
    with file.open("rb") as opened:
        document = open_source(opened, How(), name=file.name).document
    assert document is not None
    places = LinesOfPaths(document)
    assert [places.find_line(("messages", at), is_wire=False) for at in range(3)] == [2, 6, 10]


def test_a_terminal_shows_colours_and_the_progress(tmp_path):
    bad = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "top_k": "x"}
    many = tmp_path / "many.jsonl"
    many.write_text((json.dumps(bad) + "\n") * 400 + "{oops\n")
    terminal = Terminal("check", many, "--for", "openai/gpt-5.4", term="xterm-256color")
    try:
        seen = terminal.wait_for(r"\d+ found: ")
    finally:
        terminal.close()
    assert "\x1b[1;31merror\x1b[0m" in seen
    assert "messages, " in seen


def test_no_color_is_respected_in_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal("check", SESSION, "--for", "openai/gpt-5.4", term="xterm-256color")
    try:
        seen = terminal.wait_for(r"\d+ found: ")
    finally:
        terminal.close()
    assert "31m" not in seen


def test_a_file_name_is_escaped_for_github(tmp_path):
    odd = tmp_path / "a,b:c%.json"
    odd.write_text("{}\n{oops\n")
    out = run("check", odd, "--for", "openai-chat", "--format", "github").out
    assert "a%2Cb%3Ac%25.json,line=2," in out
