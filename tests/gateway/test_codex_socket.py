"""codex over a WebSocket through a gateway: a loop of tools on one connection, and the session continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, final

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
[state]
store = "{store}"
"""


@final
class At(NamedTuple):
    """The address of a gateway."""

    url: str


@pytest.mark.parametrize("model", ["claude-opus-5-5", "gpt-5.4"])
@pytest.mark.parametrize("has_store", [True, False])
def test_codex_continues_its_replies_on_one_connection(model: str, has_store: bool, tmp_path: Path) -> None:
    upstream = Answering()
    messages: list[dict[str, Any]] = []
    posts: list[str] = []
    with serve_in_thread(upstream) as behind:
        store = f"sqlite:{tmp_path}/g.db" if has_store else "none"
        environment = {**KEYS, "XDG_STATE_HOME": str(tmp_path)}
        gateway = Gateway(load_config(CONFIG.format(url=behind, store=store)), environment=environment)
        app = create_app(gateway=gateway)

        async def noted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and scope["method"] == "POST":
                posts.append(scope["path"])

            async def noting() -> Any:
                message = await receive()
                if message["type"] == "websocket.receive":
                    messages.append(json.loads(message.get("text") or message["bytes"]))
                return message

            await app(scope, noting if scope["type"] == "websocket" else receive, send)

        with serve_in_thread(noted) as url:
            agent = Agent("codex", "websocket", tmp_path / "home", At(url))
            for steps in (4, 2):
                upstream.left = steps
                ran = agent.ask("Say the steps.", model)
                assert ran.code == 0, ran.said
                assert "Done, answer" in ran.said
                assert upstream.left == 0
    assert posts == []
    assert [request.refusal for request in upstream.emulator.requests if request.refusal] == []
    assert len([request for request in upstream.emulator.requests if find_shell(request.body)]) >= 8
    continued = [message for message in messages if message.get("previous_response_id")]
    assert len(continued) >= 6
    key = "messages" if "claude" in model else "input"
    bodies: list[Any] = [request.body for request in upstream.emulator.requests]
    assert sum(len(message["input"]) for message in messages) < sum(len(body[key]) for body in bodies)
    assert len([message for message in continued if len(message["input"]) <= 3]) >= 6  # one for each step
