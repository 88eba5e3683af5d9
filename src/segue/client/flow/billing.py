"""What an attempt is billed: the provider's own counts, or estimates where a reply ended before it had them.

The input of a request that the provider began to answer counts, and the output up to the point where the reply broke or
the client left: the provider wrote at least that.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, Usage
from segue.counting.counter import TokenCounter
from segue.models.model import Model
from segue.models.price import find_cost, find_fees
from segue.requests.prepare import Request


def find_usage(message: AssistantMessage, *, is_whole: bool, request: Request | None, model: Model) -> Usage | None:
    """Return the usage of a reply that began; `is_whole` if it was read to its end."""
    given = message.usage
    if is_whole and given is not None:
        return given
    counter = TokenCounter(model)
    written = round(sum(counter.piece(piece) for piece in message.content))
    usage = given or Usage(input=0 if request is None else estimate_input(request))
    output = max(usage.output, written)
    usage = replace(
        usage, output=output, total_tokens=usage.input + usage.cache_read + usage.cache_write + output, cost=None
    )
    fees = find_fees(model, blocks=[piece.block for piece in message.content if piece.kind == "native"])
    cost = find_cost(model.cost, usage, fees=fees)
    if cost is not None and given is not None and given.cost is not None:
        # The provider's input is priced exactly, with the lifetimes of what it wrote to its cache.
        known = given.cost
        beside = known.total - known.input - known.output - known.cache_read - known.cache_write
        missing = max(0.0, fees - max(0.0, beside))
        cost = replace(known, output=cost.output, total=known.total - known.output + cost.output + missing)
    return replace(usage, cost=cost)


def estimate_input(request: Request) -> int:
    """Estimate the input tokens of a request by what is sent."""
    counter = TokenCounter(request.model)
    context = request.projection.context
    return counter.request(context.messages, counter.fixed(context, request.projection.options)).tokens
