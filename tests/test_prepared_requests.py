"""What `prepare` makes from plain content is accepted by `check`, for models whose limits are narrower than others'.

Each row was sent and named once. The laws cannot find such rows: they draw from models and values that tests know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from projection.building import PNG
from segue import (
    Context,
    FileContent,
    ImageContent,
    Model,
    Options,
    TextContent,
    ToolDefinition,
    UserMessage,
    check,
    get_model,
    prepare,
)
from segue.conversation.messages import Message

HI: Final = UserMessage.of("hi")


def tool(name: str, **properties: object) -> ToolDefinition:
    return ToolDefinition(name=name, parameters={"type": "object", "properties": properties})


def seen(piece: ImageContent | FileContent) -> UserMessage:
    return UserMessage(content=(TextContent(text="look"), piece))


class Row:
    """A request in neutral form, and what is reported of it: the codes of the changes."""

    def __init__(
        self,
        model: str | Model,
        *changes: str,
        options: Options | None = None,
        messages: tuple[Message, ...] = (HI,),
        tools: tuple[ToolDefinition, ...] = (),
        prompt: str | None = None,
    ) -> None:
        self.model: Model = get_model(model) if isinstance(model, str) else model
        self.changes: list[str] = sorted(changes)
        self.options = options
        self.context = Context(messages=messages, tools=tools, system_prompt=prompt)


SETTINGS: Final[Mapping[str, Row]] = {}
FAMILIES: Final[Mapping[str, Row]] = {
    "a tool that Alibaba refuses for its name": Row("alibaba/qwen3.7-plus", "name_changed", tools=(tool("search"),)),
}
MEDIA: Final[Mapping[str, Row]] = {
    "an image whose type is in capitals, to Claude": Row(
        "anthropic/claude-opus-4-8", "media_type_named", messages=(seen(ImageContent(data=PNG, mime_type="IMAGE/PNG")),)
    ),
    "an image whose type has a parameter, to Claude at Google": Row(
        "google-vertex/claude-opus-4-6",
        "media_type_named",
        messages=(seen(ImageContent(data=PNG, mime_type="image/png; charset=binary")),),
    ),
    "an image at an http address, to Claude": Row(
        "anthropic/claude-opus-4-8", "media_unreachable", messages=(seen(ImageContent(url="http://e.com/a.png")),)
    ),
    "a PDF at an ftp address, to Claude at Google": Row(
        "google-vertex/claude-opus-4-6",
        "media_unreachable",
        messages=(seen(FileContent(url="ftp://e.com/a.pdf", mime_type="application/pdf")),),
    ),
    "an image at an https address in capitals, to Claude": Row(
        "anthropic/claude-opus-4-8", messages=(seen(ImageContent(url="HTTPS://e.com/a.png")),)
    ),
    "an image at an http address, to OpenAI": Row(
        "openai/gpt-5.4", messages=(seen(ImageContent(url="http://e.com/a.png")),)
    ),
    "an image at an ftp address, to OpenAI": Row(
        "openai/gpt-5.4", "media_unreachable", messages=(seen(ImageContent(url="ftp://e.com/a.png")),)
    ),
    "an image at an ftp address, to OpenAI over Chat": Row(
        Model("gpt-5.2", "openai", "openai-chat", input=("text", "image")),
        "media_unreachable",
        messages=(seen(ImageContent(url="ftp://e.com/a.png")),),
    ),
    "a PDF at the address of a sound, to OpenAI": Row(
        "openai/gpt-5.4",
        "media_unreachable",
        messages=(seen(FileContent(url="https://e.com/a.mp3", mime_type="application/pdf")),),
    ),
    "a PDF at the address of an image, to Claude": Row(
        "anthropic/claude-opus-4-8",
        "media_unreachable",
        messages=(seen(FileContent(url="https://e.com/a.png", mime_type="application/pdf")),),
    ),
    "a PDF to Mistral, in the format of OpenAI": Row(
        Model("mistral-large-latest", "mistral", "openai-chat", input=("text", "image", "document")),
        "media_flattened",
        messages=(seen(FileContent(data="JVBERi0xLjQK", mime_type="application/pdf")),),
    ),
    "an image whose type has spaces, to OpenAI": Row(
        "openai/gpt-5.4", "media_type_named", messages=(seen(ImageContent(data=PNG, mime_type=" image/png ")),)
    ),
}
ROWS: Final = {**SETTINGS, **FAMILIES, **MEDIA}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_what_is_prepared_is_accepted_and_told(row: Row):
    request = prepare(row.context, row.model, options=row.options)
    assert check(request.body, protocol=row.model.protocol, model=row.model) == []
    assert sorted({change.code.value for change in request.report.changes}) == row.changes
