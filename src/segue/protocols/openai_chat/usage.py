"""Tokens and cost as OpenAI chat replies report them, both ways.

Facts this file rests on:
- `prompt_tokens` includes cached tokens, `completion_tokens` includes reasoning; details are subsets. (openai 3.49.0)
- Cached tokens are `prompt_tokens_details.cached_tokens`, `prompt_cache_hit_tokens` or `cached_tokens`; those written
  are `prompt_tokens_details.cache_write_tokens`.                                        (pi-ai 1.5.0; recorded traffic)
- Gateways to Claude also send Claude's own keys, counted into `prompt_tokens`.      (LiteLLM: Usage, read 2026-11-15)
- `completion_tokens` of some vendors leaves reasoning out; the total shows it, also where nothing else does.
                   (recorded traffic, 2026-11: xai/0095; Google's OpenAI API: recordings of pydantic-ai, 2026-01)
- The cost that a gateway reports counts; with a key of one's own the cost of the upstream provider is added.
                                                                              (pi-ai 1.5.0; recorded traffic, 2026-11)
- One of `cost_in_usd_ticks` is 1e-10 dollars.                                       (recorded traffic, xai/0095)
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.messages import Usage, UsageCost
from segue.models.model import Model
from segue.models.price import find_cost, find_share
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import number_of
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.openai_chat.rules import PROTOCOL

_CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
_KNOWN: Final = (*_CACHED, "cache_creation_input_tokens", "reasoning_tokens")
"""Keys that are read and never written by default."""
_TICK: Final = 1e-10


def decode_usage(wire: Block, model: Model, around: Block) -> Usage:
    """Read usage into tokens by category, and the cost; `around` is the reply or the chunk that has the usage."""
    prompt, completion = number_of(wire.get("prompt_tokens")), number_of(wire.get("completion_tokens"))
    read, written = object_of(wire.get("prompt_tokens_details")), object_of(wire.get("completion_tokens_details"))
    cached = _first(read.get("cached_tokens"), *(wire.get(key) for key in _CACHED))
    stored = _first(read.get("cache_write_tokens"), wire.get("cache_creation_input_tokens"))
    reasoning = _first(written.get("reasoning_tokens"), wire.get("reasoning_tokens"))
    total = number_of(wire.get("total_tokens"))
    missing = total - prompt - completion
    if missing > 0 and missing == (reasoning or (0 if cached or stored else missing)):
        completion, reasoning = completion + missing, missing
    usage = Usage(
        input=max(0, prompt - cached - stored),
        output=completion,
        cache_read=cached,
        cache_write=stored,
        reasoning=reasoning,
        total_tokens=total or prompt + completion,
    )
    extra = keep(PROTOCOL, wire, encode_usage(usage), _KNOWN)
    return replace(usage, cost=_cost(wire, usage, model, around), extra=extra)


def encode_usage(usage: Usage) -> Wire:
    """Write usage."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    wire: Wire = {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total_tokens or prompt + usage.output,
    }
    if usage.cache_read or usage.cache_write:
        details: Wire = {"cached_tokens": usage.cache_read}
        if usage.cache_write:
            details["cache_write_tokens"] = usage.cache_write
        wire["prompt_tokens_details"] = details
    if usage.reasoning:
        wire["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return restore(wire, usage.extra, PROTOCOL)


def _first(*counts: object) -> int:
    """Give the first count above zero: vendors fill one key and leave zeros in others."""
    return next((number for count in counts if (number := number_of(count)) > 0), 0)


def _cost(wire: Block, usage: Usage, model: Model, around: Block) -> UsageCost | None:
    share = 1.0 if around.get("service_tier") is None else find_share(model, around)
    computed = find_cost(model.cost, usage, share=share)
    billed = _billed(wire)
    if billed is None:
        return computed
    return UsageCost(total=billed) if computed is None else replace(computed, total=billed)


def _billed(wire: Block) -> float | None:
    """Give the cost that the provider reports, in dollars."""
    cost = _amount(wire.get("cost"))
    if cost is not None:
        upstream = _amount(object_of(wire.get("cost_details")).get("upstream_inference_cost"))
        return cost + upstream if wire.get("is_byok") is True and upstream is not None else cost
    total = _amount(object_of(wire.get("cost")).get("total_cost"))
    if total is not None:
        return total
    ticks = _amount(wire.get("cost_in_usd_ticks"))
    return None if ticks is None else ticks * _TICK


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        return None
    return float(value)
