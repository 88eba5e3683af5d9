"""An outbox gives what `prepare` gives, byte for byte, however a history grows, and is never stale."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_options, make_own, make_ugly
from property_testing import scaled_examples
from protocols.every_protocol import all_codecs
from segue.conversation.content import CacheMark, TextContent, ToolCall
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import Message, ToolResultMessage, UserMessage
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.outbox import Outbox
from segue.request import prepare

NAMES = [codec.name for codec in all_codecs()]


def compare(outbox: Outbox, context: Context, model: Model, options: Options | None = None) -> None:
    """See that the outbox and `prepare` say the same, also where there is nothing to say."""
    try:
        whole = prepare(context, model, options=options)
    except EmptyConversation:
        with pytest.raises(EmptyConversation):
            outbox.prepare(context, options=options)
        return
    request = outbox.prepare(context, options=options)
    assert request.content == whole.content
    assert request.body == whole.body
    assert request.report == whole.report
    assert request.tool_names == whole.tool_names


@pytest.mark.parametrize("protocol", NAMES)
@pytest.mark.parametrize("make", [make_ugly, make_own], ids=["an ugly history", "the target's own history"])
@scaled_examples(0.4)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_an_outbox_gives_the_same_bytes_as_prepare(protocol, make, seed, data):
    model = data.draw(st.sampled_from(TARGETS[protocol]))
    options = data.draw(st.sampled_from([None, Options(cache_retention="short"), make_options(seed)]))
    context = make(seed, model)
    outbox, chance = Outbox(model), Random(seed)
    grown = replace(context, messages=())
    for message in context.messages:
        grown = grown.add(message)
        if chance.random() < 0.6:
            compare(outbox, grown, model, options)
    compare(outbox, context, model, options)


@pytest.mark.parametrize("protocol", NAMES)
@scaled_examples(0.4)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_an_edited_history_is_encoded_anew(protocol, seed, data):
    model = data.draw(st.sampled_from(TARGETS[protocol]))
    context = make_own(seed, model).add(*make_ugly(seed + 1, model).messages)
    outbox, chance = Outbox(model), Random(seed)
    compare(outbox, context, model)
    for _ in range(4):
        context = edited(context, chance)
        options = chance.choice([None, Options(cache_retention="long"), make_options(seed)])
        compare(outbox, context, model, options)


def edited(context: Context, chance: Random) -> Context:
    """Change a history as applications do: cut it short, replace or insert a message, take another prompt or tools."""
    messages = context.messages
    at = chance.randrange(len(messages) + 1)
    edited = UserMessage(content=(TextContent(text=f"edited {at}"),))
    match chance.randrange(6):
        case 0:
            return replace(context, messages=messages[:at])
        case 1:
            return replace(context, messages=(*messages[:at], edited, *messages[at:]))
        case 2:
            return replace(context, messages=(*messages[:at], edited, *messages[at + 1 :]))
        case 3:
            return replace(context, system_prompt="Other instructions.")
        case 4:
            return replace(context, tools=context.tools[:-1])
        case _:
            return context.add(edited)


@pytest.mark.parametrize("protocol", NAMES)
def test_old_messages_are_not_encoded_again(protocol, monkeypatch):
    """A long history costs no more messages to encode than a short one."""
    model = TARGETS[protocol][0]
    context = Context(tools=(ToolDefinition(name="read", description="", parameters={"type": "object"}),))
    for seed in range(40):
        context = context.add(*make_own(seed, model).messages)
    outbox = Outbox(model)
    outbox.prepare(context)
    written: list[int] = []
    codec = outbox._codec
    monkeypatch.setattr(
        outbox,
        "_codec",
        replace(
            codec,
            encode_request=lambda prompt, endpoint: (
                written.append(len(prompt.context.messages)),
                codec.encode_request(prompt, endpoint),
            )[1],
        ),
    )
    outbox.prepare(context.add(UserMessage.of("and now?")))
    assert sum(written) < len(context.messages) / 2


def turns(model: Model, *, marked: bool = False) -> tuple[Message, ...]:
    """Call a tool twice, each time after a question; `marked` puts a cache mark on the first question."""
    mark = CacheMark() if marked else None
    messages: list[Message] = []
    for step in ("one", "two"):
        call = ToolCall(id=f"call{step}12", name="read")
        messages += [
            UserMessage(content=(TextContent(text=step, cache_mark=mark if step == "one" else None),)),
            new_assistant_message(model, content=(call,)),
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="done"),)),
            new_assistant_message(model, content=(TextContent(text="so"),)),
        ]
    return (*messages, UserMessage.of("and?"))


@pytest.mark.parametrize("protocol", NAMES)
def test_a_user_message_in_the_place_of_a_reply_joins_the_results_before_it(protocol):
    """The kept turns end behind the results, so the user message must not begin a turn that the whole has not."""
    for model in TARGETS[protocol]:
        context, outbox = Context(messages=turns(model)), Outbox(model)
        compare(outbox, context, model)
        for cut in (7, 3):
            shorter = replace(context, messages=(*context.messages[:cut], UserMessage.of("wait")))
            compare(outbox, shorter, model)
            compare(outbox, context, model)


@pytest.mark.parametrize("protocol", NAMES)
def test_calls_in_the_kept_turns_decide_over_the_rest_of_the_body(protocol):
    """Some targets need `tools` in a request whose history has calls, also where there are none."""
    for model in (*TARGETS[protocol], *(Model("gpt-4o", "litellm", name) for name in {protocol} & {"openai-chat"})):
        context, outbox = Context(messages=turns(model)), Outbox(model)
        compare(outbox, context, model)
        compare(
            outbox,
            context.add(new_assistant_message(model, content=(TextContent(text="yes"),)), UserMessage.of("ok")),
            model,
        )


@pytest.mark.parametrize("protocol", NAMES)
@pytest.mark.parametrize("retention", ["short", "long"])
def test_cache_marks_of_the_conversation_leave_no_others(protocol, retention):
    for model in TARGETS[protocol]:
        context, outbox, options = (
            Context(messages=turns(model, marked=True)),
            Outbox(model),
            Options(cache_retention=retention),
        )
        compare(outbox, context, model, options)
        compare(
            outbox,
            context.add(new_assistant_message(model, content=(TextContent(text="yes"),)), UserMessage.of("ok")),
            model,
            options,
        )


def test_reset_drops_the_kept_bytes():
    model = TARGETS["anthropic-messages"][0]
    context = make_own(7, model)
    outbox = Outbox(model)
    outbox.prepare(context)
    outbox.reset()
    assert outbox._kept is None
    compare(outbox, context, model)
