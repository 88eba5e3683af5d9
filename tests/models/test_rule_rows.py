"""Laws of rules: every row has its evidence, and a field of `Rules` is not an exception of one target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import segue
from segue.errors import SettingsError
from segue.models.catalogue import packaged_catalogue
from segue.models.evidence import GRADES, kind_of
from segue.models.family import Family
from segue.models.model import Model
from segue.models.provider import Provider
from segue.models.providers import PROVIDERS
from segue.models.rule import PLACES, Rule
from segue.models.rules import Rules
from segue.models.weights import WEIGHTS
from segue.protocols.api import check
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import PROTOCOLS, resolve_rules

DEFAULTS = Rules()
FOLDERS = [record.encode_request.__module__.rpartition(".")[0] for record in PROTOCOLS.values()]
NO_KIND = (
    "no source whose kind is known: quote the refusal, or name the documentation, the thread (`vllm #6862`),"
    " the version (`openai 3.49.0`) or `recorded traffic`"
)


class Row(NamedTuple):
    """One row, and the family that holds it; a row without evidence has that of its family."""

    where: str
    place: str
    rule: Rule
    family: Family | None = None

    def faults(self) -> Iterator[str]:
        """Name what the row lacks."""
        own = self.rule if self.rule.source or self.family is None else self.family
        if self.place not in PLACES:
            yield "a place that does not exist"
        if self.rule.grade not in GRADES:
            yield "no grade"
        if kind_of(own.source) is None:
            yield NO_KIND
        try:
            date.fromisoformat(own.read)
        except ValueError:
            yield "no date"


def rows_of(protocols: list[Protocol], providers: list[Provider], weights: tuple[Family, ...]) -> list[Row]:
    rows = [Row(one.name, place, rule) for one in protocols for place, rule in one.rules.rows.items()]
    families = [(one.name, family) for one in protocols for family in one.families]
    families += [("weights", family) for family in weights]
    for where, family in families:
        given = ((place, rule) for place, rule in family.rules.items() if isinstance(rule, Rule))
        rows += [Row(where, place, rule, family) for place, rule in given]
    for provider in providers:
        for protocol, rules in provider.rules.items():
            given = ((place, rule) for place, rule in rules.items() if isinstance(rule, Rule))
            rows += [Row(f"{provider.name} {protocol}", place, rule) for place, rule in given]
    return rows


def settings_of(
    protocols: list[Protocol], providers: list[Provider], weights: tuple[Family, ...]
) -> dict[str, set[str]]:
    """Return where each field of `Rules` is set: in a protocol, at a provider, in a family, in the catalogue."""
    places: dict[str, set[str]] = defaultdict(set)
    for one in protocols:
        for field in Rules.__struct_fields__:
            if getattr(one.rules, field) != getattr(DEFAULTS, field):
                places[field].add(one.name)
        for family in one.families:
            for field in family.rules:
                places[field].add(f"{one.name} {family.pattern} {family.providers}")
    for family in weights:
        for field in family.rules:
            places[field].add(f"weights {family.pattern}")
    for provider in providers:
        for protocol, rules in provider.rules.items():
            for field in rules:
                places[field].add(f"{provider.name} {protocol}")
    for model in packaged_catalogue().models:
        for field in (*model.rules, *model.flags):
            places[field].add("catalogue")
    return places


SHIPPED = (list(PROTOCOLS.values()), list(PROVIDERS.values()), WEIGHTS)


def test_every_row_has_a_grade_a_source_of_a_known_kind_and_a_date():
    rows = rows_of(*SHIPPED)
    assert len(rows) > 100
    assert {(row.where, row.place): faults for row in rows if (faults := [*row.faults()])} == {}


UNKNOWN_KINDS = {
    "Vercel AI Gateway, Claude Opus 4.5: effort low, medium or high, independent of the thinking budget",
    "the same; context editing of the 4 models is left to segue",
    "vLLM's parser of MiniMax M3, articles",
    "no source tells which of Google's tools Gemma has",
    "the same: no tools",
    "concluded from the check of the prefix",
    "the same of all three: maxTokens alone is accepted (the table of a public gateway, 2026-09)",
    "string_above_max_length of a text",
    "fireworks-ai: the required range of the parameter",
}
"""Sources that do not show their kind. A better source takes its row off this list; nothing is added to it."""


def test_every_family_and_limit_has_a_source_of_a_known_kind_and_a_date():
    limits = [import_module(f"{name}.limits").LIMITS for name in FOLDERS if find_spec(f"{name}.limits")]
    rows = [(one.source, limit.read) for limit in limits for one in limit.rows]
    families = [*WEIGHTS, *(family for one in PROTOCOLS.values() for family in one.families)]
    rows += [(family.source, family.read) for family in families]
    assert len(rows) > 300
    assert all(date.fromisoformat(read) >= date(2026, 11, 1) for _, read in rows)
    assert {source for source, _ in rows if kind_of(source) is None} == UNKNOWN_KINDS, NO_KIND


PLANTED = {
    "no source": (Rule("", "2026-11-18", most=1), NO_KIND),
    "a source without a kind": (Rule("somebody said so", "2026-11-18", most=1), NO_KIND),
    "no date": (Rule("Acme documentation: chat", "", most=1), "no date"),
    "a date in words": (Rule("Acme documentation: chat", "last week", most=1), "no date"),
}


@pytest.mark.parametrize(("rule", "fault"), PLANTED.values(), ids=PLANTED.keys())
def test_the_law_finds_a_row_without_its_evidence(rule: Rule, fault: str):
    planted = Provider(
        name="acme",
        title="Acme",
        protocol="openai-chat",
        base_url=None,
        key_variables=(),
        rules={"openai-chat": {"temperature": rule}},
        source="Acme documentation",
        read="2026-11-18",
    )
    assert [fault for row in rows_of([], [planted], ()) for fault in row.faults()] == [fault]
    family = Family(pattern="^", rules={"temperature": rule}, source="Acme documentation", read="2026-11-18")
    found = [fault for row in rows_of([], [], (family,)) for fault in row.faults()]
    assert found == ([fault] if rule.source else []), "a row without a source has the evidence of its family"


def test_no_field_of_the_rules_is_set_in_one_row_only():
    places = settings_of(*SHIPPED)
    assert {field: places[field] for field in Rules.__struct_fields__ if len(places[field]) < 2} == {}
    assert PLACES.isdisjoint(Rules.__struct_fields__)


def test_the_law_finds_a_field_that_one_row_sets():
    family = Family(pattern="^", rules={"tools": False}, source="a test", read="2026-11-18")
    assert len(settings_of([], [], (family,))["first_user"]) < 2


BOUNDED = {
    *("temperature", "top_p", "seed", "max_tokens", "stop", "stop_bytes", "session_id", "user_id", "files", "pages"),
    *(
        "unstreamed_max_tokens",
        "request_media",
        "media_bytes",
        "image_bytes",
        "document_bytes",
        "image_edge",
        "large_images",
        "strict_tools",
    ),
    *("strict_depth", "strict_properties", "strict_values", "strict_optional", "strict_unions", "compaction"),
}
LISTED = {
    *("cache_mark_places", "cache_mark_beside", "root_keywords", "schema_keywords", "strict_keywords"),
    *("schema_formats", "strict_formats", "schema_faults", "resumable_stops", "content_parts", "system_fields"),
    *("thinking_level", "needed_fields", "window_field", "body_protocol"),
}
MATCHED = {"property_names", "user_id"}


def misshapen(place: str, rule: Rule) -> set[str]:
    """Name what a row has and its place does not read, or lacks and its place needs."""
    has_bounds = rule.least is not None or rule.most is not None
    found = {"bounds"} if has_bounds != (place in BOUNDED) else set[str]()
    found |= {"values"} if bool(rule.values) != (place in LISTED) else set()
    return found | ({"pattern"} if rule.pattern is not None and place not in MATCHED else set())


def test_a_row_has_what_its_place_reads():
    found = [(row.where, row.place, misshapen(row.place, row.rule)) for row in rows_of(*SHIPPED)]
    assert [one for one in found if one[2]] == []
    assert misshapen("stop", Rule(values=frozenset({"a"}))) == {"bounds", "values"}
    assert misshapen("blank_stop", Rule(most=1)) == {"bounds"}
    assert misshapen("stop", Rule(most=1, pattern="x")) == {"pattern"}


def test_every_place_is_read_outside_of_the_tables():
    """What is read by a check, or only by projection, is in `test_capabilities`."""
    source = Path(segue.__file__).parent
    tables = {"rules.py", "rule.py", "first_party.py", "third_party.py", "chinese_labs.py", "openai_families.py"}
    code = "".join(path.read_text("utf-8") for path in source.rglob("*.py") if path.name not in tables)
    assert {place for place in PLACES if f'"{place}"' not in code} == set()


# -- how rows are read -------------------------------------------------------------------------------------------------


def test_a_later_row_replaces_an_earlier_one_and_none_removes_it():
    model = Model("m", "mine", "openai-chat", rules={"temperature": {"most": 1.5}, "stop": None})
    rules = resolve_rules(model)
    assert rules.rows["temperature"] == Rule(most=1.5)
    assert rules.most("stop") == 0
    assert not rules.has("stop")
    assert resolve_rules(model, {"temperature": Rule(most=1)}).rows["temperature"] == Rule(most=1)


@pytest.mark.parametrize("value", [1, {"mots": 1}, {"most": "much"}, [1]])
def test_a_row_that_cannot_be_read_is_an_error_that_names_its_place(value: object):
    with pytest.raises(SettingsError, match="the caller: rule 'temperature' cannot be"):
        resolve_rules("gpt-4o", {"temperature": value})
    with pytest.raises(SettingsError, match=r"there is no rule 'temperatur'; did you mean temperature"):
        resolve_rules("gpt-4o", {"temperatur": value})


@pytest.mark.parametrize("grade", GRADES)
def test_only_a_strict_check_follows_a_row_that_is_not_known_to_be_refused(grade, monkeypatch):
    record = PROTOCOLS["openai-chat"]
    row = Rule("Acme documentation: chat", "2026-11-18", most=0.5, grade=grade)
    monkeypatch.setitem(record.rules.rows, "temperature", row)
    model = Model("m", f"nobody-{grade}", "openai-chat", max_tokens=1000)
    body = {"model": "m", "temperature": 1, "messages": [{"role": "user", "content": "Hi"}]}
    found = [one.grade for one in check(body, protocol="openai-chat", model=model, strict=True)]
    assert len(check(body, protocol="openai-chat", model=model)) == (grade == "refused")
    assert found == ["refused" if grade == "refused" else "unsure"]
    request = segue.prepare("Hi", model, options=segue.Options(temperature=1))
    assert request.body["temperature"] == (0.5 if grade == "refused" else 1)
