"""The record of exports of ChatGPT."""

from __future__ import annotations

from typing import Final

from segue.histories.chatgpt.read import MEMBERS
from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="ChatGPT export",
    kind="export",
    archive_members=MEMBERS,
    reads_lines=False,
    source="descriptions of exports by others",
    read_on="2026-11-15",
)
