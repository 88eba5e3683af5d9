"""`--merge-cases`: every row of a table runs, a failure names its row, and rows with a fixture or a mark stay apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CONFTEST = """
import pytest
from merging import merge, run_rows

@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    yield
    merge(metafunc)

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return run_rows(pyfuncitem) or None
"""
TABLES = """
import pytest

@pytest.mark.parametrize("number", range(100))
def test_numbers(number):
    print(f"<{number}>")
    assert number not in (3, 7, 50)

@pytest.mark.parametrize("other", [1, 2])
@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.skip(reason="of two"))])
def test_marked_rows(number, other):
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_fixture(number, tmp_path):
    (tmp_path / "new").mkdir()

@pytest.mark.parametrize("number", [1, 2])
def test_skipped_inside(number):
    if number == 2:
        pytest.skip("of two")

@pytest.mark.skipif(True, reason="always")
@pytest.mark.parametrize("number", [1, 2])
def test_skipped_table(number):
    assert False
"""


def test_rows_run_together_and_failures_name_them(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_tables.py").write_text(TABLES)
    command = [sys.executable, "-m", "pytest", "-v", "-rP", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    shown = done.stdout
    assert all(f"<{number}>" in shown for number in range(100)), shown
    assert "in test_tables.py::test_numbers[3]" in shown
    assert "in test_tables.py::test_numbers[7]" in shown
    assert "2 of 40 rows failed" in shown
    assert "in test_tables.py::test_numbers[50]" in shown
    assert "test_numbers[80 and 19 more] PASSED" in shown
    assert "test_marked_rows[1-1 and 1 more] PASSED" in shown
    assert "test_fixture[2] PASSED" in shown
    assert "test_skipped_inside[2] SKIPPED" in shown
    assert "test_skipped_table[1 and 1 more] SKIPPED" in shown
    assert "2 failed, 5 passed, 4 skipped" in shown
