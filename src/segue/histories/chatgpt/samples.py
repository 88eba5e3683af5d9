"""A small export for the conformance kit, written by hand after descriptions of the format."""

from __future__ import annotations

import base64
import json
from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import MemoryFiles, Source

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="


def _node(
    name: str, parent: str | None, role: str, content: dict[str, Any], tool: str | None = None, **fields: object
) -> tuple[str, dict[str, Any]]:
    author: dict[str, Any] = {"role": role, "name": tool, "metadata": {}}
    message: dict[str, Any] = {"id": name, "author": author, "create_time": 1790000000.5 + len(name), "weight": 1.0}
    message |= {
        "content": content,
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {"model_slug": "gpt-5-6"},
        **fields,
    }
    return name, {"id": name, "message": message, "parent": parent, "children": []}


def _text(*parts: object) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


_POINTER = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00ab", "size_bytes": 79}
_THOUGHTS = {"content_type": "thoughts", "thoughts": [{"summary": "Looking", "content": "A dot."}]}
_CODE = {"content_type": "code", "language": "unknown", "text": "print(1)"}
_INSTRUCTIONS = {"content_type": "user_editable_context", "user_instructions": "Be brief."}
_RECAP = {"content_type": "reasoning_recap", "content": "Thought for 4s"}
_CONVERSATION = {
    "title": "A picture", "create_time": 1790000000.5, "update_time": 1790000009.5, "current_node": "a3", "id": "c1",
    "mapping": dict([
        ("root", {"id": "root", "message": None, "parent": None, "children": ["s"]}),
        _node("s", "root", "system", _text(""), weight=0.0),
        _node("x", "s", "user", _INSTRUCTIONS, weight=0.0),
        _node("u1", "x", "user", {"content_type": "multimodal_text", "parts": [_POINTER, "What is it?"]},
              metadata={"attachments": [{"id": "file_00ab", "name": "dot.png"}, {"id": "gone", "name": "gone.pdf"}]}),
        _node("old", "u1", "assistant", _text("An abandoned answer.")),
        _node("t1", "u1", "assistant", _THOUGHTS),
        _node("c1", "t1", "assistant", _CODE, recipient="python"),
        _node("o1", "c1", "tool", {"content_type": "execution_output", "text": "1"}, tool="python"),
        _node("r1", "o1", "assistant", _RECAP),
        _node("a1", "r1", "assistant", _text("A red dot.")),
        _node("u2", "a1", "user", _text("And now?")),
        _node("a3", "u2", "assistant", _text("Cut off"), status="in_progress"),
    ]),
}  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: an image, thoughts, a call, an abandoned answer, and an interrupted one."""
    files = MemoryFiles({"file_00ab-dot.png": base64.b64decode(_PNG)})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    thinking = {"type": "thinking", "thinking": "Looking\nA dot."}
    call = {"type": "tool_use", "id": "call_c1", "name": "python", "input": {"input": "print(1)"}}
    return (
        FormatSample(
            "picture",
            Source(data=json.dumps([_CONVERSATION]).encode(), name="conversations.json", neighbours=files),
            [
                {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]},
                {"role": "assistant", "content": [thinking, call]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_c1", "content": "1"}]},
                {"role": "assistant", "content": "A red dot."},
                {"role": "user", "content": "And now?"},
                {"role": "assistant", "content": "Cut off"},
            ],
            wire="anthropic-messages",
        ),
    )
