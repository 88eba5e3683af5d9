"""Reasoning that is valid only behind what it was made after, against a server that plays these rules."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bound_state.strict_server import BETA, StrictServer, blocks_of
from bound_state.talking import LOOK, OPUS, Talk
from segue import (
    AssistantMessage,
    ChangeCode,
    Context,
    Loss,
    Model,
    NativeContent,
    Options,
    Outbox,
    Policy,
    ProjectionRefused,
    Sent,
    StopReason,
    TextContent,
    ThinkingContent,
    UserMessage,
    convert,
    get_model,
    prepare,
)
from segue.conversation.marks import marks_of
from segue.protocols.anthropic_messages.request import PREFIX
from segue.requests.binding import binder

SYSTEM = "the system prompt has changed since"
TOOLS = "the tools have changed since"
EARLIER = "an earlier message has changed since"
REFUSED = "the provider refused or dropped it before"
UNKNOWN = "what it was made after is not known"
SKIPPED = "later reasoning was made without it"


def test_a_growing_conversation_sends_all_of_its_reasoning():
    talk = Talk(tools=(LOOK,))
    assert [talk.ask(), talk.run_tool(), talk.ask(None), talk.ask()] == [0, 1, 2, 3]
    assert not talk.request.report.changes


def test_a_reply_remembers_what_it_was_made_after():
    talk = Talk()
    talk.ask()
    talk.ask()
    first, second = talk.reply(1).sent, talk.reply(3).sent
    assert first.before is None
    assert second.before == first.blocks[0]
    assert (first.system, first.tools) == (second.system, second.tools)
    assert first.messages != second.messages


@pytest.mark.parametrize("is_looping", [False, True], ids=["between questions", "inside a tool loop"])
@pytest.mark.parametrize(
    ("field", "value", "cause"),
    [
        ("system_prompt", "Be kind.", SYSTEM),
        ("system_prompt", None, SYSTEM),
        ("tools", (LOOK, replace(LOOK, name="listen")), TOOLS),
        ("tools", (replace(LOOK, description="Looks up."),), TOOLS),
    ],
    ids=["another system prompt", "no system prompt", "a tool more", "another description"],
)
def test_a_change_once_costs_the_reasoning_before_it_once(field, value, cause, is_looping):
    talk = Talk(tools=(LOOK,))
    talk.ask()
    talk.run_tool() if is_looping else talk.ask()
    talk.change(**{field: value})
    assert talk.ask(None if is_looping else "Go on.") == 0
    assert talk.causes() == [cause, cause]
    assert [talk.ask(), talk.ask(), talk.ask()] == [1, 2, 3]
    assert talk.causes() == [cause, cause]


def test_a_change_that_is_taken_back_before_new_reasoning_costs_nothing():
    talk = Talk()
    talk.ask()
    talk.server.thinks = 0
    talk.change(system_prompt="Be kind.")
    assert talk.ask() == 0
    talk.server.thinks = 1
    talk.change(system_prompt="Be brief.")
    assert talk.ask() == 1


def test_what_was_left_out_is_never_put_back_behind_newer_reasoning():
    talk = Talk()
    talk.ask()
    talk.change(system_prompt="Be kind.")
    talk.ask()
    talk.change(system_prompt="Be brief.")
    assert talk.ask() == 1  # that of the first reply: the second was made for another prompt
    assert talk.causes() == [SYSTEM]
    assert talk.ask() == 2


def test_an_edit_keeps_what_stands_before_it():
    talk = Talk()
    for _ in range(4):
        talk.ask()
    talk.edit(4, lambda _: UserMessage.of("Something else."))
    assert talk.ask() == 2
    assert talk.causes() == [EARLIER, EARLIER]
    assert talk.ask() == 3


def test_a_deleted_first_turn_costs_all_reasoning():
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.change(messages=talk.context.messages[2:])
    assert talk.ask() == 0
    assert talk.ask() == 1


def test_a_removed_block_ends_the_run_there():
    talk = Talk()
    for _ in range(4):
        talk.ask()
    talk.edit(3, lambda message: replace(message, content=message.content[1:]))
    assert talk.ask() == 2
    assert talk.causes() == [SKIPPED]


def test_one_of_two_blocks_removed_ends_the_run_between_them():
    talk = Talk(StrictServer(thinks=2))
    for _ in range(3):
        talk.ask()
    talk.edit(3, lambda message: replace(message, content=message.content[1:]))
    assert talk.ask() == 3
    talk = Talk(StrictServer(thinks=2))
    for _ in range(3):
        talk.ask()
    talk.edit(3, lambda message: replace(message, content=(message.content[0], *message.content[2:])))
    assert talk.ask() == 3  # the three before the gap are worth more than the two behind it


def test_blocks_removed_from_either_end_cost_nothing_else():
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.edit(1, lambda message: replace(message, content=message.content[1:]))
    assert talk.ask() == 2
    talk.edit(7, lambda message: replace(message, content=message.content[1:]))
    assert talk.ask() == 2
    assert not talk.request.report.changes


def test_a_reply_without_reasoning_decides_nothing():
    talk = Talk()
    talk.ask()
    talk.server.thinks = 0
    talk.ask()
    talk.ask()
    talk.server.thinks = 1
    assert [talk.ask(), talk.ask()] == [1, 2]


def test_a_fork_keeps_what_both_branches_share():
    talk = Talk()
    for _ in range(4):
        talk.ask()
    trunk = talk.context
    talk.change(messages=trunk.messages[:4])
    assert [talk.ask("Another way."), talk.ask()] == [2, 3]
    talk.context = trunk
    assert talk.ask() == 4


def test_a_stored_and_loaded_conversation_keeps_everything():
    talk = Talk(tools=(LOOK,))
    talk.ask()
    talk.run_tool()
    talk.reload()
    assert talk.ask(None) == 2
    talk.reload()
    assert talk.ask() == 3


def test_cache_marks_and_options_change_nothing():
    talk = Talk(tools=(LOOK,), options=Options(cache_retention="short"))
    assert [talk.ask(), talk.ask(), talk.ask()] == [0, 1, 2]
    talk.options = Options(cache_retention="long", thinking="low", max_tokens=2000, tool_choice="none")
    assert talk.ask() == 3


def test_switching_away_and_back_keeps_the_reasoning():
    talk = Talk()
    talk.ask()
    talk.ask()
    foreign = AssistantMessage(
        content=(ThinkingContent(thinking="hm", thinking_signature="foreign"), TextContent(text="I am another.")),
        protocol="openai-responses",
        provider="openai",
        model="gpt-5.5",
    )
    talk.context = talk.context.add(UserMessage.of("Say something."), foreign)
    assert [talk.ask(), talk.ask()] == [2, 3]


# -- what another model made -------------------------------------------------------------------------------------------


def reads(writer: str, reader: str) -> bool:
    return writer == reader or (writer, reader) in {
        ("claude-opus-5", "claude-opus-5-5"),
        ("claude-sonnet-5-5", "claude-opus-5-5"),
    }


def test_thinking_of_a_model_that_the_target_reads_is_sent_as_it_is():
    talk = Talk(StrictServer(reads=reads), get_model("anthropic/claude-opus-5"))
    talk.ask()
    assert talk.reply(1).sent is None
    talk.model = OPUS
    assert talk.ask() == 1
    assert talk.request.headers["anthropic-beta"] == BETA
    assert talk.request.projection.context.messages[1] is talk.context.messages[1]
    assert talk.ask() == 2
    assert "anthropic-beta" not in talk.request.headers


def test_thinking_of_an_account_bound_model_is_not_sent_elsewhere():
    model = Model("us.anthropic.claude-sonnet-5-5-v1:0", "amazon-bedrock", "bedrock-converse", reasoning=True)
    message = AssistantMessage(
        content=(ThinkingContent(thinking="", thinking_signature="s"), TextContent(text="Hello.")),
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
    )
    context = Context(messages=(UserMessage.of("Hi."), message, UserMessage.of("Go on.")))
    request = prepare(context, "anthropic/claude-sonnet-5-5")
    assert "'s'" not in str(request.body)
    assert [change.code for change in prepare(context, model).report.changes] == [ChangeCode.REASONING_ASKED]


@pytest.mark.parametrize("way", ["prepare", "Outbox"])
def test_imported_thinking_behind_a_new_system_prompt_is_in_the_report(way: str):
    message = AssistantMessage(
        content=(ThinkingContent(thinking="", thinking_signature="s"), TextContent(text="Hello.")),
        protocol=OPUS.protocol,
        provider=OPUS.provider,
        model=OPUS.id,
    )
    messages = (UserMessage.of("Hi."), message, UserMessage.of("Go on."))
    context = Context(system_prompt="Not the one that it was made after.", messages=messages)
    request = prepare(context, OPUS) if way == "prepare" else Outbox(OPUS).prepare(context)
    assert "block_binding" in request.body["thinking"]
    [change] = request.report.changes
    assert (change.code, change.path) == (ChangeCode.REASONING_ASKED, ("messages", 1, "content", 0))


# -- accounts ----------------------------------------------------------------------------------------------------------


def test_reasoning_stays_with_its_account():
    talk = Talk(model=get_model("anthropic/claude-sonnet-5-5"))
    talk.ask(account="org-a")
    assert talk.reply(1).sent.account == "org-a"
    assert talk.ask(account="org-b") == 0
    assert talk.causes() == ["made with another account"]
    assert talk.ask(account="org-b") == 1
    assert talk.ask(account="org-a") == 1
    assert talk.ask() == 2  # of the account of the newest reply: it is not known which one it is


def test_a_key_is_not_compared_with_the_name_of_an_account():
    talk = Talk(model=get_model("anthropic/claude-sonnet-5-5"))
    talk.ask(account="key:0123")
    context = talk.context.add(UserMessage.of("Go on."))
    assert not prepare(context, talk.model, account="org-a").report.changes
    assert prepare(context, talk.model, account="key:4567").report.changes


def test_a_model_that_is_not_bound_to_an_account_keeps_its_reasoning_in_another():
    talk = Talk()
    talk.ask(account="org-a")
    assert talk.ask(account="org-b") == 1


# -- imports -----------------------------------------------------------------------------------------------------------


def test_an_imported_conversation_is_asked_about_once():
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.forget()
    assert talk.ask() == 3
    assert talk.request.headers["anthropic-beta"] == BETA
    assert talk.request.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert len(talk.reply(7).sent.accepted) == 3
    talk.reload()
    assert [talk.ask(), talk.ask()] == [4, 5]
    assert "anthropic-beta" not in talk.request.headers


def test_what_the_server_dropped_of_an_import_is_never_sent_again():
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.forget()
    talk.change(system_prompt=None)
    assert talk.ask() == 3
    assert len(talk.reply(7).sent.dropped) == 3
    talk.reload()
    assert [talk.ask(), talk.ask()] == [1, 2]
    assert talk.causes() == [REFUSED] * 3


def test_an_import_is_remembered_by_a_reply_without_reasoning():
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.forget()
    talk.server.thinks = 0
    talk.ask()
    assert talk.ask() == 3
    assert "anthropic-beta" not in talk.request.headers
    talk.server.thinks = 1
    assert [talk.ask(), talk.ask(), talk.ask()] == [3, 4, 5]
    assert "anthropic-beta" not in talk.request.headers


def test_a_partly_imported_conversation_keeps_what_is_known():
    talk = Talk()
    for _ in range(4):
        talk.ask()
    talk.edit(5, lambda message: replace(message, sent=None))
    talk.edit(7, lambda message: replace(message, sent=None))
    assert talk.ask() == 4
    assert len(talk.reply(9).sent.accepted) == 3  # the known block before them, and both
    assert [talk.ask(), talk.ask()] == [5, 6]


def test_nobody_is_asked_about_an_import_of_another_account():
    """It is not sent there, so an answer would be about nothing, and would make it that account's own."""
    talk = Talk(model=get_model("anthropic/claude-sonnet-5-5"))
    talk.ask(account="org-a")
    talk.forget()
    talk.server.thinks = 0
    assert talk.ask(account="org-a") == 1
    assert talk.ask(account="org-b") == 0
    talk.change(system_prompt="Be kind.")
    assert talk.ask(account="org-b") == 0
    assert "anthropic-beta" not in talk.request.headers
    assert talk.reply(7).sent.accepted == ()
    assert talk.causes() == ["made with another account"]
    talk.change(system_prompt="Be brief.")
    assert [talk.ask(account="org-b"), talk.ask(account="org-a")] == [0, 1]
    assert "anthropic-beta" not in talk.request.headers


