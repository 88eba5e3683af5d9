"""A small export for the conformance kit, written by hand after the code of Open WebUI 0.10.2."""

from __future__ import annotations

import json
from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_FILE = {"type": "image", "url": f"data:image/png;base64,{_PNG}"}
_OLD = (
    '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n&gt; It is red.\n'
    '&gt; A dot.\n</details>\n<details type="tool_calls" done="true" id="call_9" name="look" '
    'arguments="{&quot;at&quot;: 1}" result="&quot;red&quot;">\n<summary>Done</summary>\n</details>\nA red dot.'
)


def _message(name: str, parent: str | None, role: str, content: str, **fields: object) -> tuple[str, dict[str, Any]]:
    time = 1790000000 + len(name)
    return name, {"id": name, "parentId": parent, "role": role, "content": content, "timestamp": time, **fields}


_OUTPUT: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "content": [{"type": "output_text", "text": "I look."}], "summary": None,
     "reasoning_details": [{"type": "reasoning.text", "text": "I look.", "signature": "c2ln"}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "red"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Red."}]},
]  # fmt: skip
_CHAT = {
    "title": "Dot", "models": ["gpt-5.4"], "system": "Be brief.",
    "history": {
        "currentId": "m5",
        "messages": dict([
            _message("m1", None, "user", "What is it?", files=[_FILE]),
            _message("m2", "m1", "assistant", _OLD, model="gpt-5.4", done=True),
            _message("m2b", "m1", "assistant", "Another answer.", model="claude-sonnet-4-5"),
            _message("m3", "m2", "user", "Again."),
            _message("m4", "m3", "assistant", "Red.", model="gpt-5.4", output=_OUTPUT),
            _message("m5", "m4", "user", "And?"),
        ]),
    },
}  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: an answer as HTML, one as items, another answer beside them, and an image."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}

    def call(name: str, **arguments: object) -> dict[str, Any]:
        return {"type": "tool_use", "id": name, "name": "look", "input": arguments}

    def result(name: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "red"}]}

    return (
        FormatSample(
            "two ways",
            Source(data=json.dumps([{"id": "chat-1", "chat": _CHAT}]).encode(), name="chat-export.json"),
            [
                {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "It is red.\nA dot."},
                                                  call("call_9", at=1)]},
                result("call_9"),
                {"role": "assistant", "content": "A red dot."},
                {"role": "user", "content": "Again."},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "I look.", "signature": "c2ln"},
                                                  call("call_1")]},
                result("call_1"),
                {"role": "assistant", "content": "Red."},
                {"role": "user", "content": "And?"},
            ],
            wire="anthropic-messages",
        ),
    )  # fmt: skip
