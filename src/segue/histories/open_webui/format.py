"""The record of exports of Open WebUI."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_samples
from segue.histories.open_webui.answers import NAME
from segue.histories.open_webui.read import KNOWN_RECORDS, list_sessions, read

FORMAT: Final = Format(
    name=NAME,
    title="Open WebUI export",
    kind="export",
    read=read,
    list=list_sessions,
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="open-webui 0.10.2",
    read_on="2026-11-15",
)
