"""The same turn is the same, whichever program stored it: who wrote it, its pictures and its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from segue import read_history
from segue.conversation.content import FileContent, ImageContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import arguments_text, make_call, media_of
from segue.testing.histories import PNG

ASKED = "What is this?"


def read(form: str, value: object) -> tuple[Any, ...]:
    return read_history(value, format=form).context.messages


# -- who wrote a turn --------------------------------------------------------------------------------------------------

ORIGINS = {
    "claude-sonnet-4-5": ("anthropic-messages", "anthropic", "claude-sonnet-4-5"),
    "claude-of-tomorrow": ("anthropic-messages", "anthropic", "claude-of-tomorrow"),
    "gpt-of-tomorrow": ("openai-responses", "openai", "gpt-of-tomorrow"),
    "gemini-of-tomorrow": ("google-genai", "google", "gemini-of-tomorrow"),
    "models/gemini-2.5-pro": ("google-genai", "google", "gemini-2.5-pro"),
    "bedrock/claude-sonnet-4-5": ("bedrock-converse", "amazon-bedrock", "claude-sonnet-4-5"),
    "meta-llama/Llama-3.3-70B-Instruct": ("", "", "meta-llama/Llama-3.3-70B-Instruct"),
    "openrouter/anthropic/claude-sonnet-4-5": ("openai-chat", "openrouter", "anthropic/claude-sonnet-4-5"),
    "llama-of-my-own": ("", "", "llama-of-my-own"),
    "": ("", "", ""),
}


def _haystack(model: str) -> object:
    return [{"role": "assistant", "meta": {"model": model}, "name": None, "content": [{"text": "Yes."}]}]


def _langchain(model: str) -> object:
    data = {"content": "Yes.", "type": "ai", "response_metadata": {"model_name": model}}
    return [{"type": "ai", "data": data}]


def _inspect(model: str) -> object:
    return [{"id": "1", "role": "assistant", "source": "generate", "content": "Yes.", "model": model}]


def _continue(model: str) -> object:
    entry = {"message": {"role": "assistant", "content": "Yes.", "usage": {"model": model}}, "contextItems": []}
    return {"sessionId": "1", "title": "T", "workspaceDirectory": "/", "history": [entry]}


def _cline(model: str) -> object:
    turn = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "ts": 1, "modelInfo": {"id": model}}
    return {"version": 1, "messages": [turn]}


def _goose(model: str) -> object:
    turn = {"role": "assistant", "created": 1, "content": [{"type": "text", "text": "Yes."}]}
    return {"id": "1", "working_dir": "/", "model_config": {"model_name": model}, "conversation": [turn]}


TURNS: Mapping[str, Callable[[str], object]] = {
    "haystack": _haystack,
    "langchain": _langchain,
    "inspect-ai": _inspect,
    "continue": _continue,
    "cline": _cline,
    "goose": _goose,
}


@pytest.mark.parametrize("model", ORIGINS)
def test_every_program_that_names_a_model_names_the_same_origin(model: str):
    found = find_origin(model)
    assert (found.protocol, found.provider, found.model) == ORIGINS[model]
    for form, turn in TURNS.items():
        (message,) = read(form, turn(model))
        assert isinstance(message, AssistantMessage)
        if form == "cline" and not model:
            continue  # it stores the blocks of Anthropic, so the protocol is known without the model
        assert (message.protocol, message.provider, message.model) == ORIGINS[model], form


# -- pictures ----------------------------------------------------------------------------------------------------------

_URL = f"data:image/png;base64,{PNG}"
_UNTYPED = f"data:;base64,{PNG}"


def _parts(part: Mapping[str, object]) -> object:
    return [{"role": "user", "content": [{"type": "text", "text": ASKED}, dict(part)]}]


PICTURES: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "litellm": ("litellm", lambda url: _parts({"type": "image_url", "image_url": {"url": url}})),
    "hf-messages": ("hf-messages", lambda url: {"messages": _parts({"type": "image", "url": url})}),
    "inspect-ai": ("inspect-ai", lambda url: _parts({"type": "image", "image": url})),
    "langchain": (
        "langchain",
        lambda url: [
            {"type": "human", "data": {"type": "human", "content": [{"type": "image_url", "image_url": {"url": url}}]}}
        ],
    ),
    "vercel-ui": (
        "vercel-ui",
        lambda url: [{"id": "1", "role": "user", "parts": [{"type": "file", "mediaType": "image/*", "url": url}]}],
    ),
    "continue": (
        "continue",
        lambda url: {
            "sessionId": "1",
            "history": [
                {"message": {"role": "user", "content": [{"type": "imageUrl", "imageUrl": {"url": url}}]}},
            ],
        },
    ),
    "open-webui": (
        "open-webui",
        lambda url: {
            "id": "1",
            "chat": {
                "history": {
                    "currentId": "a",
                    "messages": {
                        "a": {
                            "id": "a",
                            "role": "user",
                            "content": ASKED,
                            "files": [{"type": "image", "url": url}],
                            "timestamp": 1,
                        }
                    },
                },
            },
        },
    ),
    "sharegpt": (
        "sharegpt",
        lambda url: {"conversations": [{"from": "human", "value": "<image>\nWhat?"}], "images": [url]},
    ),
}


@pytest.mark.parametrize(
    ("url", "mime"),
    [
        pytest.param(_URL, "image/png", id="a data URL with its type"),
        pytest.param(_UNTYPED, "image/png", id="a data URL without a type"),
        pytest.param("https://example.com/x", None, id="an address that shows no type"),
    ],
)
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_the_same_type_from_every_program(name: str, url: str, mime: str | None):
    form, make = PICTURES[name]
    found = [piece for message in read(form, make(url)) for piece in message.content if piece.kind in ("image", "file")]
    data, address = (PNG, None) if url.startswith("data:") else (None, url)
    assert found == [ImageContent(data=data, url=address, mime_type=mime)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"mime": "image/jpeg", "url": _URL},
            ImageContent(data=PNG, mime_type="image/png"),
            id="two types: the URL's",
        ),
        pytest.param({"mime": "image/*", "data": PNG}, ImageContent(data=PNG, mime_type="image/png"), id="any image"),
        pytest.param({"data": PNG}, ImageContent(data=PNG, mime_type="image/png"), id="no type"),
        pytest.param(
            {"mime": "application/pdf", "url": "https://example.com/a"},
            FileContent(url="https://example.com/a", mime_type="application/pdf"),
            id="a document",
        ),
        pytest.param({"mime": "image/png"}, None, id="nothing"),
    ],
)
def test_the_type_of_media_is_that_of_the_data(given: dict[str, Any], expected: object):
    assert media_of(given.pop("mime", None), **given) == expected


# -- calls -------------------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "an object": ('{"path":"a"}', {"path": "a"}),
    "cut off": ('{"path":"a","mode":"r', {"path": "a", "mode": "r"}),
    "a raw line break": ('{"path":"a\nb"}', {"path": "a\nb"}),
    "no object": ("[1]", {}),
    "nothing": ("", {}),
}


def _call(text: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "read", "arguments": text}}


CALLS: Mapping[str, Callable[[str], object]] = {
    "openai-chat": lambda text: {
        "model": "gpt-4o",
        "messages": [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": "", "tool_calls": [_call(text)]},
        ],
    },
    "litellm": lambda text: [{"role": "assistant", "content": None, "tool_calls": [_call(text)]}],
    "ag-ui": lambda text: [{"id": "1", "role": "assistant", "toolCalls": [_call(text)]}],
    "autogen": lambda text: [
        {
            "type": "AssistantMessage",
            "source": "a",
            "content": [{"id": "c1", "name": "read", "arguments": text}],
        }
    ],
    "continue": lambda text: {
        "sessionId": "1",
        "history": [{"message": {"role": "assistant", "content": "", "toolCalls": [_call(text)]}}],
    },
    "open-webui": lambda text: {
        "id": "1",
        "chat": {
            "history": {
                "currentId": "a",
                "messages": {
                    "a": {
                        "id": "a",
                        "role": "assistant",
                        "content": "",
                        "output": [{"type": "function_call", "call_id": "c1", "name": "read", "arguments": text}],
                        "timestamp": 1,
                    }
                },
            }
        },
    },
    "goose": lambda text: {
        "id": "1",
        "working_dir": "/",
        "conversation": [
            {
                "role": "assistant",
                "created": 1,
                "content": [
                    {
                        "type": "toolRequest",
                        "id": "c1",
                        "toolCall": {"status": "success", "value": {"name": "read", "arguments": text}},
                    }
                ],
            }
        ],
    },
}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("form", CALLS)
def test_a_call_has_the_same_arguments_from_every_program(form: str, name: str):
    text, expected = ARGUMENTS[name]
    (call,) = [
        piece for message in read(form, CALLS[form](text)) for piece in message.content if isinstance(piece, ToolCall)
    ]
    assert (call.id, call.name, call.arguments) == ("c1", "read", expected)
    assert call.arguments_text == (None if name in ("an object", "nothing") else text)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_written_as_the_model_wrote_them_until_they_are_replaced(name: str):
    text, expected = ARGUMENTS[name]
    made = make_call("c1", "read", text)
    assert arguments_text(made) == (text or "{}")
    replaced = ToolCall(id="c1", name="read", arguments={**expected, "more": 1}, arguments_text=made.arguments_text)
    assert '"more":1' in arguments_text(replaced)
