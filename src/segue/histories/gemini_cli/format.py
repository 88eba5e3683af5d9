"""The record of Gemini CLI."""

from __future__ import annotations

from typing import Final

from segue.histories.gemini_cli.read import WIRE
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Gemini CLI",
    wire=WIRE.protocol,
    compacts=True,
    place=Place(
        folder=".gemini",
        variables=("GEMINI_CLI_HOME/.gemini",),
        patterns=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
        project_file=".project_root",
    ),
    setting_files=("projects.json",),
    closes_calls=False,
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True),
    source="Gemini CLI 0.61.0, run against a scripted model; google-gemini/gemini-cli 2026-08-06",
    read_on="2026-11-15",
)
