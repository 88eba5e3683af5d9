"""Plans as programs and people read them: JSON for the program, the inspector and the console, and a few words."""

from __future__ import annotations

from segue.foundation.plurals import counted
from segue.planning.plan import ModelPlan, Money, Plan
from segue.projection.report import Loss


def describe_losses(each: ModelPlan) -> str:
    """Describe in a few words what a model does not get."""
    parts = [] if each.fits else ["needs a cut"]
    content = [loss for loss in each.losses if loss.loss == Loss.CONTENT]
    parts += [f"{loss.code.value.replace('_', ' ')}{_count(loss.messages)}" for loss in content]
    opaque = [loss for loss in each.losses if loss.loss == Loss.OPAQUE]
    if opaque:
        parts.append(f"signatures and the like{_count(sum(loss.messages for loss in opaque))}")
    if each.given_up.tokens:
        parts.append(f"reasoning of {counted(each.given_up.tokens, 'token')} (${each.given_up.cost:.4f} to make)")
    return ", ".join(parts) or "nothing"


def _count(messages: int) -> str:
    return f" ({messages})" if messages else ""  # a change of the options or the tools is one of no message


def plan_json(found: Plan, turns: int) -> dict[str, object]:
    """Write a plan as JSON values."""
    return {
        "turns": turns,
        "present": None if found.present is None else _model_json(found.present),
        "models": [_model_json(each) for each in found.models],
    }


def _model_json(each: ModelPlan) -> dict[str, object]:
    return {
        "model": each.model.full_name(),
        "fits": each.fits,
        "reason": each.reason or None,
        "window": each.model.context_window,
        "requests": [
            {
                "input": request.input,
                "cacheRead": request.cache_read,
                "cacheWrite": request.cache_write,
                "output": request.output,
                "fits": request.fits,
                "cost": _money_json(request.money),
            }
            for request in each.requests
        ],
        "cost": _money_json(each.money),
        "warmSeconds": round(each.warm_seconds, 1),
        "breakEven": each.break_even,
        "costOfReturn": _money_json(each.back),
        "lost": describe_losses(each) if each.requests else "does not fit",
        "losses": [
            {"code": loss.code.value, "loss": loss.loss.value, "messages": loss.messages, "meaning": loss.sentence}
            for loss in each.losses
        ],
        "reasoningGivenUp": {
            "blocks": each.given_up.blocks,
            "tokens": each.given_up.tokens,
            "cost": round(each.given_up.cost, 6),
        },
    }


def _money_json(money: Money | None) -> dict[str, float] | None:
    return None if money is None else {name: round(value, 6) for name, value in money._asdict().items()}
