"""Keys: where they are found, in which header they travel, and how they are kept out of everything else.

Facts this file rests on:
- A key goes where the provider's dialect says: `Authorization: Bearer`, `x-api-key`, `api-key` or `x-goog-api-key`;
  Vertex takes a key as `x-goog-api-key`.                      (dialects; Google documentation: express mode, 2026-11)
- What expires is a token, and a token is a bearer everywhere: at Vertex, Azure (Entra ID), Anthropic (OAuth), Bedrock.
                                                       (documentation of each, 2026-11; azure-identity, google-auth)
- A header with a line break or beyond ASCII is refused by the transport with a text that holds it.  (h11 0.16, httpx2)
- Servers repeat the key they were given in the error they answer with.                       (seen in gateways' logs)

A key given as one text belongs to the provider that is asked first: a fallback model of another provider never sees it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, signature
from typing import Final, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from segue.errors import SettingsError
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.provider import Provider

Token: TypeAlias = str | Mapping[str, str]
"""What an `auth` gives: a token, sent as a bearer, or the headers themselves."""
Auth: TypeAlias = Callable[[], Token | Awaitable[Token]] | Callable[[Model], Token | Awaitable[Token]]

_Value = TypeVar("_Value")

_KEY_HEADERS: Final[Mapping[str, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "aws": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "api-key": ("api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "google": ("x-goog-api-key", ""),
    "none": ("authorization", "Bearer "),  # asks for none, and is given one all the same: a server behind a proxy
}
"""By the dialect's `auth`: the header of a key, and what stands before it."""

_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1", ""})
_CONCEALED: Final = "(key)"
_LEAST: Final = 6
"""A shorter key is no secret but a placeholder, and taking it out of a text would leave no text."""


def choose_for(given: _Value | Mapping[str, _Value] | None, provider: str, first: str) -> _Value | None:
    """Find what is meant for a provider: its own entry, or what was given without a name if it is asked first."""
    if isinstance(given, Mapping):
        return cast("Mapping[str, _Value]", given).get(provider)
    return given if provider == first else None


def find_key(row: Provider | None, environment: Mapping[str, str]) -> str | None:
    """Look into the provider's usual variables, in order; an empty one is none."""
    for name in () if row is None else row.key_variables:
        if key := environment.get(name, "").strip():
            return key
    return None


def explain_missing(row: Provider | None, dialect: Dialect, url: str) -> str | None:
    """Say which key is missing where a request without one is bound to be refused; None where it may go."""
    if row is None or row.base_url is None or dialect.auth == "none":
        return None
    host = urlsplit(url).hostname or ""
    if host in _LOCAL_HOSTS or _domain(host) != _domain(urlsplit(row.base_url).hostname or ""):
        return None
    names = " or ".join(row.key_variables)
    hint = f"give `api_key` or `auth`, or set {names}" if names else "give `api_key` or `auth`"
    return f"there is no key for {row.name}: {hint}"


def _domain(host: str) -> str:
    """Give what is left of a host without resources, accounts and regions."""
    return ".".join(host.split(".")[-2:])


def key_headers(key: str, dialect: Dialect) -> dict[str, str]:
    """Put a key where the provider looks for it.

    Raises:
        SettingsError: it cannot be sent in a header; the message does not show it.
    """
    name, before = _KEY_HEADERS[dialect.auth]
    return {name: before + _sendable(key)}


def token_headers(token: Token) -> dict[str, str]:
    """Put a token, or headers that were made for this request, where they belong."""
    if isinstance(token, str):
        return {"authorization": f"Bearer {_sendable(token)}"}
    return {name.lower(): _sendable(value) for name, value in token.items()}


def _sendable(key: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise SettingsError("a key or token is empty, or holds characters that a header cannot carry", key="api_key")
    return key


def ask_auth(auth: Auth, model: Model) -> Token | Awaitable[Token]:
    """Ask for a token, once for each attempt. The model is handed over where there is room for it."""
    if _takes_model(auth):
        return cast("Callable[[Model], Token | Awaitable[Token]]", auth)(model)
    return cast("Callable[[], Token | Awaitable[Token]]", auth)()


def _takes_model(auth: Auth) -> bool:
    try:
        parameters = signature(auth).parameters.values()
    except (TypeError, ValueError):  # a callable of a compiled library does not always say
        return False
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in places and each.default is Parameter.empty for each in parameters)


def secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """List what of these headers must not be seen: the values, and the key in one that has a scheme before it."""
    found = {part for value in headers.values() for part in (value, value.rpartition(" ")[2])}
    return tuple(sorted((part for part in found if len(part) >= _LEAST), key=len, reverse=True))


def conceal(text: str, secrets: tuple[str, ...]) -> str:
    """Take secrets out of a text that someone else wrote."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, _CONCEALED)
    return text
