"""Stream encoders of every protocol: order, waiting, ids, heartbeats, ends, and what official SDKs accumulate."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import segue
from protocols.every_protocol import all_codecs
from protocols.sdk_accumulation import ACCUMULATIONS, filled
from protocols.sdk_views import VIEWS, view_of_message
from segue.conversation.messages import StopReason
from segue.conversation.replayed import message_events
from segue.events import (
    DoneEvent,
    ErrorEvent,
    PingEvent,
    StartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageEvent,
)
from segue.protocols.api import resolve_endpoint
from segue.protocols.openai_responses.content import is_item_id
from segue.testing.stream_laws import decode_frames, encode_events, make_reply

STREAMING = [codec for codec in all_codecs() if codec.stream_encoder is not None]
of_every_stream = pytest.mark.parametrize("codec", STREAMING, ids=[codec.name for codec in STREAMING])
of_every_sdk = pytest.mark.parametrize(
    "codec", [codec for codec in STREAMING if codec.name in VIEWS], ids=[c.name for c in STREAMING if c.name in VIEWS]
)


def encoder_of(codec, **rest) -> segue.StreamEncoder:
    return segue.stream_encoder(protocol=codec.name, model=codec.example, **rest)


def reply(*content, stop=StopReason.STOP, **rest) -> segue.AssistantMessage:
    return segue.AssistantMessage(content=content, protocol="p", provider="v", model="m", stop_reason=stop, **rest)


def test_every_protocol_but_plain_text_writes_streams():
    assert {codec.name for codec in all_codecs()} - {codec.name for codec in STREAMING} == {"plain-text"}
    with pytest.raises(segue.UnknownProtocol, match="no stream"):
        segue.stream_encoder(protocol="plain-text")
    with pytest.raises(segue.UnknownProtocol, match="no errors"):
        segue.encode_error(segue.Failure(kind=segue.FailureKind.SERVER), protocol="plain-text")


# -- order -------------------------------------------------------------------------------------------------------------


@of_every_stream
def test_a_text_is_written_as_it_arrives(codec):
    encoder = encoder_of(codec)
    encoder.feed(StartEvent(id="r1", model="m1"))
    encoder.feed(TextStart(index=0))
    for piece in ("one ", "two ", "three"):
        assert len(encoder.feed(TextDelta(index=0, delta=piece))) == 1


WAIT = {"google-genai", "ollama-chat", "mistral-chat", "vscode-lm"}


@of_every_stream
def test_arguments_are_written_as_they_arrive_unless_the_protocol_sends_calls_whole(codec):
    encoder = encoder_of(codec)
    encoder.feed(StartEvent())
    encoder.feed(ToolCallStart(index=0, id="c", name="f"))
    frames = [encoder.feed(ToolCallDelta(index=0, delta=piece)) for piece in ('{"a":', '"b"}')]
    assert [len(each) for each in frames] == ([0, 0] if codec.name in WAIT else [1, 1])


@of_every_stream
def test_a_part_without_start_and_deltas_is_written_from_its_end(codec):
    call = segue.ToolCall(id="c1", name="f", arguments={"a": 1})
    text = segue.TextContent(text="hi")
    message = reply(text, call, stop=StopReason.TOOL_USE)
    events = [
        TextEnd(index=0, content=text),
        ToolCallEnd(index=1, tool_call=call),
        DoneEvent(reason=StopReason.TOOL_USE, message=message),
    ]
    _, back = decode_frames(codec, encode_events(codec, events))
    assert back.text() == "hi"
    assert [(made.name, made.arguments) for made in back.tool_calls()] == [("f", {"a": 1})]


@of_every_stream
def test_a_call_whose_id_and_name_come_late_is_written_with_them(codec):
    call = segue.ToolCall(id="c1", name="f", arguments={"a": 1})
    message = reply(call, stop=StopReason.TOOL_USE)
    events = [
        StartEvent(),
        ToolCallStart(index=0, id="", name=""),
        ToolCallDelta(index=0, delta='{"a":'),
        ToolCallDelta(index=0, delta="1}"),
        ToolCallEnd(index=0, tool_call=call),
        DoneEvent(reason=StopReason.TOOL_USE, message=message),
    ]
    _, back = decode_frames(codec, encode_events(codec, events))
    assert [(made.name, made.arguments) for made in back.tool_calls()] == [("f", {"a": 1})]


@of_every_stream
def test_halves_of_a_surrogate_pair_are_joined(codec):
    events = [StartEvent(), TextStart(index=0)]
    events += [TextDelta(index=0, delta=piece) for piece in ("a\ud83d", "\ude00b", "\ud83d", "\ude00")]
    content = segue.TextContent(text="a😀b😀")
    events += [TextEnd(index=0, content=content), DoneEvent(reason=StopReason.STOP, message=reply(content))]
    frames = encode_events(codec, events)
    assert "\ud83d" not in repr(frames)
    assert decode_frames(codec, frames)[1].text() == "a😀b😀"


@of_every_stream
def test_nothing_comes_after_the_end(codec):
    encoder = encoder_of(codec)
    message = reply(segue.TextContent(text="hi"))
    encoder.feed(DoneEvent(reason=StopReason.STOP, message=message))
    assert encoder.feed(TextDelta(index=0, delta="x")) == []
    assert encoder.heartbeat() == []
    assert encoder.fail("boom") == []
    assert encoder.finish() == []


@of_every_stream
def test_a_block_of_another_protocol_is_refused(codec):
    native = segue.NativeContent(protocol="another", block={"type": "x"})
    with pytest.raises(segue.EncodeError, match="another"):
        encoder_of(codec).feed(segue.NativeEvent(index=0, content=native))


# -- ends --------------------------------------------------------------------------------------------------------------


@of_every_stream
def test_a_stream_that_is_finished_early_ends_with_an_error(codec):
    encoder = encoder_of(codec)
    frames = [*encoder.feed(StartEvent()), *encoder.feed(TextDelta(index=0, delta="hi")), *encoder.finish()]
    events, message = decode_frames(codec, frames)
    assert [event.type for event in events if event.type in ("done", "error")] == ["error"]
    assert message.text() == "hi"


@of_every_stream
@pytest.mark.parametrize("reason", ["refusal", "content_filter", "SAFETY"])
def test_a_withheld_reply_is_read_as_a_refusal(codec, reason):
    message = reply(
        segue.TextContent(text="I"),
        stop=StopReason.ERROR,
        raw_stop_reason=reason,
        error_message=f"the reply ended with {reason}",
    )
    _, back = decode_frames(codec, encode_events(codec, [ErrorEvent(reason=StopReason.ERROR, message=message)]))
    if codec.name not in ("ollama-chat", "mistral-chat"):  # they have no reason for it
        told = f"{back.raw_stop_reason!r} is no word of REFUSED in failures/codes.py"
        assert segue.classify(back).kind == segue.FailureKind.REFUSED, told


@of_every_stream
def test_a_failed_reply_keeps_its_kind(codec):
    message = reply(stop=StopReason.ERROR, error_message="overloaded_error: Overloaded")
    _, back = decode_frames(codec, encode_events(codec, [ErrorEvent(reason=StopReason.ERROR, message=message)]))
    assert segue.classify(back).kind == segue.FailureKind.OVERLOADED


# -- official SDKs -----------------------------------------------------------------------------------------------------


@of_every_sdk
@pytest.mark.parametrize("seed", range(25))
def test_an_sdk_sees_all_of_a_reply_of_another_protocol(codec, seed):
    events, message = make_reply(seed)
    frames = encode_events(codec, events, beats=True)
    assert VIEWS[codec.name](ACCUMULATIONS[codec.name](frames)) == view_of_message(message)


def whole_of(name: str) -> Any:
    if name == "anthropic-messages":
        from anthropic.types import Message

        return Message
    if name == "openai-chat":
        from openai.types.chat import ChatCompletion

        return ChatCompletion
    from openai.types.responses import Response

    return Response


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", ["anthropic-messages", "openai-chat", "openai-responses"])
def test_an_sdk_accumulates_what_it_reads_from_the_whole_reply(name, seed):
    codec = next(codec for codec in STREAMING if codec.name == name)
    events, message = make_reply(seed)
    body = codec.encode_response(message, resolve_endpoint(codec.example))
    wanted = filled(whole_of(name).construct(**body).to_dict())
    found = filled(ACCUMULATIONS[name](encode_events(codec, events)))
    if name == "openai-chat":
        found["object"] = wanted["object"]
        for call in found["choices"][0]["message"].get("tool_calls") or ():
            del call["index"]
    found["model"] = wanted["model"]  # the first frame names the model that answers, which this message does not know
    for call in found.get("output", ()):
        call.pop("parsed_arguments", None)
    assert without_zeros(found) == without_zeros(wanted)


def without_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_zeros(item) for key, item in value.items() if item != 0 or key == "output_tokens"}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


# -- what single protocols require -------------------------------------------------------------------------------------


def codec_named(name: str) -> Any:
    return next(codec for codec in STREAMING if codec.name == name)


def test_anthropic_opens_and_closes_every_block_and_ends_with_counts():
    events, _ = make_reply(7)
    frames: Any = encode_events(codec_named("anthropic-messages"), events)
    kinds = [frame["type"] for frame in frames]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")
    assert frames[-2]["usage"]["input_tokens"] > 0


def test_responses_numbers_its_events_and_has_one_id_throughout():
    codec = codec_named("openai-responses")
    encoder = encoder_of(codec)
    frames: Any = encoder.feed(StartEvent(id="resp_1"))
    frames += encoder.feed(TextDelta(index=0, delta="hi"))
    frames += encoder.heartbeat()
    message = reply(segue.TextContent(text="hi"), response_id="another")
    ended: Any = [*frames, *encoder.feed(DoneEvent(reason=StopReason.STOP, message=message))]
    assert [frame["sequence_number"] for frame in ended] == list(range(len(ended)))
    assert {frame["response"]["id"] for frame in ended if "response" in frame} == {"resp_1"}
    items = {frame["item"]["id"] for frame in ended if "item" in frame}
    assert items == {frame["item_id"] for frame in ended if "item_id" in frame}
    assert items == {item["id"] for item in ended[-1]["response"]["output"]}
    failing = encoder_of(codec)
    failed: Any = [*failing.feed(StartEvent(id="resp_1")), *failing.fail("boom")]
    assert failed[-1]["type"] == "response.failed"
    assert failed[-1]["response"]["id"] == "resp_1"


def test_items_of_two_responses_have_different_ids_and_a_stream_has_those_of_the_whole_reply():
    codec = codec_named("openai-responses")
    call = segue.ToolCall(id="c1", name="f", arguments={})
    content = (segue.ThinkingContent(thinking="hm"), segue.TextContent(text="hi"), call)
    items: list[Any] = []
    for name in ("resp_1", "resp_2", "gen/ü" * 50):
        message = reply(*content, stop=StopReason.TOOL_USE, response_id=name)
        whole: Any = segue.encode_response(message, protocol=codec.name)
        frames: Any = encode_events(codec, message_events(message))
        assert frames[-1]["response"]["output"] == whole["output"]
        assert [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"] == whole["output"]
        items += whole["output"]
    assert len({item["id"] for item in items}) == len(items) == 9
    assert all(is_item_id(item["id"], item["type"]) for item in items)


USAGE = segue.Usage(input=3, output=4, total_tokens=7)
CHAT = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "hi"}], "stream": True}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (None, True),
        (CHAT, False),
        ({**CHAT, "stream_options": {"include_usage": True}}, True),
        ({**CHAT, "stream_options": {"include_usage": False}}, False),
    ],
)
def test_chat_writes_the_usage_chunk_if_the_client_asked_for_it(body, wanted):
    options = None if body is None else segue.wire.decode_request(body, protocol="openai-chat").options
    encoder = segue.stream_encoder(protocol="openai-chat", options=options)
    frames: Any = encoder.feed(DoneEvent(reason=StopReason.STOP, message=reply(usage=USAGE)))
    assert frames[-1] == "[DONE]"
    assert any(isinstance(frame, dict) and "usage" in frame for frame in frames) is wanted


def test_google_writes_a_signature_behind_its_text():
    content = segue.TextContent(text="hi", text_signature="c2ln")
    message = reply(content)
    frames: Any = encode_events(codec_named("google-genai"), [*segue.message_events(message)])
    parts = [frame["candidates"][0]["content"]["parts"][0] for frame in frames]
    assert parts == [{"text": "hi"}, {"text": "", "thoughtSignature": "c2ln"}, {"text": ""}]


@of_every_stream
def test_a_ping_is_written_as_the_heartbeat_of_the_protocol(codec):
    one, other = encoder_of(codec), encoder_of(codec)
    for encoder in (one, other):
        encoder.feed(StartEvent())
    assert one.feed(PingEvent()) == other.heartbeat() != []
    assert one.feed(UsageEvent(usage=USAGE)) == []
    assert one.feed(replace(ThinkingStart(index=0))) is not None


@pytest.mark.parametrize(
    ("pieces", "status"),
    [(['{"city": ', '"Tokyo"}'], "completed"), (['{"city": "To'], "incomplete"), ([], "completed")],
)
def test_the_arguments_of_a_responses_stream_are_one_text_throughout(pieces, status):
    """The upstream may write spaces that the parsed arguments do not have."""
    text = "".join(pieces)
    parsed = segue.parse_arguments(text)
    call = segue.ToolCall(
        id="c", name="f", arguments=parsed.arguments, arguments_text=text if "incomplete" in status else None
    )
    stop = StopReason.LENGTH if status == "incomplete" else StopReason.TOOL_USE
    deltas = [ToolCallDelta(index=0, delta=piece) for piece in pieces]
    events = [StartEvent(), ToolCallStart(index=0, id="c", name="f"), *deltas, ToolCallEnd(index=0, tool_call=call)]
    frames: Any = encode_events(
        codec_named("openai-responses"), [*events, DoneEvent(reason=stop, message=reply(call, stop=stop))]
    )
    joined = "".join(frame["delta"] for frame in frames if frame["type"].endswith("arguments.delta"))
    items = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
    items += frames[-1]["response"]["output"]
    said = [frame["arguments"] for frame in frames if frame["type"].endswith("arguments.done")]
    assert {joined, *said, *(item["arguments"] for item in items)} == {text or "{}"}
    assert [item["status"] for item in items] == [status, status]
