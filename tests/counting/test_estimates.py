"""Error bars of estimates, and how the usage of replies corrects them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from counting import exact, texts
from segue import (
    AssistantMessage,
    Context,
    Estimate,
    Message,
    MissingExtra,
    Model,
    NativeContent,
    Options,
    Policy,
    StopReason,
    TextContent,
    ToolDefinition,
    Usage,
    UserMessage,
    estimate,
    estimate_tokens,
    exact_counter,
    new_assistant_message,
)
from segue.counting.counter import TokenCounter
from segue.counting.estimates import NOTHING_LEARNT
from segue.counting.exact import VOCABULARIES
from segue.counting.text_estimates import estimate_text
from segue.counting.tokenizers import O200K, TOKENIZERS
from segue.errors import SettingsError
from segue.projection.fitting.plan import FitPlan
from segue.projection.policy import Fit
from segue.projection.projector import Projector
from segue.protocols.api import resolve_endpoint

GPT = Model("gpt-5.4", "openai", "openai-responses", context_window=32_000)
MINI = Model("gpt-5-mini", "openai", "openai-responses", context_window=32_000)
CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", context_window=32_000)
UNKNOWN = Model("my-model", "acme", "openai-chat", context_window=32_000)
LONG = Context().add(UserMessage.of("The committee met on Tuesday and decided to postpone the vote. " * 400))


def reply(model: Model, counted: int, text: str = "Yes.") -> AssistantMessage:
    message = new_assistant_message(model, content=(TextContent(text=text),))
    return replace(message, usage=Usage(input=counted, total_tokens=counted))


# -- error bars --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GPT, CLAUDE, UNKNOWN], ids=["OpenAI", "Claude", "unknown"])
def test_an_estimate_is_inside_its_bar(model):
    found = estimate(LONG, model)
    assert isinstance(found, Estimate)
    assert 0 < found.low < found.tokens < found.high
    assert found.tokens == estimate_tokens(LONG, model)


def test_the_bar_of_an_unknown_model_is_wider():
    known, unknown = (estimate(LONG, model) for model in (GPT, UNKNOWN))
    assert (unknown.high - unknown.tokens) / unknown.tokens > 2 * (known.high - known.tokens) / known.tokens


def test_what_the_provider_has_counted_narrows_the_bar():
    plain = estimate(LONG, GPT)
    counted = estimate(LONG.add(reply(GPT, plain.tokens), UserMessage.of("And then?")), GPT)
    assert counted.high - counted.low < (plain.high - plain.low) / 5


@pytest.mark.parametrize(("model", "least"), [(GPT, 0.89), (CLAUDE, 0.89), (UNKNOWN, 0.6)])
def test_windows_are_compared_with_the_upper_end(model, least):
    plan = FitPlan(model, resolve_endpoint(model).rules, Policy())
    bar = plan.counter.bar(plan.high)
    assert bar.high <= (plan.limit + plan.window) / 2 + 1  # half of what is kept free for the reply
    assert least * plan.limit <= plan.high <= 0.9 * plan.limit
    assert plan.low_after(0, 0) < plan.high


# -- calibration -------------------------------------------------------------------------------------------------------


def grown(factor: float, *, writer: Model = GPT, turns: int = 12, offset: int = 0) -> Context:
    """A conversation whose provider counts so many times what is estimated, and some tokens more each time."""
    context, counter = Context(), TokenCounter(GPT)
    size = counter.fixed(context, Options())
    for number in range(turns):
        user = UserMessage.of(f"Step {number}: the committee met and decided to postpone the vote. " * 40)
        size += counter.message(user)[0]
        answer = reply(writer, round(size * factor) + offset)
        size += counter.message(answer)[0]
        context = context.add(user, answer)
    return context.add(UserMessage.of("What now?"))


def plain(context: Context) -> Context:
    """The same conversation without any usage."""
    messages = [replace(turn, usage=None) if turn.role == "assistant" else turn for turn in context.messages]
    return replace(context, messages=tuple(messages))


CUT = {"the beginning is cut": slice(10, None), "a message in the middle is gone": slice(4, None)}


@pytest.mark.parametrize("kept", CUT.values(), ids=CUT.keys())
def test_growth_corrects_the_estimate_after_a_cut(kept):
    """The last usage is not the size of this history any more: it counts what is gone."""
    whole = grown(1.3, turns=24)
    left = replace(whole, messages=whole.messages[kept])
    without = estimate_tokens(plain(left), GPT)
    if kept.start == 10:  # the usage is implausible, and growth alone corrects
        left = replace(
            left, messages=(*left.messages, *[UserMessage.of("So?"), reply(GPT, 9 * without)], left.messages[-1])
        )
    assert 1.15 * without < estimate_tokens(left, GPT) < 1.6 * without


NOT_LEARNT: dict[str, Callable[[AssistantMessage], AssistantMessage]] = {
    "another tokenizer": lambda turn: replace(turn, protocol="mistral-chat", provider="mistral", model="mistral-large"),
    "an unfinished reply": lambda turn: replace(turn, stop_reason=StopReason.ERROR),
    "a tool of the provider ran": lambda turn: replace(
        turn, content=(*turn.content, NativeContent(protocol="openai-responses", block={"type": "web_search_call"}))
    ),
    "no usage": lambda turn: replace(turn, usage=None),
}


@pytest.mark.parametrize("change", NOT_LEARNT.values(), ids=NOT_LEARNT.keys())
def test_some_replies_teach_nothing(change):
    counter, learnt = TokenCounter(GPT), NOTHING_LEARNT
    for size in (1000, 3000, 6000):
        learnt = counter.learn(learnt, change(reply(GPT, size * 2)), float(size))
    assert learnt is NOTHING_LEARNT


def test_a_model_with_the_same_tokenizer_teaches_the_weights_but_no_hidden_prompt():
    counter, learnt = TokenCounter(GPT), NOTHING_LEARNT
    for size in (1000, 6000, 30_000):
        learnt = counter.learn(learnt, reply(MINI, round(1.3 * size) + 500), float(size))
    assert 1.25 < learnt.factor < 1.3
    assert learnt.hidden == 0


def test_a_hidden_prompt_is_added_to_every_request():
    context = grown(1.0, turns=3, offset=700)
    fresh = replace(context, messages=(*context.messages[:-1], UserMessage.of("Now something else. " * 3000)))
    assert estimate_tokens(fresh, GPT) == pytest.approx(estimate_tokens(plain(fresh), GPT) + 700, rel=0.02)


def test_a_correction_downwards_is_bounded():
    counter, learnt = TokenCounter(GPT), NOTHING_LEARNT
    for size in range(10_000, 200_000, 10_000):
        learnt = counter.learn(learnt, reply(GPT, round(0.6 * size)), float(size))
    assert learnt.correct(1000.0) == 850.0


def test_a_usage_that_cannot_be_that_of_this_history_teaches_nothing():
    counter, learnt = TokenCounter(GPT), NOTHING_LEARNT
    for size, counted in ((10_000, 10_000), (20_000, 100_000), (30_000, 40_000)):
        learnt = counter.learn(learnt, reply(GPT, counted), float(size))
    assert learnt.factor == 1.0


def test_the_usage_of_replies_keeps_requests_within_the_window():
    """A provider that counts 1.5 times the estimate: without usage requests exceed the window, with it they do not."""
    counter, worst = TokenCounter(GPT), dict[bool, float]()
    for has_usage in (False, True):
        context, projector, most = Context().add(UserMessage.of("Read on.")), Projector(GPT), 0.0
        for number in range(60):
            sent = projector.project(context).context.messages
            size = 1.5 * sum(sum(counter.message(message)) for message in sent)
            most = max(most, size / 32_000)
            answer = (
                reply(GPT, round(size)) if has_usage else new_assistant_message(GPT, content=(TextContent(text="."),))
            )
            context = context.add(answer, UserMessage.of(f"Page {number}: " + "the vote is postponed again. " * 200))
        worst[has_usage] = most
    assert worst[False] > 1.0 > worst[True]


# -- texts and tools ---------------------------------------------------------------------------------------------------


@exact.needed
def test_long_english_words_count_as_words():
    text = (
        "International organizations increasingly acknowledge that environmental considerations require multilateral "
    )
    text += (
        "agreements. Comprehensive documentation describing administrative responsibilities is available throughout. "
    )
    for name in exact.NAMES:
        assert 0.85 < estimate_text(text * 20, TOKENIZERS[name]) / exact.count(text * 20, name) < 1.5


@exact.needed
@pytest.mark.parametrize("first", [0x3400, 0x4E00, 0xAC00], ids=["rare Han", "Han", "Hangul"])
def test_characters_at_random_are_not_estimated_too_low(first):
    chance = random.Random(first)
    text = "".join(chr(chance.randrange(first, first + 6000)) for _ in range(3000))
    for name in exact.NAMES:
        assert estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) > 0.85


@pytest.mark.parametrize("character", "-.=_*#/")
@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_row_of_one_character_is_a_few_tokens(name, character):
    row = estimate_text(character * 400, TOKENIZERS[name])
    assert 25 <= row <= 60  # vocabularies have 4 to 50
    assert estimate_text(f"{'-.=_*#/~' * 50}", TOKENIZERS[name]) > 150


def test_east_asian_prose_is_not_taken_for_characters_at_random():
    for language in texts.EAST_ASIAN:
        text = texts.speech(random.Random(2), 3000, (language,))
        assert estimate_text(text, O200K) < len(text)


IGNORED = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Look", "additionalProperties": False}


def test_openai_does_not_count_what_its_declarations_leave_out():
    schema = {"type": "object", "properties": {"place": {"type": "string", "description": "Where to look."}}}
    for model, counts in ((GPT, False), (CLAUDE, True)):
        counter = TokenCounter(model)
        bare, full = (
            counter.tools((ToolDefinition(name="look", description="Look at it.", parameters=parameters),))
            for parameters in (schema, {**IGNORED, **schema})
        )
        assert (full > bare) is counts
    nested = {"type": "object", "properties": {"a": {"anyOf": [{"type": "array", "items": schema}, {"enum": ["x"]}]}}}
    assert TokenCounter(GPT).tools((ToolDefinition(name="n", description="", parameters=nested),)) > 0


ADVERSARIAL: dict[str, Callable[[random.Random, int], str]] = {
    **texts.DENSE,
    **{f"{name} at random": make for name, make in texts.RANDOM.items()},
    "base64": texts.opaque,
    "minified code": lambda chance, size: "".join(
        f"function {chance.choice('abcXYZ')}(t,e){{return t?e[{chance.randrange(99)}]:!{chance.randrange(2)}}}var n=7;"
        for _ in range(size // 50 + 1)
    ),
}
TARGETS = {
    "o200k": GPT,
    "tekken": Model("mistral-large-latest", "mistral", "mistral-chat", context_window=32_000),
    "deepseek": Model("deepseek-chat", "deepseek", "openai-chat", context_window=32_000),
}
SMALL = ("a grid of digits", "short words", "digests", "Han at random", "emoji at random", "minified code")


@exact.needed
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    "kind", [kind if kind in SMALL else pytest.param(kind, marks=pytest.mark.proof) for kind in ADVERSARIAL]
)
def test_no_request_exceeds_the_window_where_prose_has_taught_too_much(kind, name):
    """The usage of prose lowers the estimates; then comes text that has more tokens than it looks like."""
    chance, model = random.Random(kind), replace(TARGETS[name], context_window=8000)
    counter = TokenCounter(model, lambda text: exact.count(text, name))
    context, projector, sizes = Context().add(UserMessage.of("Read on.")), Projector(model), dict[str, float]()

    def count(turn: Message) -> float:
        text = "".join(piece.text for piece in turn.content if piece.kind == "text")
        if text not in sizes:
            sizes[text] = sum(counter.message(turn))
        return sizes[text]

    for number in range(24):
        sent = projector.project(context).context.messages
        size = counter.fixed(Context(), Options()) + sum(count(turn) for turn in sent)
        assert size <= 8000
        text = texts.KINDS["markdown"](chance, 2000) if number < 10 else ADVERSARIAL[kind](chance, 1000)
        context = context.add(reply(model, round(size)), UserMessage.of(text))


# -- exact counts ------------------------------------------------------------------------------------------------------


@exact.needed
def test_an_exact_counter_counts_as_the_tokenizer_does():
    counter = exact_counter(GPT)
    assert counter("Hello world") == 2
    assert counter("<|endoftext|>") > 1, "the name of a special token in a text is text"
    assert counter("\ud800") > 0
    policy = Policy(counter=counter, fit=Fit())
    assert estimate_tokens(LONG, GPT, policy=policy) == pytest.approx(estimate_tokens(LONG, GPT), rel=0.15)


@exact.needed
def test_every_vocabulary_can_be_loaded_and_belongs_to_a_tokenizer():
    assert exact.NAMES == VOCABULARIES
    assert set(VOCABULARIES) <= set(TOKENIZERS)


def test_a_model_without_a_public_tokenizer_has_no_exact_counter():
    with pytest.raises(SettingsError, match="claude-sonnet-4-5: no public tokenizer"):
        exact_counter(CLAUDE)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "splintr", None)
    from segue.counting import exact as module

    module._counter.cache_clear()
    with pytest.raises(MissingExtra, match=r"segue-llm\[tokenizers\]"):
        exact_counter(GPT)
