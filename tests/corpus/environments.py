"""Environments of engines: this one if it has the engine, otherwise one of its own, made when it is first needed."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from cli.running import ROOT

PACKAGES = {
    "ray": ["ray[data]==2.60.0"],
    "pyspark": ["pyspark==4.3.0", "pandas>=2.2"],  # Spark asks for pandas before it maps Arrow data
    "daft": ["daft==0.7.26"],
    "datasets": ["datasets==5.2.0"],
    "polars": ["polars==2.1.0"],
    "duckdb": ["duckdb==2.0.0"],
}
SEGUE = ["msgspec>=0.22", "click>=8.1", "rich>=13", "pyarrow>=16", "fsspec>=2024.2"]
"""What segue itself needs there; its source is on the path."""


def python_with(engine: str) -> str:
    """Give an interpreter that has an engine; skip the test if it cannot be installed."""
    if find_spec(engine) is not None:
        return sys.executable
    folder = ROOT / ".bench" / "engines" / engine
    folder.parent.mkdir(parents=True, exist_ok=True)
    (ROOT / ".bench" / ".gitignore").write_text("*\n", encoding="utf-8")
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = " ".join([*PACKAGES[engine], *SEGUE])
    with Lock(folder.with_suffix(".lock")):
        if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
            install = [
                str(python),
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                *PACKAGES[engine],
                *SEGUE,
            ]
            for step in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
                done = subprocess.run(step, capture_output=True, timeout=1200, check=False)
                if done.returncode:
                    pytest.skip(f"of {engine} (it cannot be installed)")
            stamp.write_text(wanted, encoding="utf-8")
    return str(python)


class Lock:
    """A folder as a lock: several processes of the tests may need the same environment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        end = time.monotonic() + 1500
        while True:
            try:
                self.path.mkdir()
            except FileExistsError:
                if time.monotonic() > end:
                    pytest.skip(f"of an engine (remove {self.path})")
                time.sleep(0.5)
            else:
                return

    def __exit__(self, *_: object) -> None:
        self.path.rmdir()
