"""Models that no catalogue has, kept in the session file so that the conversation can be continued with them.

Facts:
- A session file may come from anyone. If it could choose an address for a known provider, opening it would send the
  reader's key there. So a model of a file is used only if no key would go to an address that the file alone names.
- `{NAME}` in a base URL is replaced by an environment variable, which may be a key.             (`addressing.fill_url`)
- People put keys into headers, and into the login or the query of a URL. None of these is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from segue.client.http.addressing import split_login, without_query_secrets
from segue.errors import SettingsError
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.registry import resolve_dialect

_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def storable_model(model: Model) -> Model:
    """Return a model as a session file describes it: without headers, and without secrets in its URL."""
    return replace(
        model,
        base_url=None if model.base_url is None else _without_secrets(model.base_url),
        rules=msgspec.to_builtins(model.rules, order="deterministic"),  # sets and tuples are read as lists
        dialect=msgspec.to_builtins(model.dialect, order="deterministic"),
        headers={},
    )


def _without_secrets(url: str) -> str | None:
    try:
        return without_query_secrets(split_login(url)[0])
    except ValueError:  # no address: nothing was ever sent there
        return None


def check_address(model: Model, has_key: Callable[[Model], bool], conversation: str) -> Model:
    """Return a model of a session file, if using it cannot send a key to an address that only the file names.

    `has_key` is whether requests to a model would carry a key; `conversation` is the class for the error message.

    Raises:
        SettingsError: a key would be sent. The message has the code that allows it.
    """
    base, path = model.base_url, resolve_dialect(model).path or "/"
    row = PROVIDERS.get(model.provider)
    own = None if row is None else row.base_url
    if path.startswith("/"):
        if base is None or base == own:
            return model
        if "{" not in base and (_is_trusted(base, own) or not has_key(model)):
            return model
    code = f"Model({model.id!r}, {model.provider!r}, {model.protocol!r}, base_url={base!r})"
    raise SettingsError(
        f"the session file gives the address {base} for {model.full_name()}, and your key would be sent there; if you"
        f" trust it, pass the model: {conversation}({code}, path=...)",
        key="model",
    )


def _is_trusted(base: str, own: str | None) -> bool:
    """Whether an address is on this machine, or at the provider's own server."""
    try:
        parts, known = urlsplit(base), urlsplit(own or "")
    except ValueError:
        return False
    return parts.hostname in _THIS_MACHINE or (parts.scheme, parts.netloc) == (known.scheme, known.netloc)
