"""`segue models`: the catalogue as a table, or one model with all its data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click
import msgspec

from segue.cli.reports import open_console
from segue.cli.targets import (
    MODELS,
    PROTOCOL_NAMES,
    catalogue_option,
    complete_model,
    complete_provider,
    explain_unknown,
    find_near,
    open_catalogue,
)
from segue.errors import DISTRIBUTION, UnknownModel
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.models.catalogue import Catalogue
from segue.models.dialect import Dialect
from segue.models.model import Modality, Model
from segue.models.providers import PROVIDERS
from segue.models.rules import Rules
from segue.protocols.api import taken_options
from segue.protocols.registry import resolve_dialect, resolve_rules

if TYPE_CHECKING:
    from rich.console import Console

_STALE_AFTER: Final = 180
"""Days after which the catalogue is reported as old: providers release models every few weeks."""


@click.command("models")
@click.argument("query", required=False, shell_complete=complete_model)
@click.option("--provider", shell_complete=complete_provider, help="Only models of this provider.")
@click.option("--protocol", metavar="PROTOCOL", type=PROTOCOL_NAMES, help="Only models with this protocol.")
@click.option(
    "--input",
    "modalities",
    type=click.Choice(["image", "document", "audio", "video"]),
    multiple=True,
    help="Only models that accept this input; can be repeated.",
)
@click.option("--reasoning/--no-reasoning", default=None, help="Only models with or without reasoning.")
@click.option(
    "--window", type=click.IntRange(1), metavar="TOKENS", help="Only models with a context window of at least TOKENS."
)
@click.option(
    "--max-price", type=float, metavar="DOLLARS", help="Only models with at most this price for a million input tokens."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--update",
    metavar="FILE|DIR",
    type=click.Path(exists=True, path_type=Path),
    help="List the models that a package ships and the catalogue lacks: litellm's table, pi-ai, or installed SDKs.",
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write them as a catalogue."
)
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
    update: Path | None,
    output: Path | None,
    catalogue: str | None,
) -> None:
    """List the models whose names contain QUERY; if QUERY is the full name of a model, show all its data.

    The last line has the date of the catalogue. Newer models may be missing from an old catalogue: update segue, or add
    them with --catalogue. `--update DIR -o FILE` writes such a file out of what is installed in DIR, such as
    site-packages or node_modules.
    """
    known = open_catalogue(catalogue)
    if update is not None:
        _update(update, output, known, as_json=as_json)
        return
    if output is not None:
        raise click.UsageError("-o writes what --update finds; pass --update FILE|DIR too")
    _refuse_unknown_provider(provider, known)
    filters = (provider, protocol, *modalities, reasoning, window, max_price)
    if query is not None and not any(value is not None for value in filters):
        try:
            model = known.get(query)
        except UnknownModel as unknown:
            if not known.find(query):
                raise explain_unknown(unknown, MODELS) from None
        else:
            _show_one(model, as_json=as_json)
            click.echo(describe_date(known, dt.datetime.now(tz=dt.UTC).date()), err=True)
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
        click.echo(msgspec.json.format(encode_valid_json(found), indent=2))
    else:
        _show_table(found)
    click.echo(describe_date(known, dt.datetime.now(tz=dt.UTC).date()), err=True)


def _update(source: Path, output: Path | None, known: Catalogue, *, as_json: bool) -> None:
    from segue.cli.history_outputs import store_new
    from segue.cli.model_lists import only_new, read_lists

    found = only_new(read_lists(source), known)
    if output is not None:
        store_new(output, msgspec.json.format(encode_valid_json({"models": found}), indent=2) + b"\n")
        click.echo(f"Written: {output}; use it with --catalogue", err=True)
    if as_json:
        click.echo(msgspec.json.format(encode_valid_json(found), indent=2))
    else:
        _show_table(found)


def _refuse_unknown_provider(name: str | None, known: Catalogue) -> None:
    providers = {model.provider for model in known.models}
    if name is not None and name not in providers:
        if (row := known.find_row(name) or PROVIDERS.get(name)) is not None:
            served = f"the models that you have loaded there, such as {name}/NAME" if row.any_id else "no model"
            raise click.UsageError(f"the catalogue lists no models of {name}: {row.title} has {served}")
        near = find_near(name, sorted(providers))
        hint = f"did you mean {' or '.join(near)}?" if near else f"the providers are {', '.join(sorted(providers))}"
        raise click.UsageError(f"the catalogue has no provider {name!r}; {hint}")


def describe_date(catalogue: Catalogue, today: dt.date) -> str:
    """Describe the date of a catalogue, with a warning if it is old."""
    age = catalogue.compute_age(today)
    if age is None:
        return "the date of the catalogue is unknown"
    text = f"the catalogue was updated on {catalogue.date}"
    if age <= _STALE_AFTER:
        return text
    return (
        f"warning: {text}, {age} days ago: newer models, prices and limits are missing; update segue with"
        f" `pip install -U {DISTRIBUTION}` (in a clone: `git pull`), or add models with --catalogue"
    )


_SHORT_MODALITIES: Final = {"image": "img", "document": "doc", "audio": "aud", "video": "vid"}


def _show_table(models: Iterable[Model]) -> None:
    from rich.text import Text

    found = tuple(models)
    if found:
        console = open_console()
        wide = _aligned(_WIDE, map(_cells, found))
        is_wide = not console.is_terminal or len(wide[0]) <= console.width  # a pipe has no width
        head, *lines = wide if is_wide else _narrow(found, console.width)
        console.print(Text(head, "bold"), soft_wrap=True)
        console.print(Text("\n".join(lines)), soft_wrap=True)
    click.echo(f"{counted(len(found), 'model')}; prices are US dollars for a million tokens", err=True)


_WIDE: Final = {"model": "<", "protocol": "<", "input": "<", "reasoning": "<"} | dict.fromkeys(
    ("window", "output", "$ in", "$ out"), ">"
)
"""The columns, and at which side their cells are."""
_NARROW: Final = {"input": "<", "": "<", "window": ">", "$ in": ">", "$ out": ">"}


def _cells(model: Model) -> tuple[str, ...]:
    return (
        model.full_name(),
        model.protocol,
        " ".join(kind for kind in model.input if kind != "text"),
        "yes" if model.reasoning else "",
        _tokens(model.context_window),
        _tokens(model.max_tokens),
        _dollars(model.cost.input),
        _dollars(model.cost.output),
    )


def _aligned(columns: Mapping[str, str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Write a line for the names of the columns and for each row. `rich` takes seconds for all models."""
    cells = [tuple(columns), *rows]
    sides = [
        f"{side}{max(map(len, column))}"
        for side, column in zip(columns.values(), zip(*cells, strict=True), strict=True)
    ]
    return ["  ".join(map(format, row, sides)) for row in cells]


