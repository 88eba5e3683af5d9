"""The record of replies of Chat Completions."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="replies of Chat Completions",
    kind="export",
    reads_lines=False,
    source="LiteLLM 1.106.2, run",
    read_on="2026-11-18",
)
