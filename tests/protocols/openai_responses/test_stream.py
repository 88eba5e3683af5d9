"""Streamed replies: the same message as the whole reply, however the events come, and one end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.openai_responses.bodies import call, cases, endpoint, fixture, reasoning, reply, text_item
from segue.conversation.events import DoneEvent, ErrorEvent
from segue.framing.sse import SseDecoder
from segue.protocols.api import stream_decoder
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC

CASES = cases()


def fold(frames: Any, tool_names: Any = None) -> tuple[list[Any], Any]:
    decoder = CODEC.stream_decoder(endpoint(), tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


def described(content):
    match content.kind:
        case "text":
            return ["text", content.text]
        case "thinking":
            return ["thinking", content.thinking]
        case "toolCall":
            return ["toolCall", content.name]
        case "native":
            return ["native", content.block["type"]]


@pytest.mark.parametrize("case", CASES)
def test_a_request_of_each_kind_is_written_unchanged(case):
    body = fixture(case, "request")
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint()), endpoint()) == body


@pytest.mark.parametrize("case", CASES)
def test_a_reply_of_each_kind_is_read_and_written_unchanged(case):
    body, expected = fixture(case, "response"), fixture(case, "expected")
    message = CODEC.decode_response(body, endpoint(), {})
    assert [described(content) for content in message.content] == expected["content"]
    assert message.stop_reason == expected["stopReason"]
    assert CODEC.encode_response(message, endpoint()) == body


@pytest.mark.parametrize("case", CASES)
def test_a_folded_stream_is_the_whole_reply(case):
    events, message = fold(fixture(case, "stream"))
    assert message == CODEC.decode_response(fixture(case, "response"), endpoint(), {})
    assert events[0].type == "start"
    assert [event.type for event in events].count("done") + [event.type for event in events].count("error") == 1
    assert events[-1].message == message


@pytest.mark.parametrize("case", CASES)
def test_deltas_add_up_to_the_message(case):
    events, message = fold(fixture(case, "stream"))
    for index, content in enumerate(message.content):
        deltas = "".join(getattr(event, "delta", "") for event in events if getattr(event, "index", None) == index)
        match content.kind:
            case "text":
                assert deltas == content.text
            case "thinking":
                assert deltas == content.thinking
            case "toolCall":
                assert deltas in (
                    content.arguments.get("input"),
                    content.arguments_text,
                    json.dumps(content.arguments, separators=(",", ":")),
                )
            case "native":
                assert deltas == ""


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("case", CASES)
def test_any_split_of_the_bytes_gives_the_same_events(case, size):
    frames = fixture(case, "stream")
    raw = "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in frames).encode()
    decoder, sse = CODEC.stream_decoder(endpoint(), {}), SseDecoder()
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    events = [event for piece in pieces for item in sse.feed(piece) for event in decoder.feed(item.data)]
    events += [event for item in sse.finish() for event in decoder.feed(item.data)] + decoder.finish()
    assert events == fold(frames)[0]


LEFT_OUT = {
    "deltas": lambda frame: not frame["type"].endswith(".delta"),
    "the beginnings of parts": lambda frame: not frame["type"].endswith("part.added"),
    "the ends of parts": lambda frame: not frame["type"].endswith(("part.done", "text.done", "arguments.done")),
    "the beginnings of items": lambda frame: frame["type"] != "response.output_item.added",
    "the ends of items": lambda frame: frame["type"] != "response.output_item.done",
    "everything about items": lambda frame: "output_index" not in frame,
    "the beginning": lambda frame: frame["type"] not in ("response.created", "response.in_progress"),
}


@pytest.mark.parametrize("left_out", LEFT_OUT.values(), ids=LEFT_OUT.keys())
@pytest.mark.parametrize("case", CASES)
def test_events_that_a_vendor_leaves_out_are_made_up_for(case, left_out):
    events, message = fold([frame for frame in fixture(case, "stream") if left_out(frame)])
    assert message == CODEC.decode_response(fixture(case, "response"), endpoint(), {})
    starts = [event.index for event in events if event.type.endswith("_start")]
    ends = [event.index for event in events if event.type.endswith("_end")]
    assert sorted(starts) == sorted(ends)
    assert len(starts) == len(set(starts))


def test_items_without_output_indexes_grow_apart():
    def added(call_id):
        item = call(id=f"fc_{call_id}", call_id=call_id, arguments="")
        return {"type": "response.output_item.added", "item": item}

    def more(call_id, text):
        return {"type": "response.function_call_arguments.delta", "item_id": f"fc_{call_id}", "delta": text}

    frames = [added("a"), added("b"), more("a", '{"path":'), more("b", "{"), more("a", '"a"}'), more("b", "}")]
    for form in (frames, [json.dumps(frame).encode() for frame in frames]):
        _, message = fold(form)
        assert [piece.arguments for piece in message.tool_calls()] == [{"path": "a"}, {}]


@pytest.mark.parametrize("case", [case for case in CASES if case != "failed"])
def test_a_vendor_without_output_indexes_and_final_output_is_read(case):
    frames = fixture(case, "stream")
    plain = [{key: value for key, value in frame.items() if key != "output_index"} for frame in frames]
    plain[-1] = {**plain[-1], "response": {**plain[-1]["response"], "output": []}}
    _, message = fold(plain)
    whole = CODEC.decode_response(fixture(case, "response"), endpoint(), {})
    assert message.content == whole.content
    assert message.stop_reason == whole.stop_reason


def test_the_finished_encrypted_content_is_kept():
    _, message = fold(fixture("reasoning-and-calls", "stream"))
    assert "unfinished" not in str(message)


def test_r_13_the_encrypted_content_of_the_terminal_reply_is_kept():
    frames = [
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning(encrypted_content="first")},
        {"type": "response.output_item.done", "output_index": 1, "item": text_item()},
        {"type": "response.completed", "response": reply(reasoning(encrypted_content="second"), text_item())},
    ]
    assert "second" in str(fold(frames)[1].content[0])


def test_tool_names_are_mapped_back():
    _, message = fold(fixture("reasoning-and-calls", "stream"), {"read": "files/read"})
    assert {call.name for call in message.tool_calls()} == {"files/read"}


def test_half_a_character_in_a_delta_is_joined():
    frames = [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "\ud83d"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "\ude00"},
    ]
    assert fold(frames)[1].text() == "😀"


BROKEN = {
    "an error event": (
        {"type": "error", "code": "server_error", "message": "Oh.", "param": None},
        "Oh.",
        "server_error",
    ),
    "a nested error event": ({"type": "error", "error": {"type": "t", "message": "Oh."}}, "Oh.", "t"),
    "an error without a type": ({"error": {"code": 502, "message": "Oh."}}, "Oh.", "502"),
    "a failed reply": (
        {"type": "response.failed", "response": reply(status="failed", error={"code": "c", "message": "Oh."})},
        "Oh.",
        "failed",
    ),
}


@pytest.mark.parametrize(("frame", "error", "raw"), BROKEN.values(), ids=BROKEN.keys())
def test_an_error_in_mid_stream_ends_it_and_keeps_what_arrived(frame, error, raw):
    begun = fixture("text", "stream")[:6]
    events, message = fold([*begun, frame, *begun])
    assert isinstance(events[-1], ErrorEvent)
    assert (message.stop_reason, message.error_message, message.raw_stop_reason) == ("error", error, raw)
    assert "Good morning".startswith(message.text())
    assert message.text()


def test_a_stream_that_just_stops_is_an_error_and_keeps_what_arrived():
    frames = [
        {"type": "response.output_item.added", "output_index": 0, "item": call(arguments="")},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"path": "a'},
    ]
    events, message = fold(frames)
    assert isinstance(events[-1], ErrorEvent)
    assert message.tool_calls()[0].arguments == {"path": "a"}


def test_unknown_events_are_skipped():
    odd = [{"type": "response.brand_new"}, {"type": 5}, {}, {"type": "response.output_item.done", "item": None}]
    events, message = fold([*odd, *fixture("text", "stream")])
    assert isinstance(events[-1], DoneEvent)
    assert message.text()


def test_calls_that_arrive_side_by_side_stay_apart():
    def delta(index, text):
        return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}

    frames = [
        {"type": "response.output_item.added", "output_index": 0, "item": call(call_id="a", arguments="")},
        {"type": "response.output_item.added", "output_index": 1, "item": call(call_id="b", arguments="")},
        delta(1, '{"path":'),
        delta(0, '{"path":"x"}'),
        delta(1, '"y"}'),
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    calls = fold(frames)[1].tool_calls()
    assert [(made.id, made.arguments) for made in calls] == [("a", {"path": "x"}), ("b", {"path": "y"})]


def grown(index, **fields):
    return {"type": "response.output_text.delta", "output_index": index, "content_index": 0, **fields}


def added(index, item):
    return {"type": "response.output_item.added", "output_index": index, "item": item}


SIDE_BY_SIDE = {
    "text that begins after a later item": (
        [added(0, text_item(content=[])), added(1, call(arguments="")), grown(0, delta="Hello.")],
        reply(text_item(), call()),
    ),
    "a message that holds nothing": (
        [added(0, text_item(content=[])), added(1, call())],
        reply(text_item(content=[]), call()),
    ),
    "a message that turns out to be of another kind": (
        [added(0, text_item(content=[])), grown(0, delta="Hello.")],
        reply(text_item(content=[{"type": "hologram"}])),
    ),
    "items without an end": (
        [added(0, reasoning(encrypted_content="a")), added(1, call())],
        reply(reasoning(), call()),
    ),
    "an id of no characters": ([], reply(text_item(), id="", model="")),
}


@pytest.mark.parametrize(("frames", "whole"), SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE.keys())
def test_the_terminal_reply_replaces_what_was_streamed_and_every_part_ends(frames, whole):
    ends = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(whole["output"])
    ]
    for closing in ([], ends):
        events, message = fold([*frames, *closing, {"type": "response.completed", "response": whole}])
        assert message == CODEC.decode_response(whole, endpoint(), {})
        starts = [event.index for event in events if event.type.endswith("_start")]
        assert sorted(starts) == sorted(event.index for event in events if event.type.endswith("_end"))


def test_the_end_of_a_part_holds_the_content_of_the_message():
    whole = reply(reasoning(), text_item(), call())
    frames = [
        added(0, reasoning(encrypted_content="a")),
        added(1, text_item(content=[])),
        grown(1, delta="Hel"),
        added(2, call()),
    ]
    events, message = fold([*frames, {"type": "response.completed", "response": whole}])
    ends = [getattr(event, "content", None) or event.tool_call for event in events if event.type.endswith("_end")]
    assert tuple(ends) == message.content


def test_a_phase_is_read_from_the_finished_item():
    item = text_item(phase="commentary")
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    for output in ([item], []):
        events, message = fold(
            [
                added(0, text_item(content=[])),
                grown(0, delta="Hello."),
                done,
                {"type": "response.completed", "response": {**reply(), "output": output}},
            ]
        )
        assert [piece.phase for piece in message.content] == ["commentary"]
        assert [event.content.phase for event in events if event.type == "text_end"] == ["commentary"]


def test_the_error_object_of_a_stream_is_kept():
    error = {"code": "c", "message": "Oh.", "param": "input"}
    _, message = fold([{"type": "error", "error": error}])
    assert CODEC.encode_response(message, endpoint())["error"] == error


GROWTHS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ("response.output_text.delta", "response.function_call_arguments.delta", "response.output_text.done")
            )
        },
        optional={
            "delta": st.sampled_from(("a", "", "ü", None, 3, "\ud800")),
            "output_index": st.sampled_from((0, 1, None, 0.0, True)),
            "content_index": st.sampled_from((0, 1, None, "0")),
            "summary_index": st.sampled_from((0, None)),
            "text": st.just("a"),
            "item_id": st.just("i"),
        },
    ),
    max_size=12,
)


@given(frames=GROWTHS)
def test_events_as_bytes_and_as_objects_are_read_alike(frames):
    assert fold([json.dumps(frame).encode() for frame in frames]) == fold(frames)


# -- indexes and ids that vendors leave out, repeat, or begin at 1 -----------------------------------------------------

DONE_ITEM = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}


def text_events(*, output: dict, content: dict, done: dict, item: dict = DONE_ITEM) -> list[dict]:
    """Give the events of one text, with the indexes of the deltas and those of `output_item.done`."""
    place = {"item_id": "m", **output, **content}
    return [
        {"type": "response.created", "response": {"id": "r", "model": "gpt-5.2"}},
        {"type": "response.output_item.added", **output, "item": {**DONE_ITEM, "content": []}},
        {"type": "response.output_text.delta", **place, "delta": "hel"},
        {"type": "response.output_text.delta", **place, "delta": "lo"},
        {"type": "response.output_text.done", "item_id": "m", **output, "text": "hello"},
        {"type": "response.output_item.done", **done, "item": item},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}},
    ]


PLACES = {
    "the only part has the content index 1": {"output": {"output_index": 0}, "content": {"content_index": 1}},
    "no index at all": {"output": {}, "content": {}, "done": {}},
    "the item is done without an index": {"done": {}},
    "the item is done without an index and an id": {
        "done": {},
        "item": {key: value for key, value in DONE_ITEM.items() if key != "id"},
    },
    "the item is done with another id": {"item": {**DONE_ITEM, "id": "other"}},
    "output indexes begin at 1": {"output": {"output_index": 1}, "done": {"output_index": 1}},
    "the item is done under another index": {"done": {"output_index": 7}},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_text_is_not_doubled_by_its_indexes(place):
    defaults = {"output": {"output_index": 0}, "content": {"content_index": 0}, "done": {"output_index": 0}}
    decoder = stream_decoder(protocol="openai-responses")
    events = [event for frame in text_events(**{**defaults, **place}) for event in decoder.feed(frame)]
    assert "".join(event.delta for event in events if event.type == "text_delta") == "hello"
    assert [content.kind for content in decoder.message.content] == ["text"]
    assert decoder.message.text() == "hello"


def test_arguments_that_come_only_with_the_item_are_read():
    for arguments in ('{"a": 1}', {"a": 1}):
        decoder = stream_decoder(protocol="openai-responses")
        item = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": arguments}
        decoder.feed({"type": "response.output_item.added", "output_index": 0, "item": item})
        decoder.feed({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}})
        assert [dict(call.arguments) for call in decoder.message.tool_calls()] == [{"a": 1}]
