"""The record of llm."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.histories.llm.read import NAME, list_sessions, read

FORMAT: Final = Format(
    name=NAME,
    title="llm",
    read=read,
    list=list_sessions,
    place=Place(
        folder=".config/io.datasette.llm",
        variables=("LLM_USER_PATH",),
        databases=("logs.db",),
        system_folders={
            "darwin": "Library/Application Support/io.datasette.llm",
            "win32": "AppData/Roaming/io.datasette.llm",
        },
    ),
    reads_lines=False,
    samples=read_samples(__package__),
    source="llm 0.36, run against a scripted model",
    read_on="2026-11-15",
)
