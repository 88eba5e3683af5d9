"""Recorded exchanges of every protocol are written back unchanged.

`check` passes every request that a provider accepted, and names why it refused one, unless the body cannot show it.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import segue
from protocols import traffic
from protocols.every_protocol import all_codecs
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.framing.sse import SseDecoder
from segue.models.model import Model
from segue.projection.passes.extra import lost_fields
from segue.projection.report import ChangeCode, Loss
from segue.protocols.api import resolve_endpoint
from segue.protocols.detection import detect_protocol

CODECS = {codec.name: codec for codec in all_codecs()}
ROWS: list[Any] = [row for row in traffic.exchanges() if row["protocol"] in CODECS]

SPLITTERS: dict[str, Any] = {"sse": SseDecoder, "aws-event-stream": AwsEventStreamDecoder}

pytestmark = pytest.mark.traffic


def endpoint_of(row: Any) -> Any:
    return resolve_endpoint(Model(row["model"] or "", row["provider"], row["protocol"]))


def bytes_of(exchange: Any) -> bytes | None:
    """Give the raw bytes of a stream, if they were recorded."""
    if "stream_raw_b64" in exchange:
        return base64.b64decode(exchange["stream_raw_b64"])
    raw = exchange.get("stream_raw")
    return raw.encode() if isinstance(raw, str) else None


def has_whole_reply(row: Any, exchange: Any) -> bool:
    body = exchange.get("response")
    return row["status"] == 200 and isinstance(body, dict) and "_raw" not in body


def has_stream(row: Any, exchange: Any) -> bool:
    return row["status"] == 200 and isinstance(exchange.get("stream"), list)


@traffic.each_exchange(ROWS, traffic.has_json_request)
def test_a_recorded_request_is_written_back_unchanged(row):
    body = traffic.read(row["file"])["request"]
    codec, endpoint = CODECS[row["protocol"]], endpoint_of(row)
    assert codec.encode_request(codec.decode_request(body, endpoint), endpoint) == body


@traffic.each_exchange(ROWS, has_whole_reply)
def test_a_recorded_reply_is_written_back_unchanged(row):
    body = traffic.read(row["file"])["response"]
    codec, endpoint = CODECS[row["protocol"]], endpoint_of(row)
    assert codec.encode_response(codec.decode_response(body, endpoint, {}), endpoint) == body


@traffic.each_exchange(ROWS, traffic.was_accepted)
def test_check_passes_a_request_that_the_provider_accepted(row):
    body = traffic.read(row["file"])["request"]
    assert CODECS[row["protocol"]].check(body, endpoint_of(row)) == []


@traffic.each_exchange(ROWS, traffic.was_accepted)
def test_check_passes_it_too_if_only_the_protocol_is_known(row):
    """The body names the model; the provider is that of the catalogue, or the maker of the model."""
    body = traffic.read(row["file"])["request"]
    assert segue.check(body, protocol=row["protocol"]) == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Give every value of a body that is not null, with its path."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {at: leaf for key, part in parts for at, leaf in leaves(part, (*path, key)).items()}
    return {} if value is None else {path: value}


@traffic.each_exchange(ROWS, traffic.was_accepted)
def test_an_accepted_request_for_its_own_model_keeps_every_leaf(row):
    body, model = traffic.read(row["file"])["request"], endpoint_of(row).model
    try:
        made = segue.convert(body, source=row["protocol"], source_model=model, target=model)
    except segue.EmptyConversation:
        return
    sent = leaves(json.loads(made.content))
    renamed = {("max_tokens",): ("max_completion_tokens",)}  # the newer name of the same field
    lost = {
        path for path, leaf in leaves(body).items() if leaf not in (sent.get(path), sent.get(renamed.get(path, ())))
    }
    assert lost - {("model",), ("stream",)} == set()


NAMED: dict[str, str] = {
    "does not support effort level": "effort_unsupported",
    "No tool output found for tool call": "text_after_call",
    "Content blocks are expected to be either text or image_url type": "media_type_unsupported",
    "document.source.type: Field required": "media_source_unsupported",
    "doesn't support the video content block": "media_unsupported",
    "Expected a base64-encoded data URL with a valid file MIME type": "media_type_unsupported",
    "Web search options not supported with this model": "option_unsupported",
}
"""A part of the provider's message -> the code of the violation."""
NOT_SHOWN: dict[str, str] = {
    "does not exist or you do not have access to it": "which models exist depends on the day and on the account",
}
"""A part of the provider's message -> why the body cannot show what is refused."""


