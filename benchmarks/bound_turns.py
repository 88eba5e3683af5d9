"""What it costs to keep reasoning valid: requests to a Claude that binds it, against the same model without the check.

Two ways of sending: an outbox makes one more turn of a conversation that it knows, and a gateway makes the whole
request of a conversation that it has just decoded. The stamp of the reply is measured too: it is made when the reply
arrives, so the request does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from figures import Figure
from measure import CONTROL, Comparison, Effort, settled, time_calls
from msgspec.structs import replace
from replies import make_history
from transcripts import make_turn

from segue import Context, Message, Model, Outbox, dump, get_model, load
from segue.requests.binding.digests import DigestCache
from segue.requests.prepare import Request, prepare_again

BINDING: Final = replace(get_model("anthropic/claude-opus-5-5"), context_window=100_000_000, max_input=0)
PLAIN: Final = replace(BINDING, rules={**BINDING.rules, "bound_prefix": False, "bound_account": "no"})
_NOT_COUNTED: Final = 2
_TURNS: Final = 7
_SUBJECTS: Final[Mapping[str, Model]] = {"bound": BINDING, "plain": PLAIN, CONTROL: PLAIN}

Prepare = Callable[[Context], Request]


def measure_bound(effort: Effort, length: int) -> list[Figure]:
    """Measure a warm turn and a whole request."""
    growing = _grow(length)
    decoded = [load(dump(context)) for context in growing]
    return [
        *_figures("warm", f"warm turn after {length:,} messages", growing, _outbox, effort),
        *_figures("whole", f"whole request of {length:,} messages", decoded, _whole, effort),
    ]


def _figures(
    key: str, what: str, contexts: Sequence[Context], begin: Callable[[Model], Prepare], effort: Effort
) -> Iterator[Figure]:
    for stamps in (False, True):
        compared = _compare(contexts, begin, effort, stamps=stamps)
        ratio, control = compared.ratio("bound"), compared.control()
        label = f"{what}, with the stamp of the reply" if stamps else what
        yield Figure("" if stamps else f"bound.{key}", label, "times", ratio.best, ratio.spread())
        yield Figure("", f"{label}: without the check / itself", "times", control.best, control.spread())


def _outbox(model: Model) -> Prepare:
    return Outbox(model).prepare


def _whole(model: Model) -> Prepare:
    cache = DigestCache()
    return lambda context: prepare_again(context, model, cache=cache)


def _compare(
    contexts: Sequence[Context], begin: Callable[[Model], Prepare], effort: Effort, *, stamps: bool
) -> Comparison:
    """Send a growing conversation with each subject; the best of its turns is a sample."""
    samples: dict[str, list[float]] = {name: [] for name in _SUBJECTS}
    names = list(_SUBJECTS)
    with settled():
        for number in range(effort.rounds):
            turned = number % len(names)
            for name in names[turned:] + names[:turned]:
                samples[name].append(_sample(contexts, begin(_SUBJECTS[name]), stamps=stamps))
    return Comparison("plain", {name: tuple(taken) for name, taken in samples.items()})


def _sample(contexts: Sequence[Context], prepare: Prepare, *, stamps: bool) -> float:
    best = float("inf")
    for turn, context in enumerate(contexts):
        made: list[Request] = []

        def send(context: Context = context, made: list[Request] = made) -> None:
            request = prepare(context)
            _ = request.content
            if stamps and request.binds_prefix:
                _ = request.stamp
            made.append(request)

        spent = time_calls(send)
        if made[0].binds_prefix:
            _ = made[0].stamp  # the next turn needs it
        if turn >= _NOT_COUNTED:
            best = min(best, spent)
    return best


def _grow(length: int) -> list[Context]:
    """Make a conversation whose replies remember what they were made after, and its last turns one by one."""
    context = make_history(length, BINDING)
    for turn in range(_TURNS):
        context = context.add(*make_turn(BINDING, seed=1_000_000 + turn))
    outbox, messages = Outbox(BINDING), list[Message]()
    ends: list[int] = []
    for message in context.messages:
        if message.role == "assistant":
            ends.append(len(messages))
            request = outbox.prepare(replace(context, messages=tuple(messages)))
            messages.append(request.stamped(replace(message, sent=None)))
        else:
            messages.append(message)
    grown = [replace(context, messages=tuple(messages[:end])) for end in ends[-_TURNS:]]
    request = prepare_again(grown[-1], BINDING)
    if request.report.changes or request.content != prepare_again(grown[-1], PLAIN).content:
        raise AssertionError("reasoning is left out of the request, so the figures would be wrong")
    return grown
