"""The record of a provider: its address, the variables of its key, its rules and dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec


@final
class ToolFee(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a provider takes for each run of its own tool, in addition to the tokens.

    - `dollars`: for one run; with `once`, for a reply with any number of them.
    - `count`: where the reply has the number of runs, or a list of them (`server_tool_use.web_search_requests`).
    - `block`: the fields of a block or item that is a run, where no number is there.
    - `models`: a regular expression for the beginning of ids that it holds for.
    """

    dollars: float
    count: str = ""
    block: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    once: bool = False
    models: str = ""


@final
class PriceMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a provider takes for another way to serve a request than its standard one, in parts of the list price.

    - `field`, `value`: the field of the reply that tells it (`service_tier`, `speed`, `inference_geo`), and its value.
    - `share`: the part of the list price that is paid.
    - `models`: a regular expression for the beginning of ids that it holds for.
    """

    field: str
    value: str
    share: float
    models: str = ""


@final
class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A company or server that serves models.

    `protocol` is the default; an entry of the catalogue may name another one. `rules` and `dialect` are keyed by
    protocol, then by field name. `file_ids` are the protocols for which the provider stores files: elsewhere a file id
    belongs to another provider, and is not sent. The client replaces `{NAME}` in `base_url` by the environment variable
    of that name, and looks for a key in `key_variables`, in order. `any_id` marks a server that serves what its user
    has loaded: every id is accepted as the name of a model. `batch_price` is the part of the list price that it takes
    for a batch, `tool_fees` what it takes for runs of its tools, `price_modes` what it takes for other ways to serve a
    request; one that is not among them has no known price. `stated` are flags of the catalogue (`Model.flags`)
    that its own documentation or its refusals confirm, so that they are followed: the rule, or `rule=item` for one item
    of a list, with the source. `source` and `read` are the source of the row and the date it was read.
    """

    name: str
    title: str
    protocol: str
    base_url: str | None
    key_variables: tuple[str, ...]
    rules: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict[str, Mapping[str, object]])
    dialect: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict[str, Mapping[str, object]])
    file_ids: tuple[str, ...] = ()
    any_id: bool = False
    batch_price: float = 1.0
    tool_fees: tuple[ToolFee, ...] = ()
    price_modes: tuple[PriceMode, ...] = ()
    stated: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    source: str
    read: str
