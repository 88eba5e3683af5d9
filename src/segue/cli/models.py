"""`segue models`: the catalogue as a table, or one model with everything that is known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import click
import msgspec

from segue.cli.reports import open_console
from segue.cli.targets import PROTOCOL_NAMES, catalogue_option, complete_model, open_catalogue
from segue.errors import UnknownModel
from segue.models.dialect import Dialect
from segue.models.model import Modality, Model
from segue.models.rules import Rules
from segue.protocols.registry import resolve_dialect, resolve_rules


@click.command("models")
@click.argument("query", required=False, shell_complete=complete_model)
@click.option("--provider", help="Only what this provider serves.")
@click.option("--protocol", metavar="PROTOCOL", type=PROTOCOL_NAMES, help="Only what speaks this wire.")
@click.option(
    "--input",
    "modalities",
    type=click.Choice(["image", "document", "audio", "video"]),
    multiple=True,
    help="Only what can read this; several times for several.",
)
@click.option("--reasoning/--no-reasoning", default=None, help="Only what thinks, or only what does not.")
@click.option("--window", type=click.IntRange(1), metavar="TOKENS", help="Only windows of at least so many tokens.")
@click.option("--max-price", type=float, metavar="DOLLARS", help="Only up to this price of a million tokens read.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@catalogue_option
def command(
    *,
    query: str | None,
    provider: str | None,
    protocol: str | None,
    modalities: tuple[Modality, ...],
    reasoning: bool | None,
    window: int | None,
    max_price: float | None,
    as_json: bool,
    catalogue: str | None,
) -> None:
    """List the models whose name has QUERY in it; where QUERY is a model's name, show that one with its rules."""
    known = open_catalogue(catalogue)
    filters = (provider, protocol, *modalities, reasoning, window, max_price)
    if query is not None and not any(value is not None for value in filters):
        try:
            model = known.get(query)
        except UnknownModel as unknown:
            if not known.find(query):
                raise unknown from None
        else:
            _show_one(model, as_json=as_json)
            return
    found = known.find(
        query,
        provider=provider,
        protocol=protocol,
        reasoning=reasoning,
        input=modalities,
        min_context=window,
        max_input_price=max_price,
    )
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        _show_table(found)


def _show_table(models: Iterable[Model]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    for name in ("protocol", "reads", "thinks"):
        table.add_column(name, overflow="fold")
    for name in ("window", "output", "$ in", "$ out"):
        table.add_column(name, justify="right")
    count = 0
    for model in models:
        count += 1
        reads = " ".join(kind for kind in model.input if kind != "text")
        price = (_dollars(model.cost.input), _dollars(model.cost.output))
        table.add_row(
            model.full_name(),
            model.protocol,
            reads,
            "yes" if model.reasoning else "",
            _tokens(model.context_window),
            _tokens(model.max_tokens),
            *price,
        )
    if count:
        open_console().print(table)
    click.echo(f"{count:,} models; prices are US dollars for a million tokens", err=True)


def _tokens(count: int) -> str:
    return f"{count:,}" if count else ""


def _dollars(price: float) -> str:
    return f"{price:g}" if price else ""


def _show_one(model: Model, *, as_json: bool) -> None:
    rules, dialect = resolve_rules(model), resolve_dialect(model)
    if as_json:
        whole = {"model": model, "rules": rules, "dialect": dialect}
        click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=2))
        return
    console = open_console()
    console.print(f"[bold]{model.full_name()}[/]  {model.name}")
    for title, rows in (
        ("", _non_default_fields(model, skip=("id", "provider", "name", "rules", "dialect"))),
        ("Rules: what it can carry, where that is not everything", _non_default_fields(rules)),
        ("Dialect: how it spells its protocol, where that differs", _non_default_fields(dialect)),
    ):
        if title:
            console.print(f"\n[bold]{title}[/]")
        for name, value in rows:
            console.print(f"  {name:<28} {value}", markup=False)


def _non_default_fields(record: Model | Rules | Dialect, skip: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Give the fields that say something, by name: those that are not the default."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if name not in skip and value != defaults[name] and value not in ((), {}, frozenset()):
            yield name, _format_value(value)


def _format_value(value: object) -> str:
    if isinstance(value, (frozenset, tuple)):
        members = map(str, cast("Iterable[object]", value))
        return ", ".join(sorted(members) if isinstance(value, frozenset) else members)
    if isinstance(value, msgspec.Struct):
        return ", ".join(f"{name} {text}" for name in value.__struct_fields__ if (text := getattr(value, name)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {term}" for key, term in cast("dict[str, object]", value).items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
