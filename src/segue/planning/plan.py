"""Compare models for the next requests of a conversation: what they cost, what fits, what is lost.

What a request costs is its input by price class, and the output that the conversation lets one expect:
- The next request is projected and counted like one that is sent. Later ones grow by what replies, users and tools have
  added so far.
- What a model reads from its cache is what it got in its last request, as long as its cache keeps it and the request
  still begins with it. A model that was never asked in this conversation reads nothing.
- A conversation whose requests are sometimes late for the cache is late as often from now on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import exp, isfinite, sqrt
from typing import Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, Message, Usage
from segue.counting.counter import TokenCounter
from segue.counting.estimates import Estimate
from segue.errors import SettingsError
from segue.models.catalogue import Catalogue, get_model, installed_catalogue
from segue.models.model import Model
from segue.models.price import compute_cost
from segue.planning.caches import CacheHabit, find_habit
from segue.planning.habits import Habits, Spread
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project
from segue.projection.report import SENTENCES, ChangeCode, Loss, Report
from segue.protocols.context_input import ContextInput, read_input

_INTERVAL: Final = 1.645
"""Standard deviations of an interval that holds nine in ten."""
_CUTS: Final = frozenset({ChangeCode.TURNS_DROPPED, ChangeCode.RESULT_SHORTENED, ChangeCode.MEDIA_SHORTENED})
GIVEN_UP: Final = frozenset(
    {
        ChangeCode.THINKING_DROPPED,
        ChangeCode.THINKING_AS_TEXT,
        ChangeCode.THINKING_BLANK,
        ChangeCode.REASONING_WITHHELD,
    }
)


@final
class Money(NamedTuple):
    """US dollars: what is expected, and an interval that nine in ten are in.

    Of one request it is the figure that is as often too high as too low. Several cost more together than the sum of
    these: replies are mostly short, and sometimes very long.
    """

    expected: float
    low: float
    high: float


@final
class PlannedRequest(NamedTuple):
    """One of the next requests, in tokens and dollars."""

    input: int
    """Tokens at the full price."""
    cache_read: int
    cache_write: int
    output: int
    money: Money | None
    """None where the model has no known price."""
    fits: bool
    """Whether it fits into the window without a cut."""

    @property
    def size(self) -> int:
        """The tokens of the whole input."""
        return self.input + self.cache_read + self.cache_write


@final
class PlannedLoss(NamedTuple):
    """One kind of change that loses something on the way to a model."""

    code: ChangeCode
    loss: Loss
    messages: int
    sentence: str


@final
class GivenUp(NamedTuple):
    """Reasoning in the conversation that a model does not get: blocks, their tokens, and what they cost to make."""

    blocks: int = 0
    tokens: int = 0
    cost: float = 0.0


@final
class ModelPlan(NamedTuple):
    """What one model would cost and lose."""

    model: Model
    requests: tuple[PlannedRequest, ...]
    """The next ones, in order; empty if nothing of the conversation can be sent."""
    money: Money | None
    """All of them together."""
    losses: tuple[PlannedLoss, ...]
    given_up: GivenUp
    warm_seconds: float
    """How long the cache of the model keeps its last request from now on; 0 if it has expired, or never had it."""
    back: Money | None
    """What the first request costs at the present model if the conversation returns to it after these."""
    break_even: int | None
    """After how many requests this model has cost less than the present one; 0: from the first on, None: after none of
    these, or a price is not known."""
    reason: str = ""
    """Why nothing can be sent."""

    @property
    def fits(self) -> bool:
        """Whether the next request fits without a cut."""
        return bool(self.requests) and self.requests[0].fits


@final
class Plan(NamedTuple):
    """The present model, if the conversation names one that is known, and the others, as they were asked for."""

    present: ModelPlan | None
    models: tuple[ModelPlan, ...]

    def cheapest(self) -> ModelPlan | None:
        """Return the model with the lowest cost for all requests; None if no price is known."""
        known = [each for each in (*self.models, self.present) if each is not None and each.money is not None]
        return min(known, key=lambda each: cast("Money", each.money).expected, default=None)


def plan(
    context: ContextInput,
    models: Sequence[Model | str],
    *,
    turns: int = 10,
    now: int | None = None,
    is_cached: bool = True,
    options: Options | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
) -> Plan:
    """Plan the next requests of a conversation for each of the models: cost, size, cache, what is lost.

    `turns` is the number of requests. `now` is the time in milliseconds, for caches that expire; without it no time has
    passed since the last message. `is_cached`: cache marks are sent where a model needs them, as agents and the gateway
    do. `options` and `policy` are those of the requests.

    Raises:
        UnknownModel: the catalogue has no model of that name.
        SettingsError: `turns` or `now` is not a number that can be meant, or `models` is one model.
    """
    check_turns(turns)
    wanted = list_models(models, "plan")
    if now is not None and not (isinstance(now, (int, float)) and isfinite(now)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"`now` is the time in milliseconds, got {now!r}", key="now")
    given = read_input(context)
    planner = _Planner(given, now, options or Options(), policy, is_cached=is_cached)
    present = find_present(given, catalogue=catalogue)
    stays = None if present is None else planner.look_at(present)
    targets = [get_model(each, catalogue=catalogue) for each in wanted]
    looks = [stays if stays is not None and each == stays.model else planner.look_at(each) for each in targets]
    return Plan(
        None if stays is None else stays.report(turns, stays),
        tuple(look.report(turns, stays) for look in looks),
    )


def list_models(models: Iterable[Model | str], taker: str) -> tuple[Model | str, ...]:
    """Return the models that a caller passed as a list.

    Raises:
        SettingsError: they are one model, or nothing that can be iterated.
    """
    if isinstance(models, (str, Model)):
        raise SettingsError(f"{taker} takes a list of models, not one model; write [model]", key="models")
    if not isinstance(models, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"{taker} takes a list of models, got {models!r}", key="models")
    return tuple(models)


_MOST_TURNS: Final = 10_000
"""Planning takes time for each request."""


def check_turns(turns: int) -> None:
    """Refuse a number of requests that is none.

    Raises:
        SettingsError: it is not a positive integer, or so large that planning would take minutes.
    """
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"`turns` has to be at least 1, got {turns!r}", key="turns")
    if turns > _MOST_TURNS:
        raise SettingsError(f"`turns` has to be at most {_MOST_TURNS:,}, got {turns:,}", key="turns")


def plan_model(
    context: Context,
    model: Model,
    *,
    turns: int = 10,
    now: int | None = None,
    options: Options | None = None,
    policy: Policy | None = None,
) -> ModelPlan:
    """Plan for one model, without a comparison with the present one: less work, at the moment of a failure."""
    return _Planner(context, now, options or Options(), policy, is_cached=True).look_at(model).report(turns, None)


def find_present(context: Context, *, catalogue: Catalogue | None = None) -> Model | None:
    """Return the model that answered last; None if there is none that the catalogue knows."""
    for message in reversed(context.messages):
        if message.role == "assistant" and message.error_message is None and message.model:
            name = f"{message.provider}/{message.model}" if message.provider else message.model
            return (catalogue or installed_catalogue()).lookup(name)
    return None


def _time_of(message: Message) -> int | None:
    return None if message.role == "system" else message.timestamp


class _Planner:
    def __init__(
        self, context: Context, now: int | None, options: Options, policy: Policy | None, *, is_cached: bool
    ) -> None:
        self.context = context
        times = [time for each in context.messages if (time := _time_of(each)) is not None]
        self.now: int | None = now if now is not None else max(times, default=None)
        self.options = options
        self.policy = policy
        self.is_cached = is_cached

    def look_at(self, model: Model) -> _Look:
        projection = project(self.context, model, options=self.options, policy=self.policy)
        for each in projection.requirements:
            if each.kind == "windowTooSmall":
                reason = f"the window is too small: {each.needed:,} tokens have to be sent, and {each.limit:,} fit"
                return _Look(self, model, None, reason)
        return _Look(self, model, projection)


class _Priced(NamedTuple):
    """A planned request, what it costs in the mean, and how much more it may cost among others."""

    request: PlannedRequest
    mean: float
    above: float


class _Look:
    """One model: its next request, its cache, and what the conversation is like in its tokens."""

    def __init__(self, planner: _Planner, model: Model, projection: Projection | None, reason: str = "") -> None:
        self.model = model
        self._planner = planner
        self._projection = projection
        self._reason = reason
        self._habits = Habits(planner.context, model)
        self._counter = TokenCounter(model, planner.policy.counter if planner.policy else None)
        self._habit: CacheHabit | None = find_habit(model)
        if self._habit is not None and self._habit.kind == "marked" and not planner.is_cached:
            self._habit = None
        self._is_long = planner.options.cache_retention == "long"
        self._size = Estimate(0, 0, 0) if projection is None else self._count(projection)
        self._warm, self.warm_seconds = self._find_warm()
        self._ends_with_reply = bool(planner.context.messages) and planner.context.messages[-1].role == "assistant"

    # -- the next request ----------------------------------------------------------------------------------------------

    def _count(self, projection: Projection) -> Estimate:
        fixed = self._counter.fixed(projection.context, projection.options)
        sent = projection.context
        return self._counter.request(sent.messages, fixed, projection.options, sent.tools)

    def _find_warm(self) -> tuple[int, float]:
        """Find what the model still has in its cache of this conversation: tokens, and for how many seconds."""
        planner, habit = self._planner, self._habit
        if habit is None or self._projection is None:
            return 0, 0.0
        for at in range(len(planner.context.messages) - 1, -1, -1):
            message = planner.context.messages[at]
            if message.role != "assistant" or (message.provider, message.model) != (self.model.provider, self.model.id):
                continue
            age = 0.0
            if planner.now is not None and message.timestamp is not None:
                age = max(0.0, (planner.now - message.timestamp) / 1000)
            left = self._lifetime(habit) - age
            if left <= 0:
                return 0, 0.0
            return self._count_common(planner.context.messages[:at], message), left
        return 0, 0.0

    def _lifetime(self, habit: CacheHabit) -> float:
        return habit.long_lifetime if self._is_long else habit.lifetime

    def _count_common(self, earlier: tuple[Message, ...], reply: AssistantMessage) -> int:
        """Count what an earlier request and the next one begin with, as the model gets them."""
        planner, now = self._planner, cast("Projection", self._projection)
        if not earlier:
            return 0
        then = project(
            replace(planner.context, messages=earlier), self.model, options=planner.options, policy=planner.policy
        )
        common, messages = 0, now.context.messages
        for one, other in zip(then.context.messages, messages, strict=False):
            if one is not other and one != other:
                break
            common += 1
        usage = reply.usage
        if (
            usage is not None
            and usage.input + usage.cache_read + usage.cache_write
            and common == len(then.context.messages)
        ):
            return usage.input + usage.cache_read + usage.cache_write
        fixed = self._counter.fixed(now.context, now.options)
        return self._counter.request(messages[:common], fixed, now.options, now.context.tools).tokens

    # -- requests ------------------------------------------------------------------------------------------------------

    def requests(self, count: int) -> list[_Priced]:
        """Plan so many requests."""
        if self._projection is None:
            return []
        habits, habit = self._habits, self._habit
        messages = self._planner.context.messages
        after_result = bool(messages) and messages[-1].role == "toolResult"
        first, later = habits.output(after_result=after_result), habits.output()
        growth = habits.growth()
        in_time = habits.share_within(self._lifetime(habit)) if habit is not None else 0.0
        # How many of them are most likely late for the cache: mostly none, and a part of one never is.
        late = min(count - 1, int(count * (1 - in_time)))
        warmth = 1 - late / max(1, count - 1)
        window = self._projection.window
        limit = window.limit if window is not None else 0
        size = float(self._size.tokens) + (habits.added().mean if self._ends_with_reply else 0.0)
        doubt = (self._size.high - self._size.low) / 2 / max(1, self._size.tokens)
        is_cut = any(change.code in _CUTS for change in self._projection.report.changes)
        planned: list[_Priced] = []
        warm, chances = float(self._warm), (1.0, 1.0)
        for number in range(count):
            fits = not is_cut if number == 0 else not limit or size <= limit
            sent = min(size, limit) if limit else size
            output = first if number == 0 else later
            if number:
                # The next sizes are not known: each may differ from the mean, and so may the mean.
                doubt = min(1.0, growth.deviation * (sqrt(number) + number / sqrt(habits.replies + 1)) / sent)
            planned.append(self._price(sent, warm, chances, output, doubt, fits=fits, is_known=not number))
            # A request that is cut begins differently, and reads nothing of what came before.
            warm, chances = (sent if fits else 0.0), (warmth, in_time)
            size += growth.mean
        return planned

    def _price(
        self,
        size: float,
        warm: float,
        chances: tuple[float, float],
        output: Spread,
        doubt: float,
        *,
        fits: bool,
        is_known: bool,
    ) -> _Priced:
        """Price a request; `chances` of a warm cache: the most likely one, and the true one."""
        hot, cold = self._split(size, warm), self._split(size, 0.0)
        warmth, chance = chances
        read, written = (warmth * one + (1 - warmth) * other for one, other in zip(hot, cold, strict=True))
        usage = Usage(
            input=round(size - read - written),
            cache_read=round(read),
            cache_write=round(written),
            output=round(output.likely),
        )
        money, mean, more = None, 0.0, 0.0
        if self.is_priced:
            costs = [self._cost(size, part, 0.0) for part in (hot, cold)]
            entered = warmth * costs[0] + (1 - warmth) * costs[1]
            rate = self._rate(size)
            expected, mean = entered + output.likely * rate, entered + output.mean * rate
            fresh = 0.0 if is_known else self._habits.growth().deviation * self._new_rate()
            cold_share = chance * (1 - chance) * (costs[0] - costs[1]) ** 2
            spread = sqrt((_INTERVAL * doubt * entered) ** 2 + (_INTERVAL * fresh) ** 2 + _INTERVAL**2 * cold_share)
            reach = exp(_INTERVAL * output.factor)
            below, above = (sqrt(spread**2 + (output.likely * rate * part) ** 2) for part in (1 - 1 / reach, reach - 1))
            more = sqrt(spread**2 + (_INTERVAL * output.deviation * rate) ** 2)
            least = self._cost(size * (1 - doubt), (hot[0] * (1 - doubt), 0.0), 0.0)
            money = Money(expected, max(least, expected - below), expected + above)
        request = PlannedRequest(usage.input, usage.cache_read, usage.cache_write, usage.output, money, fits)
        return _Priced(request, mean, more)

    def _split(self, size: float, warm: float) -> tuple[float, float]:
        """Return what is read from the cache and written to it."""
        habit = self._habit
        if habit is None or size < habit.least:
            return 0.0, 0.0
        read = float(min(warm, size - 1) // habit.step * habit.step)
        read = read if read >= habit.least else 0.0
        is_written = habit.kind != "free" and bool(self.model.cost.cache_write)
        return read, size - read if is_written else 0.0

    def _cost(self, size: float, part: tuple[float, float], output: float) -> float:
        read, written = round(part[0]), round(part[1])
        usage = Usage(
            input=max(0, round(size) - read - written), cache_read=read, cache_write=written, output=round(output)
        )
        return compute_cost(self.model.cost, usage, cache_write_long=written if self._is_long else 0).total

    def _rate(self, size: float) -> float:
        """Return the price of one token of output in a request of this size."""
        return self._cost(size, (0.0, 0.0), 1_000.0) / 1_000 - self._cost(size, (0.0, 0.0), 0.0) / 1_000

    def _new_rate(self) -> float:
        """Return the price of one token of input that no cache has."""
        price, is_written = self.model.cost, self._habit is not None and self._habit.kind != "free"
        return (price.cache_write if is_written and price.cache_write else price.input) / 1_000_000

    @property
    def is_priced(self) -> bool:
        """Whether the catalogue has a price."""
        return bool(self.model.cost.input or self.model.cost.output)

    def come_back(self, turns: int) -> Money | None:
        """Plan the first request after so many at another model."""
        if self._projection is None or not self.is_priced:
            return None
        habits = self._habits
        size = self._size.tokens + turns * habits.growth().mean
        warm = self._warm if turns * habits.seconds() < self.warm_seconds else 0
        doubt = (self._size.high - self._size.low) / 2 / max(1, self._size.tokens)
        return self._price(size, warm, (1.0, 1.0), habits.output(), doubt, fits=True, is_known=False).request.money

    # -- the report ----------------------------------------------------------------------------------------------------

    def report(self, turns: int, present: _Look | None) -> ModelPlan:
        """Report what was found; `present` is the look at the model that answers now."""
        requests = self.requests(turns)
        report = Report() if self._projection is None else self._projection.report
        return ModelPlan(
            model=self.model,
            requests=tuple(each.request for each in requests),
            money=_add(requests),
            losses=tuple(_count_losses(report)),
            given_up=_count_given_up(report, self._planner.context),
            warm_seconds=self.warm_seconds,
            back=present.come_back(turns) if present is not None and present is not self else None,
            break_even=None if present is None or present is self else _break_even(requests, present.requests(turns)),
            reason=self._reason,
        )


def _add(parts: Sequence[_Priced]) -> Money | None:
    """Add requests up: one is what is most likely for it, several are what they cost in the mean."""
    known = [each.request.money for each in parts if each.request.money is not None]
    if not known or len(known) < len(parts):
        return None
    if len(known) == 1:
        return known[0]
    expected = sum(each.mean for each in parts)
    # Half of the doubt is common to all of them: a session that grows faster than it did goes on to do so.
    below, above = (
        (sqrt(sum(part**2 for part in parts_)) + sum(parts_)) / 2
        for parts_ in (
            [each.expected - each.low for each in known],
            [each.above for each in parts],
        )
    )
    return Money(expected, max(0.0, expected - below), expected + above)


def _break_even(ours: Sequence[_Priced], theirs: Sequence[_Priced]) -> int | None:
    """Return after how many requests one model has cost less than another, and does so until the end."""
    sums = [list(accumulate(each.mean for each in part if each.request.money is not None)) for part in (ours, theirs)]
    if not ours or not len(ours) == len(theirs) == len(sums[0]) == len(sums[1]):
        return None
    dearer = [at for at, (mine, other) in enumerate(zip(*sums, strict=True)) if mine > other]
    last = max(dearer, default=-1) + 1
    return None if last == len(ours) else last


def _count_losses(report: Report) -> Iterable[PlannedLoss]:
    counts: dict[tuple[ChangeCode, Loss], int] = {}
    for change in report.losses:
        counts[change.code, change.loss] = counts.get((change.code, change.loss), 0) + change.messages
    order = [Loss.CONTENT, Loss.OPAQUE]
    for (code, loss), count in sorted(counts.items(), key=lambda each: (order.index(each[0][1]), -each[1], each[0][0])):
        yield PlannedLoss(code, loss, count, SENTENCES[code])


def _count_given_up(report: Report, context: Context) -> GivenUp:
    """Add up the reasoning that is not sent as such; its price is what its model took for it."""
    prices: dict[str, float] = {}
    blocks = tokens = 0
    cost = 0.0
    seen: set[int] = set()
    for change in report.changes:
        index = change.path[1] if len(change.path) > 1 and change.path[0] == "messages" else None
        if change.code not in GIVEN_UP or not isinstance(index, int) or not 0 <= index < len(context.messages):
            continue
        blocks += 1
        message = context.messages[index]
        if index in seen or message.role != "assistant" or message.usage is None:
            continue
        seen.add(index)
        tokens += message.usage.reasoning
        cost += message.usage.reasoning * _output_price(message, prices) / 1_000_000
    return GivenUp(blocks, tokens, cost)


def _output_price(message: AssistantMessage, known: dict[str, float]) -> float:
    name = f"{message.provider}/{message.model}"
    if name not in known:
        found = installed_catalogue().lookup(name)
        known[name] = 0.0 if found is None else found.cost.output
    return known[name]
