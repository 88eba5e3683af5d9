"""The record of opencode."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.lines import object_of
from segue.histories.kit.source import Database
from segue.histories.opencode.read import KNOWN_RECORDS, read
from segue.histories.opencode.samples import samples
from segue.histories.opencode.store import list_sessions
from segue.histories.opencode.turns import NAME
from segue.histories.opencode.write import write
from segue.models.model import Model


def detect(head: bytes, name: str) -> int:  # noqa: ARG001 - the content is enough
    """Recognise the JSON of `opencode export`: an object with `info` and messages whose ids begin with `msg`."""
    start = head[:20000]
    found = b'"info"' in start and (b'"ses_' in start or b'"sessionID"' in start) and b'"messages"' in head
    return 90 if found else 0


def detect_value(value: object) -> int:
    """Recognise the parsed export, or the database."""
    if hasattr(value, "tables") and hasattr(value, "rows"):
        return 90 if {"session", "message", "part"} <= _tables(value) else 0
    return 60 if "info" in object_of(value) and "messages" in object_of(value) else 0


def _tables(value: object) -> frozenset[str]:
    database: Database = value  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    return database.tables()


FORMAT: Final = Format(
    name=NAME,
    title="opencode",
    detect=detect,
    detect_value=detect_value,
    read=read,
    write=write,
    list=list_sessions,
    place=Place(folder=".local/share/opencode", variables=("XDG_DATA_HOME/opencode",), databases=("opencode.db",)),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=samples,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="opencode 1.18.33, run against a scripted model; anomalyco/opencode 2026-08-19",
    read_on="2026-11-15",
)
