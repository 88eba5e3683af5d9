"""The record of model messages of the Vercel AI SDK."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="model messages of the Vercel AI SDK",
    kind="export",
    reads_lines=False,
    source="vercel/ai, content-part.ts of versions 4 to 7",
    read_on="2026-11-18",
)
