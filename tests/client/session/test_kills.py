"""Writers that are killed while they save, `SEGUE_KILLS` times: no stored message is lost, and the file still opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("SEGUE_KILLS", "1000"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_session_file_survives_killed_writers(tmp_path: Path):
    program = Path(__file__).with_name("killing.py")
    command = [sys.executable, str(program), str(tmp_path), str(KILLS), "20261115"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept, _torn = map(int, done.stdout.split())
    assert kept > KILLS  # most writers wrote something before they were killed
