"""`segue pin`: says which messages no request may leave out."""

from __future__ import annotations

from pathlib import Path

import click

from segue.cli.inputs import raise_named
from segue.conversation.foreign import FORMAT
from segue.conversation.stored import dump, load
from segue.errors import ConversationError, LoadError
from segue.foundation.plurals import counted
from segue.histories.sessions import append_header, read_session


@click.command("pin")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=click.IntRange(0))
@click.option("--remove", is_flag=True, help="Remove these pins instead; without a NUMBER, all of them.")
def command(*, file: Path, numbers: tuple[int, ...], remove: bool) -> None:
    """Pin messages of FILE, a session file or a stored conversation: they are sent whole, however small the window is.

    `segue show FILE` prints the NUMBER of each message, and `segue show FILE --dropped --for MODEL` those that a model
    would not see. Without a NUMBER the pins are listed.
    """
    data = file.read_bytes()
    is_document = False
    try:
        try:
            context, is_document = load(data), True
        except LoadError:
            context = read_session(file)
    except LoadError as error:
        raise_named(error, str(file))
    if FORMAT.encode() not in data:
        raise LoadError(f"{file} is not a file of segue, so it has no place for pins; run `segue import {file} -o NEW`")
    if numbers or remove:
        try:
            pinned = context.unpin(*numbers) if remove else context.pin(*numbers)
        except ConversationError as error:
            raise click.UsageError(f"{file}: {error}") from error
        if pinned.pins != context.pins:
            if is_document:
                file.write_bytes(dump(pinned))
            else:
                append_header(file, pinned)
        context = pinned
    listed = ", ".join(map(str, context.pins))
    click.echo(f"{counted(len(context.pins), 'pinned message')}{': ' if listed else ''}{listed}")
