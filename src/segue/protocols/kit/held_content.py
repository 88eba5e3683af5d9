"""`HeldContent`: the references of a request to content that only its provider has.

Such a request is complete only at this provider: an earlier response, a stored conversation, a cached or stored prompt.
Another target cannot read it, so its loss is a loss of content. Each protocol declares its references as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, cast, final

import msgspec

from segue.protocols.kit.json_values import Block, object_of

_HELD_URL: Final = re.compile(r"(?:gs|s3)://|files/|https?://[^/?#]*googleapis\.com/")
"""Addresses that a provider reads with the rights of the account: its buckets, and its uploaded files.

(Google: FileData.file_uri; Bedrock: S3Location.uri; google-genai 3.1.0, botocore 1.44.0)"""
_TEXTS: Final = frozenset({"text", "content", "thinking", "instructions", "system", "name", "arguments", "output"})
"""Keys whose values are texts of the conversation."""
_BARE: Final = frozenset({"type", "id", "status"})
"""Keys of a block that names content by its id alone."""


class Reference(NamedTuple):
    """One reference: the key or block type that holds it, the id (empty if it has none), and what it refers to."""

    key: str
    id: str
    what: str


@final
class StoredForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol writes replies that were stored, and answers about them.

    - `noun`: what a reply is called.
    - `fields(made, previous)`: the fields of a stored reply next to its content: when it was made, in Unix seconds, and
      the id of the reply before it.
    - `deleted(name)`: the answer to a deletion.
    - `input_flag`: the parameter of the query that asks for what the reply was made of; None: there is none.
    - `turns`: the key of a reply that has its turns, as a later request sends them; with `input_flag` it begins with
      those that it was made of.
    - `as_turns(given)`: the turns of a request, in one list, whatever form they were sent in.
    """

    noun: str
    fields: Callable[[int, str | None], Mapping[str, object]]
    deleted: Callable[[str], Mapping[str, object]]
    turns: str
    as_turns: Callable[[object], list[object]]
    input_flag: str | None = None


@final
class HeldContent(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of a body refer to content that the provider holds.

    - `keys`: keys of the body whose value is an id, or an object with an `id`, and what they refer to.
    - `values`: keys of the body that refer to such content with any value.
    - `history`: those of the keys that refer to turns; these may have the calls of the results that are sent.
    - `reply`: that of the keys which names the reply that a request continues. Providers then keep every reply, unless
      the body says `store: false`.
    - `reply_flag`: the key of a reply that says whether it is kept; None: there is none.
    - `stored`: how stored replies are written; None: the protocol has no endpoints for them.
    - `per_model`: those of the keys that are valid for one model only.
    - `blocks`: types of native blocks (or their only key) that name content by its id.
    - `model_pattern`: a regular expression for names of models that are stored prompts.
    - `ids`: keys anywhere in a body, such as those of media and tools, whose value is an id, a list of ids, or an
      object with an `id`, of something that the account has at the provider.
    - `free`: keys whose values the provider does not read as fields: arguments and results of calls, and schemas.
    """

    keys: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    values: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    history: frozenset[str] = frozenset()
    reply: str | None = None
    reply_flag: str | None = None
    stored: StoredForm | None = None
    per_model: frozenset[str] = frozenset()
    blocks: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    model_pattern: str | None = None
    ids: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    free: frozenset[str] = frozenset()

    def references(self, body: Block) -> Iterator[Reference]:
        """Find the references among the keys of a body."""
        for key, value in body.items():
            if key in self.keys and (name := _id_of(value)):
                yield Reference(key, name, self.keys[key])
            elif key in self.values and value:
                yield Reference(key, _id_of(value), self.values[key])

    def find_ids(self, body: Block) -> Iterator[Reference]:
        """Find every reference in a body, at any depth."""
        yield from self.references(body)
        for key, value, block in _walk(body, self.free):
            if key in self.ids:
                yield from (Reference(key, name, self.ids[key]) for name in _ids_of(value))
            elif key == "id" and _BARE.issuperset(block) and (found := self.reference_of(block)) is not None:
                yield found
            elif isinstance(value, str) and key not in _TEXTS and _HELD_URL.match(value):
                yield Reference(key, value, "a file of the account")

    def made_ids(self, reply: object) -> set[str]:
        """Return the ids in parts of a reply that a later request may name."""
        keys = {*self.ids, *self.keys, *({"id"} if self.blocks else ())}
        return {name for key, value, _ in _walk(reply) if key in keys for name in _ids_of(value)}

    def reference_of(self, block: Block) -> Reference | None:
        """Find the reference of a native block."""
        kind = block.get("type")
        if not isinstance(kind, str):
            kind = next(iter(block), "")
        what = self.blocks.get(kind)
        return None if what is None else Reference(kind, _id_of(block) or _id_of(block.get(kind)), what)

    def is_stored_prompt(self, model: str) -> bool:
        """Whether the name of a model is that of a stored prompt."""
        return self.model_pattern is not None and re.search(self.model_pattern, model) is not None


def _walk(value: object, skipped: AbstractSet[str] = frozenset()) -> Iterator[tuple[str, object, Block]]:
    """Yield each key of a JSON value at any depth, with its value and its object."""
    waiting: list[object] = [value]
    while waiting:
        given = waiting.pop()
        if isinstance(given, (list, tuple)):
            waiting += cast("Sequence[object]", given)
        elif isinstance(given, Mapping):
            block = cast("Block", given)
            for key, each in block.items():
                if key not in skipped:
                    yield key, each, block
                    waiting.append(each)


def _ids_of(value: object) -> list[str]:
    given = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else (value,)
    return [name for each in given if (name := _id_of(each))]


def _id_of(value: object) -> str:
    found = value if isinstance(value, str) else object_of(value).get("id")
    return found if isinstance(found, str) else ""


NO_HELD_CONTENT: Final = HeldContent()
