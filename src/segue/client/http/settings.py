"""The settings of a client and their defaults, shared by `Client`, `AsyncClient`, `complete` and `stream`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, cast

from segue.client.flow.attempts import Attempt
from segue.client.flow.backoff import Retry
from segue.client.http.base_urls import find_url
from segue.client.http.keys import ApiKey, Auth, choose_for, find_key
from segue.client.http.telemetry import Observation, Telemetry
from segue.client.local.echo import NO_HTTP, echo_mounts
from segue.client.local.gguf import local_mounts
from segue.client.local.user_files import read_stored_key
from segue.conversation.context import Options
from segue.errors import MissingExtra, SettingsError
from segue.models.catalogue import Catalogue, installed_catalogue
from segue.models.model import Model
from segue.models.provider import Provider
from segue.requests.prepare import Request

if TYPE_CHECKING:
    import ssl

    import httpx2

Body: TypeAlias = Mapping[str, object]
OnRequest: TypeAlias = Callable[[Request], Body | Awaitable[Body | None] | None]
OnAttempt: TypeAlias = Callable[[Attempt], object]

READ_TIMEOUT: Final = 600.0
CONNECT_TIMEOUT: Final = 10.0
"""Seconds. The official clients allow ten minutes without a byte (openai 3.49.0, anthropic 2.8.0; read 2026-11-15)."""


class ClientSettings(TypedDict, total=False):
    """Settings of a client; all are optional."""

    api_key: ApiKey
    """An API key, or keys by provider. A single key is for the provider of the first model. Any other provider's key is
    read from its environment variable, or is the one that `segue keys set` has stored. For several accounts at one
    provider, the keys by the names of the accounts: `Model.account` chooses one, without it the first is used."""
    auth: Auth | Mapping[str, Auth] | None
    """A function for tokens that expire. It is called before each attempt, with the model if it takes an argument, and
    returns a token, sent as a bearer, or headers. By provider like `api_key`. It may be async in an `AsyncClient`."""
    base_url: str | Mapping[str, str] | None
    """The URL to send requests to instead of the provider's own; by provider like `api_key`."""
    url_variables: bool
    """Whether the variables that the providers' own SDKs read, such as OPENAI_BASE_URL, name the URL of a model that
    gives no URL, if `base_url` does not; true by default."""
    headers: Mapping[str, str] | None
    """Additional headers of every request."""
    timeout: float | httpx2.Timeout | None
    """Seconds to wait for the next byte before the request fails; None waits forever."""
    retry: Retry | int | None
    """When to retry; an int is the number of retries."""
    sticky: bool
    """Start the next request with the same candidates at the model that answered last."""
    on_request: OnRequest | None
    """Called with each request before it is sent. A mapping that it returns is sent as the body instead. It may be
    async in an `AsyncClient`."""
    on_attempt: OnAttempt | None
    """Called with each attempt when it has ended."""
    telemetry: Telemetry | None
    """Writes a span and metrics of OpenTelemetry for each request that is sent; None writes nothing."""
    catalogue: Catalogue | None
    """The user's own models and providers, from `load_catalogue`."""
    environment: Mapping[str, str] | None
    """The environment variables to use instead of those of the process."""
    transport: object
    """An httpx2 transport, or a mapping from URL patterns to transports (`mounts` in httpx2). With a mapping, other
    URLs use the default transport, including the proxies of the environment."""


_NUMBERS: Final[Mapping[str, str]] = {
    "retry": "a number of retries, or a Retry",
    "timeout": "a number of seconds, an httpx2.Timeout, or None",
}


