"""How each client is pointed to a gateway: lines for a person, and variables, arguments and files for a child process.

Facts this file relies on: each client was run with them (versions of 2026-11, see docs/clients).
- gemini-cli takes a base URL without settings for a method of authentication of its own, and refuses it; it reads
  settings beside those of the user from GEMINI_CLI_SYSTEM_SETTINGS_PATH, if only the user can write to the folder.
- pi gets a provider beside those of the user from an extension (`-e FILE`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, final

import msgspec

_NAME: Final = "segue"


@final
class ClientSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The set-up of one client: variables, arguments behind its name, and files below its home folder."""

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
    """A client: the names of its program, and its set-up for a base URL, a key and a model."""

    programs: tuple[str, ...]
    runs: bool = True
    """Whether a child process can be set up by variables, arguments and files, without the settings of the user."""
    make: Callable[[str, str, str], ClientSetup]


def _claude(url: str, key: str, model: str) -> ClientSetup:
    return ClientSetup(
        environment={
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": key,
            "ANTHROPIC_MODEL": model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",
        }
    )


def _codex(url: str, key: str, model: str) -> ClientSetup:
    settings = {
        "model": model,
        "model_provider": _NAME,
        f"model_providers.{_NAME}.name": _NAME,
        f"model_providers.{_NAME}.base_url": f"{url}/v1",
        f"model_providers.{_NAME}.env_key": "SEGUE_KEY",
        f"model_providers.{_NAME}.wire_api": "responses",
    }
    arguments = [part for name, value in settings.items() for part in ("-c", f'{name}="{value}"')]
    text = (
        f'model = "{model}"\nmodel_provider = "{_NAME}"\n\n[model_providers.{_NAME}]\nname = "{_NAME}"\n'
        f'base_url = "{url}/v1"\nenv_key = "SEGUE_KEY"\nwire_api = "responses"\n'
    )
    return ClientSetup(environment={"SEGUE_KEY": key}, arguments=tuple(arguments), files={".codex/config.toml": text})


def _gemini(url: str, key: str, model: str) -> ClientSetup:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return ClientSetup(
        environment={"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key, "GEMINI_MODEL": model},
        files={".gemini/settings.json": _json(settings)},
        run_files={"settings.json": _json(settings)},
        run_variables={"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "settings.json"},
    )


def _opencode(url: str, key: str, model: str) -> ClientSetup:
    limits = {"context": 200_000, "output": 32_000}
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": _NAME,
        "options": {"baseURL": f"{url}/v1", "apiKey": key},
        "models": {model: {"name": model, "reasoning": True, "tool_call": True, "limit": limits}},
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "provider": {_NAME: provider},
        "model": f"{_NAME}/{model}",
    }
    variables = {"OPENCODE_CONFIG": "opencode.json"}
    files = {"opencode.json": _json(settings)}
    return ClientSetup(files=files, file_variables=variables, run_files=files, run_variables=variables)


def _pi(url: str, key: str, model: str) -> ClientSetup:
    entry = {"id": model, "name": model, "reasoning": True, "input": ["text", "image"], "contextWindow": 200_000}
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    provider = {
        "baseUrl": url,
        "api": "anthropic-messages",
        "apiKey": key,
        "models": [{**entry, "maxTokens": 32_000, "cost": free}],
    }
    return ClientSetup(
        arguments=("--provider", _NAME, "--model", model),
        files={".pi/agent/models.json": _json({"providers": {_NAME: provider}})},
        run_files={"segue.js": f"export default (pi) => pi.registerProvider({_NAME!r}, {json.dumps(provider)});\n"},
        run_arguments=(("-e", "segue.js"),),
    )


def _cline(url: str, key: str, model: str) -> ClientSetup:
    return ClientSetup(arguments=("auth", "-p", "openai-compatible", "-k", key, "-m", model, "-b", f"{url}/v1"))


def _qwen(url: str, key: str, model: str) -> ClientSetup:
    settings = {"security": {"auth": {"selectedType": "openai"}}}
    return ClientSetup(
        environment={"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key, "OPENAI_MODEL": model},
        files={".qwen/settings.json": _json(settings)},
    )


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
}


def find_client_row(program: str) -> ClientRow | None:
    """Find the client that a program is, by its name."""
    name = Path(program).name.removesuffix(".exe").removesuffix(".cmd")
    return next((row for row in CLIENTS.values() if name in row.programs), None)


def setup_text(client: str, url: str, key: str, model: str, *, written: Path | None = None) -> str:
    """Give the lines that point a client to a gateway, to read and to copy.

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
