"""What clients are told about the model that answers: the numbers and abilities of its entry in the catalogue."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from segue.gateway.config import SETUP_NAMES, load_config
from segue.gateway.routing import Router
from segue.gateway.runtime import catalogue_of
from segue.gateway.setup_lines import CLIENTS, ClientSetup
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.models.thinking import supported_thinking_levels

MODELS = {
    "a small window, no thinking": get_model("openai/gpt-4o-mini"),
    "a window of a million": get_model("anthropic/claude-opus-4-8"),
    "a limit of the input": get_model("azure/gpt-5"),
    "text alone, and some levels": get_model("groq/openai/gpt-oss-120b"),
    "all media, and a window of more than a million": get_model("google/gemini-3.1-pro-preview"),
    "an output as large as the window": replace(get_model("openai/gpt-4o-mini"), max_tokens=128_000),
    "a window below the smallest of Claude Code": replace(get_model("openai/gpt-4o-mini"), context_window=32_000),
}
UNKNOWN = Model("own-model", "mine", "openai-chat", reasoning=True)

Told = dict[str, Any]


def _file(setup: ClientSetup) -> Any:
    (text,) = setup.files.values()
    return json.loads(text)


def _claude(setup: ClientSetup) -> Told:
    told = setup.environment
    compacts = int(told.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", told["CLAUDE_CODE_MAX_CONTEXT_TOKENS"]))
    window = int(told["CLAUDE_CODE_MAX_CONTEXT_TOKENS"])
    assert compacts == window
    assert 100_000 <= int(told.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", 100_000)) <= 1_000_000
    return {"window": window, "output": int(told["CLAUDE_CODE_MAX_OUTPUT_TOKENS"])}


def _codex(setup: ClientSetup) -> Told:
    told = tomllib.loads(setup.files[".codex/config.toml"])
    lines = "\n".join(part for part in setup.arguments if part != "-c")
    assert tomllib.loads(lines) == told
    assert told["model_auto_compact_token_limit"] < told["model_context_window"]
    return {"window": told["model_context_window"]}


def _gemini(setup: ClientSetup) -> Told:
    told = _file(setup)
    assert json.loads(setup.run_files["settings.json"]) == told
    (override,) = told["modelConfigs"]["customOverrides"]
    assert override["match"] == {"model": setup.environment["GEMINI_MODEL"]}
    share = told.get("model", {}).get("compressionThreshold", 0.5)
    output = override["modelConfig"]["generateContentConfig"]["maxOutputTokens"]
    return {"half of the window": share * 1_048_576, "output": output}


def _opencode(setup: ClientSetup) -> Told:
    (told,) = _file(setup)["provider"]["segue"]["models"].values()
    limit, reads, cost = told["limit"], told["modalities"]["input"], told["cost"]
    assert told["attachment"] == (reads != ["text"])
    return {
        "context": limit["context"],
        "window": limit.get("input", limit["context"]),
        "output": limit["output"],
        "images": "image" in reads,
        "documents": "pdf" in reads,
        "audio": "audio" in reads,
        "thinking": told["reasoning"],
        "price": (cost["input"], cost["output"], cost["cache_read"], cost["cache_write"]),
    }


def _pi(setup: ClientSetup) -> Told:
    (told,) = _file(setup)["providers"]["segue"]["models"]
    assert json.dumps(told) in setup.run_files["segue.js"]
    cost, levels = told["cost"], told.get("thinkingLevelMap", {})
    return {
        "window": told["contextWindow"],
        "output": told["maxTokens"],
        "images": "image" in told["input"],
        "thinking": told["reasoning"],
        "levels": tuple(level for level, value in levels.items() if value is not None),
        "price": (cost["input"], cost["output"], cost["cacheRead"], cost["cacheWrite"]),
    }


def _qwen(setup: ClientSetup) -> Told:
    told = _file(setup)["model"]["generationConfig"]
    assert setup.run_files["settings.json"] == setup.files[".qwen/settings.json"]
    return {
        "window": told["contextWindowSize"],
        "output": int(setup.environment["QWEN_CODE_MAX_OUTPUT_TOKENS"]),
        "images": told["modalities"]["image"],
        "documents": told["modalities"]["pdf"],
        "audio": told["modalities"]["audio"],
        "thinking": told.get("reasoning", True),
    }


def _copilot(setup: ClientSetup) -> Told:
    told = setup.environment
    return {
        "prompt": int(told["COPILOT_PROVIDER_MAX_PROMPT_TOKENS"]),
        "output": int(told["COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"]),
    }


def _aider(setup: ClientSetup) -> Told:
    ((name, told),) = _file(setup).items()
    assert setup.arguments == ("--model", name)
    rates = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    return {
        "window": told["max_input_tokens"],
        "output": told["max_output_tokens"],
        "images": told["supports_vision"],
        "price without writes": tuple(round(told[rate] * 1_000_000, 6) for rate in rates),
    }


def _goose(setup: ClientSetup) -> Told:
    told = setup.environment
    return {"window": int(told["GOOSE_CONTEXT_LIMIT"]), "output": int(told["GOOSE_MAX_TOKENS"])}


def _crush(setup: ClientSetup) -> Told:
    settings = _file(setup)
    (told,) = settings["providers"]["segue"]["models"]
    assert settings["models"]["large"] == {"model": told["id"], "provider": "segue"}
    rates = ("cost_per_1m_in", "cost_per_1m_out", "cost_per_1m_out_cached", "cost_per_1m_in_cached")
    return {
        "window": told["context_window"],
        "output": told["default_max_tokens"],
        "images": told["supports_attachments"],
        "thinking": told["can_reason"],
        "levels": tuple(told["reasoning_levels"]),
        "price": tuple(told[rate] for rate in rates),
    }


def _zed(setup: ClientSetup) -> Told:
    (told,) = _file(setup)["language_models"]["openai_compatible"]["segue"]["available_models"]
    abilities = told["capabilities"]
    return {
        "window": told["max_tokens"],
        "output": told["max_output_tokens"],
        "images": abilities["images"],
        "thinking": abilities["interleaved_reasoning"],
    }


def _vscode(setup: ClientSetup) -> Told:
    (told,) = _file(setup)[0]["models"]
    return {
        "prompt": told["maxInputTokens"],
        "output": told["maxOutputTokens"],
        "images": told["vision"],
        "thinking": told["thinking"],
        "levels": tuple(told.get("supportsReasoningEffort", ())),
    }


READERS: Mapping[str, Callable[[ClientSetup], Told]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "opencode": _opencode,
    "pi": _pi,
    "qwen-code": _qwen,
    "copilot": _copilot,
    "aider": _aider,
    "goose": _goose,
    "crush": _crush,
    "zed": _zed,
    "vscode": _vscode,
}


def _facts(model: Model) -> Told:
    """Give the facts of an entry, by the names that the readers have for them."""
    output = min(model.max_tokens, model.context_window // 2)
    cost = model.cost
    window = model.max_input or model.context_window
    return {
        "context": model.context_window,
        "window": window,
        "half of the window": pytest.approx(min(window, 1_048_576) / 2, abs=60),
        "prompt": model.max_input or model.context_window - output,
        "output": output,
        "images": "image" in model.input,
        "documents": "document" in model.input,
        "audio": "audio" in model.input,
        "thinking": model.reasoning,
        "levels": tuple(level for level in supported_thinking_levels(model) if level != "off"),
        "price": (cost.input, cost.output, cost.cache_read, cost.cache_write),
        "price without writes": (cost.input, cost.output, cost.cache_read),
    }


def test_every_client_with_settings_for_a_model_is_in_the_table() -> None:
    assert set(READERS) | {"cline"} == set(CLIENTS) == set(SETUP_NAMES)


@pytest.mark.parametrize("case", MODELS)
@pytest.mark.parametrize("client", READERS)
def test_a_client_is_told_what_the_catalogue_has(client: str, case: str) -> None:
    model = MODELS[case]
    told = READERS[client](CLIENTS[client].make("http://127.0.0.1:1", "key", model))
    facts = _facts(model)
    assert told == {name: facts[name] for name in told}


def test_the_numbers_of_one_model_are_these() -> None:
    """The facts of the test above come from the catalogue; these are written out."""
    model = get_model("openai/gpt-4o-mini")
    told = {client: read(CLIENTS[client].make("http://h", "k", model)) for client, read in READERS.items()}
    assert {told[client].get("window", 128_000) for client in told} == {128_000}
    assert {told[client].get("output", 16_384) for client in told} == {16_384}
    assert {told[client].get("prompt", 111_616) for client in told} == {111_616}


@pytest.mark.parametrize("client", SETUP_NAMES)
def test_a_model_whose_limits_are_not_known_gets_no_number_of_another(client: str) -> None:
    setup = CLIENTS[client].make("http://127.0.0.1:1", "key", UNKNOWN)
    numbers = {"contextWindow": 200_000, "maxTokens": 32_000, "context": 200_000, "output": 32_000}
    numbers |= {"context_window": 200_000, "default_max_tokens": 32_000, "max_tokens": 200_000}
    numbers |= {"max_output_tokens": 32_000, "maxInputTokens": 168_000, "maxOutputTokens": 32_000}
    assert not [name for name in setup.environment if "TOKENS" in name or "WINDOW" in name or "LIMIT" in name]
    for text in setup.files.values():
        if text.startswith(("{", "[")):
            json.loads(text, object_hook=lambda found: _check_numbers(found, numbers))
        else:
            assert not [value for value in tomllib.loads(text).values() if isinstance(value, int)]


def _check_numbers(found: dict[str, object], numbers: Mapping[str, int]) -> None:
    for name, value in found.items():
        if isinstance(value, int) and not isinstance(value, bool):
            assert value == numbers[name], name


def test_a_route_is_described_by_its_first_model_under_the_name_that_clients_ask_for() -> None:
    config = load_config('[models."fast"]\ntry = ["openai/gpt-4o-mini", "anthropic/claude-opus-4-8"]\n')
    described = Router(config, catalogue_of(config)).describe("fast")
    assert described == replace(get_model("openai/gpt-4o-mini"), id="fast")
