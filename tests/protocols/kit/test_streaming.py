"""Properties of every streamed reply, which `Assembly` guarantees for any reader."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from segue.conversation.messages import StopReason, Usage
from segue.conversation.stored import dump_message, load_message
from segue.errors import DecodeError
from segue.models.model import Model, Price
from segue.models.price import find_cost
from segue.protocols.api import resolve_endpoint, stream_decoder
from segue.protocols.kit.assembly import Assembly, join_chunks
from segue.protocols.kit.streaming import StreamDecoder, parse_frame
from segue.protocols.registry import PROTOCOLS

MODEL = Model("m", "p", "openai-chat", cost=Price(input=2.0, output=10.0))


class Script:
    """A reader whose frames name the method to call."""

    def __init__(self) -> None:
        self.part: Any = None

    def read(self, frame: Any, out: Assembly) -> None:
        match frame["do"]:
            case "text":
                self.part = out.open_text()
            case "call":
                self.part = out.open_call("c1", frame.get("name", "read"))
            case "grow":
                out.grow(self.part, frame["with"])
            case "close":
                out.close(self.part)
            case "stop":
                out.stop_reason = StopReason(frame["reason"])
            case "finish":
                out.finish()
            case "fail":
                out.fail("broken")
            case "usage":
                usage = Usage(input=1_000_000, output=100_000)
                out.usage = replace(usage, cost=find_cost(out.model.cost, usage))
            case "report":
                out.usage = Usage(input=frame["input"])
                out.report_usage()
            case "nonsense":
                raise DecodeError("not that")

    def end(self, out: Assembly) -> None:
        pass


def run(*frames: Any, tool_names: Any = None) -> tuple[Any, Any]:
    decoder: Any = StreamDecoder(Script(), Assembly(MODEL, "openai-chat", tool_names))
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder


STOP = {"do": "stop", "reason": "stop"}


def test_a_reply_gives_events_from_start_to_done():
    events, decoder = run({"do": "text"}, {"do": "grow", "with": "hel"}, {"do": "grow", "with": "lo"}, STOP)
    assert [event.type for event in events] == ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]
    assert decoder.message.text() == "hello"
    assert events[-1].message is decoder.message


BROKEN = {
    "a stream that just stops": ({"do": "text"}, {"do": "grow", "with": "par"}),
    "an empty stream": (),
    "an error in mid-stream": ({"do": "text"}, {"do": "grow", "with": "par"}, {"do": "fail"}),
    "a frame that cannot be read": ({"do": "text"}, {"do": "nonsense"}),
    "a frame that is not JSON": ({"do": "text"}, b"{oops"),
    "a finish reason that is an error": ({"do": "text"}, {"do": "stop", "reason": "error"}),
}


@pytest.mark.parametrize("frames", BROKEN.values(), ids=BROKEN.keys())
def test_an_incomplete_reply_ends_with_one_error_and_keeps_its_content(frames):
    events, decoder = run(*frames)
    assert [event.type for event in events].count("error") == 1
    assert events[-1].type == "error"
    assert events[-1].reason == "error"
    assert decoder.message.stop_reason == "error"
    assert decoder.message.error_message
    assert all(event.type != "done" for event in events)


def test_nothing_comes_after_the_terminal_event():
    decoder: Any = StreamDecoder(Script(), Assembly(MODEL, "openai-chat"))
    decoder.feed(STOP)
    assert decoder.feed({"do": "finish"})[-1].type == "done"
    assert decoder.feed({"do": "text"}) == []
    assert decoder.feed({"do": "fail"}) == []
    assert decoder.finish() == []
    assert decoder.abort() == []


def test_an_aborted_reply_can_be_stored_with_its_content():
    decoder: Any = StreamDecoder(Script(), Assembly(MODEL, "openai-chat"))
    decoder.feed({"do": "text"})
    decoder.feed({"do": "grow", "with": "half an ans"})
    (end, terminal) = decoder.abort()
    assert (end.type, terminal.type, terminal.reason) == ("text_end", "error", "aborted")
    assert terminal.message.text() == "half an ans"
    assert terminal.message.stop_reason == StopReason.ABORTED


def test_arguments_are_parsed_at_the_end_and_partial_arguments_can_be_read():
    decoder: Any = StreamDecoder(Script(), Assembly(MODEL, "openai-chat"))
    decoder.feed({"do": "call"})
    decoder.feed({"do": "grow", "with": '{"path": "src/ma'})
    assert decoder.message.tool_calls()[0].arguments == {"path": "src/ma"}
    decoder.feed({"do": "grow", "with": 'in.py"}'})
    decoder.feed(STOP)
    (end, _) = decoder.finish()
    assert end.tool_call.arguments == {"path": "src/main.py"}
    assert decoder.message.diagnostics == ()


def test_unfinished_arguments_keep_their_text_and_are_diagnosed():
    _, decoder = run({"do": "call"}, {"do": "grow", "with": '{"path": "src/ma'}, {"do": "fail"})
    (call,) = decoder.message.tool_calls()
    assert (call.arguments, call.arguments_text) == ({"path": "src/ma"}, '{"path": "src/ma')
    assert [diagnostic.type for diagnostic in decoder.message.diagnostics] == ["tool_arguments_recovered"]


def test_a_surrogate_pair_split_between_two_deltas_is_joined():
    _, decoder = run({"do": "text"}, {"do": "grow", "with": "\ud83d"}, {"do": "grow", "with": "\ude00!"}, STOP)
    assert decoder.message.text() == "\U0001f600!"
    assert join_chunks(["a\ud83d", "b"]) == "a\ud83db"


def test_tool_names_are_mapped_back():
    events, decoder = run({"do": "call", "name": "a_b_x1"}, STOP, tool_names={"a_b_x1": "a.b"})
    assert decoder.message.tool_calls()[0].name == "a.b"
    assert events[1].name == "a.b"


def test_the_cost_that_a_reader_computes_is_that_of_the_reply():
    _, decoder = run({"do": "text"}, {"do": "usage"}, STOP)
    assert decoder.message.usage.cost.total == pytest.approx(2.0 + 1.0)


@pytest.mark.parametrize("frame", [b"[DONE]", "[DONE]", b" [DONE] \n"])
def test_the_end_mark_is_not_a_frame(frame):
    assert parse_frame(frame) is None


@pytest.mark.parametrize("frame", [b"", b"[1]", b"7", b"\xff\xfe", b"{", "[" * 100_000])
def test_an_invalid_frame_raises_a_decode_error(frame):
    with pytest.raises(DecodeError):
        parse_frame(frame)


def test_a_frame_with_a_lone_surrogate_is_read():
    assert parse_frame(b'{"delta": "\\ud83d"}') == {"delta": "\ud83d"}


@pytest.mark.parametrize("as_bytes", [False, True], ids=["parsed", "bytes"])
@pytest.mark.parametrize("protocol", ["openai-chat", "mistral-chat", "ollama-chat", "google-genai"])
def test_a_key_beside_the_reply_is_kept_from_any_chunk(protocol, as_bytes):
    record = PROTOCOLS[protocol]
    for sample in record.samples():
        frames = sample.stream or ()
        for at in range(len(frames)):
            decoder = record.stream_decoder(resolve_endpoint(record.example), {})
            for position, frame in enumerate(frames):
                given = {**frame, "vendor": {"a": 1}} if position == at else frame
                decoder.feed(msgspec.json.encode(given) if as_bytes else given)
            decoder.finish()
            written = record.encode_response(decoder.message, resolve_endpoint(record.example))
            assert written["vendor"] == {"a": 1}, (sample.name, at)


@pytest.mark.parametrize("path", ["$" + ".a" * 194, "$" + ".a" * 400, "$" + ".a[0]" * 300], ids=["194", "400", "lists"])
def test_a_deep_path_of_streamed_arguments_can_be_stored(path):
    decoder = stream_decoder(protocol="google-genai")
    piece = {"jsonPath": path, "stringValue": "x"}
    call = {"name": "f", "partialArgs": [piece], "willContinue": True}
    decoder.feed({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]})
    decoder.feed({"candidates": [{"content": {"parts": [{"functionCall": {}}]}, "finishReason": "STOP"}]})
    decoder.finish()
    assert [call.name for call in decoder.message.tool_calls()] == ["f"]
    assert load_message(dump_message(decoder.message)) == decoder.message


def test_counts_are_reported_when_they_change_until_the_reply_ends():
    counts = [{"do": "report", "input": count} for count in (1, 2, 2, 3)]
    frames = [counts[0], {"do": "text"}, *counts[1:], {"do": "close"}, STOP, {"do": "finish"}, counts[0]]
    events, _ = run(*frames)
    assert [event.usage.input for event in events if event.type == "usage"] == [2, 3]
