"""What happened to conversations with Claude models that bind their thinking, case by case.

In each case every request is accepted, what is valid is sent, and the report names what is not (`Walk.check`). The
assertions here say what else has to be true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from bound_state.machine import (
    BEDROCK_OPUS,
    BEDROCK_SONNET,
    FABLE,
    GEMINI,
    GPT,
    HAIKU,
    LOOK,
    OPUS,
    OPUS_5,
    ORGANIZATIONS,
    SMALL,
    SONNET,
    WAYS,
    Walk,
    signed_blocks,
    tool,
)
from segue import Model, UserMessage
from segue.testing.emulator import EmulatedCall, Emulator, Step

THINK = Step(thinking="Hm.", text="Yes.")
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}),))
CALLS = Step(
    thinking="Look.", text="Both.", calls=tuple(EmulatedCall(name="look", arguments={"n": n}) for n in range(2))
)
EVERY_WAY = sorted(set(WAYS))


@pytest.fixture(name="walk")
def _walk() -> Iterator[Walk]:
    walk = Walk()
    yield walk
    walk.close()


def talk(walk: Walk, turns: int = 2, *, way: str = "client") -> None:
    """Have some turns, with thinking."""
    for number in range(turns):
        walk.ask(f"question {number}", THINK, way=way)


def causes(walk: Walk) -> str:
    """Give everything that the report says."""
    return " ".join(change.sentence() for change in walk.report.changes)


CHANGES: tuple[tuple[str, Callable[[Walk], None], str], ...] = (
    ("the system prompt", lambda walk: walk.change(system_prompt="Be kind."), "system prompt"),
    ("a tool more", lambda walk: walk.change(tools=(LOOK, tool("listen"))), "tools"),
    ("another description", lambda walk: walk.change(tools=(tool("look", "Looks well."),)), "tools"),
    ("an earlier message", lambda walk: walk.edit(0, lambda _: UserMessage.of("edited")), "message"),
    ("the first turn gone", lambda walk: walk.change(messages=walk.context.messages[2:]), "message"),
)


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize(("change", "cause"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_something_changes_once(walk: Walk, change: Callable[[Walk], None], cause: str, way: str) -> None:
    talk(walk, 3, way=way)
    change(walk)
    before = set(walk.signatures())
    walk.ask("after the change", THINK, way=way)
    assert not before & set(walk.sent_signatures()), "all of it is bound to what was before"
    assert cause in causes(walk), causes(walk)
    talk(walk, 3, way=way)
    assert len(walk.sent_signatures()) == 3, "what was made since the change is valid"
    assert all(request.status == 200 for request in walk.emulator.requests)


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("change", [row[1] for row in CHANGES[:3]], ids=[row[0] for row in CHANGES[:3]])
def test_it_changes_inside_a_tool_loop(walk: Walk, change: Callable[[Walk], None], way: str) -> None:
    talk(walk, 1, way=way)
    walk.ask("look", CALLS, way=way)
    walk.results()
    change(walk)
    walk.ask(None, CALL, way=way)
    assert walk.sent_signatures() == []
    walk.results()
    walk.ask(None, THINK, way=way)
    assert len(walk.sent_signatures()) == 1


def test_the_window_is_fitted_inside_a_tool_loop(walk: Walk) -> None:
    walk.window = SMALL
    walk.ask("look at all of it", CALL)
    for _ in range(12):
        walk.results("seen " * 400)
        walk.ask(None, CALL)
    walk.results()
    assert walk.ask(None, THINK).text() == "Yes."


def test_a_block_is_removed_from_the_middle(walk: Walk) -> None:
    talk(walk, 3)
    first, gone, last = signed_blocks(walk.context.messages)
    walk.edit(gone.message, lambda message: replace(message, content=message.content[1:]))
    walk.ask("more", THINK)
    assert walk.sent_signatures() == [last.signature], "the newest run"
    assert walk.ask("more", THINK)
    assert first.signature not in walk.sent_signatures(), "never put back"


def test_a_changed_system_prompt_comes_back(walk: Walk) -> None:
    talk(walk, 2)
    walk.change(system_prompt="Be kind.")
    talk(walk, 1)
    walk.change(system_prompt="Be brief.")
    talk(walk, 3)
    assert all(request.status == 200 for request in walk.emulator.requests)


@pytest.mark.parametrize("has_instructions", [True, False], ids=["other instructions", "no system prompt, no tools"])
def test_an_imported_session_is_asked_about_once(walk: Walk, has_instructions: bool) -> None:
    if not has_instructions:
        walk.change(system_prompt=None, tools=())
    walk.import_session(3)
    talk(walk, 4)
    asked = [request for request in walk.emulator.requests if "block_binding" in json.dumps(request.body)]
    assert len(asked) <= 1
    assert len(walk.sent_signatures()) == 3, "those that were made since"


def test_an_imported_session_that_is_still_valid_is_kept(walk: Walk) -> None:
    talk(walk, 3)
    walk.forget()
    walk.reload()
    kept = walk.signatures()
    talk(walk, 2)
    assert walk.sent_signatures()[:3] == kept, "the server was asked, and accepts them"


READ: tuple[tuple[Model, Model, bool], ...] = (
    (OPUS_5, OPUS, True),
    (OPUS_5, FABLE, True),
    (SONNET, OPUS, True),
    (OPUS, FABLE, True),
    (FABLE, OPUS, False),
    (OPUS, SONNET, False),
    (OPUS, HAIKU, False),
    (OPUS, OPUS_5, False),
    (BEDROCK_SONNET, SONNET, False),
    (SONNET, BEDROCK_SONNET, False),
)


@pytest.mark.parametrize(
    ("producer", "reader", "is_read"), READ, ids=[f"{p.full_name()} by {r.full_name()}" for p, r, _ in READ]
)
def test_another_model_reads_it_or_not(walk: Walk, producer: Model, reader: Model, is_read: bool) -> None:
    walk.model = producer
    talk(walk, 2)
    made = walk.signatures()
    assert all(piece.thinking == "" for m in walk.context.messages for piece in m.content if piece.kind == "thinking")
    walk.model = reader
    walk.ask("more", THINK)
    assert walk.sent_signatures() == (made if is_read else [])
    assert walk.sent is not None
    assert walk.sent.transformations == ()


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("other", [GPT, GEMINI, OPUS_5, SONNET, BEDROCK_OPUS], ids=Model.full_name)
def test_switching_away_and_back_keeps_it(walk: Walk, other: Model, way: str) -> None:
    talk(walk, 2, way=way)
    made = walk.signatures()
    walk.model = other
    talk(walk, 1, way=way)
    walk.reload()
    walk.model = OPUS
    walk.ask("back", THINK, way=way)
    sent = walk.sent_signatures()
    assert sent, "the newest run is sent"
    if other in (GPT, GEMINI):
        assert sent == made


@pytest.mark.parametrize("way", EVERY_WAY)
def test_what_a_reader_accepted_is_not_sent_behind_what_that_reader_did_not_get(walk: Walk, way: str) -> None:
    """Opus 5 and Fable do not read Sonnet 5.5, Opus 5.5 reads both; Fable was asked about the thinking of Opus 5."""
    answer = Step(text="Yes.")
    for model, step in ((SONNET, THINK), (OPUS_5, THINK), (FABLE, answer), (OPUS, THINK), (OPUS, THINK)):
        walk.model = model
        walk.ask("go on", step, way=way)
    assert len(walk.sent_signatures()) == 2  # of Opus 5, and of Opus 5.5


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("is_continued", [True, False], ids=["continued", "a user message follows"])
def test_a_reply_that_paused_in_a_tool_of_the_provider(walk: Walk, is_continued: bool, way: str) -> None:
    talk(walk, 1, way=way)
    walk.ask("search", Step(thinking="Search.", text="I search.", paused=True), way=way)
    paused = walk.signatures()[-1]
    if not is_continued:  # the unfinished call cannot be sent, and its thinking only with the whole turn
        walk.unusable.add(paused)
    walk.ask(None if is_continued else "never mind", THINK, way=way)
    assert (paused in walk.sent_signatures()) == is_continued
    talk(walk, 2, way=way)
    assert len(walk.sent_signatures()) == 3 + is_continued


def test_a_fork_keeps_what_is_before_it(walk: Walk) -> None:
    talk(walk, 3)
    made = walk.signatures()
    walk.change(messages=walk.context.messages[:4])
    walk.ask("another way", THINK)
    assert walk.sent_signatures() == made[:2]


@pytest.mark.parametrize("model", [SONNET, GPT, BEDROCK_SONNET], ids=Model.full_name)
def test_another_account_does_not_get_what_it_cannot_read(walk: Walk, model: Model) -> None:
    walk.model = model
    walk.account = "key-b"
    talk(walk, 1)
    walk.change(messages=())
    walk.account = "key-a"
    talk(walk, 2)
    walk.account = "key-b"
    walk.ask("elsewhere", THINK)
    assert walk.sent is not None
    assert walk.sent.transformations == ()
    walk.account = "key-a"
    talk(walk, 1)
    assert all(request.status == 200 for request in walk.emulator.requests)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_another_model_reads_in_another_account(walk: Walk, way: str) -> None:
    """Thinking of Sonnet 5.5 is bound to its account, also where Opus 5.5 reads it, whose own is not."""
    walk.model = SONNET
    walk.ask("first", THINK, way=way)
    walk.account, walk.model = "key-b", OPUS
    walk.leave()
    walk.ask("second", THINK, way=way)
    assert "another account" in causes(walk)
    walk.ask("third", THINK, way=way)
    assert walk.sent_signatures() == walk.signatures()[1:2], "once the account is known, it is not sent"


@pytest.mark.parametrize("way", EVERY_WAY)
def test_imported_encrypted_reasoning_is_refused_once(walk: Walk, way: str) -> None:
    walk.model = GPT
    talk(walk, 2, way=way)
    walk.forget()
    walk.account = "key-b"
    walk.ask("in another account", THINK, way=way)
    assert [request.status for request in walk.emulator.requests] == [200, 200, 400, 200]
    walk.reload()
    walk.restart()
    talk(walk, 2, way=way)
    assert len(walk.emulator.refused_for_state()) == 1
    assert str(walk.emulator.requests[-1].body).count("'encrypted_content':") == 2, "its own comes back"


@pytest.mark.parametrize("model", [GPT, BEDROCK_SONNET, SONNET], ids=lambda model: model.id)
def test_imported_reasoning_belongs_to_the_account_that_accepted_it(walk: Walk, model: Model) -> None:
    walk.model = model
    talk(walk, 2)
    walk.forget()
    walk.ask("accepted", Step(text="Yes."))
    walk.account = "key-b"
    walk.ask("in another account", THINK)
    assert walk.emulator.refused_for_state() == []
    assert walk.report.changes, "what was left out is said"


def test_another_account_is_used_for_the_first_time(walk: Walk) -> None:
    for model in (SONNET, GPT):
        walk.model = model
        walk.restart()
        walk.account = "key-a"
        talk(walk, 1)
        walk.account = "key-b"
        walk.ask("elsewhere", THINK)


@pytest.mark.parametrize("way", ["client", "stream", "conversation"])
@pytest.mark.parametrize("is_looping", [False, True], ids=["between turns", "inside a tool loop"])
def test_a_refusal_is_learned_from_once(is_looping: bool, way: str) -> None:
    """The provider knows nothing of the conversation any more, which nobody can know before."""
    walk = Walk()
    talk(walk, 2, way=way)
    if is_looping:
        walk.ask("look", CALL, way=way)
        walk.results()
    walk.leave()
    walk.emulator = Emulator(organizations=ORGANIZATIONS)
    for number in range(3):
        if number == 1:
            walk.reload()
            walk.restart()
        walk.ask(None if is_looping and not number else "more", THINK, way=way, is_checked=False)
    assert len(walk.emulator.refused_for_state()) <= 1
    assert walk.emulator.repeated() == []
    walk.close()


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("others", [1, 3])
def test_a_short_visit_of_another_model_costs_nothing(walk: Walk, way: str, others: int) -> None:
    """Opus reads Sonnet, and Sonnet does not read Opus: there are two runs, and the longer one is sent."""
    talk(walk, 6, way=way)
    before = walk.signatures()
    walk.model = SONNET
    talk(walk, others, way=way)
    walk.model = OPUS
    walk.ask("back", THINK, way=way)
    assert walk.sent_signatures() == before
    walk.ask("again", THINK, way=way)
    assert walk.sent_signatures() == [*before, walk.signatures()[6 + others]]


def test_a_long_visit_of_another_model_is_worth_more(walk: Walk) -> None:
    talk(walk, 2)
    walk.model = SONNET
    talk(walk, 3)
    walk.model = OPUS
    walk.ask("back", THINK)
    assert walk.sent_signatures() == walk.signatures()[2:5]


@pytest.mark.parametrize("way", EVERY_WAY)
def test_thinking_of_an_imported_half_is_reported_with_another_account(walk: Walk, way: str) -> None:
    """Nothing says with which account it was made. The reply after it does, and the server drops it without a word."""
    walk.models, walk.model = (HAIKU,), HAIKU
    talk(walk, 2, way=way)
    whole = walk.context.messages
    walk.change(messages=whole[:2])
    walk.forget()
    walk.change(messages=(*walk.context.messages, *whole[2:]))
    walk.account = "key-b"
    walk.ask("with another account", THINK, way=way)
    assert causes(walk).count("another account") == 2


@pytest.mark.parametrize("way", EVERY_WAY)
def test_reasoning_items_that_were_refused_together_are_sent_to_no_account_again(walk: Walk, way: str) -> None:
    """One of them is of another account, and the refusal does not say which: each account would refuse them once."""
    walk.models, walk.model = (GPT,), GPT
    for account in ORGANIZATIONS:
        walk.account = account
        talk(walk)
    walk.forget()
    for account in reversed(ORGANIZATIONS):
        walk.account = account
        walk.ask(f"with {account}", THINK, way=way)
    assert len([request for request in walk.emulator.requests if request.refusal]) == 1


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_paused_call_that_another_model_went_on_from_is_not_sent_again(walk: Walk, way: str) -> None:
    """Its request ended with an inserted user turn, which comes again: so the provider cannot finish the call."""
    walk.ask("look it up", Step(thinking="Hm.", text="I search.", paused=True), way=way)
    walk.model = OPUS_5
    walk.ask(None, CALL, way=way)
    walk.results()
    walk.model = OPUS
    walk.unusable.update(walk.signatures())
    walk.ask(None, THINK, way=way)
    assert walk.sent is not None
    assert "server_tool_use" not in str(walk.sent.body)
    assert [request.status for request in walk.emulator.requests] == [200, 200, 200]
