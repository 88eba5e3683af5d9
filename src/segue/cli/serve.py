"""`segue serve`: the gateway, for any client and any model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
from msgspec.structs import replace

from segue.cli.listening import listen
from segue.cli.starting import LOCAL_OFFER, check_usable
from segue.errors import SegueError
from segue.foundation.plurals import counted
from segue.gateway.config import SETUP_NAMES, Config, load_config, read_config
from segue.gateway.defaults import Address, complete_config, is_echo, needs_key, read_address, with_model
from segue.models.built_in import LOCAL


@click.command("serve")
@click.option(
    "--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="A TOML file with routes."
)
@click.option("--address", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:8787]")
@click.option("-m", "--model", metavar="NAME", help="Send every request to this model, whatever the client asks for.")
@click.option("--store", metavar="STORE", help='"sqlite:FILE", "postgresql://..." or "none".')
@click.option(
    "--setup",
    metavar="CLIENT",
    type=click.Choice(SETUP_NAMES),
    help="Print the lines that point a client to the gateway, and exit.",
)
@click.option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --setup: write the files of the client into this home folder.",
)
def command(
    *,
    config: Path | None,
    address: str | None,
    model: str | None,
    store: str | None,
    setup: str | None,
    folder: Path | None,
) -> None:
    """Run the gateway. Clients speak their own protocol, and any model answers.

    Without a file, keys are read from the usual environment variables, servers on this machine are found, and every
    model of the catalogue can be asked for. Without any key the echo model answers. Ctrl-C ends it.
    """

    def adapt(read: Config) -> Config:
        """Apply the options of the command line, at the start and when the file has changed."""
        if store is not None:
            read = replace(read, state=replace(read.state, store=store))
        if address is not None:
            read = replace(read, listen=replace(read.listen, address=address))
        return read if model is None else with_model(read, model)

    known = adapt(read_config(config) if config is not None else load_config(""))
    place = read_address(known.listen.address)
    if setup is not None:
        _print_setup(setup, place, known, folder, model)
        return
    completed = complete_config(known, os.environ) if config is None else known
    serve(completed, place, path=config, model=model, adapt=adapt)


def _print_setup(client: str, place: Address, config: Config, folder: Path | None, chosen: str | None) -> None:
    from segue.gateway.routing import Router
    from segue.gateway.runtime import catalogue_of
    from segue.gateway.setup_lines import CLIENTS, setup_text

    router = Router(config, catalogue_of(config))
    name = chosen.rpartition("/")[2] if chosen else next(iter(router.listed()), "claude-opus-4-8")
    model = router.describe(name)
    key = "YOUR-GATEWAY-KEY" if needs_key(config) or _has_stored_keys(config) else "any"
    if folder is None:
        click.echo(setup_text(client, place.url, key, model), nl=False)
        return
    files = CLIENTS[client].make(place.url, key, model).files
    if not files:
        click.echo(f"{client} needs no file; set this instead:\n{setup_text(client, place.url, key, model)}", nl=False)
    for name, text in files.items():
        path = folder / name
        if path.exists():
            raise click.UsageError(
                f"{path} exists; it is not overwritten. Remove it, or print the lines without --write"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(f"wrote {path}")
    if files and (more := setup_text(client, place.url, key, model, written=folder)):
        click.echo(f"\nThe client needs this as well:\n{more}", nl=False)


def _has_stored_keys(config: Config) -> bool:
    """Whether the store has keys, so that clients need one. A store that does not answer has none that is known."""
    from segue.gateway.store.database import StoreError
    from segue.gateway.store.key_table import keys_version
    from segue.gateway.store.opening import file_of_store, open_store, read_store_name

    try:
        name = read_store_name(config.state.store, os.environ)
        file = file_of_store(name)
        store = None if file is not None and not file.exists() else open_store(name)
        if store is None:
            return False
        try:
            return keys_version(store.database) is not None
        finally:
            store.close()
    except (SegueError, StoreError) as error:
        click.echo(f"The store was not read, so it may have keys that clients need: {error}", err=True)
        return False


def serve(
    config: Config,
    place: Address,
    *,
    path: Path | None,
    model: str | None = None,
    adapt: Callable[[Config], Config] | None = None,
) -> None:
    """Run a gateway until it is interrupted; `model` is the one that every request goes to.

    `path` is the file of the configuration, which is read again when it changes, and changed by `adapt`.

    Raises:
        SegueError: there is no such model, or the address cannot be used.
        NotUsable: the model cannot answer: it has no key, or its server does not run.
    """
    import uvicorn

    from segue.gateway.app import create_app
    from segue.gateway.connections import draining_server, guarded_protocols
    from segue.gateway.service import Gateway
    from segue.gateway.tracing import write_log

    log: dict[str, None] = {}
    if config.telemetry.log != "off":
        write_log(config.telemetry.log)
        log = {"log_config": None}  # of uvicorn: its records go to the same place
    gateway = Gateway(config, path=path, place=place, adapt=adapt)
    gateway.owns_process = True
    if model is not None:
        check_usable(gateway, model)
    listener = listen(place.name, place.port, another="choose another one with --address HOST:PORT")
    place = Address(place.name, listener.getsockname()[1])
    click.echo(f"The gateway is at {place.url}")
    if is_echo(config):
        click.echo("No key was found, so the echo model answers. Set a key such as OPENAI_API_KEY for real models;")
        click.echo(f"without one, {LOCAL_OFFER}.")
    elif model is None and is_echo(config, LOCAL):
        click.echo("No key was found, so the model `local` of this machine answers.")
    if gateway.needs_key(gateway.runtime):
        kept = f" (the store has {counted(len(gateway.keys), 'key')})" if len(gateway.keys) else ""
        click.echo(f"Every client needs a key{kept}: segue gateway keys create NAME makes one.")
    click.echo("Point a client to it: segue serve --setup claude-code (or codex, gemini-cli, ...). Ctrl-C ends it.")
    settings = uvicorn.Config(
        create_app(gateway=gateway),
        log_level="warning",
        **log,
        lifespan="on",
        **guarded_protocols(lambda: gateway.config.limits),
        access_log=False,
        timeout_graceful_shutdown=config.limits.drain_seconds,
        server_header=False,
    )
    draining_server(settings).run(sockets=[listener])
