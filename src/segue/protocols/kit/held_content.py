"""`HeldContent`: the references of a request to content that only its provider has.

Such a request is complete only at this provider: an earlier response, a stored conversation, a cached or stored prompt.
Another target cannot read it, so its loss is a loss of content. Each protocol declares its references as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, final

import msgspec

from segue.protocols.kit.json_values import Block, object_of


class Reference(NamedTuple):
    """One reference: the key or block type that holds it, the id (empty if it has none), and what it refers to."""

    key: str
    id: str
    what: str


@final
class StoredForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol writes replies that were stored, and answers about them.

    - `noun`: what a reply is called.
    - `fields(made, previous)`: the fields of a stored reply beside its content: when it was made, in Unix seconds, and
      the id of the reply before it.
    - `deleted(name)`: the answer to a deletion.
    - `input_flag`, `turns`: the parameter of the query that asks for what the reply was made of, and the key of a reply
      that then begins with it; None: there is no such parameter.
    """

    noun: str
    fields: Callable[[int, str | None], Mapping[str, object]]
    deleted: Callable[[str], Mapping[str, object]]
    input_flag: str | None = None
    turns: str = ""


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

    def references(self, body: Block) -> Iterator[Reference]:
        """Find the references among the keys of a body."""
        for key, value in body.items():
            if key in self.keys and (name := _id_of(value)):
                yield Reference(key, name, self.keys[key])
            elif key in self.values and value:
                yield Reference(key, _id_of(value), self.values[key])

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


def _id_of(value: object) -> str:
    found = value if isinstance(value, str) else object_of(value).get("id")
    return found if isinstance(found, str) else ""


NO_HELD_CONTENT: Final = HeldContent()
