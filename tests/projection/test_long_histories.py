"""Long histories in small windows, judged by exact tokenizers: what is sent fits, and prompt caches stay valid.

`make test` plays the beginnings of the histories, `make proof` all of them: 10 histories for 6 models in 6 windows,
every request point, 240,000 requests.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from msgspec.structs import replace

from counting import exact, texts
from projection.fitting_judge import ExactSizes, Verdict, play
from projection.long_histories import HISTORIES, history
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.messages import Message, StopReason, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.models.origin import new_assistant_message

pytestmark = exact.needed

TARGETS = {
    "o200k": (Model("gpt-5", "openai", "openai-responses", reasoning=True), 1.0),
    "gemma3": (Model("gemini-2.5-flash", "google", "google-genai", reasoning=True), 1.0),
    "tekken": (Model("mistral-large-latest", "mistral", "mistral-chat"), 1.0),
    "qwen3": (Model("qwen3-max", "alibaba", "openai-chat", reasoning=True), 1.0),
    "deepseek": (Model("deepseek-chat", "deepseek", "openai-chat"), 1.0),
    # Claude has no public tokenizer: on the usage of long sessions it counted 1.17 times o200k (2026-11-15).
    "Claude": (Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True), 1.17),
}
WINDOWS = (16_000, 32_000, 128_000, 200_000, 400_000, 1_000_000)
LEAST_REUSED = {32_000: 0.85, 128_000: 0.95, 200_000: 0.97, 400_000: 0.985}
"""The share of tokens that a prompt cache can have from the request before, by window."""
QUICK = ("a grid of digits", "digests", "short words", "small letters", "punctuation", "Han", "emoji", "minified code")


def run(name: str, target: str, sizes: ExactSizes, window: int, scale: float) -> Verdict:
    model = replace(TARGETS[target][0], context_window=window)
    # Half of the histories were written by another model.
    own = list(HISTORIES).index(name) % 2 == 0
    writer = model if own else Model("claude-opus-4-5", "anthropic", "anthropic-messages", reasoning=True)
    verdict = play(history(name, writer, scale=scale), model, sizes, checks=4)
    assert verdict.overflows == []
    assert verdict.unreported == []
    assert verdict.faults == []
    assert verdict.cuts <= verdict.most_cuts
    return verdict


def sizes_for(target: str) -> ExactSizes:
    model, factor = TARGETS[target]
    return ExactSizes(model, target if target in exact.NAMES else "o200k", factor)


@pytest.mark.parametrize("name", HISTORIES)
def test_every_request_of_a_long_history_fits(name):
    target = ("o200k", "Claude")[list(HISTORIES).index(name) // 2 % 2]
    verdict = run(name, target, sizes_for(target), 16_000, 0.06)
    assert verdict.requests > 10
    assert verdict.cuts > 0
    assert len(verdict.too_small) <= verdict.requests / 20


def play_results(kind: str, target: str, steps: int) -> Verdict:
    """Play a session in which a tool gives texts of one kind, short and long ones."""
    chance, make = random.Random(11), {**texts.DENSE, **texts.RANDOM}[kind]
    model = replace(TARGETS[target][0], context_window=8_000, max_input=0)
    messages: list[Message] = [UserMessage.of("Go on.")]
    for number in range(steps):
        call = ToolCall(id=f"call{number:05}", name="read", arguments={"path": f"data/{number}.txt"})
        found = TextContent(text=make(chance, chance.choice((200, 600, 900, 2500))))
        messages.append(replace(new_assistant_message(model, content=(call,)), stop_reason=StopReason.TOOL_USE))
        messages.append(ToolResultMessage(tool_call_id=call.id, tool_name="read", content=(found,)))
    return play(tuple(messages), model, sizes_for(target), checks=1, in_window=True)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        pytest.param(kind, target, marks=() if kind in QUICK and target == "o200k" else pytest.mark.proof)
        for kind in (*texts.DENSE, *texts.RANDOM)
        for target in ("o200k", "gemma3", "tekken")
    ],
)
def test_no_request_of_texts_with_many_tokens_exceeds_the_window(kind, target):
    verdict = play_results(kind, target, 40)
    assert (verdict.overflows, verdict.unreported, verdict.faults) == ([], [], [])
    assert verdict.cuts > 0


@pytest.mark.proof
@pytest.mark.parametrize("target", TARGETS)
def test_every_request_fits_and_repeats_the_one_before(target):
    sent: defaultdict[int, float] = defaultdict(float)
    reused: defaultdict[int, float] = defaultdict(float)
    for name in HISTORIES:
        sizes = sizes_for(target)
        for window in WINDOWS:
            verdict = run(name, target, sizes, window, 1.0)
            if not verdict.evictions:  # Mistral accepts eight images: these cuts have another reason than the window
                sent[window] += verdict.sent
                reused[window] += verdict.reused
            # What cannot be cut: a pasted file, or a call with its arguments, that alone exceeds a window of 16,000.
            assert len(verdict.too_small) <= (verdict.requests / 40 if window < 32_000 else 0), verdict.too_small[:3]
    shares = {window: reused[window] / sent[window] for window in WINDOWS}
    assert {window: shares[window] for window, least in LEAST_REUSED.items() if shares[window] < least} == {}
