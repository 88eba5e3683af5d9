"""Sizes of images from their first bytes, pages of documents, and what families count for them."""

from __future__ import annotations

import base64
import struct

import pytest

from segue.conversation.content import FileContent, ImageContent
from segue.counting.counter import TokenCounter
from segue.counting.media import count_pages, default_size, image_size
from segue.models.model import Model


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\x00\x00\x00"


def jpeg(width: int, height: int) -> bytes:
    """A start, a comment, a Huffman table (C4: not a frame) after a fill byte, then the frame."""
    comment = b"\xff\xfe" + struct.pack(">H", 12) + b"a comment."
    table = b"\xff\xff\xc4" + struct.pack(">H", 4) + b"\x00\x00"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + comment + table + frame + b"\xff\xd9"


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


IMAGES = {
    "PNG": png(640, 480),
    "GIF": b"GIF89a" + struct.pack("<HH", 640, 480) + b"\x00\x00\x00",
    "BMP": b"BM" + bytes(16) + struct.pack("<ii", 640, 480),
    "BMP from top to bottom": b"BM" + bytes(16) + struct.pack("<ii", 640, -480),
    "WebP, lossy": webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 640, 480 | 0x4000)),
    "WebP, lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14)),
    "WebP, extended": webp(b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
    "JPEG": jpeg(640, 480),
}


@pytest.mark.parametrize("data", IMAGES.values(), ids=IMAGES.keys())
def test_the_size_of_an_image_is_read_from_its_beginning(data):
    assert image_size(encode(data)) == (640, 480)


@pytest.mark.parametrize(
    "data", [b"", b"text", IMAGES["PNG"][:12], b"\xff\xd8\xff\xd9", b"RIFF1234WEBPnone", png(0, 5)]
)
def test_an_image_without_a_readable_size_has_the_default_one(data):
    assert image_size(encode(data)) == default_size()


def test_broken_base64_has_the_default_size():
    assert image_size("not base64!") == default_size()


PAGES = {
    "a tree that says how many": (b"<< /Type /Pages /Kids [3 0 R] /Count 12 >>", 12),
    "the count first": (b"<< /Count 7 /Kids [3 0 R] /Type /Pages >>", 7),
    "pages without a tree": (b"<< /Type /Page >> << /Type/Page /Parent 1 0 R >>", 2),
    "a compressed document of 120 KB": (b"x" * 120_000, 3),
    "nothing": (b"", 1),
}


@pytest.mark.parametrize(("document", "pages"), PAGES.values(), ids=PAGES.keys())
def test_the_pages_of_a_document_are_counted(document, pages):
    assert count_pages(encode(document)) == pages


CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages")
GPT_5 = Model("gpt-5-mini", "openai", "openai-responses")
GPT_4O = Model("gpt-4o", "openai", "openai-chat")
NANO = Model("gpt-4.1-nano", "openai", "openai-chat")
GEMINI_2 = Model("gemini-2.5-flash", "google", "google-genai")
GEMINI_3 = Model("gemini-3-pro-preview", "google", "google-genai")
NOVA_2 = Model("us.amazon.nova-2-lite-v1:0", "amazon-bedrock", "bedrock-converse")
NOVA_PRO = Model("us.amazon.nova-pro-v1:0", "amazon-bedrock", "bedrock-converse")
MISTRAL = Model("mistral-medium-latest", "mistral", "mistral-chat")
PIXTRAL = Model("pixtral-12b", "mistral", "mistral-chat")
LLAMA_4 = Model("meta-llama/llama-4-scout", "groq", "openai-chat")

# Recorded counts minus the count of the rest of the request (2026-11-15).
COUNTED = [
    (CLAUDE, 400, 301, 172, 0.05),
    (CLAUDE, 597, 566, 475, 0.05),
    (CLAUDE, 540, 360, 263, 0.05),
    (GPT_5, 400, 301, 162, 0.15),
    (GPT_5, 597, 566, 408, 0.05),
    (GPT_5, 1245, 1395, 2059, 0.01),
    (GPT_4O, 3008, 2000, 1103, 0.01),
    (NANO, 540, 360, 500, 0.05),
    (GEMINI_2, 400, 301, 259, 0.01),
    (GEMINI_2, 597, 566, 257, 0.01),
    (GEMINI_3, 400, 301, 1106, 0.05),
    (GEMINI_3, 597, 566, 1090, 0.05),
    (NOVA_2, 400, 301, 180, 0.06),
    (NOVA_2, 597, 566, 458, 0.05),
    (NOVA_PRO, 540, 360, 1826, 0.01),
    (MISTRAL, 400, 301, 175, 0.15),
    (MISTRAL, 597, 566, 481, 0.05),
    (PIXTRAL, 597, 566, 1443, 0.05),
    (LLAMA_4, 597, 566, 771, 0.05),
]


@pytest.mark.parametrize(("model", "width", "height", "counted", "error"), COUNTED)
def test_an_image_counts_as_the_provider_counted_it(model, width, height, counted, error):
    image = ImageContent(data=encode(png(width, height)), mime_type="image/png")
    assert TokenCounter(model).piece(image) == pytest.approx(counted, rel=error)


def test_a_large_image_is_scaled_down_before_it_counts():
    image = ImageContent(data=encode(png(6000, 4000)), mime_type="image/png")
    assert TokenCounter(CLAUDE).piece(image) <= 1610
    assert TokenCounter(GPT_5).piece(image) <= 2600


def test_an_image_in_a_file_counts_as_an_image():
    data = encode(png(400, 301))
    as_file = FileContent(data=data, mime_type="image/png")
    assert TokenCounter(CLAUDE).piece(as_file) == TokenCounter(CLAUDE).piece(
        ImageContent(data=data, mime_type="image/png")
    )


def test_a_document_counts_by_its_pages():
    document = FileContent(data=encode(PAGES["a tree that says how many"][0]), mime_type="application/pdf")
    assert TokenCounter(CLAUDE).piece(document) == 12 * 2600
    assert TokenCounter(GEMINI_2).piece(document) == 12 * 258
    assert TokenCounter(CLAUDE).piece(FileContent(url="https://example.com/a.pdf")) == 2600


@pytest.mark.parametrize("mime", ["audio/mpeg", "video/mp4", "text/plain", "application/json"])
def test_other_files_count_by_their_size(mime):
    small, large = (FileContent(data=encode(b"a" * size), mime_type=mime) for size in (1000, 900_000))
    counter = TokenCounter(GEMINI_2)
    assert 0 < counter.piece(small) < counter.piece(large)
