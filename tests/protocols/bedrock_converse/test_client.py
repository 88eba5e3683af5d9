"""Comparison with boto3: it accepts our arguments, sends our body, and reads replies as we do."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from framing.aws_messages import stream_of
from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols import traffic
from protocols.bedrock_converse.endpoints import SONNET, endpoint_of
from protocols.bedrock_converse.referee import complaints
from protocols.every_protocol import vouched_for
from protocols.exchanges import BEDROCK
from segue.conversation.context import Options
from segue.errors import EmptyConversation, EncodeError
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.protocols.api import resolve_endpoint
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC
from segue.protocols.bedrock_converse.sdk import sdk_arguments
from segue.requests.prepare import prepare

NOT_STREAMED = (False,)
HI = [{"role": "user", "content": [{"text": "hi"}]}]


class Service:
    """A service for boto3: sends the prepared reply, and records the requests."""

    def __init__(self) -> None:
        self.reply = b"{}"
        self.status = 200
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, Any]] = []

    def lay_out(self, reply: object, status: int = 200, **headers: str) -> None:
        self.reply = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.status, self.headers, self.requests = status, headers, []


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[Any, Service]]:
    """Give a client of boto3's and the service at the other end of a loopback socket."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            service.requests.append((self.path, json.loads(body)))
            self.send_response(service.status)
            kind = "application/vnd.amazon.eventstream" if self.path.endswith("-stream") else "application/json"
            for name, value in {"content-type": kind, **service.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(service.reply)))
            self.end_headers()
            self.wfile.write(service.reply)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=f"http://127.0.0.1:{server.server_port}",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
    )
    yield client, service
    client.close()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("case", BEDROCK.having("request"))
def test_boto3_sends_our_body_as_it_is(case, service):
    client, bedrock = service
    body = BEDROCK.part(case, "request")
    bedrock.lay_out(BEDROCK.part("plain-text", "response"))
    client.converse(**sdk_arguments(body, SONNET))
    request_path = CODEC.path(SONNET, *NOT_STREAMED)
    ((path, sent),) = bedrock.requests
    assert sent == body
    assert path == request_path
    assert unquote(path) == f"/model/{SONNET.model.id}/converse"


@pytest.mark.parametrize("case", BEDROCK.names)
def test_boto3_and_we_read_the_same_reply(case, service):
    client, bedrock = service
    body = BEDROCK.part(case, "response")
    bedrock.lay_out(body, **{"x-amzn-RequestId": "request-1"})
    theirs = client.converse(modelId="m", messages=HI)
    ours = CODEC.decode_response(theirs, SONNET, {})
    assert ours.response_id == "request-1"
    whole = CODEC.decode_response(body, SONNET, {})
    assert bare(ours) == bare(whole)


def bare(message):
    """Leave out what boto3 adds about the transport, and what it does not pass on: members it does not know."""
    content = tuple(replace(piece, extra=None) if piece.kind == "toolCall" else piece for piece in message.content)
    return replace(message, content=content, response_id=None, extra=None)


@pytest.mark.parametrize("case", BEDROCK.names)
def test_boto3_and_we_read_the_same_stream(case, service):
    client, bedrock = service
    raw = stream_of(BEDROCK.part(case, "stream"))
    bedrock.lay_out(raw)
    theirs = list(client.converse_stream(modelId="m", messages=HI)["stream"])
    assert bedrock.requests[0][0] == "/model/m/converse-stream"
    assert bare(folded(theirs)) == bare(folded([event.data for event in AwsEventStreamDecoder().feed(raw)]))


def folded(frames):
    decoder = CODEC.stream_decoder(SONNET, {})
    for frame in frames:
        decoder.feed(frame)
    decoder.finish()
    return decoder.message


def test_an_exception_in_a_stream_is_one_to_boto3_and_to_us(service):
    client, bedrock = service
    frames = [{"messageStart": {"role": "assistant"}}, {"throttlingException": {"message": "slow down"}}]
    bedrock.lay_out(stream_of(frames))
    with pytest.raises(EventStreamError) as caught:
        list(client.converse_stream(modelId="m", messages=HI)["stream"])
    theirs = CODEC.decode_error(caught.value.response, None)
    assert (theirs.type, theirs.message) == ("throttlingException", "slow down")
    ours = folded(frames)
    assert ours.error_message == "throttlingException: slow down"