def _narrow(models: Sequence[Model], width: int) -> list[str]:
    """Write the models for a narrow terminal: short columns, without the protocol and the output limit.

    A name that is longer than its column has its own line.
    """
    lines = _aligned(_NARROW, map(_short_cells, models))
    names = ["model", *(model.full_name() for model in models)]
    room = min(max(map(len, names)), max(20, width - len(lines[0]) - 2))
    begins = (f"{name:<{room}}" if len(name) <= room else f"{name}\n{'':<{room}}" for name in names)
    return [f"{begin}  {line}".rstrip() for begin, line in zip(begins, lines, strict=True)]


def _short_cells(model: Model) -> tuple[str, str, str, str, str]:
    modalities = " ".join(_SHORT_MODALITIES[kind] for kind in model.input if kind != "text")
    thinks = "reasons" if model.reasoning else ""
    price = _dollars(model.cost.input), _dollars(model.cost.output)
    return modalities, thinks, _short_count(model.context_window), *price


def _short_count(count: int) -> str:
    """Write a number of tokens in at most six characters: 200k, 1M, 1.05M."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.3g}M"
    return f"{count / 1000:.3g}k" if count >= 1000 else str(count or "")


def _tokens(count: int) -> str:
    return f"{count:,}" if count else ""


def _dollars(price: float) -> str:
    return f"{price:.4g}" if price else ""


def _show_one(model: Model, *, as_json: bool) -> None:
    rules, dialect = resolve_rules(model), resolve_dialect(model)
    options = taken_options(model)
    if as_json:
        whole = {"model": model, "options": options, "rules": rules, "dialect": dialect}
        click.echo(msgspec.json.format(encode_valid_json(whole), indent=2))
        return
    console = open_console()
    console.print(f"[bold]{model.full_name()}[/]  {model.name}", soft_wrap=True)
    for title, rows in (
        ("", _non_default_fields(model, skip=("id", "provider", "name", "rules", "dialect"))),
        (
            "Options: fields of Options, then those of Options.shared with their place in the body",
            [
                ("options", ", ".join(name for name, place in options.items() if not place)),
                *((name, place) for name, place in options.items() if place),
            ],
        ),
        (
            "Rules: what a request may contain (values that differ from the default)",
            _non_default_fields(rules, skip=("rows",)),
        ),
        ("Rows: what is refused or bounded, and who says so", _rows_of(rules)),
        ("Dialect: how the provider's format differs from the protocol", _non_default_fields(dialect)),
    ):
        if title:
            console.print(f"\n[bold]{title}[/]")
        for name, value in rows:
            _print_field(console, name, value)


_FIELD_WIDTH: Final = 28


def _print_field(console: Console, name: str, value: str) -> None:
    """Print a field; in a terminal, a long value is wrapped in its own column."""
    from textwrap import wrap

    room = max(30, console.width - _FIELD_WIDTH - 3)
    lines = wrap(value, room, break_on_hyphens=False) if console.is_terminal else [value]
    for at, line in enumerate(lines or [""]):
        console.print(f"  {name if not at else '':<{_FIELD_WIDTH}} {line}", markup=False, soft_wrap=True)


def _non_default_fields(record: Model | Rules | Dialect, skip: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Return the fields that differ from the default, by name."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if name not in skip and value != defaults[name] and value not in ((), {}, frozenset()):
            yield name, _format_value(value)


def _rows_of(rules: Rules) -> Iterator[tuple[str, str]]:
    for place, row in sorted(rules.rows.items()):
        yield place, f"{row.bounds()}  ({row.source})" if row.source else row.bounds()


def _format_value(value: object) -> str:
    if isinstance(value, (frozenset, tuple)):
        members = map(str, cast("Iterable[object]", value))
        return ", ".join(sorted(members) if isinstance(value, frozenset) else members)
    if isinstance(value, msgspec.Struct):
        return ", ".join(f"{name} {text}" for name in value.__struct_fields__ if (text := getattr(value, name)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {term}" for key, term in cast("dict[str, object]", value).items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
