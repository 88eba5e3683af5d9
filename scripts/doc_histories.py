"""The table of formats of stored histories."""

from __future__ import annotations

from doc_tables import table

from segue.histories.kit.format import Format, Place
from segue.histories.registry import all_formats


def formats(_: str) -> str:
    """List every format: what segue does with it, where its sessions are, and where the facts come from."""
    return table(
        ("name", "format", "segue", "where the sessions are", "facts from"),
        (
            (
                f"`{record.name}`",
                record.title,
                "reads and writes" if record.write is not None else "reads",
                _place(record),
                f"{record.source}; {record.read_on}",
            )
            for record in all_formats()
        ),
    )


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
