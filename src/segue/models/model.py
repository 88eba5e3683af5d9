"""A target: who serves which model over which wire, what it can take and what it costs.

`Model("my-model", "my-provider", "openai-chat")` is enough for a target of one's own; everything else has
a default that promises little. The catalogue fills in the rest for the models it knows.
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
    """Rates for a request whose whole input is longer than `input_above` tokens; they hold for all of it."""

    input_above: int
    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    cache_write_long: float | None = None


@final
class Price(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """US dollars for a million tokens, by category of `Usage`.

    `cache_write_long` is the rate of writes that are kept for longer than the provider's usual time.
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

    `input` lists what it can read. `context_window`, `max_input` and `max_tokens` are token counts, 0 when unknown;
    the window holds input and output together, `max_input` the input alone. `router` marks one id with many writers.
    `thinking_levels` maps a level to the provider's word for it, or to None where the model does not have it.
    `rules` and `dialect` override single fields of the resolved records, by field name. `headers` go with every request
    to it; a key does not belong there, since they are no secret.
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

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Show all but what headers say: people put keys there all the same, and this ends up in logs."""
        shown = {name: cast("object", getattr(self, name)) for name in self.__struct_fields__}
        shown["headers"] = dict.fromkeys(self.headers, "***")
        return list(shown.items())

    def __repr__(self) -> str:
        return f"Model({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def full_name(self) -> str:
        """Give the name the catalogue finds it by: `provider/id`."""
        return f"{self.provider}/{self.id}"
