"""Compute the cost of a reply from its usage and the model's price."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.messages import Usage, UsageCost
from segue.models.model import Model, Price, PriceTier
from segue.models.provider import PriceMode, ToolFee
from segue.models.providers import find_row

_MILLION = 1_000_000
_MODE_FIELDS: Final[Mapping[str, str]] = {
    "service_tier": "service_tier",
    "serviceTier": "service_tier",
    "speed": "speed",
    "inference_geo": "inference_geo",
}
"""Fields of requests and replies that decide the price, and the name of each in `PriceMode`."""
_STANDARD: Final = frozenset(
    {"auto", "default", "standard", "standard_only", "on_demand", "unspecified", "global", "not_available", "none", ""}
)
"""Values of these fields at the list price. A request with `auto` may be served otherwise; its reply tells."""


def find_cost(
    price: Price, usage: Usage, *, cache_write_long: int = 0, share: float | None = 1.0, fees: float = 0.0
) -> UsageCost | None:
    """Compute the cost of `usage`; None if no price is known, because 0 would be a wrong price.

    `share` is the part of the list price that is paid, as for a batch, None if that is not known (`find_share`);
    `fees` are dollars in addition to the tokens.
    """
    if share is None:
        return None
    if price.input or price.output or price.cache_read or price.cache_write or price.tiers:
        cost = compute_cost(price, usage, cache_write_long=cache_write_long)
        cost = cost if share == 1.0 else reduce_cost(cost, share)
        return replace(cost, total=cost.total + fees) if fees else cost
    return None


def find_share(model: Model, fields: Mapping[str, object]) -> float | None:
    """Return the part of the list price that is paid for the way in which a request was served; None: not known.

    `fields` are those of a reply, or of a request, that name it.
    """
    share = 1.0
    if _MODE_FIELDS.keys().isdisjoint(fields):
        return share
    for name, field in _MODE_FIELDS.items():
        given = fields.get(name)
        if given is None:
            continue
        value = str(cast("Mapping[str, object]", given).get("type") if isinstance(given, Mapping) else given).lower()
        if value in _STANDARD:
            continue
        if field == "service_tier" and value == "batch":
            share *= batch_share(model)
            continue
        row = find_row(model.provider, model.base_url)
        modes = () if row is None else row.price_modes
        found = next((mode for mode in modes if _is_mode(mode, field, value, model)), None)
        if found is None:
            return None
        share *= found.share
    return share


def _is_mode(mode: PriceMode, field: str, value: str, model: Model) -> bool:
    return (mode.field, mode.value) == (field, value) and re.match(mode.models, model.id) is not None


def find_fees(
    model: Model, *, counts: Mapping[str, object] | None = None, blocks: Iterable[Mapping[str, object]] = ()
) -> float:
    """Return the dollars that the provider takes for the runs of its own tools in a reply.

    `counts` is where the reply has the numbers of runs, `blocks` are its blocks or items, for runs without a number.
    """
    row = find_row(model.provider, model.base_url)
    if row is None or not row.tool_fees:
        return 0.0
    given, dollars = tuple(blocks), 0.0
    for fee in row.tool_fees:
        is_run = counts is not None or fee.block.get("type") in [block.get("type") for block in given]
        if is_run and re.match(fee.models, model.id):
            found = None if counts is None or not fee.count else _inside(counts, fee.count)
            runs = sum(bool(fee.block) and _is_run(block, fee) for block in given) if found is None else _number(found)
            dollars += fee.dollars * (min(runs, 1) if fee.once else runs)
    return dollars


def _is_run(block: Mapping[str, object], fee: ToolFee) -> bool:
    return all(_inside(block, path) == value for path, value in fee.block.items())


def _inside(value: object, path: str) -> object:
    for name in path.split("."):
        value = cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
    return value


def _number(value: object) -> int:
    if isinstance(value, (list, tuple)):
        return sum(bool(each) for each in cast("Sequence[object]", value))
    return value if isinstance(value, int) and value > 0 else 0


def reduce_cost(cost: UsageCost, share: float) -> UsageCost:
    """Return the part of a cost that is paid."""
    return UsageCost(
        input=cost.input * share,
        output=cost.output * share,
        cache_read=cost.cache_read * share,
        cache_write=cost.cache_write * share,
        total=cost.total * share,
    )


def add_usage(usages: Iterable[Usage]) -> Usage:
    """Add the tokens and costs of replies; the cost is None if that of one reply is not known."""
    given = tuple(usages)
    costs = [usage.cost for usage in given if usage.cost is not None]
    is_known = bool(given) and len(costs) == len(given)
    return Usage(
        input=sum(usage.input for usage in given),
        output=sum(usage.output for usage in given),
        cache_read=sum(usage.cache_read for usage in given),
        cache_write=sum(usage.cache_write for usage in given),
        reasoning=sum(usage.reasoning for usage in given),
        total_tokens=sum(usage.total_tokens for usage in given),
        cost=_add_costs(costs) if is_known else None,
    )


def _add_costs(costs: Sequence[UsageCost]) -> UsageCost:
    return UsageCost(
        input=sum(cost.input for cost in costs),
        output=sum(cost.output for cost in costs),
        cache_read=sum(cost.cache_read for cost in costs),
        cache_write=sum(cost.cache_write for cost in costs),
        total=sum(cost.total for cost in costs),
    )


def batch_share(model: Model) -> float:
    """Return the part of the list price that the model's provider takes for a batch; 1 if it has no such price."""
    row = find_row(model.provider, model.base_url)
    return 1.0 if row is None else row.batch_price


def compute_cost(price: Price, usage: Usage, *, cache_write_long: int = 0) -> UsageCost:
    """Multiply each category of `usage` by its rate.

    The tier with the highest threshold strictly below the whole input (cached tokens included) applies to the whole
    request. `cache_write_long` is the part of `usage.cache_write` with the longer retention.
    """
    rates: Price | PriceTier = price
    whole_input = usage.input + usage.cache_read + usage.cache_write
    for tier in sorted(price.tiers, key=lambda tier: tier.input_above):
        if whole_input > tier.input_above:
            rates = tier
    long_rate = rates.cache_write if rates.cache_write_long is None else rates.cache_write_long
    input_cost = usage.input * rates.input / _MILLION
    output_cost = usage.output * rates.output / _MILLION
    read_cost = usage.cache_read * rates.cache_read / _MILLION
    write_cost = ((usage.cache_write - cache_write_long) * rates.cache_write + cache_write_long * long_rate) / _MILLION
    return UsageCost(
        input=input_cost,
        output=output_cost,
        cache_read=read_cost,
        cache_write=write_cost,
        total=input_cost + output_cost + read_cost + write_cost,
    )
