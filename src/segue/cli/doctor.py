"""`segue doctor`: what segue finds on this machine, what is missing, and what to do. Nothing is sent anywhere."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final, Literal, NamedTuple, final

import click

from segue.cli.printable import echo_styled
from segue.cli.targets import ASK, catalogue_option, find_target, open_catalogue
from segue.client.http.addressing import split_login, without_query_secrets
from segue.client.http.base_urls import find_url, list_urls
from segue.client.local.gguf import check_ready
from segue.client.local.user_files import key_sources, read_settings, reads_url_variables
from segue.errors import DISTRIBUTION, SegueError, install_line
from segue.foundation.json_text import encode_json
from segue.foundation.plurals import counted
from segue.foundation.version import __version__
from segue.histories.api import find_sessions
from segue.histories.opening import describe_folders
from segue.models.built_in import LOCAL
from segue.models.catalogue import Catalogue

_COLOURS: Final[Mapping[str, str]] = {"ok": "green", "none": "yellow", "fail": "red"}
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)[^;]*; extra == '([a-z]+)'")
"""A requirement of an extra on every platform: the name of the package, and the extra."""
_NOT_OFFERED: Final = frozenset({"all", "dev", "docs", "release"})


@final
class MachineFinding(NamedTuple):
    """One thing that was looked at. `none`: it is not there, which is not a fault; `fail`: it does not work."""

    state: Literal["ok", "none", "fail"]
    subject: str
    text: str


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@catalogue_option
def command(*, as_json: bool, catalogue: str | None) -> None:
    """Show what segue finds on this machine: keys, URLs, extras, sessions, stores; and what to do about the rest.

    Keys are named by the variable or the place that has them, and never shown. Nothing is sent to a provider. The exit
    status is 1 if something does not work. `segue gateway doctor` looks at a gateway.
    """
    findings = [*examine(os.environ, open_catalogue(catalogue), catalogue)]
    if as_json:
        click.echo(encode_json([finding._asdict() for finding in findings]))
    else:
        for state, subject, text in findings:
            echo_styled(f"{state:4}", fg=_COLOURS[state], after=f"  {subject}: {text}")
    if any(finding.state == "fail" for finding in findings):
        raise click.exceptions.Exit(1)


def examine(environment: Mapping[str, str], known: Catalogue, file: str | None = None) -> Iterator[MachineFinding]:
    """Look at everything that a first request, a session or the gateway would use."""
    yield MachineFinding(
        "ok", "versions", f"segue {__version__}, Python {platform.python_version()}, {platform.platform()}"
    )
    yield MachineFinding(
        "ok", "catalogue", f"{counted(len(known.models), 'model')}, read {known.date or 'at an unknown date'}"
    )
    yield from _look_for_extras()
    try:
        sources, settings = key_sources(environment), read_settings(environment)
    except SegueError as error:
        yield MachineFinding("fail", "settings", str(error))
        return
    for provider, source in sources.items():
        where = f"stored ({source})" if source in ("file", "keyring") else f"from {source}"
        yield MachineFinding("ok", f"key of {provider}", where)
    if not sources:
        todo = "set a variable such as ANTHROPIC_API_KEY, or run `segue keys set PROVIDER`; `-m echo` needs none"
        yield MachineFinding("none", "keys", f"there are none; {todo}")
    yield from _look_at_urls(environment)
    if "model" in settings:
        yield _look_at_model(settings["model"], file)
    else:
        yield MachineFinding(
            "none", "default model", "not set; run `segue config set model claude`, or name one with -m"
        )
    yield _look_at_local(environment)
    yield from _look_for_servers()
    yield _look_at_store()
    yield from _look_for_sessions()


def _look_for_extras() -> Iterator[MachineFinding]:
    try:
        listed = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from a folder of its sources
        return
    extras: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.fullmatch, listed)):
        if match[2] not in _NOT_OFFERED:
            extras.setdefault(match[2], []).append(match[1])
    for extra, packages in sorted(extras.items()):
        found = {name: _version(name) for name in packages}
        missing = [name for name, each in found.items() if each is None]
        if missing:
            text = f"{', '.join(missing)} not installed; if you need it: {install_line(extra)}"
            yield MachineFinding("none", f"extra {extra}", text)
        else:
            yield MachineFinding("ok", f"extra {extra}", ", ".join(f"{name} {each}" for name, each in found.items()))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _look_at_urls(environment: Mapping[str, str]) -> Iterator[MachineFinding]:
    refused = "" if reads_url_variables(environment) else "; not used, because of `segue config set url_variables off`"
    for provider, variable in list_urls(environment):
        try:
            url = find_url(provider, environment) or ""
        except SegueError:
            text = f"{variable} is not an HTTP URL; correct or unset it"
            yield MachineFinding("none" if refused else "fail", f"URL of {provider}", text + refused)
        else:
            shown = without_query_secrets(split_login(url)[0])
            hint = refused or "; --no-url-variables refuses it"
            yield MachineFinding("ok", f"URL of {provider}", f"{shown} from {variable}{hint}")


def _look_at_model(name: str, file: str | None) -> MachineFinding:
    try:
        model = find_target(name, None, file, ASK)
    except SegueError as error:
        return MachineFinding("fail", "default model", f"{error}; set another one: segue config set model NAME")
    return MachineFinding("ok", "default model", model.full_name())


def _look_at_local(environment: Mapping[str, str]) -> MachineFinding:
    try:
        return MachineFinding("ok", "model `local`", str(check_ready(LOCAL.id, environment)))
    except SegueError as error:
        return MachineFinding("none", "model `local`", str(error))


def _look_for_servers() -> Iterator[MachineFinding]:
    try:
        from segue.client.local.servers import find_local_models
    except ModuleNotFoundError:
        return
    servers = Counter(model.provider for model in find_local_models() if model != LOCAL)
    for provider, count in servers.items():
        yield MachineFinding("ok", f"server {provider}", f"it answers on this machine, with {counted(count, 'model')}")


def _look_at_store() -> MachineFinding:
    from segue.gateway.config import load_config
    from segue.gateway.store.opening import file_of_store

    path = file_of_store(load_config("").state.store)
    if path is None or not path.is_file():
        return MachineFinding("none", "store of the gateway", f"{path} does not exist yet; `segue serve` makes it")
    return MachineFinding("ok", "store of the gateway", f"{path}, {path.stat().st_size / 1e6:,.1f} MB")


def _look_for_sessions() -> Iterator[MachineFinding]:
    counts = Counter(session.format for session in find_sessions())
    for name, count in sorted(counts.items()):
        yield MachineFinding("ok", f"sessions of {name}", f"{count:,}; `segue sessions --agent {name}` lists them")
    if not counts:
        yield MachineFinding("none", "sessions", f"none in {describe_folders()}")
