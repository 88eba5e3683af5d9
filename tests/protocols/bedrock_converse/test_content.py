"""Blocks of this wire and what they are in a conversation, in both directions."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace

from protocols.bedrock_converse.endpoints import ANYONE, DEEPSEEK, KIMI, OSS, SONNET
from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.content import (
    decode_assistant_block,
    decode_user_block,
    encode_assistant_content,
    encode_user_content,
)
from segue.protocols.bedrock_converse.native import DocumentNames
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC

P = "bedrock-converse"
PNG = "iVBORw0KGgo="
DATA = "EmwKAhgBEgy3va3pzix/LafPsn4a"


def blob(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def verbatim(**patch):
    return {P: {"verbatim": patch}}


def choice(name, default, received):
    return verbatim(**{f"@{name}": {"from": default, "to": received}})


def native(block, *fallback):
    return NativeContent(protocol=P, block=block, fallback=fallback)


S3 = {"s3Location": {"uri": "s3://bucket/a", "bucketOwner": "123456789012"}}
OWNER = {P: {"source": {"s3Location": {"bucketOwner": "123456789012"}}}}

USER = {
    "text": (TextContent(text="hi"), {"text": "hi"}),
    "text in the format of Anthropic's wire": (
        TextContent(text="hi", extra=verbatim(type={"to": "text"})),
        {"type": "text", "text": "hi"},
    ),
    "an image": (
        ImageContent(data=PNG, mime_type="image/png"),
        {"image": {"format": "png", "source": {"bytes": PNG}}},
    ),
    "an image with another format name": (
        ImageContent(data=PNG, mime_type="image/jpeg", extra=verbatim(format={"from": "jpeg", "to": "jpg"})),
        {"image": {"format": "jpg", "source": {"bytes": PNG}}},
    ),
    "an image in S3 is a file of this provider's": (
        FileContent(file_id="s3://bucket/a", mime_type="image/png", extra=OWNER),
        {"image": {"format": "png", "source": S3}},
    ),
    "an image that could not be made": (
        ImageContent(data=PNG, mime_type="image/png", extra={P: {"error": {"message": "odd"}}}),
        {"image": {"format": "png", "source": {"bytes": PNG}, "error": {"message": "odd"}}},
    ),
    "a document": (
        FileContent(data="AAAA", mime_type="application/pdf", name="Report 1"),
        {"document": {"format": "pdf", "name": "Report 1", "source": {"bytes": "AAAA"}}},
    ),
    "a document with citations": (
        FileContent(
            data="AAAA", mime_type="text/csv", name="a", context="c", extra={P: {"citations": {"enabled": True}}}
        ),
        {
            "document": {
                "format": "csv",
                "name": "a",
                "source": {"bytes": "AAAA"},
                "citations": {"enabled": True},
                "context": "c",
            }
        },
    ),
    "a document that is text": (
        FileContent(data="QnV5", mime_type="text/plain", name="a", extra=choice("field", "bytes", "text")),
        {"document": {"format": "txt", "name": "a", "source": {"text": "Buy"}}},
    ),
    "a document with an illegal name, which was received": (
        FileContent(
            data="AAAA", mime_type="application/pdf", name="a.pdf", extra=verbatim(name={"from": "a", "to": "a.pdf"})
        ),
        {"document": {"format": "pdf", "name": "a.pdf", "source": {"bytes": "AAAA"}}},
    ),
    "a document in S3": (
        FileContent(file_id="s3://bucket/a", mime_type="application/pdf", name="a", extra=OWNER),
        {"document": {"format": "pdf", "name": "a", "source": S3}},
    ),
    "a document made of texts": (
        native(
            {"document": {"name": "a", "source": {"content": [{"text": "One."}]}}},
            TextContent(text="a"),
            TextContent(text="One."),
        ),
        {"document": {"name": "a", "source": {"content": [{"text": "One."}]}}},
    ),
    "a video": (
        FileContent(data="AAAA", mime_type="video/3gpp"),
        {"video": {"format": "three_gp", "source": {"bytes": "AAAA"}}},
    ),
    "a video by its MIME type, which was answered": (
        FileContent(data="AAAA", mime_type="video/mp4", extra=verbatim(format={"from": "mp4", "to": "video/mp4"})),
        {"video": {"format": "video/mp4", "source": {"bytes": "AAAA"}}},
    ),
    "audio": (
        FileContent(data="AAAA", mime_type="audio/mpeg"),
        {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
    ),
    "JSON, which is a text for other models": (
        TextContent(text='{"a":[1,"ü"]}', extra=choice("field", "text", "json")),
        {"json": {"a": [1, "ü"]}},
    ),
    "guarded text": (
        native({"guardContent": {"text": {"text": "psst"}}}, TextContent(text="psst")),
        {"guardContent": {"text": {"text": "psst"}}},
    ),
    "a guarded image": (
        native(
            {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}},
            ImageContent(data=PNG, mime_type="image/png"),
        ),
        {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}},
    ),
    "a search result": (
        native(
            {"searchResult": {"source": "https://example.org", "title": "Page", "content": [{"text": "words"}]}},
            TextContent(text="Page\nhttps://example.org"),
            TextContent(text="words"),
        ),
        {"searchResult": {"source": "https://example.org", "title": "Page", "content": [{"text": "words"}]}},
    ),
    "a tool that comes in mid-conversation": (
        native({"toolAddition": {"tool": {"name": "f"}}}),
        {"toolAddition": {"tool": {"name": "f"}}},
    ),
    "an unknown block": (native({"hologram": {"depth": 3}}), {"hologram": {"depth": 3}}),
    "a block of two kinds": (
        native({"text": "a", "image": {}}, TextContent(text="a")),
        {"text": "a", "image": {}},
    ),
}


@pytest.mark.parametrize(("content", "block"), USER.values(), ids=USER.keys())
def test_content_of_a_user_survives_both_directions(content, block):
    assert decode_user_block(block, DocumentNames()) == content
    assert encode_user_content(content, DocumentNames()) == block


CITATION = {"title": "t", "location": {"web": {"url": "https://example.org"}}}
CALL = {"toolUseId": "t1", "name": "f", "input": {"a": 1}}

ASSISTANT = {
    "text": (TextContent(text="hi"), {"text": "hi"}, SONNET),
    "a call": (ToolCall(id="t1", name="f", arguments={"a": 1}), {"toolUse": CALL}, SONNET),
    "a call with a type": (
        ToolCall(id="t1", name="f", arguments={"a": 1}, extra={P: {"type": "tool_use"}}),
        {"toolUse": {**CALL, "type": "tool_use"}},
        SONNET,
    ),
    "a call whose input is text": (
        ToolCall(
            id="t1",
            name="f",
            arguments={"a": 1},
            extra=verbatim(input={"fromDigest": "1f8c00645b7df6ce", "to": '{"a":1}'}),
        ),
        {"toolUse": {**CALL, "input": '{"a":1}'}},
        SONNET,
    ),
    "a call of a tool that the provider runs": (
        native({"toolUse": {**CALL, "type": "server_tool_use"}}),
        {"toolUse": {**CALL, "type": "server_tool_use"}},
        SONNET,
    ),
    "the result of such a tool": (
        native(
            {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}, {"json": {"a": 1}}]}},
            TextContent(text="x"),
            TextContent(text='{"a":1}'),
        ),
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}, {"json": {"a": 1}}]}},
        SONNET,
    ),
    "signed reasoning": (
        ThinkingContent(thinking="hm", thinking_signature="s"),
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        SONNET,
    ),
    "signed reasoning whose text was withheld": (
        ThinkingContent(thinking="", thinking_signature="s"),
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}},
        SONNET,
    ),
    "unsigned reasoning": (
        ThinkingContent(thinking="hm"),
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        KIMI,
    ),
    "unsigned reasoning that was sent to Claude": (
        ThinkingContent(thinking="hm", extra=choice("signature", default=True, received=False)),
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        SONNET,
    ),
    "signed reasoning that was sent to another model": (
        ThinkingContent(thinking="hm", thinking_signature="s", extra=choice("signature", default=False, received=True)),
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        OSS,
    ),
    "an empty signature that was sent": (
        ThinkingContent(thinking="hm", extra=verbatim(signature={"to": ""})),
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": ""}}},
        OSS,
    ),
    "redacted reasoning, whose bytes are what Anthropic calls data": (
        ThinkingContent(thinking="", thinking_signature=DATA, redacted=True),
        {"reasoningContent": {"redactedContent": blob(DATA)}},
        SONNET,
    ),
    "redacted reasoning whose bytes are no text": (
        ThinkingContent(
            thinking="", thinking_signature="/////w==", redacted=True, extra=choice("encoding", "text", "base64")
        ),
        {"reasoningContent": {"redactedContent": "/////w=="}},
        SONNET,
    ),
    "a text with its sources": (
        TextContent(text="It rose.", extra={P: {"citations": [CITATION]}}),
        {"citationsContent": {"content": [{"text": "It rose."}], "citations": [CITATION]}},
        SONNET,
    ),
    "several texts with their sources": (
        native(
            {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": []}},
            TextContent(text="a"),
            TextContent(text="b"),
        ),
        {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": []}},
        SONNET,
    ),
    "an image that the model made": (
        native({"image": {"format": "png", "source": {"bytes": PNG}}}, ImageContent(data=PNG, mime_type="image/png")),
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        SONNET,
    ),
    "reasoning of an unknown form": (
        native({"reasoningContent": {"summary": "x"}}),
        {"reasoningContent": {"summary": "x"}},
        SONNET,
    ),
}


@pytest.mark.parametrize(("content", "block", "endpoint"), ASSISTANT.values(), ids=ASSISTANT.keys())
def test_content_of_a_model_survives_both_directions(content, block, endpoint):
    assert decode_assistant_block(block, endpoint) == content
    assert encode_assistant_content(content, endpoint, DocumentNames()) == block


REPLIES = {
    "the type of a call": ({"toolUse": {**CALL, "type": "tool_use"}}, {"toolUse": CALL}, SONNET),
    "unknown members": ({"toolUse": {**CALL, "new": 1}}, {"toolUse": CALL}, SONNET),
    "the type of a text": ({"type": "text", "text": "hi"}, {"text": "hi"}, SONNET),
    "a missing text beside a signature": (
        {"reasoningContent": {"reasoningText": {"signature": "s"}}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}},
        SONNET,
    ),
    "an empty signature": (
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": ""}}},
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        OSS,
    ),
    "a signature where the model takes none": (
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        OSS,
    ),
}


@pytest.mark.parametrize(("reply", "request_block", "endpoint"), REPLIES.values(), ids=REPLIES.keys())
def test_what_only_a_reply_contains_is_not_sent_back(reply, request_block, endpoint):
    content = decode_assistant_block(reply, endpoint, reply=True)
    assert content.extra is None
    assert encode_assistant_content(content, endpoint, DocumentNames()) == request_block
    body = {"output": {"message": {"role": "assistant", "content": [reply]}}, "stopReason": "end_turn"}
    message = CODEC.decode_response(body, endpoint, {})
    assert message.content == (content,)
    assert CODEC.encode_response(message, endpoint) == body


def test_base64_of_redacted_bytes_that_others_stored_is_not_encoded_twice():
    stored = ThinkingContent(thinking="", thinking_signature=blob(DATA), redacted=True)
    written = encode_assistant_content(stored, SONNET, DocumentNames())
    assert written == {"reasoningContent": {"redactedContent": blob(DATA)}}


def test_bytes_of_boto3_are_read_as_base64():
    raw = base64.b64decode(PNG)
    block = {"image": {"format": "png", "source": {"bytes": raw}}}
    assert decode_user_block(block, DocumentNames()) == ImageContent(data=PNG, mime_type="image/png")
    redacted = decode_assistant_block({"reasoningContent": {"redactedContent": DATA.encode()}}, SONNET)
    assert redacted == ThinkingContent(thinking="", thinking_signature=DATA, redacted=True)
    guarded = decode_user_block(
        {"guardContent": {"image": {"format": "png", "source": {"bytes": raw}}}}, DocumentNames()
    )
    assert guarded == USER["a guarded image"][0]


UNSUPPORTED = {
    "unsigned thinking for Claude": (ThinkingContent(thinking="hm"), SONNET),
    "redacted thinking without its data": (ThinkingContent(thinking="", redacted=True), SONNET),
    "a block of another protocol": (NativeContent(protocol="anthropic-messages", block={"type": "x"}), ANYONE),
}


@pytest.mark.parametrize(("content", "endpoint"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_content_that_the_wire_does_not_support_is_refused(content, endpoint):
    with pytest.raises(EncodeError):
        encode_assistant_content(content, endpoint, DocumentNames())


UNSENDABLE = {
    "an image by URL": ImageContent(url="https://example.org/a.png", mime_type="image/png"),
    "an image of an unsupported type": ImageContent(data=PNG, mime_type="image/tiff"),
    "an image of no type": ImageContent(data=PNG),
    "a file of an unsupported type": FileContent(data="AAAA", mime_type="chemical/x-pdb"),
    "a file by URL": FileContent(url="https://example.org/a.pdf", mime_type="application/pdf"),
    "nothing at all": FileContent(mime_type="application/pdf"),
}


@pytest.mark.parametrize("content", UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_media_that_the_wire_does_not_support_are_refused(content):
    with pytest.raises(EncodeError):
        encode_user_content(content, DocumentNames())


def test_a_signature_is_never_sent_to_a_model_that_refuses_it():
    signed = ThinkingContent(thinking="hm", thinking_signature="s")
    for endpoint in (OSS, KIMI, DEEPSEEK):
        written = encode_assistant_content(signed, endpoint, DocumentNames())
        assert written == {"reasoningContent": {"reasoningText": {"text": "hm"}}}


CHANGED = {
    "JSON that is no longer JSON": (USER["JSON, which is a text for other models"][0], {"text": "so"}, {"text": "so"}),
    "JSON that is other JSON": (
        USER["JSON, which is a text for other models"][0],
        {"text": '{"b":2}'},
        {"json": {"b": 2}},
    ),
    "a text file that is no longer text": (
        USER["a document that is text"][0],
        {"data": "/w=="},
        {"document": {"format": "txt", "name": "a", "source": {"bytes": "/w=="}}},
    ),
    "another name of a document": (
        USER["a document with an illegal name, which was received"][0],
        {"name": "b.pdf"},
        {"document": {"format": "pdf", "name": "b", "source": {"bytes": "AAAA"}}},
    ),
    "another type of an image": (
        USER["an image with another format name"][0],
        {"mime_type": "image/png"},
        {"image": {"format": "png", "source": {"bytes": PNG}}},
    ),
}


@pytest.mark.parametrize(("content", "change", "block"), CHANGED.values(), ids=CHANGED.keys())
def test_changed_content_is_written_in_the_default_format(content, change, block):
    assert encode_user_content(replace(content, **change), DocumentNames()) == block


def test_a_signature_that_was_removed_does_not_return():
    signed = ASSISTANT["signed reasoning that was sent to another model"][0]
    written = encode_assistant_content(replace(signed, thinking_signature=None), OSS, DocumentNames())
    assert written == {"reasoningContent": {"reasoningText": {"text": "hm"}}}


OLD = {
    P: {"shape": {"json": {"a": 1}, "input": "x", "signed": False, "null": ["b"]}, "cachePoint": {"type": "default"}}
}
STORED = {
    "text": (TextContent(text="hi", extra=OLD), {"text": "hi"}),
    "a call": (ToolCall(id="t1", name="f", arguments={"a": 1}, extra=OLD), {"toolUse": CALL}),
    "reasoning": (
        ThinkingContent(thinking="hm", thinking_signature="s", extra=OLD),
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
    ),
}


@pytest.mark.parametrize(("content", "block"), STORED.values(), ids=STORED.keys())
def test_the_format_of_older_stored_files_is_ignored(content, block):
    assert encode_assistant_content(content, SONNET, DocumentNames()) == block
