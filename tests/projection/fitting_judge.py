"""Plays a long conversation to a target, request by request, and judges each request by an exact tokenizer."""

from __future__ import annotations

from typing import Any

from counting import exact
from projection.long_histories import begin, points
from projection.validity import find_faults
from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.counting.counter import TokenCounter
from segue.errors import SegueError
from segue.models.model import Model
from segue.projection.fitting.plan import find_plan
from segue.projection.policy import Fit, Policy
from segue.projection.projector import Projection, Projector, project
from segue.protocols.api import check, resolve_endpoint
from segue.requests.prepare import prepare

POLICY = Policy()
POLICY_FIT = Fit()
UNCUT = Policy(fit=None)


class ExactSizes:
    """The exact tokens of messages: each object is counted once, however many requests it is part of."""

    def __init__(self, model: Model, tokenizer: str, factor: float = 1.0) -> None:
        self.counter = TokenCounter(model, lambda text: round(factor * exact.count(text, tokenizer)))
        self._known: dict[int, tuple[Message, float, float]] = {}

    def message(self, message: Message) -> tuple[Message, float, float]:
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, *self.counter.message(message))
        return known

    def fixed(self, context: Context) -> float:
        return self.counter.fixed(Context(system_prompt=context.system_prompt, tools=context.tools), None)


class Verdict:
    """What a run found; the lists are empty if nothing is wrong."""

    def __init__(self) -> None:
        self.requests = 0
        self.cuts = 0
        """Cuts because of the tokens."""
        self.evictions = 0
        """Cuts because there are too many images or files."""
        self.sent = 0.0
        self.reused = 0.0
        self.most = 0.0
        """The largest exact size, as a fraction of the input limit."""
        self.tokens = 0.0
        """The estimated tokens of the whole history."""
        self.limit = 0
        self.low = 0.0
        """The mark to which a cut goes."""
        self.overflows: list[str] = []
        self.unreported: list[str] = []
        self.faults: list[str] = []
        self.too_small: list[str] = []
        self.checked = 0

    @property
    def most_cuts(self) -> float:
        """The bound on cuts: after each cut, so many tokens have to come before the next one."""
        return 1 + self.tokens / ((POLICY_FIT.high - self.low) * self.limit)


def play(
    messages: tuple[Message, ...], model: Model, sizes: ExactSizes, *, checks: int = 5, in_window: bool = False
) -> Verdict:
    """Send the request of every point through one projector.

    `checks` requests after a cut are prepared and checked as bodies, and compared with the projection of the whole.
    `in_window`: a request may take what is reserved for the reply, but no more than the window.
    """
    verdict, projector, plain = Verdict(), Projector(model), Projector(model, UNCUT)
    fixed: float | None = None
    last: Projection | None = None
    lasting: list[float] = []
    passing: list[float] = []
    for point in points(messages):
        context = begin(messages[:point])
        projection = projector.project(context)
        sent, window = projection.context.messages, projection.window
        assert window is not None
        fixed = sizes.fixed(projection.context) if fixed is None else fixed
        kept = 0 if last is None else _common(last.context.messages, sent)
        del lasting[kept:], passing[kept:]
        for message in sent[kept:]:
            _, stays, passes = sizes.message(message)
            lasting.append(stays)
            passing.append(passes)
        last_user = next((at for at in range(len(sent) - 1, 0, -1) if sent[at].role == "user"), 0)
        size = fixed + sum(lasting) + sum(passing[last_user + 1 :])
        verdict.requests += 1
        verdict.sent += size
        verdict.limit = window.limit
        if any(requirement.kind == "windowTooSmall" for requirement in projection.requirements):
            verdict.too_small.append(f"{point}: {window}")
        else:
            verdict.most = max(verdict.most, size / window.limit)
            # Above the high mark stands only what cannot be cut, a long user message for example: then the tokens that
            # are reserved for the reply make up for the error of the estimate.
            is_low = window.estimate <= POLICY_FIT.high * window.limit and not in_window
            most = window.limit if is_low else window.window
            if size > most:
                verdict.overflows.append(f"{point}: {size:.0f} of {window.limit} tokens, {window}")
        if last is not None:
            verdict.reused += fixed + sum(lasting[:kept]) + sum(passing[last_user + 1 : kept])
            if kept < len(last.context.messages):
                by_tokens = _cuts(projection, _BY_TOKENS) != _cuts(last, _BY_TOKENS)
                cut = by_tokens or _cuts(projection, _BY_COUNT) != _cuts(last, _BY_COUNT)
                verdict.cuts += by_tokens
                verdict.evictions += cut and not by_tokens
                if not cut and _is_prefix_without_cuts(plain, messages, point):
                    verdict.unreported.append(f"{point}: differs from message {kept} on; {window}")
                # What does not fit is counted above; `prepare` raises for it.
                if cut and not any(need.kind == "windowTooSmall" for need in projection.requirements):
                    _examine(projection, context, model, verdict, checks)
        last = projection
    verdict.tokens = _estimated(messages, model)
    verdict.low = find_plan(model, resolve_endpoint(model).rules, POLICY).low_share
    return verdict


def _common(before: tuple[Message, ...], after: tuple[Message, ...]) -> int:
    for at, (first, second) in enumerate(zip(before, after, strict=False)):
        if first is not second and first != second:
            return at
    return min(len(before), len(after))


_BY_TOKENS = ("result_shortened", "media_shortened", "turns_dropped")
_BY_COUNT = ("media_evicted",)


def _cuts(projection: Projection, codes: tuple[str, ...]) -> tuple[object, ...]:
    """Give what the report says about cuts of these kinds."""
    window = projection.window
    assert window is not None
    changes = tuple(
        (change.code, change.path, change.last) for change in projection.report.changes if change.code in codes
    )
    return (window.lean, window.gone, changes)


def _is_prefix_without_cuts(projector: Projector, messages: tuple[Message, ...], point: int) -> bool:
    """Whether the request before is a prefix of this one if nothing is cut; in ugly histories it may not be."""
    earlier = max(index for index in points(messages) if index < point)
    before = projector.project(begin(messages[:earlier])).context.messages
    after = projector.project(begin(messages[:point])).context.messages
    return _common(before, after) == len(before)


def _examine(projection: Projection, context: Context, model: Model, verdict: Verdict, checks: int) -> None:
    verdict.faults += find_faults(projection, model, POLICY)
    if verdict.checked >= checks:
        return
    verdict.checked += 1
    if project(context, model) != projection:
        verdict.faults.append(f"{len(context.messages)}: the projection of the whole is another one")
    again = project(projection.context, model)
    if again.context is not projection.context or again.report.changes:
        verdict.faults.append(f"{len(context.messages)}: the cut history is cut again: {again.report.changes[:3]}")
    try:
        body: Any = prepare(context, model).body
    except SegueError as error:
        verdict.faults.append(f"{len(context.messages)}: {error}")
    else:
        verdict.faults += [str(violation) for violation in check(body, protocol=model.protocol, model=model)]


def _estimated(messages: tuple[Message, ...], model: Model) -> float:
    """Estimate the whole history: as it is given, because a limit on images applies without cuts, too, or projected."""
    counter, sent = TokenCounter(model), project(begin(messages), model, policy=UNCUT).context.messages
    return max(sum(sum(counter.message(message)) for message in turns) for turns in (messages, sent))
