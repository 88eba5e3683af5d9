"""Streams as vendors send them: each gives the message its whole reply would have given, and one terminal event."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from protocols.openai_chat.endpoints import GPT, calling, chunk, endpoint, fold, reply
from segue.calls.replies import stream_encoder
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.events import ThinkingDelta, ThinkingStart
from segue.framing.sse import SseDecoder
from segue.protocols.kit.verbatim import choose
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

DONE = "[DONE]"
STOP = chunk(reason="stop")
CALLED = chunk(reason="tool_calls")
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
GEMINI = endpoint("openrouter", "google/gemini-3-pro")


def entry(index=None, call_id=None, name=None, arguments=None, **beside):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    message_given = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in message_given.items() if value is not None} | beside


def tool(call_id, name="f", **arguments):
    return ToolCall(id=call_id, name=name, arguments=arguments)


def chose(default, received):
    return {"openai-chat": {"verbatim": choose("field", default, received)}}


def text(source):
    return TextContent(text=source)


def refused(source):
    return TextContent(text=source, extra=chose("content", "refusal"))


def thinking(source, signature="reasoning_content"):
    return ThinkingContent(thinking=source, thinking_signature=signature)


CONTENTS = {
    "text in pieces": (
        (chunk({"role": "assistant", "content": ""}), chunk({"content": "a"}), chunk({"content": "b"}), STOP),
        (text("ab"),),
    ),
    "text that comes with the finish reason": (
        (chunk({"content": "a"}), chunk({"content": "b"}, "stop")),
        (text("ab"),),
    ),
    "digits that come as numbers": (
        (chunk({"content": "["}), chunk({"content": 1}), chunk({"content": "] $"}), chunk({"content": 0.5}), STOP),
        (text("[1] $0.5"),),
    ),
    "a nought, alone": ((chunk({"role": "assistant", "content": 0}), STOP), (text("0"),)),
    "digits of reasoning": (
        (chunk({"reasoning_content": "t"}), chunk({"reasoning_content": 0}), chunk({"content": "a"}), STOP),
        (thinking("t0"), text("a")),
    ),
    "a nought beside reasoning": (
        (chunk({"reasoning_content": "t"}), chunk({"reasoning_content": "u", "content": 0}), STOP),
        (thinking("tu"), text("0")),
    ),
    "an object in place of text": ((chunk({"content": {"a": "b"}}), STOP), (text('{"a":"b"}'),)),
    "nothing but the end": ((chunk({"role": "assistant", "content": None}), STOP), ()),
    "reasoning, then text": (
        (chunk({"reasoning_content": "t"}), chunk({"reasoning_content": "u"}), chunk({"content": "a"}), STOP),
        (thinking("tu"), text("a")),
    ),
    "reasoning and text in one delta": (
        (chunk({"content": "a", "reasoning": "t"}), chunk({"content": "b"}), STOP),
        (thinking("t", "reasoning"), text("ab")),
    ),
    "reasoning that comes back": (
        (chunk({"reasoning": "t"}), chunk({"content": "a"}), chunk({"reasoning": "u"}), chunk({"content": "b"}), STOP),
        (thinking("tu", "reasoning"), text("ab")),
    ),
    "empty keys beside text": (
        (
            chunk({"role": "assistant", "content": "", "reasoning_content": "t", "tool_calls": None}),
            chunk({"role": "assistant", "content": "", "reasoning_content": "u", "tool_calls": []}),
            chunk({"role": "assistant", "content": "a", "reasoning_content": None, "refusal": None}),
            chunk({"role": "assistant", "content": "b", "reasoning_content": "", "reasoning_details": []}),
            STOP,
        ),
        (thinking("tu"), text("ab")),
    ),
    "reasoning in one field, then in another": (
        (chunk({"reasoning": "t"}), chunk({"reasoning_content": "u"}), chunk({"reasoning_content": "v"}), STOP),
        (thinking("tuv", "reasoning"),),
    ),
    "both fields of reasoning": (
        (chunk({"reasoning": "t", "reasoning_content": "t"}), chunk({"content": "a"}), STOP),
        (thinking("t"), text("a")),
    ),
    "details in pieces": (
        (
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "u", "index": 0, "signature": "s"}]}),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}]}),
            chunk({"content": "a"}),
            STOP,
        ),
        (
            thinking(
                "tu",
                '[{"type":"reasoning.text","text":"tu","index":0,"signature":"s"},'
                '{"type":"reasoning.encrypted","data":"x","index":1}]',
            ),
            text("a"),
        ),
    ),
    "details with their text beside them": (
        (
            chunk({"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]}),
            chunk({"reasoning": "u", "reasoning_details": [{"type": "reasoning.text", "text": "u"}]}),
            STOP,
        ),
        (thinking("tu", '[{"type":"reasoning.text","text":"tu"}]'),),
    ),
    "details that are only opaque": (
        (chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}), chunk({"content": "a"}), STOP),
        (thinking("", '[{"type":"reasoning.encrypted","data":"x"}]'), text("a")),
    ),
    "a call in pieces": (
        (
            calling(entry(0, "c1", "f", "")),
            calling(entry(0, arguments='{"a"')),
            calling(entry(0, arguments=":1}")),
            CALLED,
        ),
        (tool("c1", a=1),),
    ),
    "a call whose deltas repeat empty keys": (
        (
            calling(entry(0, "c1", "f", "")),
            calling({"index": 0, "id": None, "type": "function", "function": {"name": None, "arguments": '{"a"'}}),
            calling({"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ":1}"}}),
            CALLED,
        ),
        (tool("c1", a=1),),
    ),
    "two calls that take turns": (
        (
            calling(entry(0, "c1", "f", "")),
            calling(entry(1, "c2", "g", "")),
            calling(entry(0, arguments='{"a":')),
            calling(entry(1, arguments='{"b":')),
            calling(entry(0, arguments="1}"), entry(1, arguments="2}")),
            CALLED,
        ),
        (tool("c1", a=1), tool("c2", "g", b=2)),
    ),
    "two calls with the index 0": (
        (calling(entry(0, "c1", "f", '{"a":1}')), calling(entry(0, "c2", "f", '{"a":2}')), CALLED),
        (tool("c1", a=1), tool("c2", a=2)),
    ),
    "two calls with the index 0, in pieces": (
        (
            calling(entry(0, "c1", "f", '{"a":')),
            calling(entry(0, arguments="1}")),
            calling(entry(0, "c2", "f", '{"a":')),
            calling(entry(0, arguments="2}")),
            CALLED,
        ),
        (tool("c1", a=1), tool("c2", a=2)),
    ),
    "two calls without an index": (
        (
            calling(
                entry(None, "c1", "f", '{"a":'),
            ),
            calling(entry(arguments="1}")),
            calling(entry(None, "c2", "f", "{}")),
            CALLED,
        ),
        (tool("c1", a=1), tool("c2")),
    ),
    "two calls with neither index nor id": (
        (calling(entry(name="f", arguments='{"a":1}'), entry(name="f", arguments='{"a":2}')), CALLED),
        (tool("", a=1), tool("", a=2)),
    ),
    "two different calls with neither index nor id": (
        (calling(entry(name="f", arguments='{"a":'), entry(arguments="1}"), entry(name="g", arguments="{}")), CALLED),
        (tool("", a=1), tool("", "g")),
    ),
    "a call whose id is repeated in every piece": (
        (calling(entry(0, "c1", "f", '{"a"')), calling(entry(0, "c1", arguments=":1}")), CALLED),
        (tool("c1", a=1),),
    ),
    "a call whose name is repeated in every piece": (
        (calling(entry(0, "c1", "f", '{"a"')), calling(entry(0, name="f", arguments=":1}")), CALLED),
        (tool("c1", a=1),),
    ),
    "a call whose id comes late": (
        (calling(entry(0, name="f", arguments="{")), calling(entry(0, "c1", arguments="}")), CALLED),
        (tool("c1"),),
    ),
    "a call whose name comes late": (
        (calling(entry(0, "c1")), calling(entry(0, name="f", arguments="{}")), CALLED),
        (tool("c1"),),
    ),
    "a call with an empty id in later pieces": (
        (calling(entry(0, "c1", "f", "{")), calling(entry(0, "", "", "}")), CALLED),
        (tool("c1"),),
    ),
    "arguments that are an object": ((calling(entry(0, "c1", "f", {"a": 1})), CALLED), (tool("c1", a=1),)),
    "arguments that are null": (
        (calling({"index": 0, "id": "c1", "function": {"name": "f", "arguments": None}}), CALLED),
        (tool("c1"),),
    ),
    "a call with the reason stop": ((calling(entry(0, "c1", "f", "{}")), STOP), (tool("c1"),)),
    "text, then a call, then text": (
        (chunk({"content": "a"}), calling(entry(0, "c1", "f", "{}")), chunk({"content": "b"}), CALLED),
        (text("ab"), tool("c1")),
    ),
    "an old call": (
        (
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"a":1}'}}),
            chunk(reason="function_call"),
        ),
        (ToolCall(id="function_call", name="f", arguments={"a": 1}),),
    ),
    "audio, then a call": (
        (chunk({"audio": {"id": "a1", "x": []}}), calling(entry(0, "c1", "f", "{}")), CALLED),
        (NativeContent(protocol="openai-chat", block={"audio": {"id": "a1", "x": []}}), tool("c1")),
    ),
    "a picture, then a call": (
        (chunk({"images": [{"type": "odd"}]}), calling(entry(0, "c1", "f", "{}")), CALLED),
        (NativeContent(protocol="openai-chat", block={"images": [{"type": "odd"}]}), tool("c1")),
    ),
    "a call of a custom tool": (
        (
            calling({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": ""}}),
            calling({"index": 0, "custom": {"input": 'say "h'}}),
            calling({"index": 0, "custom": {"input": 'i"\n'}}),
            CALLED,
        ),
        (
            ToolCall(
                id="c1",
                name="f",
                arguments={"input": 'say "hi"\n'},
                extra=chose("function", "custom"),
            ),
        ),
    ),
    "a refusal": (
        (chunk({"refusal": "I "}), chunk({"refusal": "cannot"}), STOP),
        (refused("I cannot"),),
    ),
    "a refusal behind text": (
        (chunk({"content": "Well. "}), chunk({"refusal": "I "}), chunk({"refusal": "cannot"}), STOP),
        (text("Well. "), refused("I cannot")),
    ),
    "a refusal that is a part": (
        (chunk({"content": [{"type": "refusal", "refusal": "no"}]}), STOP),
        (TextContent(text="no", extra=chose("content", "part.refusal")),),
    ),
    "a name in pieces": (
        (
            calling(entry(0, "c1", "get_", "")),
            calling(entry(0, name="weather")),
            calling(entry(0, arguments="{}")),
            CALLED,
        ),
        (ToolCall(id="c1", name="get_weather"),),
    ),
    "a name in pieces, each with its id": (
        (calling(entry(0, "c1", "get_")), calling(entry(0, "c1", "weather", "{}")), CALLED),
        (ToolCall(id="c1", name="get_weather"),),
    ),
    "a name in every delta": (
        (
            calling(entry(0, "c1", "f", "")),
            calling(entry(0, name="f", arguments='{"a"')),
            calling(entry(0, name="f", arguments=":1}")),
            CALLED,
        ),
        (tool("c1", a=1),),
    ),
    "another name behind arguments": (
        (calling(entry(0, name="f", arguments="{}")), calling(entry(0, name="g", arguments="{}")), CALLED),
        (tool(""), ToolCall(id="", name="g")),
    ),
    "an old name in pieces": (
        (chunk({"function_call": {"name": "get_"}}), chunk({"function_call": {"name": "it", "arguments": "{}"}}), STOP),
        (ToolCall(id="function_call", name="get_it"),),
    ),
    "a call of an unknown type": (
        (
            calling({"index": 0, "id": "c", "type": "mcp", "mcp": {"server": "s", "input": "a"}}),
            calling({"index": 0, "mcp": {"input": "b"}}),
            calling(entry(1, "c1", "f", "{}")),
            CALLED,
        ),
        (
            NativeContent(
                protocol="openai-chat",
                block={"tool_calls": [{"id": "c", "type": "mcp", "mcp": {"server": "s", "input": "ab"}}]},
            ),
            tool("c1"),
        ),
    ),
    "sound": (
        (
            chunk({"audio": {"id": "a1", "transcript": "he"}}),
            chunk({"audio": {"transcript": "llo", "data": "AA"}}),
            chunk({"audio": {"data": "BB", "expires_at": 9}}),
            STOP,
        ),
        (
            NativeContent(
                protocol="openai-chat",
                block={"audio": {"id": "a1", "transcript": "hello", "data": "AABB", "expires_at": 9}},
                fallback=(text("hello"),),
            ),
        ),
    ),
    "content that is a list": (
        (chunk({"content": [{"type": "text", "text": "a"}]}), chunk({"content": "b"}), STOP),
        (text("ab"),),
    ),
    "half a character in each of two deltas": (
        (chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}), STOP),
        (text("😀"),),
    ),
    "a whole message in place of a delta": (
        (
            {
                "id": "r1",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
            },
        ),
        (text("a"),),
    ),
    "a choice without an index": (
        (
            {"id": "r1", "choices": [{"delta": {"content": "a"}}]},
            {"id": "r1", "choices": [{"delta": {}, "finish_reason": "stop"}]},
        ),
        (text("a"),),
    ),
}


@pytest.mark.parametrize(("frames", "content"), CONTENTS.values(), ids=CONTENTS.keys())
def test_a_stream_gives_its_message(frames, content):
    events, decoder = fold(*frames, DONE)
    assert decoder.message.content == content
    assert [event.type for event in events].count("done") == 1
    assert events[0].type == "start"
    assert events[-1].type == "done"
    assert decoder.message.stop_reason == ("toolUse" if any(piece.kind == "toolCall" for piece in content) else "stop")


@pytest.mark.parametrize(("frames", "content"), CONTENTS.values(), ids=CONTENTS.keys())
def test_events_add_up_to_the_message(frames, content):
    events, _ = fold(*frames, DONE)
    opened, closed, deltas = set(), {}, {}
    for event in events:
        index = getattr(event, "index", None)
        if event.type.endswith("_start"):
            assert index not in opened
            opened.add(index)
        elif event.type.endswith("_delta"):
            assert index in opened
            assert index not in closed
            deltas[index] = deltas.get(index, "") + event.delta
        elif event.type.endswith("_end"):
            closed[index] = event
    assert set(closed) == opened
    for index, piece in enumerate(content):
        if piece.kind == "text":
            assert deltas[index].encode("utf-16", "surrogatepass").decode("utf-16") == piece.text
        elif piece.kind == "thinking":
            assert deltas.get(index, "") == piece.thinking


def sse(*frames: object) -> bytes:
    lines = [frame if isinstance(frame, str) else json.dumps(frame) for frame in frames]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


@given(case=st.sampled_from(sorted(CONTENTS)), cuts=st.lists(st.integers(0, 4000), max_size=6))
def test_bytes_cut_anywhere_give_the_same_events(case, cuts):
    frames, _ = CONTENTS[case]
    whole, _ = fold(*frames, DONE)
    data = sse(*frames, DONE)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    framing, decoder, events = SseDecoder(), CODEC.stream_decoder(GPT, {}), []
    for start, end in pairwise(places):
        for item in framing.feed(data[start:end]):
            events += decoder.feed(item.data)
    for item in framing.finish():
        events += decoder.feed(item.data)
    assert events + decoder.finish() == whole


# -- how it ends -------------------------------------------------------------------------------------------------------

WHOLE = chunk({"content": "a"})
CALL = (
    chunk(
        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}]}
    ),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
)
ENDINGS = {
    "stop": ((WHOLE, STOP, DONE), "done", "stop", "stop"),
    "length": ((WHOLE, chunk(reason="length"), DONE), "done", "length", "length"),
    "a filter": ((WHOLE, chunk(reason="content_filter"), DONE), "error", "error", "content_filter"),
    "an unknown reason after text": ((WHOLE, chunk(reason="tired"), DONE), "done", "stop", "tired"),
    "an unknown reason after nothing": ((chunk(reason="tired"), DONE), "error", "error", "tired"),
    "no reason": ((WHOLE, DONE), "done", "stop", None),
    "no reason after a call": ((*CALL, DONE), "done", "toolUse", None),
    "no reason after half a call": ((CALL[0], DONE), "error", "error", None),
    "a stream that just stops": ((WHOLE,), "error", "error", None),
    "a stream of nothing": ((), "error", "error", None),
    "only the end mark": ((DONE,), "error", "error", None),
    "no reason, but the bill at the end": ((WHOLE, {"choices": [], "usage": USAGE}, DONE), "done", "stop", None),
    "no reason, and the bill all along": (
        (chunk({"content": "a"}, usage=USAGE), chunk({"content": "b"}, usage=USAGE)),
        "error",
        "error",
        None,
    ),
    "an error in mid-stream": (
        (WHOLE, {"error": {"message": "overloaded", "code": 529}}, DONE),
        "error",
        "error",
        None,
    ),
    "an error first": (({"error": {"message": "no"}},), "error", "error", None),
    "an error that is a string": ((WHOLE, {"error": "no"}), "error", "error", None),
    "an error of another format": ((WHOLE, {"object": "error", "message": "no", "code": 400}), "error", "error", None),
    "an error beside a choice": (
        (WHOLE, chunk(reason="error", error={"code": 502, "message": "gone"})),
        "error",
        "error",
        "error",
    ),
    "an error that is null": ((chunk({"content": "a"}, error=None), STOP), "done", "stop", "stop"),
}


@pytest.mark.parametrize(("frames", "last", "stop", "raw"), ENDINGS.values(), ids=ENDINGS.keys())
def test_a_stream_ends_once(frames, last, stop, raw):
    events, decoder = fold(*frames)
    kinds = [event.type for event in events]
    assert kinds[-1] == last
    assert kinds.count("done") + kinds.count("error") == 1
    assert decoder.message.stop_reason == stop
    assert decoder.message.raw_stop_reason == raw
    assert bool(decoder.message.error_message) == (last == "error")
    if WHOLE in frames:
        assert decoder.message.text() == "a"


def test_an_error_has_the_message_of_the_provider():
    _, decoder = fold(
        WHOLE, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "slow down"}}}
    )
    assert decoder.message.error_message == "Provider returned error: slow down"
    assert decoder.message.diagnostics[0].details == {"code": "429", "status": 429}


def test_there_are_no_events_after_the_end():
    _, decoder = fold(WHOLE, STOP, DONE)
    assert decoder.feed(chunk({"content": "more"})) == []
    assert decoder.message.text() == "a"


def test_where_no_reason_is_ever_given_none_is_missed():
    at = endpoint("snowflake", "claude-sonnet-4-6")
    events, decoder = fold(WHOLE, DONE, at=at)
    assert events[-1].type == "done"
    assert decoder.message.stop_reason == "stop"


def test_a_call_that_was_cut_off_keeps_what_had_arrived():
    events, decoder = fold(calling(entry(0, "c1", "f", '{"path": "/x", "text": "hel')))
    call = decoder.message.tool_calls()[0]
    assert events[-1].type == "error"
    assert call.arguments == {"path": "/x", "text": "hel"}
    assert call.arguments_text == '{"path": "/x", "text": "hel'
    assert decoder.message.diagnostics[0].type == "tool_arguments_recovered"


def test_arguments_that_are_too_deep_to_be_parsed_are_kept():
    deep = '{"a":' * 5000
    _, decoder = fold(calling(entry(name="f", arguments=deep)), calling(entry(name="f", arguments=deep[1:])), CALLED)
    assert decoder.message.error_message is None
    assert [call.arguments_text for call in decoder.message.tool_calls()] == [deep + deep[1:]]


def test_a_refusal_is_streamed_as_text():
    events, decoder = fold(chunk({"refusal": "I "}), chunk({"refusal": "cannot"}), STOP)
    kinds = [event.type for event in events]
    assert kinds == ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]
    assert decoder.message.text() == "I cannot"


def test_other_keys_of_a_chunk_are_kept():
    beside = chunk({"content": "b"})
    beside["choices"][0] = {"index": 0, "delta": {"content": "b", "mood": "good"}, "matched_stop": 7}
    _, decoder = fold(chunk({"content": "a"}), beside, chunk({"content": "c"}), STOP)
    assert decoder.message.content == (text("abc"),)
    body: Any = CODEC.encode_response(decoder.message, GPT)
    choice = body["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "abc", "mood": "good"}
    assert choice["matched_stop"] == 7


def test_a_tools_name_is_mapped_back():
    _, decoder = fold(
        calling(entry(0, "c1")), calling(entry(0, name="f_1", arguments="{}")), CALLED, tool_names={"f_1": "f.1"}
    )
    assert decoder.message.tool_calls()[0].name == "f.1"


def test_a_signature_of_gemini_comes_with_its_call_and_its_text():
    google = {"google": {"thought_signature": "s1"}}
    frames = (
        chunk({"content": "a", "extra_content": google}),
        calling(entry(0, "c1", "f", "{}", extra_content=google)),
        CALLED,
    )
    _, decoder = fold(*frames, at=GEMINI)
    assert [getattr(piece, "text_signature", None) or piece.thought_signature for piece in decoder.message.content] == [
        "s1"
    ] * 2


# -- usage -------------------------------------------------------------------------------------------------------------

BILLS = {
    "in a chunk without choices": (WHOLE, STOP, {"id": "r1", "choices": [], "usage": USAGE}),
    "with the finish reason": (WHOLE, chunk(reason="stop", usage=USAGE)),
    "growing all along": (
        chunk({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": 1}),
        chunk(reason="stop", usage=USAGE),
    ),
    "inside the choice": (
        WHOLE,
        {"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]},
    ),
    "under the vendor's name": (WHOLE, chunk(reason="stop", x_groq={"id": "q", "usage": USAGE})),
}


@pytest.mark.parametrize("frames", BILLS.values(), ids=BILLS.keys())
def test_usage_is_found_wherever_it_stands(frames):
    _, decoder = fold(*frames, DONE)
    usage = decoder.message.usage
    assert (usage.input, usage.output, usage.total_tokens) == (10, 5, 15)


def test_queue_times_of_a_vendor_are_no_usage():
    _, decoder = fold(WHOLE, chunk(reason="stop", x_groq={"usage": {"queue_time": 0.1}}), DONE)
    assert decoder.message.usage is None


# -- other choices -----------------------------------------------------------------------------------------------------


def test_other_choices_are_kept_quiet_and_kept():
    def second(delta, reason=None):
        return {"id": "r1", "model": "m", "choices": [{"index": 1, "delta": delta, "finish_reason": reason}]}

    frames = (WHOLE, second({"content": "x"}), second({"content": "y"}), STOP, second({}, "stop"))
    events, decoder = fold(*frames, DONE)
    assert decoder.message.text() == "a"
    assert [event.delta for event in events if event.type == "text_delta"] == ["a"]
    choices = CODEC.encode_response(decoder.message, GPT)["choices"]
    assert isinstance(choices, list)
    assert choices[1:] == [{"index": 1, "message": {"role": "assistant", "content": "xy"}, "finish_reason": "stop"}]


# -- a stream and its whole reply --------------------------------------------------------------------------------------

PAIRS = {
    "text": ((WHOLE, STOP), reply({"content": "a"})),
    "an empty text": ((chunk({"role": "assistant", "content": ""}), STOP), reply({"content": ""})),
    "reasoning": (
        (chunk({"reasoning_content": "t"}), WHOLE, STOP),
        reply({"content": "a", "reasoning_content": "t"}),
    ),
    "details": (
        (
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "u", "index": 1}]}),
            WHOLE,
            STOP,
        ),
        reply(
            {
                "content": "a",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "t", "index": 0},
                    {"type": "reasoning.summary", "summary": "u", "index": 1},
                ],
            }
        ),
    ),
    "calls": (
        (
            WHOLE,
            calling(entry(0, "c1", "f", "")),
            calling(entry(0, arguments='{"a": 1}')),
            calling(entry(1, "c2", "g", {"b": 2})),
            CALLED,
        ),
        reply(
            {
                "content": "a",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
                    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": {"b": 2}}},
                ],
            },
            "tool_calls",
        ),
    ),
    "a refusal": ((chunk({"refusal": "no"}), STOP), reply({"content": None, "refusal": "no"})),
    "a refusal behind text": (
        (chunk({"content": "a"}), chunk({"refusal": "n"}), chunk({"refusal": "o"}), STOP),
        reply({"content": "a", "refusal": "no"}),
    ),
    "a call of an unknown type": (
        (
            calling({"index": 0, "id": "c", "type": "mcp", "mcp": {"input": "a"}}),
            calling({"index": 0, "mcp": {"input": "b"}}),
            STOP,
        ),
        reply({"content": None, "tool_calls": [{"id": "c", "type": "mcp", "mcp": {"input": "ab"}}]}),
    ),
    "a filter": ((WHOLE, chunk(reason="content_filter")), reply({"content": "a"}, "content_filter")),
    "an old call": (
        (chunk({"function_call": {"name": "f", "arguments": "{}"}}), chunk(reason="function_call")),
        reply({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call"),
    ),
    "a custom call": (
        (calling({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": "x"}}), CALLED),
        reply(
            {"content": None, "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "f", "input": "x"}}]},
            "tool_calls",
        ),
    ),
    "citations and pictures": (
        (
            chunk({"content": "a", "annotations": [{"type": "url_citation"}]}, citations=["https://x.org"]),
            chunk({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}),
            STOP,
        ),
        reply(
            {
                "content": "a",
                "annotations": [{"type": "url_citation"}],
                "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
            },
            citations=["https://x.org"],
        ),
    ),
}


@pytest.mark.parametrize(("frames", "whole"), PAIRS.values(), ids=PAIRS.keys())
def test_a_folded_stream_equals_its_whole_reply(frames, whole):
    usage = {"choices": [], "usage": USAGE}
    _, decoder = fold(*frames, usage, DONE)
    expected = CODEC.decode_response(whole | {"usage": USAGE}, GPT, {})
    # Only the whole reply has the format of empty fields and of calls.
    assert replace(decoder.message, extra=None) == replace(expected, extra=None)
    kept = CODEC.encode_response(decoder.message, GPT)
    assert {key: kept[key] for key in ("id", "model", "created", "usage")} == {
        key: (whole | {"usage": USAGE})[key] for key in ("id", "model", "created", "usage")
    }
    assert kept.get("citations") == whole.get("citations")


# -- keys beside the choices, and lists that grow ----------------------------------------------------------------------


def chunks(*given: dict) -> list[dict]:
    return [{"id": "x", "object": "chat.completion.chunk", "model": "m", **each} for each in given]


def delta(finish=None, **fields) -> list[dict]:
    return [{"index": 0, "delta": fields, "finish_reason": finish}]


@pytest.mark.parametrize("as_bytes", [False, True], ids=["parsed", "bytes"])
def test_keys_beside_the_choices_of_any_chunk_are_kept_and_objects_are_merged(as_bytes):
    frames: list[Any] = chunks(
        {"choices": delta(content="a"), "x_groq": {"id": "req", "seed": 1}},
        {"choices": delta(content="b"), "moderation": {"flagged": False}},
        {"choices": delta("stop")},
        {"choices": [], "late": 1, "x_groq": {"id": "req", "usage": {"prompt_tokens": 3, "completion_tokens": 2}}},
    )
    message = decoded([json.dumps(frame).encode() for frame in frames] if as_bytes else frames)
    assert message.text() == "ab"
    written = CODEC.encode_response(message, GPT)
    assert written["moderation"] == {"flagged": False}
    assert written["late"] == 1
    assert written["x_groq"] == {"id": "req", "seed": 1, "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def test_a_tool_that_the_server_ran_is_kept_once():
    started = {"index": 0, "type": "search", "arguments": "{}"}
    ended = {**started, "output": "found"}
    other = {"index": 1, "type": "python", "arguments": "1"}
    message = decoded(
        chunks(
            {"choices": delta(executed_tools=[started])},
            {"choices": delta(executed_tools=[ended, other])},
            {"choices": delta(content="a")},
            {"choices": delta("stop")},
        )
    )
    written: Any = CODEC.encode_response(message, GPT)
    assert written["choices"][0]["message"]["executed_tools"] == [ended, other]


def test_reasoning_beside_its_details_is_written_back():
    details = [{"type": "reasoning.text", "text": "hm so", "signature": "s", "index": 0}]
    frames = chunks(
        {"choices": delta(reasoning="hm", reasoning_details=[{**details[0], "text": "hm", "signature": None}])},
        {"choices": delta(reasoning=" so", reasoning_details=[{**details[0], "text": " so"}])},
        {"choices": delta(content="a")},
        {"choices": delta("stop")},
    )
    streamed = decoded(frames)
    written: Any = CODEC.encode_response(streamed, GPT)
    message = written["choices"][0]["message"]
    assert (message["reasoning"], message["reasoning_details"]) == ("hm so", details)
    assert CODEC.decode_response(written, GPT, {}).content == streamed.content


def test_details_that_repeat_the_reasoning_before_them_add_no_text():
    details = [{"type": "reasoning.text", "text": "hm so", "index": 0}]
    frames = chunks(
        {"choices": delta(reasoning_content="hm")},
        {"choices": delta(reasoning_content=" so")},
        {"choices": delta(reasoning_details=details)},
        {"choices": delta(reasoning_details=[{"type": "reasoning.text", "text": " and", "index": 0}])},
        {"choices": delta(content="a")},
        {"choices": delta("stop")},
    )
    first: Any = decoded(frames).content[0]
    assert first.thinking == "hm so and"


def detail(kind: str, **fields: object) -> dict[str, object]:
    return {"type": f"reasoning.{kind}", **fields, "index": 0}


def summary(text: str) -> dict[str, object]:
    return detail("summary", summary=text)


def encrypted(data: str, **fields: object) -> dict[str, object]:
    return detail("encrypted", data=data, **fields)


def signed(text: str, signature: str | None) -> dict[str, object]:
    return detail("text", text=text, signature=signature)


@pytest.mark.parametrize(
    ("pieces", "entries"),
    [
        (
            [summary("a"), summary("b"), encrypted("x", id="rs_1"), summary("c"), encrypted("y", id="rs_2")],
            [summary("ab"), encrypted("x", id="rs_1"), summary("c"), encrypted("y", id="rs_2")],
        ),
        (
            [encrypted("x", id="rs_1"), encrypted("y", id="rs_2")],
            [encrypted("x", id="rs_1"), encrypted("y", id="rs_2")],
        ),
        ([encrypted("x"), encrypted("y")], [encrypted("x"), encrypted("y")]),
        (
            [signed("a", None), signed("b", None), signed("", "s"), signed("c", None), signed("", "t")],
            [signed("ab", "s"), signed("c", "t")],
        ),
        (
            [signed("a", "s"), encrypted("x"), signed("b", None), signed("", "t")],
            [signed("a", "s"), encrypted("x"), signed("b", "t")],
        ),
    ],
    ids=["OpenAI", "no summaries", "no ids", "Claude", "redacted"],
)
def test_entries_that_a_stream_gives_one_index_are_not_joined(pieces: list[Any], entries: list[Any]):
    """OpenRouter's streams number every entry 0 (ai-sdk-provider #519); a joined signature is refused."""
    frames = [{"choices": delta(reasoning_details=[piece])} for piece in pieces]
    streamed = decoded(chunks(*frames, {"choices": delta(content="a")}, {"choices": delta("stop")}))
    written: Any = CODEC.encode_response(streamed, GPT)
    assert written["choices"][0]["message"]["reasoning_details"] == entries
    assert CODEC.decode_response(written, GPT, {}).content == streamed.content


def decoded(frames):
    decoder = CODEC.stream_decoder(GPT, {})
    for frame in frames:
        decoder.feed(frame)
    decoder.finish()
    return decoder.message


@pytest.mark.parametrize(
    ("field", "written"),
    [("reasoning", "reasoning"), ("thoughts", "reasoning_content"), (["reasoning"], "reasoning_content")],
    ids=str,
)
def test_thinking_is_written_in_its_field_if_that_is_one_for_thinking(field, written):
    encoder = stream_encoder(protocol=CODEC.name, model=CODEC.example)
    encoder.feed(ThinkingStart(index=0, extra={CODEC.name: {"field": field}}))
    frames: Any = encoder.feed(ThinkingDelta(index=0, delta="hm"))
    assert [frame["choices"][0]["delta"] for frame in frames] == [{written: "hm"}]
