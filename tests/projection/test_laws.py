"""The laws of projection, as properties over every registered protocol. They outrank examples."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.building import FABLE, SONNET, assistant, system, user
from projection.compare import idle, unreported
from projection.histories import (
    PDF,
    PNG,
    TARGETS,
    fresh,
    make_ugly,
    options,
    own_contexts,
    plain,
    policies,
    targets,
    ugly_contexts,
)
from projection.validity import find_faults
from property_testing import scaled_examples, tiers
from segue.conversation.content import (
    CacheMark,
    Extra,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import Path
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.policy import Policy
from segue.projection.projector import project
from segue.projection.report import ChangeCode, Loss, Report
from segue.protocols.registry import PROTOCOLS

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
thorough = scaled_examples(0.6)


@every_protocol
@thorough
@given(data=st.data())
def test_a_projection_obeys_the_rules_of_the_target(protocol, data):
    model = data.draw(targets(protocol))
    context, asked, policy = data.draw(ugly_contexts(model)), data.draw(options()), data.draw(policies())
    projection = project(context, model, options=asked, policy=policy)
    assert find_faults(projection, model, policy or Policy()) == []


@every_protocol
@thorough
@given(data=st.data())
def test_pure_the_input_is_unchanged_and_unchanged_parts_are_the_same_objects(protocol, data):
    model = data.draw(targets(protocol))
    context, asked = data.draw(ugly_contexts(model)), data.draw(options())
    before = plain(context), plain(asked)
    projection = project(context, model, options=asked)
    assert (plain(context), plain(asked)) == before
    again = project(context, model, options=asked)
    assert again == projection
    if not projection.report.changes:
        assert projection.context is context
        assert asked is None or projection.options is asked
    given_messages = {message.timestamp: message for message in context.messages if message.role != "system"}
    for message in projection.context.messages:
        source = None if message.role == "system" else given_messages.get(message.timestamp)
        if source is not None and message == source:
            assert message is source
    if projection.context.tools == context.tools:
        assert projection.context.tools is context.tools


@every_protocol
@thorough
@given(data=st.data())
def test_idempotent_projecting_a_projection_changes_nothing(protocol, data):
    model = data.draw(targets(protocol))
    context, asked, policy = data.draw(ugly_contexts(model)), data.draw(options()), data.draw(policies())
    once = project(context, model, options=asked, policy=policy)
    twice = project(once.context, model, options=once.options, policy=policy)
    assert twice.report.changes == ()
    assert twice.context is once.context
    assert twice.options is once.options
    assert set(twice.requirements) <= set(once.requirements)


@every_protocol
@thorough
@given(data=st.data())
def test_the_same_model_gets_the_same_object(protocol, data):
    model = data.draw(targets(protocol).filter(lambda model: not model.router))
    context = data.draw(own_contexts(model))
    projection = project(context, model)
    assert projection.report.changes == ()
    assert projection.context is context


@every_protocol
@thorough
@given(data=st.data())
def test_the_report_is_complete_and_has_no_needless_change(protocol, data):
    model = data.draw(targets(protocol))
    context, asked, policy = data.draw(ugly_contexts(model)), data.draw(options()), data.draw(policies())
    projection = project(context, model, options=asked, policy=policy)
    assert unreported(context, asked or Options(), projection) == []
    assert idle(context, asked or Options(), projection) == []


@every_protocol
@thorough
@given(data=st.data())
def test_data_that_is_not_sent_is_reported_as_lost(protocol, data):
    model = data.draw(targets(protocol))
    drawn, policy = data.draw(ugly_contexts(model)), data.draw(policies())
    origin = data.draw(st.sampled_from((None, model)))
    messages = [_with_data(message, index, model, origin) for index, message in enumerate(drawn.messages)]
    context = replace(drawn, messages=tuple(messages))
    projection = project(context, model, policy=policy)
    sent = repr(plain(projection.context))
    lossy = [change.path for change in projection.report.changes if change.loss != Loss.NONE]
    for index, message in enumerate(context.messages):
        for path, mark in _marks(index, message).items():
            if mark not in sent:
                assert any(path[: len(reported)] == reported for reported in lossy), (path, projection.report.changes)


def _marks(index: int, message: Message) -> dict[Path, str]:
    """Name the data of a message and of each of its pieces."""
    marks: dict[Path, str] = {("messages", index): f"<{index}>"}
    return marks | {("messages", index, "content", at): f"<{index}.{at}>" for at in range(len(message.content))}


def _with_data(message: Message, index: int, target: Model, origin: Model | None) -> Message:
    """Give a message and its pieces data that the target would send back, and the turns another origin."""
    if message.role == "assistant" and origin is not None:
        message = replace(message, protocol=origin.protocol, provider=origin.provider, model=origin.id)

    def extra(*place: int) -> Extra:
        mark = f"<{'.'.join(map(str, place))}>"
        return {target.protocol: {"data": mark}}

    content = [replace(piece, extra=extra(index, at)) for at, piece in enumerate(message.content)]
    return replace(message, content=tuple(content), extra=extra(index))


def _answered_requests(context: Context) -> list[int]:
    """Find every k at which a request was sent and answered for good, perhaps after a reply that failed."""
    messages = context.messages
    found: list[int] = []
    for k in range(1, len(messages)):
        turn = messages[k]
        if turn.role != "assistant" or turn.stop_reason in ("error", "aborted"):
            continue
        if not _is_sent_after(messages[k - 1]):
            continue
        if not _reaches_back(context, k):
            found.append(k)
    return found


def _is_sent_after(message: Message) -> bool:
    """Whether a request is sent when this is the last message."""
    return message.role != "assistant" or message.stop_reason in ("error", "aborted")


def _reaches_back(context: Context, k: int) -> bool:
    """Whether a message from k on answers a call made before k: its id was last called there."""
    called: dict[str, int] = {}
    for index, message in enumerate(context.messages):
        if message.role == "assistant":
            for call in message.tool_calls():
                called[call.id] = index
        elif message.role == "toolResult" and index >= k and called.get(message.tool_call_id, k) < k:
            return True
    return False


@every_protocol
@thorough
@given(data=st.data())
def test_prefix_stable_an_answered_request_does_not_change(protocol, data):
    model = data.draw(targets(protocol))
    model = replace(
        model, rules={**model.rules, "max_images": 0, "large_images": None, "files": None, "cache_marks": 0}
    )
    context, policy = data.draw(ugly_contexts(model)), data.draw(policies())
    whole = project(context, model, policy=policy).context
    for k in _answered_requests(context):
        sent = project(replace(context, messages=context.messages[:k]), model, policy=policy).context
        kept = whole.messages[: len(sent.messages)]
        if policy is not None and policy.trailing_calls == "open" and kept and sent.messages:
            # a call that was left open has a result now; as text it stands at the end of the same message
            kept = (*kept[:-1], replace(kept[-1], content=kept[-1].content[: len(sent.messages[-1].content)]))
        assert kept == sent.messages
        if sent.messages:
            assert whole.system_prompt == sent.system_prompt


@every_protocol
@thorough
@given(data=st.data())
def test_an_early_id_never_changes_because_of_a_later_one(protocol, data):
    model = data.draw(targets(protocol))
    context = data.draw(ugly_contexts(model))
    cut = data.draw(st.integers(0, len(context.messages)))
    ids = _call_ids(project(context, model).context)
    early = _call_ids(project(replace(context, messages=context.messages[:cut]), model).context)
    for place, batch in early.items():
        assert len(set(batch)) == len(batch)
        assert ids[place] == batch


def _call_ids(context: Context) -> dict[int | None, list[str]]:
    turns = [message for message in context.messages if message.role == "assistant" and message.timestamp is not None]
    return {turn.timestamp: [call.id for call in turn.tool_calls()] for turn in turns}


@every_protocol
@thorough
@given(data=st.data())
def test_projecting_to_another_model_and_back_changes_nothing(protocol, data):
    model = data.draw(targets(protocol).filter(lambda model: not model.router))
    own = data.draw(own_contexts(model, most=6))
    visit = data.draw(ugly_contexts(model, most=5))
    last = len(own.messages)
    while last and own.messages[last - 1].role == "assistant":
        last -= 1
    own = replace(own, messages=own.messages[:last])
    answer = [message for message in visit.messages if message.role == "assistant" and not message.tool_calls()]
    mixed = replace(own, messages=fresh((*own.messages, *answer)))
    projection = project(mixed, model)
    assert projection.context.messages[:last] == mixed.messages[:last]
    for change in projection.report.changes:
        assert change.path[0] != "messages" or (len(change.path) > 1 and int(change.path[1]) >= last - 1)


# -- single histories that the laws have to hold for as well -----------------------------------------------------------

ANSWERED = {
    "a reply failed behind a turn that ends in white space": (
        SONNET,
        (
            user("hi"),
            assistant(SONNET, "and so "),
            assistant(SONNET, "it", stop="error"),
            assistant(SONNET, "so it is"),
        ),
        3,
    ),
    "instructions were answered by an empty turn": (
        FABLE,
        (user("hi"), system("be brief"), assistant(FABLE, " "), user("well?")),
        2,
    ),
}


@pytest.mark.parametrize(("model", "messages", "k"), ANSWERED.values(), ids=ANSWERED.keys())
def test_prefix_stable_in_a_single_history(model, messages, k):
    whole = project(Context(messages=messages), model).context.messages
    sent = project(Context(messages=messages[:k]), model).context.messages
    assert whole[: len(sent)] == sent


ALIKE = {
    "two instructions with one text, of which each loses something else": (
        TARGETS["ollama-chat"][0],
        (
            user("hi"),
            assistant(TARGETS["ollama-chat"][0], "yes"),
            SystemMessage(
                content=(
                    TextContent(text="be brief", text_signature="s\ud800"),
                    NativeContent(protocol="plain-text", block={"type": "odd"}),
                )
            ),
            SystemMessage(content=(TextContent(text="be brief"),), extra={"mistral-chat": {"odd": 1}}),
        ),
    ),
    "thinking between two calls with one id, which becomes a text before them": (
        SONNET,
        (
            user("hi"),
            user("so"),
            assistant(
                SONNET,
                ToolCall(id="call1abcd", name="read", arguments={"a": "\ud800"}),
                ThinkingContent(thinking="hm"),
                ToolCall(id="call1abcd", name="read", arguments={"a": "\ud800"}),
            ),
            ToolResultMessage(tool_call_id="call1abcd", tool_name="read", content=(TextContent(text="ok"),)),
        ),
    ),
    "a text behind media that become a text, before a blank one": (
        FABLE,
        (
            UserMessage(
                content=(
                    ImageContent(data="AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29t", mime_type="video/mp4"),
                    TextContent(text="look", text_signature="sig", cache_mark=CacheMark()),
                    TextContent(text="\n", cache_mark=CacheMark()),
                )
            ),
            user("hi"),
        ),
    ),
}


@pytest.mark.parametrize(("model", "messages"), ALIKE.values(), ids=ALIKE.keys())
def test_the_report_is_complete_where_messages_are_alike(model, messages):
    context = Context(messages=fresh(messages))
    projection = project(context, model)
    assert unreported(context, Options(), projection) == []
    assert idle(context, Options(), projection) == []
    changes = projection.report.changes
    assert changes
    for missing in changes:
        others = tuple(one for one in changes if one.path != missing.path)
        is_seen = missing.code != ChangeCode.CALL_MOVED  # among pieces that all changed, a move is not
        if is_seen and not any(missing.path[: len(one.path)] == one.path for one in others):
            assert unreported(context, Options(), replace(projection, report=Report(others))), missing
        doubled = replace(projection, report=Report((*changes, replace(missing, path=("messages", 1)))))
        assert idle(context, Options(), doubled) == [("messages", 1)]


_CORPUS = """
import sys
from projection.histories import TARGETS, make_ugly, ALL_TARGETS, make_options, make_policy, make_ugly
from segue.projection.projector import project
from segue.projection.report import ChangeCode, Loss

