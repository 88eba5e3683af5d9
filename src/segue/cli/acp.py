"""`segue acp`: the sessions of agents on this machine for an editor, by the Agent Client Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from segue.cli.starting import Sending, find_start, sending_options
from segue.cli.targets import ASK, complete_model, open_catalogue
from segue.conversation.context import Options
from segue.errors import MissingExtra


@click.command("acp")
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model that continues sessions.  [default: that of `segue config`, or of the last answer]",
)
@click.option(
    "--root",
    "roots",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="Also search this folder for sessions that are stored in projects; can be repeated.",
)
@click.option(
    "--save",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where continued sessions are stored, as session files.  [default: a folder of segue's own]",
)
@sending_options
def command(*, model: str | None, roots: tuple[Path, ...], save: Path | None, sending: Sending) -> None:
    """Serve the sessions of all agents on this machine to an editor, by the Agent Client Protocol.

    The editor lists and loads sessions of every agent, and continues them with MODEL. The files of the agents are never
    changed: what is added is stored as a session file of segue. The model reads and writes files of the project and
    runs commands through the editor only, which asks its user. It needs the library: pip install
    'segue-llm[acp]', or '.[acp]' in a clone.

    In the settings of an editor, the agent is the command `segue acp --model MODEL`.
    """
    try:
        from segue.cli.acp_server import serve
    except ModuleNotFoundError as error:
        raise MissingExtra("`segue acp` needs the package agent-client-protocol", extra="acp") from error
    known = open_catalogue(sending.catalogue)
    start = find_start(model, sending, None, ASK)
    settings = sending.client_settings("" if start is None else start.provider, known)
    options = Options(thinking=sending.thinking, max_tokens=sending.max_tokens)
    serve(None if start is None else start.model, settings, roots=roots, save=save, options=options)
