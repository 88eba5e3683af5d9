"""A conversation with an emulated Claude, in raw bodies: what a client can do to it, and what the emulator answers.

It builds bodies itself, so that the tests of the emulator do not rest on the encoders of segue.
"""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple, final

from segue.testing.emulator import EmulatedCall, Emulator, Step

BINDING = "thinking-binding-controls-2026-08-01"
_ADAPTIVE = {"type": "adaptive"}
_BUDGET = {"type": "enabled", "budget_tokens": 1024}
TOOL: dict[str, Any] = {"name": "read", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}


@final
class Answered(NamedTuple):
    """An answer, read."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def message(self) -> str:
        """The text of an error."""
        error = self.body.get("error", self.body)
        return str(error.get("message"))

    @property
    def transformations(self) -> Any:
        """What the reply reports; None if it reports nothing."""
        fields = self.body.get("additionalModelResponseFields", self.body)
        return fields.get("input_transformations")


class Talk:
    """A conversation with a Claude model in the Messages API. Its fields are what the next request sends."""

    def __init__(self, emulator: Emulator, model: str = "claude-opus-5-5", *, key: str = "k") -> None:
        self.emulator = emulator
        self.model = model
        self.key = key
        self.system: Any = "Be brief."
        self.tools: list[Any] = [copy.deepcopy(TOOL)]
        self.messages: list[Any] = []
        self.betas: set[str] = set()
        self.thinking: dict[str, Any] | None = None
        """What the request says of thinking; None is what the model takes."""
        self.last = Answered(0, {}, {})

    def post(self, path: str = "/v1/messages", **more: Any) -> Answered:
        """Send what the conversation is now."""
        body = {
            "model": self.model,
            "max_tokens": 2000,
            "system": self.system,
            "tools": self.tools,
            "messages": self.messages,
            "thinking": self.thinking or (_BUDGET if "-4-5" in self.model else _ADAPTIVE),
            **more,
        }
        headers = {"x-api-key": self.key, "anthropic-version": "2023-06-01"}
        if self.betas:
            headers["anthropic-beta"] = ",".join(sorted(self.betas))
        sent = {name: value for name, value in body.items() if value is not None}
        if path.endswith("count_tokens"):
            del sent["max_tokens"]
        reply = self.emulator.respond("POST", path, headers, json.dumps(sent).encode())
        text = reply.body.decode()
        self.last = Answered(reply.status, reply.headers, json.loads(text) if text.startswith("{") else {"raw": text})
        return self.last

    def say(self, text: str, *steps: Step) -> Answered:
        """Add a user message and send; a reply is added too."""
        return self.send({"role": "user", "content": [{"type": "text", "text": text}]}, *steps)

    def send(self, message: dict[str, Any], *steps: Step) -> Answered:
        """Add a message and send; a reply is added too."""
        self.emulator.script.add(*(steps or (Step(thinking="Hm.", text="Yes."),)))
        self.messages.append(message)
        answer = self.post()
        if answer.status == 200:
            self.messages.append({"role": "assistant", "content": answer.body["content"]})
        else:
            self.emulator.script.take(self.model)
        return answer

    def call(self, text: str) -> Answered:
        """Let the model call a tool, and answer it."""
        step = Step(thinking="Look.", calls=(EmulatedCall(name="read", arguments={"path": "a"}),))
        self.say(text, step)
        return self.send(self.result())

    def result(self, text: str = "content") -> dict[str, Any]:
        """Make the result of the newest call."""
        called = self.messages[-1]["content"][-1]["id"]
        content = [{"type": "text", "text": text}]
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": called, "content": content}]}

    def thinking_at(self, message: int) -> dict[str, Any]:
        """Give the thinking block of a reply."""
        return next(block for block in self.messages[message]["content"] if block["type"] == "thinking")

    def drop_thinking(self, message: int) -> dict[str, Any]:
        """Take the thinking block out of a reply."""
        block = self.thinking_at(message)
        self.messages[message]["content"].remove(block)
        return block

    def signatures(self) -> list[str]:
        """Give the signatures in the conversation."""
        blocks = [block for message in self.messages for block in message["content"] if isinstance(block, dict)]
        return [block["signature"] for block in blocks if block.get("type") == "thinking"]


def turns(count: int = 3, model: str = "claude-opus-5-5", **settings: Any) -> Talk:
    """Have a conversation of some turns, each with thinking."""
    talk = Talk(Emulator(**settings), model)
    for number in range(count):
        assert talk.say(f"question {number}").status == 200
    return talk
