"""Compare what `plan` predicts with bills: those of the emulator, with its own counts and caches, and recorded usage.

An emulated session is a loop of an agent (a call, a result, ...) or a chat, made from a seed, at two of five providers:
lengths of replies and results differ from turn to turn, some turns have an image, another model answers for a while,
people take breaks in which caches expire (of 5 minutes and of an hour). Before every request the plan is made from what
the conversation shows, then the request is sent and billed. `plan` never sees the reply.

No predictor can know what a reply will be. `best possible` is the share that one would reach in the mean which knows
the input, its price and the distribution that the lengths of the replies of this session are drawn from.

Recorded sessions are read from a folder (`plan_recorded.py`). Half of them, by the digest of their source, are held
back: no constant of `segue.planning` was fitted to them. Requests that end with a reply are left out: a plan is of a
conversation that goes on with the user.

    python benchmarks/plan_bills.py --sessions 100 --recorded FOLDER
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace
from plan_recorded import Session, read_sessions

from segue import (
    AssistantMessage,
    Context,
    ImageContent,
    Model,
    ModelPlan,
    Options,
    Request,
    SegueError,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    Usage,
    UserMessage,
    get_model,
    plan,
    prepare,
)
from segue.models.price import compute_cost
from segue.testing.emulator import EmulatedCall, Emulator, Step

MODELS: Final = (
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-4-8",
    "openai/gpt-5.4",
    "openai/gpt-5.6",
    "google/gemini-2.5-pro",
    "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "deepseek/deepseek-v4-pro",
)
_PIXELS: Final = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x03\x00\x00\x00\x04\x00" + bytes(4500)
_IMAGE: Final = ImageContent(data=base64.b64encode(_PIXELS).decode(), mime_type="image/png")
"""The head of a picture of 768 by 1,024 pixels, which is what counters read."""
WORDS: Final = [
    "the",
    "file",
    "was",
    "read",
    "and",
    "its",
    "tests",
    "pass",
    "but",
    "one",
    "line",
    "of",
    "the",
    "module",
    "still",
    "fails",
    "on",
    "a",
    "second",
    "run",
]
TURNS: Final = 12
LATER: Final = 10
"""How many requests the second figure is of."""


class Result(NamedTuple):
    """Predicted and billed dollars of the next requests; `inside`: the bill is in the interval.

    `mixed` are the dollars of the predicted input with the true output, and of the true input with the predicted
    output; `output` is the part of the bill that is output, `late` how many of the requests found an expired cache.
    """

    requests: int
    predicted: float
    billed: float
    inside: bool
    mixed: tuple[float, float] = (0.0, 0.0)
    output: float = 0.0
    late: int = 0
    best: float | None = None
    """The share of such replies for which the best figure would be within the limit."""

    @property
    def error(self) -> float:
        """The relative error."""
        return abs(self.predicted / self.billed - 1)


def _count(random: Random, mean: float) -> int:
    return max(3, round(random.lognormvariate(0, 0.5) * mean))


def _text(random: Random, mean: float) -> str:
    count = _count(random, mean)
    return " ".join(random.choice(WORDS) for _ in range(count))


def run_session(seed: int) -> Iterator[Result]:
    """Run one session, and compare every request that had a reply of the session before it."""
    random = Random(seed)  # noqa: S311 - the same sessions in every run
    models = [get_model(name) for name in random.sample(MODELS, 2)]
    is_agent, reply_words, result_words = bool(seed % 3), random.uniform(30, 150), random.uniform(100, 1500)
    tool = ToolDefinition(name="read", description="Read a file.", parameters={"type": "object", "properties": {}})
    context = Context(system_prompt=_text(random, 2000), tools=(tool,) if is_agent else ())
    context = context.add(replace(UserMessage.of(_text(random, 200)), timestamp=0))
    emulator, options = Emulator(clock=lambda: 0.0), Options(cache_retention="short", max_tokens=8000)
    now = 0
    done: list[tuple[ModelPlan, Model, float, AssistantMessage, bool]] = []
    is_late = False
    for turn in range(TURNS + LATER):
        model = models[1] if 5 <= turn < 8 and seed % 2 else models[0]  # away for three requests, and back
        planned = plan(context, [model], turns=LATER, now=now, options=options).models[0]
        calls = (EmulatedCall(name="read", arguments={}),) if is_agent else ()
        step = Step(text=_text(random, reply_words), calls=calls)
        message, bill = _send(emulator, prepare(context, model, options=options), step)
        context = context.add(replace(message, timestamp=now))
        done.append((planned, model, bill, message, is_late))
        is_late = random.random() < (0.01 if is_agent else 0.1)
        seconds = random.choice((400, 3900)) if is_late else random.choice((8, 20, 45))
        emulator.advance(seconds)
        now += seconds * 1000
        context = _continue(context, random, result_words, now)
    for turn, (planned, model, bill, message, was_late) in enumerate(done[:TURNS]):
        first = planned.requests[0].money
        if turn < 2 or first is None or planned.money is None:  # nothing of the session is known yet
            continue
        inside = first.low <= bill <= first.high
        result = _mix(Result(1, first.expected, bill, inside, late=int(was_late)), planned, model, message)
        yield result._replace(best=_best_share(result, message, reply_words))
        rest = done[turn : turn + LATER]
        if all(each[1] == model for each in rest):
            later, money = sum(each[2] for each in rest), planned.money
            late = sum(each[4] for each in rest[1:])
            yield Result(LATER, money.expected, later, money.low <= later <= money.high, late=late)


def _mix(result: Result, planned: ModelPlan, model: Model, message: AssistantMessage) -> Result:
    """Add what the parts of a prediction of one request cost, with the true other part."""
    usage, mine = message.usage, planned.requests[0]
    assert usage is not None
    whole = compute_cost(model.cost, usage).total
    entered = compute_cost(model.cost, replace(usage, output=0, reasoning=0)).total
    guessed = compute_cost(
        model.cost, Usage(input=mine.input, cache_read=mine.cache_read, cache_write=mine.cache_write)
    ).total
    output = whole - entered
    return result._replace(
        mixed=(guessed + output, entered + output / max(1, usage.output) * mine.output), output=output / whole
    )


def _best_share(result: Result, message: AssistantMessage, mean: float) -> float:
    """Return in how many of 2,000 replies of this session the best single figure would be within 5 % of the bill."""
    usage, random = message.usage, Random(0)  # noqa: S311 - the same replies in every run
    assert usage is not None
    entered, rate = result.billed * (1 - result.output), result.billed * result.output / max(1, usage.output)
    more = usage.output - len(message.text().split())  # what is around the words; each of them is a token
    bills = sorted(entered + rate * (_count(random, mean) + more) for _ in range(2000))
    best = end = 0
    for start, low in enumerate(bills):
        while end < len(bills) and bills[end] <= low * 1.05 / 0.95:
            end += 1
        best = max(best, end - start)
    return best / len(bills)


def measure_recorded(session: Session) -> Iterator[Result]:
    """Compare the requests of a recorded session, each with those before it as its history."""
    for at, turn in enumerate(session.turns[1:], 1):
        rest = session.turns[at : at + LATER]
        if turn.context.messages[-1].role == "assistant":
            continue
        try:
            planned = plan(
                turn.context, [turn.model], turns=len(rest), options=turn.options, is_cached=turn.is_marked
            ).models[0]
        except SegueError:  # a recorder changed the body
            continue
        if not planned.requests or planned.requests[0].money is None or planned.money is None:
            continue
        bills = [compute_cost(each.model.cost, each.reply.usage or Usage()).total for each in rest]
        first, whole = planned.requests[0].money, planned.money
        inside = first.low <= bills[0] <= first.high
        yield _mix(Result(1, first.expected, bills[0], inside), planned, turn.model, turn.reply)
        if len(rest) > 1 and all(each.model == turn.model for each in rest):
            bill = sum(bills)
            yield Result(len(rest), whole.expected, bill, whole.low <= bill <= whole.high)


def _send(emulator: Emulator, request: Request, step: Step) -> tuple[AssistantMessage, float]:
    path = urlsplit(request.url).path
    reply = emulator.respond("POST", path, {**request.headers, "authorization": "Bearer x"}, request.content, step=step)
    if reply.status != 200:
        raise RuntimeError(f"{request.model.full_name()}: {reply.body.decode()}")
    message = request.decode(msgspec.json.decode(reply.body))
    assert message.usage is not None
    return message, compute_cost(request.model.cost, message.usage).total


def _continue(context: Context, random: Random, words: float, now: int) -> Context:
    reply = context.messages[-1]
    assert reply.role == "assistant"
    calls = reply.tool_calls()
    image = (_IMAGE,) if random.random() < 0.1 and "deepseek" not in reply.model else ()
    if not calls:
        text = TextContent(text=_text(random, words / 4))
        return context.add(replace(UserMessage(content=(text, *image)), timestamp=now))
    text = (TextContent(text=_text(random, words)), *image)
    return context.add(
        *(ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=text, timestamp=now) for call in calls)
    )


def summarise(name: str, results: list[Result], limit: float) -> str:
    """Say how many predictions are within a limit, and how many bills are in the interval."""
    errors = sorted(each.error for each in results)
    inside = sum(each.inside for each in results) / len(results)
    return (
        f"{name}: {len(results):,} plans, {_within(results, limit):.1%} within {limit:.0%}, median error "
        f"{errors[len(errors) // 2]:.1%}, {inside:.1%} of bills in the interval"
    )


def _within(results: list[Result], limit: float) -> float:
    return sum(each.error <= limit for each in results) / max(1, len(results))


def describe(results: list[Result], limit: float) -> Iterator[str]:
    """Say where the errors of one request come from: the input, the output, or the cache."""
    mixes: dict[str, Callable[[Result], float]] = {
        "with the true output": lambda each: each.mixed[0],
        "with the true input": lambda each: each.mixed[1],
    }
    for name, find in mixes.items():
        yield f"    {name}: {_within([each._replace(predicted=find(each)) for each in results], limit):.1%}"
    known = [each.best for each in results if each.best is not None]
    if known:
        yield f"    best possible: {sum(known) / len(known):.1%}"
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)):
        chosen = [each for each in results if low <= each.output < high]
        if chosen:
            yield f"    output is {low:.0%} to {high:.0%} of the bill: {_within(chosen, limit):.1%} of {len(chosen):,}"


def report(name: str, results: list[Result]) -> Iterator[str]:
    """Write the figures of some sessions."""
    one, many = ([each for each in results if (each.requests == 1) == is_one] for is_one in (True, False))
    yield summarise(f"{name}, next request", one, 0.05)
    yield from describe(one, 0.05)
    yield summarise(f"{name}, next ten", many, 0.15)
    for late in range(1 + max(each.late for each in many)):
        chosen = [each for each in many if each.late == late]
        yield f"    {late} of them late for the cache: {_within(chosen, 0.15):.1%} of {len(chosen):,}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--recorded", type=Path, help="a folder of recorded exchanges")
    given = parser.parse_args()
    print(*report("emulated", [each for seed in range(given.sessions) for each in run_session(seed)]), sep="\n")
    sessions = [] if given.recorded is None else read_sessions(given.recorded)
    for is_held_back, name in ((False, "recorded, tuned to"), (True, "recorded, held back")):
        chosen = [each for each in sessions if each.is_held_back == is_held_back]
        if chosen:
            print(f"{name}: {len(chosen)} sessions")
            print(*report(name, [each for session in chosen for each in measure_recorded(session)]), sep="\n")


if __name__ == "__main__":
    main()
