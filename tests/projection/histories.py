"""Histories to try the laws on, drawn by Hypothesis; `segue.testing.histories` makes them from a seed."""

from __future__ import annotations

from typing import Final

import msgspec
from hypothesis import strategies as st

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage
from segue.models.model import Model
from segue.projection.policy import Policy, Texts
from segue.protocols.registry import PROTOCOLS
from segue.testing.histories import (
    PDF,
    PNG,
    WIDE_PNG,
    Choices,
    fresh,
    make_broken_context,
    make_options,
    make_own_context,
)

__all__ = ["PDF", "PNG", "WIDE_PNG", "fresh", "make_options"]

# -- targets -----------------------------------------------------------------------------------------------------------

_EVERYTHING: Final = ("text", "image", "document", "audio", "video")
_STRICT: Final = {
    "repeated_call_ids": {},
    "call_id_alphabet": "a-z",
    "call_id_max": 6,
    "tool_name_alphabet": "a-z_",
    "tool_name_max": 16,
    "tool_error": "text",
    "alternate": True,
    "first_user": True,
    "last_assistant": False,
    "user_after_result": False,
    "system_messages": "before_assistant",
    "refused_text": "blank",
    "empty_result": False,
    "final_thinking": "text",
    "max_images": 2,
    "files": {"most": 1},
    "files_alone": {},
}
_SMALL: Final = {"max_images": 3, "large_images": {"most": 1, "least": 2000}, "media_bytes": {"most": 60}}


def _models(protocol: str, provider: str, *ids: str, **fields: object) -> tuple[Model, ...]:
    return tuple(Model(model_id, provider, protocol, **fields) for model_id in ids)  # pyright: ignore[reportArgumentType]


_TARGETS: Final[dict[str, tuple[Model, ...]]] = {
    "anthropic-messages": (
        *_models("anthropic-messages", "anthropic", "claude-sonnet-4-5", "claude-opus-4-8", reasoning=True),
        *_models("anthropic-messages", "anthropic", "claude-3-5-haiku-latest", input=("text",)),
        *_models("anthropic-messages", "anthropic", "claude-opus-4-6", reasoning=True, input=_EVERYTHING, rules=_SMALL),
        *_models("anthropic-messages", "fireworks", "kimi-k2", reasoning=True),
        *_models("anthropic-messages", "google-vertex", "claude-sonnet-4-5@20250929", reasoning=True),
    ),
    "openai-chat": (
        *_models("openai-chat", "openai", "gpt-5.2", "o1-mini", reasoning=True),
        *_models("openai-chat", "openai", "gpt-4o", input=_EVERYTHING),
        *_models("openai-chat", "deepseek", "deepseek-reasoner", "deepseek-v4", reasoning=True, input=("text",)),
        *_models("openai-chat", "nvidia", "mistral-large", "qwen3", input=("text",)),
        *_models("openai-chat", "openrouter", "openrouter/auto", router=True, reasoning=True),
    ),
    "openai-responses": (
        *_models("openai-responses", "openai", "gpt-5", reasoning=True, input=_EVERYTHING),
        *_models("openai-responses", "azure", "gpt-4.1"),
    ),
    "google-genai": (
        *_models("google-genai", "google", "gemini-2.5-pro", "gemini-3-pro-preview", reasoning=True, input=_EVERYTHING),
        *_models("google-genai", "google-vertex", "gemini-3.6-flash", reasoning=True),
    ),
    "google-interactions": (
        *_models("google-interactions", "google", "gemini-3-pro-preview", reasoning=True, input=_EVERYTHING),
        *_models("google-interactions", "google", "gemini-2.5-pro", "gemini-3.8-flash", reasoning=True),
    ),
    "bedrock-converse": (
        *_models("bedrock-converse", "amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", reasoning=True),
        *_models("bedrock-converse", "amazon-bedrock", "amazon.nova-pro-v1:0", input=_EVERYTHING),
        *_models("bedrock-converse", "amazon-bedrock", "meta.llama3-70b", "openai.gpt-oss-120b", reasoning=True),
    ),
    "mistral-chat": (
        *_models("mistral-chat", "mistral", "mistral-large-latest"),
        *_models("mistral-chat", "mistral", "magistral-medium", reasoning=True),
    ),
    "ollama-chat": _models("ollama-chat", "ollama", "gpt-oss:20b", reasoning=True),
    "vscode-lm": _models("vscode-lm", "vscode", "copilot-gpt"),
    "plain-text": _models("plain-text", "plain-text", "anything"),
    "cohere-chat": (
        *_models("cohere-chat", "cohere", "command-a", reasoning=True),
        *_models("cohere-chat", "cohere", "strictest", reasoning=True, rules=_STRICT, input=_EVERYTHING),
    ),
}
"""Several targets for each protocol: thinking and not, seeing and not, old and new, patient and strict."""

