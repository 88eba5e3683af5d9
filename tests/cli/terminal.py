"""A terminal of its own for a program: typed at and read like a person would."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence

PROGRAM = (sys.executable, "-m", "segue")
NO_KEYS = {name: "" for name in os.environ if name.endswith(("_KEY", "_TOKEN"))}
"""An environment in which no provider has a key."""


class Terminal:
    """A program in a terminal of its own, typed at and read like a person would."""

    def __init__(
        self, *arguments: object, term: str = "dumb", columns: int = 80, program: Sequence[str] = PROGRAM
    ) -> None:
        self.master, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [*program, *map(str, arguments)]
        # Variables with a size would outweigh that of the terminal; pytest's workers have them.
        given = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env={**given, **NO_KEYS, "TERM": term}
        )
        os.close(inner)
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character

    def wait_for(self, pattern: str) -> str:
        """Read until something is shown; after ten minutes, also on a busy machine, it never will be."""
        end = time.monotonic() + 600
        while not re.search(pattern, self.seen, re.DOTALL):
            assert time.monotonic() < end, f"never saw {pattern!r} in {self.seen!r}"
            if select.select([self.master], [], [], 1)[0]:
                try:
                    self.seen += self._decoder.decode(os.read(self.master, 4096))
                except OSError:  # the program has ended
                    break
        assert re.search(pattern, self.seen, re.DOTALL), self.seen
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        os.close(self.master)
        return self.process.wait(timeout=60)
