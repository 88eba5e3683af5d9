"""API keys and tokens: where they are found, in which header they are sent, and how they are kept out of messages.

Facts:
- The dialect names the header of a key: `Authorization: Bearer`, `x-api-key`, `api-key` or `x-goog-api-key`;
  Vertex takes a key as `x-goog-api-key`.                      (dialects; Google documentation: express mode, 2026-11)
- A token expires, and every provider takes it as a bearer: Vertex, Azure (Entra ID), Anthropic (OAuth), Bedrock.
                                                       (documentation of each, 2026-11; azure-identity, google-auth)
- The transport refuses a header value with a line break or non-ASCII characters, and quotes it.    (h11 0.16, httpx2)
- Servers repeat the key in error messages.                                                   (seen in gateways' logs)

A key without a provider name is for the provider of the first model. Fallback models of other providers never get it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, signature
from typing import Final, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from segue.errors import SettingsError
from segue.foundation.quoting import check_header
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.provider import Provider

Token: TypeAlias = str | Mapping[str, str]
"""The result of an `auth` function: a token, sent as a bearer, or the headers themselves."""
Auth: TypeAlias = Callable[[], Token | Awaitable[Token]] | Callable[[Model], Token | Awaitable[Token]]

ApiKey: TypeAlias = str | Mapping[str, str | Mapping[str, str]] | None
"""A key, or by provider a key or keys by the names of accounts."""

_Value = TypeVar("_Value")

_KEY_HEADERS: Final[Mapping[str, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "aws": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "api-key": ("api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "google": ("x-goog-api-key", ""),
    "none": ("authorization", "Bearer "),  # needs no key; a key that is given anyway may be for a proxy in front
}
"""By the `auth` of the dialect: the header of a key, and the prefix of its value."""

_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1", ""})
_REPLACEMENT: Final = "(key)"
_SHORTEST_SECRET: Final = 6
"""Characters of the shortest secret. A shorter key is a placeholder; replacing it would garble any text."""


def choose_for(given: _Value | Mapping[str, _Value] | None, provider: str, first: str) -> _Value | None:
    """Find the value for a provider: its entry in a mapping, or a single value if it is the `first` provider."""
    if given is None or not isinstance(given, (dict, Mapping)):  # `Mapping` alone asks more of a dict
        return given if provider == first else None
    return cast("Mapping[str, _Value]", given).get(provider)


def choose_key(given: ApiKey, model: Model, first: str) -> str | None:
    """Find the key for a model: that of its account, if it names one.

    Raises:
        SettingsError: there is no key for the account.
    """
    found = choose_for(given, model.provider, first)
    if not model.account:
        return found if found is None or isinstance(found, str) else next(iter(found.values()), None)
    if isinstance(found, Mapping) and (key := found.get(model.account)):
        return key
    raise SettingsError(
        f"there is no key for the account {model.account!r} of {model.provider};"
        f" pass api_key={{{model.provider!r}: {{{model.account!r}: ...}}}}",
        key="api_key",
    )


def find_key(row: Provider | None, environment: Mapping[str, str]) -> str | None:
    """Return the first key in the environment variables of the provider; an empty variable does not count."""
    for name in () if row is None else row.key_variables:
        if key := environment.get(name, "").strip():
            return key
    return None


def explain_missing(row: Provider | None, dialect: Dialect, url: str) -> str | None:
    """Describe the missing key if the provider refuses requests without one; otherwise None."""
    if row is None or row.base_url is None or dialect.auth == "none":
        return None
    host = urlsplit(url).hostname or ""
    if host in _LOCAL_NAMES or _domain(host) != _domain(urlsplit(row.base_url).hostname or ""):
        return None
    names = " or ".join(row.key_variables)
    hint = f"set {names} or run `segue keys set {row.name}`" if names else f"run `segue keys set {row.name}`"
    return f"there is no API key for {row.name}; {hint}, or pass api_key=... or auth=..."


def _domain(host: str) -> str:
    """Return a host without its resources, accounts and regions."""
    return ".".join(host.split(".")[-2:])


def key_headers(key: str, dialect: Dialect) -> dict[str, str]:
    """Return the header with the key.

    Raises:
        SettingsError: the key cannot be sent in a header; the message does not contain it.
    """
    name, before = _KEY_HEADERS[dialect.auth]
    return {name: before + check_key(key)}


def token_headers(token: Token) -> dict[str, str]:
    """Return the headers for the result of an `auth` function."""
    if isinstance(token, str):
        return {"authorization": f"Bearer {check_key(token)}"}
    return {name.lower(): check_key(value) for name, value in token.items()}


def check_key(key: str) -> str:
    """Return a key or token without surrounding white space.

    Raises:
        SettingsError: it cannot be sent in a header; the message does not contain it.
    """
    try:
        if key := key.strip():
            return check_header(key, name="authorization")
    except SettingsError:
        pass
    raise SettingsError(
        "the API key or token is empty or contains characters that an HTTP header cannot contain, such as a line"
        " break; check its value",
        key="api_key",
    )


def ask_auth(auth: Auth, model: Model) -> Token | Awaitable[Token]:
    """Call an `auth` function, once for each attempt, with the model if it takes an argument."""
    if _takes_model(auth):
        return cast("Callable[[Model], Token | Awaitable[Token]]", auth)(model)
    return cast("Callable[[], Token | Awaitable[Token]]", auth)()


def _takes_model(auth: Auth) -> bool:
    try:
        parameters = signature(auth).parameters.values()
    except (TypeError, ValueError):  # callables of compiled libraries may have no signature
        return False
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in places and each.default is Parameter.empty for each in parameters)


def secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """List the secrets in headers: the values, and the part of a value after its scheme."""
    found = {part for value in headers.values() for part in (value, value.rpartition(" ")[2])}
    return tuple(sorted((part for part in found if len(part) >= _SHORTEST_SECRET), key=len, reverse=True))


def conceal(text: str, secrets: tuple[str, ...]) -> str:
    """Replace secrets in a text of a server or library."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, _REPLACEMENT)
    return text
