"""What keys spend: requests that may begin, attempts that are billed, and the store that counts them for all gateways.

A request of a key with a budget or a limit waits for the store before it is sent to a provider. What it may cost is
reserved: its input, and as many output tokens as it may have at the dearest of its models. Where less than that is
left, it gets fewer output tokens or is refused, so that a budget holds whatever runs at once; what was not used is
given back when the provider's figure is known. Other keys wait for nothing, and are counted afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil
from secrets import token_hex
from typing import Final, NamedTuple, TypeAlias, final

from msgspec.structs import replace

from segue.conversation.context import Context, Options
from segue.conversation.messages import Usage
from segue.counting.counter import TokenCounter
from segue.failures.failure import FailureKind
from segue.gateway.config import SpendingTable
from segue.gateway.intake import Admission, Refused
from segue.gateway.keys import ClientKey
from segue.gateway.learned_counts import LearnedCounts
from segue.gateway.routing import is_priced
from segue.gateway.store.accounts import Account, Lease, StoredAccount
from segue.gateway.store.ledger import LEASE, NANO, Amount, Wanted
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import StoredValue
from segue.models.model import Model
from segue.models.price import find_cost, find_share
from segue.models.providers import find_row
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.ranges import range_of
from segue.protocols.kit.server_tools import body_keys, read_definition
from segue.protocols.registry import find_protocol

_BYTES_PER_TOKEN: Final = 4
_WINDOW: Final = 200_000
"""Tokens of a window that is not known."""
_MILLION: Final = 1_000_000
_MOST_COST: Final = 10_000.0
"""Dollars that no reply costs."""
_MOST_OUTPUT: Final = 128_000
"""Output tokens of a model whose limit is not known."""
_LOOSE_OUTPUT: Final = 4_000
"""Output tokens that a reply is expected to have at most, if nothing is reserved beyond that."""
_LEAST_OUTPUT: Final = 16
"""Output tokens below which a request is refused in place of getting fewer."""
_TOOL_ROUNDS: Final = 50
"""How often a provider may read its window for one reply, as with its own tools; more is a wrong figure."""
_INPUT_SHARE: Final = 1.1
_INPUT_MORE: Final = 32
"""Input is estimated: a little more of it is reserved."""
_COUNTS_NAME: Final = "learned_counts"
_LEARNT_BETWEEN_WRITES: Final = 20
"""Requests after which what was learnt is written again."""
_PARTS: Final = ("generationConfig", "generation_config", "inferenceConfig")
"""Objects of a body that have options."""
_CHOICES: Final = ("n", "best_of", "candidateCount", "candidate_count")
"""Where a body has the number of replies that it asks for; each of them is billed."""
_MOST_CHOICES: Final = 10_000
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens")
"""Where a body limits the output. If it has several, the provider decides which one it reads."""
_TOOL_FIELDS: Final = ("mcp_servers", "plugins", "search_parameters", "connectors")
"""Fields of a body with tools that the provider runs, next to those of the protocol."""
_TOOL_RUNS: Final = 10
"""Runs of its own tools that a provider makes for one reply; more are rare."""
_AWAY: Final = (
    "the budget of this key cannot be checked, because the database of the gateway does not answer; try again"
)


Correct: TypeAlias = Callable[[Model, int], int]


class Spending:
    """The accounts of the keys of one gateway. `clock` gives Unix milliseconds."""

    def __init__(self, store: StoreService, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._name = token_hex(6)
        self.counts: LearnedCounts = LearnedCounts(None if store.store is None else store.store.get_value(_COUNTS_NAME))
        self._unwritten = 0

    def _account(self, key: ClientKey) -> Account:
        found = self._accounts.get(key.tenant)
        if found is None:
            found = self._accounts[key.tenant] = Account(key.tenant, self._name)
        return found

    async def begin(self, admission: Admission, planned: Planned, protocol: str) -> Granted | None:
        """Let a request begin. Gives the output tokens that it may have, if the client asked for more or for none.

        Raises:
            Refused: a budget is spent, a limit is reached, or that cannot be found out.
        """
        key, table = admission.key, admission.runtime.config.spending
        if not key.id or self._store.store is None or admission.lease is not None:
            return None
        rights, account, now = key.rights, self._account(key), self._clock()
        is_limited = rights.has_limits
        estimates: dict[str, int] = {}
        if is_limited and rights.has_money_budget:
            _check_price(planned, protocol)
        if planned.options is None:
            wanted = Wanted()
        elif is_limited and rights.has_reserve and table.reserve != "loose":
            wanted = await admission.run(_reserve, planned, table.output_tokens, partial(self._correct, estimates))
        else:
            wanted = _expect(planned, admission.held)
        lease = Lease(account, rights, wanted, self._write_later, table.reserve, estimates)
        if not is_limited:
            account.take(lease, now)
            admission.lease = lease
            self._write_later(account)
            return None
        try:
            is_written = await self._store.put(StoredAccount(account, lease), now, is_alone=True)
        except asyncio.CancelledError:
            account.end(lease)
            raise
        if not is_written:
            account.end(lease)
            raise Refused(_AWAY, 503, FailureKind.OVERLOADED, protocol, retry_after=2)
        if (denied := lease.denied) is not None:
            kind = FailureKind.RATE_LIMIT if denied.is_rate else FailureKind.QUOTA
            raise Refused(denied.text, None, kind, protocol, retry_after=denied.retry_after)
        admission.lease = lease
        return _find_granted(lease, planned, table)

    def begin_attempt(self, lease: Lease) -> None:
        """Note that a request to a provider begins: if this process dies, its input was sent."""
        lease.account.note_known(lease, lease.wanted.input)

    def count(self, lease: Lease, usage: Usage, *, is_measured: bool = True, is_reserved: bool = False) -> None:
        """Count an attempt that was billed; `is_reserved`: as all that was reserved for it, if that is more."""
        amount = amount_of(usage)
        if is_reserved:
            reserved = lease.wanted.at_most(lease.output)
            amount = Amount(max(amount.nano, reserved.nano), max(amount.tokens, reserved.tokens))
        is_priced = usage.cost is not None
        lease.account.count(lease, amount, self._clock(), is_priced=is_priced, is_measured=is_measured)
        self._write_later(lease.account)

    def _correct(self, estimates: dict[str, int], model: Model, counted: int) -> int:
        """Correct an estimate by what was learnt about the model, and note it in `estimates`."""
        estimates[model.full_name()] = counted
        return self.counts.correct(model.full_name(), counted)

    def learn(self, lease: Lease, model: Model, usage: Usage) -> None:
        """Take in what a provider counted for the input of a request that was estimated."""
        name, counted = model.full_name(), usage.input + usage.cache_read + usage.cache_write
        if name in lease.estimates and self.counts.note(name, lease.estimates[name], counted):
            self._unwritten += 1
            if self._unwritten >= _LEARNT_BETWEEN_WRITES:
                self._unwritten = 0
                self._store.put_later(StoredValue(_COUNTS_NAME, self.counts.dump()), self._clock())

    def _write_later(self, account: Account) -> None:
        if not account.is_queued:
            account.is_queued = True
            self._store.put_later(StoredAccount(account), self._clock())

    @property
    def is_written(self) -> bool:
        """Whether the store has everything that was counted."""
        return all(account.is_written for account in self._accounts.values())

    async def renew(self) -> None:
        """Write what running requests hold, again and again: other gateways see that this one lives."""
        while True:
            await asyncio.sleep(LEASE / 4 / 1000)
            for account in self._accounts.values():
                if account.leases:
                    for lease in tuple(account.leases):
                        if lease.progress is not None and (usage := lease.progress()) is not None:
                            has_input = usage.input or usage.cache_read or usage.cache_write
                            known = amount_of(usage)
                            account.note_known(lease, known if has_input else known.plus(lease.wanted.input))
                    self._write_later(account)


def amount_of(usage: Usage) -> Amount:
    """Return the money and the tokens of a usage."""
    cost = 0.0 if usage.cost is None else usage.cost.total
    tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
    return Amount(round(cost * NANO), max(tokens, usage.total_tokens))  # the total has those of a compaction as well


@final
class Planned(NamedTuple):
    """What decides what a request may cost.

    `options` is None if it writes nothing, as a count of tokens. `is_held`: the provider has a part of its input.
    """

    models: tuple[Model, ...]
    context: Context
    options: Options | None
    body: Mapping[str, object]
    protocol: str
    is_held: bool = False


@final
class Granted(NamedTuple):
    """The output tokens that a request may have, and why these."""

    max_tokens: int
    detail: str


def _find_share(model: Model, planned: Planned) -> float | None:
    """Return the part of the list price for the tier that a request names; other protocols do not get the name."""
    return find_share(model, planned.body) if model.protocol == planned.protocol else 1.0


def _check_price(planned: Planned, protocol: str) -> None:
    """Refuse a request whose price is not known, because a budget in dollars could not count it."""
    for model in planned.models:
        if _find_share(model, planned) is None:
            raise Refused(
                f"the price of {model.full_name()} with the service tier, speed or region of this request is not known,"
                " and this key has a budget in dollars; leave that field out, or use a key with a budget in tokens",
                403,
                FailureKind.AUTH,
                protocol,
            )


def _find_granted(lease: Lease, planned: Planned, table: SpendingTable) -> Granted | None:
    asked = None if planned.options is None else planned.options.max_tokens
    if lease.output < lease.wanted.output:
        given = "" if asked is None else f" of {asked}"
        granted = lease.output if asked is None else min(asked, lease.output)
        return Granted(granted, f"{granted}{given}: no more is left of the budget or limit of this key")
    if asked is None and planned.options is not None and table.output_tokens is not None and lease.rights.has_reserve:
        return Granted(lease.output, f"{lease.output}: spending.output_tokens of this gateway")
    return None


def _reserve(planned: Planned, cap: int | None, correct: Correct) -> Wanted:
    """Return what a request may cost: with the dearest of its models, and all output that it may have.

    `correct` corrects the estimate of the input for a model.
    """
    options, choices = planned.options or Options(), count_choices(planned.body)
    has_more = _reads_more(planned)
    made = [_reserve_at(model, planned, options, cap, correct, has_more=has_more) for model in planned.models]
    share = max(_find_share(model, planned) or 1.0 for model in planned.models)
    return Wanted(
        input=Amount(ceil(max(each.input.nano for each in made) * share), max(each.input.tokens for each in made)),
        output=max(each.output for each in made),
        rate=max(each.rate for each in made) * share,
        choices=choices,
        least=max(each.least for each in made),
        more=Amount(ceil(max(each.more.nano for each in made) * share), max(each.more.tokens for each in made)),
    )


def _reserve_at(
    model: Model, planned: Planned, options: Options, cap: int | None, correct: Correct, *, has_more: bool
) -> Wanted:
    endpoint = resolve_endpoint(model)
    window = model.max_input or model.context_window or _WINDOW
    limit = model.max_tokens or model.context_window or _MOST_OUTPUT
    given = _figures(planned.body, _LIMITS)
    output = min(max(given) if options.max_tokens in given else options.max_tokens or cap or limit, limit)
    if planned.is_held:
        read = window
    else:
        counter = TokenCounter(model)
        fixed = counter.fixed(planned.context, options)
        counted = counter.request(planned.context.messages, fixed, options, planned.context.tools).tokens
        read = min(ceil(correct(model, counted) * _INPUT_SHARE) + _INPUT_MORE, window)
    # What is written to a cache costs more than what is read: the dearest of the three rates is reserved.
    amount = max(
        _price(model, Usage(input=read)),
        _price(model, Usage(cache_write=read)),
        _price(model, Usage(cache_write=read), long=read),
    )
    more = Amount()
    if has_more and read < window:
        row = find_row(model.provider, model.base_url)
        fee = 0.0 if row is None else max((fee.dollars for fee in row.tool_fees), default=0.0)
        dollars = _price(model, Usage(cache_write=window)).nano - _price(model, Usage(cache_write=read)).nano
        more = Amount(max(dollars, 0) + round(fee * _TOOL_RUNS * NANO), window - read)
    whole = _price(model, Usage(input=read, output=_MILLION)).nano - _price(model, Usage(input=read)).nano
    is_fixed = "max_tokens" in endpoint.rules.refused_options or endpoint.dialect.max_tokens_field == "none"
    least = limit if is_fixed else max(_LEAST_OUTPUT, int(range_of("max_tokens", endpoint.rules)[0]))
    return Wanted(input=amount, output=limit if is_fixed else output, rate=whole / _MILLION, least=least, more=more)


def count_choices(body: Mapping[str, object]) -> int:
    """Return how many replies a body asks for."""
    return min(max(1, *_figures(body, _CHOICES)), _MOST_CHOICES)


def _figures(body: Mapping[str, object], names: Sequence[str]) -> list[int]:
    """Return the numbers that a body has at some keys, whatever their form; 0 if there is none."""
    parts = (body, *(object_of(body.get(name)) for name in _PARTS))
    given = [part.get(name) for part in parts for name in names]
    texts = [int(each) for each in given if isinstance(each, str) and each.isdecimal() and len(each) < 20]
    return [0, *texts, *(int(each) for each in given if isinstance(each, (int, float)))]


def _reads_more(planned: Planned) -> bool:
    """Whether the provider may read more than a request has: results of tools that it runs, and files by address."""
    record, body = find_protocol(planned.protocol), planned.body
    rows = () if record is None else record.server_tools
    if any(body.get(name) for name in (*_TOOL_FIELDS, *body_keys(rows))):
        return True
    for tool in planned.context.tools:
        if tool.kind == "native":
            use = read_definition(rows, tool.definition)
            if "mcp" in str(tool.definition.get("type")) if use is None else use.tool.kind != "tool_search":
                return True
    return any(
        piece.kind == "file" and piece.data is None for message in planned.context.messages for piece in message.content
    )


def _expect(planned: Planned, size: int) -> Wanted:
    """Return what a request is expected to cost, as far as its size and its options tell."""
    model, options = planned.models[0], planned.options or Options()
    written = min(_LOOSE_OUTPUT, options.max_tokens or _LOOSE_OUTPUT)
    read = min(size // _BYTES_PER_TOKEN, model.max_input or model.context_window or _WINDOW)
    cost = find_cost(model.cost, Usage(input=read, output=_MILLION))
    if cost is None:
        return Wanted(Amount(0, read), written)
    nano = round(cost.input * NANO)
    return Wanted(Amount(nano, read), written, (round(cost.total * NANO) - nano) / _MILLION)


def _price(model: Model, usage: Usage, *, long: int = 0) -> Amount:
    return amount_of(replace(usage, cost=find_cost(model.cost, usage, cache_write_long=long)))


def clamp_usage(usage: Usage, model: Model, *, choices: int = 1) -> Usage:
    """Return a usage whose figures are possible: not below 0, and not beyond what a request to the model can have.

    A figure that is not possible is a fault of the upstream. Below 0 it would give money back to a budget, and a huge
    one would use up the budget at once.
    """
    window = model.max_input or model.context_window or _WINDOW
    read = window * _TOOL_ROUNDS
    written = max(model.max_tokens, window, _MOST_OUTPUT) * choices
    figures = {
        "input": _between(usage.input, read),
        "cache_read": _between(usage.cache_read, read),
        "cache_write": _between(usage.cache_write, read),
        "output": _between(usage.output, written),
    }
    total = _between(usage.total_tokens, 3 * read + written)
    given = (usage.total_tokens, usage.input, usage.cache_read, usage.cache_write, usage.output)
    if given != (total, *figures.values()):
        counted = replace(usage, **figures, reasoning=_between(usage.reasoning, figures["output"]))
        most = sum(figures.values())
        usage = replace(counted, total_tokens=max(most, total), cost=find_cost(model.cost, counted))
    if usage.cost is not None and not 0 <= usage.cost.total < _MOST_COST:
        usage = replace(usage, cost=find_cost(model.cost, usage))
    return usage


def _between(value: int, most: int) -> int:
    return min(max(value, 0), most)


def check_name(name: str, key: ClientKey, protocol: str) -> None:
    """Check that a key may ask for a name.

    Raises:
        Refused: it may not.
    """
    if not key.rights.may_ask(name):
        raise Refused(f"this key may not ask for {name!r}", 403, FailureKind.AUTH, protocol)


def usable_models(models: tuple[Model, ...], key: ClientKey) -> tuple[Model, ...]:
    """Return the models that a key may use; those without a known price are left out if its money is limited."""
    rights = key.rights
    if not rights.models and not rights.has_money_budget:
        return models
    return tuple(
        model
        for model in models
        if rights.may_use(model.full_name()) and (is_priced(model) or not rights.has_money_budget)
    )


def select_models(models: tuple[Model, ...], key: ClientKey, protocol: str) -> tuple[Model, ...]:
    """Return the models that a key may use (`usable_models`).

    Raises:
        Refused: none is left.
    """
    if usable := usable_models(models, key):
        return usable
    unpriced = next((model for model in models if key.rights.may_use(model.full_name())), None)
    text = f"this key may not use {models[0].full_name()}"
    if unpriced is not None:
        text = (
            f"the price of {unpriced.full_name()} is not known, and this key has a budget in dollars; give the price"
            " in a catalogue file, or a budget in tokens"
        )
    raise Refused(text, 403, FailureKind.AUTH, protocol)
