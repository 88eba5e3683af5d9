"""The stress run works: a small one, so that the large one means something when it is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="limits of open files are asked for as Unix has them")
STRESS = Path(__file__).parents[2] / "scripts" / "stress.py"


def test_a_small_stress_run_finds_no_error():
    command = [sys.executable, str(STRESS), "--streams", "96", "--clients", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "96 streams over 3 clients" in done.stdout
    assert "'aborted': 24" in done.stdout
    assert "'error': 12" in done.stdout
