"""`segue mcp`: the sessions of agents on this machine as an MCP server."""

from __future__ import annotations

from pathlib import Path
from secrets import token_urlsafe

import click

from segue.cli.listening import listen
from segue.errors import MissingExtra

_LOOPBACK = "127.0.0.1"


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="Also read files below this folder, in addition to the sessions of agents; can be repeated.",
)
@click.option("--allow-writes", is_flag=True, help="Also offer `hand_over`, which stores a session for another agent.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve over HTTP on this machine, instead of over standard input and output; the address is printed.",
)
@click.option(
    "--redact/--no-redact",
    "redacts",
    default=None,
    help="Take keys, passwords and names of home folders out of all replies.  [default: over HTTP]",
)
def command(*, roots: tuple[Path, ...], allow_writes: bool, port: int | None, redacts: bool | None) -> None:
    """Serve the sessions of all agents on this machine to an agent, by the Model Context Protocol.

    Tools list, search and read sessions, show what a compaction dropped, estimate what a switch of models costs, and
    check a request. Nothing is written without --allow-writes. It needs the library mcp: pip install 'segue-llm[mcp]',
    or '.[mcp]' in a clone.

    `claude mcp add segue -- segue mcp` adds it to Claude Code, `codex mcp add segue -- segue mcp` to Codex.
    """
    try:
        from segue.cli.mcp_server import build_server
    except ModuleNotFoundError as error:
        raise MissingExtra("`segue mcp` needs the package mcp", extra="mcp") from error
    redacts = port is not None if redacts is None else redacts
    server = build_server(roots=roots, allows_writes=allow_writes, redacts=redacts)
    if port is None:
        server.run("stdio")
        return
    import uvicorn

    listener = listen(_LOOPBACK, port)
    # The SDK checks Host and Origin; the token keeps out other users of this machine.
    path = f"/{token_urlsafe()}/mcp"
    click.echo(f"http://{_LOOPBACK}:{listener.getsockname()[1]}{path}", err=True)
    app = server.streamable_http_app(streamable_http_path=path, host=_LOOPBACK)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
