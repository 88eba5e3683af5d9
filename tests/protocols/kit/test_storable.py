"""Check that what every protocol reads can be stored, whatever the body holds."""

from __future__ import annotations

import json
import math

import pytest

from segue import (
    AssistantMessage,
    Context,
    ConversationError,
    ToolCall,
    UserMessage,
    decode_request,
    decode_response,
    dump,
    dump_message,
    encode_request,
    encode_response,
    load_message,
    prepare,
    stream_decoder,
)
from segue.protocols.kit.assembly import Assembly
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.registry import PROTOCOLS
from segue.testing.value_laws import WRONG_VALUES, check_wrong_values


def nested(levels, inner: object = 1):
    value = inner
    for _ in range(levels):
        value = {"a": value}
    return value


def anthropic_reply(arguments):
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "id": "m",
        "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": arguments}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def anthropic_stream(arguments):
    reply = anthropic_reply(arguments)
    [block] = reply["content"]
    return [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def read_stream(frames, protocol="anthropic-messages"):
    decoder = stream_decoder(protocol=protocol)
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    assert [event.type for event in events].count("done") == 1
    return decoder.message


UNSTORABLE = {
    "NaN": (math.nan, "nan"),
    "an infinity": (-math.inf, "-inf"),
    "1e999": (json.loads("1e999"), "inf"),
    "an integer of 5,000 digits": (10**5000, "(an integer of more than 4,300 digits)"),
    "an object of a class": (object(), "(a value of type object)"),
    "bytes": (b"a", "YQ=="),
}


@pytest.mark.parametrize(("value", "text"), UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_arguments_that_cannot_be_stored_become_text_and_are_reported(value, text):
    whole = decode_response(anthropic_reply({"a": [value]}), protocol="anthropic-messages")
    streamed = read_stream(anthropic_stream({"a": [value]}))
    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "assistant", "content": [anthropic_reply({"a": [value]})["content"][0]]}],
    }
    [turn] = decode_request(body, protocol="anthropic-messages").context.messages
    assert turn.role == "assistant"
    for message in (whole, streamed, turn):
        assert message.tool_calls()[0].arguments == {"a": [text]}
        assert [note.type for note in message.diagnostics] == ["unstorable"]
        assert load_message(dump_message(message)) == message


@pytest.mark.parametrize("levels", [33, 150, 195])
def test_arguments_that_nest_up_to_the_limit_are_kept_unchanged(levels):
    body = anthropic_reply(nested(levels))
    message = decode_response(body, protocol="anthropic-messages")
    assert message.tool_calls()[0].arguments == nested(levels)
    assert not message.diagnostics
    assert read_stream(anthropic_stream(nested(levels))).content == message.content
    assert encode_response(message, protocol="anthropic-messages") == body


@pytest.mark.parametrize("levels", [196, 197, 250, 900])
def test_what_nests_deeper_is_cut_where_the_limit_is(levels):
    message = decode_response(anthropic_reply(nested(levels)), protocol="anthropic-messages")
    assert message.tool_calls()[0].arguments == nested(195, "(nested too deeply to be stored)")
    assert [note.type for note in message.diagnostics] == ["unstorable"]
    assert read_stream(anthropic_stream(nested(levels))).content == message.content
    dump(Context(messages=(message,)))