class Setup:
    """The settings of a client with defaults filled in. Its repr contains no key."""

    def __init__(self, settings: ClientSettings) -> None:
        for name in settings:
            if name not in ClientSettings.__annotations__:
                raise _unknown_setting(name)
        for name, meant in _NUMBERS.items():
            if isinstance(settings.get(name), str):  # mostly from a file or an environment variable
                raise SettingsError(f"{name}= takes {meant}, but it is the string {settings.get(name)!r}", key=name)
        retry = settings.get("retry")
        self.api_key: ApiKey = settings.get("api_key")
        self.auth: Auth | Mapping[str, Auth] | None = settings.get("auth")
        self.base_url: str | Mapping[str, str] | None = settings.get("base_url")
        self.url_variables: bool = settings.get("url_variables", True)
        self.headers: dict[str, str] = {name.lower(): value for name, value in (settings.get("headers") or {}).items()}
        self.timeout: float | httpx2.Timeout | None = settings.get("timeout", READ_TIMEOUT)
        self.retry: Retry = Retry(max_retries=retry) if isinstance(retry, int) else retry or Retry()
        self.sticky: bool = settings.get("sticky", False)
        self.on_request: OnRequest | None = settings.get("on_request")
        self.on_attempt: OnAttempt | None = settings.get("on_attempt")
        self.telemetry: Telemetry | None = settings.get("telemetry")
        self.catalogue: Catalogue | None = settings.get("catalogue")
        environment = settings.get("environment")
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.transport: object = settings.get("transport")
        self._stored_keys: dict[str, str | None] = {}

    def observe(self) -> Observation | None:
        """Observe a request; None without telemetry."""
        return None if self.telemetry is None else self.telemetry.observe()

    def __repr__(self) -> str:
        return "Setup()"

    def find_key(self, row: Provider | None) -> str | None:
        """Return the provider's key in the environment, otherwise the one that `segue keys` has stored, read once."""
        key = find_key(row, self.environment)
        if key is not None or row is None:
            return key
        if row.name not in self._stored_keys:
            self._stored_keys[row.name] = read_stored_key(row.name, self.environment)
        return self._stored_keys[row.name]

    def find_url(self, model: Model, first: str) -> str | None:
        """Return the base URL for a model that the settings have, else that of the environment.

        Raises:
            SettingsError: the environment has one that is not a URL.
        """
        given = choose_for(self.base_url, model.provider, first)
        if given is not None or not self.url_variables or _has_own_url(model):
            return given
        return find_url(model.provider, self.environment)

    def transports(self) -> dict[str, object]:
        """Return the transports as keyword arguments of an httpx2 client; segue's own models have theirs."""
        given = self.transport
        own: dict[str, object] = {**echo_mounts(), **local_mounts(self.environment)}
        if isinstance(given, Mapping):
            return {"mounts": {**own, **cast("Mapping[str, object]", given)}}
        return {"transport": given, "mounts": own}

    def resolve_timeout(self) -> httpx2.Timeout:
        """Return the timeouts; connecting has its own, and waiting for a connection has none."""
        seconds = self.timeout
        if seconds is None or isinstance(seconds, (int, float)):
            connect = CONNECT_TIMEOUT if seconds is None else min(seconds, CONNECT_TIMEOUT)
            return import_httpx2().Timeout(seconds, connect=connect, pool=None)
        return seconds


_OF_CONTEXT: Final = {
    "system": "system_prompt",
    "system_prompt": "system_prompt",
    "instructions": "system_prompt",
    "tools": "tools",
}
"""Arguments that other libraries take with the messages -> the field of `Context`."""


def _unknown_setting(name: str) -> SettingsError:
    """Make the error for an unknown setting; it names the nearest setting, or where the setting belongs."""
    nearest = tuple(get_close_matches(name, ClientSettings.__annotations__, n=2))
    hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
    if name in Options.__struct_fields__:
        hint = f"; pass options=Options({name}=...) to the request"
    if name in _OF_CONTEXT:
        hint = f"; it is a part of the conversation: pass Context({_OF_CONTEXT[name]}=..., messages=(...,))"
    hint = hint or f"; the settings are {', '.join(sorted(ClientSettings.__annotations__))}"
    return SettingsError(f"Client() got an unexpected setting {name!r}{hint}", key=name, suggestions=nearest)


@lru_cache(maxsize=1)
def shared_tls() -> ssl.SSLContext:
    """Return the TLS settings of all clients; making them takes longer than a request (httpx2 2.16.0, measured)."""
    return import_httpx2().create_ssl_context()


def import_httpx2() -> ModuleType:
    """Import httpx2 when the first client is made.

    Raises:
        MissingExtra: httpx2 is not installed.
    """
    try:
        return import_module("httpx2")
    except ModuleNotFoundError as error:
        raise MissingExtra(NO_HTTP, extra="client") from error


def _has_own_url(model: Model) -> bool:
    """Whether somebody chose the address of a model; models of the catalogue have the public one of their provider."""
    if model.base_url is None:
        return False
    return _find_listed_url(model.full_name()) != model.base_url


@lru_cache(maxsize=256)  # the lookup of a name that is not listed compares it with all that are: milliseconds
def _find_listed_url(full_name: str) -> str | None:
    known = installed_catalogue().lookup(full_name)
    return None if known is None else known.base_url
