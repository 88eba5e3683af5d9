"""Media in the wrong content class, with a wrong or missing MIME type, by file id, and video: for every protocol.

A PDF in an `ImageContent` was sent as an image and refused (gptpdf #6); Claude refuses a PNG that is called a JPEG
(llxprt-code #2130). OpenRouter accepts video by `video_url` (recorded by pydantic-ai, 2026-02-07).
"""

from __future__ import annotations

import base64
import json

import pytest
from msgspec.structs import replace

from projection.histories import ALL_TARGETS
from property_testing import tiers
from segue import (
    Context,
    FileContent,
    ImageContent,
    MediaNeeded,
    Model,
    Policy,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    check,
    convert,
    get_model,
    prepare,
    project,
)
from segue.conversation.media_types import class_of, plain_type, shows_other_class, type_of_data
from segue.models.origin import new_assistant_message
from segue.projection.report import ChangeCode
from segue.testing.histories import MP4, PDF, PNG, TEXT

EVERYTHING = ("text", "image", "document", "audio", "video")
WAV = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01").decode()
DATA = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "application/pdf": PDF,
    "audio/wav": WAV,
    "video/mp4": MP4,
    "text/plain": TEXT,
}
CLAIMS = (*DATA, "image/jpg", "application/octet-stream", None)
TARGETS = {model.full_name(): replace(model, input=EVERYTHING) for model in ALL_TARGETS}
OPENROUTER = get_model("openrouter/google/gemini-2.5-flash")
CLAUDE = get_model("anthropic/claude-sonnet-4-5")
CHAT = Model("gpt-4o", "openai", "openai-chat", input=EVERYTHING)
NOVA = get_model("amazon-bedrock/amazon.nova-pro-v1:0")

GIVEN = {
    f"{real} in {kind.__name__} as {claim}": kind(data=data, mime_type=claim)
    for real, data in DATA.items()
    for claim in CLAIMS
    for kind in (ImageContent, FileContent)
}
BY_REFERENCE = {
    "the URL of a PDF as an image": ImageContent(url="https://example.org/a.pdf"),
    "a PDF by its type as an image": ImageContent(url="https://example.org/a", mime_type="application/pdf"),
    "the URL of a video as an image": ImageContent(url="https://example.org/a.mp4"),
    "the URL of an image as a file": FileContent(url="https://example.org/a.png"),
    "the URL of sound": FileContent(url="https://example.org/a.mp3"),
    "the URL of a video": FileContent(url="https://example.org/a.webm"),
    "a page with a video": FileContent(url="https://youtu.be/abc"),
    "an image by the id of OpenAI": FileContent(file_id="file-abc", mime_type="image/*"),
    "an image by the id of Anthropic": FileContent(file_id="file_abc", mime_type="image/*"),
    "an image in S3": FileContent(file_id="s3://bucket/a.png", mime_type="image/png"),
    "a file in S3 without a type": FileContent(file_id="s3://bucket/a"),
    "a video in S3 without a type": FileContent(file_id="s3://bucket/a.mp4"),
    "an image in the store of Google": FileContent(file_id="gs://bucket/a.png", mime_type="image/png"),
    "an image that is data and an id": FileContent(data=PNG, file_id="file-abc", mime_type="image/png"),
}


def in_user_turn(piece):
    return Context(messages=(UserMessage.of("Look.", piece),))


def in_result(piece, model):
    call = replace(
        new_assistant_message(model, content=(ToolCall(id="abcdefgh1", name="read", arguments={}),)),
        stop_reason="toolUse",
    )
    result = ToolResultMessage(tool_call_id="abcdefgh1", tool_name="read", content=(TextContent(text="Done."), piece))
    return Context(messages=(UserMessage.of("Look."), call, result))


def media_of(context):
    pieces = [piece for message in context.messages for piece in message.content]
    return [piece for piece in pieces if isinstance(piece, ImageContent | FileContent)]


