"""Every field of a protocol's rules has a source of a known kind, and a day, as data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from importlib import import_module

import pytest

from segue.models.evidence import kind_of
from segue.models.rules import Rules
from segue.protocols.registry import PROTOCOLS, find_folder

DEFAULTS = Rules()


def without_source(rules: Rules, sources: Mapping[str, str]) -> list[str]:
    """Name the fields that are set and have no source of a known kind, and sources of fields that are not set."""
    fields = {name for name in Rules.__struct_fields__ if name != "rows"}
    given = {name for name in fields if getattr(rules, name) != getattr(DEFAULTS, name)}
    unsourced = {name for name in given if kind_of(sources.get(name, "")) is None}
    return sorted(unsourced | (sources.keys() - fields))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_field_of_a_protocols_rules_has_a_source_and_a_day(protocol):
    rules = import_module(f"{find_folder(protocol)}.rules")
    found = without_source(rules.RULES, rules.SOURCES)
    assert found == [], "name in `SOURCES` the documentation, the thread, the version or the recording that says so"
    assert date.fromisoformat(rules.READ) >= date(2026, 11, 1)


def test_a_field_without_a_source_is_found():
    rules = Rules(max_tools=3, tools=False)
    assert without_source(rules, {"max_tools": "Acme documentation: tools"}) == ["tools"]
    assert without_source(rules, {"max_tools": "somebody", "tools": "Acme API"}) == ["max_tools"]
    assert without_source(Rules(), {"maximum": "Acme API"}) == ["maximum"]
