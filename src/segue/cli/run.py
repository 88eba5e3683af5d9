"""`segue run`: run a client on another model, through its own gateway."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory

import click
from msgspec.structs import replace

from segue.cli.starting import check_usable
from segue.client.local.user_files import read_settings
from segue.gateway.config import load_config, read_config
from segue.gateway.defaults import with_model
from segue.gateway.keys import ANYONE, digest_of
from segue.gateway.setup_lines import find_client_row
from segue.gateway.store.private_files import make_private_file, make_private_folder


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    help="The model that answers, such as openai/gpt-5.4.  [default: that of `segue config set model`]",
)
@click.option(
    "--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="A TOML file with providers."
)
@click.option("--store", metavar="STORE", help='"sqlite:FILE", "postgresql://..." or "none".')
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(*, model: str | None, config: Path | None, store: str | None, program: tuple[str, ...]) -> None:
    """Run PROGRAM (such as claude, codex, gemini, opencode, pi or qwen) on another model.

    For example: segue run -m openai/gpt-5.4 -- claude

    A gateway on a free port answers the program, and ends with it. State is kept in the usual store, so that a session
    can be resumed later.
    """
    from segue.gateway.app import create_app
    from segue.gateway.connections import guarded_protocol
    from segue.gateway.service import Gateway
    from segue.testing.emulator.running import serve_in_thread

    model = model or read_settings(os.environ).get("model")
    if model is None:
        raise click.UsageError("name a model with -m, or set one for all commands: segue config set model NAME")
    row = find_client_row(program[0])
    if row is None:
        raise click.UsageError(
            f"{program[0]} is not a client that segue can set up; run `segue serve` and set its base URL yourself"
        )
    if not row.runs:
        raise click.UsageError(
            f"{program[0]} reads its provider from its own settings only; run `segue serve`, and see its --setup"
        )
    if shutil.which(program[0]) is None:
        raise click.UsageError(f"there is no program {program[0]}; install it, or give its path")
    known = read_config(config) if config is not None else load_config("")
    if store is not None:
        known = replace(known, state=replace(known.state, store=store))
    gateway = Gateway(with_model(known, model))
    # The program has its own key, whatever keys the store has; its conversations are those of clients without one.
    secret = token_urlsafe(32)
    gateway.runtime.keys[digest_of(secret)] = ANYONE
    check_usable(gateway, model)
    answering = gateway.router.describe(model.rpartition("/")[2])
    protocol = guarded_protocol(lambda: gateway.config.limits)
    with own_folder() as folder, serve_in_thread(create_app(gateway=gateway), protocol=protocol) as url:
        setup = row.make(url, secret, answering)
        for path, text in setup.run_files.items():
            make_private_file(Path(folder) / path)
            (Path(folder) / path).write_text(text)
        environment = {**os.environ, **setup.environment}
        environment |= {variable: str(Path(folder) / path) for variable, path in setup.run_variables.items()}
        files = [part for option, path in setup.run_arguments for part in (option, str(Path(folder) / path))]
        command_line = [program[0], *files, *setup.arguments, *program[1:]]
        try:
            status = subprocess.run(command_line, env=environment, check=False).returncode  # noqa: S603 - the user's own
        except KeyboardInterrupt:
            status = 130
    sys.exit(status)


def own_folder() -> TemporaryDirectory[str]:
    """Make a temporary folder that only the user can write to, and all folders above it: gemini-cli checks that."""
    state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "segue"
    for place, prefix in ((state, "run-"), (Path.home(), ".segue-run-")):
        try:
            make_private_folder(place)
            if place == state and _is_shared(place):  # made by an earlier version under a wide umask
                place.chmod(0o700)
            if not any(map(_is_shared, (place, *place.absolute().parents))):
                return TemporaryDirectory(prefix=prefix, dir=place)
        except OSError:
            continue
    return TemporaryDirectory(prefix="segue-run-")


def _is_shared(folder: Path) -> bool:
    """Whether others may replace what is in a folder. In one with the sticky bit they may not."""
    mode = folder.stat().st_mode
    return os.name != "nt" and bool(mode & 0o022) and not mode & stat.S_ISVTX
