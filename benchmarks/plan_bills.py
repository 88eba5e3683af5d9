"""Compare what `plan` predicts with bills that the emulator makes: its prices and its caches are its own.

A session is a loop of an agent (a call, a result, ...) or a chat, made from a seed: lengths of replies and results
differ from turn to turn, sometimes an hour passes, sometimes another model answers for a while. Before every request
the plan is made from what the conversation shows, then the request is sent and billed. `plan` never sees the reply.

    python benchmarks/plan_bills.py --sessions 100
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    Model,
    ModelPlan,
    Options,
    Request,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    get_model,
    plan,
    prepare,
)
from segue.testing.emulator import EmulatedCall, Emulator, Step

MODELS: Final = (
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-4-8",
    "openai/gpt-5.4",
    "openai/gpt-5.6",
    "google/gemini-2.5-pro",
)
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
    """Predicted and billed dollars of the next request, or of the next ten; `inside`: the bill is in the interval."""

    requests: int
    predicted: float
    billed: float
    inside: bool

    @property
    def error(self) -> float:
        """The relative error."""
        return abs(self.predicted / self.billed - 1)


def _text(random: Random, mean: float) -> str:
    count = max(3, round(random.lognormvariate(0, 0.5) * mean))
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
    bills: list[float] = []
    plans: list[tuple[ModelPlan, Model]] = []
    for turn in range(TURNS + LATER):
        model = models[1] if 5 <= turn < 8 and seed % 2 else models[0]  # away for three requests, and back
        planned = plan(context, [model], turns=LATER, now=now, options=options).models[0]
        plans.append((planned, model))
        calls = (EmulatedCall(name="read", arguments={}),) if is_agent else ()
        step = Step(text=_text(random, reply_words), calls=calls)
        message, bill = _send(emulator, prepare(context, model, options=options), step)
        context = context.add(replace(message, timestamp=now))
        bills.append(bill)
        seconds = 3900 if random.random() < 0.05 else random.choice((8, 20, 45))
        emulator.advance(seconds)
        now += seconds * 1000
        context = _continue(context, random, result_words, now)
    for turn, (planned, model) in enumerate(plans[:TURNS]):
        if turn < 2:  # nothing of the session is known yet
            continue
        first = planned.requests[0].money
        if first is not None:
            yield Result(1, first.expected, bills[turn], first.low <= bills[turn] <= first.high)
        later = sum(bills[turn : turn + LATER])
        stays = all(each == model for _, each in plans[turn : turn + LATER])
        if planned.money is not None and stays:
            yield Result(LATER, planned.money.expected, later, planned.money.low <= later <= planned.money.high)


def _send(emulator: Emulator, request: Request, step: Step) -> tuple[AssistantMessage, float]:
    before, path = emulator.bill().cost, urlsplit(request.url).path
    reply = emulator.respond("POST", path, {**request.headers, "authorization": "Bearer x"}, request.content, step=step)
    if reply.status != 200:
        raise RuntimeError(f"{request.model.full_name()}: {reply.body.decode()}")
    return request.decode(msgspec.json.decode(reply.body)), emulator.bill().cost - before


def _continue(context: Context, random: Random, words: float, now: int) -> Context:
    reply = context.messages[-1]
    assert reply.role == "assistant"
    calls = reply.tool_calls()
    if not calls:
        return context.add(replace(UserMessage.of(_text(random, words / 4)), timestamp=now))
    text = (TextContent(text=_text(random, words)),)
    return context.add(
        *(ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=text, timestamp=now) for call in calls)
    )


def summarise(results: list[Result], requests: int, limit: float) -> str:
    """Say how many predictions are within a limit, and how many bills are in the interval."""
    chosen = [each for each in results if each.requests == requests]
    within = sum(each.error <= limit for each in chosen) / len(chosen)
    inside = sum(each.inside for each in chosen) / len(chosen)
    errors = sorted(each.error for each in chosen)
    return (
        f"{requests:2} requests: {len(chosen):,} plans, {within:.1%} within {limit:.0%}, median error "
        f"{errors[len(errors) // 2]:.1%}, {inside:.1%} of bills in the interval"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    count = parser.parse_args().sessions
    results = [result for seed in range(count) for result in run_session(seed)]
    print(summarise(results, 1, 0.05))
    print(summarise(results, LATER, 0.15))


if __name__ == "__main__":
    main()
