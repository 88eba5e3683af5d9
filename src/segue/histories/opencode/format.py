"""The record of opencode."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

FORMAT: Final = Format(
    **read_parts(__package__),
    title="opencode",
    compacts=True,
    place=Place(folder=".local/share/opencode", variables=("XDG_DATA_HOME/opencode",), databases=("opencode.db",)),
    reads_lines=False,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="opencode 1.18.33, run against a scripted model; anomalyco/opencode 2026-08-19",
    read_on="2026-11-15",
)
