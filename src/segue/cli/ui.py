"""`segue ui`: the inspector, a local web page that shows the request for each model."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from segue.cli.inputs import EXAMPLE, SourceFile, check_input, example_option, given_source, raise_named
from segue.cli.listening import listen
from segue.cli.targets import catalogue_option, open_catalogue, source_option
from segue.errors import DecodeError, LoadError

if TYPE_CHECKING:
    from segue.inspector.inspection import OpenedConversation
    from segue.inspector.library import Library, OpenConversation

_LOOPBACK: Final = "127.0.0.1"
_EVERYWHERE: Final[Mapping[str, str]] = {"0.0.0.0": _LOOPBACK, "::": "::1"}  # noqa: S104 - compared, not listened on
"""Addresses that mean every address of the machine -> the one to open on the machine itself."""


@click.command("ui")
@click.argument("file", required=False, type=SourceFile())
@click.argument("other", required=False, type=SourceFile())
@example_option
@source_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: a free one]")
@click.option(
    "--host",
    default=_LOOPBACK,
    show_default=True,
    help="The address to listen on. An address other than 127.0.0.1 allows connections from other machines.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="A name under which the page is opened, for example that of a proxy; may be repeated. Needed for names other"
    " than localhost and that of --host.",
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@click.option(
    "--redact/--no-redact",
    "redacts",
    default=None,
    help="Take keys, passwords and names of home folders out of what the page shows.  [default: if other machines can"
    " open it]",
)
@catalogue_option
def command(
    *,
    file: BinaryIO | None,
    other: BinaryIO | None,
    example: bool,
    source: str | None,
    port: int,
    host: str,
    allowed: tuple[str, ...],
    browser: bool,
    redacts: bool | None,
    catalogue: str | None,
) -> None:
    """Open the inspector, with the conversation in FILE if it is given, and OTHER next to it. Ctrl-C ends it.

    The address contains a random token that every request needs. Nothing is sent to a provider or another server. A
    forwarded port works as it is: `ssh -L 8000:127.0.0.1:8000 NAME` with --port 8000.
    """
    check_input(file, example=example, is_required=False)
    file = EXAMPLE.open("rb") if example else file
    import uvicorn

    from segue.inspector.answers import Answers
    from segue.inspector.guard import is_loopback
    from segue.inspector.library import Library
    from segue.inspector.server import make_app, new_token

    known = open_catalogue(catalogue)
    is_local = is_loopback(host) and not allowed
    library = Library(known, redacts=not is_local if redacts is None else redacts)
    if file is not None:
        library.first = _open_file(library, file, source)
    if other is not None:
        library.beside = _open_file(library, other, source)
    token = new_token()
    listener = listen(host, port)
    port = listener.getsockname()[1]
    address = f"http://{_in_url(_EVERYWHERE.get(host, host))}:{port}/{token}/"
    click.echo(f"The inspector is at {address}")
    names = {host}
    if not is_loopback(host):
        own_name = socket.gethostname()
        names |= {own_name, f"{own_name}.local"}
        elsewhere = own_name if host in _EVERYWHERE else host
        click.echo(f"On other machines: http://{_in_url(elsewhere)}:{port}/{token}/")
        click.echo("Everyone with this address can read the conversation, and the connection is not encrypted.")
    click.echo("Press Ctrl-C to end it.")
    if library.first is not None:
        Thread(target=library.first.inspect_suggested, daemon=True).start()
    if browser:
        _open_browser(address, port)
    proxies = frozenset(map(_without_port, allowed))
    answers = Answers(library, known, shows_sessions=is_loopback(host) and not proxies, example=EXAMPLE)
    app = make_app(token, answers, names=frozenset(names), allowed=proxies)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off")).run(sockets=[listener])


def _open_file(library: Library, file: BinaryIO, source: str | None) -> OpenConversation:
    from segue.histories.places import Watched
    from segue.inspector.inspection import open_conversation
    from segue.inspector.library import Growing

    path = Path(file.name)
    watched = Watched(path)

    def open_again() -> OpenedConversation:
        with path.open("rb") as again:
            return open_conversation(again, path.name, source)

    try:
        with file:
            opened = open_conversation(given_source(file), path.name, source)
        return library.add(path.name, opened, Growing(watched, open_again) if path.is_file() else None)
    except (LoadError, DecodeError) as error:
        raise_named(error, file.name)


def _open_browser(address: str, port: int) -> None:
    """Open the page, or print what to do on a machine without a screen."""
    if not _has_display():
        click.echo(
            f"There is no display, so no browser was opened: open the address yourself, or forward the port from your"
            f" machine: ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}"
        )
    elif click.launch(address):
        click.echo("No browser could be opened: open the address yourself.")


def _has_display() -> bool:
    """Whether a browser with a window can be started.

    On a Linux machine without a display, the program that opens addresses would start a browser in the terminal, or
    print its own errors.
    """
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER"))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _without_port(name: str) -> str:
    head, colon, tail = name.rpartition(":")
    return head if colon and tail.isdecimal() and ":" not in head else name
