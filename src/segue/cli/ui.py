"""`segue ui`: the inspector, a local web page that shows the request for each model."""

from __future__ import annotations

import socket
from typing import BinaryIO

import click

from segue.cli.history_inputs import SourceFile
from segue.cli.targets import catalogue_option, open_catalogue

_LOOPBACK = "127.0.0.1"


@click.command("ui")
@click.argument("file", required=False, type=SourceFile())
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: a free one]")
@click.option(
    "--host",
    default=_LOOPBACK,
    show_default=True,
    help="The address to listen on. An address other than 127.0.0.1 allows connections from other machines.",
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@catalogue_option
def command(*, file: BinaryIO | None, port: int, host: str, browser: bool, catalogue: str | None) -> None:
    """Open the inspector, with the conversation in FILE if it is given. Ctrl-C ends it.

    The address contains a random token that every request needs. Nothing is sent to a provider or another server.
    """
    import uvicorn

    from segue.inspector.server import make_app, new_token

    opened = file.read().decode("utf-8", "replace") if file is not None else ""
    token = new_token()
    listener = socket.create_server((host, port))
    port = listener.getsockname()[1]
    names = {f"{host}:{port}", f"localhost:{port}"} if host == _LOOPBACK else {f"{host}:{port}"}
    address = f"http://{host}:{port}/{token}/"
    click.echo(f"The inspector is at {address}")
    click.echo("Press Ctrl-C to end it.")
    if browser:
        click.launch(address)
    app = make_app(token, frozenset(names), open_catalogue(catalogue), opened, shows_sessions=host == _LOOPBACK)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off")).run(sockets=[listener])