def test_an_import_of_another_account_does_not_cost_what_is_known():
    talk = Talk(model=get_model("anthropic/claude-sonnet-5-5"))
    talk.ask(account="org-b")
    talk.ask(account="org-a")
    talk.edit(3, lambda message: replace(message, sent=None))
    talk.server.thinks = 0
    assert talk.ask(account="org-a") == 1
    assert talk.ask(account="org-b") == 1
    assert talk.server.accepted[-1] == ["sig-1-0"]


def test_without_an_answer_all_that_was_asked_about_counts_as_dropped():
    talk = Talk()
    talk.ask()
    talk.forget()
    request = talk.prepare(talk.context.add(UserMessage.of("Go on.")))
    status, reply = talk.server.answer(request.body, request.headers)
    assert status == 200
    del reply["input_transformations"]
    sent = request.decode(reply).sent
    assert sent is not None
    assert sent.dropped == request.stamp.asked


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (replace(OPUS, rules={"drops_unbound": False}), None),
        (get_model("anthropic/claude-haiku-5-5"), Options(thinking="off")),
    ],
    ids=["the server does not drop", "thinking is off"],
)
def test_an_import_that_cannot_be_asked_about_is_left_out(model, options):
    talk = Talk(model=model, options=options)
    talk.ask()
    talk.forget()
    assert talk.ask() == 0
    assert talk.causes() == [UNKNOWN]


