"""The entry point of the `segue` program: exit status, error messages, and missing packages.

An error prints one sentence, without a traceback; `segue.cli.statuses` has the exit statuses. A closed pipe (`| head`)
ends the program quietly. Ctrl-C ends it with the status that shells expect, and without a traceback, whatever the
program is doing.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from threading import Timer
from typing import TYPE_CHECKING, Final

from segue.cli.statuses import Status
from segue.errors import SegueError, TornLine

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_MISSING: Final = 'segue: the package {package} is not installed; run: pip install "segue[{extra}]"'
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
    except KeyboardInterrupt:
        _print("Aborted!")
        return Status.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe. Python would report an error when it flushes the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.CLOSED_PIPE
    except Exception as error:  # noqa: BLE001 - the status of Python would be that of a finding
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in _EXTRAS:
            _print(_MISSING.format(package=package, extra=_EXTRAS[package]))
            return Status.USAGE
        traceback.print_exc()
        _print("segue: this is an error of segue itself; please report it with the lines above")
        return Status.INTERNAL


def _run_program() -> int:
    """Run a command and give its status; click raises its errors, because its own statuses have several meanings."""
    import click

    from segue.cli.program import program
    from segue.cli.wording import in_program_words

    try:
        with program.opening(sys.argv[1:]) as context:
            program.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SegueError as error:
        _print(f"segue: {in_program_words(str(error))}")
        return Status.USAGE
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise
        _print(f"segue: {error.filename}: {error.strerror}")
        return Status.USAGE
    sys.stdout.flush()  # a closed pipe is found here, not when Python exits
    return Status.SUCCESS


def _print(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


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
        Timer(_AGAIN, signal.raise_signal, (signal.SIGINT,)).start()
    else:
        # A signal of the system, because it also interrupts a read that waits for input.
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
