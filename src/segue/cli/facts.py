"""`segue facts`: what recorded exchanges show about the rules, as rows of a file that `check` reads if it is asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from segue.cli.history_outputs import store_new
from segue.errors import DecodeError
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.foundation.safe_text import printable
from segue.testing.evidence import (
    Fact,
    as_catalogue,
    dump_facts,
    gather,
    load_facts,
    merge_facts,
    read_exchanges,
    read_probe,
    store_facts,
)

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("facts")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--into", metavar="FILE", type=_FILE, help="Add the rows to this file of facts, which may be new.")
@click.option(
    "--rules", metavar="FILE", type=_FILE, help="Write the rules that follow, as a catalogue for --catalogue."
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def command(*, paths: tuple[Path, ...], into: Path | None, rules: Path | None, as_json: bool) -> None:
    """Compare recorded exchanges with the rules, and list what they show about each endpoint.

    PATH is a folder or a file: cassettes of VCR, HAR files, lines of JSON with `protocol`, `provider`, `model`,
    `status`, `request` and `response`, a catalogue of `segue probe`, or a file of facts of somebody else. A request
    that was answered lowers the rule that refuses it, for that provider, model and protocol; one that was refused keeps
    the rule, or becomes one if the provider names a setting.

    Rows hold names of fields and short values, never a conversation. Nothing reads them by itself: `segue check --facts
    FILE` does, and `--catalogue` of every command reads what --rules writes. To take a row back, delete it.
    """
    day = datetime.now(UTC).date().isoformat()
    known = load_facts(into.read_bytes(), str(into)) if into is not None and into.exists() else []
    facts = merge_facts([fact for path in paths for fact in _read(path, day)])
    if into is not None:
        # The same recordings may be read twice, so figures are not added up.
        store_facts(into, merge_facts([*known, *facts], add=max))
    if rules is not None:
        written = as_catalogue([*known, *facts])
        store_new(rules, msgspec.json.format(encode_valid_json({"models": written.models}), indent=2) + b"\n")
    if as_json:
        click.echo(dump_facts(facts), nl=False)
    else:
        for fact in facts:
            click.echo(_line(fact))
    click.echo(counted(len(facts), "row"), err=True)


def _read(path: Path, day: str) -> list[Fact]:
    if path.is_file() and path.suffix == ".json":
        data = path.read_bytes()
        try:
            return load_facts(data, str(path))
        except DecodeError:
            if probed := read_probe(data, day):
                return probed
    return gather(read_exchanges(path), day)


def _line(fact: Fact) -> str:
    place = fact.key or fact.path.strip("^$").replace(r"\.", ".").replace(r"\d+", "*") or "the request"
    value = "" if fact.value is None else f" = {fact.value}"
    quoted = f' "{fact.message}"' if fact.message else ""
    figures = f"{counted(fact.replies, 'reply', 'replies')}, {counted(fact.refusals, 'refusal')}"
    endpoint = f"{fact.provider}/{fact.model} over {fact.protocol}"
    return printable(f"{fact.grade:<8}  {endpoint}  {place}{value}  {fact.code}  ({figures}){quoted}")
