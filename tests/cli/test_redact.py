"""`--redact` of every command, and where it is the default."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from cli.running import run
from cli.test_mcp import ask, build_server, connect
from foundation.planted_secrets import BY_KIND
from segue.inspector.answers import Answers
from segue.inspector.inspection import open_conversation
from segue.inspector.library import Library
from segue.models.catalogue import packaged_catalogue

SECRET = BY_KIND["github-token"][0]
PLACE = "/home/alice/project"
PAGES = ("markdown", "html")
AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "pi", "copilot-cli", "qwen-code")


@pytest.fixture
def session(home):
    """Store a session of pi with a secret in a text, an argument, a result, the title and the folder."""
    call = {"type": "toolCall", "id": "c1", "name": "run", "arguments": {"command": f"login {SECRET}"}}
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": f"Using {SECRET}."}, call],
        "api": "openai-responses",
    }
    answer |= {"provider": "openai", "model": "gpt-5.4", "stopReason": "toolUse"}
    result = {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "run",
        "isError": False,
        "timestamp": 1_760_000_000_002,
    }
    result |= {"content": [{"type": "text", "text": f"{'a ' * 3990}{SECRET}"}]}
    question = {
        "role": "user",
        "content": [{"type": "text", "text": f"My key is {SECRET}, in {PLACE}"}],
        "timestamp": 1,
    }
    question |= {"timestamp": 1_760_000_000_000}
    header = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-11-18T10:00:00.000Z", "cwd": PLACE}
    lines: list[object] = [header]
    for at, message in enumerate((question, answer, result)):
        stamp = f"2026-11-18T10:00:0{at}.000Z"
        parent = f"m{at - 1}" if at else None
        lines.append({"type": "message", "id": f"m{at}", "parentId": parent, "timestamp": stamp, "message": message})
    path = home / ".pi/agent/sessions/--home-alice-project--" / "2026-11-18T10-00-00-000Z_s-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def is_clean(text: str) -> bool:
    return SECRET not in text and SECRET[:20] not in text and "alice" not in text and "[redacted: github-token]" in text


def test_pages_are_redacted_by_default_and_other_formats_when_asked(session):
    for page in PAGES:
        made = run("export", session, "--to", page)
        assert is_clean(made.out)
        assert "6 github-token" in made.err
        assert SECRET not in made.err
        assert SECRET in run("export", session, "--to", page, "--no-redact").out
    assert SECRET in run("export", session, "--to", "langchain").out
    assert is_clean(run("export", session, "--to", "langchain", "--redact").out)


def test_show_is_redacted_when_asked(session):
    assert SECRET in run("show", session, "--full").out
    for form in ("text", *PAGES):
        shown = run("show", session, "--full", "--redact", "--format", form)
        assert is_clean(shown.out)
        assert "github-token" in shown.err


@pytest.mark.parametrize("agent", AGENTS)
def test_a_handover_is_redacted_when_asked(session, agent, tmp_path):
    folder = tmp_path / "out"
    made = run("handover", session, "--to", agent, "--redact", "-o", folder)
    assert made.status == 0, made.err
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert written
    for path in written:
        data = path.read_bytes().decode("utf-8", "replace")
        assert SECRET not in data
        assert "alice" not in data
        assert "alice" not in str(path.relative_to(folder))
    assert "alice" not in made.out
    assert "name it with --cwd" in made.err


def test_replies_of_the_mcp_server_are_redacted_when_asked(session):
    server = build_server(redacts=True)
    (row,) = ask(server, "list_sessions")
    assert "alice" not in str(row)
    (same,) = ask(server, "list_sessions", project="/home/[redacted]/project")
    assert same["source"] == row["source"]
    answers = [
        ask(server, "read_session", source="pi:s-1"),
        ask(server, "read_session", source="pi:s-1", whole=True),
        ask(server, "search_sessions", text="My key is"),
        ask(server, "plan_switch", source="pi:s-1", models=["openai/gpt-5.4"]),
        ask(server, "list_dropped", source="pi:s-1", model="openai/gpt-5.4"),
        ask(server, "read_session", source=f"pi:{SECRET}"),
    ]
    assert ask(server, "search_sessions", text=SECRET) == []
    assert "6 github-token" in answers[0]
    assert is_clean(answers[1])
    assert "alice" not in str(answers)
    assert SECRET not in str(answers[:-1])  # the last one repeats what it was asked

    async def look() -> str:
        async with connect(server) as client:
            listed = (await client.list_resources()).resources
            prompt = await client.get_prompt("continue_session", {"source": "pi:s-1"})
            return f"{listed}{cast('Any', prompt.messages[0].content).text}"

    assert is_clean(asyncio.run(look()))
    assert SECRET in ask(build_server(), "read_session", source="pi:s-1", whole=True)


def test_a_handover_of_the_mcp_server_stays_whole_because_it_stays_here(session, home):
    said = ask(build_server(redacts=True, allows_writes=True), "hand_over", source="pi:s-1", to="codex")
    assert "alice" not in said
    (written,) = (home / ".codex").rglob("*.jsonl")
    assert SECRET in written.read_text()


def test_the_inspector_is_redacted_when_asked(session):
    for redacts in (True, False):
        library = Library(packaged_catalogue(), redacts=redacts)
        opened = open_conversation(session.read_bytes(), session.name, None)
        key = library.add(f"{PLACE}/x", opened).key
        answers = Answers(library, packaged_catalogue(), shows_sessions=True)
        query = json.dumps(
            {"document": key, "target": "openai/gpt-5.4", "rows": [0, 1, 2, 3], "length": 100_000}
        ).encode()
        texts = [
            answers.answer(path, {}, query).data.decode() for path in ("inspect", "rows", "wire", "given", "facts")
        ]
        texts += [answers.answer("open", {"document": key}).data.decode(), answers.answer("sessions", {}).data.decode()]
        assert (SECRET not in "".join(texts) and "alice" not in "".join(texts)) is redacts
        assert ("6 github-token" in texts[5]) is redacts


@pytest.mark.parametrize(
    ("options", "redacts"),
    [([], False), (["--port", "0"], True), (["--port", "0", "--no-redact"], False), (["--redact"], True)],
)
def test_the_mcp_server_is_redacted_by_default_over_http(options, redacts, home):
    before = (
        "import segue.cli.mcp_server as made\n"
        "def build(**given): print('redacts', given['redacts']); raise SystemExit(0)\n"
        "made.build_server = build"
    )
    assert run("mcp", *options, before=before).out == f"redacts {redacts}\n"
