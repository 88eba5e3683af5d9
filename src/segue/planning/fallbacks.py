"""Choose the next model at the moment of a failure: by what it costs, within limits on price and loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, final, overload

from segue.conversation.context import Context, Options
from segue.errors import SegueError, SettingsError
from segue.models.model import Model
from segue.planning.plan import GIVEN_UP, ModelPlan, check_turns, list_models, plan_model
from segue.projection.policy import Policy
from segue.projection.report import ChangeCode, Loss

LossKind: TypeAlias = Literal["media", "reasoning", "tools", "turns", "content"]
"""What a fallback may be forbidden to lose; `content` is everything that a model would read."""

_CODES: Final[Mapping[str, frozenset[ChangeCode]]] = {
    "media": frozenset(code for code in ChangeCode if code.startswith("media_")),
    "reasoning": GIVEN_UP,
    "tools": frozenset({ChangeCode.TOOL_REMOVED, ChangeCode.TOOL_SEARCH_REMOVED, ChangeCode.CALL_AS_TEXT}),
    "turns": frozenset({ChangeCode.TURNS_DROPPED, ChangeCode.RESULT_SHORTENED}),
}
_KINDS: Final = (*_CODES, "content")
_ORDERS: Final = ("given", "cost")


class LeftOut(NamedTuple):
    """A model that was not tried, and why."""

    model: Model
    reason: str


@final
class FallbackPolicy(Sequence["Model | str"]):
    """Fallback models, and how the next one is chosen when a request fails. It is used as `fallback_models`.

    - `order`: "cost" tries the model first that costs least for the next `turns` requests of this conversation, "given"
      keeps the order. Models without a known price come last.
    - `max_dollars`: models whose next request is expected to cost more are left out, and those without a known price.
    - `never_lose`: models that would lose any of these on the way are left out: "media", "reasoning", "tools", "turns"
      (messages that do not fit), or "content" for everything that a model would read.
    - `rest_seconds`: how long a model that failed is not asked first again. After that, a conversation that stays with
      the model that answered returns to the first one, if that costs less for the next `turns` requests, or has
      reasoning in the history that is worth more than the difference.
    """

    __slots__ = ("_models", "max_dollars", "never_lose", "order", "rest_seconds", "turns")

    def __init__(
        self,
        models: Iterable[Model | str],
        *,
        order: Literal["given", "cost"] = "cost",
        turns: int = 10,
        max_dollars: float | None = None,
        never_lose: Iterable[LossKind] = (),
        rest_seconds: float = 60.0,
    ) -> None:
        self._models: tuple[Model | str, ...] = list_models(models, "FallbackPolicy")
        self.order: Literal["given", "cost"] = order
        self.turns: int = turns
        self.max_dollars: float | None = max_dollars
        if isinstance(never_lose, str) or not isinstance(never_lose, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SettingsError(f"never_lose takes a list of kinds of losses, got {never_lose!r}", key="never_lose")
        self.never_lose: frozenset[LossKind] = frozenset(never_lose)
        self.rest_seconds: float = rest_seconds
        unknown = sorted(self.never_lose.difference(_KINDS))
        if unknown:
            raise SettingsError(f"never_lose: {unknown[0]!r} is not one of {', '.join(_KINDS)}", key="never_lose")
        if order not in _ORDERS:
            raise SettingsError(f"order: {order!r} is not one of {', '.join(_ORDERS)}", key="order")
        check_turns(turns)
        for name, amount in (("max_dollars", max_dollars), ("rest_seconds", rest_seconds)):
            if amount is not None and not (isinstance(amount, (int, float)) and amount >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise SettingsError(f"{name}={amount!r}: expected a number of at least 0", key=name)

    def __len__(self) -> int:
        return len(self._models)

    @overload
    def __getitem__(self, index: int) -> Model | str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Model | str]: ...
    def __getitem__(self, index: int | slice) -> Model | str | Sequence[Model | str]:
        return self._models[index]

    def __repr__(self) -> str:
        return f"FallbackPolicy({list(self._models)!r}, order={self.order!r})"

    def with_models(self, models: Iterable[Model | str]) -> FallbackPolicy:
        """Return the same policy for other models."""
        return FallbackPolicy(
            models,
            order=self.order,
            turns=self.turns,
            max_dollars=self.max_dollars,
            never_lose=self.never_lose,
            rest_seconds=self.rest_seconds,
        )

    def arrange(
        self,
        context: Context,
        models: Sequence[Model],
        *,
        options: Options | None = None,
        policy: Policy | None = None,
        now: int | None = None,
        failed: Model | None = None,
    ) -> tuple[tuple[Model, ...], tuple[LeftOut, ...]]:
        """Return the models in the order in which to try them, and those that are left out with the reasons.

        Other accounts of the model that `failed` come first: with them the conversation changes nothing else.
        """
        taken: list[ModelPlan] = []
        left: list[LeftOut] = []
        same = [each for each in models if failed is not None and each.full_name() == failed.full_name()]
        for model in models:
            if model in same:
                continue
            try:
                found = plan_model(context, model, turns=self.turns, now=now, options=options, policy=policy)
                reason = self._refuse(found)
            except SegueError as error:  # such as a change that the policy of the request refuses
                reason = str(error)
            else:
                if not reason:
                    taken.append(found)
            if reason:
                left.append(LeftOut(model, reason))
        if self.order == "cost":
            taken.sort(key=_cost)  # stable: models of the same price stay in the given order
        return (*same, *(each.model for each in taken)), tuple(left)

    def _refuse(self, found: ModelPlan) -> str:
        if not found.requests:
            return found.reason or "nothing of the conversation can be sent"
        lost = sorted(self.never_lose.intersection(_kinds_of(found)))
        if lost:
            return f"it would lose {', '.join(lost)}"
        if self.max_dollars is not None:
            money = found.requests[0].money
            if money is None:
                return "its price is not known"
            if money.expected > self.max_dollars:
                return f"its next request would cost ${money.expected:.4f}, more than ${self.max_dollars:.4f}"
        return ""

    def prefers_first(
        self,
        context: Context,
        first: Model,
        last: Model,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
        now: int | None = None,
    ) -> bool:
        """Whether a conversation that `last` answers should return to `first`, which failed and is well again."""
        try:
            ours, theirs = (
                plan_model(context, each, turns=self.turns, now=now, options=options, policy=policy)
                for each in (first, last)
            )
        except SegueError:  # one of them cannot be asked; the request says why
            return False
        if self._refuse(ours):
            return False
        if ours.money is None or theirs.money is None:
            return True  # the caller's first choice
        worth = max(0.0, theirs.given_up.cost - ours.given_up.cost)
        return ours.money.expected <= theirs.money.expected + worth


def _cost(found: ModelPlan) -> float:
    return float("inf") if found.money is None else found.money.expected


def _kinds_of(found: ModelPlan) -> Iterable[str]:
    for loss in found.losses:
        yield from (kind for kind, codes in _CODES.items() if loss.code in codes)
        if loss.loss == Loss.CONTENT:
            yield "content"
    if found.given_up.blocks:
        yield "reasoning"
