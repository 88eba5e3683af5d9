"""Upstreams that break their protocol: clients of the gateway get valid streams, and a fallback if there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import segue
from gateway.running import make_gateway
from protocols.nearly_right import REPAIRED, REPORTED, right_body, right_stream
from protocols.test_nearly_right import TOOLS, assert_valid
from segue.client.flow.reading import StreamReading
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.conversation.stored import dump_message
from segue.framing.writing import frame_encoder
from segue.gateway import straight_replies
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.straight_replies import StraightReply, _frames_of, _Seen, repair_body
from segue.projection.replies import projector
from segue.projection.replies.projector import project_reply
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.verbatim import VERBATIM, choose
from segue.protocols.registry import get_protocol
from segue.testing.emulator.running import serve_in_thread
from segue.testing.frames import split_stream
from segue.wire import stream_encoder
from servers.script import Reply
from servers.scripted import Received, ScriptedServer

PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "google-genai": "/v1beta/models/auto:streamGenerateContent?alt=sse",
    "ollama-chat": "/api/chat",
    "cohere-chat": "/v2/chat",
}
CONFIG = """
[providers.mine]
base_url = "{url}/mine"
protocol = "{protocol}"
[providers.spare]
base_url = "{url}/spare"
protocol = "openai-chat"
[models."auto"]
try = ["mine/a", "spare/b"]
[state]
store = "none"
"""
STRAIGHT = """
[providers.mine]
base_url = "{url}/mine"
protocol = "{protocol}"
[models."a"]
try = ["mine/a"]
[state]
store = "sqlite:{folder}/gateway.db"
"""
EVENTS = {"content-type": "text/event-stream"}
of_every_client = pytest.mark.parametrize("client", PATHS)


def empty_or_spare(request: Received) -> Reply:
    """Answer what no script is for: the first model says nothing, the other one something."""
    text = "from the spare" if "spare" in request.path else ""
    chunk = {"id": "c", "created": 0, "model": "a"}
    choice = {"index": 0, "finish_reason": "stop"}
    if not json.loads(request.body).get("stream"):
        message = {"role": "assistant", "content": text}
        return Reply.json({**chunk, "object": "chat.completion", "choices": [{**choice, "message": message}]})
    frame = {**chunk, "object": "chat.completion.chunk", "choices": [{**choice, "delta": {"content": text}}]}
    return reply_of(get_protocol("openai-chat"), [frame, "[DONE]"])


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer(empty_or_spare) as server:
        yield server


@pytest.fixture(scope="module")
def urls(upstream: ScriptedServer) -> Iterator[dict[str, str]]:
    """Serve one gateway for each protocol of the upstream."""
    gateways = {
        name: make_gateway(load_config(CONFIG.format(url=upstream.url, protocol=name)))
        for name in ("openai-chat", "anthropic-messages")
    }
    with (
        serve_in_thread(create_app(gateway=gateways["openai-chat"])) as chat,
        serve_in_thread(create_app(gateway=gateways["anthropic-messages"])) as messages,
    ):
        yield {"openai-chat": chat, "anthropic-messages": messages}


def reply_of(record: Protocol, frames: list[Any]) -> Reply:
    encoder = frame_encoder(record.framing)
    return Reply(headers=EVENTS, chunks=(b"".join(map(encoder.feed, frames)) + encoder.finish(),))


def parsed(frame: Any) -> Any:
    text = frame.decode() if isinstance(frame, bytes) else frame
    return text if text == "[DONE]" else json.loads(text)


def ask(url: str, client: str, *, stream: bool = True, name: str = "auto") -> httpx.Response:
    record = get_protocol(client)
    model = segue.Model(name, record.provider, client)
    context = Context(messages=(UserMessage.of("Read both."),), tools=TOOLS)
    body = segue.prepare(context, model, options=Options(stream=stream, max_tokens=500)).body
    path = PATHS[client].replace("auto", name)
    path = path if stream else path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    headers = {"anthropic-version": "2023-06-01", "authorization": "Bearer k", "x-api-key": "k"}
    return httpx.post(f"{url}{path}", content=json.dumps(body), headers=headers, timeout=60)


@pytest.mark.parametrize("server", ["openai-chat", "anthropic-messages"])
@of_every_client
def test_every_client_of_the_gateway_gets_a_valid_stream(
    upstream: ScriptedServer, urls: dict[str, str], server: str, client: str
):
    record, wanted = get_protocol(server), get_protocol(client)
    for fault, change in {**REPAIRED, **REPORTED}.items():
        upstream.reply(reply_of(record, change(right_stream(record), server)))
        answer = ask(urls[server], client)
        assert answer.status_code == 200, fault
        assert_valid(wanted, [parsed(frame) for frame in split_stream(wanted.framing, answer.content, 4096)], fault)


@of_every_client
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_reply_without_content_leads_to_the_next_model_of_the_route(
    upstream: ScriptedServer, urls: dict[str, str], client: str, stream: bool
):
    before = len(upstream.requests)
    answer = ask(urls["openai-chat"], client, stream=stream)
    assert answer.status_code == 200
    assert "spare" in upstream.requests[-1].path
    assert len(upstream.requests) > before
    assert "from the spare" in answer.text


# -- straight through --------------------------------------------------------------------------------------------------

SPLITS: dict[str, Callable[[list[bytes]], Sequence[bytes]]] = {
    "each frame": lambda frames: frames,
    "within frames": lambda frames: split_bytes(b"".join(frames), 150),
    "all at once": lambda frames: (b"".join(frames),),
}


def split_bytes(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@contextmanager
def straight_gateway(upstream: ScriptedServer, protocol: str, folder: Path) -> Iterator[str]:
    config = STRAIGHT.format(url=upstream.url, protocol=protocol, folder=folder)
    with serve_in_thread(create_app(gateway=make_gateway(load_config(config)))) as url:
        yield url


def is_told(url: str, answer: httpx.Response) -> bool:
    row = httpx.get(f"{url}/segue/requests/{answer.headers['x-segue-request-id']}", timeout=60).json()
    assert row["straight"]
    return row["outcome"] == "error" or any("repaired" in note for note in row.get("notes") or [])


def check_straight(upstream: ScriptedServer, url: str, protocol: str) -> None:
    """Check the law for a client that gets the bytes of the provider; what is right stays unchanged."""
    record = get_protocol(protocol)
    for fault, change in {**REPAIRED, **REPORTED}.items():
        encoder = frame_encoder(record.framing)
        given = [*map(encoder.feed, change(right_stream(record), protocol)), encoder.finish()]
        raw = b"".join(given)
        for split in SPLITS.values():
            upstream.reply(Reply(headers=EVENTS, chunks=tuple(filter(None, split(given))), pause=0.002))
            answer = ask(url, protocol, name="a")
            assert answer.status_code == 200
            frames = [parsed(frame) for frame in split_stream(record.framing, answer.content, 4096)]
            assert_valid(record, frames, fault)
            # What is right stays unchanged; of what is not, the row of the request says that it was repaired.
            assert (answer.content == raw) is not is_told(url, answer), fault
            assert fault != "no fault" or answer.content == raw


@pytest.mark.filterwarnings("ignore:odd_google-genai is not a valid FinishReason")
@of_every_client
def test_a_client_that_gets_the_bytes_of_the_provider_gets_a_valid_stream(
    upstream: ScriptedServer, client: str, tmp_path: Path
):
    with straight_gateway(upstream, client, tmp_path) as url:
        check_straight(upstream, url, client)


def pass_split(record: Protocol, data: bytes, at: int) -> tuple[bytes, bool]:
    """Pass a stream on in two pieces; gives what the client gets, and whether it was taken for a wrong one."""
    request = segue.prepare(Context(messages=(UserMessage.of("-"),)), record.example, options=Options(stream=True))
    reading, encoder = StreamReading(request), stream_encoder(protocol=record.name, model=record.example)
    straight, waiting, passed = StraightReply(record.framing, record.name, record.example, TOOLS), b"", b""
    for piece in (data[:at], data[at:]):
        waiting += piece
        events = [*reading.feed(piece)]
        if not events:
            continue
        checked = straight.check(waiting, events, encoder.feed, is_last=events[-1].type == "done")
        if checked is None:
            return passed, True
        passed, waiting = passed + checked, b""
    return passed, False


@pytest.mark.parametrize("name", [*PATHS, "google-interactions"])
def test_a_right_stream_passes_unchanged_wherever_it_is_split(name: str) -> None:
    """How its bytes arrive depends on the network, and on how busy the machine is."""
    record = get_protocol(name)
    encoder = frame_encoder(record.framing)
    data = b"".join(map(encoder.feed, right_stream(record))) + encoder.finish()
    for at in range(0, len(data), 5):
        passed, is_wrong = pass_split(record, data, at)
        assert not is_wrong, at
        assert data.startswith(passed), at


@pytest.mark.parametrize("client", ["cohere-chat", "openai-chat"])
def test_the_law_fails_if_bytes_are_not_compared(
    upstream: ScriptedServer, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(StraightReply, "_differs", lambda self, *, is_last: False)
    with straight_gateway(upstream, client, tmp_path) as url, pytest.raises(Exception):  # noqa: B017, PT011 - an SDK's
        check_straight(upstream, url, client)


@of_every_client
def test_a_whole_reply_of_the_provider_has_ids(upstream: ScriptedServer, client: str, tmp_path: Path):
    record = get_protocol(client)
    with straight_gateway(upstream, client, tmp_path) as url:
        for fault in ("no fault", "calls without ids", "calls with empty ids"):
            body = REPAIRED[fault]([right_body(record)], client)[0]
            upstream.reply(Reply.json(body))
            answer = ask(url, client, stream=False, name="a")
            assert answer.status_code == 200
            found = record.decode_response(answer.json(), resolve_endpoint(record.example), {})
            assert len({call.id for call in found.tool_calls() if call.id}) == 2
            assert fault != "no fault" or answer.json() == body


@pytest.mark.parametrize("odd", [[1], {"a": 1}, "x", None], ids=str)
@of_every_client
def test_a_whole_reply_may_have_any_values_in_the_places_that_are_compared(client: str, odd: object):
    record = get_protocol(client)
    body: Any = right_body(record)
    calls = segue.decode_response(body, protocol=client, model=record.example)
    for part in (body, *(body.get("choices") or body.get("candidates") or ())):
        changed: Any = json.loads(json.dumps(body | {"type": odd, "index": odd} if part is body else body))
        if part is not body:
            next(iter(value for value in changed.values() if isinstance(value, list)))[0]["index"] = odd
        data = json.dumps(changed).encode()
        given = segue.decode_response(changed, protocol=client, model=record.example)
        assert repair_body(data, given, client, record.example, TOOLS) is data
        assert given.content == calls.content


@of_every_client
def test_replies_of_the_model_itself_are_shown_as_a_projection_of_their_events_shows_them(
    client: str, monkeypatch: pytest.MonkeyPatch
):
    record = get_protocol(client)
    faults = ("no fault", "calls without ids", "calls with empty ids")
    bodies: list[Any] = [REPAIRED[fault]([right_body(record)], client)[0] for fault in faults]
    bodies += [sample.response for sample in record.samples() if sample.response is not None]
    for body in bodies:
        given = segue.decode_response(body, protocol=client, model=record.example)
        extra = {
            each: {VERBATIM: choose("field", "function", "custom")} for each in ("openai-chat", "openai-responses")
        }
        custom = [ToolDefinition(name=call.name, parameters={}, extra=extra) for call in given.tool_calls()]
        for tools in ((), TOOLS, custom):
            shown = project_reply(given, protocol=client, model=record.example, tools=tools)
            with monkeypatch.context() as patched:
                patched.setattr(projector, "_is_unchanged", lambda *_: False)
                slowly = project_reply(given, protocol=client, model=record.example, tools=tools)
            assert dump_message(shown.message) == dump_message(slowly.message)
            assert (shown.report, shown.tool_names, shown.ids) == (slowly.report, slowly.tool_names, slowly.ids)


@of_every_client
def test_every_sample_passes_unchanged(client: str):
    """Streams of providers, however many frames come at once."""
    record = get_protocol(client)
    for sample in record.samples():
        for size in (1, 3, 1000) if sample.stream else ():
            encoder = frame_encoder(record.framing)
            decoder = segue.stream_decoder(protocol=client, model=record.example)
            writer = segue.stream_encoder(protocol=client, model=record.example)
            straight = StraightReply(record.framing, client, record.example, ())
            frames, passed, raw = list(sample.stream or ()), b"", b""
            for at in range(0, len(frames), size):
                part = b"".join(map(encoder.feed, frames[at : at + size]))
                events = [event for frame in frames[at : at + size] for event in decoder.feed(frame)]
                is_last = at + size >= len(frames)
                events += decoder.finish() if is_last else []
                data = straight.check(part, events, writer.feed, is_last=is_last)
                assert data is not None, sample.name
                passed, raw = passed + data, raw + part
            assert passed == raw


@pytest.mark.parametrize("client", ["openai-chat", "anthropic-messages", "ollama-chat"])
def test_after_a_frame_that_was_cut_off_the_error_can_be_read(upstream: ScriptedServer, client: str, tmp_path: Path):
    record = get_protocol(client)
    encoder = frame_encoder(record.framing)
    given = b"".join(map(encoder.feed, right_stream(record)[:-3]))
    with straight_gateway(upstream, client, tmp_path) as url:
        for cut in (1, 20, 60):
            upstream.reply(Reply(headers=EVENTS, chunks=(given[:-cut],), pause=0.002))
            answer = ask(url, client, name="a")
            frames = [parsed(frame) for frame in split_stream(record.framing, answer.content, 4096)]
            assert "error" in json.dumps(frames[-2:])


PATCH = "*** Begin Patch\n*** End Patch"
FREEFORM = {
    "right": ("custom_tool_call", PATCH),
    "JSON as the input": ("custom_tool_call", json.dumps({"input": PATCH})),
    "a function": ("function_call", json.dumps({"input": PATCH})),
}


@pytest.mark.parametrize(("kind", "given"), FREEFORM.values(), ids=FREEFORM.keys())
def test_a_freeform_tool_gets_its_text(kind: str, given: str):
    declared = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}}
    request = json.dumps({"model": "gpt-5", "input": "hi", "tools": [declared]}).encode()
    prompt = segue.read_call("POST", "/v1/responses", {}, request).prompt
    assert prompt is not None
    record = get_protocol("openai-responses")
    key = "input" if kind == "custom_tool_call" else "arguments"
    name = f"{kind}_{key}"
    item = {"id": "ctc_1", "type": kind, "call_id": "call_1", "name": "apply_patch", "status": "completed"}
    place = {"item_id": "ctc_1", "output_index": 0}
    response = {"id": "resp_1", "object": "response", "created_at": 0, "model": "gpt-5", "output": []}
    frames: list[Any] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, key: "", "status": "in_progress"}},
        *({"type": f"response.{name}.delta", **place, "delta": part} for part in (given[:9], given[9:])),
        {"type": f"response.{name}.done", **place, key: given},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, key: given}},
        {
            "type": "response.completed",
            "response": {**response, "output": [{**item, key: given}], "status": "completed"},
        },
    ]
    encoder = frame_encoder(record.framing)
    decoder = segue.stream_decoder(protocol=record.name, model=record.example)
    writer = segue.stream_encoder(protocol=record.name, model=record.example)
    straight = StraightReply(record.framing, record.name, record.example, prompt.context.tools)
    written: list[Any] = []
    passed = b""
    for at, frame in enumerate(frames):
        events, is_last = decoder.feed(frame), at == len(frames) - 1
        events += decoder.finish() if is_last else []
        data = None
        if not straight.is_wrong:
            data = straight.check(encoder.feed(frame), events, writer.feed, is_last=is_last)
            written += straight.take_frames() if data is None else []
        else:
            written += straight.write(events, writer.feed)
        passed += data or b""
    whole = [parsed(frame) for frame in split_stream(record.framing, passed, 4096)] + written
    assert whole[-1]["response"]["output"][0]["input"] == PATCH
    assert "".join(frame["delta"] for frame in whole if "delta" in frame) == PATCH
    assert straight.is_wrong == (given != PATCH)


@pytest.mark.parametrize("protocol", PATHS)
def test_frames_that_are_not_read_have_nothing_to_compare(protocol: str) -> None:
    """Most frames have texts alone; they are recognised by their bytes, and every other one is read."""
    record = get_protocol(protocol)
    encoder = frame_encoder(record.framing)
    skipped = 0
    right = right_stream(record)
    for frames in (right, *(change(right_stream(record), protocol) for change in {**REPAIRED, **REPORTED}.values())):
        for frame in frames:
            data = encoder.feed(frame)
            if not [*_frames_of(data)] and isinstance(frame, dict):
                seen, skipped = _Seen(), skipped + 1
                seen._indexes |= {None, *range(10)}  # as if each of its deltas were one of a call
                seen.add(frame)
                assert (seen.calls, seen.arguments, seen.reasons, seen.has_error) == ([], [], [], False), data
    assert skipped


# -- long replies ------------------------------------------------------------------------------------------------------


def chat_frame(delta: Any, reason: str | None = None) -> Any:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "created": 0, "model": "a", "object": "chat.completion.chunk", "choices": [choice]}


def call_frame(index: int, **more: Any) -> Any:
    return chat_frame({"tool_calls": [{"index": index, **more}]})


def pass_chat(frames: list[Any]) -> tuple[StraightReply, list[bytes | None], list[bytes]]:
    """Compare the frames of a Chat stream, each in its own piece; give also what was returned, and the pieces."""
    record = get_protocol("openai-chat")
    encoder = frame_encoder(record.framing)
    decoder = segue.stream_decoder(protocol=record.name, model=record.example)
    writer = segue.stream_encoder(protocol=record.name, model=record.example)
    straight = StraightReply(record.framing, record.name, record.example, ())
    pieces, passed = list(map(encoder.feed, frames)), list[bytes | None]()
    for number, (frame, piece) in enumerate(zip(frames, pieces, strict=True)):
        is_last = number == len(frames) - 1
        events = [*decoder.feed(frame), *(decoder.finish() if is_last else ())]
        passed.append(straight.check(piece, events, writer.feed, is_last=is_last))
        if passed[-1] is None:
            break
    return straight, passed, pieces


def test_each_call_of_a_long_reply_is_compared_once(monkeypatch: pytest.MonkeyPatch):
    compared: list[object] = []
    original = straight_replies._is_same  # pyright: ignore[reportPrivateUsage]

    def counted(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
        compared.append(one)
        return original(one, other)

    monkeypatch.setattr(straight_replies, "_is_same", counted)
    function = {"name": "read", "arguments": "{}"}
    frames = [call_frame(at, id=f"call_{at}", type="function", function=function) for at in range(500)]
    _, passed, pieces = pass_chat([*frames, chat_frame({}, "tool_calls"), "[DONE]"])
    assert b"".join(filter(None, passed)) == b"".join(pieces)
    assert len(compared) <= 2 * len(frames)


def test_a_reason_in_every_frame_does_not_hold_a_long_reply():
    text = "word " * 20
    straight, passed, pieces = pass_chat([*[chat_frame({"content": text}, "stop")] * 5000, "[DONE]"])
    assert straight.is_wrong  # what comes is written anew from here on
    held = b"".join(pieces[: len(passed)])
    assert passed[-1] is None
    assert len(held) < 120_000
    written = json.dumps(straight.take_frames())
    assert written.count("word") == held.count(b"word")


def test_the_long_input_of_a_freeform_tool_passes_unchanged():
    given = [call_frame(0, custom={"input": "+ a line of a patch\n"}) for _ in range(1500)]
    start = call_frame(0, id="call_1", type="custom", custom={"name": "apply_patch", "input": ""})
    straight, passed, pieces = pass_chat([start, *given, chat_frame({}, "tool_calls"), "[DONE]"])
    assert not straight.is_wrong
    assert sum(map(len, pieces)) > 200_000
    assert b"".join(filter(None, passed)) == b"".join(pieces)
