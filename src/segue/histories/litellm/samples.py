"""A small sample for the conformance kit, written by hand after a dump of LiteLLM 1.106.2."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    PATHS,
    PNG_URL,
    REMARK,
    SIGNATURE,
    THOUGHT,
    WIRE,
    sent_turns,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_IMAGE = {"type": "image_url", "image_url": {"url": PNG_URL}}
_BLOCKS = [{"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}]
_MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": ASKED}, _IMAGE]},
    {
        "content": REMARK,
        "role": "assistant",
        "tool_calls": [
            {
                "index": at,
                "id": f"toolu_{at}",
                "type": "function",
                "function": {"name": "read", "arguments": f'{{"path": "{path}"}}'},
            }
            for at, path in enumerate(PATHS, 1)
        ],
        "reasoning_content": THOUGHT,
        "thinking_blocks": _BLOCKS,
        "provider_specific_fields": {"citations": None, "thinking_blocks": _BLOCKS},
    },
    {
        "role": "tool",
        "tool_call_id": "toolu_1",
        "name": "read",
        "content": [{"type": "text", "text": FOUND}, _IMAGE],
    },
    {"role": "tool", "tool_call_id": "toolu_2", "name": "read", "content": MISSING},
    {"content": ANSWER, "role": "assistant", "provider_specific_fields": {"refusal": None}},
]


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation."""
    return (FormatSample("messages", Source(data=json_line(_MESSAGES)), sent_turns(errors=False), wire=WIRE),)
