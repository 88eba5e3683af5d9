"""Read a user's file of models and providers, JSON or TOML; errors name the path of the problem.

    [[providers]]
    name = "acme"
    protocol = "openai-chat"
    base_url = "https://llm.acme.example/v1"
    key_variables = ["ACME_API_KEY"]
    rules.openai-chat = { max_images = 4 }

    [[models]]
    id = "acme-large"
    provider = "acme"
    protocol = "openai-chat"
    reasoning = true

Field names are those of `Model` and `Provider`, in snake case or in camel case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, cast, final

import msgspec

from segue.errors import ModelError, SettingsError
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.overrides import override
from segue.models.provider import Provider
from segue.models.rules import Rules


@final
class CatalogueSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source of entries, and the date it was read."""

    name: str
    version: str
    read: str


@final
class CatalogueFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a catalogue file."""

    models: tuple[Model, ...] = ()
    sources: tuple[CatalogueSource, ...] = ()
    providers: tuple[Provider, ...] = ()


def parse_catalogue(data: bytes | str, name: str) -> CatalogueFile:
    """Parse a catalogue from JSON; `name` is used in error messages.

    Raises:
        ModelError: the data is not a catalogue; the message has the path and, for an unknown field, the closest name.
    """
    try:
        file = msgspec.convert(_check_fields(msgspec.json.decode(data), name), CatalogueFile)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ModelError(f"{name}: not a catalogue: {error}") from error
    for index, row in enumerate(file.providers):
        for protocol in {*row.rules, *row.dialect}:
            where = f"{name}: providers[{index}] ({row.name}), {protocol}"
            _check_overrides(row.rules.get(protocol, {}), row.dialect.get(protocol, {}), where=where)
    seen: set[str] = set()
    for index, model in enumerate(file.models):
        where = f"{name}: models[{index}] ({model.full_name()})"
        _check_overrides(model.rules, model.dialect, where=where)
        _check_overrides(model.flags, {}, where=where)
        if model.full_name().lower() in seen:
            raise ModelError(f"{name}: models[{index}]: {model.full_name()} is listed twice; remove one entry")
        seen.add(model.full_name().lower())
    if not file.models and not file.providers:
        raise ModelError(f"{name}: not a catalogue: it has neither `models` nor `providers`; add one of them")
    return file


def toml_as_json(data: bytes, name: str) -> bytes:
    """Convert TOML to JSON.

    Raises:
        ModelError: the data is not TOML.
    """
    import tomllib  # imported here, because most catalogues are JSON

    try:
        return msgspec.json.encode(tomllib.loads(data.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise ModelError(f"{name}: not a catalogue: {error}") from error


_ROW_DEFAULTS: Final[Mapping[str, object]] = {
    "base_url": None,
    "key_variables": [],
    "source": "a file of the user's own",
    "read": "",
}
"""Defaults for the fields of a provider in a file."""


def _check_fields(raw: object, name: str) -> object:
    """Accept field names in snake case and in camel case; refuse any other and suggest the closest one."""
    if not isinstance(raw, dict):
        return raw
    file = _rename_fields(cast("dict[str, object]", raw), CatalogueFile, name)
    for key, kind in (("models", Model), ("providers", Provider)):
        entries = file.get(key)
        if isinstance(entries, list):
            file[key] = [
                _rename_fields(cast("dict[str, object]", entry), kind, f"{name}: {key}[{index}]")
                if isinstance(entry, dict)
                else entry
                for index, entry in enumerate(cast("list[object]", entries))
            ]
    rows = file.get("providers")
    if isinstance(rows, list):
        file["providers"] = [
            _with_defaults(cast("dict[str, object]", row)) if isinstance(row, dict) else row
            for row in cast("list[object]", rows)
        ]
    return file


def _with_defaults(row: dict[str, object]) -> dict[str, object]:
    return {**_ROW_DEFAULTS, "title": row.get("name", ""), **row}


def _rename_fields(entry: dict[str, object], kind: type[msgspec.Struct], where: str) -> dict[str, object]:
    """Return an entry with the field names of its type in JSON."""
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    known = {**names, **{encoded: encoded for encoded in names.values()}}
    for key in entry:
        if key not in known:
            raise ModelError(f"{where}: there is no field {key!r}{_nearest_hint(key, known)}")
    return {known[key]: value for key, value in entry.items()}


def _nearest_hint(key: str, known: Iterable[str]) -> str:
    near = get_close_matches(key, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else f"; the fields are {', '.join(dict.fromkeys(known))}"


def _check_overrides(rules: Mapping[str, object], dialect: Mapping[str, object], *, where: str) -> None:
    try:
        override(Rules(), rules, where=where)
        override(Dialect(), dialect, where=where)
    except SettingsError as error:
        raise ModelError(f"{error}") from error
