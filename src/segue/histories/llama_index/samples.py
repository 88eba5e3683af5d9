"""A small sample for the conformance kit, written by hand after a dump of llama-index-core 0.14.25."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, PATHS, PNG, REMARK, SIGNATURE, THOUGHT
from segue.histories.kit.simple_samples import one_sample


def _text(text: str) -> dict[str, Any]:
    return {"block_type": "text", "text": text}


def _message(role: str, *blocks: dict[str, Any], **kwargs: str) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": kwargs, "blocks": list(blocks)}


_IMAGE = {"block_type": "image", "image": PNG, "path": None, "url": None, "image_mimetype": "image/png", "detail": None}
_THINKING = {
    "block_type": "thinking",
    "content": THOUGHT,
    "num_tokens": None,
    "additional_information": {"signature": SIGNATURE, "type": "thinking"},
}
_CALLS = [
    {"block_type": "tool_call", "tool_call_id": f"toolu_{at}", "tool_name": "read", "tool_kwargs": {"path": path}}
    for at, path in enumerate(PATHS, 1)
]
samples: Final = one_sample(
    [
        _message("system", _text("Be brief.")),
        _message("user", _text(ASKED), _IMAGE),
        _message("assistant", _THINKING, _text(REMARK), *_CALLS),
        _message("tool", _text(FOUND), _IMAGE, tool_call_id="toolu_1"),
        _message("tool", _text(MISSING), tool_call_id="toolu_2"),
        _message("assistant", _text(ANSWER)),
    ],
    errors=False,
)
