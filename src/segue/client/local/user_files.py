"""What the user has set once for library, program and gateway: settings and API keys, in the folders of the user.

`config.json` has the settings of `segue config`, `keys.json` the keys of `segue keys`; both are readable by their owner
alone. A key is in the system keyring instead if the library `keyring` is installed; the file then only says so.

The folders follow from the environment that is passed: `XDG_CONFIG_HOME` and `XDG_DATA_HOME`, else the home folder in
`HOME` or `USERPROFILE`. An environment without any of them has no files, so that `Client(environment={})` reads none.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, cast

import msgspec

from segue.errors import SettingsError
from segue.models.providers import PROVIDERS

SETTINGS: Final[Mapping[str, str]] = {
    "model": "the model of `segue ask`, `segue chat` and `segue run` if none is named",
    "local_model": "the GGUF file of the model `local`",
    "url_variables": "`off`: the program does not use URLs in variables such as OPENAI_BASE_URL",
}
"""The settings of `config.json`, and what they are for."""

_SERVICE: Final = "segue"
"""The name under which the keyring has the keys."""
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_IN_KEYRING: Final[Mapping[str, str]] = {"source": "keyring"}


def config_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of settings and keys."""
    return _folder(environment, "XDG_CONFIG_HOME", ".config")


def data_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of models."""
    return _folder(environment, "XDG_DATA_HOME", ".local/share")


def _folder(environment: Mapping[str, str], variable: str, default: str) -> Path | None:
    if given := environment.get(variable):
        return Path(given) / "segue"
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home) / default / "segue" if home else None


def read_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the settings; there may be none.

    Raises:
        SettingsError: the file cannot be read.
    """
    return {name: value for name, value in _read(environment, "config.json").items() if isinstance(value, str)}


def reads_url_variables(environment: Mapping[str, str]) -> bool:
    """Whether the program uses the URLs in the variables of the providers' SDKs: unless the settings refuse it."""
    return read_settings(environment).get("url_variables") != "off"


def write_setting(name: str, value: str | None, environment: Mapping[str, str]) -> None:
    """Set a setting, or remove it with None.

    Raises:
        SettingsError: the file cannot be read or written.
    """
    _change("config.json", name, value, environment)


def read_stored_key(provider: str, environment: Mapping[str, str]) -> str | None:
    """Return the stored key of a provider.

    Raises:
        SettingsError: the file cannot be read, or the keyring that has the key cannot be used.
    """
    entry = _read(environment, "keys.json").get(provider)
    if entry != _IN_KEYRING:
        return entry if isinstance(entry, str) and entry else None
    keyring = _find_keyring()
    if keyring is None:
        raise SettingsError(
            f"the key of {provider} is in the system keyring, which cannot be used here; install the library keyring,"
            f" or store the key again: segue keys set {provider}",
            key="api_key",
        )
    return cast("str | None", keyring.get_password(_SERVICE, provider))


def list_stored_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the providers that have a stored key, and where it is: `file` or `keyring`."""
    entries = _read(environment, "keys.json")
    return {provider: "keyring" if entry == _IN_KEYRING else "file" for provider, entry in sorted(entries.items())}


def key_sources(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the providers that have a key, in table order, and where it is: a variable, `file`, `keyring`."""
    stored = list_stored_keys(environment)
    found: dict[str, str] = {}
    for name, row in PROVIDERS.items():
        variables = [each for each in row.key_variables if environment.get(each, "").strip()]
        if variables or name in stored:
            found[name] = variables[0] if variables else stored[name]
    return found | {name: where for name, where in stored.items() if name not in found}


def store_key(provider: str, key: str, environment: Mapping[str, str]) -> str:
    """Store the key of a provider in the keyring if there is one, else in the file; return which one it was."""
    keyring = _find_keyring()
    if keyring is not None:
        keyring.set_password(_SERVICE, provider, key)
    _change("keys.json", provider, key if keyring is None else _IN_KEYRING, environment)
    return "file" if keyring is None else "keyring"


def remove_key(provider: str, environment: Mapping[str, str]) -> bool:
    """Remove the stored key of a provider; whether there was one."""
    stored = list_stored_keys(environment).get(provider)
    if stored is None:
        return False
    if stored == "keyring" and (keyring := _find_keyring()) is not None:
        keyring.delete_password(_SERVICE, provider)
    _change("keys.json", provider, None, environment)
    return True


def _find_keyring() -> ModuleType | None:
    """Return the library for the system keyring; None if it is not installed or has no keyring to use."""
    try:
        keyring = import_module("keyring")
    except ImportError:
        return None
    # Without a service for secrets, as in a container, its backend is one that fails, of priority 0 or less.
    return keyring if getattr(keyring.get_keyring(), "priority", 0) > 0 else None


def _read(environment: Mapping[str, str], name: str) -> dict[str, object]:
    folder = config_folder(environment)
    if folder is None:
        return {}
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=dict[str, object])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(f"{folder / name} cannot be read: {error.strerror}", key=name) from error
    except msgspec.DecodeError:
        # The error is not shown: it may quote a key.
        raise SettingsError(f"{folder / name} is not a JSON object; correct or remove it", key=name) from None


def _change(name: str, entry: str, value: object, environment: Mapping[str, str]) -> None:
    """Set an entry of a file, or remove it with None. Others see the old file or the new one, never a part."""
    folder = config_folder(environment)
    if folder is None:
        raise SettingsError("there is no folder for settings; set HOME or XDG_CONFIG_HOME", key=name)
    entries = {**_read(environment, name), entry: value}
    if value is None:
        del entries[entry]
    path = folder / name
    part = folder / f".{name}.{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE), "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(entries), indent=2) + b"\n")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}", key=name) from error
