"""The registry of protocols, and the resolved rules and dialect of one target.

To add a protocol to segue, add one folder and one line of `_FOLDERS`. A package adds a protocol with an entry point of
the group `segue.protocols`, a program with `register_protocol`.

Rules and dialect are resolved here from five sources: the protocol < the provider < the family of models < the model <
the caller. Each overrides single fields of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from typing import Final, Literal, TypeVar, cast, get_args

import msgspec

from segue.errors import SettingsError, UnknownProtocol
from segue.foundation.registry import Registry
from segue.models.catalogue import get_model
from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model import Model
from segue.models.overrides import Settings, override
from segue.models.provider import Provider
from segue.models.providers import PROVIDERS, find_row
from segue.models.rule import PLACES, MediaPlace, OptionPlace, SchemaPlace, is_sure
from segue.models.rules import Rules
from segue.models.weights import WEIGHTS
from segue.protocols.kit.batch_form import BatchForm
from segue.protocols.kit.clues import Clues
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.routing import Route

_FOLDERS: Final[Mapping[str, str]] = {
    "anthropic-messages": "segue.protocols.anthropic_messages",
    "openai-chat": "segue.protocols.openai_chat",
    "openai-responses": "segue.protocols.openai_responses",
    "google-genai": "segue.protocols.google_genai",
    "bedrock-converse": "segue.protocols.bedrock_converse",
    "mistral-chat": "segue.protocols.mistral_chat",
    "ollama-chat": "segue.protocols.ollama_chat",
    "vscode-lm": "segue.protocols.vscode_lm",
    "plain-text": "segue.protocols.plain_text",
    "cohere-chat": "segue.protocols.cohere_chat",
    "google-interactions": "segue.protocols.google_interactions",
}
"""Segue's own protocols, in the order of tables and tests; each folder is imported when its record is first needed."""

DEFAULT_PROTOCOL: Final = "openai-chat"
"""The protocol that most providers speak: for errors, and for models, where nothing names another one."""


def _check_example(record: Protocol) -> None:
    if record.example.protocol != record.name:
        raise SettingsError(
            f"register_protocol(): the example of {record.name!r} is a model of {record.example.protocol!r}; "
            f"write Model(..., protocol={record.name!r})",
            key="example",
        )


PROTOCOLS: Final = Registry(
    "protocol",
    Protocol,
    _FOLDERS,
    error=UnknownProtocol,
    title=lambda record: record.documentation.title,
    check=_check_example,
)
"""All protocols by name, in the order of tables and tests."""


def register_protocol(record: Protocol) -> None:
    """Register a protocol under its name. Registering an equal record again changes nothing.

    Raises:
        SettingsError: another protocol has this name already, or the record has a value that cannot be used.
    """
    PROTOCOLS.register(record)


def protocol_names() -> tuple[str, ...]:
    """List all protocols by name: segue's own, registered ones, those of installed packages. Loads none of them."""
    return PROTOCOLS.names()


def find_protocol(name: str) -> Protocol | None:
    """Find a protocol by name; None if there is none.

    Raises:
        UnknownProtocol: an installed package declares the name and cannot be loaded; names the package.
    """
    return PROTOCOLS.records.get(name) or PROTOCOLS.find(name)


def get_protocol(name: str) -> Protocol:
    """Get a protocol by name. Its folder, or the package that declares it, is imported on first use.

    Raises:
        UnknownProtocol: no protocol has this name (the error suggests similar names), or it cannot be loaded.
    """
    return PROTOCOLS.records.get(name) or PROTOCOLS.get_record(name)  # asked often


def all_protocols() -> list[Protocol]:
    """Load every protocol, in the order of `protocol_names`.

    A protocol of a package that cannot be loaded causes a warning and is left out.
    """
    return list(PROTOCOLS.each())


def all_clues() -> dict[str, Clues]:
    """Return the clues of each protocol by name; of segue's own protocols only the clues are imported.

    A protocol of a package that cannot be loaded is left out; `get_protocol` of its name raises the error.
    """
    return _all_parts("clues", Clues())


def all_routes() -> dict[str, tuple[Route, ...]]:
    """Return the endpoints of each protocol by name; of segue's own protocols only the routes are imported."""
    return _all_parts("routes", ())


def all_batch_forms() -> dict[str, tuple[BatchForm, ...]]:
    """Return the forms of batch files of each protocol by name; of segue's own protocols only these are imported."""
    return _all_parts("batch_forms", ())


