"""A small sample for the conformance kit, written by hand after a dump of pydantic-ai's adapter for AG-UI."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, PATHS, PNG, REMARK, SIGNATURE, THOUGHT
from segue.histories.kit.simple_samples import one_sample

_IMAGE = {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}}
_CALLS = [
    {"id": f"toolu_{at}", "type": "function", "function": {"name": "read", "arguments": f'{{"path":"{path}"}}'}}
    for at, path in enumerate(PATHS, 1)
]
_OPAQUE = f'{{"signature": "{SIGNATURE}", "provider_name": "anthropic"}}'
samples: Final = one_sample(
    [
        {"id": "m1", "role": "system", "content": "Be brief."},
        {"id": "m2", "role": "user", "content": [{"type": "text", "text": ASKED}, _IMAGE]},
        {"id": "m3", "role": "reasoning", "content": THOUGHT, "encryptedValue": _OPAQUE},
        {"id": "m4", "role": "assistant", "content": REMARK, "toolCalls": _CALLS},
        {"id": "m5", "role": "tool", "content": FOUND, "toolCallId": "toolu_1"},
        {"id": "m6", "role": "tool", "content": MISSING, "toolCallId": "toolu_2", "error": MISSING},
        {"id": "m7", "role": "assistant", "content": ANSWER},
    ],
    result_image=False,
)
