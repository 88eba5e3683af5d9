"""`segue formats`: what segue does with each format of histories, and where its facts come from."""

from __future__ import annotations

from typing import Final

import click
import msgspec

from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.histories.forms import UNREADABLE
from segue.histories.kit.format import Format
from segue.histories.registry import all_formats

_HEADINGS: Final = ("FORMAT", "TITLE", "READ", "WRITTEN", "LISTED", "FACTS", "FROM")


@click.command("formats")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> None:
    """List the formats of histories: whether each is read, written and listed, and how sure its facts are.

    FACTS is `run` if the versions in FROM were run and what they wrote was read, and `read` if the facts come from
    sources, documents or files of others. WRITTEN is `unproven` if it was not tried whether the program continues what
    segue writes. Data of other programs that segue knows is refused with their name.
    """
    rows = [_row(record) for record in all_formats()]
    if as_json:
        document = {"formats": rows, "refused": list(UNREADABLE)}
        click.echo(msgspec.json.format(encode_valid_json(document), indent=2))
        return
    cells = [_HEADINGS, *(tuple(_cell(value) for value in row.values()) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(_HEADINGS) - 1)]
    for row in cells:
        shown = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        click.echo("  ".join((*shown, row[-1])).rstrip())
    click.echo(f"\nrefused by name: {', '.join(UNREADABLE)}")
    click.echo(counted(len(rows), "format"), err=True)


def _row(record: Format) -> dict[str, object]:
    is_unproven = record.write is not None and record.kind == "agent" and not record.was_run
    return {
        "format": record.name,
        "title": record.title,
        "read": True,
        "written": "unproven" if is_unproven else record.write is not None,
        "listed": record.place is not None or record.list is not None,
        "facts": "run" if record.was_run else "read",
        "from": f"{record.source}; {record.read_on}",
    }


def _cell(value: object) -> str:
    return ("yes" if value else "-") if isinstance(value, bool) else str(value)
