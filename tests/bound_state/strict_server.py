"""A server that accepts thinking as Claude's newest models do: only behind what it was made after, in one unbroken run.

It shares no code with segue and compares values, never digests. What it checks, in this order for each block: the
signature is one of its own; the account; the model; the prefix; the chain of blocks.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

BETA: Final = "thinking-binding-controls-2026-08-01"
REFUSAL: Final = (
    "messages.{turn}.content.{block}: Invalid `signature` in `thinking` block. The block is bound to a different"
    " conversation. Remove it, or set `thinking.block_binding` with the beta header " + BETA
)
UNCHECKED: Final = ("claude-opus-5", "claude-opus-4-5")
"""Models without the check of the prefix."""
Wire = dict[str, Any]


class StrictServer:
    """Answers requests one after the other; `script` says what the replies contain."""

    def __init__(self, *, reads: Callable[[str, str], bool] | None = None, thinks: int = 1) -> None:
        self.reads = reads or (lambda writer, reader: writer == reader)
        self.thinks = thinks
        self.calls: list[tuple[str, Wire]] = []
        """The tool calls of the next replies."""
        self.made: dict[str, Wire] = {}
        self.count = 0
        self.bodies: list[Wire] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[Wire] = []
        self.accepted: list[list[str]] = []
        """The signatures of each answered request that the model read."""

    def answer(self, body: Any, headers: Mapping[str, str] | None = None, *, account: str = "org"):
        """Give the status and the body of the reply."""
        body = json.loads(json.dumps(body))
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        assert body not in self.refused, "the same body was sent again after it was refused"
        self.bodies.append(body)
        self.headers.append(lower)
        has_beta = BETA in lower.get("anthropic-beta", "")
        binding = (body.get("thinking") or {}).get("block_binding")
        if binding is not None and not has_beta:
            return self._refuse(body, "thinking.adaptive.block_binding: Extra inputs are not permitted")
        drops = (binding or {}).get("prefix_mismatch_behavior") == "drop_block"
        transformations, read, is_broken = [], [], False
        for turn, block, signature in blocks_of(body):
            record = self.made.get(signature)
            path = f"messages.{turn}.content.{block}"
            if record is None:
                return self._refuse(body, f"{path}: Invalid `signature` in `thinking` block")
            if record["binds_account"] and record["account"] != account:
                transformations.append(
                    {"type": "thinking_dropped", "path": path, "reason": "organization_binding_mismatch"}
                )
            elif not self.reads(record["model"], body["model"]):
                transformations.append({"type": "thinking_dropped", "path": path, "reason": "model_binding_mismatch"})
            elif body["model"] in UNCHECKED:
                read.append(signature)
            elif is_broken or record["prefix"] != prefix_of(body, turn) or (read and record["before"] != read[-1]):
                if not drops:
                    return self._refuse(body, REFUSAL.format(turn=turn, block=block))
                is_broken = True
                transformations.append({"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"})
            else:
                read.append(signature)
        self.accepted.append(read)
        reply = self._reply(body, read, account)
        if has_beta:
            reply["input_transformations"] = transformations
        return 200, reply

    def _refuse(self, body: Wire, message: str):
        self.refused.append(body)
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def _reply(self, body: Wire, read: list[str], account: str) -> Wire:
        self.count += 1
        number = self.count
        content: list[Wire] = []
        before = read[-1] if read else None
        for part in range(self.thinks):
            signature = f"sig-{number}-{part}"
            self.made[signature] = {
                "model": body["model"],
                "account": account,
                "binds_account": "sonnet-5-5" in body["model"] or "haiku-5-5" in body["model"],
                "prefix": prefix_of(body, len(body["messages"])),
                "before": before,
            }
            before = signature
            content.append({"type": "thinking", "thinking": "", "signature": signature})
        if self.calls:
            name, arguments = self.calls.pop(0)
            content.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments})
        else:
            content.append({"type": "text", "text": f"answer {number}"})
        return {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{number}",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if content[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


def blocks_of(body: Wire):
    """Give the thinking of a body: turn, place in it, signature."""
    for turn, message in enumerate(body["messages"]):
        if message["role"] == "assistant" and isinstance(message["content"], list):
            for place, block in enumerate(message["content"]):
                if block["type"] == "thinking":
                    yield turn, place, block["signature"]
                elif block["type"] == "redacted_thinking":
                    yield turn, place, block["data"]


def prefix_of(body: Wire, turn: int) -> Wire:
    """Give what stands before a turn, without cache marks and thinking."""
    tools = [tool for tool in body.get("tools") or [] if not tool.get("defer_loading")]
    messages = copy.deepcopy(body["messages"][:turn])
    for message in messages:
        if message["role"] == "assistant" and isinstance(message["content"], list):
            message["content"] = [
                block for block in message["content"] if block["type"] not in ("thinking", "redacted_thinking")
            ]
    return without_marks({"system": body.get("system"), "tools": tools, "messages": messages})


def without_marks(value: Any) -> Any:
    """Remove every cache mark."""
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value
