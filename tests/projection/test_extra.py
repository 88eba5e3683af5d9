"""`extra` is sent only to the provider that it was written for (docs/decisions/0005-origin-of-extra.md).

The protocol of all models here is `openai-chat`; `OPENAI` and `OTHER` are two of its providers. `OTHER` accepts the key
`shared` from any provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from projection.building import (
    SONNET,
    assistant,
    call,
    changes_of,
    conversation,
    image,
    result,
    system,
    text,
    thinking,
    user,
)
from segue.conversation.content import Extra
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message, UserMessage
from segue.models.model import Model
from segue.projection.passes import extra
from segue.projection.policy import Policy
from segue.projection.projector import Projector, project
from segue.projection.report import Change, ChangeCode, Loss

OPENAI: Final = Model("gpt-4o", "openai", "openai-chat")
OTHER: Final = Model("other-1", "other", "openai-chat", rules={"portable_extra": ["shared"]})

DATA: Final[Extra] = {"openai-chat": {"private": 1, "shared": 2}}
PORTABLE: Final[Extra] = {"openai-chat": {"shared": 2}}
FORMAT: Final[Extra] = {"openai-chat": {"verbatim": {"name": {"to": None}}}}

BY_OPENAI: Final = assistant(OPENAI, "hello")
BY_OTHER: Final = assistant(OTHER, "hello")
CALL: Final = assistant(OPENAI, call("call_1"))


def with_extra(message: Any, extra: Extra | None = DATA) -> Any:
    return replace(message, extra=extra)


def sent(*messages: Message, target: Model = OTHER) -> tuple[Message, ...]:
    return project(conversation(*messages), target).context.messages


REDUCED: Final[Mapping[str, tuple[tuple[Message, ...], int]]] = {
    "a user message": ((user("hi"), BY_OPENAI, with_extra(user("go on"))), 2),
    "a tool result": ((user("hi"), CALL, with_extra(result("call_1", "ok"))), 2),
    "a later user message": ((user("hi"), BY_OTHER, user("and"), BY_OPENAI, with_extra(user("go on"))), 4),
    "an assistant message": ((user("hi"), with_extra(BY_OPENAI), user("go on")), 1),
}
"""Messages for `OTHER`, and the index of the one whose `extra` was written for another provider."""


@pytest.mark.parametrize(("messages", "index"), REDUCED.values(), ids=REDUCED.keys())
def test_another_provider_of_the_protocol_gets_only_portable_keys(messages, index):
    projection = project(conversation(*messages), OTHER)
    assert projection.context.messages[index].extra == PORTABLE
    assert changes_of(projection.report) == [f"extra_removed at messages[{index}]"]
    assert projection.report.changes[0].loss == Loss.OPAQUE
    strict = replace(OTHER, rules={})
    assert sent(*messages, target=strict)[index].extra is None


def test_the_same_holds_for_the_content_of_a_message():
    messages = (user("hi"), BY_OPENAI, user(text("a", extra=DATA), replace(image(), extra=DATA)))
    projection = project(conversation(*messages), OTHER)
    assert [content.extra for content in projection.context.messages[2].content] == [PORTABLE, PORTABLE]
    assert changes_of(projection.report) == ["extra_removed at messages[2]"]


KEPT: Final[Mapping[str, tuple[Message, ...]]] = {
    "before the first assistant turn": (with_extra(user(text("hi", extra=DATA))), BY_OPENAI),
    "in a conversation without an assistant turn": (with_extra(user("hi")),),
    "after a turn of the target's provider": (user("hi"), BY_OTHER, with_extra(user(text("go on", extra=DATA)))),
    "after a turn of the target's provider that follows one of another": (
        user("hi"), BY_OPENAI, user("and"), BY_OTHER, with_extra(user("go on"))
    ),
    "on a turn of the target's provider": (user("hi"), with_extra(BY_OTHER)),
    "if all keys are portable": (user("hi"), BY_OPENAI, with_extra(user("go on"), PORTABLE)),
    "if no codec sends it": (
        user("hi"),
        with_extra(BY_OPENAI, {"reply": {"openai-chat": {"a": 1}}}),
        with_extra(user("go on"), {"stored": {"a": 1}}),
    ),
    "if its key is the name of no protocol": (
        with_extra(user("hi"), {"claude-code": {"uuid": "1"}}),
        with_extra(BY_OPENAI, {"codex": {"ordinal": 1}, "agent": {"own": True}}),
        with_extra(user("go on"), {"claude-code": {"uuid": "2"}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("messages", KEPT.values(), ids=KEPT.keys())
def test_extra_is_kept(messages):
    projection = project(conversation(*messages), OTHER)
    assert projection.context.messages == messages
    assert changes_of(projection.report) == []


def test_extra_before_the_first_turn_is_kept_if_that_turn_is_unfinished_and_removed():
    messages = (user("hi"), assistant(OPENAI, "hel", stop="aborted"), with_extra(user("go on")))
    projection = project(conversation(*messages), OTHER)
    assert projection.context.messages == (messages[0], messages[2])
    assert changes_of(projection.report) == ["unfinished_turn at messages[1]"]


def test_extra_of_another_protocol_is_removed_everywhere():
    extra: Extra = {"google-genai": {"shared": 1}}
    messages = (with_extra(user("hi"), extra), BY_OTHER, with_extra(user("go on"), {**extra, **DATA}))
    projection = project(conversation(*messages), OTHER)
    assert [message.extra for message in projection.context.messages] == [None, None, DATA]
    assert changes_of(projection.report) == ["extra_removed at messages[0]", "extra_removed at messages[2]"]


def test_removing_only_wire_format_loses_nothing():
    projection = project(conversation(user("hi"), BY_OPENAI, with_extra(user("go on"), FORMAT)), OTHER)
    assert projection.context.messages[2].extra is None
    assert [change.loss for change in projection.report.changes] == [Loss.NONE]


def test_a_turn_of_the_same_model_that_lost_a_signed_block_also_loses_its_extra():
    extra: Extra = {"anthropic-messages": {"private": 1}}
    whole = assistant(SONNET, thinking("hm", "signature"), "hello", extra=extra)
    broken = assistant(SONNET, thinking("h\ud800m", "signature"), "hello", extra=extra)
    assert sent(user("hi"), whole, user("go on"), target=SONNET)[1].extra == extra
    assert sent(user("hi"), broken, user("go on"), target=SONNET)[1].extra is None


def test_a_system_message_follows_the_same_rule():
    target = replace(OTHER, rules={**OTHER.rules, "system_messages": "anywhere"})
    messages = (user("hi"), BY_OPENAI, with_extra(system("Be brief.")), user("go on"))
    assert sent(*messages, target=target)[2].extra == PORTABLE


def test_a_projector_that_continues_behind_a_cut_removes_the_same():
    messages = (
        with_extra(user("hi")), BY_OPENAI, with_extra(user("and")), BY_OTHER, with_extra(user("go on")),
        BY_OPENAI, user("and now"),
    )  # fmt: skip
    projector = Projector(OTHER, Policy())
    for count in range(1, len(messages) + 1):
        context = conversation(*messages[:count])
        assert projector.project(context) == project(context, OTHER)
    assert [message.extra for message in sent(*messages)] == [DATA, None, PORTABLE, None, DATA, None, None]


def test_data_of_an_image_in_a_result_is_not_sent_with_the_user_turn_that_it_moves_to():
    seen = replace(image(), extra=DATA)
    projection = project(conversation(user("hi"), CALL, result("call_1", "ok", seen)), OPENAI)
    moved = [piece for message in projection.context.messages for piece in message.content if piece.kind == "image"]
    assert moved == [image()]
    [change] = projection.report.of(ChangeCode.MEDIA_MOVED)
    assert (change.path, change.loss) == (("messages", 2, "content", 1), Loss.OPAQUE)


def test_fields_of_the_whole_conversation_are_reported_where_they_cannot_be_sent():
    given = Context(messages=(UserMessage.of("hi"),), extra={"google-genai": {"systemInstruction": {"labels": ["a"]}}})
    projection = project(given, "anthropic/claude-opus-4-8")
    change = Change(
        code=ChangeCode.EXTRA_REMOVED, path=("extra",), loss=Loss.OPAQUE, detail='systemInstruction: {"labels": ["a"]}'
    )
    assert (projection.report.changes, projection.context.extra) == ((change,), None)
    at_home = project(given, "google/gemini-3.5-flash")
    assert (at_home.report.changes, at_home.context.extra) == ((), given.extra)


@pytest.mark.parametrize(
    "value",
    [{str(number): number for number in range(999)}, [0] * 999, [[]] * 999, {"": [{}] * 999}, "x" * 999, '"' * 999],
    ids=["fields", "numbers", "lists", "inner", "text", "quotes"],
)
def test_only_the_start_of_a_removed_value_is_read(value: object, monkeypatch: pytest.MonkeyPatch):
    _, detail = extra.removal_of({"odd": value})
    assert detail == f"odd: {json.dumps(value)[:200]}…"
    seen: list[object] = []
    monkeypatch.setattr(extra, "_start", seen.append)
    extra.removal_of({"odd": value})
    assert len(json.dumps(seen)) < 3000


def test_the_format_of_options_is_kept_for_other_protocols_and_data_next_to_it_is_reported():
    given = Options(extra=FORMAT)
    projection = project(conversation(user("hi")), SONNET, options=given)
    assert projection.options is given
    assert projection.report.lossless
    data = Options(extra={"openai-chat": {**FORMAT["openai-chat"], "private": 1}})
    projection = project(conversation(user("hi")), SONNET, options=data)
    assert projection.options.extra is None
    assert [change.code for change in projection.report.changes] == [ChangeCode.EXTRA_REMOVED]
