"""`segue sessions`, `import`, `export`, `handover`, and sessions as sources of the other commands."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from rich.cells import cell_len

from cli.running import SESSION, run
from cli.terminal import Terminal
from segue import Context, UserMessage, find_sessions, read_history, read_session, write_history
from segue.cli import progress, sessions
from segue.cli.handover import default_model
from segue.cli.session_rows import cut
from segue.histories.registry import FORMATS, get_format
from segue.histories.regular_files import WATCH
from segue.models.providers import DEFAULT_MODELS

AGENTS = [name for name, record in FORMATS.items() if record.kind == "agent" and record.write is not None]
SOURCES = {name: get_format(name).samples()[0].source for name in AGENTS}
OWN_FOLDER = ("codex", "copilot-cli", "qwen-code", "kimi-code", "kiro", "mistral-vibe", "grok-build")
"""Agents that continue only sessions of their own folder."""


def store(folder: Path, agent: str) -> Path:
    """Write the first sample of an agent where the agent would keep it."""
    record, source = get_format(agent), SOURCES[agent]
    assert record.place is not None
    path = folder / record.place.folder / (source.name or "session.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    data = source.data
    if data is None:  # the sample is a database
        (file, *_) = write_history(read_history(source, format=agent), format=agent, model=record.example).files
        data = file.data
    path.write_bytes(data)
    return path


def snapshot(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_sessions_lists_what_is_on_this_machine(home):
    store(home, "claude-code")
    store(home, "codex")
    listed = run("sessions")
    assert listed.status == 0
    assert "claude-code" in listed.out
    assert "Read both files." in listed.out
    rows = json.loads(run("sessions", "--json").out)
    assert {row["format"] for row in rows} == {"claude-code", "codex"}
    (only,) = json.loads(run("sessions", "--json", "--agent", "claude-code").out)
    assert (only["cwd"], only["models"], only["messages"]) == ("/home/user/project", ["claude-sonnet-4-5"], 7)
    assert only["source"] == f"claude-code:{only['id']}"
    assert run("sessions", "--cwd", "/nowhere").err == "no sessions found\n"


def test_a_search_goes_on_after_a_session_that_cannot_be_read(home):
    path = store(home, "claude-code")
    (found,) = find_sessions()
    broken = replace(found, path=str(path.with_name("gone.jsonl")))
    gone = path.with_name("gone.jsonl")
    gone.write_bytes(b'{"type": "user", "message": "Read both files."')
    matches = [*sessions.search_sessions([broken, found], "Read both files")]
    assert [match.session for match in matches] == [found]


def test_a_text_is_cut_to_the_columns_that_are_left():
    assert [cut("some text", size) for size in (0, 1, 5, 9, 20)] == ["", "…", "some…", "some text", "some text"]


def test_sessions_counts_long_files_when_asked(home):
    path = store(home, "claude-code")
    filler = json.dumps({"type": "mode", "mode": "x" * 1000}).encode() + b"\n"
    path.write_bytes((SOURCES["claude-code"].data or b"") + filler * 70)
    (short,) = json.loads(run("sessions", "--json").out)
    (counted,) = json.loads(run("sessions", "--json", "--count").out)
    assert (short["messages"], counted["messages"]) == (None, 8)


def test_sessions_lists_a_folder(home, tmp_path):
    store(home, "pi")
    (row,) = json.loads(run("sessions", home / ".pi" / "agent", "--json").out)
    assert row["format"] == "pi"


AIDER = "# aider chat started at 2026-11-15 12:00:00\n\n#### Which parser?\n\nThe new one.\n"


def test_sessions_in_the_folder_of_a_project_are_found_and_those_of_the_current_one_come_first(home):
    store(home, "claude-code")
    project = home / "code" / "mine"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".aider.chat.history.md").write_text(AIDER)
    assert [row["format"] for row in json.loads(run("sessions", "--json", cwd=home).out)] == ["claude-code"]
    rows = json.loads(run("sessions", "--json", cwd=project / "src").out)
    assert [row["format"] for row in rows] == ["aider", "claude-code"]
    assert rows[0]["cwd"] == str(project)
    shown = run("import", "aider:last", "--report", "none", cwd=project)
    assert "The new one." in shown.out
    listed = json.loads(run("sessions", project, "--json").out)
    assert [row["format"] for row in listed] == ["aider"]
    # A project is also known by the sessions of other agents in it.
    path = store(home, "claude-code")
    path.write_bytes(path.read_bytes().replace(b"/home/user/project", str(project).encode()))
    assert {row["format"] for row in json.loads(run("sessions", "--json", cwd=home).out)} == {"aider", "claude-code"}


def test_sessions_of_openclaw_are_found_at_home_by_its_variable_and_in_a_project(home, monkeypatch):
    stored = store(home, "pi")
    project = home / "code"
    for state in (home / ".openclaw", home / "state", project / ".openclaw"):
        path = state / "agents" / "main" / "sessions" / f"{state.name}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(stored.read_bytes())
    stored.unlink()
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()

    def found(cwd):
        return [row["path"] for row in json.loads(run("sessions", "--json", cwd=cwd).out)]

    assert found(elsewhere) == [str(home / ".openclaw/agents/main/sessions/.openclaw.jsonl")]
    assert str(project / ".openclaw/agents/main/sessions/.openclaw.jsonl") in found(project)
    (row,) = json.loads(run("sessions", home / "state", "--json").out)
    assert row["format"] == "pi"
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(home / "state"))
    assert found(elsewhere) == [str(home / "state/agents/main/sessions/state.jsonl")]


def test_without_sessions_the_program_says_where_it_looked(home):
    for command in (["handover", "claude-code:last", "--to", "codex"], ["show", "claude-code:last"]):
        done = run(*command)
        assert done.status == 2
        assert f"no sessions of Claude Code were found in {home / '.claude'}" in done.err
        assert "CLAUDE_CONFIG_DIR" in done.err
    for command in (["handover", "last", "--to", "codex"], ["show", "last"], ["sessions"]):
        said = run(*command).err
        assert "no sessions" in said
        assert f"{home / '.claude'}, {home / '.codex'}" in said


def test_a_session_is_named_by_its_id_the_beginning_of_it_or_last(home):
    path = store(home, "claude-code")
    name = path.stem
    wanted = run("import", path, "--report", "none").out
    for given in (name, name[:6], f"claude-code:{name[:6]}", "last", "claude-code:last"):
        assert run("import", given, "--report", "none").out == wanted, given
        for command in (("show",), ("check", "--for", "anthropic/claude-sonnet-4-5")):
            assert run(*command, given).out == run(*command, path).out, (command, given)
        assert run("handover", given, "--to", "pi", "-o", home / f"to-{given[:9]}", "--report", "none").status == 0
    other = path.with_name(f"{name[:-1]}x.jsonl")
    other.write_bytes(path.read_bytes())
    unclear = run("import", name[:6])
    assert (unclear.status, "is the beginning of 2 ids: claude-code:" in unclear.err) == (2, True)
    assert run("import", "0123456789abcdef").status == 2


def test_sessions_finds_a_text_in_messages(home):
    store(home, "claude-code")
    store(home, "codex")
    rows = json.loads(run("sessions", "--grep", "read BOTH\tfiles", "--json").out)
    assert {row["format"] for row in rows} == {"claude-code", "codex"}
    assert len(json.loads(run("sessions", "--grep", "read both", "--limit", 1, "--json").out)) == 1
    found = run("sessions", "--grep", "read both files")
    assert "Read both files." in found.out
    assert run("sessions", "--grep", "sessionId").err == "no sessions found\n"  # a key of the file, no message
    assert run("sessions", "--grep", "n\u00f6").err == "no sessions found\n"


def store_talk(home: Path, name: str, *messages: tuple[str, str]) -> None:
    """Write a session of pi with these messages."""
    header = {"type": "session", "version": 3, "id": name, "timestamp": "2026-11-18T10:00:00.000Z", "cwd": "/p"}
    lines: list[object] = [header]
    for at, (role, text) in enumerate(messages):
        message = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1_760_000_000_000 + at}
        if role == "toolResult":
            message |= {"toolCallId": "c", "toolName": "look", "isError": False}
        stamp = f"2026-11-18T10:00:0{at}.000Z"
        lines.append(
            {"type": "message", "id": f"m{at}", "parentId": f"m{at - 1}" if at else None, "timestamp": stamp}
            | {"message": message}
        )
    path = home / ".pi/agent/sessions/--p--" / f"2026-11-18T10-00-00-000Z_{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_words_of_the_person_are_found_before_those_of_tools(home):
    store_talk(home, "b-tool", ("user", "Look."), ("toolResult", "the harbour of a tool"))
    store_talk(home, "a-both", ("toolResult", "the harbour of a tool"), ("user", "the harbour of a person"))
    rows = json.loads(run("sessions", "--grep", "the harbour", "--json").out)
    assert [row["id"] for row in rows] == ["a-both", "b-tool"]
    found = run("sessions", "--grep", "the harbour").out
    assert found.index("of a person") < found.index("of a tool")
    (only,) = json.loads(run("sessions", "--grep", "the harbour", "--limit", 1, "--json").out)
    assert only["id"] == "a-both"


def test_a_list_says_how_many_sessions_there_are(home):
    for name in ("a1", "b2", "c3"):
        store_talk(home, name, ("user", f"Words of {name}."))
    assert run("sessions").err == "3 sessions\n"
    assert run("sessions", "--limit", 2).err == "2 of 3 sessions\n"
    assert run("sessions", "--grep", "words of b2").err == "1 of 3 sessions\n"


def test_a_search_in_a_terminal_shows_its_progress(home, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "draw", lambda pieces: shown.append("".join(pieces)))
    monkeypatch.setattr(progress, "_REFRESH", 0)
    with progress.show_searching(3200) as searched:
        searched(120)
    with progress.show_reading():
        watch = WATCH.get()
        assert watch is not None
        for position in (0, 250, 500, 900, 0, 500):
            watch(position * 1_000_000, 1_000_000_000)
    assert shown[:2] == ["\rsearching: 120 of 3,200 sessions", "\r\x1b[K"]
    assert shown[2:] == [f"\rreading 1,000 MB: {share}%" for share in (0, 12, 25, 45, 50, 75)] + ["\r\x1b[K"]


@pytest.mark.parametrize("columns", [80, 110, 140])
def test_each_session_is_one_line_that_fits_the_terminal(home, columns):
    for at in range(12):
        path = store(home, "claude-code")
        folder = f"/home/user/work/{'customer-' * 6}{at}/services/\u6f22\u5b57-backend-{at}"
        longer = (
            path.read_bytes()
            .replace(b"/home/user/project", folder.encode())
            .replace(b"Read both", "漢字 Read".encode())
        )
        path.with_name(f"{at:08d}{path.name[8:]}").write_bytes(longer)
        path.unlink()
    terminal = Terminal("sessions", columns=columns, term="xterm")
    lines = terminal.wait_for("12 sessions").replace("\r", "").splitlines()
    terminal.close()
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    rows = [line for line in plain if line.startswith("claude-code")]
    assert len(rows) == 12
    assert max(map(cell_len, plain)) <= columns
    assert all(f"backend-{int(row.split()[1])}" in row and "漢字 Read" in row for row in rows)


def test_a_session_is_picked_in_a_terminal(home):
    store(home, "claude-code")
    store(home, "codex")
    terminal = Terminal("sessions", "--pick", term="xterm")
    terminal.wait_for("2 of 2")
    terminal.type("codex")
    terminal.wait_for("1 of 2.*filter: codex")
    terminal.type("\r")
    seen = terminal.wait_for(r"codex:[0-9a-f-]{36}")
    assert terminal.process.wait(timeout=60) == 0
    assert f"codex:{json.loads(run('sessions', '--agent', 'codex', '--json').out)[0]['id']}" in seen
    terminal.close()
    escaped = Terminal("handover", "--to", "pi", term="xterm")
    escaped.wait_for("2 of 2")
    escaped.type("\x1b[B\x1b")
    assert escaped.process.wait(timeout=60) == 1
    escaped.close()
    assert "in a terminal only" in run("sessions", "--pick").err


@pytest.mark.parametrize("agent", ["claude-code", "opencode", "pi"])
def test_import_writes_a_session_file_and_changes_nothing_else(home, agent, tmp_path):
    path = store(home, agent)
    before = snapshot(home)
    output = tmp_path / "a.jsonl"
    done = run("import", path, "-o", output, "--report", "json")
    assert done.status == 0
    assert read_session(output) == read_history(path).context
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert "changes" in json.loads(done.err.splitlines()[-1])
    after = snapshot(home)
    assert {**after, output: None} == {**before, output: None}
    again = run("import", path, "-o", output)
    assert (again.status, "is there already" in again.err) == (2, True)
    assert run("import", path, "--report", "none").out.encode() == output.read_bytes()
    if get_format(agent).reads_lines:
        assert run("import", "-", "--report", "none", stdin=path.read_bytes()).out


@pytest.mark.parametrize(("agent", "target"), list(zip(AGENTS, AGENTS[1:] + AGENTS[:1], strict=True)))
def test_handover_of_one_agent_to_another(home, agent, target, tmp_path):
    path = store(home, agent)
    before = path.read_bytes(), path.stat().st_mtime_ns
    done = run("handover", path, "--to", target, "-o", tmp_path / "out", "--report", "none")
    assert done.status == 0
    files = [each for each in (tmp_path / "out").rglob("*") if each.is_file()]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    # Some agents have a document about the session next to its lines.
    own = [each for each in files if each.suffix in (".json", ".jsonl", ".db") and each.parent.name != ".segue"]
    (written,) = [each for each in own if each.suffix == ".jsonl"] or own
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    texts = {message.text() for message in read_history(path).context.messages if message.role == "assistant"}
    again = {message.text() for message in read_history(written).context.messages if message.role == "assistant"}
    assert texts & again
    told = f"{target} writes no `resume_file`: write one, or add it to OWN_FOLDER"
    assert done.out or target in OWN_FOLDER, told
    if target in OWN_FOLDER:
        assert done.out == ""
        assert "leave out -o" in done.err
    else:
        assert str(written.parent if written.suffix == ".db" else written) in done.out


def test_an_agent_that_was_not_run_is_named_and_one_that_is_only_read_gets_a_prompt(home, tmp_path):
    path = store(home, "claude-code")
    done = run("handover", path, "--to", "kiro", "--report", "none")
    assert "unproven" in done.err
    for target in ("droid", "prompt"):
        done = run("handover", path, "--to", target, "-o", tmp_path / target)
        assert "This is less than a session" in done.err
        assert "Read both files." in Path(done.out.strip()).read_text()
        assert run("handover", path, "--to", target, "--run").status == 2


def test_the_command_works_in_another_folder(home):
    path = store(home, "claude-code")
    done = run("handover", path, "--to", "pi", "-o", "out", "--report", "none", cwd=home)
    (written,) = (home / "out").glob("*.jsonl")
    assert done.out == f"cd /home/user/project && pi --session {written}\n"


def test_handover_stores_the_session_where_the_agent_finds_it(home):
    store(home, "claude-code")
    done = run("handover", "claude-code:last", "--to", "codex", "--model", "openai/gpt-5.4", "--report", "none")
    (rollout,) = (home / ".codex").rglob("rollout-*.jsonl")
    assert done.out == f"cd /home/user/project && codex resume {read_history(rollout).origin.id}\n"
    rollout.write_bytes(rollout.read_bytes() + b"{}\n")  # the agent went on with it
    again = run("handover", "claude-code:last", "--to", "codex", "--model", "openai/gpt-5.4", "--report", "none")
    assert again.status == 0
    assert again.out != done.out
    assert len(list((home / ".codex").rglob("rollout-*.jsonl"))) == 2


def test_handover_takes_a_part_of_a_session_and_says_what_becomes_of_reasoning(home):
    store(home, "claude-code")
    to = ("--to", "codex", "--model", "openai/gpt-5.4", "-o", home / "out")
    done = run("handover", "claude-code:last", *to)
    assert "thinking_as_text" in done.err
    assert "--reasoning drop" in done.err
    whole = read_history(next((home / "out").glob("*.jsonl")))
    assert run("handover", "claude-code:last", *to, "--reasoning", "drop", "-o", home / "dropped").status == 0
    dropped = read_history(next((home / "dropped").glob("*.jsonl")))
    assert sum(len(each.text()) for each in dropped.context.messages) < sum(
        len(each.text()) for each in whole.context.messages
    )
    messages = read_history(store(home, "claude-code")).context.messages
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    part = run("handover", "claude-code:last", *to, "--from-message", last, "-o", home / "part")
    assert part.status == 0
    texts = [message.text() for message in read_history(next((home / "part").glob("*.jsonl"))).context.messages]
    assert texts[0] == messages[last].text()
    assert messages[0].text() not in texts
    wrong = run("handover", "claude-code:last", *to, "--from-message", len(messages))
    assert wrong.status == 2
    assert "this is not a message of the user; the nearest are" in wrong.err
    branch = run("handover", "claude-code:last", *to, "--branch", "none-of-them")
    assert (branch.status, "none-of-them" in branch.err) == (2, True)
    assert run("handover", "claude-code:last", *to, "--view", "full", "-o", home / "full").status == 0


@pytest.mark.parametrize("other", ["codex", "opencode"])
def test_a_session_that_comes_back_has_its_reasoning_again(home, other):
    path = store(home, "claude-code")
    first = read_history(path)
    run("handover", path, "--to", other, "--report", "none")
    (kept,) = (home / ".local/share/segue/originals").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    if other == "codex":
        (there,) = (home / ".codex").rglob("rollout-*.jsonl")
    else:  # the program takes the file into its database, and exports it again
        run("handover", path, "--to", other, "-o", home / "taken", "--report", "none")
        (there,) = (home / "taken").glob("*.json")
        (home / "taken" / ".segue" / kept.name).unlink()
    back = run("handover", there, "--to", "claude-code", "-o", home / "back", "--report", "none")
    assert f"Restored: {len(first.context.messages)} messages as before the handover to {other}" in back.err
    (again,) = (home / "back").glob("*.jsonl")
    assert read_history(again).context.messages == first.context.messages


def test_handover_runs_the_agent_in_the_folder_of_the_project(home, tmp_path, monkeypatch):
    store(home, "claude-code")
    programs, project = tmp_path / "bin", tmp_path / "project"
    programs.mkdir()
    project.mkdir()
    (programs / "pi").write_text('#!/bin/sh\necho "$PWD $*"\nexit 7\n')
    (programs / "pi").chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    ran = run("handover", "claude-code:last", "--to", "pi", "--cwd", project, "--run", "--report", "none")
    assert ran.status == 7
    assert ran.out.splitlines()[1].startswith(f"{project} --session ")
    away = run("handover", "claude-code:last", "--to", "pi", "--cwd", tmp_path / "no", "--run", "--report", "none")
    assert (away.status, "is not there; name one with --cwd" in away.err) == (2, True)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    missing = run("handover", "claude-code:last", "--to", "codex", "--cwd", project, "--run", "--report", "none")
    assert (missing.status, "'codex' is not installed" in missing.err) == (2, True)


def test_export_writes_one_file_a_folder_or_nothing(home, tmp_path):
    dry = run("export", SESSION, "--to", "pi", "--cwd", "/home/user/x", "--dry-run", "--report", "none")
    assert (dry.status, dry.out.startswith("sessions/--home-user-x--/")) == (0, True)
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "mine.jsonl"
    assert run("export", SESSION, "--to", "pi", "-o", file, "--report", "none").out == f"{file}\n"
    assert read_history(file).origin.format == "pi"
    taken = run("export", SESSION, "--to", "pi", "-o", file)
    assert (taken.status, "was not changed" in taken.err) == (2, True)
    assert run("export", SESSION, "--to", "opencode", "--report", "none").out.startswith('{"info":')
    assert run("export", SESSION, "--to", "claude-code", "-o", tmp_path / "out", "--report", "none").status == 0
    (stored,) = (tmp_path / "out").glob("*.jsonl")
    assert read_history(stored).origin.format == "claude-code"


@pytest.mark.parametrize("agent", ["claude-code", "opencode"])
def test_other_commands_take_sessions(home, agent):
    path = store(home, agent)
    shown = run("show", path)
    assert shown.status == 0
    assert "assistant" in shown.out
    if get_format(agent).describe is not None:
        assert run("show", f"{agent}:last").out == shown.out
    assert run("check", path, "--for", "openai/gpt-5.4").status in (0, 1)
    converted = run("convert", path, "--to", "openai/gpt-5.4", "--report", "none")
    assert json.loads(converted.out)["model"] == "gpt-5.4"


def test_a_database_is_a_source(home, tmp_path):
    history = json.loads(SOURCES["opencode"].data or b"")
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE session (id, directory, title, time_created, time_updated);"
            "CREATE TABLE message (id, session_id, data); CREATE TABLE part (id, message_id, session_id, data);"
        )
        info = history["info"]
        session = info["id"]
        database.execute("INSERT INTO session VALUES (?, '/p', 'T', 1, 2)", (session,))
        for message in history["messages"]:
            own = message["info"]["id"]
            database.execute("INSERT INTO message VALUES (?, ?, ?)", (own, session, json.dumps(message["info"])))
            for at, part in enumerate(message["parts"]):
                database.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt_{own}{at}", own, session, json.dumps(part))
                )
    assert json.loads(run("sessions", path, "--json").out)[0]["id"] == session
    assert "assistant" in run("show", path).out
    missing = run("import", path, "--session", "nothing")
    assert (missing.status, "no session 'nothing'" in missing.err) == (2, True)


MISTAKES = {
    "no such agent": (("show", "claude-cod:last"), "did you mean claude-code"),
    "no such session": (("show", "claude-code:nothing"), "`segue sessions` lists"),
    "an empty folder": (("import", "."), "no session file of a known agent"),
    "a target that is no agent": (("handover", SESSION, "--to", "nothing"), "no format is called 'nothing'"),
    "an unknown model": (("handover", SESSION, "--to", "pi", "--model", "gpt-none"), "gpt-none"),
    "an unknown branch": (("import", "SAMPLE", "--branch", "x"), "no branch 'x'"),
    "an unknown format": (("import", "SAMPLE", "--from", "x"), "there is no format or protocol"),
    "an unknown format, by the older name": (("import", "SAMPLE", "--format", "x"), "there is no format or protocol"),
    "an unknown format in show": (("show", "SAMPLE", "--from", "x"), "there is no format or protocol"),
    "a format that the file is not": (("show", "SAMPLE", "--from", "haystack"), "more than one JSON value"),
    "no such file": (("import", "nowhere.jsonl"), "cannot read the file"),
    "no conversation": (("import", "-"), "standard input"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_sentence(home, arguments, message):
    path = store(home, "claude-code")
    empty = home / "empty"
    empty.mkdir()
    done = run(*(path if each == "SAMPLE" else each for each in arguments), cwd=empty)
    assert done.status == 2
    assert message in done.err


def test_formats_tells_what_is_read_written_and_listed_and_how_sure_that_is():
    listed = json.loads(run("formats", "--json").out)
    rows = {row["format"]: row for row in listed["formats"]}
    assert list(rows) == list(FORMATS)
    for name, row in rows.items():
        record = get_format(name)
        unproven = record.write is not None and record.kind == "agent" and row["facts"] == "read"
        assert (row["read"], row["written"]) == (True, "unproven" if unproven else record.write is not None)
        assert record.source in row["from"]
    assert (rows["kimi-code"]["facts"], rows["zed"]["facts"]) == ("run", "read")
    assert (rows["kiro"]["written"], rows["kimi-code"]["written"], rows["amp"]["written"]) == ("unproven", True, False)
    assert "a database of Warp" in listed["refused"]
    shown = run("formats")
    assert re.search(r"^claude-code +Claude Code +yes +yes +yes +run +Claude Code 2", shown.out, re.MULTILINE)
    assert shown.err == f"{len(rows)} formats\n"


def test_a_handover_without_a_fitting_answer_goes_to_a_current_model() -> None:
    opened = read_history(SOURCES["claude-code"].data or b"", format="claude-code")
    history = replace(opened, context=Context(messages=(UserMessage.of("Go on."),)))
    for record in map(get_format, AGENTS):
        chosen = default_model(record, history, None, None)
        assert record.wire in (None, chosen.protocol), record.name
        assert record.example is not None
        if DEFAULT_MODELS.get(record.example.provider):
            assert chosen.id == DEFAULT_MODELS[record.example.provider], record.name


def grow(path: Path, text: str, at: int) -> None:
    """Add a message to a session of Claude Code, as the program does."""
    last = json.loads(path.read_bytes().splitlines()[-1])
    line = {**last, "type": "user", "uuid": f"{at:08d}-0000-4000-8000-000000000000", "parentUuid": last["uuid"]}
    line |= {"message": {"role": "user", "content": text}, "timestamp": f"2026-11-18T10:00:{at:02d}.000Z"}
    with path.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")


def run_next(steps: Iterator[Callable[[], object]]) -> None:
    next(steps)()


def test_a_session_is_followed_while_its_file_grows(home):
    path = store(home, "claude-code")
    (session,) = find_sessions(formats=["claude-code"])
    steps = iter([
        lambda: None,  # nothing was added: nothing is shown
        lambda: grow(path, "And now?", 1),
        lambda: path.write_bytes(path.read_bytes() + b'{"type": "us'),  # a line that is being written
        lambda: path.write_bytes(path.read_bytes()[:-12]),
        lambda: grow(path, "Once more.", 2),
    ])  # fmt: skip
    found = sessions.follow_session(session, lambda: run_next(steps))
    first, second = next(found), next(found)
    assert first.pieces == [{"role": "user", "text": "And now?"}]
    assert second.pieces == [{"role": "user", "text": "Once more."}]
    assert re.match(r"\d+ messages; next request to anthropic/claude-sonnet-4-5: .*tokens", second.length)


def test_what_is_undone_in_a_followed_session_is_said(home):
    path = store(home, "claude-code")
    grow(path, "A wrong turn.", 1)
    (session,) = find_sessions(formats=["claude-code"])
    whole = path.read_bytes()
    steps = iter([lambda: path.write_bytes(whole[: whole.rstrip().rfind(b"\n") + 1])])
    (added,) = next(sessions.follow_session(session, lambda: run_next(steps))).pieces
    assert added == {"role": "program", "text": "1 earlier piece undone or compacted"}


def test_following_ends_with_the_interrupt_of_the_user(home, monkeypatch):
    path = store(home, "claude-code")
    steps = iter([lambda: grow(path, "And \x1b[31mnow?", 1)])

    def sleep(_: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr("segue.cli.sessions.time.sleep", sleep)
    (session,) = find_sessions(formats=["claude-code"])
    done = CliRunner().invoke(sessions.command, ["--follow", f"claude-code:{session.id}"])
    assert (done.exit_code, "\x1b" in done.stdout) == (0, False)
    assert re.fullmatch(r"user +And .*now\?\n", done.stdout)
    assert done.stderr.startswith(f"following claude-code:{session.id}")
