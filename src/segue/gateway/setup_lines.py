"""How each client is pointed to a gateway: lines for a person, and variables, arguments and files for a child process.

Clients are told what the catalogue knows about the model that answers: its window, its output limit, what it reads, its
thinking levels and its price, as far as they have settings for that. Otherwise they guess by the name.

Facts: each client was run with them (versions of 2026-11, see docs/clients), unless its function
says otherwise.
- gemini-cli takes a base URL without settings for its own method of authentication, and refuses it; it reads
  settings in addition to those of the user from GEMINI_CLI_SYSTEM_SETTINGS_PATH, if only the user can write to the
  folder.
- pi gets a provider in addition to those of the user from an extension (`-e FILE`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, final

import msgspec

from segue.models.model import Model, Price
from segue.models.thinking import THINKING_LEVELS, supported_thinking_levels

_NAME: Final = "segue"
_WINDOW: Final = 200_000
_OUTPUT: Final = 32_000
"""What a client that needs numbers is told about a model whose limits are not known."""


@final
class ClientSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The set-up of one client: variables, arguments after its name, and files below its home folder."""

    environment: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()
    files: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    file_variables: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables whose value is the path of a file of `files`."""
    run_files: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Files for a child process in place of `files`, which would change the settings of the user."""
    run_variables: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables of a child process whose value is the path of a file of `run_files`."""
    run_arguments: tuple[tuple[str, str], ...] = ()
    """Arguments of a child process: an option, and the file of `run_files` whose path is its value."""


@final
class ClientRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client: the names of its program, and its set-up for a base URL, a key and a model.

    The model is the one that answers, with the name that the client asks for as its id.
    """

    programs: tuple[str, ...]
    runs: bool = True
    """Whether a child process can be set up by variables, arguments and files, without the settings of the user."""
    make: Callable[[str, str, Model], ClientSetup]


# -- what clients are told about a model -------------------------------------------------------------------------------


def _window(model: Model) -> int:
    """Return the window for a client that has one number for it; 0 if it is not known.

    It is the limit of the input, if there is one: such clients fill the window but for a small reserve.
    """
    return model.max_input or model.context_window


