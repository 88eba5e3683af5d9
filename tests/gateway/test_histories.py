"""What is remembered of a conversation changes nothing: a request is read and sent as if it were the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bound_clients import WIRES, Question
from gateway.running import running
from projection.histories import TARGETS, make_own, make_ugly
from property_testing import scaled_examples
from protocols.every_protocol import all_codecs
from segue.calls.reading import Call, read_call
from segue.conversation.exact import is_exact
from segue.envelope.keys import START_OF_CHAIN
from segue.errors import EmptyConversation
from segue.gateway import exchange, histories
from segue.gateway.config import load_config
from segue.gateway.histories import Histories, ReadRequest, Seam
from segue.gateway.runtime import Runtime
from segue.projection.report import Report
from segue.protocols.registry import get_protocol
from segue.requests.prepare import prepare
from segue.testing.emulator import EmulatedCall, Step

PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
RUNTIME = Runtime(load_config('[state]\nstore = "none"'), environment={})
TEXT = "I read the file first, and then I change it. " * 4
STEPS: list[dict[str, Any]] = [
    {"role": "user", "content": TEXT},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"n": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": TEXT}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"n": 2}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": TEXT}]},
]


@pytest.fixture(autouse=True)
def small_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "_SMALLEST", 0)


def ask(known: Histories, body: Mapping[str, Any], path: str = "/v1/messages", tenant: str = "t") -> ReadRequest:
    """Read a request, see that it is read as a whole one is, and keep it."""
    data = orjson.dumps(body)
    read = known.read(tenant, RUNTIME, "POST", path, {}, data)
    whole = read_call("POST", path, {}, data, catalogue=RUNTIME.router.catalogue)
    assert is_exact(read.call.prompt, whole.prompt)
    assert read.call == whole
    assert orjson.dumps(read.call.body) == data
    keep(known, read)
    return read


def keep(known: Histories, read: ReadRequest) -> None:
    if read.text is not None:
        given = messages_of(read.call)
        end = Seam(len(read.text.turns), len(given), len(given), START_OF_CHAIN, Report(()), 0, None)
        known.keep(read, RUNTIME, given, end, "c")


def messages_of(call: Call) -> tuple[Any, ...]:
    assert call.prompt is not None
    return call.prompt.context.messages


def messages_body(*turns: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [*turns]}


def test_every_protocol_whose_turns_are_read_apart_is_tried():
    assert set(PATHS) == {codec.name for codec in all_codecs() if codec.reads_apart}


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("make", [make_ugly, make_own], ids=["an ugly history", "the target's own history"])
@scaled_examples(2)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_a_growing_history_is_read_as_a_whole_one_is(protocol, make, seed, data):
    model = data.draw(st.sampled_from(TARGETS[protocol]))
    try:
        body = prepare(make(seed, model), model).body
    except EmptyConversation:
        return
    key = get_protocol(protocol).turns_key
    assert key is not None
    if not isinstance(body[key], list):
        return
    known = Histories()
    for end in range(1, len(body[key]) + 1):
        if data.draw(st.booleans()):
            ask(known, body | {"model": model.id, key: body[key][:end]}, PATHS[protocol])
    for _ in range(2):
        ask(known, body | {"model": model.id}, PATHS[protocol])


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("make", [make_ugly, make_own], ids=["an ugly history", "the target's own history"])
@scaled_examples(2)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=3), data=st.data())
def test_other_conversations_with_the_same_fields_are_read_as_whole_ones_are(protocol, make, seeds, data):
    model = data.draw(st.sampled_from(TARGETS[protocol]))
    key = get_protocol(protocol).turns_key
    bodies: list[Any] = []
    for seed in seeds:
        try:
            bodies.append(prepare(make(seed, model), model).body)
        except EmptyConversation:
            continue
    known = Histories()
    for first in bodies:
        for other in bodies:
            ask(known, first | {"model": model.id, key: other[key]}, PATHS[protocol])


TOOLS = [{"name": "read", "description": TEXT, "input_schema": {"type": "object", "properties": {}}}]


def tools_of(read: ReadRequest) -> tuple[Any, ...]:
    assert read.call.prompt is not None
    return read.call.prompt.context.tools


def test_a_new_conversation_has_the_tools_of_another_one_if_all_its_fields_are_equal():
    known = Histories()
    body = {**messages_body(STEPS[0]), "system": TEXT, "tools": TOOLS}
    first = ask(known, body)
    second = ask(known, {**body, "messages": [{"role": "user", "content": "Something else."}]})
    assert second.seam is None
    assert tools_of(second) is tools_of(first)
    for other in ({"system": "Another."}, {"max_tokens": 8}, {"metadata": {"user_id": "u"}}):
        third = ask(known, {**body, **other, "messages": [{"role": "user", "content": "A third thing."}]})
        assert tools_of(third) is not tools_of(first)
    for name, path in (("u", "/v1/messages"), ("t", "/v1/messages?beta=true")):
        other = ask(known, {**body, "messages": [{"role": "user", "content": "A fourth."}]}, path, name)
        assert tools_of(other) is not tools_of(first)


def test_instructions_among_the_turns_are_those_of_their_own_conversation():
    known = Histories()
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]
    body = {"model": "m", "messages": turns, "tools": [tool]}
    for sent in (turns, turns[1:], [{"role": "system", "content": "Be long."}, turns[1]], turns[1:]):
        ask(known, {**body, "messages": sent}, "/v1/chat/completions")


def test_what_is_kept_of_other_fields_is_bounded_and_dropped_with_a_conversation():
    known = Histories()
    body = {**messages_body(STEPS[0]), "tools": TOOLS}
    for at in range(300):
        ask(known, {**body, "max_tokens": at + 1}, f"/v1/messages?n={at % 40}")
    kept = known._heads
    assert sum(map(len, kept.values())) <= 64
    known.forget("c", "other")
    assert kept
    known.forget("c", "t")
    assert not kept


def test_a_client_with_many_paths_pushes_out_no_fields_of_others():
    known = Histories()
    body = {**messages_body(STEPS[0]), "tools": TOOLS}
    first = ask(known, body)
    for at in range(40):
        ask(known, body, f"/v1/messages?n={at}", "mallory")
    again = ask(known, {**body, "messages": [{"role": "user", "content": "Another thing."}]})
    assert tools_of(again) is tools_of(first)


def test_the_messages_of_earlier_requests_are_the_same_objects():
    known = Histories()
    first, second, third = (ask(known, messages_body(*STEPS[:end])) for end in (1, 3, 5))
    assert (first.seam, second.seam and second.seam.turns, third.seam and third.seam.turns) == (None, 1, 3)
    assert all(one is other for one, other in zip(messages_of(second.call), messages_of(third.call), strict=False))


def test_a_mark_that_moved_leaves_what_stands_before_it():
    def marked(end: int) -> dict[str, Any]:
        *before, last = STEPS[:end]
        blocks = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else last["content"]
        return messages_body(*before, {**last, "content": [{**blocks[0], "cache_control": {"type": "ephemeral"}}]})

    known = Histories()
    ask(known, messages_body(STEPS[0]))
    reads = [ask(known, marked(end)) for end in (3, 5)]
    assert [read.seam and read.seam.turns for read in reads] == [1, 1]


@pytest.mark.parametrize(
    "turns",
    [
        [*STEPS[:3], {"role": "user", "content": "more"}],
        [*STEPS[:3], STEPS[3], {**STEPS[2]}],  # a result of a call that stands before
        [*STEPS[:3], {"role": "assistant", "content": "a"}, {"role": "system", "content": "b"}],
    ],
    ids=["no reply", "a late result", "instructions"],
)
def test_turns_that_do_not_stand_alone_are_read_with_those_before_them(turns):
    known = Histories()
    ask(known, messages_body(*STEPS[:3]))
    assert ask(known, messages_body(*turns)).seam is None


def test_nothing_is_shared_with_another_tenant_configuration_path_or_other_options():
    known = Histories()
    ask(known, messages_body(*STEPS[:3]))
    other = Runtime(load_config('[state]\nstore = "none"'), environment={})
    data = orjson.dumps(messages_body(*STEPS))
    assert known.read("t", RUNTIME, "POST", "/v1/messages", {}, data).seam is not None
    assert known.read("other", RUNTIME, "POST", "/v1/messages", {}, data).seam is None
    assert known.read("t", other, "POST", "/v1/messages", {}, data).seam is None
    assert known.read("t", RUNTIME, "POST", "/v1/messages?beta=true", {}, data).seam is None
    assert ask(known, messages_body(*STEPS) | {"max_tokens": 10}).seam is None


def test_what_is_kept_is_bounded_in_all_and_for_each_tenant(monkeypatch):
    known = Histories()
    most = RUNTIME.config.limits.remembered_megabytes * 1_000_000
    text = "x" * round(most / 40)
    for tenant in "abcdefgh":
        for at in range(20):
            ask(known, messages_body({"role": "user", "content": f"{at} {text}"}), tenant=tenant)
            assert known.held_bytes <= most
        assert known.held_of(tenant) <= most / 4
    ask(known, messages_body({"role": "user", "content": "x" * round(most / 3)}), tenant="z")
    assert known.held_of("z") == 0


def test_a_history_is_forgotten_when_it_is_erased_and_after_an_hour(monkeypatch):
    known, now = Histories(), [0.0]
    monkeypatch.setattr(histories, "monotonic", lambda: now[0])
    ask(known, messages_body(*STEPS[:3]))
    now[0] += 3000
    assert ask(known, messages_body(*STEPS)).seam is not None
    now[0] += 1000
    assert ask(known, messages_body(*STEPS)).seam is None
    known.forget("c", "other")
    assert known.held_bytes
    known.forget("c", "t")
    assert known.held_bytes == 0


def test_a_body_with_half_a_surrogate_is_read_as_ever():
    known = Histories()
    ask(known, messages_body(*STEPS[:3]))
    data = orjson.dumps(messages_body(*STEPS)).replace(b'"n":2', b'"n":"\\ud800"')
    read = known.read("t", RUNTIME, "POST", "/v1/messages", {}, data)
    whole = read_call("POST", "/v1/messages", {}, data, catalogue=RUNTIME.router.catalogue)
    assert is_exact(read.call.prompt, whole.prompt)
    assert read.text is None


# -- a whole gateway ---------------------------------------------------------------------------------------------------


def names() -> Iterator[str]:
    return (f"name{at:018}" for at in count())


@pytest.mark.parametrize("model", ["m-anthropic", "m-responses", "m-gemini", "m-chat"])
@pytest.mark.parametrize("wire", ["messages", "chat", "responses"])
def test_providers_get_the_same_requests(wire, model, monkeypatch, tmp_path):
    def run(megabytes: int) -> list[Any]:
        made = names()
        monkeypatch.setattr(exchange, "random_name", lambda: next(made))
        store = f"sqlite:{tmp_path}/{megabytes}.db"
        with running(store=store, more=f"[limits]\nremembered_megabytes = {megabytes}") as gateway:
            emulator = gateway.upstream.emulator
            for at in range(3):
                call = EmulatedCall(name="read", arguments={"n": at})
                emulator.script.add(Step(thinking="hm", calls=(call,)), Step(thinking="so", text=f"Done, {at}."))
            client = WIRES[wire](gateway.url)
            try:
                history = [*client.user("Fix the area function.").items]
                for _ in range(6):
                    items, calls = client.ask(Question(model, "Be careful.", ("read",), stream=False), history)
                    history += [*items, *(client.results(calls, TEXT) if calls else client.user("Go on.")).items]
            finally:
                client.close()
            assert bool(gateway.gateway.histories.held_bytes) == bool(megabytes)
            assert {request.refusal for request in emulator.requests} == {None}
            return [request.body for request in emulator.requests]

    assert orjson.dumps(run(32)) == orjson.dumps(run(0))
