"""The record of messages of LangChain in the form of OpenAI."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="messages of LangChain in the form of OpenAI",
    kind="export",
    reads_lines=False,
    source="langchain-core 1.7.2, run",
    read_on="2026-11-18",
)
