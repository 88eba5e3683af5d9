"""`segue conformance`: sends histories that real conversations contain to a server or gateway, and scores it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import click
from msgspec.structs import replace

from segue.cli.printable import printable
from segue.cli.statuses import Status
from segue.errors import SegueError
from segue.foundation.version import __version__
from segue.models.catalogue import find_models, get_model
from segue.models.providers import PROVIDERS
from segue.testing.conformance.cases import load_wire, wire_names

_OWN: Final = "gateway"
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("conformance")
@click.argument("target", metavar="URL|gateway", required=False)
@click.option(
    "--wire", "wires", multiple=True, type=click.Choice(wire_names()), help="The wire; repeatable.  [default: all]"
)
@click.option("--case", "cases", metavar="ID", multiple=True, help="Send only this case; repeatable.")
@click.option("--model", metavar="NAME", help="The model to ask for.  [default: the one that a case is written for]")
@click.option(
    "--upstream",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Run the scripted provider at this port; the gateway sends there.",
)
@click.option("--key-variable", metavar="NAME", help="The environment variable with the API key.")
@click.option(
    "--report-header", "headers", metavar="NAME", multiple=True, help="A header that reports losses; repeatable."
)
@click.option(
    "--header",
    "sent",
    metavar="NAME=VALUE",
    multiple=True,
    help="A header to send with every request, such as one that chooses the provider; repeatable.",
)
@click.option("--strict", is_flag=True, help="Fail also for losses that were reported.")
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@click.option("--junit", metavar="FILE", type=_FILE, help="Write the outcomes as JUnit.")
@click.option("--badge", metavar="FILE", type=_FILE, help="Write an SVG with the score.")
@click.option("--list", "is_list", is_flag=True, help="List the cases, and send nothing.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    target: str | None,
    wires: tuple[str, ...],
    cases: tuple[str, ...],
    model: str | None,
    upstream: int | None,
    key_variable: str | None,
    headers: tuple[str, ...],
    sent: tuple[str, ...],
    strict: bool,
    as_json: bool,
    junit: Path | None,
    badge: Path | None,
    is_list: bool,
) -> None:
    """Send some 80 histories to a server or gateway, and score what it does with them.

    URL is the address without /v1. With --upstream, a scripted provider listens on 127.0.0.1:PORT and shows what
    arrives; configure the gateway to send there. `gateway` is segue's own one, started for the run.

    Exit status: 0 if every case passes, 1 if one fails, 4 if the server does not answer.
    """
    _check_cases(cases, wires)
    if is_list:
        _list_cases(wires)
        return
    if target is None:
        raise click.UsageError("name the URL of a server or gateway, or `gateway` for segue's own")
    key = "any" if key_variable is None else os.environ.get(key_variable)
    if not key:
        raise click.UsageError(f"--key-variable {key_variable}: the variable is not set")
    for each in sent:
        if "=" not in each:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--header")
    extra = dict(each.split("=", 1) for each in sent)
    from segue.testing.conformance.running import REPORT_HEADERS, run_suite, run_upstream

    is_own = target == _OWN
    if not is_own and urlsplit(target).scheme not in ("http", "https"):
        raise click.UsageError(f"{target} is not an address; it begins with http:// or https://, or is `{_OWN}`")
    is_scripted = is_own or upstream is not None
    provider = run_upstream(upstream or 0, (model,) if model else ()) if is_scripted else nullcontext(("", None))
    with provider as (address, scripted), own_gateway(address, model) if is_own else nullcontext(target) as url:
        if not is_own and not _answers(url):
            click.echo(f"segue: nothing answers at {url}; start the server first", err=True)
            ctx.exit(Status.FAILED)
        known = (*REPORT_HEADERS, *headers)
        card = run_suite(
            url,
            upstream=scripted,
            wires=wires,
            cases=cases,
            model=model,
            key=key,
            report_headers=known,
            headers=extra,
        )
    if is_own:
        card = replace(card, target=f"the gateway of segue {__version__}")
    click.echo(card.render_json() if as_json else printable(card.render_text()), nl=False)
    if junit is not None:
        junit.write_text(card.render_junit(strict=strict), "utf-8")
    if badge is not None:
        badge.write_text(card.render_badge(), "utf-8")
    ctx.exit(Status.FOUND if card.failed(strict=strict) else Status.SUCCESS)


def _check_cases(cases: tuple[str, ...], wires: tuple[str, ...]) -> None:
    known = {case.id for wire in wires or wire_names() for case in load_wire(wire).cases}
    for name in cases:
        if name not in known:
            raise click.BadParameter(f"there is no case {name!r}; --list shows them", param_hint="--case")


def _list_cases(wires: tuple[str, ...]) -> None:
    titles: dict[str, str] = {}
    for wire in wires or wire_names():
        titles.update({case.id: case.title for case in load_wire(wire).cases})
    width = max(map(len, titles))
    for name, title in titles.items():
        click.echo(f"{name.ljust(width)}  {title}")


def _answers(url: str) -> bool:
    import httpx2

    try:
        httpx2.get(url, timeout=10, trust_env=False)
    except httpx2.HTTPError:
        return False
    return True


@contextmanager
def own_gateway(upstream: str, model: str | None) -> Generator[str]:
    """Run segue's gateway, with every provider of the cases at one address."""
    from segue.gateway.app import create_app
    from segue.gateway.config import load_config
    from segue.gateway.service import Gateway
    from segue.testing.emulator import serve_in_thread

    named = {model: get_model(model)} if model else {}
    for wire in wire_names():
        rows = load_wire(wire)
        for name in {rows.model, *(case.model for case in rows.cases if case.model)}:
            named[name] = next(each for each in find_models() if each.id == name and each.protocol == wire)
    lines: list[str] = []
    environment: dict[str, str] = {}
    for provider in dict.fromkeys(each.provider for each in named.values()):
        path = urlsplit(PROVIDERS[provider].base_url or "").path  # the scripted provider has no `/api` before `/v1`
        lines.append(f'[providers.{provider}]\nbase_url = "{upstream}{path.removeprefix("/api")}"')
        environment |= dict.fromkeys(PROVIDERS[provider].key_variables, "any")
    lines += [f'[models."{name}"]\ntry = ["{each.full_name()}"]' for name, each in named.items()]
    with TemporaryDirectory() as folder:
        config = load_config("\n".join((*lines, f'[state]\nstore = "sqlite:{Path(folder) / "state.db"}"')))
        try:
            gateway = Gateway(config, environment={**environment, "XDG_STATE_HOME": folder})
        except SegueError as error:
            raise click.ClickException(str(error)) from error
        with serve_in_thread(create_app(gateway=gateway)) as url:
            yield url