TARGETS: Final[dict[str, tuple[Model, ...]]] = {
    name: _TARGETS.get(name, (record.example,)) for name, record in PROTOCOLS.items()
}
"""The same, with the example of every protocol that has no targets of its own here."""

ALL_TARGETS: Final = tuple(model for models in TARGETS.values() for model in models)


def targets(protocol: str) -> st.SearchStrategy[Model]:
    return st.sampled_from(TARGETS[protocol])


ORIGINS: Final[tuple[tuple[str, str, str], ...]] = (
    *((model.protocol, model.provider, model.id) for model in ALL_TARGETS),
    ("anthropic-messages", "anthropic", "claude-sonnet-4-5-20250929"),
    ("bedrock-converse", "amazon-bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("google-genai", "google-vertex", "gemini-2.5-pro"),
    ("", "", ""),
)

_SEEDS: Final = st.integers(0, 2**32)


def ugly_contexts(model: Model, most: int = 9) -> st.SearchStrategy[Context]:
    """Draw a history as broken as storage allows."""
    return _SEEDS.map(lambda seed: make_ugly(seed, model, most))


def make_ugly(seed: int, model: Model, most: int = 9) -> Context:
    return make_broken_context(seed, model, most, origins=ORIGINS)


def own_contexts(model: Model, most: int = 10) -> st.SearchStrategy[Context]:
    """Draw a well-formed history that the model itself wrote."""
    return _SEEDS.map(lambda seed: make_own_context(seed, model, most))


make_own = make_own_context


def options() -> st.SearchStrategy[Options | None]:
    return _SEEDS.map(make_options)


_SUPPLIED: Final = {
    "https://example.org/given.png": ImageContent(data=PNG, mime_type="image/png"),
    "https://example.org/given.pdf": ImageContent(data=PNG, mime_type="image/png"),
    "given": FileContent(data=PDF, mime_type="application/pdf", extra={"cohere-chat": {"k": 1}}),
}


def _is_cohere(message: AssistantMessage, model: Model) -> bool:
    return message.protocol == "cohere-chat"


def policies() -> st.SearchStrategy[Policy | None]:
    return _SEEDS.map(make_policy)


def make_policy(seed: int) -> Policy | None:
    dice = Choices(seed)
    if dice.chance(2):
        return None
    return Policy(
        reasoning=dice.pick(("auto", "text", "drop", "native")),
        trailing_calls=dice.pick(("close", "open")),
        orphan_results=dice.pick(("drop", "text")),
        duplicate_results=dice.pick(("first", "last")),
        texts=dice.pick((Texts(), Texts(error_result="{text}", last_turn="go on", empty_turn="-"))),
        media=dice.pick(({}, _SUPPLIED)),
        same_model=dice.pick((None, None, _is_cohere)),
    )


def plain(value: object) -> object:
    """Give a value as plain data, to see later whether it is still the same."""
    return msgspec.to_builtins(value)
