"""The entry point of the `segue` program: exit status, error messages, and missing packages.

An error prints one sentence and exits with 2, without a traceback. A closed pipe (`| head`) ends the program quietly.
Ctrl-C ends it with the status that shells expect, and without a traceback, whatever the program is doing.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from threading import Timer
from typing import TYPE_CHECKING, Final

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
        from segue.cli.program import program

        program.main(prog_name="segue", standalone_mode=True)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        print(_MISSING.format(package=package, extra=_EXTRAS[package]), file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        # click handles it inside of a command; this one came while modules were imported.
        print("Aborted!", file=sys.stderr)  # noqa: T201
        return 1
    except SegueError as error:
        print(f"segue: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except BrokenPipeError:
        # The reader closed the pipe. Python would report an error when it flushes the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        print(f"segue: {error.filename}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"segue: {message}", file=sys.stderr)  # noqa: T201


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
