"""A small sample for the conformance kit, written by hand after rows of data sets."""

from __future__ import annotations

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, PNG_URL, THOUGHT
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_TOOLS = '[{"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}]'
_ROW = {
    "conversations": [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": f"{ASKED}<image>"},
        {"from": "function_call", "value": '{"name": "read", "arguments": {"path": "a.txt"}}'},
        {"from": "observation", "value": FOUND},
        {"from": "gpt", "value": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"},
    ],
    "tools": _TOOLS,
    "images": [PNG_URL],
    "id": "row-1",
}


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation."""
    return (FormatSample("row", Source(data=json_line(_ROW))),)
