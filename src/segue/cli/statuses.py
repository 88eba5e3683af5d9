"""The exit statuses of the program. Each has one meaning, so that a script can tell what happened.

Facts:
- A shell reports a program that a signal ended as 128 plus the number of the signal; 130 is SIGINT, 141 SIGPIPE.
                                                                                        (POSIX, shell command language)
- Python ends with 1 after an exception that nobody caught, which would look like a finding.
- 70 is the status for an internal error of a program.                                        (sysexits.h, EX_SOFTWARE)
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Status(IntEnum):
    """How the program ended."""

    SUCCESS = 0
    FOUND = 1
    USAGE = 2
    NO_KEY = 3
    FAILED = 4
    INTERNAL = 70
    INTERRUPTED = 130
    CLOSED_PIPE = 141


MEANINGS: Final = {
    Status.SUCCESS: "success; nothing was found",
    Status.FOUND: "`check` has findings, `convert` refused a conversion or a line, a request of `results` failed,"
    " or an answer to `ask` is not JSON",
    Status.USAGE: "a wrong option, an unknown model, or a file that cannot be read or written; the message names it",
    Status.NO_KEY: "there is no API key, or the provider refuses it",
    Status.FAILED: "the request failed, or the answer is incomplete",
    Status.INTERNAL: "an error of segue itself, with a traceback",
    Status.INTERRUPTED: "interrupted with Ctrl-C",
    Status.CLOSED_PIPE: "the reader of the output closed the pipe, as `head` does",
}
"""What each status means, for the documents."""
