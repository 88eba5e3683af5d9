"""Tokens and money as OpenAI chat replies report them, both ways.

Facts this file rests on:
- `prompt_tokens` includes cached tokens, `completion_tokens` includes reasoning; details are subsets. (openai 3.49.0)
- Cached tokens are told as `prompt_tokens_details.cached_tokens`, `prompt_cache_hit_tokens` or `cached_tokens`;
  written ones as `prompt_tokens_details.cache_write_tokens`.                        (pi-ai 1.5.0; recorded traffic)
- Gateways to Claude also pass on its own words, counted into `prompt_tokens`.       (LiteLLM: Usage, read 2026-11-15)
- Some vendors' `completion_tokens` leave reasoning out; the total tells, also where nothing else does.
                   (recorded traffic, 2026-11: xai/0095; Google's OpenAI door: recordings of pydantic-ai, 2026-01)
- What a gateway says a reply cost is what it costs; with a key of one's own the upstream's bill comes on top.
                                                                              (pi-ai 1.5.0; recorded traffic, 2026-11)
- `cost_in_usd_ticks` counts ten thousand millionths of a millionth: 1e-10 dollars.  (recorded traffic, xai/0095)
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.messages import Usage, UsageCost
from segue.models.model import Model
from segue.models.price import find_cost
from segue.protocols.kit.reading import VERBATIM, left_over, number_of, verbatim_of
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.verbatim import Block, object_of

_COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
_CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
_TICK: Final = 1e-10


def decode_usage(wire: Block, model: Model) -> Usage:
    """Read usage into tokens by category, with what it cost."""
    prompt, completion = number_of(wire.get("prompt_tokens")), number_of(wire.get("completion_tokens"))
    read, written = object_of(wire.get("prompt_tokens_details")), object_of(wire.get("completion_tokens_details"))
    cached = _first(read.get("cached_tokens"), *(wire.get(key) for key in _CACHED))
    stored = _first(read.get("cache_write_tokens"), wire.get("cache_creation_input_tokens"))
    reasoning = _first(written.get("reasoning_tokens"), wire.get("reasoning_tokens"))
    total = number_of(wire.get("total_tokens"))
    untold = total - prompt - completion
    if untold > 0 and untold == (reasoning or (0 if cached or stored else untold)):
        completion, reasoning = completion + untold, untold
    usage = Usage(
        input=max(0, prompt - cached - stored),
        output=completion,
        cache_read=cached,
        cache_write=stored,
        reasoning=reasoning,
        total_tokens=total or prompt + completion,
    )
    left = {key: value for key, value in wire.items() if key not in _COUNTS}
    verbatim = {
        key: wire.get(key, "absent") for key, value in _counts(usage).items() if wire.get(key, "absent") != value
    }
    if verbatim:
        left[VERBATIM] = verbatim
    return replace(usage, cost=_cost(wire, usage, model), extra={PROTOCOL: left} if left else None)


def encode_usage(usage: Usage) -> dict[str, object]:
    """Write usage as it was read; of another wire's, what this one has words for."""
    wire: dict[str, object] = dict(_counts(usage))
    for key, value in verbatim_of(usage.extra, PROTOCOL).items():
        if value == "absent":
            del wire[key]
        else:
            wire[key] = value
    if usage.extra is not None and PROTOCOL in usage.extra:
        return {**wire, **left_over(usage.extra, PROTOCOL)}
    if usage.cache_read or usage.cache_write:
        wire["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
        if usage.cache_write:
            wire["prompt_tokens_details"] = {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": usage.cache_write,
            }
    if usage.reasoning:
        wire["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return wire


def _counts(usage: Usage) -> dict[str, int]:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total_tokens or prompt + usage.output,
    }


def _first(*counts: object) -> int:
    """Give the first count that says something: vendors fill one place and leave zeros in others."""
    return next((number for count in counts if (number := number_of(count)) > 0), 0)


def _cost(wire: Block, usage: Usage, model: Model) -> UsageCost | None:
    computed = find_cost(model.cost, usage)
    billed = _billed(wire)
    if billed is None:
        return computed
    return UsageCost(total=billed) if computed is None else replace(computed, total=billed)


def _billed(wire: Block) -> float | None:
    """Give what the provider says it charges, in dollars."""
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
