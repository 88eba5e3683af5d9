"""The record of what agents print."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="output of an agent's run",
    kind="export",
    source=(
        "Claude Code 2.1.326, Qwen Code 0.24.4, Codex 0.169.0, Gemini CLI 0.61.0, opencode 1.18.33, Kimi Code 2.1.0 and"
        " Cline 3.0.65, run; Cursor and Droid, read"
    ),
    read_on="2026-11-18",
)
