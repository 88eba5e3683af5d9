"""Plain text: conversations as a list of turns and as one string, and turns read back."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols.plain_text.endpoints import ANYTHING
from protocols.plain_text.referee import complaints
from segue.conversation.content import FileContent, ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EmptyConversation, EncodeError
from segue.protocols.kit.codec import WireError
from segue.protocols.plain_text.content import write_transcript
from segue.protocols.plain_text.protocol import PROTOCOL as CODEC
from segue.requests.prepare import Request, prepare

JPEG = ImageContent(data="/9j/4AAQSkZJRgABAQEASABI", mime_type="image/jpeg")
CALL = ToolCall(id="c1", name="weather", arguments={"city": "Oslo"})
HISTORY = Context(
    system_prompt="Be brief.",
    messages=(
        UserMessage.of("Weather here?", JPEG),
        AssistantMessage(content=(ThinkingContent(thinking="Oslo."), TextContent(text="I will look."), CALL)),
        ToolResultMessage(tool_call_id="c1", tool_name="weather", content=(TextContent(text="5 °C"), JPEG)),
        AssistantMessage(content=(TextContent(text="Cold."),)),
        SystemMessage.of("Be kinder."),
        UserMessage.of("Thanks.", FileContent(data="aGVsbG8=", mime_type="text/plain")),
    ),
    tools=(ToolDefinition(name="weather", parameters={"type": "object"}),),
)
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather here?\n[Image: image/jpeg]"},
    {"role": "assistant", "content": 'I will look.\n[Tool Use: weather] {"city":"Oslo"}'},
    {"role": "user", "content": "[Tool Result: weather]\n5 °C\n[Image: image/jpeg]"},
    {"role": "assistant", "content": "Cold."},
    {"role": "system", "content": "Be kinder."},
    {"role": "user", "content": "Thanks.\nhello"},
]
TRANSCRIPT = """\
system:
Be brief.

user:
Weather here?
[Image: image/jpeg]

assistant:
I will look.
[Tool Use: weather] {"city":"Oslo"}

user:
[Tool Result: weather]
5 °C
[Image: image/jpeg]

assistant:
Cold.

system:
Be kinder.