for seed, model in enumerate(ALL_TARGETS * 2):
    projection = project(make_ugly(seed, model), model, options=make_options(seed), policy=make_policy(seed + 1))
    sys.stdout.write(ascii((projection.context, projection.options, projection.report, projection.requirements)))
    sys.stdout.write(ascii(sorted(projection.tool_names.items())))
"""


@pytest.mark.parametrize("seeds", tiers(["01"], ["23"]))
def test_pure_the_same_in_every_process_whatever_its_hash_seed(seeds):
    assistant = {
        subprocess.run(
            [sys.executable, "-c", _CORPUS],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in seeds
    }
    assert len(assistant) == 1


@pytest.mark.parametrize("model", [TARGETS["anthropic-messages"][1], TARGETS["bedrock-converse"][2]])
def test_the_laws_hold_for_thousands_of_messages(model):
    pieces = [make_ugly(seed, model, most=30).messages for seed in range(250)]
    context = Context(messages=fresh([message for piece in pieces for message in piece]))
    assert len(context.messages) > 3000
    once = project(context, model)
    assert find_faults(once, model, Policy()) == []
    twice = project(once.context, model)
    assert twice.context is once.context
    assert twice.report.changes == ()


def test_redacted_thinking_with_a_label_is_unchanged_for_the_same_model():
    model = TARGETS["anthropic-messages"][0]
    thought = ThinkingContent(thinking="[Reasoning redacted]", thinking_signature="sig1", redacted=True)
    turn = new_assistant_message(model, content=(thought, TextContent(text="so")))
    context = Context(messages=(UserMessage.of("hi"), turn, UserMessage.of("and")))
    assert project(context, model).context is context


MARK = CacheMark(ttl="1h")
TEXT_FILE = FileContent(data="aGVsbG8=", mime_type="text/plain", cache_mark=MARK)
CALL = ToolCall(id="call1abcd", name="read", cache_mark=MARK)
CALLED = (user("hi"), assistant(FABLE, replace(CALL, cache_mark=None)))
FAILED = ToolResultMessage(
    tool_call_id="call1abcd",
    tool_name="read",
    content=(TextContent(text="no"), TextContent(text="such file", cache_mark=MARK)),
    is_error=True,
)
MARKED: dict[str, tuple[Message, ...]] = {
    "an image": (UserMessage(content=(ImageContent(data=PNG, mime_type="image/png", cache_mark=MARK),)),),
    "an image of no type": (UserMessage(content=(ImageContent(data="AAAA", cache_mark=MARK),)),),
    "an image by URL": (UserMessage(content=(ImageContent(url="https://example.org/i.png", cache_mark=MARK),)),),
    "a document": (UserMessage(content=(FileContent(data=PDF, mime_type="application/pdf", cache_mark=MARK),)),),
    "a text file": (UserMessage(content=(TEXT_FILE,)),),
    "a file by id": (UserMessage(content=(FileContent(file_id="file_1", cache_mark=MARK),)),),
    "sound": (UserMessage(content=(FileContent(data="AAAA", mime_type="audio/wav", cache_mark=MARK),)),),
    "the second of two equal files": (UserMessage(content=(replace(TEXT_FILE, cache_mark=None), TEXT_FILE)),),
    "a call": (user("hi"), assistant(FABLE, CALL), replace(FAILED, content=(TextContent(text="ok"),), is_error=False)),
    "a result": (
        user("hi"),
        assistant(FABLE, replace(CALL, cache_mark=None)),
        replace(FAILED, content=(), cache_mark=MARK),
    ),
    "instructions": (user("hi"), SystemMessage(content=(TextContent(text="Be brief.", cache_mark=MARK),)), user("so")),
    "the text of an error": (*CALLED, FAILED),
}


@pytest.mark.parametrize("messages", MARKED.values(), ids=MARKED.keys())
@every_protocol
def test_a_cache_mark_is_kept_or_its_removal_is_reported(protocol, messages):
    """Content that replaces marked content has its mark."""
    for model in TARGETS[protocol]:
        projection = project(Context(messages=messages), model)
        kept = repr(projection.context).count("cache_mark=CacheMark(")
        removed = [change for change in projection.report.changes if change.code == ChangeCode.CACHE_MARK_REMOVED]
        assert kept + len(removed) == 1, (model.full_name(), projection.report.summary())
