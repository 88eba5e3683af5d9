"""The table of formats of stored histories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from doc_tables import table

from segue.histories.kit.format import Format, Place
from segue.histories.registry import all_formats

RESUMED: Final = Path(__file__).parent.parent / "docs" / "resumed.json"
"""What the proof of handovers has recorded: for each program its version, and the day of each session it continued."""


def formats(_: str) -> str:
    """List every format: what segue does with it, where its sessions are, and where the facts come from."""
    return table(
        ("name", "format", "segue", "where the sessions are", "facts from"),
        (
            (
                f"`{record.name}`",
                record.title,
                _does(record),
                _place(record),
                f"{record.source}; {record.read_on}",
            )
            for record in all_formats()
        ),
    )


def _does(record: Format) -> str:
    if record.write is None:
        return "reads"
    unproven = record.kind == "agent" and not record.was_run
    return "reads and writes, unproven" if unproven else "reads and writes"


def resumed(_: str) -> str:
    """Show which sessions real programs have continued: rows are where a session came from, columns the programs."""
    kept = json.loads(RESUMED.read_bytes())
    names = [record.name for record in all_formats() if record.name in kept]
    rows = ((f"`{source}`", *(kept[name]["resumed"].get(source, "") for name in names)) for source in names)
    return table(("session of", *(f"`{name}` {kept[name]['version']}" for name in names)), rows)


def _place(record: Format) -> str:
    place = record.place
    if place is None:
        return "a file" if record.kind != "framework" else "JSON, or objects of the framework"
    in_project = ", ".join(f"`{name}`" for name in place.projects)
    if not (place.patterns or place.databases):
        return f"the project: {in_project}"
    folders = [_folder_words(each) for each in (place, *place.others)]
    return "; ".join([*folders, *([f"in a project, {in_project}"] if in_project else [])])


def _folder_words(place: Place) -> str:
    variables = ", ".join(f"`{name}`" for name in place.variables)
    return f"`~/{place.folder}`" + (f", or the folder in {variables}" if variables else "")
