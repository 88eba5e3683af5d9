"""Check that no hot path became 10 % slower than at the base commit: runs `benchmarks/speed_guard.py`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

if __name__ == "__main__":
    sys.path.insert(0, str(BENCHMARKS))
    runpy.run_path(str(BENCHMARKS / "speed_guard.py"), run_name="__main__")
