"""A law over streams of servers that are nearly right: each client gets a valid stream of its own protocol.

It holds all text, all thinking and all calls. What cannot be repaired is reported. The stream is read by the official
SDK where it has a reader, and by segue's own decoder.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

import segue
from protocols.every_protocol import all_codecs
from protocols.nearly_right import (
    FIRST,
    REPAIRED,
    REPORTED,
    SECOND,
    TEXT,
    THOUGHT,
    UNPLACED,
    Frames,
    right_body,
    right_stream,
    thinks,
)
from protocols.sdk_accumulation import ACCUMULATIONS
from segue.conversation.content import ToolCall
from segue.conversation.context import ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason
from segue.conversation.replayed import message_events
from segue.events import Event
from segue.projection.replies.projector import ReplyProjector
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.assembly import Part
from segue.protocols.kit.protocol import Protocol
from segue.testing.stream_laws import decode_frames

STREAMING = [record for record in all_codecs() if record.stream_encoder is not None]
TOOLS = (ToolDefinition(name="read", description="Reads a file.", parameters={"type": "object", "properties": {}}),)
FAULTS = {**REPAIRED, **UNPLACED, **REPORTED}

of_every_server = pytest.mark.parametrize("server", STREAMING, ids=[record.name for record in STREAMING])
of_every_fault = pytest.mark.parametrize("fault", FAULTS)


def shown_to(client: Protocol, events: Sequence[Event], source: segue.Model) -> Frames:
    """Write events of a server as a gateway does it for a client of another protocol."""
    projector = ReplyProjector(protocol=client.name, model=client.example, source=source, tools=TOOLS)
    encoder = segue.stream_encoder(protocol=client.name, model=client.example)
    frames = [frame for event in events for shown in projector.feed(event) for frame in encoder.feed(shown)]
    frames += [frame for shown in projector.finish() for frame in encoder.feed(shown)]
    return [*frames, *encoder.finish()]


def assert_valid(client: Protocol, frames: Frames, fault: str) -> AssistantMessage:
    """Read a stream as its client does, and check what every stream has to hold."""
    if client.name in ACCUMULATIONS:
        ACCUMULATIONS[client.name](copy.deepcopy(frames))
    events, message = decode_frames(client, frames)
    kinds = [event.type for event in events]
    assert kinds.count("start") == 1
    assert [kind for kind in kinds if kind in ("done", "error")] == [kinds[-1]]
    calls = message.tool_calls()
    assert [call.name for call in calls] == ["read", "read"]
    assert all(call.id for call in calls)
    assert len({call.id for call in calls}) == 2
    assert message.text() == TEXT
    thoughts = "".join(piece.thinking for piece in message.content if piece.kind == "thinking")
    assert thoughts in ("", THOUGHT)
    assert calls[1].arguments == SECOND.arguments
    if fault in REPAIRED:
        assert calls[0].arguments == FIRST.arguments
        assert message.stop_reason == StopReason.TOOL_USE
    return message


def assert_reported(found: AssistantMessage, shown: ToolCall, fault: str) -> None:
    """Check that what was not repaired is told by the reply, and that nothing is left out in silence."""
    first = found.tool_calls()[0]
    is_told = bool(found.diagnostics) or found.raw_stop_reason is None or found.stop_reason == StopReason.ERROR
    is_told = is_told or "odd_" in str(found.raw_stop_reason) or first.arguments_text is not None
    assert fault in REPAIRED or is_told or first.arguments.keys() == FIRST.arguments.keys()
    if first.arguments:
        assert shown.arguments == first.arguments


@of_every_fault
@of_every_server
def test_every_client_gets_a_valid_stream(server: Protocol, fault: str):
    frames = FAULTS[fault](right_stream(server), server.name)
    events, found = decode_frames(server, frames)
    for client in STREAMING:
        message = assert_valid(client, shown_to(client, events, server.example), fault)
        assert_reported(found, message.tool_calls()[0], fault)
        if thinks(server) and thinks(client):
            assert any(piece.kind == "thinking" and piece.thinking == THOUGHT for piece in message.content)


@of_every_fault
@of_every_server
def test_every_client_gets_a_valid_whole_reply(server: Protocol, fault: str):
    body = FAULTS[fault]([right_body(server)], server.name)[0]
    found = server.decode_response(body, resolve_endpoint(server.example), {})
    for client in STREAMING:
        projected = segue.project_reply(found, protocol=client.name, model=client.example, tools=TOOLS)
        endpoint = resolve_endpoint(client.example)
        written = json.loads(json.dumps(client.encode_response(projected.message, endpoint)))
        message = client.decode_response(written, endpoint, {})
        calls = message.tool_calls()
        assert message.text() == TEXT
        assert [call.name for call in calls] == ["read", "read"]
        assert all(call.id for call in calls)
        assert len({call.id for call in calls}) == 2
        assert_reported(found, calls[0], fault)


# -- the law finds faults ----------------------------------------------------------------------------------------------

CHAT = next(record for record in STREAMING if record.name == "openai-chat")
CLAUDE = next(record for record in STREAMING if record.name == "anthropic-messages")


def fails(server: Protocol, fault: str) -> bool:
    try:
        test_every_client_gets_a_valid_stream(server, fault)
    except Exception:  # noqa: BLE001 - also what an SDK raises
        return True
    return False


def test_the_law_fails_if_repeated_arguments_are_joined(monkeypatch: pytest.MonkeyPatch):
    fault = "arguments so far in every delta"
    assert not fails(CHAT, fault)
    monkeypatch.setattr(Part, "unrepeated", lambda self, text: text)
    assert fails(CHAT, fault)


def test_the_law_fails_if_arguments_are_passed_on_as_they_are(monkeypatch: pytest.MonkeyPatch):
    from segue.protocols.anthropic_messages.stream import _Writer

    assert not fails(CHAT, "text as arguments")
    monkeypatch.setattr(_Writer, "json_arguments", False)
    assert fails(CHAT, "text as arguments")


def test_the_law_fails_if_a_call_keeps_an_empty_id(monkeypatch: pytest.MonkeyPatch):
    from segue.projection.replies.calls import CallForms

    assert not fails(CLAUDE, "calls with empty ids")
    monkeypatch.setattr(CallForms, "_id", lambda self, given, index: given)
    assert fails(CLAUDE, "calls with empty ids")


# -- freeform tools ----------------------------------------------------------------------------------------------------

PATCH = "*** Begin Patch\n*** End Patch"
FREEFORM = {
    "as a function": {"arguments": {"input": PATCH}},
    "under another key": {"arguments": {"patch": PATCH}},
    "text that is not JSON": {"arguments": {}, "arguments_text": PATCH},
    "JSON in its text": {"arguments": {"input": json.dumps({"input": PATCH})}},
    "JSON with another key in its text": {"arguments": {"input": json.dumps({"patch": PATCH})}},
    "a command line": {"arguments": {"command": ["apply_patch", PATCH]}},
}


@pytest.mark.parametrize("form", FREEFORM.values(), ids=FREEFORM.keys())
def test_a_freeform_tool_gets_its_text_however_the_model_wrote_it(form: dict[str, Any]):
    declared = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}}
    request = json.dumps({"model": "gpt-5", "input": "hi", "tools": [declared]}).encode()
    prompt = segue.read_call("POST", "/v1/responses", {}, request).prompt
    assert prompt is not None
    responses = next(record for record in STREAMING if record.name == "openai-responses")
    for author in (responses.example, CLAUDE.example, CHAT.example):
        message = AssistantMessage(
            content=(ToolCall(id="call_1", name="apply_patch", **form),),
            protocol=author.protocol,
            provider=author.provider,
            model=author.id,
            stop_reason=StopReason.TOOL_USE,
        )
        options = {"protocol": "openai-responses", "model": responses.example, "tools": prompt.context.tools}
        whole = segue.project_reply(message, **options)
        body: Any = responses.encode_response(whole.message, resolve_endpoint(responses.example))
        assert (body["output"][0]["type"], body["output"][0]["input"]) == ("custom_tool_call", PATCH)
        projector = ReplyProjector(source=author, **options)
        encoder = segue.stream_encoder(protocol="openai-responses", model=responses.example)
        events = [shown for event in message_events(message) for shown in projector.feed(event)]
        frames: Frames = [frame for event in events for frame in encoder.feed(event)]
        assert [frame["delta"] for frame in frames if "delta" in frame] == [PATCH]
        assert frames[-1]["response"]["output"][0]["input"] == PATCH
        ACCUMULATIONS["openai-responses"](frames)


def test_json_stays_the_input_of_a_freeform_tool_without_a_grammar():
    request = json.dumps({"model": "gpt-5", "input": "hi", "tools": [{"type": "custom", "name": "run"}]}).encode()
    prompt = segue.read_call("POST", "/v1/responses", {}, request).prompt
    assert prompt is not None
    given = '{"code": "1"}'
    message = AssistantMessage(
        content=(ToolCall(id="call_1", name="run", arguments={"input": given}),), protocol="p", provider="v", model="m"
    )
    tools = prompt.context.tools
    shown = segue.project_reply(replace(message), protocol="openai-responses", model="openai/gpt-5", tools=tools)
    assert shown.message.tool_calls()[0].arguments == {"input": given}
