"""`segue plan`: what the next requests of a conversation would cost at other models, and what would be lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

import click

from segue.cli.inputs import SourceFile, choose_input, example_option, open_input
from segue.cli.reports import open_console
from segue.cli.targets import COMPARED, catalogue_option, complete_model, find_target, open_catalogue, source_option
from segue.client.http.clients import Client
from segue.errors import SettingsError
from segue.foundation.json_text import encode_valid_json
from segue.foundation.safe_text import printable
from segue.models.catalogue import Catalogue
from segue.planning.candidates import RULES, choose
from segue.planning.plan import ModelPlan, Money, Plan, find_present, plan
from segue.planning.shown import describe_losses, plan_json

if TYPE_CHECKING:
    from rich.console import Console

_LABS: Final = (
    "anthropic",
    "openai",
    "google",
    "deepseek",
    "mistral",
    "xai",
    "moonshotai",
    "zai",
    "alibaba",
    "minimax",
)
"""Providers of their own models whose candidates are shown: a cloud lists the same models again, once a region."""


_Command = TypeVar("_Command", bound=Callable[..., object])


def _rule_options(command: _Command) -> _Command:
    helps = {
        "cheaper": "Compare models whose input and output cost less.",
        "larger-window": "Compare models with a larger window.",
        "same-lab": "Compare models of the same provider.",
        "local": "Compare models that run on this machine.",
    }
    for rule in reversed(RULES):
        command = click.option(f"--{rule}", is_flag=True, help=helps[rule])(command)
    return command


@click.command("plan")
@click.argument("file", required=False, type=SourceFile())
@example_option
@source_option
@click.option(
    "-m",
    "--model",
    "names",
    metavar="MODEL",
    multiple=True,
    shell_complete=complete_model,
    help="A model to compare. Can be repeated.",
)
@_rule_options
@click.option("--turns", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many requests to plan.")
@click.option("--no-cache", is_flag=True, help="The requests have no cache marks, where a model needs them.")
@click.option("--now", "is_now", is_flag=True, help="Take the time of the last message for the present time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@catalogue_option
def command(
    *,
    file: BinaryIO | None,
    example: bool,
    source: str | None,
    names: tuple[str, ...],
    turns: int,
    no_cache: bool,
    is_now: bool,
    as_json: bool,
    catalogue: str | None,
    **rules: bool,
) -> None:
    """Compare models for the next requests of FILE: cost, what fits, what is lost, and when a switch pays.

    The first row is the model that answered last. Costs are of the next request and of all that are planned, with an
    interval that nine in ten are in; `warm` is how long a model's cache still holds its last request; `pays from` is
    the request from which on a switch has been cheaper; `return` is the cost of a first request that goes back to the
    first model after these. Models are named with -m, or chosen by rules, those with a key first; all rules hold
    together.
    """
    opened = open_input(choose_input(file, example=example), source)
    if opened.document is None:
        raise click.UsageError("the file has several conversations; choose one with `segue import FILE --nth N -o NEW`")
    context, known = opened.document.prompt.context, open_catalogue(catalogue)
    models = [find_target(name, None, catalogue, COMPARED) for name in names]
    chosen = [rule for rule in RULES if rules[rule.replace("-", "_")]]
    if chosen:
        present = find_present(context, catalogue=known)
        try:
            models += choose(present, chosen, catalogue=known, providers=_providers(known, chosen))
        except SettingsError as error:
            raise click.UsageError(str(error)) from error
        if not models:
            raise click.UsageError(f"no model of the catalogue is {' and '.join(chosen)}; name models with -m")
    now = None if is_now else time.time_ns() // 1_000_000
    found = plan(context, models, turns=turns, now=now, is_cached=not no_cache, catalogue=known)
    if not found.models and found.present is None:
        raise click.UsageError("the conversation names no model that is known; name models with -m")
    if as_json:
        click.echo(encode_valid_json(plan_json(found, turns)))
    else:
        _show(open_console(), found, turns)


def _providers(known: Catalogue, chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the labs with a key; without any, all of them."""
    if "local" in chosen:
        return ()
    with Client() as client:
        first = {model.provider: model for model in known.models}
        keyed = tuple(name for name in _LABS if name in first and client.has_key(first[name]))
    return keyed or _LABS


def _show(console: Console, found: Plan, turns: int) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold")
    for name in ("input", "cached", "output", "next", f"{turns} requests"):
        table.add_column(name, justify="right")
    for name in ("warm", "pays from", "return", "lost"):
        table.add_column(name, overflow="fold")
    rows = ([] if found.present is None else [found.present]) + [
        each for each in found.models if found.present is None or each.model != found.present.model
    ]
    for each in rows:
        table.add_row(*_row(each, found.present))
    console.print(table)
    for each in rows:
        if each.reason:
            console.print(f"{each.model.full_name()}: {printable(each.reason)}", markup=False)


def _row(each: ModelPlan, present: ModelPlan | None) -> list[str]:
    if not each.requests:
        return [each.model.full_name(), *["-"] * 8, "does not fit"]
    first = each.requests[0]
    return [
        each.model.full_name(),
        f"{first.size:,}",
        f"{first.cache_read:,}",
        f"{first.output:,}",
        dollars(first.money),
        _interval(each.money),
        _duration(each.warm_seconds),
        _pays_from(each, present),
        "-" if each.back is None else dollars(each.back),
        describe_losses(each),
    ]


def _pays_from(each: ModelPlan, present: ModelPlan | None) -> str:
    if each is present:
        return "now"
    if present is None or present.money is None or each.money is None:
        return "-"
    return "never" if each.break_even is None else str(each.break_even + 1)


def dollars(money: Money | None) -> str:
    """Return an amount with as many digits as it needs."""
    return "?" if money is None else f"${money.expected:.4f}"


def _interval(money: Money | None) -> str:
    return "?" if money is None else f"${money.expected:.4f} ({money.low:.4f} to {money.high:.4f})"


def _duration(seconds: float) -> str:
    if seconds <= 0:
        return "no"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
