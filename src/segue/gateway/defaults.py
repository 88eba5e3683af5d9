"""A gateway without a configuration: the keys that are set or stored, servers on this machine, else the echo model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final
from urllib.parse import urlsplit

from msgspec.structs import replace

from segue.client.local.servers import find_local_models
from segue.client.local.user_files import key_sources
from segue.errors import SettingsError
from segue.gateway.config import Config, ModelRoute, ProviderTable
from segue.models.built_in import ECHO, LOCAL
from segue.models.model import Model

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@final
class Address(NamedTuple):
    """Where a gateway listens."""

    name: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.name in _LOOPBACK

    @property
    def url(self) -> str:
        """The base URL for clients on this machine."""
        name = "127.0.0.1" if self.name in ("0.0.0.0", "::", "") else self.name  # noqa: S104 - compared, not bound
        return f"http://[{name}]:{self.port}" if ":" in name else f"http://{name}:{self.port}"

    def at(self, port: int) -> str:
        """Write the address with another port."""
        return f"[{self.name}]:{port}" if ":" in self.name else f"{self.name}:{port}"


def read_address(text: str) -> Address:
    """Read `HOST:PORT`.

    Raises:
        SettingsError: it is none.
    """
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port is not None and not parts.path:
            return Address(parts.hostname, parts.port)
    except ValueError:
        pass
    raise SettingsError(f'the address {text!r} is not "HOST:PORT", such as "127.0.0.1:8787"', key="listen.address")


def check_reach(config: Config, address: Address) -> None:
    """Refuse to listen beyond this machine without keys.

    Raises:
        SettingsError: clients of other machines would need no key.
    """
    if not address.is_local and not needs_key(config):
        raise SettingsError(
            f"the gateway would answer other machines at {address.name} without a key; set listen.keys ="
            ' ["env:NAME"] with a long random key, or listen.require_key = true and make keys with `segue gateway keys'
            " create`, or listen on 127.0.0.1",
            key="listen.keys",
        )


def needs_key(config: Config) -> bool:
    """Whether clients need a key by the file alone."""
    return bool(config.listen.keys or config.keys or config.listen.require_key)


def with_model(config: Config, model: str) -> Config:
    """Send every request to one model, whatever name the client asks for."""
    return replace(config, models={"*": ModelRoute(targets=(model,))})


def complete_config(config: Config, environment: Mapping[str, str]) -> Config:
    """Complete a configuration without routes: servers on this machine get routes, else a model of segue answers."""
    if config.models:
        return config
    has_key = bool(key_sources(environment))
    tables = config.providers.values()
    has_provider = any(table.key is not None or table.accounts or table.base_url is not None for table in tables)
    found = find_local_models()
    local = [model for model in found if model != LOCAL]  # it needs no route: its name is enough
    routes = {model.id: ModelRoute(targets=(model.full_name(),)) for model in local}
    providers = dict(config.providers)
    for model in local:
        providers.setdefault(model.provider, ProviderTable())
    if not local and not has_key and not has_provider:
        routes["*"] = ModelRoute(targets=((LOCAL if LOCAL in found else ECHO).full_name(),))
    return replace(config, models=routes, providers=providers)


def is_echo(config: Config, model: Model = ECHO) -> bool:
    """Whether the echo model, or another one of segue, answers everything."""
    route = config.models.get("*")
    return route is not None and route.targets == (model.full_name(),)
