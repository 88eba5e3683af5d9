"""The record of Gemini CLI."""

from __future__ import annotations

from typing import Final

from segue.histories.gemini_cli.describe import describe, read_settings
from segue.histories.gemini_cli.read import KNOWN_RECORDS, NAME, WIRE, read
from segue.histories.gemini_cli.write import write
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.models.model import Model

FORMAT: Final = Format(
    name=NAME,
    title="Gemini CLI",
    wire=WIRE.protocol,
    read=read,
    write=write,
    compacts=True,
    describe=describe,
    place=Place(
        folder=".gemini",
        variables=("GEMINI_CLI_HOME/.gemini",),
        patterns=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
    ),
    setting_files=("projects.json",),
    read_settings=read_settings,
    closes_calls=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True),
    source="Gemini CLI 0.61.0, run against a scripted model; google-gemini/gemini-cli 2026-08-06",
    read_on="2026-11-15",
)
