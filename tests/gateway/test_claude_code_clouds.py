"""Claude Code in its Bedrock and Vertex modes through a gateway: a loop of tools, and the session continued."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, final

import pytest

from gateway.agent_runs import Agent, Answering, find_shell
from gateway.running import KEYS
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.testing.emulator import serve_in_thread

pytestmark = pytest.mark.proof

CONFIG = """
[providers.anthropic]
base_url = "{url}"
[providers.openai]
base_url = "{url}/v1"
[models."claude-of-anthropic"]
try = ["anthropic/claude-opus-5-5"]
[models."claude-of-openai"]
try = ["openai/gpt-5.4"]
[state]
store = "sqlite:{folder}/g.db"
"""
ENDPOINTS = {"bedrock": "/invoke-with-response-stream", "vertex": ":streamRawPredict"}


@final
class At(NamedTuple):
    """The address of a gateway."""

    url: str


@pytest.mark.parametrize("model", ["claude-of-anthropic", "claude-of-openai"])
@pytest.mark.parametrize("wire", ENDPOINTS)
def test_claude_code_works_in_the_modes_of_the_clouds(wire: str, model: str, tmp_path: Path) -> None:
    upstream = Answering()
    with serve_in_thread(upstream) as behind:
        config = load_config(CONFIG.format(url=behind, folder=tmp_path))
        gateway = Gateway(config, environment={**KEYS})
        seen: list[str] = []
        app = create_app(gateway=gateway)

        async def noted(scope: object, receive: object, send: object) -> None:
            if isinstance(scope, dict) and scope["type"] == "http":  # pyright: ignore[reportUnknownVariableType]
                seen.append(str(scope["path"]))  # pyright: ignore[reportUnknownArgumentType]
            await app(scope, receive, send)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]

        with serve_in_thread(noted) as url:  # pyright: ignore[reportArgumentType]
            agent = Agent("claude-code", wire, tmp_path / "home", At(url))
            for steps in (3, 1):
                upstream.left = steps
                ran = agent.ask("Say the steps.", model)
                assert ran.code == 0, ran.said
                assert "Done, answer" in ran.said
                assert upstream.left == 0
    requests = [request for request in upstream.emulator.requests if find_shell(request.body)]
    assert len(requests) >= 6
    assert [request.refusal for request in upstream.emulator.requests if request.refusal] == []
    assert any(ENDPOINTS[wire] in path for path in seen)
    assert not [path for path in seen if path.endswith("/v1/messages")]
