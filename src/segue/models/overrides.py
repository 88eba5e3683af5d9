"""Override single fields of `Rules` or `Dialect` by their names, and rows by their places, with every value checked.

Overrides come from rows of providers, families of models, entries of the catalogue, files of the user's own and
callers. All of them are read here, so a mistake has the same error wherever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final, TypeVar, get_type_hints

import msgspec

from segue.conversation.context import Options
from segue.errors import SettingsError
from segue.models.dialect import Dialect
from segue.models.rule import PLACES, Rule
from segue.models.rules import Rules

Settings = TypeVar("Settings", Rules, Dialect)

_FIELD_LABELS: Final[Mapping[type, str]] = {Rules: "rule", Dialect: "dialect field"}
_OPTION_RULES: Final = frozenset(
    {"refused_options", "refused_with_thinking", "refused_unless_off", "exclusive_options"}
)
"""Rules that name fields of `Options`."""
_CUMULATIVE: Final = frozenset({"refused_options", "refused_extra", "added_fields"})
"""Rules whose overrides add names to the set, or remove them with a leading `-`."""


def override(settings: Settings, overrides: Mapping[str, object], *, where: str) -> Settings:
    """Return settings with some fields replaced; `where` names the place of the overrides in error messages.

    Raises:
        SettingsError: a field does not exist, or cannot have this value.
    """
    if not overrides:
        return settings
    types, label = _field_types(type(settings)), _FIELD_LABELS[type(settings)]
    values: dict[str, object] = {}
    for key, value in overrides.items():
        if key not in types:
            raise _unknown_field(key, types, f"{where}: there is no {label} {key!r}")
        try:
            # In stored JSON a set or a tuple is a list; this converts it to the type of the field.
            values[key] = msgspec.convert(value, types[key])
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: {label} {key!r} cannot be {value!r}: {error}", key=key) from error
        if key in _OPTION_RULES:
            _check_options(msgspec.convert(value, frozenset[str]), f"{where}: {label} {key!r}")
        if key in _CUMULATIVE:
            values[key] = _add_or_remove(getattr(settings, key), msgspec.convert(value, frozenset[str]))
    if isinstance(settings, Rules) and not PLACES.isdisjoint(values):
        rows = {**settings.rows, **{place: values.pop(place) for place in PLACES & values.keys()}}
        values["rows"] = {place: row for place, row in rows.items() if row is not None}
    return msgspec.structs.replace(settings, **values)


@cache
def _field_types(kind: type[Rules | Dialect]) -> Mapping[str, object]:
    types = get_type_hints(kind)
    return {**types, **dict.fromkeys(PLACES, Rule | None)} if kind is Rules else types


def _add_or_remove(refused: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    removed = {name[1:] for name in names if name.startswith("-")}
    return (refused | {name for name in names if not name.startswith("-")}) - removed


def _check_options(names: frozenset[str], place: str) -> None:
    for name in sorted(names):
        if name.removeprefix("-") not in Options.__struct_fields__:
            raise _unknown_field(
                name, Options.__struct_fields__, f"{place} names an option {name!r} that does not exist"
            )


def _unknown_field(key: str, known: Iterable[str], message: str) -> SettingsError:
    near = get_close_matches(key, list(known), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; docs/rules.md lists them"
    return SettingsError(message + hint, key=key, suggestions=near)
