"""Lists of models that other packages ship: litellm's table, the providers of pi-ai, and the types of SDKs.

What such a list says that a model lacks is a flag (`Model.flags`), not a refusal: nobody of segue has seen one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from segue.errors import ModelError
from segue.models.catalogue import Catalogue, flag_input
from segue.models.model import Modality, Model, Price
from segue.models.providers import PROVIDERS
from segue.protocols.kit.json_values import Block, list_of, object_of

_MILLION: Final = 1_000_000
_TEXT: Final[tuple[Modality, ...]] = ("text",)
_ROWS: Final[Mapping[str, str]] = {
    "gemini": "google",
    "vertex_ai-language-models": "google-vertex",
    "bedrock_converse": "amazon-bedrock",
    "moonshot": "moonshotai",
    "fireworks_ai": "fireworks",
    "together_ai": "together",
    "dashscope": "alibaba",
    "cohere_chat": "cohere",
}
"""Names of providers in litellm's table that differ from segue's."""
_APIS: Final[Mapping[str, str]] = {
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "azure-openai-responses": "openai-responses",
    "anthropic-messages": "anthropic-messages",
    "google-generative-ai": "google-genai",
    "google-vertex": "google-genai",
    "bedrock-converse-stream": "bedrock-converse",
    "mistral-conversations": "mistral-chat",
}
"""The protocols of pi-ai's APIs."""
_TYPES: Final[Mapping[str, str]] = {
    "openai/types/shared/chat_model.py": "openai",
    "anthropic/types/model_param.py": "anthropic",
}
"""Files of SDKs that name the models of a provider."""


def read_lists(path: Path) -> list[Model]:
    """Read the models of a file, or of all lists below a folder, such as `site-packages` or `node_modules`.

    Raises:
        ModelError: there is no list of models; the message names those that are known.
    """
    files = [path] if path.is_file() else _find_lists(path)
    models = [model for file in files for model in _read(file)]
    if not models:
        known = "litellm's model_prices_and_context_window.json, a folder with pi-ai, or one with openai or anthropic"
        raise ModelError(f"{path}: no list of models; pass {known}")
    return models


def only_new(models: list[Model], known: Catalogue) -> list[Model]:
    """Return the models whose provider and id a catalogue does not list."""
    listed = {(model.provider, model.id) for model in known.models}
    found = {(model.provider, model.id): model for model in models if (model.provider, model.id) not in listed}
    return [found[key] for key in sorted(found)]


def _find_lists(folder: Path) -> list[Path]:
    tables = folder.rglob("model_prices_and_context_window*.json")
    of_pi = (path for path in folder.rglob("pi-ai/dist/providers/data/*.json") if not path.name.startswith("."))
    types = (path for file in _TYPES for path in folder.rglob(file))
    return sorted({*tables, *of_pi, *types})


def _read(file: Path) -> Iterator[Model]:
    if file.suffix == ".py":
        provider = next((name for end, name in _TYPES.items() if file.as_posix().endswith(end)), "")
        for name in re.findall(r'"([a-z][\w.:-]*-[\w.:-]+)"', file.read_text("utf-8")) if provider else ():
            yield Model(name, provider, PROVIDERS[provider].protocol)
        return
    try:
        table = object_of(msgspec.json.decode(file.read_bytes()))
    except msgspec.DecodeError as error:
        raise ModelError(f"{file}: no JSON: {error}; pass another file") from error
    for key, value in table.items():
        row = object_of(value)  # of litellm by the id of the model, of pi-ai by the API and then by the id
        found = [_of_litellm(key, row)] if "litellm_provider" in row else map(_of_pi, map(object_of, row.values()))
        yield from (model for model in found if model is not None)


def _of_pi(row: Block) -> Model | None:
    protocol, provider = _APIS.get(str(row.get("api"))), str(row.get("provider"))
    if protocol is None or provider not in PROVIDERS or not isinstance(row.get("id"), str):
        return None
    cost = object_of(row.get("cost"))
    read = cast("tuple[Modality, ...]", tuple(list_of(row.get("input")))) or _TEXT
    levels = object_of(row.get("thinkingLevelMap"))
    return Model(
        str(row["id"]),
        provider,
        protocol,
        name=str(row.get("name") or ""),
        reasoning=row.get("reasoning") is True,
        input=read,
        context_window=_count(row.get("contextWindow")),
        max_tokens=_count(row.get("maxTokens")),
        cost=Price(input=_price(cost.get("input")), output=_price(cost.get("output"))),
        thinking_levels={key: None if value is None else str(value) for key, value in levels.items()},
        flags=flag_input(read),
    )


def _of_litellm(key: str, row: Block) -> Model | None:
    named = str(row.get("litellm_provider"))
    provider = _ROWS.get(named, named)
    if row.get("mode") not in ("chat", "responses") or provider not in PROVIDERS:
        return None
    kinds: dict[Modality, str] = {"image": "vision", "document": "pdf_input", "audio": "audio_input"}
    read: tuple[Modality, ...] = ("text", *(kind for kind, flag in kinds.items() if row.get(f"supports_{flag}")))
    return Model(
        key.removeprefix(f"{named}/"),
        provider,
        PROVIDERS[provider].protocol,
        reasoning=row.get("supports_reasoning") is True,
        input=read,
        context_window=_count(row.get("max_input_tokens")),
        max_tokens=_count(row.get("max_output_tokens")),
        cost=Price(
            input=round(_price(row.get("input_cost_per_token")) * _MILLION, 6),
            output=round(_price(row.get("output_cost_per_token")) * _MILLION, 6),
        ),
        flags=flag_input(read),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _price(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
