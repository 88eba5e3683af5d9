"""The record of Codex CLI."""

from __future__ import annotations

from typing import Final

from segue.histories.codex.describe import describe
from segue.histories.codex.read import KNOWN_RECORDS, NAME, WIRE, read
from segue.histories.codex.write import read_settings, write
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.models.model import Model

FORMAT: Final = Format(
    name=NAME,
    title="Codex CLI",
    wire=WIRE.protocol,
    read=read,
    write=write,
    compacts=True,
    describe=describe,
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
    read_settings=read_settings,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    example=Model("gpt-5.4", "openai", "openai-responses", reasoning=True),
    source="Codex CLI 0.166.0, run against a scripted model; openai/codex 2026-08-22",
    read_on="2026-11-15",
)
