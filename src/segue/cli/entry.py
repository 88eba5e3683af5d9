"""The entry point of the `segue` program: exit status, error messages, and missing packages.

An error prints one sentence and exits with 2, without a traceback. A closed pipe (`| head`) ends the program quietly.
Ctrl-C ends it with the status that shells expect.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Final

from segue.errors import SegueError, TornLine

_MISSING: Final = 'segue: the package {package} is not installed; run: pip install "segue[{extra}]"'
_EXTRAS: Final = {
    "click": "cli",
    "rich": "cli",
    "httpx2": "client",
    "botocore": "bedrock",
    "starlette": "ui",
    "uvicorn": "ui",
}
"""Optional packages -> the extra that installs them."""


def main() -> None:
    """Run the program and exit with its status."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", TornLine)
    sys.exit(_run())


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
