"""Python programs with a framework: the one that runs the tests, or a virtual environment of the framework's own.

The environments lie in the folder that SEGUE_FRAMEWORKS names, one for each framework, by the names below.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import segue

ROOT = Path(__file__).parents[2]
SOURCES = Path(segue.__file__).parents[1]
VARIABLE = "SEGUE_FRAMEWORKS"


def is_installed(package: str) -> bool:
    """Whether a package can be imported here."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


@cache
def find_python(package: str) -> str | None:
    """Find a Python that has a package; None if there is none."""
    if is_installed(package):
        return sys.executable
    folder, place = os.environ.get(VARIABLE), package.replace(".", "/")
    for found in sorted(Path(folder).glob(f"*/lib/python*/site-packages/{place}")) if folder else []:
        packages = found.parents[len(place.split("/")) - 1]
        if (packages / "msgspec").exists():  # what segue itself needs
            return str(packages.parents[2] / "bin" / "python")
    return None


def run(package: str | None, *arguments: str) -> str:
    """Run Python with a framework, and give what it prints; skip the test if the framework is not installed."""
    python = sys.executable if package is None else find_python(package)
    if python is None:
        pytest.skip(f"with frameworks ({package} is not installed, and not in {VARIABLE})")
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=False, timeout=300, env=environment, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
