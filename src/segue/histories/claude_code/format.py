"""The record of Claude Code."""

from __future__ import annotations

from typing import Final

from segue.histories.claude_code.describe import describe
from segue.histories.claude_code.read import KNOWN_RECORDS, read
from segue.histories.claude_code.turns import NAME, WIRE
from segue.histories.claude_code.write import write
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.models.model import Model

FORMAT: Final = Format(
    name=NAME,
    title="Claude Code",
    wire=WIRE.protocol,
    read=read,
    write=write,
    compacts=True,
    describe=describe,
    place=Place(folder=".claude", variables=("CLAUDE_CONFIG_DIR",), patterns=("projects/*/*.jsonl",)),
    sends_thinking=True,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="Claude Code 2.1.325, run against a scripted model",
    read_on="2026-11-15",
)
