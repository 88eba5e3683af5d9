"""Budgets of rooms and vocabularies: what is above one, has none, or has one that is far too large, is named."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"

SOURCE = '''"""A module.

Two lines of text.
"""

import os  # an import


def f(
    x: int,
) -> int:
    """Return it."""
    # a comment
    text = """one
    two"""
    return x + len(text)
'''


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPTS / "check_budgets.py"))


def test_imports_docstrings_comments_and_blank_lines_are_not_code(script: dict[str, Any]):
    assert script["count_lines"](SOURCE) == 6


FOUND = {"code": {"client": 100, "histories/a": 300, "histories/b": 20}}
CASES = {
    "within": ({"code": {"client": 110, "histories/*": 350}}, ""),
    "above": ({"code": {"client": 99, "histories/*": 350}}, "code client is 100, above its budget of 99"),
    "none": ({"code": {"histories/*": 350}}, "code client is 100 and has no budget"),
    "a format above the common budget": (
        {"code": {"client": 100, "histories/*": 250}},
        "code histories/a is 300, above",
    ),
    "too loose": ({"code": {"client": 200, "histories/*": 350}}, "code client is 100, far below its budget of 200"),
    "of nothing": (
        {"code": {"client": 100, "gone": 5, "histories/*": 350}},
        "code gone has a budget and does not exist",
    ),
}


@pytest.mark.parametrize(("budgets", "fault"), CASES.values(), ids=CASES.keys())
def test_a_budget_is_compared(script: dict[str, Any], budgets: Any, fault: str):
    found = script["compare"](FOUND, budgets)
    assert len(found) == bool(fault)
    assert not fault or found[0].startswith(fault)


PAGE = """# How long?

<!-- begin: rules openai-chat -->
| a | table | that | a | script | writes |
<!-- end: rules openai-chat -->

<!-- schema: fields -->
and another one
<!-- /schema: fields -->

<!-- needs: mcp -->
Four words by people.
"""


def test_generated_parts_of_a_page_are_not_counted(script: dict[str, Any]):
    assert script["count_words"](PAGE) == 7


def test_words_above_their_budget_are_named(script: dict[str, Any], tmp_path: Path):
    (tmp_path / "docs" / "guides").mkdir(parents=True)
    for name in ("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/guides/new.md"):
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    found = {"words": script["measure_words"](tmp_path)}
    assert found == {"words": {"pages": 21, "contributing": 7}}
    budgets = {"words": {"pages": 21, "contributing": 7}}
    assert script["compare"](found, budgets) == []
    (tmp_path / "docs" / "guides" / "new.md").write_text(f"{PAGE} planted", encoding="utf-8")
    found = {"words": script["measure_words"](tmp_path)}
    assert script["compare"](found, budgets) == [
        "words pages is 22, above its budget of 21; make it smaller, or raise it in budgets.toml with the reason"
    ]


def test_the_documentation_has_at_most_60000_words(script: dict[str, Any]):
    assert script["measure_words"](script["ROOT"])["pages"] <= 60_000
