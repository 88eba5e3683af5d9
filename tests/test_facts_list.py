"""`make facts`: the facts that rules rest on, and what another version of an SDK changed."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return runpy.run_path(str(SCRIPTS / "list_facts.py"))
    finally:
        sys.path.remove(str(SCRIPTS))


def test_finds_rows_and_dated_texts(script: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        '"""A rule. (thread #1, 2025-01-02; read 2026-03-04)"""\n'
        "# The version 2023-06-01 is no fact.\n"
        'Row(source="one thread", read="2026-01-01")\n'
        'Row(source="one thread; a recording", read="2026-02-02")\n'
    )
    found = [(fact.read, fact.is_row, fact.sources()) for fact in script["find_facts"](tmp_path)]
    assert found == [("2026-01-01", True, 1), ("2026-02-02", True, 2), ("2026-03-04", False, 2)]


def test_every_row_of_a_family_is_found(script: dict[str, Any]) -> None:
    rows = [fact for fact in script["find_facts"]() if fact.is_row]
    assert any("openai_chat/rules.py" in fact.place for fact in rows)
    assert len(rows) > 90


def test_names_what_another_version_changed(script: dict[str, Any]) -> None:
    old = {"A": {"fields": {"x": "string", "gone": "string", "kind": {"enum": ["a", "b"]}}}, "Old": {"fields": {}}}
    new = {
        "A": {"fields": {"x": "number", "y": "string", "kind": {"enum": ["b", "c"]}}},
        "New": {"fields": {"z": "any"}},
    }
    assert list(script["compare"](old, new)) == [
        "gone: A.gone",
        "changed: A.kind (+c, -a)",
        "changed: A.x",
        "new: A.y",
        "new: New (z)",
        "gone: Old",
    ]


def test_what_nobody_classified_fails_and_is_named(script: dict[str, Any]) -> None:
    known = {"Known": "looked at", r"^model: openai/gpt-known$": "looked at"}
    seen = ["request: new: Known.field", "request: gone: Other", "request: changed: A.x", "model: openai/gpt-known"]
    new = [
        "request: new: A.field",
        "reply: changed: A.stop_reason +paused",
        "reply: new: TaskEvent (id)",
        "model: openai/gpt-99",
    ]
    given = [line if "+" not in line else "reply: changed: A.stop_reason (+paused, +Known, -old)" for line in new]
    assert script["find_unclassified"]([*seen, *given], known) == new
    script["fail_on"]([])
    with pytest.raises(SystemExit, match=r"A\.field"):
        script["fail_on"](new)


def test_models_that_only_an_sdk_names_are_found(script: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "openai" / "types" / "shared" / "chat_model.py"
    file.parent.mkdir(parents=True)
    file.write_text('__all__ = ["ChatModel"]\nChatModel = Literal["gpt-4o", "no-such-family-7"]\n')
    assert list(script["find_new_models"](tmp_path)) == ["model: openai/no-such-family-7"]


def test_every_classification_is_a_pattern_with_a_decision(script: dict[str, Any]) -> None:
    for pattern, decision in script["CLASSIFIED"].items():
        re.compile(pattern)
        assert len(decision) > 10


@pytest.mark.proof  # it imports every SDK twice
def test_the_installed_sdks_do_not_differ_from_themselves(script: dict[str, Any], tmp_path: Path) -> None:
    assert script["types_of"](tmp_path) == script["read_types"]()
