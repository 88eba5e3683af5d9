"""Keeps the prompt cache of a conversation alive while nobody asks, within a budget.

A provider forgets a prompt some minutes after its last use. Sending the last request again, for no answer or the
shortest one, is a use: it costs what reading the cache costs, and the next request need not write it again.

Facts, read 2026-11-19:
- Every use of a cached prefix of Claude renews its lifetime, of 5 minutes or an hour, at the price of a read.
                                                                (Anthropic documentation: prompt caching)
- Claude with `max_tokens` 0 only warms the cache.                                         (anthropic SDK 2.8.0)
- A change of `thinking` invalidates what Claude has cached of the messages, and a budget of thinking has to be below
  `max_tokens`: with a budget there is no cheap request that keeps the cache.   (Anthropic documentation: the same)
- OpenAI keeps a prefix some time after its last use, too, and writes at least 16 tokens of an answer.
                                                                (OpenAI documentation: prompt caching)
- Google, DeepSeek and others do not say what renews a prompt that they cached by themselves: nothing is sent there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Final, cast, final

from msgspec.structs import replace

from segue.client.http.clients import AsyncClient, Client
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, Usage
from segue.errors import EmptyConversation, RequestFailed, SettingsError
from segue.failures.failure import FailureKind
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.models.price import compute_cost
from segue.planning.caches import find_habit
from segue.projection.policy import Policy
from segue.protocols.context_input import ContextInput, read_input
from segue.protocols.registry import resolve_rules
from segue.requests.prepare import prepare

_MARGIN: Final = 0.8
"""The part of the lifetime after which the cache is used again."""
_LIMIT: Final = "max"
"""How the names of limits of tokens begin, on every wire."""


@final
class KeepWarm:
    """Keeps the cache of a conversation alive until the budget, in dollars, is spent. Nothing is sent by itself.

    `context` is the conversation with its newest reply, and `options` and `policy` are those of its requests. Call
    `refresh` whenever `wait` says that it is time, or let a task run `run`; both end with a reason in `stopped`. `note`
    takes the next real reply, and says what was saved. `clock` returns seconds.
    """

    def __init__(
        self,
        context: ContextInput,
        model: Model | str,
        *,
        budget: float,
        options: Options | None = None,
        policy: Policy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not (isfinite(budget) and budget >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SettingsError(f"`budget` is a number of dollars, got {budget!r}", key="budget")
        self.budget: float = float(budget)
        self.cost: float = 0.0
        """What the requests of `refresh` have cost."""
        self.saved: float = 0.0
        """What the real replies would have cost more without them."""
        self.refreshes: int = 0
        self.stopped: str = ""
        """Why nothing more is sent; empty while the cache is kept."""
        self.model: Model = get_model(model)
        self._options, self._policy, self._clock = options or Options(), policy, clock
        self._habit = find_habit(self.model)
        self._lifetime = self._spent_before = 0.0
        self._context, self._reply = Context(messages=()), AssistantMessage(content=())
        self._asked = self._used = clock()
        self._begin(read_input(context))

    def wait(self) -> float | None:
        """Return the seconds until the next refresh; None if there will be none."""
        if self.stopped:
            return None
        return max(0.0, self._used + self._lifetime * _MARGIN - self._clock())

    def refresh(self, client: Client) -> bool:
        """Use the cache once, now. False if nothing was sent, or it failed; `stopped` says why."""
        while self._may_send():
            try:
                reply = client.complete(self._context, self.model, options=self._options, policy=self._policy)
            except RequestFailed as error:
                if self._give_up(error):
                    return False
            else:
                return self._take(reply)
        return False

    async def refresh_async(self, client: AsyncClient) -> bool:
        """Use the cache once, now, like `refresh`."""
        while self._may_send():
            try:
                reply = await client.complete(self._context, self.model, options=self._options, policy=self._policy)
            except RequestFailed as error:
                if self._give_up(error):
                    return False
            else:
                return self._take(reply)
        return False

    async def run(self, client: AsyncClient) -> None:
        """Refresh whenever it is time, until it is stopped. Run it as a task; cancel that before the next request."""
        while (seconds := self.wait()) is not None:
            await asyncio.sleep(seconds)
            await self.refresh_async(client)

    def note(self, context: ContextInput) -> float:
        """Take the conversation with the next real reply, and return the dollars that it would have cost more.

        The cache of that reply is kept from then on, with what is left of the budget.
        """
        now, given = self._clock(), read_input(context)
        reply = given.messages[-1] if given.messages else None
        saved = 0.0
        if isinstance(reply, AssistantMessage) and reply.usage is not None and self.refreshes:
            usage = reply.usage
            if usage.cache_read and now - self._asked > self._lifetime:
                is_written = self._habit is not None and self._habit.kind != "free"
                cold = replace(
                    usage,
                    cache_read=0,
                    input=usage.input + (0 if is_written else usage.cache_read),
                    cache_write=usage.cache_write + (usage.cache_read if is_written else 0),
                )
                saved = self._price(cold) - self._price(usage)
        self.saved += saved
        self.stopped = ""
        self._begin(given)
        return saved

    # -- one cache -----------------------------------------------------------------------------------------------------

    def _begin(self, context: Context) -> None:
        """Look at the newest reply: what it was asked with is what the cache has."""
        self._asked = self._used = self._clock()
        self.refreshes, self._spent_before = 0, self.cost
        messages, reply = context.messages[:-1], context.messages[-1] if context.messages else None
        if not isinstance(reply, AssistantMessage):
            self.stopped = "the conversation does not end with a reply"
            return
        self._context, self._reply = replace(context, messages=messages), reply
        self.stopped = self._find_reason()

    def _find_reason(self) -> str:
        """Return why the cache cannot be kept; empty if it can."""
        habit, reply, usage = self._habit, self._reply, self._reply.usage
        if (reply.provider, reply.model) != (self.model.provider, self.model.id):
            return f"the newest reply is of {reply.model or 'an unknown model'}"
        if habit is None or not habit.renewed:
            return f"{self.model.provider} does not say what keeps a cache of {self.model.id}"
        if usage is None or (habit.kind != "free" and not usage.cache_read and not usage.cache_write):
            return "the newest request neither read a cache nor wrote one"
        is_long = self._options.cache_retention == "long"
        self._lifetime = habit.long_lifetime if is_long else habit.lifetime
        row = resolve_rules(self.model).rows.get("max_tokens")
        least = 0 if row is not None and row.least == 0 else 1
        options = replace(self._options, max_tokens=least)
        try:
            body, short = (
                prepare(self._context, self.model, options=each, policy=self._policy).body
                for each in (self._options, options)
            )
        except EmptyConversation as error:
            return str(error)
        if _without_limits(body) != _without_limits(short):
            return "a request for a short answer differs in more than its limit, so it would not read the cache"
        self._options = options
        return ""

    def _may_send(self) -> bool:
        """Whether one more use is within the budget, and is worth it."""
        if self.stopped:
            return False
        usage = self._reply.usage
        assert usage is not None
        size = usage.input + usage.cache_read + usage.cache_write
        warm = self._price(
            replace(usage, input=0, cache_read=size, cache_write=0, output=self._options.max_tokens or 0)
        )
        if self.cost + warm > self.budget:
            self.stopped = "the budget is spent"
        elif self.cost - self._spent_before + warm > self._price_of_cold(size):
            self.stopped = "to keep the cache longer costs more than to fill it again"
        elif self._clock() - self._used >= self._lifetime:
            self.stopped = "the cache has expired"
        return not self.stopped

    def _take(self, reply: AssistantMessage) -> bool:
        usage = reply.usage
        self._used = self._clock()
        self.refreshes += 1
        if usage is None:
            self.stopped = "a reply did not say what it cost"
            return False
        self.cost += self._price(usage)
        if not usage.cache_read:
            self.stopped = "a request did not read the cache"
        return not self.stopped

    def _give_up(self, error: RequestFailed) -> bool:
        """Ask for one token where none is refused; otherwise stop."""
        if self._options.max_tokens == 0 and error.failure.kind == FailureKind.INVALID_REQUEST:
            self._options = replace(self._options, max_tokens=1)
            return False
        self.stopped = f"a request failed: {error}"
        return True

    def _price_of_cold(self, size: int) -> float:
        usage = self._reply.usage
        assert usage is not None
        is_written = self._habit is not None and self._habit.kind != "free"
        written = size if is_written else 0
        return self._price(replace(usage, input=size - written, cache_read=0, cache_write=written, output=0))

    def _price(self, usage: Usage) -> float:
        is_long = self._options.cache_retention == "long"
        return compute_cost(self.model.cost, usage, cache_write_long=usage.cache_write if is_long else 0).total


def _without_limits(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[str, object]", value)
    return {key: _without_limits(item) for key, item in fields.items() if not key.startswith(_LIMIT)}
