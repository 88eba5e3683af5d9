"""The stress run finds nothing: a small one always, ten thousand streams in `make proof`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="of many open files (no resource limits)")
STRESS = Path(__file__).parents[2] / "scripts" / "stress.py"


# Multiples of 48: each of six wires has each of eight outcomes equally often.
@pytest.mark.parametrize(("streams", "clients"), [(96, 3), pytest.param(10_032, 10, marks=pytest.mark.proof)])
def test_a_stress_run_finds_no_error(streams: int, clients: int):
    command = [sys.executable, str(STRESS), "--streams", str(streams), "--clients", str(clients)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "open files, and the system allows" in done.stderr:
        pytest.skip(f"of {streams:,} streams at once (too few open files allowed)")
    assert done.returncode == 0, done.stderr
    assert f"{streams:,} streams over {clients} clients" in done.stdout
    assert f"'aborted': {streams // 4}" in done.stdout
    assert f"'error': {streams // 8}" in done.stdout