def find_folder(name: str) -> str | None:
    """Return the package of one of segue's own protocols; None for a protocol of others."""
    return _FOLDERS.get(name)


_Part = TypeVar("_Part")


def _all_parts(part: str, none: _Part) -> dict[str, _Part]:
    """Return one part of every record: of a folder the module of this name alone, or `none` if it has none."""
    parts: dict[str, _Part] = {}
    for name in protocol_names():
        if name in _FOLDERS:
            parts[name] = _part_in(f"{_FOLDERS[name]}.{part}", none)
        else:
            with suppress(UnknownProtocol):
                parts[name] = cast("_Part", getattr(get_protocol(name), part))
    return parts


def _part_in(module: str, none: _Part) -> _Part:
    try:
        return cast("_Part", getattr(import_module(module), module.rpartition(".")[2].upper()))
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return none


def registered_count() -> int:
    """Count the records that others added. The count changes with each, so it can be the cache key of their tables."""
    return PROTOCOLS.added


def resolve_rules(
    model: Model | str,
    overrides: Mapping[str, object] | None = None,
    *,
    cautious: bool = False,
    families: Literal["all", "unlimited", "none"] | None = None,
) -> Rules:
    """Resolve the rules of a target: the protocol's rules with all overrides, the caller's last.

    `cautious` also applies what is not known to be refused: rows of another grade, and flags of the catalogue.
    `families` says which rules of families apply: all, those that refuse nothing a caller asks for, or none. A model
    that is guessed to belong to a family (`Model.guessed_from`) has the second, unless the endpoint is cautious.

    Raises:
        UnknownProtocol: the model names a protocol that is not registered.
        SettingsError: an override names a rule that does not exist, or a value it cannot have.
    """
    model = model if isinstance(model, Model) else get_model(model)
    flags = _encode_overrides(_flags_of(model, cautious=cautious)) if model.flags else b""
    chosen = families or ("unlimited" if model.guessed_from and not cautious else "all")
    find = partial(_rules_of, flags=flags or b"", cautious=cautious, families=chosen)
    return _resolve(find, model, model.rules, overrides)


def _flags_of(model: Model, *, cautious: bool) -> Mapping[str, object]:
    """Return the flags of a catalogue entry that are followed: all, or those that the provider confirms."""
    if cautious:
        return model.flags
    row = find_row(model.provider, model.base_url)
    stated: Mapping[str, str] = row.stated if row is not None and not model.guessed_from else {}
    followed = {name: value for name, value in model.flags.items() if name in stated}
    for name, _, item in (rule.partition("=") for rule in stated if "=" in rule):
        flagged = model.flags.get(name)
        if isinstance(flagged, list) and item in flagged:
            followed[name] = [*cast("list[str]", followed.get(name, [])), item]
    return followed


def resolve_dialect(model: Model | str, overrides: Mapping[str, object] | None = None) -> Dialect:
    """Resolve the dialect of a target, in the same order as its rules.

    Raises:
        UnknownProtocol: the model names a protocol that is not registered.
        SettingsError: an override names a field that does not exist, or a value it cannot have.
    """
    model = model if isinstance(model, Model) else get_model(model)
    return _resolve(_dialect_of, model, model.dialect, overrides)


def _resolve(
    find: Callable[[str, str, str, str | None, bytes | None], Settings],
    model: Model,
    own: Mapping[str, object],
    overrides: Mapping[str, object] | None,
) -> Settings:
    """Return the cached settings of a target, with overrides that no cache can hold: `own` are the model's."""
    original = _encode_overrides(own) if own else b""
    # A known provider needs no URL to be found; without it the cache has fewer entries.
    base_url = None if model.provider in PROVIDERS else model.base_url
    settings = find(model.protocol, model.provider, model.guessed_from or model.id, base_url, original)
    if original is None:
        settings = override(settings, own, where=f"model {model.full_name()}")
    return override(settings, overrides, where="the caller") if overrides else settings


def overrides_key(model: Model) -> tuple[bytes | None, bytes | None]:
    """Return the overrides of a model as a key of a cache: they are mappings of the caller, which may change."""
    return (
        _encode_overrides(model.rules) if model.rules else b"",
        _encode_overrides(model.dialect) if model.dialect else b"",
    )