def test_an_error_of_boto3_is_read(service):
    client, bedrock = service
    headers = {"x-amzn-ErrorType": "ValidationException:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    bedrock.lay_out({"message": "Input is too long for requested model."}, 400, **headers)
    with pytest.raises(ClientError) as caught:
        client.converse(modelId="m", messages=HI)
    error = CODEC.decode_error(caught.value.response, None)
    assert (error.status, error.type, error.message) == (
        400,
        "ValidationException",
        "Input is too long for requested model.",
    )


def test_bytes_are_bytes_wherever_the_service_wants_them():
    arguments: Any = sdk_arguments(BEDROCK.part("media-and-cache-points", "request"), SONNET)
    blocks = arguments["messages"][0]["content"]
    assert blocks[1]["image"]["source"]["bytes"].startswith(b"\x89PNG")
    inner = arguments["messages"][2]["content"][0]["toolResult"]["content"]
    assert inner[2]["document"]["source"]["bytes"] == b"a,b"
    redacted: Any = sdk_arguments(BEDROCK.part("redacted-reasoning", "request"), SONNET)
    assert redacted["messages"][1]["content"][0]["reasoningContent"]["redactedContent"].startswith(b"EmwK")
    guarded: Any = sdk_arguments(BEDROCK.part("guardrail", "request"), SONNET)
    assert isinstance(guarded["messages"][0]["content"][1]["guardContent"]["image"]["source"]["bytes"], bytes)


def test_what_looks_like_bytes_in_the_arguments_of_a_call_stays_what_it_is():
    call = {"toolUse": {"toolUseId": "t", "name": "f", "input": {"image": {"source": {"bytes": "AAAA"}}}}}
    body = {"messages": [{"role": "assistant", "content": [call]}]}
    assert sdk_arguments(body, SONNET) == {"modelId": SONNET.model.id, **body}


def test_what_should_be_base64_and_is_not_is_named_with_its_place():
    image = {"image": {"format": "png", "source": {"bytes": "A"}}}
    with pytest.raises(EncodeError) as caught:
        sdk_arguments({"messages": [{"role": "user", "content": [image]}]}, SONNET)
    assert caught.value.path == ("messages", 0, "content", 0, "image", "source", "bytes")


# -- the service model as a reference -------------------------------------------------------------------------------

WRONG = {
    "an unknown member": {"messages": [{"role": "user", "content": [{"text": "x", "type": "text"}]}]},
    "a role that is none": {"messages": [{"role": "tool", "content": []}]},
    "a list that is a text": {"messages": "hi"},
    "a block of two kinds": {"messages": [{"role": "user", "content": [{"text": "x", "json": 1}]}]},
    "a format that is none": {
        "messages": [{"role": "user", "content": [{"image": {"format": "bmp", "source": {"bytes": "AAAA"}}}]}]
    },
    "an image without bytes": {
        "messages": [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": ""}}}]}]
    },
    "an id with a space": {
        "messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "a b", "name": "f", "input": {}}}]}]
    },
    "no tools": {"toolConfig": {"tools": []}},
    "a temperature of two": {"inferenceConfig": {"temperature": 2}},
    "a limit that is a text": {"inferenceConfig": {"maxTokens": "1"}},
    "an empty system prompt": {"system": [{"text": ""}]},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_referee_is_strict(wrong):
    assert complaints({"messages": HI, **wrong}, SONNET)


@pytest.mark.traffic
def test_the_referee_accepts_what_was_answered():
    for row in traffic.of_protocol("bedrock-converse"):
        body = traffic.read(row["file"])["request"]
        if isinstance(body, dict) and "_raw" not in body and row["status"] == 200:
            assert complaints(body, endpoint_of(row["model"])) == []


@scaled_examples(1.5)
@given(data=st.data())
def test_the_referee_accepts_every_projected_history(data):
    model = data.draw(st.sampled_from(TARGETS["bedrock-converse"]))
    strategy = data.draw(st.sampled_from([ugly_contexts, own_contexts]))
    context, seed = vouched_for(data.draw(strategy(model))), data.draw(st.integers(0, 2**32))
    options = replace(make_options(seed) or Options(), cache_retention=data.draw(st.sampled_from([None, "long"])))
    try:
        request = prepare(context, model, options=options)
    except EmptyConversation:
        return
    assert complaints(request.body, resolve_endpoint(model)) == []
    assert names_of_tools(request.body) == [
        piece.name
        for message in request.projection.context.messages
        for piece in message.content
        if piece.kind == "toolCall"
    ]


def names_of_tools(body):
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    return [block["toolUse"]["name"] for block in blocks if "toolUse" in block]


def test_a_picture_arrives_as_it_was(service):
    client, bedrock = service
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()
    body = {"messages": [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": data}}}]}]}
    bedrock.lay_out(BEDROCK.part("plain-text", "response"))
    client.converse(**sdk_arguments(body, SONNET))
    assert bedrock.requests[0][1] == body