def is_of_its_class(piece):
    """Whether bytes and MIME type agree, and an image is an `ImageContent` unless it has only a file id."""
    mime = plain_type(piece.mime_type)
    found = None if piece.data is None else type_of_data(piece.data)
    if found is not None and shows_other_class(mime, found):
        return False
    is_stored = piece.kind == "file" and piece.data is None and piece.url is None
    return not mime or is_stored or (piece.kind == "image") == (class_of(mime) == "image")


@pytest.mark.parametrize("piece", [*GIVEN.values(), *BY_REFERENCE.values()], ids=[*GIVEN, *BY_REFERENCE])
@pytest.mark.parametrize("step", tiers([8], [1]))
def test_media_are_sent_by_their_type_to_every_target(piece, step):
    first = [*GIVEN.values(), *BY_REFERENCE.values()].index(piece) % step
    for model in [*TARGETS.values()][first::step]:
        for context in (in_user_turn(piece), in_result(piece, model)):
            request = prepare(context, model)
            assert check(request.body, protocol=model.protocol, model=model) == [], model.full_name()
            projection = project(context, model)
            for sent in media_of(projection.context):
                assert is_of_its_class(sent), (model.full_name(), sent)
            if piece not in media_of(projection.context):
                assert projection.report, model.full_name()
            again = project(projection.context, model)
            assert again.context is projection.context, model.full_name()
            assert not again.report, model.full_name()


FITS = {
    "chat": (CHAT, {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}"}}),
    "Responses": (
        get_model("openai/gpt-5.1"),
        {"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}"},
    ),
    "Mistral": (
        get_model("mistral/mistral-large-latest"),
        {"type": "document_url", "document_url": f"data:application/pdf;base64,{PDF}"},
    ),
    "Claude": (
        CLAUDE,
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
    ),
    "Gemini": (get_model("google/gemini-2.5-pro"), {"inlineData": {"mimeType": "application/pdf", "data": PDF}}),
    "Bedrock": (NOVA, {"document": {"format": "pdf", "source": {"bytes": PDF}}}),
}


@pytest.mark.parametrize("claim", ["application/pdf", "image/png", None])
@pytest.mark.parametrize(("model", "expected"), FITS.values(), ids=FITS.keys())
def test_a_pdf_as_an_image_is_sent_as_a_document(model, expected, claim):
    request = prepare(in_user_turn(ImageContent(data=PDF, mime_type=claim)), model)
    (part,) = [part for part in _parts(request.body) if PDF in json.dumps(part)]
    assert _is_part_of(expected, part), part
    assert "image_as_file" in [change.code for change in request.report.changes]
    assert request.report.lossless


def _parts(body):
    turns = body.get("messages") or body.get("input") or body["contents"]
    return turns[-1].get("content") or turns[-1]["parts"]


def _is_part_of(expected, found):
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(_is_part_of(value, found.get(key)) for key, value in expected.items())
    return expected == found


TYPES = [
    # claimed, data, target, what is sent
    ("image/jpeg", PNG, CLAUDE, ImageContent(data=PNG, mime_type="image/png")),
    ("image/jpg", JPEG, CLAUDE, ImageContent(data=JPEG, mime_type="image/jpeg")),
    ("image/jpg", "AAAA", CLAUDE, ImageContent(data="AAAA", mime_type="image/jpeg")),
    ("image/jpeg", PNG, CHAT, ImageContent(data=PNG, mime_type="image/jpeg")),
    ("image/tiff", PNG, CLAUDE, ImageContent(data=PNG, mime_type="image/png")),
    ("image/png", TEXT, CLAUDE, FileContent(data=TEXT, mime_type="text/plain")),
    ("image/png", TEXT, CHAT, TextContent(text="This is a text, not a picture.")),
    ("image/svg+xml", TEXT, CLAUDE, TextContent(text="This is a text, not a picture.")),
    ("image/png", "AAAA", CLAUDE, ImageContent(data="AAAA", mime_type="image/png")),
    ("video/mp4", MP4, CLAUDE, TextContent(text="[Video: video/mp4 - not supported]")),
]


@pytest.mark.parametrize(("claimed", "data", "model", "expected"), TYPES)
def test_the_bytes_decide_where_the_target_would_refuse_the_type(claimed, data, model, expected):
    projection = project(in_user_turn(ImageContent(data=data, mime_type=claimed)), replace(model, input=EVERYTHING))
    sent = projection.context.messages[0].content[1]
    if sent.kind == "text" and expected.kind == "text" and claimed.startswith("video/"):
        assert [change.code for change in projection.report.changes] == ["media_flattened"]
    else:
        assert sent == expected


def test_a_file_without_a_type_is_named_by_its_name_where_the_bytes_agree():
    zipped = base64.b64encode(b"PK\x03\x04" + bytes(20)).decode()
    model = replace(get_model("openai/gpt-5.1"), input=EVERYTHING)
    projection = project(in_user_turn(FileContent(data=zipped, name="a.docx")), model)
    (sent,) = media_of(projection.context)
    assert sent.mime_type == "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


# -- by file id --------------------------------------------------------------------------------------------------------


RESPONSES_BODY = {
    "model": "gpt-5.1",
    "input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-abc", "detail": "auto"}]}],
}
ANTHROPIC_BODY = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "file_abc"}}]}],
}
STORED = {
    "openai-responses": (RESPONSES_BODY, "file-abc", "openai"),
    "anthropic-messages": (ANTHROPIC_BODY, "file_abc", "anthropic"),
}


