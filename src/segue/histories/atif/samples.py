"""A small sample for the conformance kit, written by hand after a trajectory of atif 1.8.0."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    MODEL,
    PATHS,
    REMARK,
    SIGNATURE,
    THOUGHT,
)
from segue.histories.kit.simple_samples import one_sample

_RESULTS = [
    {"source_call_id": "toolu_1", "content": FOUND},
    {"source_call_id": "toolu_2", "content": MISSING, "extra": {"is_error": True}},
]
samples: Final = one_sample(
    {
        "schema_version": "ATIF-v1.7",
        "session_id": "s1",
        "agent": {"name": "demo", "version": "1", "model_name": MODEL},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": ASKED},
            {
                "step_id": 3,
                "source": "agent",
                "model_name": MODEL,
                "message": REMARK,
                "reasoning_content": THOUGHT,
                "tool_calls": [
                    {"tool_call_id": f"toolu_{at}", "function_name": "read", "arguments": {"path": path}}
                    for at, path in enumerate(PATHS, 1)
                ],
                "observation": {"results": _RESULTS},
                "metrics": {"prompt_tokens": 20, "completion_tokens": 7, "cached_tokens": 5},
                "extra": {"thinking_signature": SIGNATURE},
            },
            {"step_id": 4, "source": "agent", "model_name": MODEL, "message": ANSWER},
        ],
        "final_metrics": {"total_prompt_tokens": 20},
    },
    image=False,
    result_image=False,
)
