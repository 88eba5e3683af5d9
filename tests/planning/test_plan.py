"""What the next requests of a conversation cost at other models, and what they lose."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from segue import Context, Options, Price, TextContent, ThinkingContent, Usage, UserMessage, get_model, plan
from segue.cli.program import program
from segue.conversation.stored import dump
from segue.errors import SettingsError, UnknownModel
from segue.models.catalogue import installed_catalogue
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.planning.candidates import RULES, choose

CLAUDE, OPUS, GPT = map(get_model, ("anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-8", "openai/gpt-5.4"))
MINUTE = 60_000
WORDS = "the test of the module fails on the second run " * 200


def make_chat(*models: Model, minutes: float = 1, reasoning: int = 0) -> Context:
    """Make a chat in which each model answers once, so many minutes after another."""
    context, size, now = Context(system_prompt=WORDS), 2_000, 0
    for model in models:
        context = context.add(replace(UserMessage.of(WORDS), timestamp=now))
        size += 2_000
        content = (ThinkingContent(thinking="Hm.", thinking_signature="c2VhbGVk"), TextContent(text="It does."))
        usage = Usage(cache_read=size - 2_000, cache_write=2_000, output=40 + reasoning, reasoning=reasoning)
        context = context.add(replace(new_assistant_message(model, content=content), usage=usage, timestamp=now))
        now += round(minutes * MINUTE)
    return context.add(replace(UserMessage.of(WORDS), timestamp=now))


def test_the_present_model_reads_its_last_request_from_its_cache_and_another_one_nothing() -> None:
    found = plan(make_chat(CLAUDE, CLAUDE, CLAUDE), [GPT, CLAUDE], turns=3)
    assert found.present is not None
    assert found.present.model == CLAUDE
    first = found.present.requests[0]
    assert first.cache_read == 8_000
    assert first.input == 0
    assert 1_500 < first.cache_write < 3_000
    gpt, again = found.models
    assert again == found.present
    assert gpt.requests[0].cache_read == 0
    assert gpt.requests[1].cache_read > 0.9 * gpt.requests[0].size
    assert gpt.warm_seconds == 0
    assert 0 < found.present.warm_seconds <= 300


@pytest.mark.parametrize(("minutes", "retention", "is_warm"), [(4, None, True), (6, None, False), (59, "long", True)])
def test_a_cache_expires(minutes: float, retention: str | None, is_warm: bool) -> None:
    chat = make_chat(CLAUDE, CLAUDE)
    last = chat.messages[-2]
    assert last.role == "assistant"
    assert last.timestamp is not None
    options = Options(cache_retention="long" if retention else None)
    found = plan(chat, [CLAUDE], now=last.timestamp + round(minutes * MINUTE), options=options).models[0]
    assert bool(found.requests[0].cache_read) is is_warm
    assert (found.warm_seconds > 0) is is_warm


def test_without_marks_claude_caches_nothing() -> None:
    found = plan(make_chat(CLAUDE, CLAUDE), [CLAUDE], is_cached=False).models[0]
    assert all(each.cache_read == each.cache_write == 0 for each in found.requests)


def test_what_a_cut_takes_from_the_beginning_is_not_read_from_the_cache() -> None:
    small = replace(GPT, context_window=10_000, max_tokens=500)
    found = plan(make_chat(*[small] * 6), [small]).models[0]
    assert not found.fits
    assert found.requests[0].cache_read < 6_000


def test_a_model_that_was_asked_before_reads_what_it_had_then() -> None:
    found = plan(make_chat(CLAUDE, CLAUDE, GPT), [CLAUDE]).models[0]
    assert found.requests[0].cache_read == 6_000


def test_the_cost_is_that_of_the_price_list() -> None:
    model = replace(GPT, cost=Price(input=1_000_000.0, output=1_000_000.0))
    request = plan(make_chat(GPT), [model], turns=1).models[0].requests[0]
    assert request.money is not None
    assert request.money.expected == pytest.approx(request.size + request.output, rel=0.01)
    assert request.money.low < request.money.expected < request.money.high
    unknown = plan(make_chat(GPT), [replace(GPT, cost=Price())]).models[0]
    assert unknown.money is None
    assert unknown.break_even is None


def test_a_switch_pays_from_the_request_on_at_which_its_sum_is_smaller() -> None:
    chat = make_chat(OPUS, OPUS, OPUS)
    found = plan(chat, [GPT, replace(GPT, id="dear", cost=Price(input=500.0, output=500.0))], turns=40)
    cheap, dear = found.models
    assert found.present is not None
    assert dear.break_even is None
    assert cheap.break_even is not None
    costs = [[each.money.expected for each in one.requests if each.money is not None] for one in (cheap, found.present)]
    at = cheap.break_even
    assert all(sum(costs[0][:count]) <= sum(costs[1][:count]) for count in range(at + 1, 41))
    assert at == 0 or sum(costs[0][:at]) > sum(costs[1][:at])
    assert cheap.back is not None
    assert found.present.back is None
    assert found.cheapest() is cheap


def test_reasoning_that_is_given_up_has_what_it_cost() -> None:
    found = plan(make_chat(CLAUDE, CLAUDE, reasoning=1_000), [GPT]).models[0]
    assert (found.given_up.blocks, found.given_up.tokens) == (2, 2_000)
    assert found.given_up.cost == pytest.approx(2_000 * CLAUDE.cost.output / 1_000_000)
    assert [loss.code for loss in found.losses]
    assert plan(make_chat(CLAUDE, CLAUDE, reasoning=1_000), [CLAUDE]).models[0].given_up.blocks == 0


def test_a_window_that_is_too_small_is_told() -> None:
    small = replace(GPT, id="small", context_window=9_000, max_tokens=1_000)
    found = plan(make_chat(*[GPT] * 6), [small]).models[0]
    assert not found.fits
    assert found.requests[0].size < 9_000
    tiny = plan(Context().add(UserMessage.of(WORDS * 9)), [replace(GPT, id="t", context_window=2_000)]).models[0]
    assert tiny.requests == ()
    assert "window" in tiny.reason


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(SettingsError, match="turns"):
        plan("Hi", [GPT], turns=0)
    with pytest.raises(UnknownModel):
        plan("Hi", ["nobody/nothing"])
    with pytest.raises(SettingsError, match="there is no rule 'nicer'"):
        choose(GPT, ["nicer"])
    with pytest.raises(SettingsError, match="name models"):
        choose(None, ["cheaper"])


@pytest.mark.parametrize("rule", RULES)
def test_candidates_follow_their_rule(rule: str) -> None:
    found = choose(GPT, [rule])
    assert GPT not in found
    assert len({model.full_name() for model in found}) == len(found)
    tests = {
        "cheaper": lambda model: model.cost.input < GPT.cost.input and model.cost.output < GPT.cost.output,
        "larger-window": lambda model: model.context_window > GPT.context_window,
        "same-lab": lambda model: model.provider == GPT.provider,
        "local": lambda model: "localhost" in (model.base_url or "localhost"),
    }
    assert all(tests[rule](model) for model in found)
    assert found or rule == "local"


def test_every_chat_model_of_the_catalogue_can_be_planned() -> None:
    chat = make_chat(CLAUDE, GPT)
    models = installed_catalogue().models[::40]
    for each in plan(chat, models, turns=2).models:
        assert each.reason or len(each.requests) == 2
        priced = bool(each.model.cost.input or each.model.cost.output)
        assert (each.money is not None) is (priced and bool(each.requests)), each.model.full_name()


def test_the_emulator_bills_the_input_that_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator has caches and prices of its own; only the length of a reply cannot be known before."""
    folder = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    bench = runpy.run_path(str(folder / "plan_bills.py"))
    results = [each for seed in (0, 1, 2, 4) for each in bench["run_session"](seed)]
    ones = [each for each in results if each.requests == 1]
    assert len(ones) == 40
    assert sum(each.inside for each in ones) >= 34
    assert sorted(each.error for each in ones)[len(ones) // 2] < 0.12
    assert sum(abs(each.mixed[0] / each.billed - 1) <= 0.05 for each in ones) >= 36


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(dump(make_chat(CLAUDE, CLAUDE)))
    shown = CliRunner().invoke(program, ["plan", str(path), "-m", "openai/gpt-5.4", "--now"])
    assert shown.exit_code == 0
    assert "anthropic/claude-sonnet-4-5" in shown.output
    assert "pays from" in shown.output
    assert "return" in shown.output
    written = CliRunner().invoke(program, ["plan", str(path), "--cheaper", "--turns", "2", "--json"])
    read = json.loads(written.output)
    assert read["present"]["model"] == "anthropic/claude-sonnet-4-5"
    assert all(len(model["requests"]) == 2 for model in read["models"])
    unknown = CliRunner().invoke(program, ["plan", str(path), "--local", "--cheaper"])
    assert "name models with -m" in unknown.output


def test_without_a_present_model_nothing_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"messages": [{"role": "user", "content": "Hi"}]}')
    shown = CliRunner().invoke(program, ["plan", str(path), "-m", "openai/gpt-5.4"])
    assert shown.exit_code == 0
    assert "never" not in shown.output
    with pytest.raises(UnknownModel, match="Add a model of your own with --catalogue FILE"):
        CliRunner().invoke(program, ["plan", str(path), "-m", "nope"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("name", "size", "read"), [("xai/grok-4.5", 202, 192), ("mistral/mistral-large-latest", 291, 288)]
)
def test_some_providers_read_short_prefixes(name: str, size: int, read: int) -> None:
    model = get_model(name)
    usage = Usage(input=size, output=20)
    reply = replace(new_assistant_message(model, content=(TextContent(text="It does."),)), usage=usage)
    context = Context(messages=(UserMessage.of("Does it?"), reply, UserMessage.of("And the other one? " * 20)))
    assert plan(context, [model]).models[0].requests[0].cache_read == read


@pytest.mark.parametrize(
    ("models", "settings", "named"),
    [
        (None, {}, "list of models"),
        (5, {}, "list of models"),
        ("openai/gpt-5.4", {}, "not one model"),
        ([GPT], {"now": float("nan")}, "now"),
        ([GPT], {"now": float("inf")}, "now"),
        ([GPT], {"turns": 1_000_000}, "at most"),
        ([GPT], {"turns": True}, "turns"),
    ],
    ids=str,
)
def test_arguments_of_a_wrong_kind_are_named(models: Any, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        plan("Hi", models, **settings)


def test_counts_below_zero_are_not_learned_from() -> None:
    reply = replace(new_assistant_message(GPT), usage=Usage(input=-5, output=-700))
    history = Context(messages=(UserMessage.of("Hi"), reply, UserMessage.of("And?")))
    money = plan(history, [GPT]).models[0].money
    assert money is not None
    assert 0 <= money.low <= money.expected <= money.high
