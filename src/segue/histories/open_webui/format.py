"""The record of exports of Open WebUI."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Open WebUI export",
    kind="export",
    reads_lines=False,
    source="open-webui 0.10.2",
    read_on="2026-11-15",
)
