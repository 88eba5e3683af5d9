"""The record of GitHub Copilot CLI."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

FORMAT: Final = Format(
    **read_parts(__package__),
    title="GitHub Copilot CLI",
    place=Place(
        folder=".copilot",
        variables=("COPILOT_HOME",),
        patterns=("session-state/*/events.jsonl", "session-state/*.jsonl"),
    ),
    keeps_folders=True,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="Copilot CLI 1.0.40, run against a scripted model; the schema of its log",
    read_on="2026-11-16",
)