def was_refused(row: Any, exchange: Any) -> bool:
    return row["status"] >= 400 and row["fidelity"] == "recorded" and traffic.has_json_request(row, exchange)


def reason_for(row: Any, reasons: dict[str, str]) -> str | None:
    return next((reason for part, reason in reasons.items() if part in str(row["error"])), None)


@traffic.each_exchange(ROWS, was_refused)
def test_check_names_why_the_provider_refused_a_request(row):
    body = traffic.read(row["file"])["request"]
    found = {violation.code for violation in CODECS[row["protocol"]].check(body, endpoint_of(row))}
    if reason_for(row, NOT_SHOWN) is not None:
        assert found == set()
    else:
        assert reason_for(row, NAMED) in found, row["error"]


@traffic.each_exchange(ROWS, has_stream)
def test_any_split_of_a_recorded_stream_gives_the_same_events(row):
    exchange = traffic.read(row["file"])
    frames, data = exchange["stream"], bytes_of(exchange)
    codec, endpoint = CODECS[row["protocol"]], endpoint_of(row)
    whole = codec.stream_decoder(endpoint, {})
    events = [event for frame in frames for event in whole.feed(frame)] + whole.finish()
    kinds = [event.type for event in events]
    assert kinds[0] == "start"
    assert sum(kind in ("done", "error") for kind in kinds) == 1
    assert kinds[-1] in ("done", "error")
    if codec.framing in SPLITTERS and data is not None:
        cut, splitter = codec.stream_decoder(endpoint, {}), SPLITTERS[codec.framing]()
        pieces = [data[start : start + 7] for start in range(0, len(data), 7)]
        cut_events = [event for piece in pieces for item in splitter.feed(piece) for event in cut.feed(item.data)]
        cut_events += [event for item in splitter.finish() for event in cut.feed(item.data)] + cut.finish()
        assert cut_events == events


@traffic.each_exchange(ROWS, traffic.has_json_request)
def test_the_protocol_of_a_recorded_request_is_detected(row):
    body = traffic.read(row["file"])["request"]
    assert detect_protocol(body) == row["protocol"]
    assert json.dumps(body)


@pytest.mark.parametrize("protocol", CODECS)
def test_a_recorded_request_gives_a_report_of_what_it_loses_and_of_nothing_else(protocol):
    targets = [codec.example for name, codec in CODECS.items() if name != protocol]
    for number, row in enumerate(traffic.of_protocol(protocol)):
        exchange = traffic.read(row["file"])
        if not traffic.has_json_request(row, exchange):
            continue
        body, target = exchange["request"], targets[number % len(targets)]
        try:
            prompt = segue.decode_request(body, protocol=protocol)
            report = segue.convert(body, source=protocol, target=target).report
        except segue.SegueError:
            continue  # no request that segue sends: a wrong body, or one that is no conversation
        removed = report.of(ChangeCode.EXTRA_REMOVED)
        losing = [change for change in removed if change.loss != Loss.NONE]
        assert all(change.detail for change in removed), row["file"]
        has_fields = any(lost_fields(extra) for extra in every_extra(prompt))
        assert has_fields or not losing, (row["file"], losing)
        pieces = [piece.kind for message in prompt.context.messages for piece in message.content]
        if not has_fields and not prompt.context.tools and set(pieces) <= {"text"}:
            unseen = [change for change in report.losses if change.path[0] != "options"]
            assert unseen == [], row["file"]


def every_extra(prompt: Any) -> list[Any]:
    """Give the `extra` of every part of a request."""
    context = prompt.context
    parts: list[Any] = [context, prompt.options, *context.tools, *context.messages]
    parts += [piece for message in context.messages for piece in message.content]
    if isinstance(context.system_prompt, tuple):
        parts += context.system_prompt
    return [part.extra for part in parts if part.extra is not None]
