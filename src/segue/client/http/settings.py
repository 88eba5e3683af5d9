"""How a client is set up: what a caller can say, with the usual values, in one place for all its forms."""

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
from segue.client.http.keys import Auth
from segue.conversation.context import Options
from segue.errors import MissingExtra, SettingsError
from segue.models.catalogue import Catalogue
from segue.request import Request

if TYPE_CHECKING:
    import ssl

    import httpx2

Body: TypeAlias = Mapping[str, object]
OnRequest: TypeAlias = Callable[[Request], Body | Awaitable[Body | None] | None]
OnAttempt: TypeAlias = Callable[[Attempt], object]

READ_TIMEOUT: Final = 600.0
CONNECT_TIMEOUT: Final = 10.0
"""Ten minutes without a byte is what the official clients allow (openai 3.49.0, anthropic 2.8.0; read 2026-11-15);
nobody needs half a minute to be reached."""


class ClientSettings(TypedDict, total=False):
    """What a client can be told; everything has a usual value."""

    api_key: str | Mapping[str, str] | None
    """A key, or keys by provider. One key belongs to the provider that is asked first; the others, and everyone when
    nothing is given, have theirs in the provider's usual environment variable."""
    auth: Auth | Mapping[str, Auth] | None
    """For tokens that expire: called before each attempt, with the model if it takes an argument. It gives a token,
    sent as a bearer, or headers. By provider like the keys; may be async in an `AsyncClient`."""
    base_url: str | Mapping[str, str] | None
    """Where to send to instead; by provider like the keys."""
    headers: Mapping[str, str] | None
    """What else goes with every request."""
    timeout: float | httpx2.Timeout | None
    """Seconds without a byte before a request is given up; None waits for ever."""
    retry: Retry | int | None
    """When to ask again; a number is how often."""
    sticky: bool
    """Stay on the model that worked: the next request with the same candidates begins there."""
    on_request: OnRequest | None
    """Sees each request before it is sent; what it returns, if anything, is sent as the body instead. May be async in
    an `AsyncClient`."""
    on_attempt: OnAttempt | None
    """Sees each attempt when it is over."""
    catalogue: Catalogue | None
    """Models and providers of the user's own, from `load_catalogue`."""
    environment: Mapping[str, str] | None
    """Where variables are looked up; the process's environment when not given. An empty one has none."""
    transport: object
    """An httpx2 transport to send through instead of the network's own, or several by address, which httpx2 calls
    `mounts`: whatever they do not take goes the usual way, proxies of the environment included."""


_NUMBERS: Final[Mapping[str, str]] = {
    "retry": "a number of retries, or a Retry",
    "timeout": "a number of seconds, an httpx2.Timeout, or None",
}


class Setup:
    """The settings of a client, complete. It shows no key to anyone who prints it."""

    def __init__(self, settings: ClientSettings) -> None:
        for name in settings:
            if name not in ClientSettings.__annotations__:
                raise _unknown_setting(name)
        for name, meant in _NUMBERS.items():
            if isinstance(settings.get(name), str):  # from a file or a variable, most often
                raise SettingsError(f"`{name}` is {meant}, not a text", key=name)
        retry = settings.get("retry")
        self.api_key: str | Mapping[str, str] | None = settings.get("api_key")
        self.auth: Auth | Mapping[str, Auth] | None = settings.get("auth")
        self.base_url: str | Mapping[str, str] | None = settings.get("base_url")
        self.headers: dict[str, str] = {name.lower(): value for name, value in (settings.get("headers") or {}).items()}
        self.timeout: float | httpx2.Timeout | None = settings.get("timeout", READ_TIMEOUT)
        self.retry: Retry = Retry(max_retries=retry) if isinstance(retry, int) else retry or Retry()
        self.sticky: bool = settings.get("sticky", False)
        self.on_request: OnRequest | None = settings.get("on_request")
        self.on_attempt: OnAttempt | None = settings.get("on_attempt")
        self.catalogue: Catalogue | None = settings.get("catalogue")
        environment = settings.get("environment")
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.transport: object = settings.get("transport")

    def __repr__(self) -> str:
        return "Setup()"

    def transports(self) -> dict[str, object]:
        """Give what is sent through, in the words of httpx2."""
        given = self.transport
        return {"mounts": cast("object", given)} if isinstance(given, Mapping) else {"transport": given}

    def resolve_timeout(self) -> httpx2.Timeout:
        """Give the timeouts: connecting and waiting for a connection have their own."""
        seconds = self.timeout
        if seconds is None or isinstance(seconds, (int, float)):
            connect = CONNECT_TIMEOUT if seconds is None else min(seconds, CONNECT_TIMEOUT)
            return import_httpx2().Timeout(seconds, connect=connect, pool=None)
        return seconds


def _unknown_setting(name: str) -> SettingsError:
    """Say what a setting should have been called, or where it belongs."""
    nearest = tuple(get_close_matches(name, ClientSettings.__annotations__, n=2))
    hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
    if name in Options.__struct_fields__:
        hint = f": say options=Options({name}=...)"
    return SettingsError(f"a client has no setting {name!r}{hint}", key=name, suggestions=nearest)


@lru_cache(maxsize=1)
def shared_tls() -> ssl.SSLContext:
    """Give what every client of this process trusts: to make it costs more than a request (httpx2 2.16.0, measured)."""
    return import_httpx2().create_ssl_context()


def import_httpx2() -> ModuleType:
    """Give the transport's library, which is imported when the first client is made.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module("httpx2")
    except ModuleNotFoundError as error:
        raise MissingExtra("the client speaks through httpx2", extra="client") from error
