"""Which rule refuses a body: its name, the row that holds it, its source and its day.

A check reads the resolved rules of an endpoint, so what it finds does not name the row that it comes from. The row is
found by leaving out one rule after another: without the rule, the finding is gone. That takes a check for each rule, so
it is done for requests that the emulator refuses, and by tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.models.evidence import Grade
from segue.models.providers import find_row
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.protocols.api import check_for
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.limits import Limits
from segue.protocols.kit.request_fields import source_of
from segue.protocols.registry import families_of, find_folder, get_protocol

_DEFAULTS: Final = Rules()
_SETS: Final = ("refused_options", "refused_extra", "refused_fields", "refused_tool_types", "refused_roles")
"""Fields that list what is refused: each item is one rule."""
_LONGEST: Final = 60
"""Characters of a pattern that are shown."""
Body = Mapping[str, object]


@final
class Cause(NamedTuple):
    """A rule that refuses something: `row` names the row that holds it; `read` is the day its source was read."""

    rule: str
    row: str
    source: str
    read: str

    def describe(self) -> str:
        """Describe the rule in one line."""
        day = f", {self.read}" if self.read else ""
        return f"{self.rule} of {self.row} ({self.source}{day})"


@final
class RuleRow(NamedTuple):
    """A row that sets rules of an endpoint, with its evidence; a later row wins."""

    name: str
    rules: Mapping[str, object]
    sources: Mapping[str, str]
    source: str
    read: str
    grade: Grade = "refused"

    def cause(self, rule: str, name: str) -> Cause:
        """Return the cause that a rule of this row is; `name` is the field or the place."""
        held = self.rules.get(name)
        if isinstance(held, Rule) and held.source:
            return Cause(rule, self.name, held.source, held.read)
        return Cause(rule, self.name, self.sources.get(name, self.source), self.read)


def rows_of(endpoint: Endpoint) -> Iterator[RuleRow]:
    """Yield the rows that set rules of an endpoint, the first one first."""
    model = endpoint.model
    entry, provider = get_protocol(model.protocol), find_row(model.provider, model.base_url)
    sources, read = _find_sources(model.protocol)
    fields = {name: getattr(entry.rules, name) for name in Rules.__struct_fields__ if name != "rows"}
    given = {name: value for name, value in fields.items() if value != getattr(_DEFAULTS, name)}
    yield RuleRow(f"the protocol {entry.name}", {**given, **entry.rules.rows}, sources, "its rules", read)
    if provider is not None:
        rules = provider.rules.get(model.protocol, {})
        yield RuleRow(f"the provider {provider.name}", rules, {}, provider.source, provider.read)
        flags = {name.partition("=")[0]: source for name, source in provider.stated.items()}
        followed = {name: value for name, value in model.flags.items() if name in flags}
        yield RuleRow(f"the entry of {model.full_name()}", followed, flags, "", provider.read)
    for family in families_of(model):
        pattern = family.pattern if len(family.pattern) <= _LONGEST else f"{family.pattern[:_LONGEST]}..."
        where = f"the family {pattern}"
        yield RuleRow(where, family.rules, {}, family.source, family.read, family.grade)
    yield RuleRow(f"the model {model.full_name()}", model.rules, {}, "its entry", "")


def find_limits(protocol: str) -> Limits:
    """Return the limits of single values of a protocol; none for protocols that have no file of them."""
    folder = find_folder(protocol)
    if folder is None or find_spec(f"{folder}.limits") is None:
        return Limits()
    return import_module(f"{folder}.limits").LIMITS


def _find_sources(protocol: str) -> tuple[Mapping[str, str], str]:
    folder = find_folder(protocol)
    if folder is None:
        return {}, ""
    rules = import_module(f"{folder}.rules")
    return rules.SOURCES, rules.READ


def find_cause(violation: Violation, body: Body, endpoint: Endpoint) -> Cause:
    """Find the rule that a violation comes from; what no row holds comes from the check of the protocol itself."""
    return (
        _find_limit(violation, body, endpoint)
        or _find_rule(violation, body, endpoint)
        or _find_own(violation, body, endpoint)
        or Cause(violation.code, f"the check of {endpoint.model.protocol}", "its file names the source", "")
    )


def is_refused_by(violation: Violation, body: Body, endpoint: Endpoint) -> bool:
    """Whether an endpoint finds the same fault in the same place."""
    return any((one.code, one.path) == (violation.code, violation.path) for one in check_for(body, endpoint))


def _find_limit(violation: Violation, body: Body, endpoint: Endpoint) -> Cause | None:
    limits = find_limits(endpoint.model.protocol)
    for row in limits.rows:
        for found in Limits((row,)).check(body, endpoint):
            if (found.code, found.path) == (violation.code, violation.path):
                return Cause(row.path, f"the limits of {endpoint.model.protocol}", row.source, limits.read)
    return None


def _find_rule(violation: Violation, body: Body, endpoint: Endpoint) -> Cause | None:
    rows = list(rows_of(endpoint))[::-1]
    for name, item, rules in without_one(endpoint.rules):
        if not is_refused_by(violation, body, replace(endpoint, rules=rules)):
            row = next((row for row in rows if _sets(row, name, item)), None)
            if row is not None:
                cause = row.cause(f"{name}={item}" if item else name, name)
                is_listed = name == "body_fields"
                return (
                    cause._replace(source=f"{source_of(endpoint.model.protocol)}; {cause.source}")
                    if is_listed
                    else cause
                )
    return None


def _sets(row: RuleRow, name: str, item: str) -> bool:
    held = row.rules.get(name)
    if held is None or (isinstance(held, Rule) and row.grade != "refused"):
        return False
    return not item or item in cast("list[str]", held)


def without_one(rules: Rules) -> Iterator[tuple[str, str, Rules]]:
    """Yield rules without one of them: its name, the item of a list of refusals, and the others."""
    for place in rules.rows:
        yield place, "", replace(rules, rows={other: row for other, row in rules.rows.items() if other != place})
    for name in Rules.__struct_fields__:
        held, default = getattr(rules, name), getattr(_DEFAULTS, name)
        if name == "rows" or held == default:
            continue
        if name in _SETS:
            for item in sorted(cast("frozenset[str]", held)):
                yield name, item, replace(rules, **{name: held - {item}})
        else:
            yield name, "", replace(rules, **{name: default})


def _find_own(violation: Violation, body: Body, endpoint: Endpoint) -> Cause | None:
    """Find a fault that is one of the model's own abilities: what it reads, and how much it writes."""
    model = endpoint.model
    for name, able in (
        ("input", replace(model, input=("text", "image", "audio", "video", "document"))),
        ("max_tokens", replace(model, max_tokens=0)),
    ):
        if not is_refused_by(violation, body, replace(endpoint, model=able)):
            return Cause(name, f"the model {model.full_name()}", "its entry", "")
    return None
