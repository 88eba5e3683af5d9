"""What `prepare` makes from plain content is accepted by `check`, for models whose limits are narrower than others'.

Each row was sent and named once. The laws cannot find such rows: they draw from models and values that tests know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from projection.building import PNG
from segue import (
    CacheMark,
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
SCHEMA: Final = Options(output_schema={"type": "object", "properties": {}})
FORCED: Final = Options(tool_choice="required")
IMAGES: Final = Model("gemini-2.5-flash-image", "google", "google-genai")


def tool(name: str, **properties: object) -> ToolDefinition:
    return ToolDefinition(name=name, parameters={"type": "object", "properties": properties})


def on_chat(model: str) -> Model:
    return replace(get_model(model), protocol="openai-chat")


CLOSED: Final = {"type": "object", "properties": {}, "additionalProperties": False}
STRICT: Final = ToolDefinition(name="find", parameters=CLOSED, strict=True)


FIVE, HOUR = CacheMark(), CacheMark(ttl="1h")


def marked(*marks: CacheMark) -> UserMessage:
    return UserMessage(
        content=tuple([TextContent(text=f"text {at}", cache_mark=mark) for at, mark in enumerate(marks)])
    )


MARKED, TWICE = marked(HOUR), marked(FIVE, HOUR)
DAY, UNKNOWN = marked(CacheMark(ttl="24h")), marked(CacheMark(ttl="7d"))


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


SETTINGS: Final[Mapping[str, Row]] = {
    "a stop text of Grok": Row(on_chat("xai/grok-4.3"), "option_removed", options=Options(stop=("END",))),
    "a seed of Mistral in the format of OpenAI": Row(
        on_chat("mistral/mistral-large-latest"), "option_removed", options=Options(seed=7)
    ),
    "a user id of Mistral in the format of OpenAI": Row(
        on_chat("mistral/mistral-large-latest"), "option_removed", options=Options(user_id="user-7")
    ),
    "an output schema of MiniMax": Row("minimax/MiniMax-M2.7", "option_removed", options=SCHEMA),
    "a user id that is an address, at Anthropic": Row(
        "anthropic/claude-opus-4-5", "option_clamped", options=Options(user_id="joe@example.com")
    ),
    "a negative seed at Mistral": Row("mistral/mistral-large-latest", "option_removed", options=Options(seed=-1)),
    "a negative seed at Cohere": Row("cohere/command-a-03-2025", "option_removed", options=Options(seed=-1)),
    "a seed above 32 bits at Google": Row("google/gemini-2.5-flash", "option_removed", options=Options(seed=2**31)),
    "a seed below 32 bits at Google": Row(
        "google/gemini-2.5-flash", "option_removed", options=Options(seed=-(2**31) - 1)
    ),
    "the lowest seed at Google": Row("google/gemini-2.5-flash", options=Options(seed=-(2**31))),
    "long stop texts at Moonshot": Row(
        "moonshotai/kimi-k2.5", "option_clamped", options=Options(stop=("é" * 16, "é" * 17, "END"))
    ),
    "a single long stop text at Moonshot": Row(
        "moonshotai/kimi-k2.5", "option_removed", options=Options(stop=("E" * 33,))
    ),
    "sampling without a temperature at Mistral": Row(
        "mistral/mistral-large-latest", "option_removed", options=Options(temperature=0.0, top_p=0.9)
    ),
    "the same in the format of OpenAI": Row(
        on_chat("mistral/mistral-large-latest"), "option_removed", options=Options(temperature=0.0, top_p=0.9)
    ),
    "instructions alone, of another model at Alibaba": Row(
        "alibaba/deepseek-v4-flash", "turn_inserted", messages=(), prompt="Be brief."
    ),
    "thinking of Qwen at Groq": Row("groq/qwen/qwen3.6-27b", "thinking_level", options=Options(thinking="low")),
    "the highest level of GPT-5.6, which Responses alone has": Row(
        on_chat("openai/gpt-5.6-sol"), "thinking_level", options=Options(thinking="max")
    ),
    "a reply of a model that only streams": Row("alibaba/qwq-plus", "option_clamped"),
    "a reply of the same model, with a setting of its own": Row(
        "alibaba/qwq-plus", "option_clamped", options=Options(extra={"openai-chat": {"n": 1}})
    ),
    "a whole reply of another one": Row("alibaba/qwen3.8-omni-flash", "option_clamped", options=Options(stream=False)),
    "a whole reply of Codex": Row("openai-codex/gpt-6-sol", "option_clamped", options=Options(stream=False)),
    "a stream of Codex": Row("openai-codex/gpt-6-sol", options=Options(stream=True)),
    "thinking where no token may be written": Row(
        "anthropic/claude-opus-4-5", "option_clamped", options=Options(thinking="low", max_tokens=0)
    ),
    "a tool whose schema is a reference, at Moonshot": Row(
        "moonshotai/kimi-k2.5",
        "tool_schema",
        tools=(ToolDefinition(name="find", parameters={"$ref": "#/$defs/root", "$defs": {"root": CLOSED}}),),
    ),
    "parallel calls of the o-series": Row(
        on_chat("openai/o1-2024-12-17"),
        "option_removed",
        options=Options(parallel_tool_calls=True),
        tools=(tool("look"),),
    ),
}
FAMILIES: Final[Mapping[str, Row]] = {
    "no thinking where there is none": Row("google/gemini-2.0-flash", options=Options(thinking="off")),
    "no thinking where there is none, at Vertex": Row(
        "google-vertex/gemini-2.0-flash", options=Options(thinking="off")
    ),
    "a text for a model of speech": Row("google/gemini-2.5-flash-preview-tts", "option_clamped"),
    "a text for a model of speech, with a setting of its own": Row(
        "google-vertex/gemini-2.5-pro-preview-tts",
        "option_clamped",
        options=Options(temperature=0.5, extra={"google-genai": {"generationConfig": {"candidateCount": 1}}}),
    ),
    "a text for a model of speech, asked for": Row(
        "google/gemini-2.5-flash-preview-tts",
        options=Options(extra={"google-genai": {"generationConfig": {"responseModalities": ["AUDIO"]}}}),
    ),
    "no thinking of Gemma 3": Row("google/gemma-3-27b-it", options=Options(thinking="off")),
    "a prompt for Gemma 3": Row("google/gemma-3-27b-it", "system_as_user", "turn_merged", prompt="Be brief."),
    "a tool for Gemma 3": Row("google/gemma-3-27b-it", "tool_removed", tools=(tool("search"),)),
    "a schema for Gemma 2": Row("google/gemini-gemma-2-27b-it", "option_removed", options=SCHEMA),
    "a tool for a model of images": Row(IMAGES, "tool_removed", tools=(tool("search"),)),
    "a schema for a model of images": Row(IMAGES, "option_removed", options=SCHEMA),
    "a schema for an older model of images": Row(
        "google/gemini-2.0-flash-preview-image-generation", "option_removed", options=SCHEMA
    ),
    "no thinking of a model that always thinks": Row(
        Model("claude-opus-5-5", "anthropic", "anthropic-messages"), "option_removed", options=Options(thinking="off")
    ),
    "no thinking of another one": Row(
        Model("gemini-2.5-pro", "google", "google-genai"), "option_removed", options=Options(thinking="off")
    ),
    "a forced tool of a model that always thinks": Row(
        "moonshotai/kimi-k2.7-code", "option_removed", options=FORCED, tools=(tool("find"),)
    ),
    "a forced tool of a model without a value for off": Row(
        "opencode/kimi-k2.5", "option_removed", options=FORCED, tools=(tool("find"),)
    ),
    "a forced tool and no thinking, of the same model": Row(
        "opencode/kimi-k2.5", "option_removed", options=replace(FORCED, thinking="off"), tools=(tool("find"),)
    ),
    "a forced tool of a model that is not listed": Row(
        Model("kimi-k2.6", "moonshotai", "openai-chat"), "option_removed", options=FORCED, tools=(tool("find"),)
    ),
    "a forced tool of a model that can stop thinking": Row(
        "moonshotai/kimi-k2.5", "option_clamped", options=FORCED, tools=(tool("find"),)
    ),
    "a long cache of a name of GPT-5.6": Row(
        "openai/gpt-daybreak-red-latest", options=Options(cache_retention="long", session_id="s")
    ),
    "a strict tool of Mistral's newer models": Row("amazon-bedrock/mistral.devstral-2-123b", tools=(STRICT,)),
    "a strict tool of Mistral's older models": Row(
        "amazon-bedrock/mistral.mistral-large-2407-v1:0", "tool_schema", tools=(STRICT,)
    ),
    "a longer mark behind a shorter one": Row(
        "anthropic/claude-sonnet-4-5",
        "cache_mark_shortened",
        messages=(MARKED,),
        tools=(replace(STRICT, cache_mark=FIVE),),
    ),
    "a longer mark behind a shorter one, in one message": Row(
        "anthropic/claude-sonnet-4-5", "cache_mark_shortened", messages=(TWICE,)
    ),
    "a longer mark behind a shorter one, on Bedrock": Row(
        "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "cache_mark_shortened", messages=(TWICE,)
    ),
    "a mark with a lifetime of OpenAI's": Row("anthropic/claude-sonnet-4-5", messages=(DAY,)),
    "a mark with a lifetime of OpenAI's, on Bedrock": Row(
        "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", messages=(DAY,)
    ),
    "a mark with an unknown lifetime": Row("anthropic/claude-sonnet-4-5", "cache_mark_shortened", messages=(UNKNOWN,)),
    "a mark with an unknown lifetime, of OpenAI": Row(
        "openai/gpt-5.6-sol", "cache_mark_shortened", messages=(UNKNOWN,)
    ),
    "a mark with an unknown lifetime on a tool": Row(
        "anthropic/claude-sonnet-4-5",
        "cache_mark_shortened",
        tools=(replace(tool("find"), cache_mark=CacheMark(ttl="7d")),),
    ),
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
    **{
        f"an image in a data URL in capitals, to {model}": Row(
            model,
            "media_resolved",
            "media_type_named",
            messages=(seen(ImageContent(url=f"DATA:image/PNG;BASE64,{PNG}")),),
        )
        for model in ("anthropic/claude-opus-4-8", "openai/gpt-5.4")
    },
    "an image whose type is any, to a model behind OpenRouter": Row(
        "openrouter/openai/gpt-5",
        "media_type_named",
        messages=(seen(ImageContent(data=PNG, mime_type="image/*")),),
    ),
    "a text in a data URL without base64, as an image": Row(
        "openai/gpt-5.4",
        "image_as_file",
        "media_resolved",
        messages=(seen(ImageContent(url="data:text/plain;charset=utf-8,hello%20world")),),
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
