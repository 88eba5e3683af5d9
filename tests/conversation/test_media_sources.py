"""Media from bytes and files: what enters is base64, and what cannot be sent is an error with its path."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue import (
    Context,
    Conversation,
    ConversationError,
    FileContent,
    ImageContent,
    NativeContent,
    Policy,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    dump,
    get_model,
    load,
    new_assistant_message,
    prepare,
    project,
)
from segue.conversation.media_sources import find_url_fault, is_base64
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.protocols.registry import PROTOCOLS, get_protocol

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40
CLAUDE = get_model("anthropic/claude-opus-4-8")
EVERYTHING = ("text", "image", "document", "audio", "video")


def model_of(protocol: str) -> Model:
    return msgspec.structs.replace(get_protocol(protocol).example, input=EVERYTHING)


MODELS = [model_of(name) for name in PROTOCOLS]
MODELS_WITH_IMAGES = [model for model in MODELS if model.protocol != "plain-text"]


@pytest.mark.parametrize("given", [PNG, bytearray(PNG), memoryview(PNG)], ids=["bytes", "bytearray", "memoryview"])
def test_bytes_are_encoded(given: bytes | bytearray | memoryview):
    image, file = ImageContent(data=given), FileContent(data=given, name="a.png")
    assert image.data == file.data == base64.b64encode(PNG).decode()
    assert msgspec.structs.replace(image, data=given) == image
    context = Context(messages=(UserMessage.of(image, file),))
    assert load(dump(context)) == context


@pytest.mark.parametrize("model", MODELS_WITH_IMAGES, ids=lambda model: model.protocol)
def test_bytes_arrive_at_every_protocol(model: Model):
    request = prepare(Context(messages=(UserMessage.of("look", ImageContent(data=PNG)),)), model)
    assert base64.b64encode(PNG).decode() in request.content.decode()


BROKEN = {
    "no base64": ("@@not base64@@", "not standard base64"),
    "a length that is a multiple of four": ("not!base", "not standard base64"),
    "one character too many": (base64.b64encode(PNG).decode() + "A", "not standard base64"),
    "line breaks": (base64.encodebytes(PNG).decode(), "not standard base64"),
    "the URL-safe alphabet": (base64.urlsafe_b64encode(b"\xff" * 48).decode(), "not standard base64"),
    "a data URL": ("data:image/png;base64,AAAA", "data URL; pass ImageContent"),
    "a URL": ("https://example.org/a.png", "a URL; pass ImageContent"),
    "a path": ("cat.png", "from_file"),
    "nothing": ("", "empty"),
    "a long text with a line break": (base64.b64encode(PNG * 9000).decode().replace("A", "\n", 1), "not standard"),
    "padding alone": ("====", "not standard base64"),
}


def places(content: ImageContent | FileContent) -> dict[str, tuple[tuple[Message, ...], tuple[str | int, ...]]]:
    call = new_assistant_message(CLAUDE, content=(ToolCall(id="1", name="look", arguments={}),))
    result = ToolResultMessage(tool_call_id="1", tool_name="look", content=(TextContent(text="seen"), content))
    return {
        "a user turn": ((UserMessage.of("look", content),), ("messages", 0, "content", 1)),
        "a tool result": ((UserMessage.of("look"), call, result), ("messages", 2, "content", 1)),
    }


@pytest.mark.parametrize("model", MODELS_WITH_IMAGES, ids=lambda model: model.protocol)
@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_broken_base64_is_an_error_with_its_path(model: Model, data: str, reason: str):
    for mime_type in ("image/png", "image/tiff", None):
        for messages, path in places(ImageContent(data=data, mime_type=mime_type)).values():
            with pytest.raises(ConversationError, match=reason) as caught:
                project(Context(messages=messages), model)
            assert caught.value.path == (*path, "data")


PATHS = ["cat.png", "./cat.png", "/home/me/cat.png", "~/cat.png", "C:\\cat.png", "file:///cat.png", "a b.png", "cat"]


@pytest.mark.parametrize("model", MODELS_WITH_IMAGES, ids=lambda model: model.protocol)
@pytest.mark.parametrize("url", PATHS)
def test_a_path_is_refused_with_the_name_of_the_helper(model: Model, url: str):
    for content in (ImageContent(url=url), FileContent(url=url, mime_type="image/png")):
        for messages, path in places(content).values():
            with pytest.raises(ConversationError, match=rf"{type(content).__name__}\.from_file\(") as caught:
                prepare(Context(messages=messages), model)
            assert caught.value.path == (*path, "url")


@pytest.mark.parametrize("model", MODELS_WITH_IMAGES, ids=lambda model: model.protocol)
@pytest.mark.parametrize("given", [Path("cat.png"), BytesIO(b"cat")], ids=["a path", "an open file"])
@pytest.mark.parametrize("field", ["data", "url"])
def test_a_path_or_an_open_file_is_refused_with_the_name_of_the_helper(model: Model, given: object, field: str):
    for kind in (ImageContent, FileContent):
        content: Any = {field: given}
        context = Context(messages=(UserMessage.of("look", kind(**content)),))
        with pytest.raises(ConversationError, match=rf"for a file use {kind.__name__}\.from_file\(path\)") as caught:
            prepare(context, model)
        assert caught.value.path == ("messages", 0, "content", 1, field)


def test_a_path_may_be_supplied_by_the_policy():
    context = Context(messages=(UserMessage.of("look", ImageContent(url="cat.png")),))
    policy = Policy(media={"cat.png": ImageContent(data=PNG, mime_type="image/png")})
    assert base64.b64encode(PNG).decode() in prepare(context, CLAUDE, policy=policy).content.decode()


def test_a_broken_data_url_is_named_at_the_url():
    context = Context(messages=(UserMessage.of(ImageContent(url="data:image/png;base64,@@@@")),))
    with pytest.raises(ConversationError) as caught:
        project(context, CLAUDE)
    assert caught.value.path == ("messages", 0, "content", 0, "url")


def test_what_a_provider_wrote_never_raises():
    block = NativeContent(
        protocol="openai-responses", block={"type": "x"}, fallback=(ImageContent(data="@@@", mime_type="image/png"),)
    )
    answer = new_assistant_message(get_model("openai/gpt-5.4"), content=(block,))
    projection = project(Context(messages=(UserMessage.of("hi"), answer, UserMessage.of("and?"))), CLAUDE)
    assert "media_unreachable" in [change.code for change in projection.report.changes]


def test_a_model_without_images_gets_a_placeholder():
    model = Model("m", "p", "openai-chat", input=("text",))
    context = Context(messages=(UserMessage.of("look", ImageContent(data="@@@")),))
    assert [change.code for change in project(context, model).report.changes] == ["media_omitted"]


def test_bare_base64_in_place_of_a_url_is_no_path():
    assert find_url_fault(base64.b64encode(b"\xff\xd8\xff" + b"x" * 900).decode(), "ImageContent") is None
    assert find_url_fault("https://example.org/a.png", "ImageContent") is None
    assert find_url_fault("gs://bucket/a.png", "ImageContent") is None


def test_the_whole_of_short_data_and_the_ends_of_long_data_are_checked():
    whole = base64.b64encode(b"\x01" * 300_000).decode()
    assert is_base64(whole)
    for place in (0, 50_000, 200_000, len(whole) - 1):
        assert not is_base64(f"{whole[:place]}\n{whole[place + 1 :]}")
    assert not is_base64(f"é{whole[1:]}")


def test_a_broken_image_never_gets_into_a_conversation(tmp_path: Path):
    pytest.importorskip("httpx2")
    path = tmp_path / "s.jsonl"
    with Conversation("echo", path=path) as conversation:
        conversation.ask("hello")
        before = path.read_bytes(), conversation.context
        with pytest.raises(ConversationError, match="from_file"):
            conversation.ask("look", ImageContent(url="cat.png"))
        with pytest.raises(ConversationError, match="from_file") as caught:
            conversation.add(UserMessage.of("look", ImageContent(data="@@@")))
        assert caught.value.path == ("content", 1, "data")
        with pytest.raises(ConversationError, match="from_file"):
            conversation.add_result(ToolCall(id="1", name="look", arguments={}), ImageContent(url="cat.png"))
        assert (path.read_bytes(), conversation.context) == before
        assert conversation.ask("look", ImageContent(data=PNG)).text() == "look (and 1 image)"


def test_a_conversation_accepts_what_its_policy_supplies():
    pytest.importorskip("httpx2")
    policy = Policy(media={"cat.png": ImageContent(data=PNG, mime_type="image/png")})
    with Conversation("echo", policy=policy) as conversation:
        assert conversation.ask("look", ImageContent(url="cat.png")).text() == "look (and 1 image)"


# -- files -------------------------------------------------------------------------------------------------------------


FILES = {
    "a PNG that is called a JPEG": ("cat.jpg", PNG, "image/png"),
    "a JPEG without an extension": ("cat", b"\xff\xd8\xff\xe0" + b"\x00" * 20, "image/jpeg"),
    "a PDF": ("a.bin", b"%PDF-1.7\n" + b"\x00" * 20, "application/pdf"),
    "a text": ("notes", b"plain words in a file", "text/plain"),
    "a program": ("a.py", b"print('hello, world')", "text/plain"),
    "Markdown": ("a.md", b"# A title and some text", "text/markdown"),
    "a short CSV": ("a.csv", b"a,b\n1,2", "text/csv"),
    "JSON": ("a.json", b'{"a": "some value here"}', "application/json"),
    "an office document": (
        "a.docx",
        b"PK\x03\x04" + b"\x00" * 20,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    "a WAV": ("a.wav", b"RIFF\x00\x00\x00\x00WAVEfmt " + b"\x00" * 20, "audio/wav"),
    "bytes of no known format": ("a", b"\x00\x01\x02\x03" * 9, "application/octet-stream"),
    "an image as a text": ("a.txt", PNG, "image/png"),
}


@pytest.mark.parametrize(("name", "data", "mime"), FILES.values(), ids=FILES)
def test_a_file_is_read_with_the_type_of_its_content(tmp_path: Path, name: str, data: bytes, mime: str):
    path = tmp_path / name
    path.write_bytes(data)
    for given in (path, str(path)):
        file = FileContent.from_file(given)
        assert file == FileContent(data=data, mime_type=mime, name=name)
    assert FileContent.from_file(path, mime_type="x/y").mime_type == "x/y"
    if mime.startswith("image/"):
        assert ImageContent.from_file(path) == ImageContent(data=data, mime_type=mime)
    else:
        advice = "mime_type=" if "octet" in mime else r"FileContent\.from_file"
        with pytest.raises(ConversationError, match=advice):
            ImageContent.from_file(path)


def test_an_svg_is_an_image(tmp_path: Path):
    path = tmp_path / "a.svg"
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    assert ImageContent.from_file(path).mime_type == "image/svg+xml"


def test_a_large_file_is_refused_with_its_size(tmp_path: Path):
    path = tmp_path / "large.png"
    path.write_bytes(PNG)
    assert ImageContent.from_file(path, max_bytes=len(PNG)).data
    for kind in (ImageContent, FileContent):
        with pytest.raises(ConversationError, match=rf"has {len(PNG)} bytes, more than the limit of 20.*max_bytes="):
            kind.from_file(path, max_bytes=20)
    with path.open("wb") as file:
        file.truncate(51 * 1024 * 1024)
    with pytest.raises(ConversationError, match="53,477,376 bytes"):
        FileContent.from_file(path)


def test_an_empty_or_missing_file_is_an_error(tmp_path: Path):
    (tmp_path / "empty.png").touch()
    with pytest.raises(ConversationError, match=r"empty\.png is empty"):
        ImageContent.from_file(tmp_path / "empty.png")
    with pytest.raises(FileNotFoundError):
        ImageContent.from_file(tmp_path / "nowhere.png")
