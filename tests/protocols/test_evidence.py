"""Every row that says what is refused has a grade, a source and a day; each row of families is about some model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from segue.models.catalogue import packaged_catalogue
from segue.models.evidence import GRADES
from segue.models.family import Family
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.models.weights import WEIGHTS
from segue.protocols.api import check
from segue.protocols.counterevidence import FIELD_ROWS, ROWS, Answered
from segue.protocols.kit.limits import Limit
from segue.protocols.registry import _FOLDERS

FAMILIES = [(name, row) for name, folder in _FOLDERS.items() for row in import_module(f"{folder}.rules").FAMILIES]
IDS = sorted({model.id for model in packaged_catalogue().models})


class Row(NamedTuple):
    """What a row has to have. `read` is the day of a family or provider; a limit and a reply name it in the source."""

    where: str
    grade: str
    source: str
    read: str | None


def rows_of(families: list[tuple[str, Family]], limits: list[tuple[str, Limit]], answered: list[Answered]) -> list[Row]:
    """Return the evidence of all rows of the registries."""
    rows = [Row(f"{name}: {row.pattern}", row.grade, row.source, row.read) for name, row in families]
    rows += [Row(f"{name}: {row.path}", row.grade, row.source, None) for name, row in limits]
    rows += [Row(f"{row.protocol}: {row.code}", row.grade, row.source, None) for row in answered]
    for provider in PROVIDERS.values():
        rows.append(Row(provider.name, "refused", provider.source, provider.read))
        rows += [Row(f"{provider.name}: {rule}", "refused", source, None) for rule, source in provider.stated.items()]
    return rows


def without_evidence(rows: list[Row]) -> list[str]:
    """Name the rows without a grade, without a source or without a day."""
    day = re.compile(r"20\d\d-[01]\d-[0-3]\d")
    return [
        row.where
        for row in rows
        if row.grade not in GRADES or len(row.source.strip()) < 5 or not (row.read is None or day.fullmatch(row.read))
    ]


def limits() -> list[tuple[str, Limit]]:
    found: list[tuple[str, Limit]] = []
    for name, folder in _FOLDERS.items():
        try:
            found += [(name, row) for row in import_module(f"{folder}.limits").LIMITS.rows]
        except ModuleNotFoundError:
            continue
    return found


ALL = rows_of([*FAMILIES, *(("weights", row) for row in WEIGHTS)], limits(), [*ROWS, *FIELD_ROWS])


def test_no_row_is_without_grade_source_and_day():
    assert len(ALL) > 500
    assert without_evidence(ALL) == []


FAMILY = Family(pattern="x", rules={"tools": False}, source="a source, 2026-11-18", read="2026-11-18")
PLANTED = {
    "a family without a source": rows_of([("x", replace(FAMILY, source=""))], [], []),
    "a family without a day": rows_of([("x", replace(FAMILY, read=""))], [], []),
    "a family of an unknown grade": rows_of([("x", replace(FAMILY, grade="sure"))], [], []),
    "a limit without a source": rows_of([], [("x", Limit("n", "", most=1))], []),
    "a reply without figures": rows_of([], [], [ROWS[0]._replace(source=" ")]),
}


@pytest.mark.parametrize("rows", PLANTED.values(), ids=PLANTED.keys())
def test_a_row_without_evidence_is_found(rows):
    assert len(without_evidence(rows)) == 1


# -- cases of families -------------------------------------------------------------------------------------------------

HI = {"role": "user", "content": "Answer in JSON."}
BASES: dict[str, dict[str, Any]] = {
    "openai-chat": {"messages": [HI]},
    "openai-responses": {"input": [HI]},
    "anthropic-messages": {"max_tokens": 4096, "messages": [HI]},
    "mistral-chat": {"messages": [HI]},
}
SAMPLES: dict[str, Any] = {
    "reasoning": {"effort": "medium"},
    "reasoning_effort": "medium",
    "web_search_options": {},
    "max_tokens": 400,
    "parallel_tool_calls": True,
    "thinking.type": "enabled",
    "output_config.effort": "high",
}
"""Values of keys that families refuse; other keys get a text."""


def refusing() -> Iterator[Any]:
    """Yield the keys of bodies that a family of the grade refused refuses, with the family."""
    for protocol, row in FAMILIES:
        if row.grade == "refused" and protocol in BASES:
            for key in sorted(row.rules.get("refused_extra", ())):
                if not key.startswith("-"):
                    yield pytest.param(protocol, row, key, id=f"{protocol} {row.pattern} {key}")


def sample(row: Family) -> str:
    """Return an id that a family is about."""
    extra = (
        "o1-mini",
        "gpt-5.2-chat-latest",
        "grok-4",
        "deepseek-reasoner",
        "llama-3.3-70b",
        "claude-3-haiku-20240307",
    )
    return next(one for one in (*extra, *IDS) if re.search(row.pattern, one, re.IGNORECASE))


@pytest.mark.parametrize(("protocol", "row", "key"), [*refusing()])
def test_a_key_that_a_family_refuses_is_named_and_the_body_without_it_is_not(protocol, row, key):
    path, _, value = key.partition("=")
    body: dict[str, Any] = {**BASES[protocol]}
    *outer, last = path.split(".")
    place = body
    for name in outer:
        place = place.setdefault(name, {})
    place[last] = value or SAMPLES.get(path, "x")
    model = Model(sample(row), row.providers[0] if row.providers else "any", protocol)
    keys = tuple(path.split("."))
    named = [one.path for one in check(body, protocol=protocol, model=model)]
    assert any(keys[: len(one)] == one for one in named if one), named
    plain = [one.path for one in check(BASES[protocol], protocol=protocol, model=model)]
    assert not any(one[:1] == keys[:1] for one in plain), plain


@pytest.mark.parametrize(("protocol", "row"), FAMILIES, ids=lambda one: getattr(one, "pattern", one))
def test_a_family_is_about_some_model(protocol, row):
    """A pattern that no id matches is a rule without a case."""
    assert any(re.search(row.pattern, one, re.IGNORECASE) for one in (*IDS, *OLDER)), (protocol, row.pattern)


OLDER = (
    *("o1-mini", "gpt-4-vision-preview", "gpt-4o-search-preview", "gpt-4o-audio-preview", "computer-use-preview"),
    *("claude-2.1", "claude-3-haiku-20240307", "claude-mythos-preview", "gpt-5.1-chat-latest", "gemma-3-27b-it"),
    *("qwq-32b", "mixtral-8x7b-instruct", "llama-guard-4-12b", "grok-code-fast-1", "o3-mini", "qwen3-8b"),
)
"""Models that were retired, or that the catalogue does not list."""
