"""Printing answers while they arrive, and the exit status of a request."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from segue.cli.printable import printable
from segue.cli.statuses import Status
from segue.cli.wording import in_program_words
from segue.client.flow.attempts import Attempt
from segue.client.http.streams import Stream
from segue.conversation.messages import AssistantMessage
from segue.failures.failure import FailureKind


def print_answer(
    stream: Stream, *, on_first: Callable[[], None], thinking_to_stderr: bool = False, quiet: bool = False
) -> AssistantMessage:
    """Print a reply as it arrives and return it; Ctrl-C ends it early. `on_first` is called when it begins.

    In a terminal, control characters are replaced. With `quiet`, nothing is printed.
    """
    has_begun = thinks = False
    clean = printable if sys.stdout.isatty() else str
    ends_line = True
    try:
        for event in stream:
            if not has_begun and event.type not in ("start", "error"):
                has_begun = True
                on_first()
            if event.type == "thinking_delta" and not quiet:
                if not thinking_to_stderr or sys.stderr.isatty():
                    thinks = True
                    click.secho(printable(event.delta), dim=True, nl=False, err=thinking_to_stderr)
            elif event.type == "text_delta" and not quiet:
                if thinks:
                    click.echo(err=thinking_to_stderr)
                    thinks = False
                click.echo(clean(event.delta), nl=False)
                ends_line = event.delta.endswith("\n")
    except KeyboardInterrupt:
        stream.close()
    if thinks:
        click.echo(err=thinking_to_stderr)
    if not quiet and not (thinking_to_stderr and ends_line):
        click.echo()
    return stream.message


def print_end(message: AssistantMessage) -> None:
    """Explain on standard error why an answer is incomplete, if it is."""
    if message.stop_reason == "aborted":
        click.secho("(stopped; the part that arrived is kept)", dim=True, err=True)
    elif message.stop_reason == "error":
        reason = message.error_message or "the answer is incomplete, and the server gave no reason"
        click.secho(printable(in_program_words(reason)), fg="red", err=True)
    elif message.stop_reason == "length":
        click.secho("(the answer was cut at its token limit; --max-tokens sets it)", dim=True, err=True)


def status_of(message: AssistantMessage, attempts: tuple[Attempt, ...]) -> Status:
    """Give the exit status of a request."""
    if message.stop_reason == "aborted":
        return Status.INTERRUPTED
    if message.stop_reason in ("error", "length"):
        failure = attempts[-1].failure if attempts else None
        return Status.NO_KEY if failure is not None and failure.kind == FailureKind.AUTH else Status.FAILED
    return Status.SUCCESS