def test_a_model_of_ones_own_can_be_bound():
    model = Model(
        "my-claude",
        "my-gateway",
        "anthropic-messages",
        base_url="https://example.test",
        reasoning=True,
        rules={"bound_prefix": True},
    )
    talk = Talk(model=model)
    assert [talk.ask(), talk.ask()] == [0, 1]
    talk.change(system_prompt="Be kind.")
    assert talk.ask() == 0


# -- bodies that bring their own system and tools ----------------------------------------------------------------------


def test_an_intact_body_is_passed_on_as_it_is():
    talk = Talk(tools=(LOOK,))
    for _ in range(3):
        talk.ask()
    talk.forget()
    body = prepare(talk.context.add(UserMessage.of("Go on.")), OPUS).body
    del body["thinking"]
    converted = convert(body, target=OPUS)
    assert converted.body == body
    assert not converted.report.changes
    assert "anthropic-beta" not in converted.headers


# -- windows -----------------------------------------------------------------------------------------------------------


def test_after_a_cut_no_reasoning_from_before_it_is_sent():
    model = Model(OPUS.id, "anthropic", "anthropic-messages", reasoning=True, context_window=6000)
    talk = Talk(model=model, tools=(LOOK,))
    counts: list[int] = []
    for _ in range(24):
        talk.server.calls.append(("look", {}))
        counts.append(talk.ask("Look." if not counts else None))
        talk.answer_call("seen " * 400)
    assert 0 in counts[1:]
    assert max(counts) > 1
    assert talk.request.report.of(ChangeCode.RESULT_SHORTENED, ChangeCode.TURNS_DROPPED)
    assert set(talk.causes()) <= {"the conversation was cut to fit the window", SKIPPED}