user:
Thanks.
hello"""


def prepared(context: Context = HISTORY, options: Options | None = None) -> Request:
    return prepare(context, ANYTHING.model, options=options)


def test_everything_becomes_text():
    assert prepared().body == {"messages": TURNS}


def test_what_became_text_is_in_the_report():
    codes = {str(change.code) for change in prepared(options=Options(max_tokens=5)).report.changes}
    assert codes >= {"call_as_text", "result_as_text", "media_flattened", "tool_removed", "option_removed"}


def test_a_conversation_becomes_one_string():
    assert write_transcript(prepared().body) == TRANSCRIPT
    assert write_transcript(TURNS) == TRANSCRIPT


@pytest.mark.parametrize("turns", ["x", [1], [{"role": "user"}], [{"content": "x"}], {"messages": None}])
def test_only_turns_of_text_become_a_string(turns):
    with pytest.raises(DecodeError):
        write_transcript(turns)


@scaled_examples(2)
@given(data=st.data())
def test_every_history_becomes_valid_turns_and_a_string(data):
    [model] = TARGETS["plain-text"]
    seed = data.draw(st.integers(0, 2**32))
    context = data.draw(st.one_of(ugly_contexts(model), own_contexts(model)))
    try:
        request = prepare(context, model, options=make_options(seed))
    except EmptyConversation:
        return
    turns: list = request.body["messages"]  # pyright: ignore[reportAssignmentType]
    assert CODEC.check(request.body, ANYTHING) == []
    bare = [
        {"role": turn["role"], "content": turn["content"] or "-"} for turn in turns
    ]  # "-": a block of its own alone
    assert complaints({"messages": bare}) == []
    transcript = write_transcript(request.body)
    assert all(turn["content"] in transcript for turn in turns)


UNSUPPORTED = {
    "a call": (Context(messages=(AssistantMessage(content=(CALL,)),)), ("messages", 0, "content", 0)),
    "thinking": (
        Context(messages=(AssistantMessage(content=(ThinkingContent(thinking="x"),)),)),
        ("messages", 0, "content", 0),
    ),
    "an image": (Context(messages=(UserMessage.of("x", JPEG),)), ("messages", 0, "content", 1)),
    "a result": (Context(messages=(ToolResultMessage(tool_call_id="c", content=()),)), ("messages", 0)),
    "a tool": (Context(tools=(ToolDefinition(name="f"),)), ("tools",)),
}


@pytest.mark.parametrize(("context", "path"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_what_is_not_text_is_reported(context, path):
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=context), ANYTHING)
    assert caught.value.path == path


def test_an_option_is_reported():
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=Context(), options=Options(temperature=1.0)), ANYTHING)
    assert caught.value.path == ("options", "temperature")


def test_format_of_older_files_is_ignored_and_data_is_written():
    message = UserMessage(content=(TextContent(text="x"),), extra={"plain-text": {"shape": {"role": "tool"}, "n": 1}})
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), ANYTHING)
    assert body == {"messages": [{"role": "user", "content": "x", "n": 1}]}


def test_a_model_is_written_to_the_received_body_and_to_a_new_request_for_it():
    body = {"model": ANYTHING.model.id, "messages": [{"role": "user", "content": "x"}], "n": 1}
    prompt = CODEC.decode_request(body, ANYTHING)
    assert CODEC.encode_request(prompt, ANYTHING) == body
    request = prepare(prompt.context, ANYTHING.model, options=prompt.options)
    assert request.body == body
    other = prepare(prompt.context, replace(ANYTHING.model, id="other"), options=prompt.options)
    assert "model" not in other.body


def test_turns_are_read():
    prompt = CODEC.decode_request([*TURNS[:2], TURNS[4], TURNS[5]], ANYTHING)
    assert prompt.context == Context(
        system_prompt="Be brief.",
        messages=(
            UserMessage.of("Weather here?\n[Image: image/jpeg]"),
            AssistantMessage(
                content=(TextContent(text="Cold."),), protocol="plain-text", provider="plain-text", model="anything"
            ),
            SystemMessage.of("Be kinder."),
        ),
    )


REFUSED = {
    "no messages": ({}, ("messages",)),
    "a message that is a string": ({"messages": ["x"]}, ("messages", 0)),
    "no role": ({"messages": [{"content": "x"}]}, ("messages", 0, "role")),
    "no content": ({"messages": [{"role": "user"}]}, ("messages", 0, "content")),
    "a list as content": ({"messages": [{"role": "user", "content": []}]}, ("messages", 0, "content")),
}


@pytest.mark.parametrize(("body", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_a_malformed_body_is_reported(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, ANYTHING)
    assert caught.value.path == path


VIOLATIONS = {
    "no messages": ({}, ["messages_missing"]),
    "none in the list": ({"messages": []}, ["messages_missing"]),
    "a message that is a string": ({"messages": ["x"]}, ["type_wrong"]),
    "an unknown role": ({"messages": [{"role": "tool", "content": "x"}]}, ["role_unknown"]),
    "a list as content": ({"messages": [{"role": "user", "content": []}]}, ["type_wrong"]),
    "a turn without text": ({"messages": [{"role": "user", "content": " "}]}, ["text_blank"]),
    "several faults": (
        {"messages": ["x", {"role": "boss", "content": 1}, None, {"role": "user", "content": "x"}]},
        ["type_wrong", "role_unknown", "type_wrong", "type_wrong"],
    ),
    "half a surrogate pair": ({"messages": [{"role": "user", "content": "\ud800"}]}, ["body_not_json"]),
    "text": ({"messages": [{"role": "user", "content": "x", "name": "bob"}], "n": 1}, []),
}


@pytest.mark.parametrize(("body", "codes"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_the_check_reports_what_the_format_does_not_allow(body, codes):
    assert [violation.code for violation in CODEC.check(body, ANYTHING)] == codes


ERRORS = {
    "segue's format": ({"error": "no"}, WireError(status=500, message="no")),
    "bytes": (b'{"error": {"message": "no", "code": 1}}', WireError(status=500, code="1", message="no")),
    "bare text": ("no", WireError(status=500, message="no")),
    "nothing": (None, WireError(status=500)),
}


@pytest.mark.parametrize(("body", "error"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read(body, error):
    assert CODEC.decode_error(body, 500) == error


# -- streams -----------------------------------------------------------------------------------------------------------


def fold(*frames: object) -> tuple[list[str], AssistantMessage]:
    decoder = CODEC.stream_decoder(ANYTHING, {})
    events = [event for frame in frames for event in decoder.feed(frame)]  # pyright: ignore[reportArgumentType]
    return [event.type for event in events + decoder.finish()], decoder.message


STREAMS = {
    "text": (
        [{"content": "a"}, {"content": "b"}],
        ["start", "text_start", "text_delta", "text_delta", "text_end", "done"],
        "ab",
    ),
    "an empty reply": ([{"content": ""}], ["start", "done"], ""),
    "nothing at all": ([], ["start", "error"], ""),
    "an error": (
        [{"content": "a"}, {"error": "no"}, {"content": "b"}],
        ["start", "text_start", "text_delta", "text_end", "error"],
        "a",
    ),
    "content that is a number": ([{"content": 1}], ["start", "error"], ""),
    "a line that is no JSON": ([b"hello"], ["start", "error"], ""),
}


@pytest.mark.parametrize(("frames", "events", "text"), STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_ends_once(frames, events, text):
    result, message = fold(*frames)
    assert (result, message.text()) == (events, text)
    assert message.stop_reason == (StopReason.STOP if result[-1] == "done" else StopReason.ERROR)


# -- any body ----------------------------------------------------------------------------------------------------------

ODD = st.sampled_from([None, 0, True, "x", "", [], {}, ["x"], [{}]])


def some(**values):
    return st.fixed_dictionaries({}, optional={key: st.one_of(value, ODD) for key, value in values.items()})


TURN = some(role=st.sampled_from(["system", "user", "assistant", "tool"]), content=st.just("hi"), name=st.just("bob"))
BODY = some(messages=st.lists(TURN, max_size=4), model=st.just("m"), options=st.just({"a": 1}))
REPLY = some(role=st.just("assistant"), content=st.just("hi"), error=st.just("no"), score=st.just(1))


@scaled_examples(3)
@given(body=BODY)
def test_any_body_that_can_be_read_is_written_as_received(body):
    CODEC.check(body, ANYTHING)
    with suppress(DecodeError):
        assert CODEC.encode_request(CODEC.decode_request(body, ANYTHING), ANYTHING) == body


@scaled_examples(3)
@given(body=REPLY)
def test_any_reply_that_can_be_read_is_written_as_received(body):
    with suppress(DecodeError):
        assert CODEC.encode_response(CODEC.decode_response(body, ANYTHING, {}), ANYTHING) == body
