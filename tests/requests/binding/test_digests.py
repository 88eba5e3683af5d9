"""Digests of turns: what counts, and a cache that gives the same digests as no cache."""

from __future__ import annotations

import copy
import random
from typing import Any

import msgspec
import pytest

from segue import AssistantMessage, Context, ThinkingContent, UserMessage, get_model, prepare
from segue.gateway.passing import pass_body
from segue.protocols.api import decode_request, resolve_endpoint
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.registry import get_protocol
from segue.requests.binding.bind import Sender
from segue.requests.binding.digests import DigestCache, TurnDigests
from segue.requests.prepare import prepare_again

OPUS = get_model("anthropic/claude-opus-5-5")
CODEC = get_protocol("anthropic-messages")
assert CODEC.prefix is not None
FORM: PrefixForm = CODEC.prefix
Turns = list[dict[str, Any]]


def make_turns(count: int) -> Turns:
    """Make turns of a user and of a model that thinks."""
    turns: Turns = []
    for number in range(count):
        if number % 2:
            thinking = {"type": "thinking", "thinking": "", "signature": f"sig-{number}"}
            call = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"b": number, "a": "ä" * number}}
            turns.append({"role": "assistant", "content": [thinking, {"type": "text", "text": "Hm."}, call]})
        else:
            turns.append({"role": "user", "content": [{"type": "text", "text": f"question {number}"}]})
    return turns


def digest_all(turns: Turns, cache: DigestCache | None = None, head: str = "{") -> tuple[list[bytes], list[bytes]]:
    """Give the digest behind each turn, and that before each reply."""
    messages = [
        (place, AssistantMessage(content=(ThinkingContent(thinking="", thinking_signature=f"sig-{place}"),)))
        for place, turn in enumerate(turns)
        if turn["role"] == "assistant"
    ]
    if cache is None:
        digests = TurnDigests(FORM).followed_by(turns, messages)
    else:
        content = head.encode() + msgspec.json.encode(turns) + b"}"
        digests = TurnDigests.cached(FORM, turns, messages, (content, len(head) + 1), cache)
    return [digests.digest(at) for at in range(len(turns) + 1)], [reply.before for reply in digests.replies]


def _mark(turns: Turns) -> None:
    turns[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}


def _edit(turns: Turns) -> None:
    turns[40]["content"][0]["text"] = "edited"


def _strip(turns: Turns) -> None:
    for turn in turns[1:30:2]:
        del turn["content"][0]


def _compact(turns: Turns) -> None:
    turns[51]["content"].insert(0, {"type": "compaction", "content": "So far."})


def _shorten(turns: Turns) -> None:
    del turns[33:]


def _empty(turns: Turns) -> None:
    turns.clear()


CHANGES = {
    "nothing": lambda turns: None,
    "a cache mark moves": _mark,
    "an early message is edited": _edit,
    "reasoning is left out": _strip,
    "a summary begins the prefix": _compact,
    "a branch of earlier turns": _shorten,
    "no turns": _empty,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_cache_gives_the_digests_of_no_cache(change: Any) -> None:
    cache, before, after = DigestCache(), make_turns(80), make_turns(83)
    _mark(before)
    change(after)
    for turns in (before, after, before, after, make_turns(90)):
        assert digest_all(turns, cache) == digest_all(turns)
        assert digest_all(turns, cache, '{"another": "head"') == digest_all(turns)


def test_a_cache_gives_the_digests_of_no_cache_whatever_changes() -> None:
    chance, cache = random.Random(27), DigestCache(20_000)
    turns = make_turns(10)
    for _ in range(300):
        match chance.randrange(5):
            case 0 if len(turns) > 3:
                del turns[chance.randrange(1, len(turns)) :]
            case 1:
                at = chance.randrange(len(turns))
                turns[at] = {**turns[at], "content": [{"type": "text", "text": f"edited {chance.randrange(3)}"}]}
            case 2:
                _mark(turns)
            case _:
                turns = make_turns(len(turns) + chance.randrange(1, 4))
        turns = copy.deepcopy(turns)
        assert digest_all(turns, cache) == digest_all(turns)


def test_unchanged_turns_are_not_digested_again() -> None:
    digested: list[object] = []

    def turn(given: Any) -> Any:
        digested.append(given)
        return FORM.turn(given)

    form, cache = msgspec.structs.replace(FORM, turn=turn), DigestCache()
    for count in (80, 82):
        digested.clear()
        turns = make_turns(count)
        cache.read(form, turns, msgspec.json.encode(turns), 1)
        assert len(digested) == (80 if count == 80 else 2)


def test_a_cache_forgets_the_conversation_that_was_not_used_for_the_longest_time() -> None:
    conversations = [[{"role": "user", "content": f"{number}"}, *make_turns(40)[1:]] for number in range(3)]
    size = len(msgspec.json.encode(conversations[0])) + 2
    cache = DigestCache(2 * size)
    for turns in conversations:
        digest_all(turns, cache)
        assert cache.held_bytes <= 2 * size
    small = DigestCache(10)
    assert digest_all(conversations[0], small) == digest_all(conversations[0])
    assert small.held_bytes == 0, "one conversation is larger than all of it"


def test_a_request_with_a_cache_is_the_request_without() -> None:
    cache = DigestCache()
    context = Context(system_prompt="Be brief.")
    for number in range(4):
        context = context.add(UserMessage.of(f"question {number}"))
        request = prepare_again(context, OPUS, cache=cache)
        plain = prepare(context, OPUS)
        assert (request.content, request.stamp, request.report) == (plain.content, plain.stamp, plain.report)
        assert request.content.count(b'"signature"') == number
        context = context.add(_reply(request, number))


def _reply(request: Any, number: int) -> AssistantMessage:
    content = [{"type": "thinking", "thinking": "", "signature": f"c{number}"}, {"type": "text", "text": "Yes."}]
    usage = {"input_tokens": 20, "output_tokens": 40}
    reply = {"type": "message", "role": "assistant", "model": OPUS.id, "content": content, "stop_reason": "end_turn"}
    return request.decode({**reply, "usage": usage})


def test_the_key_order_of_a_body_that_is_passed_on_does_not_count() -> None:
    """A client writes keys in another order than segue; later its history is sent by segue."""
    first = {"content": [{"text": "Look.", "type": "text"}], "role": "user"}
    body = {"messages": [first], "max_tokens": 100, "model": OPUS.id, "system": "Be brief."}
    context = decode_request(body, protocol=CODEC.name, model=OPUS).context
    stamp = pass_body(CODEC, body, context.messages, Sender(resolve_endpoint(OPUS)))
    own = prepare(context, OPUS)
    assert stamp is not None
    assert own.body["messages"][0] == first
    assert stamp.messages == own.stamp.messages
    reply = _reply(own, 1)
    assert reply.sent is not None
    assert reply.sent.messages == stamp.messages
    later = context.add(reply, UserMessage.of("And?"))
    assert not prepare(later, OPUS).report.changes
