"""The record of Claude Code."""

from __future__ import annotations

from typing import Final

from segue.histories.claude_code.turns import WIRE
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Claude Code",
    wire=WIRE.protocol,
    compacts=True,
    place=Place(folder=".claude", variables=("CLAUDE_CONFIG_DIR",), patterns=("projects/*/*.jsonl",)),
    sends_thinking=True,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="Claude Code 2.1.325, run against a scripted model",
    read_on="2026-11-15",
)