def _output(model: Model, default: int = 0) -> int:
    """Return the output limit, or the default if it is not known.

    Some entries have an output as large as the window, which holds the input as well. Clients that subtract one from
    the other would have no room left, so it is half of the window at most.
    """
    limit = model.max_tokens or default
    return min(limit, model.context_window // 2 or limit)


def _prompt(model: Model, output: int, default: int = 0) -> int:
    """Return the input limit for a client that adds the output to it, or the default if the window is not known."""
    return model.max_input or (model.context_window - output if model.context_window else default)


def _levels(model: Model) -> tuple[str, ...]:
    return tuple(level for level in supported_thinking_levels(model) if level != "off")


def _settings(**values: int) -> dict[str, str]:
    """Make variables of the numbers that are known."""
    return {name: str(value) for name, value in values.items() if value}


# -- clients -----------------------------------------------------------------------------------------------------------


def _claude(url: str, key: str, model: Model) -> ClientSetup:
    """Set up Claude Code.

    A name that it does not know has the window MAX_CONTEXT_TOKENS, else a million. The window of a name that it knows
    is lowered by AUTO_COMPACT_WINDOW alone, a number from 100,000 to a million. There is no setting for images and
    prices, and it does not read *_SUPPORTED_CAPABILITIES, for thinking, with such a base URL. (2.1.325, 2026-11-17)
    """
    window = _window(model)
    return ClientSetup(
        environment={
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": key,
            "ANTHROPIC_MODEL": model.id,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model.id,
            "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",
            **_settings(
                CLAUDE_CODE_MAX_CONTEXT_TOKENS=window,
                CLAUDE_CODE_AUTO_COMPACT_WINDOW=window if 100_000 <= window <= 1_000_000 else 0,
                CLAUDE_CODE_MAX_OUTPUT_TOKENS=_output(model),
            ),
        }
    )


def _codex(url: str, key: str, model: Model) -> ClientSetup:
    """Set up codex.

    It ignores `model_max_output_tokens`. Images and levels are in a catalogue file, whose entries need a system prompt
    in place of the one it has, so they are left to it. (0.166.0, 2026-11-17)
    """
    window = _window(model)
    # By default it compacts at nine tenths of the window; a limit in the settings of the user is for another model.
    numbers = {"model_context_window": window, "model_auto_compact_token_limit": window * 9 // 10} if window else {}
    top: dict[str, str | int] = {"model": model.id, "model_provider": _NAME, **numbers}
    provider = {"name": _NAME, "base_url": f"{url}/v1", "env_key": "SEGUE_KEY", "wire_api": "responses"}
    table = f"model_providers.{_NAME}"
    settings = {**top, **{f"{table}.{name}": value for name, value in provider.items()}}
    arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={json.dumps(value)}")]
    lines = [f"{name} = {json.dumps(value)}" for name, value in top.items()]
    lines += ["", f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in provider.items())]
    text = "".join(f"{line}\n" for line in lines)
    return ClientSetup(environment={"SEGUE_KEY": key}, arguments=tuple(arguments), files={".codex/config.toml": text})


_GEMINI_WINDOW: Final = 1_048_576
"""The window that gemini-cli assumes for every name but two of Gemma; it compresses at half of it. (0.61.0)"""


def _gemini(url: str, key: str, model: Model) -> ClientSetup:
    """Set up gemini-cli.

    It has no setting for the window, but one for the share of it at which it compresses, and one for options of a
    model. There is none for images and prices; levels are its own. (0.61.0: tokenLimit, customOverrides, 2026-11-17)
    """
    settings: dict[str, object] = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    window, output = _window(model), _output(model)
    if 0 < window < _GEMINI_WINDOW:
        settings["model"] = {"compressionThreshold": round(window / _GEMINI_WINDOW / 2, 4)}
    if output:
        options = {"generateContentConfig": {"maxOutputTokens": output}}
        settings["modelConfigs"] = {"customOverrides": [{"match": {"model": model.id}, "modelConfig": options}]}
    return ClientSetup(
        environment={"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key, "GEMINI_MODEL": model.id},
        files={".gemini/settings.json": _json(settings)},
        run_files={"settings.json": _json(settings)},
        run_variables={"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "settings.json"},
    )


def _opencode(url: str, key: str, model: Model) -> ClientSetup:
    """Set up opencode; it makes levels itself, from `reasoning` (1.18.18: schema of its settings, 2026-11-17)."""
    limits = {"context": model.context_window or _WINDOW, "output": _output(model, _OUTPUT)}
    if model.max_input:
        limits["input"] = model.max_input
    reads = ["pdf" if kind == "document" else kind for kind in model.input]
    entry: dict[str, object] = {
        "name": model.id,
        "reasoning": model.reasoning,
        "tool_call": True,
        "attachment": reads != ["text"],
        "modalities": {"input": reads, "output": ["text"]},
        "limit": limits,
    }
    if model.cost != Price():
        price = model.cost
        names = {"cache_read": price.cache_read, "cache_write": price.cache_write}
        entry["cost"] = {"input": price.input, "output": price.output, **names}
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": _NAME,
        "options": {"baseURL": f"{url}/v1", "apiKey": key},
        "models": {model.id: entry},
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "provider": {_NAME: provider},
        "model": f"{_NAME}/{model.id}",
    }
    variables = {"OPENCODE_CONFIG": "opencode.json"}
    files = {"opencode.json": _json(settings)}
    return ClientSetup(files=files, file_variables=variables, run_files=files, run_variables=variables)


def _pi(url: str, key: str, model: Model) -> ClientSetup:
    """Set up pi; a level that is mapped to null does not exist (0.74.2: docs/models.md, 2026-11-17)."""
    levels = supported_thinking_levels(model)
    price = model.cost
    entry = {
        "id": model.id,
        "name": model.id,
        "reasoning": model.reasoning,
        "thinkingLevelMap": {
            level: level if level in levels else None
            for level in THINKING_LEVELS
            if level != "off" or level not in levels
        },
        "input": ["text", "image"] if "image" in model.input else ["text"],
        "contextWindow": _window(model) or _WINDOW,
        "maxTokens": _output(model, _OUTPUT),
        "cost": {
            "input": price.input,
            "output": price.output,
            "cacheRead": price.cache_read,
            "cacheWrite": price.cache_write,
        },
    }
    if not model.reasoning:
        del entry["thinkingLevelMap"]
    provider = {"baseUrl": url, "api": "anthropic-messages", "apiKey": key, "models": [entry]}
    return ClientSetup(
        arguments=("--provider", _NAME, "--model", model.id),
        files={".pi/agent/models.json": _json({"providers": {_NAME: provider}})},
        run_files={"segue.js": f"export default (pi) => pi.registerProvider({_NAME!r}, {json.dumps(provider)});\n"},
        run_arguments=(("-e", "segue.js"),),
    )


def _cline(url: str, key: str, model: Model) -> ClientSetup:
    """Set up cline; its command has no option for what the model can do (3.0.65, 2026-11-15)."""
    return ClientSetup(arguments=("auth", "-p", "openai-compatible", "-k", key, "-m", model.id, "-b", f"{url}/v1"))


def _qwen(url: str, key: str, model: Model) -> ClientSetup:
    """Set up qwen-code.

    It reads settings above those of the user from QWEN_CODE_SYSTEM_SETTINGS_PATH. `reasoning` is a level that it asks
    for, or false. (0.24.4: docs/configuration/settings.md, 2026-11-17)
    """
    kinds = {"image": "image", "document": "pdf", "audio": "audio", "video": "video"}
    known: dict[str, object] = {"modalities": {name: kind in model.input for kind, name in kinds.items()}}
    if window := _window(model):
        known["contextWindowSize"] = window
    if not model.reasoning:
        known["reasoning"] = False
    settings = {"security": {"auth": {"selectedType": "openai"}}, "model": {"generationConfig": known}}
    return ClientSetup(
        environment={
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": key,
            "OPENAI_MODEL": model.id,
            **_settings(QWEN_CODE_MAX_OUTPUT_TOKENS=_output(model)),
        },
        files={".qwen/settings.json": _json(settings)},
        run_files={"settings.json": _json(settings)},
        run_variables={"QWEN_CODE_SYSTEM_SETTINGS_PATH": "settings.json"},
    )


def _copilot(url: str, key: str, model: Model) -> ClientSetup:
    """Set up Copilot CLI; it has no setting for images and prices (1.0.102: `copilot help providers`, 2026-11-17)."""
    output = _output(model)
    return ClientSetup(
        environment={
            "COPILOT_PROVIDER_BASE_URL": url,
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": key,
            "COPILOT_MODEL": model.id,
            **_settings(
                COPILOT_PROVIDER_MAX_PROMPT_TOKENS=_prompt(model, output),
                COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=output,
            ),
        }
    )


def _aider(url: str, key: str, model: Model) -> ClientSetup:
    """Set up aider; its file of models has prices of one token (0.86.2: config/adv-model-settings, 2026-11-17)."""
    name = f"openai/{model.id}"
    entry: dict[str, object] = {"litellm_provider": "openai", "mode": "chat", "supports_vision": "image" in model.input}
    numbers = {"max_input_tokens": _window(model), "max_output_tokens": _output(model), "max_tokens": _output(model)}
    entry |= {field: value for field, value in numbers.items() if value}
    if model.cost != Price():
        price = model.cost
        rates = {"input_cost_per_token": price.input, "output_cost_per_token": price.output}
        rates["cache_read_input_token_cost"] = price.cache_read
        entry |= {field: rate / 1_000_000 for field, rate in rates.items()}
    text = _json({name: entry})
    return ClientSetup(
        environment={"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": key},
        arguments=("--model", name),
        files={".aider.model.metadata.json": text},
        run_files={"models.json": text},
        run_arguments=(("--model-metadata-file", "models.json"),),
    )


def _goose(url: str, key: str, model: Model) -> ClientSetup:
    """Set up goose, by its documentation: it was not run here, and has no setting for images, levels and prices.

    (aaif-goose/goose: documentation/docs/guides/environment-variables.md, getting-started/providers.md, 2026-11-17)
    """
    return ClientSetup(
        environment={
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": model.id,
            "OPENAI_HOST": url,
            "OPENAI_API_KEY": key,
            **_settings(GOOSE_CONTEXT_LIMIT=_window(model), GOOSE_MAX_TOKENS=_output(model)),
        }
    )


def _crush(url: str, key: str, model: Model) -> ClientSetup:
    """Set up crush, by its schema and source: it was not run here (charmbracelet/crush: schema.json, 2026-11-17).

    Its session counts `cost_per_1m_in_cached` for tokens written to a cache, and `cost_per_1m_out_cached` for tokens
    read from one (internal/agent: the cost of a step).
    """
    price = model.cost
    entry = {
        "id": model.id,
        "name": model.id,
        "cost_per_1m_in": price.input,
        "cost_per_1m_out": price.output,
        "cost_per_1m_in_cached": price.cache_write,
        "cost_per_1m_out_cached": price.cache_read,
        "context_window": _window(model) or _WINDOW,
        "default_max_tokens": _output(model, _OUTPUT),
        "can_reason": model.reasoning,
        "reasoning_levels": _levels(model),
        "supports_attachments": "image" in model.input,
    }
    provider = {"type": "openai-compat", "name": _NAME, "base_url": f"{url}/v1", "api_key": key, "models": [entry]}
    chosen = {"model": model.id, "provider": _NAME}
    settings = {"providers": {_NAME: provider}, "models": {"large": chosen, "small": chosen}}
    return ClientSetup(files={".config/crush/crush.json": _json(settings)})


def _zed(url: str, key: str, model: Model) -> ClientSetup:
    """Set up Zed, by its documentation: it was not run here. Prices have no setting, and of levels it asks for one.

    The name of the provider names the variable of the key. (zed-industries/zed: docs/src/ai/llm-providers.md, read on
    2026-11-17)
    """
    entry = {
        "name": model.id,
        "max_tokens": _window(model) or _WINDOW,
        "max_output_tokens": _output(model, _OUTPUT),
        "capabilities": {"tools": True, "images": "image" in model.input, "interleaved_reasoning": model.reasoning},
    }
    provider = {"api_url": f"{url}/v1", "available_models": [entry]}
    settings = {
        "language_models": {"openai_compatible": {_NAME: provider}},
        "agent": {"default_model": {"provider": _NAME, "model": model.id}},
    }
    return ClientSetup(environment={"SEGUE_API_KEY": key}, files={".config/zed/settings.json": _json(settings)})


def _vscode(url: str, key: str, model: Model) -> ClientSetup:
    """Set up VS Code, by its documentation: it was not run here, and has no setting for prices.

    Input and output together are the window. (microsoft/vscode-docs: language-models.md of 2026-10-14, 2026-11-17)
    """
    output = _output(model, _OUTPUT)
    entry: dict[str, object] = {
        "id": model.id,
        "name": model.id,
        "url": f"{url}/v1/messages",
        "toolCalling": True,
        "vision": "image" in model.input,
        "thinking": model.reasoning,
        "maxInputTokens": _prompt(model, output, _WINDOW - output),
        "maxOutputTokens": output,
    }
    if levels := _levels(model):
        entry["supportsReasoningEffort"] = levels
    provider = {"name": _NAME, "vendor": "customendpoint", "apiKey": key, "apiType": "messages", "models": [entry]}
    return ClientSetup(files={"chatLanguageModels.json": _json([provider])})


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


CLIENTS: Final[Mapping[str, ClientRow]] = {
    "claude-code": ClientRow(programs=("claude",), make=_claude),
    "codex": ClientRow(programs=("codex",), make=_codex),
    "gemini-cli": ClientRow(programs=("gemini",), make=_gemini),
    "opencode": ClientRow(programs=("opencode",), make=_opencode),
    "pi": ClientRow(programs=("pi",), make=_pi),
    "cline": ClientRow(programs=("cline",), runs=False, make=_cline),
    "qwen-code": ClientRow(programs=("qwen",), make=_qwen),
    "copilot": ClientRow(programs=("copilot",), make=_copilot),
    "aider": ClientRow(programs=("aider",), make=_aider),
    "goose": ClientRow(programs=("goose",), make=_goose),
    "crush": ClientRow(programs=("crush",), runs=False, make=_crush),
    "zed": ClientRow(programs=("zed",), runs=False, make=_zed),
    "vscode": ClientRow(programs=("code",), runs=False, make=_vscode),
}


def find_client_row(program: str) -> ClientRow | None:
    """Find the client that a program is, by its name."""
    name = Path(program).name.removesuffix(".exe").removesuffix(".cmd")
    return next((row for row in CLIENTS.values() if name in row.programs), None)


def setup_text(client: str, url: str, key: str, model: Model, *, written: Path | None = None) -> str:
    """Return the lines that point a client to a gateway, to read and to copy.

    `written` is the folder that its files are in already; empty if nothing else is needed then.
    """
    row = CLIENTS[client]
    setup = row.make(url, key, model)
    lines: list[str] = []
    if setup.environment:
        lines.append("# in the shell")
        lines += [f"export {name}={_quoted(value)}" for name, value in setup.environment.items()]
    for path, text in setup.files.items() if written is None else ():
        lines += [f"# in the file ~/{path}" if path.startswith(".") else f"# in the file {path}", text.rstrip()]
    base = "$PWD" if written is None else _quoted(str(written.absolute()))
    lines += [f"export {name}={base}/{path}" for name, path in setup.file_variables.items()]
    if setup.arguments and not any(path.startswith(".codex") for path in setup.files):
        lines += ["# the command", " ".join([row.programs[0], *map(_quoted, setup.arguments)])]
    return "".join(f"{line}\n" for line in lines)


def _quoted(value: str) -> str:
    return (
        value
        if all(each.isalnum() or each in "-_./:@=[]" for each in value)
        else "'" + value.replace("'", "'\\''") + "'"
    )