# -- what is reported --------------------------------------------------------------------------------------------------


def test_a_policy_can_refuse_to_leave_reasoning_out():
    talk = Talk()
    talk.ask()
    talk.change(system_prompt="Be kind.")
    context = talk.context.add(UserMessage.of("Go on."))
    with pytest.raises(ProjectionRefused):
        prepare(context, OPUS, policy=Policy(refuse=frozenset({ChangeCode.REASONING_WITHHELD})))
    with pytest.raises(ProjectionRefused):
        prepare(context, OPUS, policy=Policy(refuse=frozenset({Loss.OPAQUE})))


def test_the_place_of_what_is_left_out_is_that_of_the_given_conversation():
    talk = Talk()
    talk.ask()
    failed = AssistantMessage(content=(), stop_reason=StopReason.ERROR, error_message="no")
    talk.change(system_prompt="Be kind.", messages=(UserMessage.of("First."), failed, *talk.context.messages))
    talk.ask()
    changes = talk.request.report.of(ChangeCode.REASONING_WITHHELD)
    assert [change.path for change in changes] == [("messages", 3, "content", 0)]


def test_targets_that_do_not_bind_are_left_alone():
    talk = Talk(model=get_model("anthropic/claude-opus-5"))
    talk.ask()
    talk.change(system_prompt="Be kind.")
    assert talk.ask() == 1
    assert talk.reply(3).sent is None


def test_a_thinking_block_alone_in_its_turn_leaves_a_turn_behind():
    talk = Talk()
    talk.ask()
    talk.edit(1, lambda message: replace(message, content=message.content[:1]))
    talk.forget()
    talk.change(
        messages=(
            *talk.context.messages[:1],
            replace(talk.reply(1), sent=Sent(messages="x")),
        )
    )
    request = talk.prepare(talk.context.add(UserMessage.of("Go on.")))
    assert [turn["content"][0]["type"] for turn in request.body["messages"]] == ["text", "text", "text"]


