"""The laws that need a codec, over every protocol that can be spoken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols.every_protocol import all_codecs, cuts, joined_turns, message_given, wire_messages, without_fields
from segue.conversation.context import Context, Options
from segue.conversation.messages import UserMessage
from segue.errors import EmptyConversation
from segue.protocols.api import resolve_endpoint
from segue.request import Request, prepare

CODECS = all_codecs()
NAMES = [codec.name for codec in CODECS]


def prepared(context, model) -> Request | None:
    try:
        return prepare(context, model)
    except EmptyConversation:
        return None


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@scaled_examples(1.2)
@given(data=st.data())
def test_any_history_becomes_a_request_the_target_accepts(codec, data):
    model = data.draw(st.sampled_from(TARGETS[codec.name]))
    request = prepared(data.draw(ugly_contexts(model)), model)
    if request is not None:
        assert codec.check(request.body, resolve_endpoint(model)) == []
        assert request.content


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@scaled_examples(0.6)
@given(data=st.data())
def test_a_projected_request_is_read_back_as_what_was_written(codec, data):
    model = data.draw(st.sampled_from(TARGETS[codec.name]))
    request = prepared(data.draw(ugly_contexts(model)), model)
    if request is None:
        return
    endpoint = resolve_endpoint(model)
    read = codec.decode_request(request.body, endpoint)
    assert codec.encode_request(read, endpoint) == request.body
    sent, back = request.projection.context, read.context
    if "turns" in codec.not_carried:
        sent, back = joined_turns(sent), joined_turns(back)
    if "pieces" in codec.not_carried:
        assert list(map(message_given, back.messages)) == list(map(message_given, sent.messages))
        return
    not_carried = codec.not_carried | {"extra"}  # spelling, which the first half of this test compares
    assert without_fields(back, not_carried) == without_fields(sent, not_carried)


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@scaled_examples(0.6)
@given(data=st.data())
def test_the_targets_own_history_is_sent_without_a_change(codec, data):
    targets = [model for model in TARGETS[codec.name] if not model.router]  # a router is nobody's home
    model = data.draw(st.sampled_from(targets))
    request = prepared(data.draw(own_contexts(model)), model)
    if request is not None:
        assert request.report.changes == ()


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@scaled_examples(0.6)
@given(data=st.data())
def test_a_request_that_was_answered_stays_the_beginning_of_every_later_one(codec, data):
    model = data.draw(st.sampled_from(TARGETS[codec.name]))
    # Media limits evict in steps, and marks move: both are outside of the law.
    model = replace(model, rules={**model.rules, "max_images": 0, "max_files": 0, "cache_marks": 0})
    context = data.draw(ugly_contexts(model))
    whole = prepared(context, model)
    places = cuts(context)
    if whole is None or not places:
        return
    place = data.draw(st.sampled_from(places))
    earlier = prepared(
        type(context)(system_prompt=context.system_prompt, messages=context.messages[:place], tools=context.tools),
        model,
    )
    if earlier is not None:
        before = wire_messages(earlier.body)
        assert wire_messages(whole.body)[: len(before)] == before


ASKED = ("max_tokens", "temperature", "top_p", "stop", "seed", "tool_choice", "output_schema", "user_id", "stream")
"""Options that a wire either has a word for or is not given; of thinking `test_asking_laws` knows more."""


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@scaled_examples(1)
@given(data=st.data())
def test_what_is_asked_is_sent_or_was_reported(codec, data):
    model = data.draw(st.sampled_from(TARGETS[codec.name]))
    context, seed = data.draw(own_contexts(model)), data.draw(st.integers(0, 2**32))
    try:
        request = prepare(context, model, options=make_options(seed))
    except EmptyConversation:
        return
    read = codec.decode_request(request.body, resolve_endpoint(model)).options
    result = request.projection.options
    if result.max_tokens is None:
        read = replace(read, max_tokens=None)  # one wire has to name a limit, asked or not
    assert asked(read, codec) == asked(result, codec)


def asked(options, codec):
    """Give what is asked; a choice left open is `auto`, which some wires have to say beside other words."""
    found = {name: getattr(options, name) for name in ASKED if name not in codec.not_carried}
    return {**found, "tool_choice": options.tool_choice or "auto"}


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@pytest.mark.parametrize("thinking", ["off", 0])
def test_a_model_that_is_told_not_to_think_is_told_so_or_that_was_reported(codec, thinking):
    context = Context().add(UserMessage.of("hello"))
    for model in TARGETS[codec.name]:
        request = prepare(context, model, options=Options(thinking=thinking))
        read = codec.decode_request(request.body, resolve_endpoint(model)).options.thinking
        if request.projection.options.thinking in ("off", 0):
            assert read in (None, "off", 0), model
        else:
            assert any(change.path == ("options", "thinking") for change in request.report.changes), model
