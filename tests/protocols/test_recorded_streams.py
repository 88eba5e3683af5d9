"""A recorded stream, decoded and encoded again, is the same to the official SDK of its protocol."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from protocols import traffic
from protocols.every_protocol import all_codecs
from protocols.sdk_accumulation import ACCUMULATIONS, filled
from protocols.sdk_views import VIEWS, view_of_message
from segue.calls.replies import stream_encoder
from segue.conversation.context import ToolDefinition
from segue.models.model import Model
from segue.projection.replies.projector import ReplyProjector
from segue.protocols.api import resolve_endpoint

CODECS = {codec.name: codec for codec in all_codecs()}
ROWS: list[Any] = [row for row in traffic.exchanges() if row["protocol"] in ACCUMULATIONS]

pytestmark = pytest.mark.traffic


def has_stream(row: Any, exchange: Any) -> bool:
    return row["status"] == 200 and isinstance(exchange.get("stream"), list)


def model_of(row: Any) -> Model:
    return Model(row["model"] or "", row["provider"], row["protocol"])


def events_of(row: Any) -> list[Any]:
    decoder = CODECS[row["protocol"]].stream_decoder(resolve_endpoint(model_of(row)), {})
    frames = traffic.read(row["file"])["stream"]
    return [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()


def encoded(events: list[Any], model: Model) -> list[Any]:
    encoder = stream_encoder(model=model)
    return [frame for event in events for frame in encoder.feed(event)] + encoder.finish()


@traffic.each_exchange(ROWS, has_stream)
def test_a_recorded_stream_is_the_same_to_its_sdk_after_decoding_and_encoding(row):
    frames = until_end(copy.deepcopy(traffic.read(row["file"])["stream"]))
    accumulate = ACCUMULATIONS[row["protocol"]]
    wanted = filled(accumulate(frames))
    found = filled(accumulate(encoded(events_of(row), model_of(row))))
    if isinstance(wanted, dict) and "id" not in wanted:
        found.pop("id", None)  # the provider sent none, and clients need one
    assert found == wanted


def signatures_in(message: Any) -> set[str]:
    """Give the opaque values of a message: signatures, and encrypted fields of native blocks."""
    names = ("thinking_signature", "text_signature", "thought_signature")
    found = {getattr(piece, name, None) for piece in message.content for name in names}
    return {value for value in found if value and len(value) > 30}  # shorter ones name a field


@pytest.mark.parametrize("target", VIEWS)
@traffic.each_exchange([row for row in traffic.exchanges() if row["protocol"] in CODECS], has_stream)
def test_a_recorded_stream_is_seen_by_the_sdk_of_every_other_protocol(row, target):
    events = events_of(row)
    if row["protocol"] == target or events[-1].type == "error":
        return  # the test above; an error is one on every protocol
    message = events[-1].message
    tools = [ToolDefinition(name=call.name) for call in message.tool_calls()]
    projector = ReplyProjector(protocol=target, model=CODECS[target].example, source=model_of(row), tools=tools)
    projected: list[Any] = [made for event in events for made in projector.feed(event)] + projector.finish()
    frames = encoded(projected, CODECS[target].example)
    seen = VIEWS[target](ACCUMULATIONS[target](copy.deepcopy(frames)))
    shown, given = view_of_message(projected[-1].message), view_of_message(message)
    if seen.tokens is None or shown.tokens is None:  # the protocol has no counts, or the provider sent none
        seen, shown = seen._replace(tokens=None), shown._replace(tokens=None)
    assert seen == shown
    assert shown._replace(text="", tokens=None) == given._replace(text="", tokens=None)
    assert all("".join(piece.text.split()) in seen.text for piece in message.content if piece.kind == "text")
    assert not any(signature in repr(frames) for signature in signatures_in(message))


def until_end(frames: list[Any]) -> list[Any]:
    """Give the frames of one reply: a fixture has two, one after the other."""
    ends = [at for at, frame in enumerate(frames) if isinstance(frame, dict) and frame.get("type") == "message_stop"]
    return frames[: ends[0] + 1] if ends else frames
