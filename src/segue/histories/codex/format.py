"""The record of Codex CLI."""

from __future__ import annotations

from typing import Final

from segue.histories.codex.read import WIRE
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Codex CLI",
    wire=WIRE.protocol,
    compacts=True,
    place=Place(
        folder=".codex",
        variables=("CODEX_HOME",),
        patterns=(
            "sessions/*/*/*/rollout-*.jsonl",
            "sessions/*/*/*/rollout-*.jsonl.zst",
            "archived_sessions/rollout-*.jsonl",
        ),
    ),
    setting_files=("config.toml",),
    example=Model("gpt-5.4", "openai", "openai-responses", reasoning=True),
    source="Codex CLI 0.166.0, run against a scripted model; openai/codex 2026-08-22",
    read_on="2026-11-15",
)
