"""The record of a provider: where it is, how a key reaches it, how it speaks, what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec


@final
class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who serves and bills.

    `protocol` is the wire it speaks unless a model of its catalogue says otherwise. `rules` and `dialect` are keyed by
    protocol, then by field name. `{NAME}` in `base_url` stands for an environment variable of that name, which the
    client fills in; `key_variables` are those a key is looked for in, in order. `source` and `read` say where the row's
    facts come from and on which day they were read.
    """

    name: str
    title: str
    protocol: str
    base_url: str | None
    key_variables: tuple[str, ...]
    rules: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict[str, Mapping[str, object]])
    dialect: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict[str, Mapping[str, object]])
    source: str
    read: str
