"""Real agents use `segue mcp`: they start it, offer its tools to the model, and return what it found. `make proof`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.test_histories import store
from histories.agent_programs import need_program, texts_in
from segue.testing.emulator import Step, emulate
from segue.testing.emulator.script import EmulatedCall

pytestmark = pytest.mark.proof
INTEGRATIONS = Path(__file__).parents[2] / "integrations"
SERVER = (sys.executable, "-m", "segue", "mcp")


def settings_of(agent: str, url: str, home: Path) -> tuple[list[str], dict[str, str], str]:
    """Give the command, the environment and the name that the agent gives the tool."""
    command, *arguments = SERVER
    servers = {"mcpServers": {"segue": {"command": command, "args": arguments}}}
    match agent:
        case "claude-code":
            config = home / "mcp.json"
            config.write_text(json.dumps(servers))
            tool = "mcp__segue__list_sessions"
            words = ["claude", "-p", "Which?", "--model", "claude-opus-4-8", "--mcp-config", str(config)]
            return (
                [*words, "--allowedTools", tool],
                {
                    "ANTHROPIC_BASE_URL": url,
                    "ANTHROPIC_API_KEY": "any",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "DISABLE_AUTOUPDATER": "1",
                },
                tool,
            )
        case "codex":
            folder = home / "codex"
            folder.mkdir()
            folder.joinpath("config.toml").write_text(
                f'model = "gpt-5.4"\nmodel_provider = "here"\n'
                f'[model_providers.here]\nname = "here"\nbase_url = "{url}/v1"\n'
                'wire_api = "responses"\nenv_key = "KEY"\n'
                f"[mcp_servers.segue]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
                'default_tools_approval_mode = "approve"\nrequired = true\nstartup_timeout_sec = 60\n'
            )
            words = ["codex", "exec", "--skip-git-repo-check", "Which?"]
            return words, {"CODEX_HOME": str(folder), "KEY": "any"}, "list_sessions"
        case _:
            folder = home / ".gemini"
            folder.mkdir()
            folder.joinpath("settings.json").write_text(
                json.dumps({**servers, "security": {"auth": {"selectedType": "gemini-api-key"}}})
            )
            words = ["gemini", "-m", "gemini-3.1-pro-preview", "--yolo", "-p", "Which?"]
            return (
                words,
                {
                    "GOOGLE_GEMINI_BASE_URL": url,
                    "GEMINI_API_KEY": "any",
                    "GEMINI_CLI_TRUST_WORKSPACE": "true",
                },
                "mcp_segue_list_sessions",
            )


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_an_agent_lists_the_sessions_of_another(home, agent, tmp_path):
    environment = need_program(agent)
    store(home, "claude-code")
    project = tmp_path / "project"
    project.mkdir()
    with emulate(strict=False) as server:
        command, variables, tool = settings_of(agent, server.url, home)
        wanted = EmulatedCall(name=tool, arguments={"agent": "claude-code"})
        server.emulator.script.add(Step(calls=(wanted,)), Step(text="Found."))
        done = subprocess.run(
            command,
            cwd=project,
            env={**environment, **variables, "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        sent = [text for request in server.emulator.requests for text in texts_in(request.body)]
    assert any("/home/user/project" in text for text in sent), (done.stdout[-2000:], done.stderr[-2000:])
    assert "Found." in done.stdout


def test_the_plug_in_of_claude_code_is_valid_and_brings_the_server(home, tmp_path):
    environment = need_program("claude-code")
    plugin = INTEGRATIONS / "claude-code"
    words = ["claude", "plugin", "validate", str(plugin)]
    valid = subprocess.run(words, env={**environment, "HOME": str(home)}, capture_output=True, text=True, check=False)
    assert valid.returncode == 0, valid.stdout
    store(home, "claude-code")
    tool = "mcp__plugin_segue_segue__list_sessions"
    with emulate(strict=False) as server:
        _, variables, _ = settings_of("claude-code", server.url, home)
        wanted = EmulatedCall(name=tool, arguments={"agent": "claude-code"})
        # The program sends its first request while the server of a plug-in is still starting.
        server.emulator.script.add(Step(calls=(wanted,), first_byte=20), Step(text="Done."))
        path = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
        done = subprocess.run(
            ["claude", "-p", "/segue:continue the parser", "--plugin-dir", str(plugin), "--allowedTools", tool],
            cwd=tmp_path,
            env={**environment, **variables, "HOME": str(home), "PATH": path, "MCP_TIMEOUT": "60000"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        sent = [text for request in server.emulator.requests for text in texts_in(request.body)]
    assert "Done." in done.stdout
    assert any("that these words describe" in text and "the parser" in text for text in sent)
    assert any("/home/user/project" in text for text in sent), done.stderr[-2000:]


def test_the_lines_for_codex_name_the_same_server():
    lines = tomllib.loads((INTEGRATIONS / "codex" / "config.toml").read_text())
    server = json.loads((INTEGRATIONS / "claude-code" / ".mcp.json").read_text())["mcpServers"]["segue"]
    assert {key: lines["mcp_servers"]["segue"][key] for key in server} == server
