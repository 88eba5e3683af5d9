"""A small sample for the conformance kit, written by hand after a dump of pydantic-ai."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, PATHS, PNG, REMARK, THOUGHT
from segue.histories.kit.simple_samples import one_sample


def _part(kind: str, **fields: object) -> dict[str, Any]:
    return {"type": kind, **fields}


_CALLS = [
    _part("tool_call", id=f"toolu_{at}", name="read", arguments={"path": path}) for at, path in enumerate(PATHS, 1)
]
_RESULTS = [
    _part("tool_call_response", id="toolu_1", name="read", result=FOUND),
    _part("tool_call_response", id="toolu_2", name="read", result=MISSING),
]
samples: Final = one_sample(
    [
        {"role": "system", "parts": [_part("text", content="Be brief.")]},
        {
            "role": "user",
            "parts": [_part("text", content=ASKED), _part("binary", media_type="image/png", content=PNG)],
        },
        {
            "role": "assistant",
            "parts": [_part("thinking", content=THOUGHT), _part("text", content=REMARK), *_CALLS],
            "finish_reason": "tool_call",
        },
        {"role": "user", "parts": _RESULTS},
        {"role": "assistant", "parts": [_part("text", content=ANSWER)], "finish_reason": "stop"},
    ],
    signature=False,
    result_image=False,
    errors=False,
)
