"""Base64 of media that was received in another form is read in the standard form and written back as received."""

from __future__ import annotations

import base64
import json
from typing import Final

import msgspec
import pytest

from segue.conversation.content import FileContent, ImageContent, TextContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, ToolResultMessage, UserMessage
from segue.errors import EncodeError
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import all_protocols


def data_of(head: bytes) -> str:
    """Give base64 with both characters that the URL alphabet replaces, and with padding."""
    length = len(head) + 91
    return base64.b64encode(head + b"\xff\xef\xbe" * 30 + b"\xff" * (1 + -length % 3 + 1)).decode()


MEDIA: Final[tuple[ImageContent | FileContent, ...]] = (
    ImageContent(data=data_of(b"\x89PNG\r\n\x1a\n"), mime_type="image/png"),
    FileContent(data=data_of(b"%PDF-1.7"), mime_type="application/pdf", name="a.pdf"),
    FileContent(data=data_of(b"RIFF0000WAVE"), mime_type="audio/wav"),
    FileContent(data=data_of(b"0000ftypmp42"), mime_type="video/mp4"),
)
FORMS: Final = {
    "without padding": lambda data: data.rstrip("="),
    "the URL alphabet": lambda data: data.replace("+", "-").replace("/", "_"),
    "both": lambda data: data.rstrip("=").replace("+", "-").replace("/", "_"),
}
WITHOUT_MEDIA: Final = frozenset({"plain-text"})


def encode(record: Protocol, piece: ImageContent | FileContent, place: str) -> str | None:
    """Give a request with the media, as JSON; None if the protocol does not support them there."""
    call = ToolCall(id="call12345", name="look", arguments={})
    turn = AssistantMessage(
        content=(call,), protocol=record.name, provider=record.example.provider, model=record.example.id
    )
    result = ToolResultMessage(tool_call_id=call.id, tool_name="look", content=(TextContent(text="see"), piece))
    user = UserMessage(content=(TextContent(text="see"), piece))
    context = Context(messages=(user,) if place == "user" else (UserMessage.of("look"), turn, result))
    try:
        return json.dumps(record.encode_request(Prompt(context=context), resolve_endpoint(record.example)))
    except EncodeError:
        return None


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("place", ["user", "result"])
@pytest.mark.parametrize("record", all_protocols(), ids=lambda record: record.name)
def test_media_are_written_back_as_received(record, place, form):
    carried = 0
    for piece in MEDIA:
        standard = encode(record, piece, place)
        assert piece.data is not None
        if standard is None or piece.data not in standard:
            continue
        carried += 1
        received = form(piece.data)
        assert received != piece.data
        body, endpoint = json.loads(standard.replace(piece.data, received)), resolve_endpoint(record.example)
        prompt = record.decode_request(body, endpoint)
        assert record.encode_request(prompt, endpoint) == body
        [read] = [each for turn in prompt.context.messages for each in turn.content if each.kind in ("image", "file")]
        assert read.data == piece.data
        assert len(msgspec.json.encode(read.extra)) < len(received)  # the data are stored once
    if place == "user":
        assert bool(carried) == (record.name not in WITHOUT_MEDIA)
