"""A target: one model at one provider over one protocol, with its abilities and prices.

`Model("my-model", "my-provider", "openai-chat")` is enough for a model of your own; every other field has a
conservative default. The catalogue has complete entries for its models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast, final

import msgspec

Modality: TypeAlias = Literal["text", "image", "document", "audio", "video"]


@final
class PriceTier(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Rates for a request with more than `input_above` input tokens; they apply to the whole request."""

    input_above: int
    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    cache_write_long: float | None = None


@final
class Price(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """US dollars per million tokens, by category of `Usage`.

    `cache_write_long` is the rate of cache writes with a longer retention than the provider's default.
    """

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    cache_write_long: float | None = None
    tiers: tuple[PriceTier, ...] = ()


@final
class Model(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One model at one provider over one protocol.

    `input` lists the kinds of input it supports. `context_window`, `max_input` and `max_tokens` are token counts, 0 if
    unknown; the window holds input and output together, `max_input` the input alone. `router` marks an id under which
    different models answer. `thinking_levels` maps a level to the provider's value for it, or to None if the model does
    not have the level. `rules` and `dialect` override single fields of the resolved records, by field name. `headers`
    are sent with every request; they are not treated as secret, so do not put a key there. `account` names one of
    several accounts at the provider: requests are sent with the key that the client has under this name. `flags` are
    fields of the rules as a third party's catalogue has them: a strict `check` reports them, nothing else follows them
    (`Provider.stated` has the exceptions). They take precedence over `input`. `guessed_from` is set for a model that is
    newer than the catalogue: the id of the listed one that it was made from. Rules of its family are unsure for it.
    """

    id: str
    provider: str
    protocol: str
    name: str = ""
    base_url: str | None = None
    reasoning: bool = False
    input: tuple[Modality, ...] = ("text", "image")
    context_window: int = 0
    max_tokens: int = 0
    max_input: int = 0
    cost: Price = Price()
    router: bool = False
    thinking_levels: Mapping[str, str | None] = msgspec.field(default_factory=dict[str, str | None])
    deprecated: str | None = None
    rules: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    dialect: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    account: str = ""
    flags: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    guessed_from: str = ""

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Show all fields, with the values of headers masked: some people put keys there, and this is logged."""
        shown = {name: cast("object", getattr(self, name)) for name in self.__struct_fields__}
        shown["headers"] = dict.fromkeys(self.headers, "***")
        return list(shown.items())

    def __repr__(self) -> str:
        return f"Model({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def full_name(self) -> str:
        """Return the full name in the catalogue: `provider/id`."""
        return f"{self.provider}/{self.id}"
