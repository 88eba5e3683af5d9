"""Encode and decode the bodies of one protocol, without projection.

Assistant messages of a decoded body get an origin: its protocol and its model. The provider is that of the model which
the caller passes, else the catalogue's only provider for this protocol and model, else the protocol's default provider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Final, final

from msgspec.structs import replace

from segue.conversation.context import Context, Options, Prompt, note_decoded
from segue.conversation.fast_checks import is_plain
from segue.conversation.messages import AssistantMessage
from segue.errors import ConversationError, DecodeError, EncodeError, SettingsError, UnknownModel, UnknownProtocol
from segue.foundation.json_text import encode_json
from segue.models.catalogue import (
    Catalogue,
    find_models,
    find_provider,
    flag_input,
    get_model,
    installed_catalogue,
    packaged_catalogue,
)
from segue.models.model import Model
from segue.models.model_ids import first_party_prefixes, first_party_providers
from segue.models.providers import find_row
from segue.protocols.counterevidence import FIELD_ROWS, graded
from segue.protocols.detection import detect_reply
from segue.protocols.kit.capabilities import is_described, merge
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import CheckedBody
from segue.protocols.kit.codec import Endpoint, Violation, WireError
from segue.protocols.kit.json_values import detached
from segue.protocols.kit.owned_body import encode_owned, has_free_values
from segue.protocols.kit.reading import as_mapping
from segue.protocols.kit.request_fields import check_fields
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.property_names import restore_properties
from segue.protocols.registry import get_protocol, overrides_key, resolve_dialect, resolve_rules
from segue.protocols.shared_fields import place_options, places_of
from segue.protocols.words import count_words

WINDOW_EXCEEDED: Final = CheckCode.WINDOW_EXCEEDED
"""The code of a violation: the body is larger than the window of the model."""


_MOST_KNOWN: Final = 256
_named: Final[dict[tuple[str, str], tuple[Catalogue, Model]]] = {}
"""The models that bodies named before; emptied when it is full. A corpus has the same models in all rows."""


_resolved: Final[dict[int, tuple[Endpoint, tuple[bytes | None, bytes | None]]]] = {}
"""Endpoints by the identity of their model, which they hold, and its overrides; emptied when it is full."""


@final
class OneModel:
    """A model that is compared by identity, because its mappings cannot be hashed."""

    __slots__ = ("model",)

    def __init__(self, model: Model) -> None:
        self.model: Final = model

    def __hash__(self) -> int:
        return id(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneModel) and self.model is other.model


def resolve_endpoint(model: Model, *, cautious: bool = False) -> Endpoint:
    """Return a model with its resolved rules and dialect; `cautious` as in `Endpoint`."""
    overrides = overrides_key(model)
    if not cautious and (known := _resolved.get(id(model))) is not None and known[1] == overrides:
        return known[0]
    endpoint = Endpoint(model, resolve_rules(model, cautious=cautious), resolve_dialect(model), cautious=cautious)
    if not cautious and None not in overrides:
        if len(_resolved) >= _MOST_KNOWN // 8:  # most models are made for one request
            _resolved.clear()
        _resolved[id(model)] = endpoint, overrides
    return endpoint


def find_endpoint(
    protocol: str | None, model: Model | str | None, named: str | None = None, catalogue: Catalogue | None = None
) -> Endpoint:
    """Find the endpoint from the caller's arguments and from `named`, the model that the body names.

    Raises:
        UnknownProtocol: neither the caller nor the model names a protocol.
    """
    if isinstance(model, str) or (model is not None and catalogue is not None):
        model = get_model(model, catalogue=catalogue)
    if model is not None:
        target = model if protocol is None or protocol == model.protocol else replace(model, protocol=protocol)
        return resolve_endpoint(target)
    if protocol is None:
        raise UnknownProtocol("neither a protocol nor a model is given; pass protocol=... or model=...", name="")
    # A body that names no model needs no catalogue, and reading those of installed packages takes long.
    read = catalogue if catalogue is not None else installed_catalogue() if named else packaged_catalogue()
    key = (protocol, named or "")
    known = _named.get(key)
    if known is None or known[0] is not read:
        if len(_named) >= _MOST_KNOWN:
            _named.clear()
        known = _named[key] = read, _find_named(protocol, named or "", catalogue)
    return resolve_endpoint(known[1])


def _find_named(protocol: str, model_id: str, catalogue: Catalogue | None) -> Model:
    """Find the model that a body names; one that no catalogue has gets the provider of the protocol."""
    provider = find_provider(protocol, model_id, catalogue=catalogue) if model_id else None
    if provider is not None:
        entries = find_models(provider=provider, protocol=protocol, catalogue=catalogue)
        known = [entry for entry in entries if entry.id == model_id]
        if known:
            return known[0]
    return Model(model_id, provider or get_protocol(protocol).provider, protocol)


def decode_request(
    body: Mapping[str, object] | Sequence[object],
    *,
    protocol: str,
    model: Model | str | None = None,
    catalogue: Catalogue | None = None,
) -> Prompt:
    """Read a request body, or its bare list of messages.

    `catalogue` has models and providers of the user's own, for the model that the body names.

    Raises:
        DecodeError: the body does not follow the protocol; has the path.
    """
    if not isinstance(body, (Mapping, list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DecodeError(f"a request has to be an object or a list of messages, not {type(body).__name__}")
    named = _name_in(body) if isinstance(body, Mapping) else None
    endpoint = find_endpoint(protocol, model, named, catalogue)
    prompt = get_protocol(protocol).decode_request(body, endpoint)
    note_decoded(prompt.context, protocol, endpoint.model.provider, endpoint.model.id)
    return prompt


def encode_request(
    prompt: Prompt | Context, *, protocol: str | None = None, model: Model | str | None = None
) -> dict[str, Any]:
    """Write a request body without projection; a prompt from `decode_request` gives the original body.

    The body is the caller's own: it shares no dict or list with the prompt.

    Raises:
        EncodeError: the protocol does not support something in the prompt; has the path.
    """
    if not isinstance(prompt, (Prompt, Context)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConversationError(f"expected a Prompt or a Context, got a value of type {type(prompt).__name__}")
    whole = prompt if isinstance(prompt, Prompt) else Prompt(context=prompt)
    endpoint = find_endpoint(protocol, model, whole.model)
    if whole.model is None and endpoint.model.id:
        whole = replace(whole, model=endpoint.model.id)
    if whole.options.shared is not None:
        whole = replace(whole, options=_placed(whole.options, endpoint.model))
    has_free_json = has_free_values(whole.context.messages)
    return encode_owned(get_protocol(endpoint.model.protocol), whole, endpoint, has_free_json=has_free_json)


def _placed(options: Options, model: Model) -> Options:
    """Write the shared options where a model has them."""
    placed = place_options(options.shared or {}, options.extra, model)
    if placed.lost:
        name = next(iter(placed.lost))
        reason = f"{model.protocol} does not support `{name}`; remove it or choose another model"
        raise EncodeError(reason, path=("options", "shared", name))
    return replace(options, shared=None, extra=placed.extra or None)


def taken_options(model: Model) -> dict[str, str]:
    """Return the options that a model takes by name: fields of `Options`, then those of `Options.shared`.

    The value is the place of a shared option in the body, and empty for the others.
    """
    rules = resolve_rules(model)
    own = [
        name
        for name in Options.__struct_fields__
        if name not in rules.refused_options and name not in ("shared", "extra", "stream")
    ]
    if not model.reasoning:
        own = [name for name in own if name != "thinking"]
    return {**dict.fromkeys(own, ""), **places_of(model, rules.refused_extra)}


def decode_response(
    body: object,
    *,
    protocol: str | None = None,
    model: Model | str | None = None,
    tool_names: Mapping[str, str] | None = None,
) -> AssistantMessage:
    """Read a whole reply: a mapping, or an object of a provider's SDK.

    Without a protocol and a model, the protocol is detected from the body, and the provider is its default provider.

    Raises:
        DecodeError: the body does not follow the protocol; has the path.
    """
    plain = as_mapping(body)
    detected = protocol if protocol is not None or model is not None else detect_reply(plain)
    endpoint = find_endpoint(detected, model, _name_in(plain))
    message = get_protocol(endpoint.model.protocol).decode_response(plain, endpoint, tool_names or {})
    return restore_properties(message, tool_names) if tool_names else message


def encode_response(message: AssistantMessage, *, protocol: str, model: Model | str | None = None) -> dict[str, Any]:
    """Write a reply in its provider's format: the inverse of `decode_response`."""
    if not isinstance(message, AssistantMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConversationError(f"expected an AssistantMessage, got a value of type {type(message).__name__}")
    endpoint = find_endpoint(protocol, model, message.model or None)
    return detached(get_protocol(protocol).encode_response(message, endpoint))


def stream_decoder(
    *, protocol: str | None = None, model: Model | str | None = None, tool_names: Mapping[str, str] | None = None
) -> StreamDecoder:
    """Make a decoder for one streamed reply."""
    endpoint = find_endpoint(protocol, model)
    return get_protocol(endpoint.model.protocol).stream_decoder(endpoint, tool_names or {})


def decode_error(body: object, *, protocol: str, status: int | None = None) -> WireError:
    """Read a provider's error body into a plain record."""
    return get_protocol(protocol).decode_error(body, status)


def check(
    body: Mapping[str, object],
    *,
    protocol: str,
    model: Model | str | None = None,
    catalogue: Catalogue | None = None,
    version: str | None = None,
    strict: bool = False,
) -> list[Violation]:
    """List what the provider would refuse in a request body; an empty list if nothing is known.

    Without a model, the body is checked for the provider that serves the model it names. The rules of the protocol's
    own provider do not apply to a model of another maker.

    `version` is the version of the API that the request is sent with, where a header names it (`anthropic-version`).
    Without it, it is the one that the body names, or one that accepts the body.

    `strict` also lists what may be refused, or is accepted without effect; `Violation.grade` says which.

    Raises:
        SettingsError: the protocol has no such version.
    """
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DecodeError(f"a request body has to be an object, not {type(body).__name__}")
    endpoint = find_checked(body, protocol, model, catalogue)
    violations = check_for(body, endpoint)
    if strict:
        known = {(one.code, one.path) for one in violations}
        violations += [
            one if one.grade != "refused" else replace(one, grade="unsure")
            for one in check_for(body, resolve_endpoint(endpoint.model, cautious=True))
            if (one.code, one.path) not in known
        ]
    return [*violations, *_check_version(body, protocol, version)]


def check_for(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what an endpoint refuses in a body.

    Of a model that is guessed to belong to a family, only what its provider refuses of every model is known.
    """
    fields = graded(check_fields(body, endpoint), endpoint, FIELD_ROWS)
    found = merge(graded(check_body(body, endpoint), endpoint), fields)
    model = endpoint.model
    if not found or not model.guessed_from or endpoint.cautious:
        return found
    unnamed = Model("", model.provider, model.protocol, base_url=model.base_url)
    rules = resolve_rules(unnamed, families="none")
    sure = {(one.code, one.path) for one in check_for(body, replace(endpoint, model=unnamed, rules=rules))}
    return [one for one in found if (one.code, one.path) in sure]


def find_checked(
    body: Mapping[str, object], protocol: str, model: Model | str | None, catalogue: Catalogue | None
) -> Endpoint:
    """Find the endpoint that a body is checked for: of the model, else of the provider that serves what it names.

    A model without abilities of its own gets those of its entry, which may be an entry for another protocol.
    """
    named = _name_in(body)
    if model is None and named and find_provider(protocol, named, catalogue=catalogue) is None:
        maker = _find_other_maker(named, get_protocol(protocol).provider)
        model = None if maker is None else Model(named, maker, protocol)
    endpoint = find_endpoint(protocol, model, named, catalogue)
    if is_described(endpoint.model):
        return endpoint
    find = _known_abilities if catalogue is None else _find_abilities
    known = find(endpoint.model.provider, endpoint.model.id, catalogue)
    if known is None and model is None and named:
        guess = (catalogue or installed_catalogue()).lookup(f"{endpoint.model.provider}/{named}")
        known = guess if guess is not None and guess.guessed_from else None
    return endpoint if known is None else resolve_endpoint(replace(known, protocol=endpoint.model.protocol))


def resolve_described(model: Model) -> Endpoint:
    """Return the endpoint of a model; one that was made of an id alone reads and writes what `check` expects of it."""
    return resolve_endpoint(model if is_described(model) else _described(OneModel(model)))


@lru_cache(maxsize=32)
def _described(given: OneModel) -> Model:
    model = given.model
    known = _known_abilities(model.provider, model.id, None)
    return model if known is None else replace(model, input=known.input, max_tokens=known.max_tokens, flags=known.flags)


_DATE: Final = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest)$")
"""The end of an id that names a version of a model."""


def _find_abilities(provider: str, model_id: str, catalogue: Catalogue | None) -> Model | None:
    """Find the entry of a model at its provider over any protocol; of a dated version only what it reads.

    A model that its provider does not list reads what the same model reads at several others.
    """
    if not provider or not model_id:
        return None
    entries = {entry.id: entry for entry in find_models(provider=provider, catalogue=catalogue)}
    if model_id in entries:
        entry = entries[model_id]
        return replace(entry, rules={}, dialect={}, base_url=None, headers={})
    base = entries.get(_DATE.sub("", model_id))
    if base is not None:
        return Model(model_id, provider, base.protocol, input=base.input, flags=flag_input(base.input))
    plain = _plain_id(model_id)
    read = [entry.input for entry in find_models(catalogue=catalogue) if _plain_id(entry.id) == plain]
    if len(read) < 2 or len(set(read)) > 1:
        return None
    return Model(model_id, provider, "", input=read[0], flags=flag_input(read[0]))


def _plain_id(model_id: str) -> str:
    """Return the name of a model without the maker before it and the variant after it."""
    return model_id.rpartition("/")[2].partition(":")[0].lower()


_known_abilities: Final = lru_cache(maxsize=_MOST_KNOWN)(_find_abilities)


def _check_version(body: Mapping[str, object], protocol: str, version: str | None) -> list[Violation]:
    versions = get_protocol(protocol).versions
    if versions is None:
        if version is not None:
            raise SettingsError(f"{protocol} has no versions; leave out version=...", key="version")
        return []
    if version is not None:
        versions.get(version)
    return versions.check(body, version)


def check_body(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what one endpoint would refuse in a request body.

    A body that is larger than the window is a violation where that is certain: where it has more words than the window
    has tokens. No known tokenizer joins two words, so its tokens are more.
    """
    checked = CheckedBody(body) if is_plain([body]) else body
    violations = get_protocol(endpoint.model.protocol).check(checked, endpoint)
    window = endpoint.model.context_window
    is_cut = endpoint.rules.has("window_field") or body.get("truncation") == "auto"
    if window and not is_cut and _size_of(checked) > 2 * window:  # a word and its end take two bytes
        words = count_words(body)
        if words > window:
            message = f"{words:,} words are at least as many tokens, and the window has {window:,}; shorten the request"
            violations = [*violations, Violation(WINDOW_EXCEEDED, (), message)]
    return violations


def _size_of(body: Mapping[str, object]) -> float:
    encoded = body.encoded if isinstance(body, CheckedBody) else None
    try:
        return len(encoded if isinstance(encoded, bytes) else encode_json(body))
    except (TypeError, ValueError, RecursionError):  # it is not JSON
        return inf


def find_target(target: Model | str, protocol: str | None, catalogue: Catalogue | None = None) -> Model:
    """Find a target by name; with a protocol, the catalogue need not have it.

    A provider at the start of such a name is the provider of the model; without one, it is that of the protocol.
    """
    if isinstance(target, Model):
        return target if protocol is None else replace(target, protocol=protocol)
    try:
        found = get_model(target, catalogue=catalogue)
    except UnknownModel:
        if protocol is None:
            raise
        provider, _, model_id = target.partition("/")
        if model_id and (find_row(provider) or (catalogue and catalogue.find_row(provider))):
            return Model(model_id, provider, protocol)
        return Model(target, get_protocol(protocol).provider, protocol)
    return found if protocol is None or protocol == found.protocol else replace(found, protocol=protocol)


def _find_other_maker(model_id: str, provider: str) -> str | None:
    """Return the maker of a model, by its id, if it is not this provider: "" if it is unknown or behind a gateway.

    None for a name that tells nothing, and for a provider that serves models of others.
    """
    if not first_party_prefixes(provider):
        return None
    gateway, slash, name = model_id.rpartition("/")
    served = first_party_providers(name)
    if served and provider not in served:
        return served[0]
    return "" if slash and (not served or gateway in served) else None


def _name_in(body: Mapping[str, object]) -> str | None:
    """Return the model that a body names: its `model`, or `modelId` (boto3)."""
    for key in ("model", "modelId"):
        name = body.get(key)
        if isinstance(name, str):
            return name
    return None
