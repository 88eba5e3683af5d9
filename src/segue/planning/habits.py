"""What a conversation has been like so far: how long its replies are, how fast it grows, how much time passes.

A reply is an observation. What it was is known from its usage, where the provider told it, and from its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import Final, NamedTuple, final

from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message
from segue.counting.counter import TokenCounter
from segue.models.model import Model

_FADING: Final = 0.9
"""The weight of a reply against the one after it: sessions change their character."""
_PRIOR: Final = 150.0
"""Tokens of a reply where the conversation has none yet: the mean of 4,200 recorded replies (2026-11-18)."""
_LIKELY: Final = (25.0, 180.0)
"""The same, their median: without reasoning, and with it (620 recorded replies in conversations, 2026-11-18)."""
_LIKELY_WEIGHT: Final = 0.1
_FACTOR: Final = 1.4
"""The deviation of the logarithm of a reply from the one before it: 1.0 to 1.4 by situation (the same)."""
_FACTOR_WEIGHT: Final = 2.0
_IN_TIME: Final = (5.8, 6.0)
"""What is assumed of replies in time, and of all, before any was seen."""
_PRIOR_WEIGHT: Final = 0.25


@final
class ObservedReply(NamedTuple):
    """One reply, in tokens of the model that is asked about."""

    output: float
    """What is billed as output: visible text and calls, and the reasoning of a model that reasons."""
    visible: float
    """What later requests repeat."""
    added: float
    """What came between the reply before it and this one: user messages and tool results."""
    after_result: bool
    seconds: float | None
    """Since the reply before it; None if the messages have no times."""


@final
class Spread(NamedTuple):
    """A mean and a standard deviation; and the median with the deviation of the logarithm.

    Replies are mostly short and sometimes very long: one of them is best predicted by the median, many by the mean.
    """

    mean: float
    deviation: float
    likely: float = 0.0
    factor: float = 0.0


@final
class Habits:
    """The observations of one conversation for one model."""

    def __init__(self, context: Context, model: Model) -> None:
        self._observed = _observe(context.messages, TokenCounter(model), model)
        self._likely = _LIKELY[_reasons(context.messages, model)]

    @property
    def replies(self) -> int:
        """The number of replies that were observed."""
        return len(self._observed)

    def output(self, *, after_result: bool | None = None) -> Spread:
        """Return what a reply has as output; `after_result`: one to a tool result, or to a user."""
        chosen = [each for each in self._observed if after_result in (None, each.after_result)]
        if after_result is not None and len(chosen) < 3:
            chosen = self._observed
        return _spread([each.output for each in chosen], _PRIOR, self._likely)

    def visible(self) -> Spread:
        """Return what a reply adds to later requests."""
        return _spread([each.visible for each in self._observed], _PRIOR)

    def added(self) -> Spread:
        """Return what users and tools add before a reply."""
        return _spread([each.added for each in self._observed[1:]], _PRIOR)

    def growth(self) -> Spread:
        """Return by how much each request is larger than the one before."""
        pairs = zip(self._observed, self._observed[1:], strict=False)
        return _spread([before.visible + after.added for before, after in pairs], 2 * _PRIOR)

    def share_within(self, seconds: float) -> float:
        """Return the share of replies that come within a time after the one before; never quite all of them."""
        known = [each.seconds for each in self._observed if each.seconds is not None]
        return (sum(each <= seconds for each in known) + _IN_TIME[0]) / (len(known) + _IN_TIME[1])

    def seconds(self) -> float:
        """Return the usual time between two replies; 0 if it is not known."""
        known = sorted(each.seconds for each in self._observed if each.seconds is not None)
        return known[len(known) // 2] if known else 0.0


def _observe(messages: Sequence[Message], counter: TokenCounter, model: Model) -> list[ObservedReply]:
    observed: list[ObservedReply] = []
    added, last, before = 0.0, None, None
    for message in messages:
        if message.role != "assistant":
            added += sum(counter.message(message))
            last = message
            continue
        if message.error_message is not None or not message.content:
            continue
        visible = sum(map(counter.piece, (each for each in message.content if each.kind != "thinking")))
        seconds = None
        if message.timestamp is not None and before is not None:
            seconds = max(0.0, (message.timestamp - before) / 1000)
        observed.append(
            ObservedReply(
                _billed(message, visible, counter, model),
                visible,
                added,
                last is not None and last.role == "toolResult",
                seconds,
            )
        )
        before = message.timestamp if message.timestamp is not None else before
        added = 0.0
    return observed


def _reasons(messages: Sequence[Message], model: Model) -> bool:
    """Whether replies have reasoning: as those of the conversation, else as the model can."""
    if not model.reasoning:
        return False
    replies = [each for each in messages if each.role == "assistant" and each.content]
    return not replies or any(
        (each.usage is not None and each.usage.reasoning) or any(piece.kind == "thinking" for piece in each.content)
        for each in replies
    )


def _billed(message: AssistantMessage, visible: float, counter: TokenCounter, model: Model) -> float:
    """Return what a reply would be billed as output, had the model written it."""
    usage = message.usage
    if usage is not None and usage.output > 0 and (message.provider, message.model) == (model.provider, model.id):
        return usage.output
    thought = sum(counter.text(each.thinking) for each in message.content if each.kind == "thinking")
    hidden = max(thought, 0 if usage is None else usage.reasoning)
    return visible + (hidden if model.reasoning else 0.0)


def _spread(values: Sequence[float], prior: float, likely: float = 0.0) -> Spread:
    weights = [_FADING ** (len(values) - 1 - at) for at in range(len(values))]
    whole = sum(weights) + _PRIOR_WEIGHT
    mean = (sum(map(float.__mul__, weights, map(float, values))) + prior * _PRIOR_WEIGHT) / whole
    square = sum(weight * (value - mean) ** 2 for weight, value in zip(weights, values, strict=True))
    logs = [log(max(1.0, value)) for value in values]
    middle = (sum(map(float.__mul__, weights, logs)) + log(likely or prior) * _LIKELY_WEIGHT) / (
        sum(weights) + _LIKELY_WEIGHT
    )
    apart = sum(weight * (value - middle) ** 2 for weight, value in zip(weights, logs, strict=True))
    factor = sqrt((apart + _FACTOR_WEIGHT * _FACTOR**2) / (sum(weights) + _FACTOR_WEIGHT))
    return Spread(mean, sqrt((square + _PRIOR_WEIGHT * prior**2) / whole), exp(middle), factor)