def test_a_compaction_block_begins_the_prefix():
    block = {"type": "compaction", "content": "So far: nothing.", "signature": "c"}
    talk = Talk()
    talk.ask()
    compaction = AssistantMessage(
        content=(NativeContent(protocol="anthropic-messages", block=block), TextContent(text="On.")),
        protocol="anthropic-messages",
        provider="anthropic",
        model=OPUS.id,
    )
    talk.context = Context(system_prompt="Be brief.", messages=(UserMessage.of("A."), compaction))
    first = talk.prepare(talk.context.add(UserMessage.of("Go on."))).stamp
    talk.context = Context(system_prompt="Be brief.", messages=(UserMessage.of("B."), compaction))
    assert talk.prepare(talk.context.add(UserMessage.of("Go on."))).stamp == first


def test_a_warm_turn_checks_only_what_is_new(monkeypatch):
    talk = Talk(tools=(LOOK,))
    outbox = Outbox(OPUS)
    talk.ask()
    talk.run_tool()
    outbox.prepare(talk.context)
    monkeypatch.setattr(binder, "choose_run", None)  # the whole conversation is not looked at again
    digested: list[int] = []
    digest = PREFIX.turn
    counting = replace(PREFIX, turn=lambda turn: digested.append(1) or digest(turn))
    monkeypatch.setattr(outbox._binder, "form", counting)
    for _ in range(3):
        context = talk.context.add(UserMessage.of("Go on."))
        request = outbox.prepare(context)
        _, reply = talk.server.answer(request.body, request.headers)
        talk.context = context.add(request.decode(reply))
    assert not talk.server.refused
    assert len(digested) <= 3 * 2 + 1  # the reply before and the question behind it


def test_a_turn_that_is_written_differently_without_reasoning_ends_all_of_it():
    model = replace(OPUS, rules={"final_thinking": "allowed"})
    talk = Talk(model=model)
    talk.ask()
    talk.change(messages=(talk.context.messages[0], replace(talk.reply(1), content=talk.reply(1).content[:1])))
    talk.ask()
    context = talk.context.add(UserMessage.of("Go on."))
    refused = frozenset(marks_of(talk.reply(1)))
    whole = prepare(context, model, refused=refused)
    assert talk.server.answer(whole.body, whole.headers)[0] == 200
    assert len(whole.report.of(ChangeCode.REASONING_WITHHELD)) == 2
    assert Outbox(model).prepare(context, refused=refused).content == whole.content


def test_the_run_that_is_worth_most_is_sent():
    """Signatures contain the thinking, so the longest are worth most; of equal ones, the newest."""
    for lengths, sent in (((10, 10, 10), 2), ((10, 10, 30), 1), ((10, 10, 19), 2), ((10, 10, 20), 1)):
        body = prepare(talk_with(*lengths), OPUS).body
        assert len([*blocks_of(dict(body))]) == sent, lengths


def talk_with(*lengths: int) -> Context:
    """Give a conversation in which the last reply was made without the reasoning before it."""
    context = Context(system_prompt="Be brief.")
    for number, length in enumerate(lengths):
        context = context.add(UserMessage.of(f"question {number}"))
        is_last = number == len(lengths) - 1
        asked = replace(context, messages=tuple(map(_bare, context.messages))) if is_last else context
        content = [
            {"type": "thinking", "thinking": "", "signature": str(number) * length},
            {"type": "text", "text": f"answer {number}"},
        ]
        body = {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}
        context = context.add(prepare(asked, OPUS).decode(body))
    return context.add(UserMessage.of("And?"))


def _bare(message):
    if message.role != "assistant":
        return message
    return replace(message, content=tuple(piece for piece in message.content if piece.kind != "thinking"))


def test_an_import_is_asked_about_where_the_model_thinks_on_request():
    """Haiku 5.5 has no options of thinking in its body by default; they are there once, to ask."""
    talk = Talk(model=get_model("anthropic/claude-haiku-5-5"))
    talk.ask()
    assert "thinking" not in talk.request.body
    talk.forget()
    assert talk.ask() == 1
    assert talk.request.body["thinking"]["type"] == "adaptive"
    assert talk.ask() == 2
    assert "thinking" not in talk.request.body


def test_a_block_is_proved_by_the_reply_behind_it():
    """What was converted or written by others has no stamps, and the first stamped reply names the block before it."""
    talk = Talk()
    for _ in range(4):
        talk.ask()
    replies = [at for at, message in enumerate(talk.context.messages) if message.role == "assistant"]
    for at in replies[:2]:
        talk.edit(at, lambda message: replace(message, sent=None))
    assert talk.ask() == 3
    assert talk.ask() == 4
