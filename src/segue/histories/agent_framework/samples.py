"""A small sample for the conformance kit, written by hand after a dump of agent-framework-core 1.23.0."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    MODEL,
    PATHS,
    PNG_URL,
    REMARK,
    SIGNATURE,
    THOUGHT,
)
from segue.histories.kit.simple_samples import one_sample


def _message(role: str, *contents: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"type": "message", "role": role, "contents": list(contents), "additional_properties": more}


def _content(kind: str, **fields: object) -> dict[str, Any]:
    return {"type": kind, **fields, "additional_properties": {}}


_IMAGE = _content("data", uri=PNG_URL, media_type="image/png")
_CALLS = [
    _content("function_call", call_id=f"toolu_{at}", name="read", arguments={"path": path}, hosted=False)
    for at, path in enumerate(PATHS, 1)
]
samples: Final = one_sample(
    [
        _message("system", _content("text", text="Be brief.")),
        _message("user", _content("text", text=ASKED), _IMAGE),
        _message(
            "assistant",
            _content("text_reasoning", text=THOUGHT, protected_data=SIGNATURE),
            _content("text", text=REMARK),
            *_CALLS,
            model=MODEL,
        ),
        _message(
            "tool",
            _content("function_result", call_id="toolu_1", result=FOUND, items=[_content("text", text=FOUND), _IMAGE]),
            _content("function_result", call_id="toolu_2", exception="FileNotFoundError", result=MISSING, items=[]),
        ),
        _message(
            "assistant",
            _content("text", text=ANSWER),
            _content("usage", usage_details={"input_token_count": 20, "output_token_count": 7}),
            model=MODEL,
        ),
    ]
)
