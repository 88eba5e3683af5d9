"""Which media a MIME type, the first bytes or an address name."""

from __future__ import annotations

import base64

import pytest

from segue.conversation.media_types import (
    class_of,
    is_readable,
    plain_type,
    shows_other_class,
    type_of_address,
    type_of_data,
    type_of_image_address,
)

BYTES: dict[str, tuple[bytes, str | None]] = {
    "a PNG": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"),
    "a JPEG": (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
    "a GIF": (b"GIF89a\x01\x00", "image/gif"),
    "a WebP": (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
    "a BMP": (b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00", "image/bmp"),
    "a TIFF": (b"II*\x00\x08\x00\x00\x00", "image/tiff"),
    "a HEIC": (b"\x00\x00\x00\x18ftypheic\x00\x00", "image/heic"),
    "an AVIF": (b"\x00\x00\x00\x18ftypavif\x00\x00", "image/avif"),
    "a PDF": (b"%PDF-1.7\n", "application/pdf"),
    "a PDF behind a text": (b"X-Header: some mail gateway wrote this line first\n" + b"%PDF-1.7", "application/pdf"),
    "a WAV": (b"RIFF\x10\x00\x00\x00WAVEfmt ", "audio/wav"),
    "an MP3 with tags": (b"ID3\x04\x00\x00", "audio/mpeg"),
    "an MP3 without tags": (b"\xff\xfb\x90\x00", "audio/mpeg"),
    "an Ogg": (b"OggS\x00\x02", "audio/ogg"),
    "a FLAC": (b"fLaC\x00\x00", "audio/flac"),
    "an MP4": (b"\x00\x00\x00\x18ftypmp42\x00\x00", "video/mp4"),
    "a film of a phone": (b"\x00\x00\x00\x18ftypqt  \x00\x00", "video/quicktime"),
    "a WebM": (b"\x1aE\xdf\xa3\x01\x00", "video/webm"),
    "a ZIP": (b"PK\x03\x04\x14\x00", "application/zip"),
    "a text": (b"This is no picture.", "text/plain"),
    "a text in another script": ("Это не картинка, а текст. ".encode() * 3, "text/plain"),
    "a text that is cut in a character": (b"a" + ("é" * 40).encode(), "text/plain"),
    "a short text": (b"hello", None),
    "unknown bytes": (b"\x00\x01\x02\x03" * 8, None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize(("given", "mime"), BYTES.values(), ids=BYTES.keys())
def test_the_first_bytes_show_a_type(given, mime):
    data = base64.b64encode(given).decode()
    assert type_of_data(data) == mime
    assert type_of_data(data.translate(str.maketrans("+/", "-_"))) == mime


def test_data_that_is_no_base64_shows_no_type():
    assert type_of_data("not base64 at all!") is None
    assert type_of_data("é") is None


ADDRESSES = {
    "https://example.org/a.PNG?size=2#top": "image/png",
    "https://example.org/a.b/c.webm": "video/webm",
    "report.docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "s3://bucket/a.mp4": "video/mp4",
    "https://www.youtube.com/watch?v=abc": "video/*",
    "https://youtu.be/abc": "video/*",
    "https://example.org/file": None,
    "https://example.org": None,
    "": None,
    None: None,
}


@pytest.mark.parametrize(("address", "mime"), ADDRESSES.items(), ids=map(str, ADDRESSES))
def test_an_address_shows_a_type(address, mime):
    assert type_of_address(address) == mime


def test_a_page_may_serve_an_image():
    assert type_of_image_address("https://example.org/picture.html") is None
    assert type_of_image_address("https://example.org/a.pdf") == "application/pdf"


CLAIMS = [
    ("image/png", "image/jpeg", False),
    ("image/png", "application/pdf", True),
    ("image/png", "text/plain", True),
    ("image/svg+xml", "text/plain", False),
    ("image/*", "image/png", False),
    ("application/pdf", "image/png", True),
    ("application/x-pdf", "application/pdf", False),
    ("application/pdf", "text/plain", True),
    ("application/json", "text/plain", False),
    ("text/csv", "text/plain", False),
    ("text/plain", "application/pdf", True),
    ("text/plain", "application/zip", True),
    ("application/vnd.ms-excel", "application/zip", False),
    ("audio/mp4", "video/mp4", False),
    ("video/webm", "video/webm", False),
    ("video/mp4", "audio/wav", True),
    ("audio/wav", "image/png", True),
    ("", "image/png", True),
    ("application/octet-stream", "text/plain", True),
]


@pytest.mark.parametrize(("claimed", "found", "expected"), CLAIMS)
def test_bytes_of_another_class_contradict_a_type(claimed, found, expected):
    assert shows_other_class(claimed, found) is expected


def test_a_type_has_a_class():
    assert plain_type(" Text/PLAIN; charset=utf-8") == "text/plain"
    assert plain_type(None) == ""
    assert [class_of(mime) for mime in ("image/png", "audio/*", "video/mp4", "text/plain", "")] == [
        *("image", "audio", "video", "document", "document")
    ]
    assert is_readable("application/json")
    assert not is_readable("application/pdf")
