"""Cases that do not fit a table (new ids are hashes), and the choices of the caller.

The colliding ids are those on which other normalisers fail (pi-ai 1.5.0, Roo Code; run 2026-11).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from projection.building import (
    FABLE,
    GPT,
    GPT_4O,
    GPT_CHAT,
    KIMI,
    MISTRAL,
    OPUS,
    SONNET,
    TEXTS,
    assistant,
    call,
    calls_of,
    conversation,
    image,
    is_paired,
    missing,
    result,
    results_of,
    sanitised,
    thinking,
    user,
)
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.projection.passes.ids import NormalizeId
from segue.projection.policy import Policy
from segue.projection.projector import project, transform_messages

# -- ids that collide: the new ids are hashes, so they do not fit the tables ---------------------------------------

COLLIDING: Final[Mapping[str, tuple[tuple[Message, ...], Model, NormalizeId | None]]] = {
    "two ids that a normaliser makes one": (
        (user("hi"), assistant(GPT, call("a.b"), call("a_b")), result("a.b", "1"), result("a_b", "2")),
        SONNET,
        sanitised,
    ),
    "two ids that differ behind the cut": (
        (
            user("hi"),
            assistant(GPT, call("x" * 64 + "1"), call("x" * 64 + "2")),
            result("x" * 64 + "1", "1"),
            result("x" * 64 + "2", "2"),
        ),
        SONNET,
        sanitised,
    ),
    "one call with two items (go keeps the part before the pipe)": (
        (user("hi"), assistant(GPT, call("c|1"), call("c|2")), result("c|1", "1"), result("c|2", "2")),
        SONNET,
        lambda call_id, _model, _source: call_id.partition("|")[0],
    ),
    "the same id twice in one turn": (
        (user("hi"), assistant(GPT, call("a"), call("a")), result("a", "1"), result("a", "2")),
        SONNET,
        None,
    ),
    "the same id twice in one turn of the same model": (
        (user("hi"), assistant(SONNET, call("a"), call("a")), result("a", "1"), result("a", "2")),
        SONNET,
        None,
    ),
    "empty ids": (
        (user("hi"), assistant(GPT, call(""), call("")), result("", "1"), result("", "2")),
        GPT_CHAT,
        None,
    ),
    "an id of the target's own that it would refuse (stored by a proxy)": (
        (user("hi"), assistant(SONNET, call("a b"), call("a.b")), result("a b", "1"), result("a.b", "2")),
        SONNET,
        None,
    ),
    "ids of one vendor that share their beginning, at Mistral": (
        (
            user("hi"),
            assistant(SONNET, call("toolu_01AAAA"), call("toolu_01BBBB")),
            result("toolu_01AAAA", "1"),
            result("toolu_01BBBB", "2"),
        ),
        MISTRAL,
        None,
    ),
}


@pytest.mark.parametrize(("given", "target", "normalize"), COLLIDING.values(), ids=COLLIDING.keys())
def test_different_ids_stay_different(given: tuple[Message, ...], target: Model, normalize: NormalizeId | None):
    sent = transform_messages(given, target, normalize)
    assert is_paired(sent)
    assert [message.content for message in results_of(sent)] == [message.content for message in results_of(given)]
    assert all(piece.id for piece in calls_of(sent))


def test_an_early_id_does_not_depend_on_a_later_one():
    history = (user("hi"), assistant(GPT, call("a.b")), result("a.b", "1"))
    longer = (*history, assistant(GPT, call("a_b")), result("a_b", "2"))
    assert transform_messages(longer, MISTRAL)[:3] == transform_messages(history, MISTRAL)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_new_id_is_not_one_that_the_conversation_has(is_first):
    """Where ids are unique in the whole request, neither an id before a new one nor one after it may be the same."""
    strict = replace(MISTRAL, rules={"repeated_call_ids": {}})
    refused = (assistant(SONNET, call("toolu_01AAAA")), result("toolu_01AAAA", "1"))
    same = (assistant(MISTRAL, call("UGXcLMKna")), result("UGXcLMKna", "2"))
    sent = transform_messages((user("hi"), *(same + refused if is_first else refused + same)), strict)
    first, second = calls_of(sent)
    assert first.id == "UGXcLMKna" != second.id
    assert is_paired(sent)


def test_a_new_id_is_the_same_in_every_release():
    """A changed hash would cost every running conversation its prompt cache, once."""
    sent = transform_messages((user("hi"), assistant(SONNET, call("toolu_01AAAA"))), MISTRAL)
    assert [piece.id for piece in calls_of(sent)] == ["UGXcLMKna"]


# -- choices of the policy, through `project` --------------------------------------------------------------------------

SIGNED: Final = (user("hi"), assistant(OPUS, thinking("Let me see.", "sig0"), "Hello."), user("ok"))
OPEN: Final = (user("hi"), assistant(OPUS, thinking("Let me see."), "Hello."), user("ok"))
AS_TEXT: Final = (user("hi"), assistant(OPUS, "Let me see.", "Hello."), user("ok"))
DROPPED: Final = (user("hi"), assistant(OPUS, "Hello."), user("ok"))

POLICIES: Final = {
    "by default a model that reasons reads it as text": (SIGNED, FABLE, Policy(), AS_TEXT),
    "by default a model with a channel for it reads it there": (SIGNED, KIMI, Policy(), OPEN),
    "by default a model that does not reason does not get it": (SIGNED, GPT_4O, Policy(), DROPPED),
    "a model that does not reason does not get it even if the protocol has a field": (
        SIGNED,
        MISTRAL,
        Policy(),
        DROPPED,
    ),
    "text: also for a model that does not reason": (SIGNED, GPT_4O, Policy(reasoning="text"), AS_TEXT),
    "text: also where there is a channel": (SIGNED, KIMI, Policy(reasoning="text"), AS_TEXT),
    "drop: for everyone": (SIGNED, KIMI, Policy(reasoning="drop"), DROPPED),
    "drop: also where it could be text": (SIGNED, FABLE, Policy(reasoning="drop"), DROPPED),
    "native: the channel": (SIGNED, KIMI, Policy(reasoning="native"), OPEN),
    "native: text where there is none": (SIGNED, FABLE, Policy(reasoning="native"), AS_TEXT),
    "a caller may know two ids to be one model": (
        SIGNED,
        FABLE,
        Policy(same_model=lambda message, _model: message.model == "claude-opus-4-5"),
        SIGNED,
    ),
    "calls may be left open": (
        (user("hi"), assistant(SONNET, call("a"), call("b")), result("a", "ok")),
        SONNET,
        Policy(trailing_calls="open"),
        (user("hi"), assistant(SONNET, call("a"), call("b")), result("a", "ok")),
    ),
    "they stay open where results without a call are kept: the last result has one": (
        (user("hi"), assistant(SONNET, call("a"), call("b")), result("a", "ok"), result("a", "again")),
        SONNET,
        Policy(trailing_calls="open", orphan_results="text"),
        (user("hi"), assistant(SONNET, call("a"), call("b")), result("a", "ok")),
    ),
    "media of their results wait for the other results": (
        (user("hi"), assistant(GPT_4O, call("a"), call("b")), result("a", "ok", image())),
        GPT_4O,
        Policy(trailing_calls="open"),
        (user("hi"), assistant(GPT_4O, call("a"), call("b")), result("a", "ok")),
    ),
    "earlier ones are closed all the same": (
        (user("hi"), assistant(SONNET, call("a")), user("and?"), assistant(SONNET, call("b"))),
        SONNET,
        Policy(trailing_calls="open"),
        (user("hi"), assistant(SONNET, call("a")), missing("a"), user("and?"), assistant(SONNET, call("b"))),
    ),
    "a result without a call may be kept as text": (
        (user("hi"), result("lost", "found"), user("ok")),
        SONNET,
        Policy(orphan_results="text"),
        (user("hi"), user("[Result of tool read]\nfound"), user("ok")),
    ),
    "the last of two results may be the one": (
        (user("hi"), assistant(SONNET, call("1")), result("1", "one"), result("1", "again"), user("ok")),
        SONNET,
        Policy(duplicate_results="last"),
        (user("hi"), assistant(SONNET, call("1")), result("1", "again"), user("ok")),
    ),
    "the words for a missing result are the caller's": (
        (user("hi"), assistant(SONNET, call("1")), user("ok")),
        SONNET,
        Policy(texts=type(TEXTS)(missing_result="Interrupted by the user")),
        (user("hi"), assistant(SONNET, call("1")), missing("1", words="Interrupted by the user"), user("ok")),
    ),
}


@pytest.mark.parametrize(("given", "target", "policy", "sends"), POLICIES.values(), ids=POLICIES.keys())
def test_the_policy_decides(given, target, policy, sends):
    assert project(conversation(*given), target, policy=policy).context.messages == sends