def test_only_the_message_that_holds_a_replaced_value_gets_the_diagnostic():
    def turn(value):
        block = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": value}}
        result = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
        return {"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}

    body = {"model": "claude-sonnet-4-5", "messages": [*turn(1), *turn(math.nan), *turn("nan")]}
    context = decode_request(body, protocol="anthropic-messages").context
    noted = [bool(message.diagnostics) for message in context.messages if message.role == "assistant"]
    assert noted == [False, True, False]


def test_a_bare_list_that_contains_itself_is_read():
    body: list[object] = [{"role": "user", "content": "a"}]
    body.append({"role": "assistant", "content": body})
    context = decode_request(body, protocol="anthropic-messages").context
    assert [message.role for message in context.messages] == ["user", "assistant"]
    dump(context)


def test_an_event_of_a_call_can_be_stored_too():
    decoder = stream_decoder(protocol="anthropic-messages")
    events = [event for frame in anthropic_stream({"a": math.nan}) for event in decoder.feed(frame)]
    [end] = [event for event in events if event.type == "toolcall_end"]
    assert end.tool_call.arguments == {"a": "nan"}


FRAMES = {
    "half a surrogate pair in a str": '{"type": "ping", "a": "\ud800"}',
    "half a surrogate pair as bytes": b'{"type": "ping", "a": "\xed\xa0\x80"}',
    "an escaped half": b'{"type": "ping", "a": "\\ud800"}',
    "NaN": b'{"type": "ping", "a": NaN}',
    "1e999": b'{"type": "ping", "a": 1e999}',
    "300 levels": b'{"type": "ping", "a": ' + b"[" * 300 + b"]" * 300 + b"}",
    "an unhashable type": {"type": []},
    "an unhashable index": {"type": "content_block_stop", "index": {"a": []}},
    "a set as an index": {"type": "content_block_delta", "index": {1}, "delta": {}},
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
@pytest.mark.parametrize("protocol", ["anthropic-messages", "openai-responses", "openai-chat"])
def test_a_frame_with_any_value_does_not_end_a_stream(frame, protocol):
    decoder = stream_decoder(protocol=protocol)
    decoder.feed(frame)
    assert decoder.message.error_message is None
    dump_message(decoder.message)


UNREADABLE = {
    "a number": 7,
    "null": None,
    "a list": [1],
    "a tuple of one": ("a",),
    "a tuple of numbers": (1, 2),
    "a tuple with a number as its payload": ("contentBlockDelta", 7),
    "a JSON list": b"[1]",
    "no JSON": "\ud800",
    "100,000 levels": b"[" * 100_000,
}


@pytest.mark.parametrize("frame", UNREADABLE.values(), ids=UNREADABLE.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_that_is_no_object_ends_the_stream_with_an_error(frame, protocol):
    decoder = stream_decoder(protocol=protocol)
    events = decoder.feed(frame)
    assert events[-1].type == "error"
    dump_message(decoder.message)


def test_the_id_of_an_item_with_half_a_surrogate_pair_is_written_back_and_not_sent():
    item = {"type": "message", "id": "m\ud800", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    body = {"id": "r", "object": "response", "status": "completed", "model": "gpt-5.2", "output": [item]}
    message = decode_response(body, protocol="openai-responses", model="openai/gpt-5.2")
    assert encode_response(message, protocol="openai-responses")["output"] == [item]
    assert load_message(dump_message(message)) == message
    context = Context(messages=(UserMessage.of("q"), message, UserMessage.of("q")))
    prepare(context, "openai/gpt-5.2").content.decode()


def test_a_request_that_holds_nan_is_sent_as_text():
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": math.nan}}
    body = {"model": "m", "messages": [{"role": "assistant", "content": [call]}]}
    written = encode_request(decode_request(body, protocol="anthropic-messages"), protocol="anthropic-messages")
    assert written["messages"][0]["content"][0]["input"] == {"a": "nan"}


def test_a_copy_of_a_record_is_equal_to_it():
    record = PROTOCOLS["anthropic-messages"]
    assert type(record)(**{name: getattr(record, name) for name in record.__struct_fields__}) == record


@pytest.mark.proof
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_wrong_value_at_every_place_is_read_or_refused(protocol):
    for sample in PROTOCOLS[protocol].samples():
        check_wrong_values(PROTOCOLS[protocol], sample, tried=len(WRONG_VALUES))


def _cycle():
    value: dict[str, object] = {}
    value["a"] = [value]
    return value


@pytest.mark.parametrize("value", [math.nan, [{"a": math.inf}], _cycle()], ids=["NaN", "nested", "a cycle"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arguments_that_cannot_be_stored_are_refused_before_they_are_sent(protocol, value):
    call = ToolCall(id="c", name="f", arguments={"a": value})
    context = Context(messages=(UserMessage.of("q"), AssistantMessage(content=(call,))))
    with pytest.raises(ConversationError) as caught:
        prepare(context, PROTOCOLS[protocol].example)
    assert caught.value.path[:5] == ("messages", 1, "content", 0, "arguments")


@pytest.mark.parametrize("schema", ['{"maximum": NaN}', '{"a":' * 300 + "1" + "}" * 300, "no JSON"])
def test_a_schema_in_a_text_that_is_no_plain_json_is_kept_as_it_is(schema):
    text = {"type": "json_schema", "structure": {"jsonSchema": {"schema": schema}}}
    body = {"messages": [], "outputConfig": {"textFormat": text}}
    prompt = decode_request(body, protocol="bedrock-converse")
    assert prompt.options.output_schema is None
    assert encode_request(prompt, protocol="bedrock-converse") == body


def test_a_stream_whose_end_cannot_be_read_ends_with_an_error():
    class Reader:
        def read(self, frame, out):  # noqa: ARG002 - the interface of a reader
            out.start()

        def end(self, out):  # noqa: ARG002 - the same
            raise KeyError("a")

    decoder = StreamDecoder(Reader(), Assembly(PROTOCOLS["plain-text"].example, "plain-text"))
    decoder.feed({})
    assert [event.type for event in decoder.finish()] == ["error"]
