"""A small sample for the conformance kit, written by hand after a dump of haystack-ai 3.4.0."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    MODEL,
    PATHS,
    PNG,
    REMARK,
    SIGNATURE,
    THOUGHT,
)
from segue.histories.kit.simple_samples import one_sample


def _message(role: str, *content: dict[str, Any], **meta: object) -> dict[str, Any]:
    return {"role": role, "meta": meta, "name": None, "content": list(content)}


def _result(at: int, result: object, *, error: bool) -> dict[str, Any]:
    return {"tool_call_result": {"result": result, "origin": _CALLS[at - 1], "error": error}}


_IMAGE: dict[str, Any] = {
    "image": {"base64_image": PNG, "mime_type": "image/png", "detail": None, "meta": {}, "validation": True}
}
_CALLS: list[dict[str, Any]] = [
    {"tool_name": "read", "arguments": {"path": path}, "id": f"toolu_{at}", "extra": None}
    for at, path in enumerate(PATHS, 1)
]
_THINKING = {"reasoning": {"reasoning_text": THOUGHT, "extra": {"signature": SIGNATURE}}}
samples: Final = one_sample(
    [
        _message("system", {"text": "Be brief."}),
        _message("user", {"text": ASKED}, _IMAGE),
        _message("assistant", _THINKING, {"text": REMARK}, *({"tool_call": call} for call in _CALLS), model=MODEL),
        _message("tool", _result(1, [{"text": FOUND}, _IMAGE], error=False)),
        _message("tool", _result(2, MISSING, error=True)),
        _message("assistant", {"text": ANSWER}, model=MODEL, usage={"input_tokens": 20, "output_tokens": 7}),
    ]
)
