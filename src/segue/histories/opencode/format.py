"""The record of opencode."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.histories.opencode.read import KNOWN_RECORDS, read
from segue.histories.opencode.store import list_sessions
from segue.histories.opencode.turns import NAME
from segue.histories.opencode.write import write
from segue.models.model import Model

FORMAT: Final = Format(
    name=NAME,
    title="opencode",
    read=read,
    write=write,
    compacts=True,
    list=list_sessions,
    place=Place(folder=".local/share/opencode", variables=("XDG_DATA_HOME/opencode",), databases=("opencode.db",)),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="opencode 1.18.33, run against a scripted model; anomalyco/opencode 2026-08-19",
    read_on="2026-11-15",
)
