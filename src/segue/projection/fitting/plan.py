"""What fitting has to keep to for one target: the limit of tokens and the limits of media."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent
from segue.counting.counter import TokenCounter
from segue.counting.media import count_pages
from segue.counting.upper_estimates import SHORT
from segue.models.model import Model, Price
from segue.models.rules import Rules
from segue.projection.passes.media_fit import edge_of, kind_of
from segue.projection.policy import Fit, Policy
from segue.protocols.kit.facts import ServerEdit

Amount = Callable[[ImageContent | FileContent], int]

_SMALLEST_SHARE: Final = 8
_LARGEST_RESERVE: Final = 16_384
_UNSURE: Final = 0.045
"""The part of a window that is kept free for the error of the estimate. The upper estimates of other texts than English
prose have a margin in addition, the larger the smaller the reserve for the reply is."""
_SHORT_SHARE: Final = 25
"""Texts of fewer bytes than this part of the limit, a hundredth of it in tokens, have the plain estimate: the
upper estimate takes several times as long."""
_SMALLEST_NOTE: Final = 60
_SHARE_OF_NOTE: Final = 0.08
_LARGEST_NOTE: Final = 6000
_ROOM_FOR_TWO: Final = 240
"""What the newest and the first message of the user need to be understood, 120 tokens each."""
_DEFAULT_FIT: Final = Fit()
_SMALLEST_LOW: Final = 0.33
_LARGEST_LOW: Final = 0.6
"""Below the one, too little is left word for word; above the other, cuts follow each other too soon."""
_DEEP_ENOUGH: Final = 0.9
"""A cut goes at least so far below the high mark, where a wide error bar brings that down."""
_DEEPEST: Final = 0.25
"""The low mark of a cut that loses reasoning is not below this."""
_CACHE_PRICES: Final = (0.1, 1.25)
"""Where prices are not known: what reading from the cache and writing to it cost, compared with plain input."""
_NEW, _MOST_NEW = 1 / 56, 1 / 40
"""The new tokens of a turn, as a part of the limit: 500 in a window of 32,000. (77 recorded sessions, 2026-11) Where
turns are longer, cuts go further down, else they would follow each other soon; with 700 tokens as far as they go."""
_WORTH: Final = 1.25
"""How many per cent of the price of input a hundredth of the limit has to save, else it is kept. Of what the next call
quotes word for word, a hundredth holds 0.2 to 0.4 %. (the same) A cut ends at the mark, because the note takes what
whole units leave: with 1.34, requests would have 4 % more tokens. (28 other sessions, 2026-11-17)"""
_REASONING_PRICE: Final = 5.0
"""Where prices are not known: that of Claude Opus 5.5, $20 for output, $4 for input, $0.20 from the cache."""


@final
class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """A limit on the media of one request; `amount` gives what one image or file counts for, 0 for others."""

    name: str
    limit: int
    amount: Amount
    only_beside: Amount | None = None
    """The limit holds only in a request with media for which this is more than 0; None: in every request."""


class FitPlan:
    """The limits of one target under one policy, resolved once."""

    __slots__ = (
        "_price",
        "above",
        "counter",
        "edit",
        "fit",
        "high",
        "keep",
        "least_head",
        "limit",
        "most",
        "low_share",
        "quotas",
        "reasoning_price",
        "summary_most",
        "summary_room",
        "users_room",
        "window",
    )

    def __init__(self, model: Model, rules: Rules, policy: Policy, *, window: int | None = None) -> None:
        fit = policy.fit or _DEFAULT_FIT
        if window is not None:
            fit = replace(fit, window=window)
        self.fit: Fit = fit
        self.window: int = 0 if policy.fit is None else fit.window or model.context_window or model.max_input
        """The tokens of input and output together; 0 where they are not known, or where nothing is to be cut."""
        self.limit: int = _input_limit(model, fit, self.window)
        """The tokens that the input may have."""
        least = max(SHORT, self.limit // _SHORT_SHARE)
        self.most: float = self.limit if policy.counter else max(1.0, self.limit - _UNSURE * self.window)
        """What is estimated above this is not sent."""
        whole = min(self.window, model.max_input or self.window)
        self.counter: TokenCounter = TokenCounter(model, policy.counter, upper=least, share=self.most / (whole or 1))
        # The upper end of an estimate may take half of what is kept free for the reply, but no more.
        within = (self.limit + whole) // 2
        self.high: float = min(self.limit * fit.high, self.most, self.counter.most_within(max(self.limit, within)))
        self.above: int | None = max(rules.least("compaction"), round(self.high)) if self.limit else None
        """Above so many tokens the server is asked to shorten the conversation; None: it decides."""
        self.edit: ServerEdit | None = _server_edit(fit, rules, self.limit)
        if self.edit is not None:
            self.high = self.most  # the server counts for itself; what is more than it can take is cut here
        self._price: Price = model.cost
        self.low_share: float = _low_by_price(model.cost, fit.high, fit.keep, _NEW) if fit.low is None else fit.low
        self.keep: float = self.limit * fit.keep
        self.least_head: float = self.limit / 10
        """The first user message is kept whole if it is not larger than this."""
        self.users_room: float = max(self.limit / 10, min(_ROOM_FOR_TWO, self.limit / 5))
        """Kept free for what the user said in messages that are left out: the task is never dropped with them. With a
        tenth of the limit, 100 % of the recorded requests had the task; with none 72 to 86 %. (77 sessions, 2026-11)"""
        self.summary_room: float = min(_LARGEST_NOTE, max(_SMALLEST_NOTE, self.limit * _SHARE_OF_NOTE))
        """Kept free for what represents the messages left out: a summary that comes later must not move the cut."""
        self.summary_most: float = self.limit / 4
        """A longer summary is shortened: the newest messages say more than it does."""
        self.quotas: tuple[Quota, ...] = _quotas(rules)
        self.reasoning_price: float = _reasoning_price(model) if rules.bound_prefix else 0.0
        """What a token of reasoning is worth that a cut loses, in tokens that are read anew instead of from the cache;
        0 where a cut loses none."""

    def low_after(self, turn: float, lost: float) -> float:
        """Return the low mark of a cut where turns have so many tokens, and which loses so many tokens of reasoning.

        A cut reads what is left anew, and the model has to think again. The mark is lowered, not below the newest part
        that stays nor 0.25, until a token of the room that the cut makes costs no more than without reasoning.
        """
        fit, share = self.fit, self.low_share
        if fit.low is None and turn > _NEW * self.limit:
            new = round(min(_MOST_NEW, turn / self.limit), 3)
            share = _low_by_price(self._price, fit.high, fit.keep, new)
        low = min(self.limit * share, self.high * _DEEP_ENOUGH)
        price = lost * self.reasoning_price
        least = max(self.keep, min(low, self.limit * _DEEPEST))
        return max(least, low - price * (self.high - low) / self.high) if price else low


_last: tuple[Model, Rules, Policy, FitPlan] | None = None


def find_plan(model: Model, rules: Rules, policy: Policy) -> FitPlan:
    """Return the plan of a target.

    That of the last call is used again, because a corpus has one target for all rows.
    """
    global _last  # noqa: PLW0603 - a cache of one entry, replaced as a whole
    known = _last
    if known is not None and known[0] is model and known[1] is rules and known[2] is policy:
        return known[3]
    plan = FitPlan(model, rules, policy)
    _last = (model, rules, policy, plan)
    return plan


def _server_edit(fit: Fit, rules: Rules, limit: int) -> ServerEdit | None:
    """Return what the server is asked to do; None where it cannot, or not before the window is full."""
    if fit.server == "no" or fit.server not in rules.server_edits:
        return None
    is_too_late = fit.server == "compact" and 0 < limit * fit.high < rules.least("compaction")
    return None if is_too_late else fit.server


def _input_limit(model: Model, fit: Fit, window: int) -> int:
    """Return the limit of the input.

    The reserve does not depend on the request: else an option would move every cut.
    """
    if not window:
        return 0
    reserve = fit.reserve
    if reserve is None:
        reserve = min(model.max_tokens or _LARGEST_RESERVE, window // _SMALLEST_SHARE, _LARGEST_RESERVE)
    most = window - reserve
    if model.max_input and not fit.window:
        most = min(most, model.max_input)
    return max(1, most)


@lru_cache(maxsize=64)
def _low_by_price(price: Price, high: float, keep: float, new: float) -> float:
    """Choose the low mark by the prices of the cache: the cheaper it is to read, the further down a cut goes.

    With marks at `high` and `low`, a turn reads their middle on average, and writes its new tokens; and for each token
    that a cut frees, `low / (high - low)` others are written anew. That is least for the lowest mark, at every price.
    So the mark goes down only as long as the saving is worth what the model no longer reads.
    """
    if price.input:
        read = (price.cache_read or price.input) / price.input
        write = (price.cache_write or price.input) / price.input
    else:
        read, write = _CACHE_PRICES

    def cost(low: float) -> float:
        return read * (high + low) / 2 + max(0.0, write - read) * new * high / (high - low)

    low = min(_LARGEST_LOW, max(keep, high - 0.2))
    while low > max(_SMALLEST_LOW, keep) and cost(low) - cost(low - 0.01) >= _WORTH / 100 * cost(low):
        low -= 0.01
    return round(low, 2)


def _reasoning_price(model: Model) -> float:
    price = model.cost
    saved = price.input - price.cache_read
    return price.output / saved if saved > 0 and price.output else _REASONING_PRICE


def _quotas(rules: Rules) -> tuple[Quota, ...]:
    def is_large(piece: ImageContent | FileContent) -> int:
        return 1 if kind_of(piece) == "image" and edge_of(piece) > rules.least("large_images") else 0

    rows = (
        Quota(name="images", limit=rules.max_images, amount=_one_image),
        Quota(
            name="images beside large ones", limit=rules.most("large_images"), amount=_one_image, only_beside=is_large
        ),
        Quota(name="files", limit=rules.most("files"), amount=lambda piece: kind_of(piece) != "image"),
        Quota(name="pages", limit=rules.most("pages"), amount=_pages),
        Quota(name="bytes", limit=rules.most("request_media"), amount=_bytes),
    )
    return tuple(row for row in rows if row.limit)


def _one_image(piece: ImageContent | FileContent) -> int:
    return 1 if kind_of(piece) == "image" else 0


def _pages(piece: ImageContent | FileContent) -> int:
    return (
        count_pages(piece.data) if piece.kind == "file" and piece.mime_type == "application/pdf" and piece.data else 0
    )


def _bytes(piece: ImageContent | FileContent) -> int:
    return len(piece.data or "")
