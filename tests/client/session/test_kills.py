"""Writers that are killed while they save, again and again: no stored message is lost, and the file still opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="of forked writers (this system cannot fork)")
@pytest.mark.parametrize("kills", [50, pytest.param(1000, marks=pytest.mark.proof)])
def test_a_session_file_survives_killed_writers(tmp_path: Path, kills: int):
    program = Path(__file__).with_name("killing.py")
    command = [sys.executable, str(program), str(tmp_path), str(kills), "20261115"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept, _torn = map(int, done.stdout.split())
    assert kept > kills // 2  # four of five writers are killed after their first message at the earliest
