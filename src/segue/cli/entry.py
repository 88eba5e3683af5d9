"""The entry point of the `segue` program: exit status, error messages, and missing packages.

An error prints one sentence, without a traceback; `segue.cli.statuses` has the exit statuses. A closed pipe (`| head`)
ends the program quietly. Ctrl-C ends it with the status that shells expect, and without a traceback, whatever the
program is doing.

Facts:
- Python sets a standard stream to None if its descriptor is closed (`>&-`). The next file that is opened gets the
  lowest free descriptor, so output to descriptor 1 would go into that file.        (open(2), POSIX; CPython 3.11, sys)
- A terminal or a locale without UTF-8 makes `print` fail at the first character that it cannot encode.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, TextIO, cast

from segue.cli.printable import guard_streams
from segue.cli.statuses import Status
from segue.errors import DISTRIBUTION, SegueError, TornLine
from segue.foundation.safe_text import in_one_line

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_MISSING: Final = f'segue: the package {{package}} is not installed; run: pip install "{DISTRIBUTION}[{{extra}}]"'
_IN_A_CLONE: Final = ' (in a clone: pip install ".[{extra}]")'
_WITHOUT_INSTALLING: Final = f', or without installing: uvx --from "{DISTRIBUTION}[{{extra}}]" segue'
_EXTRAS: Final = {
    "click": "cli",
    "rich": "cli",
    "httpx2": "client",
    "botocore": "bedrock",
    "aiohttp": "gateway",
    "psycopg": "postgres",
    "starlette": "ui",
    "uvicorn": "ui",
}
"""Optional packages -> the extra that installs them."""


def main() -> None:
    """Run the program and exit with its status."""
    _open_streams()
    guard_streams()
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", TornLine)
    sys.unraisablehook = _handle_unraisable
    try:
        sys.exit(_run())
    finally:
        # The run is over. A Ctrl-C while Python exits would print the traceback of an exit function.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run() -> int:
    try:
        return _run_program()
    except KeyboardInterrupt as interrupted:
        _print(f"segue: interrupted{interrupted}")  # a command may say how to go on
        return Status.INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return Status.CLOSED_PIPE
    except OSError as error:
        # Only the standard streams and files that are already open have no name here: a disk is full, for example.
        _discard_output()
        _print(f"segue: cannot write the output: {error.strerror or error}; nothing or only a part of it was written")
        return Status.USAGE
    except Exception as error:  # noqa: BLE001 - the status of Python would be that of a finding
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in _EXTRAS:
            extra = _EXTRAS[package]
            _print(
                (_MISSING + _IN_A_CLONE + _WITHOUT_INSTALLING * (extra == "cli")).format(package=package, extra=extra)
            )
            return Status.USAGE
        import traceback

        traceback.print_exc()
        _print("segue: this is an error of segue itself; please report it with the lines above")
        return Status.INTERNAL


def _run_program() -> int:
    """Run a command and give its status; click raises its errors, because its own statuses have several meanings."""
    import click

    from segue.cli.program import program

    try:
        with program.opening(sys.argv[1:]) as context:
            program.invoke(context)
    except click.exceptions.Exit as ended:
        sys.stdout.flush()
        return ended.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        text = error.format_message()
        _print(f"segue: {text[:1].lower()}{text[1:]}" if text[1:2].islower() else f"segue: {text}")
        if isinstance(error, click.UsageError) and error.ctx is not None:
            _print(f"Try '{error.ctx.command_path} --help'.")
        return error.exit_code
    except SegueError as error:
        from segue.cli.wording import in_program_words

        _print(f"segue: {in_program_words(str(error))}")
        return Status.USAGE
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise
        _print(f"segue: {in_one_line(str(error.filename))}: {error.strerror}")
        return Status.USAGE
    sys.stdout.flush()  # a closed pipe is found here, not when Python exits
    return Status.SUCCESS


def _print(text: str) -> None:
    """Print a message; lines after its first are indented, so that a name with a line break is not another message."""
    text = text.replace("\n", "\n  ")
    with suppress(OSError):  # nothing can be reported if standard error is full or closed
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def _open_streams() -> None:
    """Open standard streams that are closed, and let no character be an error of a stream that is not UTF-8."""
    while True:  # the lowest free descriptor is used, so closed ones are opened in their order
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            break
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream = cast("TextIO | None", getattr(sys, name))
        if stream is None:
            mode = "r" if descriptor == 0 else "w"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", errors="replace", closefd=False))
        elif isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
        elif isinstance(stream, TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="surrogateescape" if descriptor == 0 else "replace")


def _discard_output() -> None:
    """Discard what is not written yet: Python would report the error again when it flushes the buffer at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _print(f"segue: {message}")


_AGAIN: Final = 0.01
"""Seconds until an interrupt is repeated: long enough to leave the finalizer."""


def _handle_unraisable(unraisable: UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that came while Python ran a finalizer.

    Python cannot raise an exception of a `__del__` method or of a weak reference's callback. It prints the traceback
    and goes on, so the program would not end. The modules for processes and pipes have such methods.
    """
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
    elif sys.platform == "win32":
        from threading import Timer

        Timer(_AGAIN, signal.raise_signal, (signal.SIGINT,)).start()
    else:
        # A signal of the system, because it also interrupts a read that waits for input.
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
