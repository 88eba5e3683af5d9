"""`segue serve`: the gateway, for any client and any model."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from segue.cli.listening import listen, listen_often
from segue.cli.starting import LOCAL_OFFER, check_usable
from segue.client.http.base_urls import list_urls
from segue.errors import SegueError, SettingsError
from segue.foundation.plurals import counted
from segue.gateway.config import SETUP_NAMES, Config, load_config, read_config
from segue.gateway.defaults import Address, complete_config, is_echo, needs_key, read_address, with_model
from segue.models.built_in import LOCAL

if TYPE_CHECKING:
    from segue.gateway.board import Board
    from segue.gateway.service import Gateway

MOST_WORKERS: Final = 64
_ANOTHER: Final = "choose another one with --port"


@click.command("serve")
@click.option(
    "--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="A TOML file with routes."
)
@click.option("--address", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:8787]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port, at the same host; 0 takes a free one.  [default: 8787]"
)
@click.option("-m", "--model", metavar="NAME", help="Send every request to this model, whatever the client asks for.")
@click.option("--store", metavar="STORE", help='"sqlite:FILE", "postgresql://..." or "none".')
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    metavar="N",
    default=1,
    help="Processes that serve the address together, one for each core.  [default: 1]",
)
@click.option(
    "--worker",
    "is_worker",
    is_flag=True,
    hidden=True,
    help="Run as one of these processes; read the settings from standard input.",
)
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
    port: int | None,
    model: str | None,
    store: str | None,
    workers: int,
    is_worker: bool,
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
        if port is not None:
            read = replace(read, listen=replace(read.listen, address=read_address(read.listen.address).at(port)))
        return read if model is None else with_model(read, model)

    if is_worker:
        run_worker(config, adapt)
        return
    if address is not None and port is not None:
        raise click.UsageError("--address names a port already; leave out --port")
    known = adapt(read_config(config) if config is not None else load_config(""))
    place = read_address(known.listen.address)
    if setup is not None:
        _print_setup(setup, place, known, folder, model)
        return
    completed = complete_config(known, os.environ) if config is None else known
    if workers == 1:
        serve(completed, place, path=config, model=model, adapt=adapt)
        return
    given = {"--config": config, "--model": model, "--store": store, "--address": address, "--port": port}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    serve_with_workers(completed, place, workers, options, path=config, model=model)


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
    gateway = _open(config, place, path=path, model=model, adapt=adapt)
    listener = listen(place.name, place.port, another=_ANOTHER)
    _announce(gateway, Address(place.name, listener.getsockname()[1]), model)
    _run(gateway, listener)


def serve_with_workers(
    config: Config, place: Address, count: int, options: Sequence[str], *, path: Path | None, model: str | None
) -> None:
    """Run a gateway in several processes until it is interrupted; `options` are those of each.

    Raises:
        SettingsError: the store is not one that processes can share, or the address cannot be used.
    """
    from segue.cli.workers import Supervisor
    from segue.gateway.board import Board, make_board, remove_board
    from segue.gateway.service import APPLIED
    from segue.gateway.store.opening import read_store_name

    if sys.platform == "win32":
        raise click.UsageError("--workers needs Linux or macOS; leave it out, or run gateways on several ports")
    if read_store_name(config.state.store, os.environ).partition(":")[2] in ("", ":memory:"):
        raise SettingsError(
            "workers share what they know in a store; set state.store, or leave out --workers", key="store"
        )
    # What is wrong with the configuration is found here, once; and the store is made before others open it.
    gateway = _open(config, place, path=path, model=model)
    listeners = listen_often(place.name, place.port, count, another=_ANOTHER)
    place = Address(place.name, listeners[0].getsockname()[1])
    _announce(gateway, place, model)
    asyncio.run(gateway.close())
    folder = make_board(count)
    try:
        board = Board(folder, 0, count)
        if path is not None:
            board.write(APPLIED, path.read_bytes())
        Supervisor(board, place, listeners, options, drain_seconds=config.limits.drain_seconds).run()
    finally:
        remove_board(folder)


def run_worker(path: Path | None, adapt: Callable[[Config], Config]) -> None:
    """Be one of the workers of a gateway, until its supervisor ends."""
    from segue.cli.workers import Worker, follow_supervisor
    from segue.gateway.board import Board
    from segue.gateway.service import APPLIED

    worker = Worker.read(sys.stdin.buffer)

    def divide(read: Config) -> Config:
        """Return the configuration with this worker's share of the limits."""
        adapted = adapt(read)
        limits = adapted.limits
        parts = replace(
            limits,
            large_bodies_per_key=max(1, limits.large_bodies_per_key // worker.count),
            remembered_megabytes=limits.remembered_megabytes / worker.count,
        )
        return replace(adapted, limits=parts)

    board = Board(Path(worker.folder), worker.index, worker.count)
    data = board.read(APPLIED)
    known = divide(load_config(data or b"", name=str(path)) if path is not None else load_config(""))
    config = complete_config(known, os.environ) if path is None else known
    gateway = _open(config, Address(*worker.place), path=path, adapt=divide, board=board)
    follow_supervisor(sys.stdin.buffer)
    _run(gateway, socket.socket(fileno=worker.listener))


def _open(
    config: Config,
    place: Address,
    *,
    path: Path | None,
    model: str | None = None,
    adapt: Callable[[Config], Config] | None = None,
    board: Board | None = None,
) -> Gateway:
    """Make a gateway that has this process for itself."""
    from segue.gateway.service import Gateway
    from segue.gateway.tracing import write_log

    if config.telemetry.log != "off":
        write_log(config.telemetry.log)
    gateway = Gateway(config, path=path, place=place, adapt=adapt, board=board)
    gateway.owns_process = True
    if model is not None:
        check_usable(gateway, model)
    return gateway


def _announce(gateway: Gateway, place: Address, model: str | None) -> None:
    """Tell the operator where the gateway is, and what it needs."""
    config = gateway.config
    click.echo(f"The gateway is at {place.url}")
    if is_echo(config):
        click.echo("No key was found, so the echo model answers. Set a key such as OPENAI_API_KEY for real models;")
        click.echo(f"without one, {LOCAL_OFFER}.")
    elif model is None and is_echo(config, LOCAL):
        click.echo("No key was found, so the model `local` of this machine answers.")
    if gateway.needs_key(gateway.runtime):
        kept = f" (the store has {counted(len(gateway.keys), 'key')})" if len(gateway.keys) else ""
        click.echo(f"Every client needs a key{kept}: segue gateway keys create NAME makes one.")
    for provider, variable in list_urls(os.environ):
        if provider not in config.providers or config.providers[provider].base_url is None:
            click.echo(f"{variable} is for clients, and is not used here; providers.{provider}.base_url is.")
    click.echo("Point a client to it: segue serve --setup claude-code (or codex, gemini-cli, ...). Ctrl-C ends it.")


def _run(gateway: Gateway, listener: socket.socket) -> None:
    """Serve a gateway until it is interrupted."""
    import uvicorn

    from segue.gateway.app import create_app
    from segue.gateway.connections import draining_server, guarded_protocols

    config = gateway.config
    # Of uvicorn: its records go to the same place.
    log: dict[str, None] = {} if config.telemetry.log == "off" else {"log_config": None}
    settings = uvicorn.Config(
        create_app(gateway=gateway),
        log_level="warning",
        **log,
        lifespan="on",
        **guarded_protocols(lambda: gateway.config.limits, gateway.board),
        access_log=False,
        timeout_graceful_shutdown=config.limits.drain_seconds,
        server_header=False,
    )
    draining_server(settings).run(sockets=[listener])
