"""`segue run`: run a client on another model, behind a gateway of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from segue.gateway.config import load_config
from segue.gateway.defaults import with_model
from segue.gateway.setup_lines import find_client_row

_KEY = "segue-run"


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.option("-m", "--model", metavar="NAME", required=True, help="The model that answers, such as openai/gpt-5.4.")
@click.option("--store", metavar="STORE", help='"sqlite:FILE", "postgresql://..." or "none".')
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(*, model: str, store: str | None, program: tuple[str, ...]) -> None:
    """Run PROGRAM (claude, codex, gemini, opencode, pi or qwen) on another model.

    For example: segue run -m openai/gpt-5.4 -- claude

    A gateway on a free port answers the program, and ends with it. State is kept in the usual store, so that a session
    can be resumed later.
    """
    from segue.gateway.app import create_app
    from segue.gateway.service import Gateway
    from segue.testing.emulator.running import serve_in_thread

    row = find_client_row(program[0])
    if row is None:
        raise click.UsageError(
            f"{program[0]} is not a client that segue can set up; run `segue serve` and set its base URL yourself"
        )
    if shutil.which(program[0]) is None:
        raise click.UsageError(f"there is no program {program[0]}; install it, or give its path")
    config = with_model(load_config("" if store is None else f'[state]\nstore = "{store}"'), model)
    gateway = Gateway(config)
    gateway.router.find(model, "openai-chat")
    name = model.rpartition("/")[2]
    with TemporaryDirectory(prefix="segue-run-") as folder, serve_in_thread(create_app(gateway=gateway)) as url:
        setup = row.make(url, _KEY, name)
        environment = {**os.environ, **setup.environment}
        for variable, path in setup.file_variables.items():
            file = Path(folder) / path
            file.write_text(setup.files[path])
            environment[variable] = str(file)
        command_line = [program[0], *setup.arguments, *program[1:]]
        try:
            status = subprocess.run(command_line, env=environment, check=False).returncode  # noqa: S603 - the user's own
        except KeyboardInterrupt:
            status = 130
    sys.exit(status)
