"""The seven laws of formats, on every registered format."""

from __future__ import annotations

import pytest

from segue.histories.registry import FORMATS
from segue.testing import format_cases

CASES = [(name, case) for name in FORMATS for case in format_cases(FORMATS[name])]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[f"{name}: {case}" for name, case in CASES])
def test_law(case):
    case()
