"""`check` with the request before: the first difference, the reasoning behind it, and the cached tokens."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cli.running import run
from segue import check, compare_requests, prepare
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import all_protocols
from segue.testing import assert_continues

MODEL = "anthropic/claude-opus-5-5"
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


def thinking(signature: str) -> dict:
    return {"type": "thinking", "thinking": "", "signature": signature}


def assistant(number: int) -> dict:
    return {"role": "assistant", "content": [thinking(f"s{number}"), {"type": "text", "text": f"Answer {number}."}]}


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def request(turns: int, **fields: object) -> dict:
    messages = [turn for number in range(turns) for turn in (user(f"Question {number}."), assistant(number))]
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "system": "Be brief.",
        "tools": [TOOL],
        "messages": [*messages, user("And now?" if turns > 2 else f"Question {turns}.")],
        **fields,
    }


BEFORE = request(2)


def changed(**fields: object) -> dict:
    return copy.deepcopy(request(3)) | fields


def edited(change) -> dict:
    body = copy.deepcopy(request(3))
    change(body["messages"])
    return body


def test_a_request_that_only_grows_has_no_finding():
    assert compare_requests(request(3), BEFORE, protocol="anthropic-messages", model=MODEL) is None
    assert check(request(3), protocol="anthropic-messages", model=MODEL, after=BEFORE) == []
    assert_continues([request(1), BEFORE, request(3)], protocol="anthropic-messages", model=MODEL)


HARMLESS = {
    "other options": changed(max_tokens=200, thinking={"type": "adaptive"}),
    "cache marks": changed(tools=[TOOL | {"cache_control": {"type": "ephemeral"}}]),
    "reasoning left out from the start": edited(lambda turns: turns[1]["content"].pop(0)),
    "all reasoning left out": edited(lambda turns: [turn["content"].pop(0) for turn in turns[1::2]]),
}


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS)
def test_these_changes_invalidate_nothing(body):
    assert compare_requests(body, BEFORE, protocol="anthropic-messages", model=MODEL) is None


FIRST = ("messages", 1, "content", 0)
SECOND = ("messages", 3, "content", 0)
THIRD = ("messages", 5, "content", 0)
CHANGED = {
    "another system prompt": (changed(system="Be kind."), ("system",), (FIRST, SECOND, THIRD)),
    "another tool": (changed(tools=[TOOL, TOOL | {"name": "listen"}]), ("tools", 1), (FIRST, SECOND, THIRD)),
    "an edited question": (
        edited(lambda turns: turns.__setitem__(2, user("Something else."))),
        ("messages", 2, "content"),
        (SECOND, THIRD),
    ),
    "a removed turn": (
        edited(lambda turns: turns.__delitem__(slice(0, 2))),
        ("messages", 0, "content"),
        (FIRST, SECOND),
    ),
    "a block removed from the middle": (
        edited(lambda turns: turns[3]["content"].pop(0)),
        THIRD,
        (THIRD,),
    ),
}


@pytest.mark.parametrize(("body", "path", "reasoning"), CHANGED.values(), ids=CHANGED)
def test_the_first_difference_and_the_reasoning_behind_it_are_named(body, path, reasoning):
    change = compare_requests(body, BEFORE, protocol="anthropic-messages", model=MODEL)
    assert change is not None
    assert (change.path, change.reasoning) == (path, reasoning)
    codes = [violation.code for violation in check(body, protocol="anthropic-messages", model=MODEL, after=BEFORE)]
    assert codes == ["prefix_changed", *["reasoning_invalid"] * len(reasoning)]
    with pytest.raises(AssertionError, match="request 2 does not continue request 1"):
        assert_continues([BEFORE, body], protocol="anthropic-messages", model=MODEL)


def test_the_tokens_behind_the_difference_are_counted():
    long = request(2)
    long["messages"][2] = user("word " * 1000)
    body = copy.deepcopy(long)
    body["messages"] += [assistant(2), user("More.")]
    body["messages"][2] = user("other " * 1000)
    change: Any = compare_requests(body, long, protocol="anthropic-messages", model=MODEL)
    assert 900 < change.tokens < 3000
    assert change.cost == pytest.approx(change.tokens * 3.8 / 1_000_000)
    whole: Any = compare_requests(body | {"system": "Be kind."}, long, protocol="anthropic-messages", model=MODEL)
    assert whole.tokens > change.tokens
    assert "tokens read anew" in whole.sentence()


def test_a_model_without_the_check_loses_the_cache_alone():
    change: Any = compare_requests(
        changed(system="Be kind."), BEFORE, protocol="anthropic-messages", model="anthropic/claude-opus-5"
    )
    assert change.reasoning == ()
    assert change.tokens > 0


def test_other_protocols_are_compared_too():
    before = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi."}]}
    grown = {"model": "gpt-5", "messages": [*before["messages"], {"role": "user", "content": "More."}]}
    assert compare_requests(grown, before, protocol="openai-chat") is None
    edited = {"model": "gpt-5", "messages": [{"role": "user", "content": "Ho."}]}
    change: Any = compare_requests(edited, before, protocol="openai-chat")
    assert change.path == ("messages", 0, "content")


def test_the_command_compares_with_the_request_before(tmp_path):
    before, good, bad = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    before.write_text(json.dumps(BEFORE))
    good.write_text(json.dumps(request(3)))
    bad.write_text(json.dumps(changed(system="Be kind.")))
    assert run("check", good, "--for", MODEL, "--after", before).status == 0
    result = run("check", bad, "--for", MODEL, "--after", before)
    assert result.status == 1
    assert "[prefix_changed]" in result.out
    assert result.out.count("[reasoning_invalid]") == 3


def test_what_segue_sends_continues():
    body = prepare("Hi.", MODEL).body
    assert_continues([body, body], protocol="anthropic-messages")


def other_turns(body: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Give the body with each text of its turns changed, one at a time."""
    found: list[dict[str, Any]] = []

    def walk(value: Any, path: tuple[str | int, ...]) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                walk(item, (*path, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                walk(item, (*path, index))
        elif "reasoningContent" in path:  # thinking may be left out; it is compared by its signature
            return
        elif isinstance(value, str) and (path == (key,) or path[-1] in ("text", "content", "value")):
            changed = copy.deepcopy(body)
            place: Any = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = f"{value} Else."
            found.append(changed)

    walk({key: body.get(key)}, ())
    return found


@pytest.mark.parametrize("record", all_protocols(), ids=lambda record: record.name)
def test_a_changed_text_of_any_turn_is_a_difference(record: Protocol) -> None:
    bodies = [copy.deepcopy(dict(sample.request)) for sample in record.samples() if sample.request is not None]
    others = [(body, other) for body in bodies for other in other_turns(body, record.turns_key or "")]
    assert others or record.turns_key is None
    for body, other in others:
        assert compare_requests(other, body, protocol=record.name) is not None, other
        assert compare_requests(copy.deepcopy(body), body, protocol=record.name) is None


def test_the_short_form_of_one_turn_is_compared_too():
    change = compare_requests(
        {"model": "m", "input": "Bye"}, {"model": "m", "input": "Hi"}, protocol="openai-responses"
    )
    assert change is not None
    assert change.path == ("input",)
    longer = {"model": "m", "input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]}
    assert compare_requests(longer, {"model": "m", "input": "Hi"}, protocol="openai-responses") is None
