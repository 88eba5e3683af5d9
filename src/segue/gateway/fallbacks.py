"""The fallbacks of a route: which model is next when one fails, and when the first one is returned to."""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.context import Context, Options
from segue.gateway.config import ModelRoute
from segue.gateway.routing import Breaker, Routed
from segue.models.model import Model
from segue.planning.fallbacks import FallbackPolicy
from segue.projection.policy import Policy


def make_policy(route: ModelRoute, models: Sequence[Model]) -> FallbackPolicy | None:
    """Make the policy of a route for the models that are left; None if they are tried in their order."""
    table = route.fallback
    if table is None:
        return None
    return FallbackPolicy(
        models,
        order=table.order,
        turns=table.turns,
        max_dollars=table.max_dollars,
        never_lose=table.never_lose,
        rest_seconds=table.rest_seconds,
    )


def may_return(routed: Routed, ordered: Sequence[Model], breaker: Breaker, now: float) -> bool:
    """Whether a conversation that another model answers could return to the first one: that is well again.

    `ordered` are the models in the order in which they would be tried, for the client that asks.
    """
    table = routed.route.fallback
    if table is None or not ordered:
        return False
    first = routed.models[0].full_name()
    return ordered[0].full_name() != first and any(
        breaker.has_rested(model, now, table.rest_seconds) for model in ordered if model.full_name() == first
    )


def return_to_first(
    routed: Routed, ordered: tuple[Model, ...], context: Context, *, options: Options, policy: Policy, now: int
) -> tuple[Model, ...]:
    """Put the first model first again if that is worth it; `now` is the time in milliseconds."""
    last, name = ordered[0], routed.models[0].full_name()
    first = next(model for model in ordered if model.full_name() == name)
    fallbacks = make_policy(routed.route, (last,))
    if fallbacks is None or not fallbacks.prefers_first(context, first, last, options=options, policy=policy, now=now):
        return ordered
    return tuple(sorted(ordered, key=lambda model: model.full_name() != name))
