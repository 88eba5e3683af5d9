"""`segue acp`, asked by the client of the official package, and `acp:AGENT`, with `segue acp` as the agent."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from cli.running import SESSION, run
from cli.test_histories import store
from cli.test_mcp_gate import spellings
from segue import AsyncClient, Options, get_model, read_history
from segue.conversation.messages import UserMessage
from segue.histories.registry import FORMATS
from segue.testing.emulator import EmulatedCall, Step, emulate

CAPABLE = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


class Editor:
    """An editor that keeps what it is told, has one file, and allows what it is set to allow."""

    def __init__(self, *, allows: bool = True) -> None:
        self.updates: list[Any] = []
        self.asked: list[str] = []
        self.read: list[str] = []
        self.written: dict[str, str] = {}
        self.run: list[str] = []
        self.allows = allows

    def on_connect(self, conn: object) -> None:
        pass

    async def session_update(self, update: Any, **_: object) -> None:
        self.updates.append(update)

    async def request_permission(self, tool_call: Any, options: list[Any], **_: object) -> Any:
        from acp import schema

        self.asked.append(tool_call.title)
        if not self.allows:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, path: str, **_: object) -> Any:
        from acp import schema

        self.read.append(path)
        return schema.ReadTextFileResponse(content="one line")

    async def write_text_file(self, path: str, content: str, **_: object) -> None:
        self.written[path] = content

    async def create_terminal(self, args: list[str], **_: object) -> Any:
        from acp import schema

        self.run.append(args[-1])
        return schema.CreateTerminalResponse(terminal_id="t1")

    async def wait_for_terminal_exit(self, **_: object) -> Any:
        from acp import schema

        return schema.WaitForTerminalExitResponse(exit_code=1)

    async def terminal_output(self, **_: object) -> Any:
        from acp import schema

        return schema.TerminalOutputResponse(output="no tests", truncated=False)

    async def release_terminal(self, **_: object) -> None:
        pass

    def texts(self, kind: str) -> list[str]:
        said = [update.content for update in self.updates if update.session_update == kind]
        return [content.text for content in said if content.type == "text"]


def ask(work: Callable[[Any], Awaitable[Any]], editor: Editor | None = None, *options: str) -> Any:
    """Start `segue acp`, connect the editor, and let it work."""
    import acp
    from acp import schema

    async def call() -> Any:
        command = (sys.executable, "-m", "segue", "acp", *options)
        client = cast("Any", editor or Editor())
        async with (
            asyncio.timeout(300),
            acp.spawn_agent_process(client, *command, env=dict(os.environ)) as (connection, _),
        ):
            await connection.initialize(1, schema.ClientCapabilities.model_validate(CAPABLE))
            return await work(connection)

    return asyncio.run(call())


def ask_here(work: Callable[[Any], Awaitable[Any]], editor: Editor, url: str = "", **options: Any) -> Any:
    """Let the editor work with the agent in this process."""
    from acp import schema

    from segue.cli.acp_server import SessionAgent

    async def call() -> Any:
        async with AsyncClient(base_url={"openai": f"{url}/v1"}, api_key={"openai": "x"}) as client:
            settings: dict[str, Any] = {"roots": (), "save": None, "options": Options(), **options}
            agent = SessionAgent(client, get_model("openai/gpt-5.4"), **settings)
            agent.on_connect(cast("Any", editor))
            await agent.initialize(1, schema.ClientCapabilities.model_validate(CAPABLE))
            try:
                return await work(agent)
            finally:
                await agent.close()

    return asyncio.run(call())


def refused(connection: Any, name: str) -> Awaitable[tuple[int, str]]:
    """Load a session that is refused; gives the error without the name."""
    from acp import RequestError

    async def call() -> tuple[int, str]:
        with pytest.raises(RequestError) as caught:
            await connection.load_session(cwd="/", session_id=name, mcp_servers=[])
        data = cast("dict[str, Any]", caught.value.data)
        return caught.value.code, json.dumps({**data, "uri": data["uri"] == name[:200]})

    return call()


def test_an_editor_lists_and_loads_the_sessions_of_every_agent(home):
    store(home, "claude-code")
    store(home, "codex")
    editor = Editor()

    async def work(connection: Any) -> Any:
        listed = await connection.list_sessions()
        for session in listed.sessions:
            await connection.load_session(cwd=session.cwd, session_id=session.session_id, mcp_servers=[])
        return listed.sessions, (await connection.list_sessions(cwd="/nowhere")).sessions

    sessions, none = ask(work, editor)
    assert {session.session_id.partition(":")[0] for session in sessions} == {"claude-code", "codex"}
    assert none == []
    said = "\n".join(editor.texts("user_message_chunk"))
    assert "Read both files." in said
    calls = [update for update in editor.updates if update.session_update == "tool_call"]
    results = [update for update in editor.updates if update.session_update == "tool_call_update"]
    assert calls
    assert {update.tool_call_id for update in results} <= {update.tool_call_id for update in calls}


def test_an_editor_continues_a_session_on_another_model_with_its_own_hands(home):
    path = store(home, "claude-code")
    before = path.read_bytes()
    editor = Editor()
    steps = (
        Step(
            calls=(
                EmulatedCall(name="read_file", arguments={"path": "a.txt"}),
                EmulatedCall(name="write_file", arguments={"path": "b.txt", "content": "two"}),
                EmulatedCall(name="run_command", arguments={"command": "make test"}),
            )
        ),
        Step(text="All done."),
    )

    async def work(connection: Any) -> Any:
        import acp

        (session,) = (await connection.list_sessions()).sessions
        await connection.load_session(cwd="/project", session_id=session.session_id, mcp_servers=[])
        editor.updates.clear()
        return await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("Go on.")])

    with emulate(*steps) as server:
        saved = home / "saved"
        answer = ask_here(work, editor, server.url, save=saved)
        body = json.dumps(server.emulator.requests[-1].body)
    assert answer.stop_reason == "end_turn"
    assert "".join(editor.texts("agent_message_chunk")).endswith("All done.")
    assert editor.read == ["/project/a.txt"]
    assert editor.written == {"/project/b.txt": "two"}
    assert editor.run == ["make test"]
    assert sorted(editor.asked) == ["run_command", "write_file"]
    assert "Read both files." in body
    assert "(exit status 1)" in body
    (file,) = saved.iterdir()
    messages = read_history(file).context.messages
    assert UserMessage.of("Go on.").content in [message.content for message in messages]
    assert path.read_bytes() == before


def test_a_model_gets_no_path_outside_of_the_project(home):
    project, editor = home / "project", Editor()
    (home / "outside").mkdir()
    project.mkdir()
    (project / "link").symlink_to(home / "outside")
    paths = ["../secret", "/etc/passwd", "a/../../secret", "link/secret", f"{project}-evil/x", f"/proc/self/root{home}"]
    paths += ["a\0b", "\ud800"]
    reads = [EmulatedCall(name="read_file", arguments={"path": path}) for path in paths]
    writes = [EmulatedCall(name="write_file", arguments={"path": path, "content": "x"}) for path in paths]

    async def work(agent: Any) -> Any:
        import acp

        session = await agent.new_session(cwd=str(project), mcp_servers=[])
        return await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Read it.")])

    with emulate(Step(calls=(*reads, *writes)), Step(text="No.")) as server:
        ask_here(work, editor, server.url, save=home / "saved")
        sent = json.dumps(server.emulator.requests[-1].body)
    assert sent.count("outside of the folder of the project") == 2 * len(paths)
    assert (editor.read, editor.written, editor.asked) == ([], {}, [])


def test_what_the_user_does_not_allow_is_not_done(home):
    editor = Editor(allows=False)

    async def work(connection: Any) -> Any:
        import acp

        session = await connection.new_session(cwd="/project", mcp_servers=[])
        return await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("Do it.")])

    call = EmulatedCall(name="run_command", arguments={"command": "rm -r ."})
    with emulate(Step(calls=(call,)), Step(text="No.")) as server:
        ask_here(work, editor, server.url, save=home / "saved")
        assert "did not allow" in json.dumps(server.emulator.requests[-1].body)
    assert (editor.asked, editor.run) == (["run_command"], [])


def test_nothing_but_listed_sessions_is_loaded(home, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "session.jsonl"
    outside.write_bytes(SESSION.read_bytes())
    root = home / "root"
    root.mkdir()
    (root / "link.jsonl").symlink_to(outside)
    names = [
        *spellings(outside),
        *(f"{name}:{given}" for name in FORMATS for given in spellings(outside)[:1]),
        str(root / "link.jsonl"),
        str(outside.with_name("missing.jsonl")),
        "last",
        "acp:kimi-code",
        "a\0b",
        "x" * 5000,
        "-",
        "",
    ]

    async def work(connection: Any) -> Any:
        return {await refused(connection, name) for name in names}

    assert len(ask_here(work, Editor(), roots=[root])) == 1


def test_the_program_of_an_agent_is_a_source(home, monkeypatch):
    store(home, "claude-code")
    program = home / "bin" / "kimi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m segue acp\n')
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    rows = json.loads(run("sessions", "acp:kimi-code", "--json", env=environment).out)
    assert [row["id"].partition(":")[0] for row in rows] == ["claude-code"]
    shown = run("show", f"acp:kimi-code:{rows[0]['id']}", env=environment)
    assert "Read both files." in shown.out
    monkeypatch.setenv("PATH", environment["PATH"])
    done = run("handover", "acp:kimi-code", "--to", "codex", "-o", str(home / "out"), env=environment)
    assert done.status == 0, done.err
    (path,) = (home / "out").glob("rollout-*.jsonl")
    assert "Read both files." in path.read_text()


@pytest.mark.parametrize(
    ("source", "reason"),
    [("acp:unheard-of", "choose one of opencode"), ("acp:goose", "is not installed, or not on the PATH")],
)
def test_an_agent_that_is_not_there_is_named(source, reason):
    done = run("show", source)
    assert done.status != 0
    assert reason in done.err


def test_what_a_program_lacks_is_found():
    from segue.cli.acp_client import compare

    messages = read_history(SESSION).context.messages
    assert compare(messages, messages).missing == ()
    lacking = compare(messages, messages[1:])
    assert len(lacking.missing) == 1
    assert lacking.pieces > 1
