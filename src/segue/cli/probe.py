"""`segue probe`: asks an endpoint what it supports, and writes what segue has to know about it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from segue.cli.history_outputs import store_new
from segue.cli.reports import open_console
from segue.cli.statuses import Status
from segue.cli.targets import PROTOCOL_NAMES
from segue.errors import RequestFailed
from segue.failures.failure import FailureKind
from segue.foundation.safe_text import printable
from segue.models.model import Model
from segue.testing.probing import Card, probe, quick_client

_SHOWN = 160


@click.command("probe")
@click.argument("url")
@click.option("--protocol", type=PROTOCOL_NAMES, required=True, help="The protocol that it is asked in.")
@click.option(
    "--model", "name", metavar="ID", default="default", show_default=True, help="The model that is asked for."
)
@click.option("--key-variable", metavar="NAME", help="The environment variable with the API key.")
@click.option("--provider", metavar="NAME", help="The name of the provider in the catalogue.  [default: the host]")
@click.option(
    "--overflow",
    type=click.IntRange(1),
    metavar="WORDS",
    help="Also send a prompt of so many words, to see how the server refuses it. It may cost as much.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write a catalogue file."
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    url: str,
    protocol: str,
    name: str,
    key_variable: str | None,
    provider: str | None,
    overflow: int | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Ask the server at URL what it supports, with about fifteen small requests, and print a card.

    URL is what clients of the protocol are configured with, such as http://127.0.0.1:8080/v1. With -o, what was found
    becomes a catalogue file: `--catalogue FILE` of the other commands and `load_catalogue` use it.

    Exit status: 0 if the server answers, 3 if it refuses the key, 4 if it fails.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise click.UsageError(f"{url} is not an address; it begins with http:// or https://")
    key = None if key_variable is None else os.environ.get(key_variable)
    if key_variable is not None and not key:
        raise click.UsageError(f"--key-variable {key_variable}: the variable is not set")
    model = Model(name, provider or urlsplit(url).hostname or "server", protocol, base_url=url.rstrip("/"))
    with quick_client(key) as client:
        try:
            card = probe(model, client, overflow=overflow or 0)
        except RequestFailed as error:
            click.echo(f"segue: {error}", err=True)
            ctx.exit(Status.NO_KEY if error.failure.kind == FailureKind.AUTH else Status.FAILED)
    if output is not None:
        row = card.catalogue(datetime.now(UTC).date().isoformat(), key_variable)
        store_new(output, msgspec.json.format(msgspec.json.encode(row), indent=2) + b"\n")
        click.echo(f"Written: {output}", err=True)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(card), indent=2))
    else:
        _show(card)


def _show(card: Card) -> None:
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for column in ("question", "answer", "detail"):
        table.add_column(column, overflow="fold")
    colours = {"yes": "green", "no": "yellow", "unknown": "dim"}
    for finding in card.findings:
        words = f' "{finding.refusal[:_SHOWN]}"' if finding.refusal else ""
        detail = printable(" ".join(f"{finding.detail}{words}".split()))
        table.add_row(finding.question, Text(finding.verdict, colours[finding.verdict]), Text(detail))
    console.print(table)
    click.echo(f"{card.model.full_name()} over {card.model.protocol}: {card.requests} requests", err=True)
