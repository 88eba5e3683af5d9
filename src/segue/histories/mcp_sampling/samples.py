"""A small sample for the conformance kit, written by hand after a request of mcp 2.3.0."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, PATHS, PNG, REMARK
from segue.histories.kit.simple_samples import one_sample


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _result(at: int, *content: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": f"toolu_{at}", "content": list(content), **fields}


_IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
_CALLS = [
    {"type": "tool_use", "name": "read", "id": f"toolu_{at}", "input": {"path": path}}
    for at, path in enumerate(PATHS, 1)
]
_REQUEST: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": [_text(ASKED), _IMAGE]},
        {"role": "assistant", "content": [_text(REMARK), *_CALLS]},
        {"role": "user", "content": [_result(1, _text(FOUND), _IMAGE), _result(2, _text(MISSING), isError=True)]},
        {"role": "assistant", "content": _text(ANSWER), "_meta": {"example.com/trace": "kept"}},
    ],
    "systemPrompt": "Be brief.",
    "maxTokens": 1000,
    "tools": [{"name": "read", "description": "Read a file.", "inputSchema": {"type": "object", "properties": {}}}],
}
samples: Final = one_sample(_REQUEST, thinking=False)
