"""The protocols segue speaks, and what holds for one target.

Adding a protocol is one folder and one line of `_FOLDERS`. What a target may be sent, and how it is spelt, is resolved
here, because here alone everyone who has a say comes together: the protocol < the provider < the family of models <
the model < the caller. Each overrides single fields of the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, TypeVar, final, get_type_hints

import msgspec

from segue.conversation.context import Options
from segue.errors import SettingsError, UnknownProtocol
from segue.models.catalogue import get_model
from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model import Model
from segue.models.provider import Provider
from segue.models.providers import PROVIDERS, find_row
from segue.models.rules import Rules
from segue.protocols.anthropic_messages import rules as anthropic_messages
from segue.protocols.bedrock_converse import rules as bedrock_converse
from segue.protocols.cohere_chat import rules as cohere_chat
from segue.protocols.google_genai import rules as google_genai
from segue.protocols.mistral_chat import rules as mistral_chat
from segue.protocols.ollama_chat import rules as ollama_chat
from segue.protocols.openai_chat import rules as openai_chat
from segue.protocols.openai_responses import rules as openai_responses
from segue.protocols.plain_text import rules as plain_text
from segue.protocols.vscode_lm import rules as vscode_lm


@final
class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """One wire format: whose it is, what it carries, how its inventor spells it, and which models differ."""

    name: str
    provider: str
    rules: Rules
    dialect: Dialect
    families: tuple[Family, ...]
    package: str
    """Where its codec is found; imported when someone wants to speak."""


_FOLDERS: Final = (
    anthropic_messages,
    openai_chat,
    openai_responses,
    google_genai,
    bedrock_converse,
    mistral_chat,
    ollama_chat,
    vscode_lm,
    plain_text,
    cohere_chat,
)

PROTOCOLS: Final[Mapping[str, Protocol]] = {
    folder.PROTOCOL: Protocol(
        name=folder.PROTOCOL,
        provider=folder.PROVIDER,
        rules=folder.RULES,
        dialect=folder.DIALECT,
        families=folder.FAMILIES,
        package=folder.__name__.removesuffix(".rules"),
    )
    for folder in _FOLDERS
}
"""By name, in the order in which tables and tests go through them."""


def get_protocol(name: str) -> Protocol:
    """Look a protocol up.

    Raises:
        UnknownProtocol: there is none of that name; the error carries the nearest ones.
    """
    protocol = PROTOCOLS.get(name)
    if protocol is None:
        near = get_close_matches(name, PROTOCOLS, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(PROTOCOLS)}"
        raise UnknownProtocol(f"no protocol is called {name!r}: {known}", name=name, suggestions=near)
    return protocol


def resolve_rules(model: Model | str, overrides: Mapping[str, object] | None = None) -> Rules:
    """Say what this target may be sent: the protocol's rules with every override, the caller's last.

    Raises:
        UnknownProtocol: the model names a protocol that is not registered.
        SettingsError: an override names a rule that does not exist, or a value it cannot have.
    """
    model = get_model(model)
    original = _encode_overrides(model.rules)
    rules = _rules_of(model.protocol, model.provider, model.id, _matching_url(model), original)
    if original is None:
        rules = _override(rules, model.rules, where=f"model {model.full_name()}")
    return _override(rules, overrides, where="the caller") if overrides else rules


def resolve_dialect(model: Model | str, overrides: Mapping[str, object] | None = None) -> Dialect:
    """Say how this target spells its protocol, resolved like its rules.

    Raises:
        UnknownProtocol: the model names a protocol that is not registered.
        SettingsError: an override names a field that does not exist, or a value it cannot have.
    """
    model = get_model(model)
    original = _encode_overrides(model.dialect)
    dialect = _dialect_of(model.protocol, model.provider, model.id, _matching_url(model), original)
    if original is None:
        dialect = _override(dialect, model.dialect, where=f"model {model.full_name()}")
    return _override(dialect, overrides, where="the caller") if overrides else dialect


def _encode_overrides(overrides: Mapping[str, object]) -> bytes | None:
    """Write a model's overrides, so that what becomes of them can be remembered by that; None if they are no JSON.

    What is remembered is made of the bytes alone: so it cannot be stale, whatever happens to the mapping.
    """
    if not overrides:
        return b""
    try:
        return _ENCODE(overrides)
    except (TypeError, ValueError, RecursionError):
        return None


def _matching_url(model: Model) -> str | None:
    # A known name says everything; left out, the address does not crowd the cache.
    return None if model.provider in PROVIDERS else model.base_url


@lru_cache(maxsize=4096)
def _rules_of(protocol: str, provider: str, model_id: str, base_url: str | None, original: bytes | None) -> Rules:
    entry, row = get_protocol(protocol), find_row(provider, base_url)
    rules = entry.rules
    if row is not None:
        rules = _override(rules, row.rules.get(protocol, {}), where=f"provider {row.name}")
    for family in _families(entry, row, provider, model_id):
        rules = _override(rules, family.rules, where=f"family {family.pattern}")
    return _override(rules, _DECODE(original), where=f"model {provider}/{model_id}") if original else rules


@lru_cache(maxsize=4096)
def _dialect_of(protocol: str, provider: str, model_id: str, base_url: str | None, original: bytes | None) -> Dialect:
    entry, row = get_protocol(protocol), find_row(provider, base_url)
    dialect = entry.dialect
    if row is not None:
        dialect = _override(dialect, row.dialect.get(protocol, {}), where=f"provider {row.name}")
    for family in _families(entry, row, provider, model_id):
        dialect = _override(dialect, family.dialect, where=f"family {family.pattern}")
    return _override(dialect, _DECODE(original), where=f"model {provider}/{model_id}") if original else dialect


def _families(entry: Protocol, row: Provider | None, provider: str, model_id: str) -> Iterator[Family]:
    name = provider if row is None else row.name
    return (family for family in entry.families if family.includes(name, model_id))


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode

_Settings = TypeVar("_Settings", Rules, Dialect)

_FIELD_TYPES: Final[Mapping[type, Mapping[str, object]]] = {kind: get_type_hints(kind) for kind in (Rules, Dialect)}
_FIELD_LABELS: Final[Mapping[type, str]] = {Rules: "rule", Dialect: "dialect field"}
_OPTION_RULES: Final = frozenset(
    {"refused_options", "refused_with_thinking", "refused_unless_off", "exclusive_options"}
)
"""Rules that name fields of `Options`."""
_ADDED_UP: Final = frozenset({"refused_options", "refused_extra"})
"""Rules whose overrides add to what was refused before, or take it back."""


def _override(settings: _Settings, overrides: Mapping[str, object], *, where: str) -> _Settings:
    if not overrides:
        return settings
    types, literal = _FIELD_TYPES[type(settings)], _FIELD_LABELS[type(settings)]
    values: dict[str, object] = {}
    for key, value in overrides.items():
        if key not in types:
            raise _unknown_field(key, types, f"{where}: there is no {literal} {key!r}")
        try:
            # From stored JSON a set or a tuple comes as a list; conversion makes it what the record holds.
            values[key] = msgspec.convert(value, types[key])
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: {literal} {key!r} cannot be {value!r}: {error}", key=key) from error
        if key in _OPTION_RULES:
            _check_options(msgspec.convert(value, frozenset[str]), f"{where}: {literal} {key!r}")
        if key in _ADDED_UP:
            values[key] = _added_up(getattr(settings, key), msgspec.convert(value, frozenset[str]))
    return msgspec.structs.replace(settings, **values)


def _added_up(refused: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    taken_back = {name[1:] for name in names if name.startswith("-")}
    return (refused | {name for name in names if not name.startswith("-")}) - taken_back


def _check_options(names: frozenset[str], place: str) -> None:
    for name in sorted(names):
        if name.removeprefix("-") not in Options.__struct_fields__:
            raise _unknown_field(
                name, Options.__struct_fields__, f"{place} names an option {name!r} that does not exist"
            )


def _unknown_field(key: str, known: Iterable[str], message: str) -> SettingsError:
    near = get_close_matches(key, list(known), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return SettingsError(message + hint, key=key, suggestions=near)
