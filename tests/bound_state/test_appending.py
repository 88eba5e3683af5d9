"""Changed instructions are appended where the policy asks for it, and reasoning before them stays valid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from bound_state.machine import (
    BEDROCK_OPUS,
    GPT,
    LOOK,
    OPTIONS,
    OPUS,
    OPUS_5,
    SMALL,
    SONNET,
    WAYS,
    Walk,
    tool,
    walk,
)
from property_testing import tiers
from segue import ChangeCode, Model, Outbox, Policy, ProjectionRefused, SystemMessage, Tool, UserMessage, check, prepare
from segue.testing.emulator import EmulatedCall, Step

APPEND = Policy(instructions="append")
THINK = Step(thinking="Hm.", text="Yes.")
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}),))
EVERY_WAY = sorted(set(WAYS))
LISTEN = tool("listen")


@pytest.fixture(name="walked")
def _walked() -> Iterator[Walk]:
    walked = Walk(policy=APPEND)
    yield walked
    walked.close()


def talk(walked: Walk, turns: int = 2, *, way: str = "client") -> None:
    for number in range(turns):
        walked.ask(f"question {number}", THINK, way=way)


def body_of(walked: Walk) -> dict[str, Any]:
    assert walked.sent is not None
    return cast("dict[str, Any]", walked.sent.body)


def betas_of(walked: Walk) -> str:
    assert walked.sent is not None
    return walked.sent.headers.get("anthropic-beta", "")


CHANGES: dict[str, tuple[Callable[[Walk], None], str, str]] = {
    "the system prompt": (lambda walked: walked.change(system_prompt="Be kind."), "system_prompt", "Be kind."),
    "no system prompt": (lambda walked: walked.change(system_prompt=None), "system_prompt", "no longer apply"),
    "a tool more": (lambda walked: walked.change(tools=(LOOK, LISTEN)), "tools", "tool_definition"),
    "a tool less": (lambda walked: walked.change(tools=()), "tools", "tool_removal"),
    "both": (lambda walked: walked.change(system_prompt="Be kind.", tools=(LISTEN,)), "tools", "Be kind."),
}


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize(("change", "path", "shown"), CHANGES.values(), ids=CHANGES.keys())
def test_what_changed_is_appended_and_all_reasoning_is_sent(
    walked: Walk, change: Callable[[Walk], None], path: str, shown: str, way: str
) -> None:
    talk(walked, 3, way=way)
    before, first = walked.signatures(), body_of(walked)
    change(walked)
    walked.ask("after the change", THINK, way=way)
    body = body_of(walked)
    assert walked.sent_signatures() == before, "nothing is given up"
    assert [body.get(key) for key in ("system", "tools")] == [first.get(key) for key in ("system", "tools")]
    assert body["messages"][-1]["role"] == "system"
    assert shown in json.dumps(body["messages"][-1])
    assert (path,) in [each.path for each in walked.report.of(ChangeCode.INSTRUCTIONS_APPENDED)]
    assert check(body, protocol="anthropic-messages", model=OPUS) == []
    walked.reload()
    walked.restart()
    talk(walked, 2, way=way)
    assert walked.sent_signatures() == walked.signatures()[:-1]
    assert body_of(walked)["messages"][: len(body["messages"])] == body["messages"], "the prefix stays"
    assert check(body_of(walked), protocol="anthropic-messages", model=OPUS, after=body) == []


def test_without_the_policy_the_same_change_gives_up_all_reasoning() -> None:
    walked = Walk()
    talk(walked, 3)
    walked.change(system_prompt="Be kind.")
    walked.ask("after the change", THINK)
    assert walked.sent_signatures() == []
    assert not walked.report.of(ChangeCode.INSTRUCTIONS_APPENDED)
    assert all(message.sent is None or message.sent.instructions is None for message in _replies(walked))
    walked.close()


def _replies(walked: Walk) -> list[Any]:
    return [message for message in walked.context.messages if message.role == "assistant"]


@pytest.mark.parametrize("way", EVERY_WAY)
def test_it_changes_inside_a_tool_loop(walked: Walk, way: str) -> None:
    walked.ask("look", CALL, way=way)
    walked.results()
    walked.change(system_prompt="Be kind.", tools=(LOOK, LISTEN))
    walked.ask(None, CALL, way=way)
    assert len(walked.sent_signatures()) == 1
    assert betas_of(walked) == "inline-tools-2026-09-15"
    walked.results()
    walked.change(tools=(LISTEN,))
    walked.ask(None, THINK, way=way)
    assert len(walked.sent_signatures()) == 2
    assert betas_of(walked) == "inline-tools-2026-09-15,mid-conversation-tool-changes-2026-07-01"


def test_a_tool_that_comes_back_is_named_and_not_defined_again(walked: Walk) -> None:
    talk(walked, 1)
    for tools in ((LOOK, LISTEN), (LOOK,), (LISTEN, LOOK)):
        walked.change(tools=tools)
        talk(walked, 1)
    last = body_of(walked)["messages"][-1]["content"]
    assert last == [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "listen"}}]
    assert len(walked.sent_signatures()) == 3


def test_another_order_of_tools_changes_nothing(walked: Walk) -> None:
    walked.change(tools=(LOOK, LISTEN))
    talk(walked, 1)
    before = body_of(walked)
    walked.change(tools=(LISTEN, LOOK))
    talk(walked, 2)
    assert body_of(walked)["tools"] == before["tools"]
    assert len(walked.sent_signatures()) == 2
    assert all(message["role"] != "system" for message in body_of(walked)["messages"])


EDITED: dict[str, tuple[Tool, ...]] = {
    "another description under the same name": (tool("look", "Looks well."),),
    "a name that the target does not accept": (LOOK, tool("look.around")),
}


@pytest.mark.parametrize("tools", EDITED.values(), ids=EDITED.keys())
def test_what_cannot_be_appended_is_edited_and_starts_over(walked: Walk, tools: tuple[Tool, ...]) -> None:
    talk(walked, 2)
    walked.change(tools=tools)
    talk(walked, 1)
    assert walked.sent_signatures() == []
    assert "the tools have changed since" in " ".join(each.detail for each in walked.report.changes)
    walked.change(system_prompt="Be kind.")
    talk(walked, 2)
    assert len(walked.sent_signatures()) == 2, "what was made since is valid, and the next change is appended"


@pytest.mark.parametrize("other", [GPT, BEDROCK_OPUS, OPUS_5, SONNET], ids=Model.full_name)
def test_another_target_gets_the_instructions_as_it_accepts_them(walked: Walk, other: Model) -> None:
    talk(walked, 2)
    walked.change(system_prompt="Be kind.")
    talk(walked, 1)
    walked.model = other
    talk(walked, 1)
    assert "Be kind." in json.dumps(body_of(walked))
    if not walked.report.of(ChangeCode.INSTRUCTIONS_APPENDED):
        assert "Be brief." not in json.dumps(body_of(walked)), "the replaced text is not sent"
    walked.model = OPUS
    walked.ask("back", THINK)
    assert walked.report.of(ChangeCode.INSTRUCTIONS_APPENDED)
    assert walked.sent_signatures()


def test_a_fork_from_before_the_change_begins_with_the_first_instructions(walked: Walk) -> None:
    talk(walked, 2)
    walked.change(system_prompt="Be kind.")
    talk(walked, 2)
    made = walked.signatures()
    walked.change(system_prompt="Be brief.", messages=walked.context.messages[:4])
    walked.ask("another way", THINK)
    assert walked.sent_signatures() == made[:2]
    assert not walked.report


def test_a_cut_starts_over_with_the_new_instructions(walked: Walk) -> None:
    walked.window = SMALL
    walked.ask("look at all of it", CALL)
    walked.results()
    walked.change(system_prompt="Be kind.")
    for _ in range(12):
        walked.ask(None, CALL)
        assert "Be kind." in json.dumps(body_of(walked))
        walked.results("seen " * 400)
    assert "Be brief." not in json.dumps(body_of(walked))


def test_the_report_names_places_of_the_given_conversation(walked: Walk) -> None:
    talk(walked, 2)
    walked.change(system_prompt="Be kind.")
    talk(walked, 1)
    odd = UserMessage.of("half \ud83d of a character")
    request = prepare(walked.context.add(odd), OPUS, options=OPTIONS, policy=APPEND)
    assert [change.path for change in request.report.of(ChangeCode.SURROGATE_REPLACED)] == [
        ("messages", 6, "content", 0)
    ]


def test_system_messages_of_the_conversation_stay_in_their_places(walked: Walk) -> None:
    talk(walked, 2)
    walked.change(messages=(*walked.context.messages, UserMessage.of("Go."), SystemMessage.of("One step.")))
    walked.change(system_prompt="Be kind.")
    walked.ask(None, THINK)
    assert len(walked.sent_signatures()) == 2
    assert "One step." in json.dumps(body_of(walked)["messages"][-2:])


def test_an_outbox_gives_the_same_as_prepare(walked: Walk) -> None:
    outbox = Outbox(OPUS, APPEND)
    for number, (prompt, tools) in enumerate((("A", (LOOK,)), ("B", (LOOK, LISTEN)), ("B", (LISTEN,)), ("A", (LOOK,)))):
        walked.change(system_prompt=prompt, tools=tools)
        for _ in range(2):
            given = walked.context.add(UserMessage.of(f"question {number}"))
            one, other = (make(given, options=OPTIONS) for make in (outbox.prepare, _prepare))
            assert one.content == other.content
            assert one.headers == other.headers
            assert one.report == other.report
            walked.ask(f"question {number}", THINK)


def _prepare(given: Any, *, options: Any) -> Any:
    return prepare(given, OPUS, options=options, policy=APPEND)


def test_the_policy_can_refuse_it(walked: Walk) -> None:
    talk(walked, 1)
    refusing = replace(APPEND, refuse=frozenset({ChangeCode.INSTRUCTIONS_APPENDED}))
    changed = replace(walked.context.add(UserMessage.of("So?")), system_prompt="Be kind.")
    with pytest.raises(ProjectionRefused):
        prepare(changed, OPUS, policy=refusing)


@pytest.mark.parametrize("group", tiers([0], [1]))
def test_the_laws_hold_with_this_policy(group: int) -> None:
    for seed in range(group * 8, (group + 1) * 8):
        walk(seed, 20, policy=APPEND)


@pytest.mark.proof
@pytest.mark.parametrize("group", range(40))
def test_the_laws_hold_with_this_policy_over_many_steps(group: int) -> None:
    for seed in range(5000 + group * 25, 5000 + (group + 1) * 25):
        walk(seed, 20, models=(OPUS, OPUS, SONNET, OPUS_5, BEDROCK_OPUS, GPT), policy=APPEND)
