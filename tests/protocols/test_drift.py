"""What a provider sends and its SDK does not know is named; what the SDK knows is not."""

from __future__ import annotations

from copy import deepcopy
from importlib.resources import files

import pytest
from msgspec.structs import replace

from protocols import traffic
from protocols.every_protocol import all_codecs
from protocols.exchanges import WIRES, Exchanges
from segue import AssistantMessage, NativeContent, StopReason
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.drift import find_drift
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.registry import find_folder

CODECS = {codec.name: codec for codec in all_codecs()}


def is_listed(codec: Protocol) -> bool:
    """Whether the names of a protocol's replies were read from an SDK."""
    return (files(find_folder(codec.name)) / "reply_names.json").is_file()


LISTED = [wire for wire in WIRES if is_listed(wire.codec)]
CASES = [(wire, case) for wire in LISTED for case in wire.having("response")]
EACH = pytest.mark.parametrize(("wire", "case"), CASES, ids=[f"{wire.codec.name}: {case}" for wire, case in CASES])


@EACH
def test_a_known_reply_has_nothing_new(wire: Exchanges, case: str) -> None:
    assert find_drift(wire.codec.decode_response(wire.part(case, "response"), wire.endpoint, {})) == ()


@EACH
def test_a_new_field_is_named(wire: Exchanges, case: str) -> None:
    body = {**deepcopy(wire.part(case, "response")), "brand_new": {"inner": 1}}
    message = wire.codec.decode_response(body, wire.endpoint, {})
    assert find_drift(message) == (f"{wire.codec.name}: field brand_new",)


SAMPLES = [(codec, sample) for codec in CODECS.values() for sample in codec.samples() if sample.response]


@pytest.mark.parametrize(
    ("codec", "sample"), SAMPLES, ids=[f"{codec.name}: {sample.name}" for codec, sample in SAMPLES]
)
def test_a_sample_has_nothing_new_but_what_is_added(codec: Protocol, sample: Sample) -> None:
    endpoint = resolve_endpoint(codec.example)
    assert sample.response is not None
    assert find_drift(codec.decode_response(sample.response, endpoint, {})) == ()
    changed = codec.decode_response({**sample.response, "brand_new": [{"inner": 1}]}, endpoint, {})
    assert find_drift(changed) == ((f"{codec.name}: field brand_new",) if is_listed(codec) else ())


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (AssistantMessage(content=(), raw_stop_reason="tired"), "stop reason tired"),
        (AssistantMessage(content=(), raw_stop_reason="end_turn", stop_reason=StopReason.STOP), None),
        (AssistantMessage(content=(NativeContent(protocol="", block={"type": "dream", "text": "x"}),)), "block dream"),
        (AssistantMessage(content=(NativeContent(protocol="", block={"type": "server_tool_use"}),)), None),
        (AssistantMessage(content=(), extra={"anthropic-messages": {"usage": {"dreams": 2}}}), "field dreams"),
        (AssistantMessage(content=(), extra={"openai-chat": {"dreams": 2}}), None),
    ],
    ids=["stop reason", "known stop reason", "block", "known block", "field inside a field", "field of another wire"],
)
def test_names_what_is_new(message: AssistantMessage, named: str | None) -> None:
    found = find_drift(replace(message, protocol="anthropic-messages"))
    assert found == (() if named is None else (f"anthropic-messages: {named}",))


def test_a_protocol_without_a_list_has_nothing_new() -> None:
    assert find_drift(AssistantMessage(content=(), protocol="of-a-package", raw_stop_reason="tired")) == ()


def _is_reply(row, exchange) -> bool:
    return row["status"] == 200 and row["protocol"] in CODECS and isinstance(exchange.get("response"), dict)


@pytest.mark.traffic
def test_recorded_replies_have_almost_nothing_new() -> None:
    """A provider once wrote `complete` for `completed`: that is what this finds."""
    found = set()
    for row in traffic.exchanges():
        exchange = traffic.read(row["file"])
        if _is_reply(row, exchange):
            endpoint = resolve_endpoint(Model(row["model"] or "", row["provider"], row["protocol"]))
            found |= {*find_drift(CODECS[row["protocol"]].decode_response(exchange["response"], endpoint, {}))}
    assert found <= {"openai-responses: stop reason complete"}
