"""`segue mcp`, asked by the official client: in this process, over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from typing import Any, cast

import httpx2
import pytest

from cli.running import SESSION
from cli.test_histories import snapshot, store
from segue import read_history
from segue.histories.registry import get_format

READING = ["check_request", "list_dropped", "list_sessions", "plan_switch", "read_session", "search_sessions"]


def connect(server: Any) -> Any:
    """Make a client. The package takes a second to import, which only those who run these tests have to wait for."""
    from mcp import Client

    return Client(server)


def build_server(**options: Any) -> Any:
    """Make the server in this process."""
    from segue.cli.mcp_server import build_server as build

    return build(**options)


def ask(server: Any, tool: str, **arguments: object) -> Any:
    """Call one tool, and give its structured result, or the text of its error."""

    async def call() -> Any:
        async with connect(server) as client:
            result = await client.call_tool(tool, arguments)
            if result.is_error:
                return cast("Any", result.content[0]).text
            (value,) = (result.structured_content or {}).values()
            return value

    return asyncio.run(call())


def test_sessions_are_listed_searched_and_read(home):
    store(home, "claude-code")
    store(home, "codex")
    server = build_server()
    rows = ask(server, "list_sessions")
    assert {row["source"].partition(":")[0] for row in rows} == {"claude-code", "codex"}
    (row,) = ask(server, "list_sessions", agent="claude-code")
    assert row["project"] == "/home/user/project"
    (found,) = ask(server, "search_sessions", text="READ BOTH files", agent="claude-code")
    assert found["source"] == row["source"]
    assert "Read both files." in found["found"]
    assert ask(server, "search_sessions", text="nothing says this") == []
    page = ask(server, "read_session", source=row["source"], first=-2, count=1)
    messages = read_history(row["source"]).context.messages
    assert page.startswith(f"{row['source']}: messages {len(messages) - 2} to {len(messages) - 2} of {len(messages)}")


def test_what_a_compaction_dropped_is_listed_and_given_back(home):
    path = store(home, "claude-code")
    sample = next(each for each in get_format("claude-code").samples() if read_history(each.source.data).compactions)
    path.write_bytes(sample.source.data or b"")
    server = build_server()
    (row,) = ask(server, "list_sessions")
    dropped = ask(server, "list_dropped", source=row["source"])
    history = read_history(row["source"])
    assert len(dropped) == history.compactions[-1].summary.covers > 0
    first = dropped[0]["number"]
    again = ask(server, "read_session", source=row["source"], first=first, count=1, view="full", whole=True)
    start = re.sub(r"</?untrusted-\w+>", "", dropped[0]["start"])
    assert start[:40] in " ".join(again.split())


def test_what_does_not_fit_a_model_is_listed(home, tmp_path):
    lines = SESSION.read_text().splitlines()
    long = json.loads(lines[1])
    long["content"] = [{"type": "text", "text": "word " * 60_000}]
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join([lines[0], json.dumps(long), json.dumps({**long, "timestamp": 2}), *lines[1:]]))
    server = build_server(roots=[tmp_path])
    assert ask(server, "list_dropped", source=str(path), model="openai/gpt-4o-mini")
    planned = ask(server, "plan_switch", source=str(path), models=["openai/gpt-4o-mini"], turns=3)
    (row,) = planned["models"]
    assert not row["fits"]
    assert len(row["requests"]) == 3
    assert 0 < row["cost"]["low"] < row["cost"]["expected"] < row["cost"]["high"]
    assert "turns_dropped" in [loss["code"] for loss in row["losses"]]
    assert "ask for fewer" in ask(server, "plan_switch", source=str(path), models=[], turns=0)


def test_a_request_is_checked_by_model_or_protocol():
    body = {"model": "gpt-5.4", "input": "Hi", "temperatur": 1}
    for target in ("openai-responses", "openai/gpt-5.4"):
        (finding,) = ask(build_server(), "check_request", body=body, target=target)
        assert (finding["code"], finding["path"]) == ("field_unknown", "temperatur")


@pytest.mark.parametrize(
    "source", ["/etc/passwd", "claude-code:/etc/passwd", "codex:../../../etc/passwd", "-", "", "inside/link", "~root"]
)
def test_files_outside_of_the_named_folders_are_not_read(home, tmp_path, source):
    root = tmp_path / "inside"
    root.mkdir()
    (tmp_path / "secret.jsonl").write_bytes(SESSION.read_bytes())
    (root / "link").symlink_to(tmp_path / "secret.jsonl")
    (root / "own.jsonl").write_bytes(SESSION.read_bytes())
    server = build_server(roots=[root])
    given = str(tmp_path / source) if source.startswith("inside") else source
    refused = ask(server, "read_session", source=given)
    assert refused.startswith("Error executing tool read_session: ")
    assert "[0]" not in refused
    assert "[0]" in ask(server, "read_session", source=str(root / "own.jsonl"))


def test_nothing_is_written_unless_it_is_allowed(home):
    path = store(home, "claude-code")
    source = f"claude-code:{path.stem}"
    before = snapshot(home)
    assert "Unknown tool" in ask(build_server(), "hand_over", source=source, to="pi")
    assert snapshot(home) == before
    refused = ask(build_server(allows_writes=True), "hand_over", source=source, to="langchain")
    assert "no session can be continued there; choose one of claude-code" in refused
    written = ask(build_server(allows_writes=True), "hand_over", source=source, to="pi")
    assert "continue with: cd /home/user/project && pi " in written
    assert set(snapshot(home)) > set(before)
    assert {path: data for path, data in snapshot(home).items() if path in before} == before


def test_an_error_says_what_to_do(home):
    answer = ask(build_server(), "plan_switch", source="claude-code:last", models=["openai/gpt-5.4"])
    assert "Error executing tool plan_switch: " in answer
    assert "Traceback" not in answer


def test_sessions_are_resources_and_one_is_a_prompt(home):
    from mcp import MCPError

    path = store(home, "claude-code")

    async def look() -> tuple[str, str]:
        async with connect(build_server()) as client:
            (resource,) = (await client.list_resources()).resources
            read = await client.read_resource(str(resource.uri))
            prompt = await client.get_prompt("continue_session", {"source": resource.name})
            with pytest.raises(MCPError):
                await client.read_resource("segue://sessions/claude-code/..%2F..%2Fpasswd")
            return cast("Any", read.contents[0]).text, cast("Any", prompt.messages[0].content).text

    read, prompt = asyncio.run(look())
    assert "Read both files." in read
    assert prompt.startswith(f"Continue the work of this session (claude-code:{path.stem}, in /home/user/project).")
    assert "Read both files." in prompt


def test_the_program_serves_over_standard_input_and_output(home):
    from mcp import StdioServerParameters

    store(home, "claude-code")
    program = StdioServerParameters(command=sys.executable, args=["-m", "segue", "mcp"], env=dict(os.environ))

    async def look() -> list[str]:
        async with connect(program) as client:
            return sorted(tool.name for tool in (await client.list_tools()).tools)

    assert asyncio.run(look()) == READING


def test_the_program_serves_over_http_on_this_machine_alone(home):
    store(home, "claude-code")
    with subprocess.Popen(
        [sys.executable, "-m", "segue", "mcp", "--port", "0", "--allow-writes"], stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stderr is not None
            address = program.stderr.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*/[\w-]{40,}/mcp", address)

            async def look() -> list[str]:
                async with connect(address) as client:
                    return sorted(tool.name for tool in (await client.list_tools()).tools)

            assert asyncio.run(look()) == sorted([*READING, "hand_over"])
            rebound = httpx2.post(address, headers={"host": "evil.example"}, json={})
            assert rebound.status_code == 421
            unknown = httpx2.post(httpx2.URL(address).copy_with(path="/mcp"), json={})
            assert unknown.status_code == 404
        finally:
            program.terminate()


def test_every_tool_says_what_it_does_and_whether_it_writes():
    async def look() -> list[Any]:
        async with connect(build_server(allows_writes=True)) as client:
            return list((await client.list_tools()).tools)

    tools = asyncio.run(look())
    assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == {"hand_over"}
    assert all(len(tool.description) > 40 for tool in tools)
