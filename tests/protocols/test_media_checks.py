"""`check` of media: bytes that are not what they claim to be, addresses of a refused type, media in results."""

from __future__ import annotations

import base64
import struct

import pytest

from segue import Context, ImageContent, Model, UserMessage, check, prepare
from segue.protocols.registry import resolve_rules
from segue.testing.histories import MP4, PDF, PNG, TEXT

EVERYTHING = ("text", "image", "document", "audio", "video")
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00").decode()
JUNK = base64.b64encode(bytes(range(200, 248))).decode()
URL = "data:{mime};base64,{data}"

MODELS = {
    "openai-chat": ("gpt-4o", "openai"),
    "openai-responses": ("gpt-5.1", "openai"),
    "anthropic-messages": ("claude-sonnet-4-5", "anthropic"),
    "bedrock-converse": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock"),
    "google-genai": ("gemini-2.5-pro", "google"),
    "mistral-chat": ("mistral-large-latest", "mistral"),
    "cohere-chat": ("command-a-vision-07-2025", "cohere"),
    "ollama-chat": ("llama3.2-vision", "ollama"),
    "vscode-lm": ("gpt-5", "vscode"),
}


def model_of(protocol):
    model_id, provider = MODELS[protocol]
    return Model(model_id, provider, protocol, input=EVERYTHING)


def with_image(protocol, data, mime="image/png"):
    """Give a body of the protocol with an image."""
    url = URL.format(mime=mime, data=data)
    text, chat_text = {"text": "a"}, {"type": "text", "text": "a"}
    match protocol:
        case "openai-chat" | "cohere-chat" | "mistral-chat":
            value = url if protocol == "mistral-chat" else {"url": url}
            part = {"type": "image_url", "image_url": value}
            return {"model": "m", "messages": [{"role": "user", "content": [chat_text, part]}]}
        case "openai-responses":
            part = {"type": "input_image", "image_url": url}
            return {"model": "m", "input": [{"role": "user", "content": [part]}]}
        case "anthropic-messages":
            part = {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
            return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [part]}]}
        case "bedrock-converse":
            part = {"image": {"format": mime.removeprefix("image/"), "source": {"bytes": data}}}
            return {"messages": [{"role": "user", "content": [text, part]}]}
        case "google-genai":
            part = {"inlineData": {"mimeType": mime, "data": data}}
            return {"contents": [{"role": "user", "parts": [text, part]}]}
        case "ollama-chat":
            return {"model": "m", "messages": [{"role": "user", "content": "a", "images": [data]}]}
        case _:
            part = {"$": "data", "data": data, "mimeType": mime}
            return {"messages": [{"role": "user", "content": [{"$": "text", "value": "a"}, part]}]}


@pytest.mark.parametrize("data", [PDF, MP4, TEXT], ids=["a PDF", "a video", "a text"])
@pytest.mark.parametrize("protocol", MODELS)
def test_bytes_that_are_no_image_are_named(protocol, data):
    model = model_of(protocol)
    assert [found.code for found in check(with_image(protocol, data), protocol=protocol, model=model)] == [
        "media_bytes_invalid"
    ]
    assert check(with_image(protocol, PNG), protocol=protocol, model=model) == []


@pytest.mark.parametrize("more", [0, 1], ids=["at the limit", "above it"])
@pytest.mark.parametrize("protocol", MODELS)
def test_an_image_with_more_pixels_than_a_target_takes_is_named_and_not_sent(protocol, more):
    model = model_of(protocol)
    edge = resolve_rules(model).most("image_edge")
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 20, (edge or 100_000) + more)
    data = base64.b64encode(head + bytes(9)).decode()
    found = [violation.code for violation in check(with_image(protocol, data), protocol=protocol, model=model)]
    assert found == (["media_too_large"] if edge and more else [])
    sent = prepare(Context(messages=(UserMessage.of("a", ImageContent(data=data, mime_type="image/png")),)), model)
    assert (data in sent.content.decode()) == (not found)


@pytest.mark.parametrize("protocol", MODELS)
def test_unknown_bytes_are_left_to_the_provider(protocol):
    for data in ("AAAA", JUNK):
        assert check(with_image(protocol, data), protocol=protocol, model=model_of(protocol)) == []


@pytest.mark.parametrize("protocol", MODELS)
def test_one_image_under_the_name_of_another_is_named_where_it_is_checked(protocol):
    found = check(with_image(protocol, JPEG), protocol=protocol, model=model_of(protocol))
    expected = ["media_bytes_invalid"] if protocol in ("anthropic-messages", "bedrock-converse") else []
    assert [violation.code for violation in found] == expected


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "mistral-chat", "cohere-chat"])
@pytest.mark.parametrize("mime", ["application/pdf", "video/mp4", "audio/wav", "text/plain"])
def test_an_image_of_another_type_is_named(protocol, mime):
    found = check(with_image(protocol, "AAAA", mime), protocol=protocol, model=model_of(protocol))
    assert "media_type_unsupported" in [violation.code for violation in found]


# -- addresses ---------------------------------------------------------------------------------------------------------


