"""Starts the inspector as people do, and ends it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from segue.histories.registry import FORMATS

_PLACES = {
    variable.partition("/")[0]
    for record in FORMATS.values()
    if record.place is not None
    for place in (record.place, *record.place.others)
    for variable in place.variables
}
"""Variables with the folders of agents: without them, the list of sessions is that of `home`."""


@contextmanager
def inspector(*arguments: object, home: Path | None = None) -> Generator[str]:
    """Run `segue ui` on a free port and give the page's address; `home` has the sessions of agents, by default none."""
    command = [sys.executable, "-m", "segue", "ui", "--no-browser", *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if name not in _PLACES}
    env["HOME"] = str(home or Path(__file__).parent / "nobody")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found, process.stderr.read() if process.stderr else ""
            yield found.group()
        finally:
            process.terminate()
            process.communicate(timeout=60)