def _encode_overrides(overrides: Mapping[str, object]) -> bytes | None:
    """Encode a model's overrides as a cache key; None if they are not JSON.

    The cached value is computed from these bytes, so a later change of the mapping cannot make it stale.
    """
    try:
        return _ENCODE(overrides)
    except (TypeError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def _rules_of(
    protocol: str,
    provider: str,
    model_id: str,
    base_url: str | None,
    original: bytes | None,
    *,
    flags: bytes,
    cautious: bool,
    families: str,
) -> Rules:
    entry, row = get_protocol(protocol), find_row(provider, base_url)
    unsure = {} if cautious else {place: None for place, one in entry.rules.rows.items() if not is_sure(one)}
    rules = override(entry.rules, unsure, where=f"protocol {protocol}")
    if row is not None:
        given = {name: value for name, value in row.rules.get(protocol, {}).items() if cautious or is_sure(value)}
        rules = override(rules, given, where=f"provider {row.name}")
        if protocol not in row.file_ids:
            sources = {name: getattr(rules, name) - {"file_id"} for name in ("image_sources", "file_sources")}
            rules = msgspec.structs.replace(rules, **sources)
    if flags:
        rules = override(rules, _DECODE(flags), where=f"flags of {provider}/{model_id}")
    for family in _families(entry, row, provider, model_id) if families != "none" else ():
        if cautious or family.grade == "refused":
            given = family.rules if families == "all" else _without_limits(family.rules, rules)
            rules = override(rules, given, where=f"family {family.pattern}")
    own = _DECODE(original) if original and families != "none" else {}
    if families == "unlimited":
        own = _without_limits(own, rules)
    return override(rules, own, where=f"model {provider}/{model_id}")


_LIMITS: Final = frozenset(
    (*get_args(OptionPlace), *get_args(MediaPlace), *get_args(SchemaPlace), "thinking_unstreamed", "thinking_level")
) | {
    *("refused_options", "refused_with_thinking", "refused_unless_off", "exclusive_options", "refused_extra"),
    *("refused_fields", "refused_tool_types", "refused_input", "tools", "max_tools", "max_images", "last_assistant"),
    *("forced_choice_with_thinking", "functions_with_thinking", "schema_with_tools", "schema_with_forced_choice"),
    *("server_tools_with_functions", "min_thinking_budget", "max_thinking_budget", "efforts_without_thinking"),
    *("thinking_types", "url_schemes", "unstreamed"),
}
"""Rules that refuse what a caller asks for, as opposed to those that say in which form a history is accepted."""
_NO_LIMITS: Final = Rules()


def _without_limits(rules: Mapping[str, object], held: Rules) -> Mapping[str, object]:
    """Return the rules of a family, or of its newest model, that apply to one which is only guessed to belong to it."""
    kept = {
        name: value
        for name, value in rules.items()
        if name not in _LIMITS or value is None or (name not in PLACES and value == getattr(_NO_LIMITS, name))
    }
    for name in ("refused_options", "refused_extra"):
        given = cast("Collection[str]", rules.get(name, ()))
        kept[name] = [each for each in given if each.startswith("-")]
    if "tool_choices" in rules:
        kept["tool_choices"] = held.tool_choices.union(cast("Collection[str]", rules["tool_choices"]))
    return kept


@lru_cache(maxsize=4096)
def _dialect_of(protocol: str, provider: str, model_id: str, base_url: str | None, original: bytes | None) -> Dialect:
    entry, row = get_protocol(protocol), find_row(provider, base_url)
    dialect = entry.dialect
    if row is not None:
        dialect = override(dialect, row.dialect.get(protocol, {}), where=f"provider {row.name}")
    for family in _families(entry, row, provider, model_id):
        dialect = override(dialect, family.dialect, where=f"family {family.pattern}")
    return override(dialect, _DECODE(original), where=f"model {provider}/{model_id}") if original else dialect


def families_of(model: Model) -> Iterator[Family]:
    """Yield the families that a model belongs to, in the order in which they override each other."""
    row = find_row(model.provider, model.base_url)
    return _families(get_protocol(model.protocol), row, model.provider, model.guessed_from or model.id)


def _families(entry: Protocol, row: Provider | None, provider: str, model_id: str) -> Iterator[Family]:
    name = provider if row is None else row.name
    return (family for family in (*WEIGHTS, *entry.families) if family.includes(name, model_id))


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode
