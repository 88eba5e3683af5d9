"""Printing answers while they arrive, and the exit status of a request."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from segue.cli.printable import echo_data, echo_styled, open_console
from segue.cli.progress import Waiting
from segue.cli.statuses import Status
from segue.cli.wording import in_program_words
from segue.client.flow.attempts import Attempt
from segue.client.http.streams import Stream
from segue.conversation.messages import AssistantMessage, Usage
from segue.failures.failure import FailureKind
from segue.foundation.plurals import counted
from segue.models.built_in import LOCAL_HOST
from segue.models.providers import find_row

if TYPE_CHECKING:
    from rich.live import Live

_REDRAW: Final = 0.05
"""Seconds between two drawings of a block that grows."""
_SHOWN: Final = 200
"""Characters of a failure that are shown while the next attempt is waited for."""


def print_answer(
    stream: Stream, *, on_first: Callable[[], None], thinking_to_stderr: bool = False, quiet: bool = False
) -> AssistantMessage:
    """Print a reply as it arrives and return it; Ctrl-C ends it early. `on_first` is called when it begins.

    With `quiet`, nothing is printed.
    """
    has_begun = thinks = False
    blocks = MarkdownBlocks() if _shows_markdown() else None
    ends_line = True
    waiting = Waiting(lambda: describe_waiting(stream))
    try:
        for event in stream:
            if event.type != "start":
                waiting.end()
            if not has_begun and event.type not in ("start", "error"):
                has_begun = True
                on_first()
            if event.type == "thinking_delta" and not quiet:
                if not thinking_to_stderr or sys.stderr.isatty():
                    thinks = True
                    echo_styled(event.delta, dim=True, nl=False, err=thinking_to_stderr)
            elif event.type == "text_delta" and not quiet:
                if thinks:
                    click.echo(err=thinking_to_stderr)
                    thinks = False
                if blocks is not None:
                    blocks.feed(event.delta)
                    continue
                echo_data(event.delta, nl=False)
                ends_line = event.delta.endswith("\n")
    except KeyboardInterrupt:
        stream.close()
    finally:
        waiting.end()
        if blocks is not None:
            blocks.pause()
    if blocks is not None and not quiet:
        blocks.finish()
        return stream.message
    if thinks:
        click.echo(err=thinking_to_stderr)
    if not quiet and not (thinking_to_stderr and ends_line):
        click.echo()
    return stream.message


def describe_waiting(stream: Stream) -> str:
    """Name what an answer waits for: a model that starts, a server, or the next attempt after a failure."""
    name = stream.model.full_name()
    last = stream.attempts[-1].failure if stream.attempts else None
    if last is not None:
        return f"the next attempt to ask {name}: {in_program_words(last.message)[:_SHOWN]}"
    row = find_row(stream.model.provider)
    host = urlsplit(stream.model.base_url or (row and row.base_url) or "").netloc.rpartition("@")[2]
    return f"{name}, which is starting on this machine" if host == LOCAL_HOST else f"{name} at {host or 'its server'}"


def _shows_markdown() -> bool:
    """Whether answers are drawn: in a terminal that can do so."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class MarkdownBlocks:
    """Prints Markdown while it arrives, words wrapped.

    The paragraph, list or block of code that is being written is drawn again with each part, as far as it fits on the
    screen; once it is complete it stays.
    """

    def __init__(self) -> None:
        self._console = open_console()
        self._text = ""
        self._live: Live | None = None
        self._drawn = 0.0

    def feed(self, text: str) -> None:
        """Print the blocks that are complete with this text."""
        self._text += text
        while (end := _end_of_block(self._text)) is not None:
            self._print(self._text[:end])
            self._text = self._text[end:]
        self._draw()

    def _draw(self) -> None:
        """Draw the block that is not complete, not more often than an eye can follow."""
        from rich.live import Live
        from rich.markdown import Markdown

        if not self._text.strip() or time.monotonic() - self._drawn < _REDRAW:
            return
        self._drawn = time.monotonic()
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="ellipsis",
            )
            self._live.start()
        self._live.update(Markdown(self._text.strip("\n"), hyperlinks=False), refresh=True)

    def pause(self) -> None:
        """Remove what is drawn of the block that is not complete."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def finish(self) -> None:
        """Print the rest."""
        self._print(self._text)
        self._text = ""

    def _print(self, block: str) -> None:
        from rich.markdown import Markdown

        self.pause()
        if block.strip():
            self._console.print(Markdown(block.strip("\n"), hyperlinks=False))
            self._console.print()


def _end_of_block(text: str) -> int | None:
    """Find the first blank line that is not in a block of code."""
    fence, at = "", 0
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            return None
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        elif not fence and not line.strip() and text[:at].strip():
            return at
        at += len(line)
    return None


def describe_usage(usage: Usage | None) -> str:
    """Say how many tokens were used, and what they cost."""
    if usage is None:
        return "tokens not known"
    cached = f", {usage.cache_read:,} from the cache" if usage.cache_read else ""
    read = usage.input + usage.cache_read + usage.cache_write
    cost = "price not known" if usage.cost is None else f"${usage.cost.total:.4f}"
    return f"{counted(read, 'token')} in{cached}, {usage.output:,} out, {cost}"


def print_usage(usage: Usage | None) -> None:
    """Print on standard error what an answer used."""
    echo_styled(f"({describe_usage(usage)})", dim=True, err=True)


def print_end(message: AssistantMessage) -> None:
    """Explain on standard error why an answer is incomplete, if it is."""
    if message.stop_reason == "aborted":
        echo_styled("(stopped; the part that arrived is kept)", dim=True, err=True)
    elif message.stop_reason == "error":
        reason = message.error_message or "the answer is incomplete, and the server gave no reason"
        echo_styled(f"segue: {in_program_words(reason)}", fg="red", err=True)
    elif message.stop_reason == "length":
        echo_styled("(the answer was cut at its token limit; --max-tokens sets it)", dim=True, err=True)


def status_of(message: AssistantMessage, attempts: tuple[Attempt, ...]) -> Status:
    """Return the exit status of a request."""
    if message.stop_reason == "aborted":
        return Status.INTERRUPTED
    if message.stop_reason in ("error", "length"):
        failure = attempts[-1].failure if attempts else None
        return Status.NO_KEY if failure is not None and failure.kind == FailureKind.AUTH else Status.FAILED
    return Status.SUCCESS