@pytest.mark.parametrize("model", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("source", STORED)
def test_an_image_by_file_id_is_needed_by_every_other_target(source, model):
    body, reference, provider = STORED[source]
    request = convert(body, source=source, target=model)
    if (model.protocol, model.provider) == (source, provider):
        assert reference in json.dumps(request.body)
        assert not request.requirements
        return
    if model.protocol == "plain-text":
        return  # it takes no image at all
    assert reference not in json.dumps(request.body), request.body
    path = ("messages", 0, "content", 0)
    assert MediaNeeded(path=path, reference=reference) in request.requirements
    assert [change.code for change in request.report.changes if change.path == path] == ["media_unreachable"]
    supplied = Policy(media={reference: ImageContent(data=PNG, mime_type="image/png")})
    resolved = convert(body, source=source, target=model, policy=supplied)
    assert PNG in json.dumps(resolved.body) or resolved.report.of(ChangeCode.MEDIA_TOO_LARGE)
    assert not resolved.requirements


OTHER_PROVIDERS = [
    Model("claude-sonnet-4-5@20250929", "google-vertex", "anthropic-messages", input=EVERYTHING),
    Model("grok-4", "xai", "openai-responses", input=EVERYTHING),
    Model("openai/gpt-5", "openrouter", "openai-chat", input=EVERYTHING),
]


@pytest.mark.parametrize("model", OTHER_PROVIDERS, ids=[model.provider for model in OTHER_PROVIDERS])
@pytest.mark.parametrize("mime", ["image/*", "application/pdf", None])
@pytest.mark.parametrize("file_id", ["file-abc", "file_abc"])
def test_a_file_id_is_not_sent_to_another_provider_of_the_protocol(model, mime, file_id):
    projection = project(in_user_turn(FileContent(file_id=file_id, mime_type=mime)), model)
    assert not media_of(projection.context)
    assert [need.reference for need in projection.requirements if need.kind == "mediaNeeded"] == [file_id]


# -- video -------------------------------------------------------------------------------------------------------------


VIDEOS = {
    "OpenRouter": (OPENROUTER, {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{MP4}"}}),
    "Qwen": (
        Model("qwen3-vl-plus", "alibaba", "openai-chat", input=EVERYTHING),
        {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{MP4}"}},
    ),
    "Kimi": (get_model("moonshotai/kimi-k2.6"), {"type": "video_url"}),
    "Xiaomi": (Model("mimo-v2-omni", "xiaomi", "openai-chat", input=EVERYTHING), {"type": "video_url"}),
    "vLLM": (Model("qwen3-vl", "vllm", "openai-chat", input=EVERYTHING), {"type": "video_url"}),
    "Gemini": (get_model("google/gemini-2.5-pro"), {"inlineData": {"mimeType": "video/mp4", "data": MP4}}),
    "Nova": (
        get_model("amazon-bedrock/amazon.nova-2-lite-v1:0"),
        {"video": {"format": "mp4", "source": {"bytes": MP4}}},
    ),
}


@pytest.mark.parametrize(("model", "expected"), VIDEOS.values(), ids=VIDEOS.keys())
def test_a_video_is_sent_to_targets_that_take_it(model, expected):
    request = prepare(in_user_turn(FileContent(data=MP4, mime_type="video/mp4")), model)
    assert not request.report
    (part,) = [part for part in _parts(request.body) if MP4 in json.dumps(part)]
    assert _is_part_of(expected, part), part
    assert check(request.body, protocol=model.protocol, model=model) == []


@pytest.mark.parametrize(
    "url", ["https://example.org/a.webm", "https://www.youtube.com/watch?v=abc", "https://e.org/v"]
)
def test_a_video_by_url_crosses_between_gemini_and_openrouter(url):
    mime = "video/*" if url == "https://e.org/v" else None
    request = prepare(in_user_turn(FileContent(url=url, mime_type=mime)), OPENROUTER)
    assert not request.report
    assert {"type": "video_url", "video_url": {"url": url}} in request.body["messages"][0]["content"]
    back = convert(request.body, source="openai-chat", target=get_model("google/gemini-2.5-pro"))
    (part,) = [part for part in _parts(back.body) if "fileData" in part]
    assert part["fileData"]["fileUri"] == url
    assert not str(part["fileData"].get("mimeType", "")).endswith("*")


def test_sound_by_url_is_needed_where_only_data_is_accepted():
    projection = project(in_user_turn(FileContent(url="https://example.org/a.mp3")), OPENROUTER)
    assert [need.reference for need in projection.requirements if need.kind == "mediaNeeded"] == [
        "https://example.org/a.mp3"
    ]
    document = project(in_user_turn(FileContent(url="https://example.org/a.pdf")), OPENROUTER)
    assert not document.report


# -- addresses that are no addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", TARGETS.values(), ids=TARGETS.keys())
def test_the_data_of_a_data_url_is_sent_as_data(model):
    for mime, kind in (("image/png", ImageContent), ("application/pdf", ImageContent), ("image/png", FileContent)):
        piece = kind(url=f"data:{mime};base64,{DATA[mime]}")
        named = kind(data=DATA[mime], mime_type=mime)
        assert prepare(in_user_turn(piece), model).body == prepare(in_user_turn(named), model).body
        assert not project(in_user_turn(piece), model).requirements


@pytest.mark.parametrize("url", ["s3://bucket/a.png", "gs://bucket/a.png"])
def test_a_stored_image_is_sent_only_to_its_provider(url):
    readers = {"s3": ("bedrock-converse",), "gs": ("google-genai", "google-interactions")}
    for model in TARGETS.values():
        projection = project(in_user_turn(ImageContent(url=url)), model)
        reading = readers[url.partition(":")[0]]
        if model.protocol == "plain-text":
            continue
        if model.protocol in reading and "claude" not in model.id:
            assert not projection.requirements, model.full_name()
            assert url in json.dumps(prepare(in_user_turn(ImageContent(url=url)), model).body)
        else:
            assert [need.kind for need in projection.requirements] == ["mediaNeeded"], model.full_name()


def test_images_by_file_id_count_as_images():
    model = Model("us.amazon.nova-2-lite-v1:0", "amazon-bedrock", "bedrock-converse", input=EVERYTHING)
    images = [FileContent(file_id=f"s3://bucket/{at}.png", mime_type="image/png") for at in range(20)]
    context = Context(messages=(UserMessage.of("Look.", *images),))
    assert not project(context, model).report
