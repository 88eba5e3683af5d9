"""An outbox gives what `prepare` gives, byte for byte, however a history grows, and is never stale."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from random import Random
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_options, make_own, make_ugly
from property_testing import scaled_examples
from protocols.every_protocol import all_codecs
from segue.conversation.content import CacheMark, ImageContent, NativeContent, TextContent, ToolCall
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.exact import is_exact
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.outbox import Outbox
from segue.projection.policy import Policy
from segue.projection.projector import Projector
from segue.protocols.api import decode_request
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


def test_a_conversation_whose_wire_format_has_a_text_in_place_of_the_turns_is_encoded_whole():
    model = Model("gpt-5.4", "openai", "openai-responses")
    read = decode_request({"model": "gpt-5.4", "input": "question"}, protocol="openai-responses").context
    outbox = Outbox(model)
    compare(outbox, read, model)
    compare(outbox, read.add(new_assistant_message(model), UserMessage.of("another")), model)


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


@pytest.mark.parametrize("protocol", NAMES)
@scaled_examples(0.2)
@given(seed=st.integers(0, 2**32))
def test_branches_of_a_conversation_are_told_apart(protocol, seed):
    chance, model = Random(seed), TARGETS[protocol][0]
    outbox = Outbox(model)
    branches = [Context()]
    for step in range(6):
        earlier = chance.choice(branches)
        branches.append(earlier.add(*make_own(seed + chance.randrange(3), model).messages, f"question {step}"))
        compare(outbox, branches[-1], model)
    compare(outbox, chance.choice(branches[1:]), model)


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


# -- what differs only in a type or in the order of keys ---------------------------------------------------------------


def tool(**schema: object) -> ToolDefinition:
    return ToolDefinition(name="read", description="", parameters={"type": "object", **schema})


DIFFERENT = {
    "a number instead of true": (tool(x=True), tool(x=1)),
    "a float instead of an integer": (tool(x=1), tool(x=1.0)),
    "a negative zero": (tool(x=0.0), tool(x=-0.0)),
    "another order of keys": (tool(a=1, b=2), tool(b=2, a=1)),
    "another order of inner keys": (tool(x=[{"a": 1, "b": 2}]), tool(x=[{"b": 2, "a": 1}])),
}


@pytest.mark.parametrize("protocol", NAMES)
@pytest.mark.parametrize(("before", "after"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_tools_that_are_equal_but_not_the_same_are_encoded_anew(protocol, before, after):
    for model in TARGETS[protocol]:
        context, outbox = Context(messages=turns(model), tools=(before,)), Outbox(model)
        compare(outbox, context, model)
        compare(outbox, replace(context, tools=(after,)), model)


@pytest.mark.parametrize("protocol", NAMES)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(Options(temperature=1.0), Options(temperature=1), id="a number"),
        pytest.param(
            Options(output_schema={"type": "object", "x": True}),
            Options(output_schema={"type": "object", "x": 1}),
            id="a schema",
        ),
    ],
)
def test_options_that_are_equal_but_not_the_same_are_encoded_anew(protocol, before, after):
    for model in TARGETS[protocol]:
        context, outbox = Context(messages=turns(model)), Outbox(model)
        compare(outbox, context, model, before)
        compare(outbox, context, model, after)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ("a", "a", True),
        ([1, (2,)], [1, (2,)], True),
        ([1, 2], [1], False),
        ((1,), [1], False),
        ({"a": 1, "b": [2]}, {"a": 1, "b": [2]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({"a": 1}, {"a": None}, False),
        (Options(stop=("a",)), Options(stop=("a",)), True),
        (Options(seed=1), Options(seed=True), False),
        (None, None, True),
    ],
)
def test_exact_comparison(one, other, expected):
    assert is_exact(one, other) == is_exact(other, one) == expected


# -- threads and exceptions --------------------------------------------------------------------------------------------

OTHER_MODEL = Model("elsewhere", "another", "openai-chat")


class Guard:
    """A `Policy.same_model` that runs something when it is asked about a new turn."""

    def __init__(self) -> None:
        self.interrupt: Callable[[], object] | None = None

    def __call__(self, message: AssistantMessage, model: Model) -> bool:  # noqa: ARG002  # the signature of a policy
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            interrupt()
        return False


def long_history(model: Model, steps: int) -> Context:
    """Call a tool with the same id in every step: each step depends on how many came before."""
    messages: list[Message] = [UserMessage.of("go")]
    for step in range(steps):
        call = ToolCall(id="call_1", name="read file", arguments={"step": step})
        shown = NativeContent(protocol=model.protocol, block={"type": "shown"}, fallback=(TextContent(text="a cat"),))
        messages += [
            new_assistant_message(model, content=(TextContent(text=f"step {step}"), shown, call)),
            ToolResultMessage(
                tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="broken"),), is_error=True
            ),
        ]
    return Context(messages=tuple(messages), tools=(tool(),))


def makers(model: Model, policy: Policy) -> list[Callable[[Context], object]]:
    """Give an outbox and a projector, as functions."""
    outbox, projector = Outbox(model, policy), Projector(model, policy)

    def prepared(context: Context) -> object:
        request = outbox.prepare(context)
        return request.content, request.report

    def projected(context: Context) -> object:
        projection = projector.project(context)
        return projection.context, projection.report, projection.tool_names

    return [prepared, projected]


def expected_of(model: Model, context: Context) -> list[object]:
    policy = Policy(same_model=lambda message, model: False)
    return [make(context) for make in makers(model, policy)]


@pytest.mark.parametrize("protocol", NAMES)
@pytest.mark.parametrize("which", [0, 1], ids=["outbox", "projector"])
def test_a_thread_that_comes_in_between_changes_nothing(protocol, which):
    """The second thread comes while the first is in `same_model`, in the middle of the new messages."""
    model = TARGETS[protocol][0]
    context = long_history(OTHER_MODEL, 12)
    guard = Guard()
    make = makers(model, Policy(same_model=guard))[which]
    make(replace(context, messages=context.messages[:9]))
    second: list[object] = []
    thread = Thread(target=lambda: second.append(make(context)))

    def come_in_between() -> None:
        thread.start()
        thread.join(0.2)  # it waits for us; without a lock it would be done by now

    guard.interrupt = come_in_between
    first = make(context)
    thread.join()
    expected = expected_of(model, context)[which]
    assert first == expected
    assert second == [expected]


@pytest.mark.parametrize("which", [0, 1], ids=["outbox", "projector"])
def test_threads_that_share_one_get_what_each_would_get_alone(which):
    model = TARGETS["anthropic-messages"][0]
    contexts = [long_history(OTHER_MODEL, steps) for steps in (2, 5, 9, 14)]
    grown = [replace(contexts[3], messages=contexts[3].messages[:size]) for size in range(3, 29, 2)]
    cases = [*contexts, *grown]
    expected = [expected_of(model, context)[which] for context in cases]
    make = makers(model, Policy(same_model=lambda message, model: False))[which]
    wrong: list[int] = []
    begin = Barrier(4)

    def work(seed: int) -> None:
        chance = Random(seed)
        begin.wait()
        for _ in range(60):
            at = chance.randrange(len(cases))
            if make(cases[at]) != expected[at]:
                wrong.append(at)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.parametrize("protocol", NAMES)
@pytest.mark.parametrize("which", [0, 1], ids=["outbox", "projector"])
@pytest.mark.parametrize("error", [ValueError, KeyError, KeyboardInterrupt], ids=lambda error: error.__name__)
def test_an_exception_of_a_callback_changes_nothing(protocol, which, error):
    """`same_model` fails when it is asked for the first time, for the second time, and so on, in any pass."""
    model = TARGETS[protocol][0]
    context = long_history(OTHER_MODEL, 5)
    expected = expected_of(model, context)[which]
    failed = 0
    for at in range(100):
        guard = Guard()
        make = makers(model, Policy(same_model=guard))[which]
        make(replace(context, messages=context.messages[:3]))
        guard.interrupt = fail_later(guard, at, error("not now"))
        try:
            make(context)
        except error:
            failed += 1
        else:
            break
        guard.interrupt = None
        assert make(context) == expected
    assert 4 <= failed < 100


def fail_later(guard: Guard, count: int, error: BaseException) -> Callable[[], None]:
    """Raise an error after the guard was asked `count` times."""

    def fail() -> None:
        if count:
            guard.interrupt = fail_later(guard, count - 1, error)
        else:
            raise error

    return fail


@pytest.mark.parametrize("which", [0, 1], ids=["outbox", "projector"])
def test_a_callback_may_use_the_same_one(which):
    model = TARGETS["openai-chat"][0]
    context = long_history(OTHER_MODEL, 8)
    expected = expected_of(model, context)[which]
    guard = Guard()
    make = makers(model, Policy(same_model=guard))[which]
    make(replace(context, messages=context.messages[:7]))
    inner: list[object] = []
    guard.interrupt = lambda: inner.append(make(context))
    assert make(context) == expected
    assert inner == [expected]


class Failing(Mapping[str, ImageContent]):
    """A `Policy.media` that cannot be read once."""

    def __init__(self) -> None:
        self.fails = True

    def __getitem__(self, key: str) -> ImageContent:
        fails, self.fails = self.fails, False
        if fails:
            raise OSError("no media")
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("which", [0, 1], ids=["outbox", "projector"])
def test_media_that_cannot_be_read_change_nothing(which):
    model = Model("mistral", "mistral", "plain-text")
    image = UserMessage(content=(ImageContent(url="https://example.org/a.png"), TextContent(text="look")))
    context = long_history(OTHER_MODEL, 4)
    grown = context.add(image, new_assistant_message(OTHER_MODEL, content=(TextContent(text="a cat"),)), image)
    media = Failing()
    media.fails = False
    make = makers(model, Policy(media=media))[which]
    make(context)
    media.fails = True
    with suppress(OSError):
        make(grown)
    assert make(grown) == makers(model, Policy())[which](grown)
