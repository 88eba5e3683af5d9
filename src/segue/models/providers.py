"""What is kept by hand about providers: where they are, how a key reaches them, how they speak, what they refuse.

One row a provider; adding an OpenAI-compatible vendor is adding a row. `protocol` is the wire it speaks unless a model
of its catalogue says otherwise. `rules` and `dialect` override single fields for one protocol of that provider, and
every row names its source and the day it was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec


@final
class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves and bills. `rules` and `dialect` are keyed by protocol, then by field name."""

    name: str
    title: str
    protocol: str
    base_url: str | None
    key_variables: tuple[str, ...]
    rules: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict[str, Mapping[str, object]])
    dialect: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict[str, Mapping[str, object]])
    source: str
    read: str


PROVIDERS: Final[Mapping[str, Provider]] = {}
