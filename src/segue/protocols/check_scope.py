"""What `check` compared a request with, and what only the provider can know.

An empty list of findings is not a promise: whether a model exists, a key is valid or a stored file is still there
cannot be seen in a body, and of some endpoints it is not known what they refuse. `explain_check` lists both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast, final

import msgspec

from segue.errors import Path
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.protocols.api import find_checked
from segue.protocols.kit.capabilities import is_listed
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.request_fields import source_of
from segue.protocols.registry import get_protocol

_REFERENCES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("file_id", "fileUri", "file_uri", "file_ids"), "whether this file is stored, and for this key"),
    **dict.fromkeys(("previous_response_id", "conversation"), "whether this stored conversation exists"),
    **dict.fromkeys(("cachedContent", "cached_content"), "whether this cached content exists and is not expired"),
    **dict.fromkeys(("vector_store_ids", "library_ids", "knowledgeBaseId"), "whether these stores exist"),
    **dict.fromkeys(("container", "container_id"), "whether this container is still running"),
    **dict.fromkeys(
        ("signature", "thoughtSignature", "thought_signature", "encrypted_content", "redactedContent"),
        "whether this signature is valid: the provider made it for one model and account",
    ),
    **dict.fromkeys(("server_url", "connector_id"), "whether this server can be reached"),
    "s3Location": "whether this object exists and may be read",
    "item_reference": "whether this item is stored",
}
"""Keys of any wire that name something that only the provider has."""
_SCHEMA_ROWS: Final = frozenset({"schema_faults", "strict_open", "strict_open_objects", "schema_keywords"})
_ALWAYS: Final = (
    "whether the key is valid and may use the model",
    "whether a rate limit, a quota or a budget is used up",
    "whether a filter of the provider refuses the content",
)


@final
class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """Something that `check` cannot know; `path` is its place in the body, empty for the request as a whole."""

    path: Path
    reason: str


@final
class CheckScope(msgspec.Struct, frozen=True, kw_only=True):
    """What `check` compares a request with, and what it cannot know."""

    checked: tuple[str, ...]
    unknown: tuple[Unknown, ...]


def explain_check(
    body: Mapping[str, object],
    *,
    protocol: str,
    model: Model | str | None = None,
    catalogue: Catalogue | None = None,
) -> CheckScope:
    """List what `check` compares a request with, and what only the provider can know."""
    endpoint = find_checked(body, protocol, model, catalogue)
    checked = list(_checked(endpoint))
    unknown = [Unknown(path=(), reason=reason) for reason in (*_not_known(endpoint), *_ALWAYS)]
    return CheckScope(checked=tuple(checked), unknown=(*unknown, *_references(body, ())))


def _checked(endpoint: Endpoint) -> Iterator[str]:
    rules, model = endpoint.rules, endpoint.model
    yield "the order of messages, tool calls and their results, ids and names, the form of media"
    if rules.body_fields != "unknown":
        compared = {"keys": "keys", "typed": "types, values and required fields"}
        fields = compared.get(rules.body_fields, "keys, types, values and required fields")
        protocol = next(iter(rules.values("body_protocol")), get_protocol(model.protocol).name)
        yield f"{fields} of the body ({source_of(protocol)})"
    if not _SCHEMA_ROWS.isdisjoint(rules.rows):
        yield "JSON schemas of tools and of the output"
    if is_listed(endpoint):
        yield f"the input of the model: {', '.join(model.input)}"
    if rules.tool_types is not None or rules.server_tools is not None:
        yield "types of tools"
    refused = sorted(rules.refused_extra | rules.refused_options)
    if refused:
        yield f"parameters that the model refuses: {', '.join(refused)}"
    if model.context_window:
        yield f"the window of {model.context_window:,} tokens"


def _not_known(endpoint: Endpoint) -> Iterator[str]:
    rules, model = endpoint.rules, endpoint.model
    if not is_listed(endpoint):
        yield f"whether the model {model.id!r} exists, what it reads and writes: no catalogue has it"
    else:
        yield f"whether {model.provider} still serves {model.id}"
    if rules.body_fields == "unknown":
        yield f"which keys and values {model.provider or 'the provider'} refuses: no source says so"
    if not model.context_window:
        yield "whether the request fits the window of the model"


def _references(value: object, path: Path) -> Iterator[Unknown]:
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            reason = _REFERENCES.get(key)
            if reason is not None and inner:
                yield Unknown(path=(*path, key), reason=reason)
            elif key in ("url", "image_url", "fileUri") and isinstance(inner, str) and inner.startswith("http"):
                yield Unknown(path=(*path, key), reason="whether the provider can fetch this address")
            else:
                yield from _references(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("list[object]", value)):
            yield from _references(inner, (*path, index))
