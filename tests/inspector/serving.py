"""Starts the inspector as people do, and ends it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def inspector(*arguments: object) -> Generator[str]:
    """Run `segue ui` on a free port and give the page's address."""
    command = [sys.executable, "-m", "segue", "ui", "--no-browser", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found, process.stderr.read() if process.stderr else ""
            yield found.group()
        finally:
            process.terminate()
            process.communicate(timeout=60)