def responses(*parts):
    return {"model": "gpt-5.1", "input": [{"role": "user", "content": list(parts)}]}


def in_output(*parts):
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    return {
        "model": "gpt-5.1",
        "input": [call, {"type": "function_call_output", "call_id": "c", "output": list(parts)}],
    }


def file_at(url):
    return {"type": "input_file", "file_url": url}


@pytest.mark.parametrize("wrap", [responses, in_output])
@pytest.mark.parametrize(
    ("url", "codes"),
    [
        ("https://example.org/song.mp3", ["media_type_unsupported"]),
        ("https://example.org/film.mp4?x=1", ["media_type_unsupported"]),
        ("https://example.org/a.zip", ["media_type_unsupported"]),
        ("https://example.org/a.pdf", []),
        ("https://example.org/a.docx", []),
        ("https://example.org/a", []),
    ],
)
def test_the_url_of_a_file_of_a_refused_type_is_named(wrap, url, codes):
    model = model_of("openai-responses")
    assert [found.code for found in check(wrap(file_at(url)), protocol="openai-responses", model=model)] == codes


def claude(*blocks):
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": list(blocks)}]}


@pytest.mark.parametrize(
    ("kind", "url", "codes"),
    [
        ("document", "https://example.org/a.mp3", ["media_type_unsupported"]),
        ("document", "https://example.org/a.png", ["media_type_unsupported"]),
        ("document", "https://example.org/a.pdf", []),
        ("document", "https://example.org/a", []),
        ("image", "https://example.org/a.pdf", ["media_type_unsupported"]),
        ("image", "https://example.org/a.png", []),
    ],
)
def test_the_url_of_a_document_of_claude_is_checked(kind, url, codes):
    block = {"type": kind, "source": {"type": "url", "url": url}}
    model = model_of("anthropic-messages")
    assert [found.code for found in check(claude(block), protocol="anthropic-messages", model=model)] == codes


def test_a_pdf_that_is_none_is_named():
    block = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}}
    found = check(claude(block), protocol="anthropic-messages", model=model_of("anthropic-messages"))
    assert [violation.code for violation in found] == ["media_bytes_invalid"]


# -- results -----------------------------------------------------------------------------------------------------------


def nova_result(content, *beside):
    call = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    result = {"toolResult": {"toolUseId": "a", "content": [content], "status": "success"}}
    return {
        "messages": [
            {"role": "user", "content": [{"text": "a"}]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, *beside]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
    }


def in_s3(kind, form, **more):
    return {kind: {"format": form, "source": {"s3Location": {"uri": f"s3://bucket/a.{form}"}}, **more}}


STORED = {
    "a video in a result": (nova_result(in_s3("video", "mp4")), ["result_media_unsupported"]),
    "a document in a result": (nova_result(in_s3("document", "pdf", name="a")), ["result_media_unsupported"]),
    "an image in a result": (nova_result(in_s3("image", "png")), []),
    "a video beside a result": (nova_result({"text": "a"}, in_s3("video", "mp4")), []),
    "a document beside a result": (nova_result({"text": "a"}, {"text": "b"}, in_s3("document", "pdf", name="a")), []),
}


@pytest.mark.parametrize(("body", "codes"), STORED.values(), ids=STORED.keys())
def test_media_in_s3_are_accepted_by_nova_only_in_their_place(body, codes):
    model = Model("us.amazon.nova-2-lite-v1:0", "amazon-bedrock", "bedrock-converse", input=EVERYTHING)
    assert [found.code for found in check(body, protocol="bedrock-converse", model=model)] == codes


IMAGE = {"type": "image_url", "image_url": {"url": URL.format(mime="image/png", data=PNG)}}
VIDEO = {"type": "video_url", "video_url": {"url": URL.format(mime="video/mp4", data=MP4)}}


def tool_message(part):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {
        "model": "m",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, part]},
        ],
    }


@pytest.mark.parametrize(
    ("provider", "model_id", "codes"),
    [
        ("openai", "gpt-4o", ["result_media_unsupported"]),
        ("openrouter", "google/gemini-2.5-flash", []),
        ("openrouter", "anthropic/claude-sonnet-4.5", []),
        ("ollama", "llama3.2-vision", []),
    ],
)
def test_an_image_in_a_tool_message_is_named_where_it_is_refused(provider, model_id, codes):
    model = Model(model_id, provider, "openai-chat", input=EVERYTHING)
    assert [found.code for found in check(tool_message(IMAGE), protocol="openai-chat", model=model)] == codes


@pytest.mark.parametrize("url", ["https://example.org/a.webm", "https://youtu.be/abc", VIDEO["video_url"]["url"]])
def test_a_video_for_gemini_at_openrouter_passes(url):
    body = {"model": "m", "messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": url}}]}]}
    model = Model("google/gemini-2.5-flash", "openrouter", "openai-chat", input=EVERYTHING)
    assert check(body, protocol="openai-chat", model=model) == []


def test_images_of_ollama_pass_in_a_tool_message():
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "a", "images": [PNG]},
        ],
    }
    assert check(body, protocol="ollama-chat", model=model_of("ollama-chat")) == []
