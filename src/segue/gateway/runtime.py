"""`Runtime`: everything that follows from one configuration. A request uses one runtime from its beginning to its end.

There is one way to make a runtime, at the start and when the file has changed, so both refuse the same files. A runtime
is complete before it replaces another one: a file with any error changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self

from segue.client.flow.backoff import Retry
from segue.client.http.clients import AsyncClient
from segue.client.http.telemetry import Telemetry
from segue.errors import SettingsError, UnknownModel
from segue.foundation.plurals import counted
from segue.gateway.board import Board
from segue.gateway.config import SAME, Config, read_secret
from segue.gateway.defaults import Address, check_reach, read_address
from segue.gateway.keys import ClientKey, digest_of, tenant_of
from segue.gateway.logs import find_logger
from segue.gateway.routing import Breaker, Router
from segue.gateway.transport import AiohttpTransport
from segue.models.built_in import ECHO
from segue.models.catalogue import Catalogue, installed_catalogue, load_catalogue

_LOG: Final = find_logger()
_SHORTEST_CLIENT_KEY: Final = 16
_FIRST_WAIT: Final = 0.3
_LONGEST_WAIT: Final = 5.0
"""Seconds to wait before the retry of a model: clients wait and retry themselves."""


class Runtime:
    """What requests need of a configuration: routes, keys of clients, the client for providers, failures so far.

    `place` is the address that the server is bound to. None: it is the address in the configuration.

    Raises:
        SettingsError: the configuration is wrong, or would let other machines in without a key.
    """

    def __init__(
        self,
        config: Config,
        *,
        environment: Mapping[str, str],
        place: Address | None = None,
        telemetry: Telemetry | None = None,
        board: Board | None = None,
    ) -> None:
        named = read_address(config.listen.address)
        check_reach(config, named if place is None else place)
        self.config: Config = config
        self.keys: dict[bytes, ClientKey] = {
            **{
                digest: ClientKey(id="", name="", tenant=tenant_of(digest))
                for digest in _digest_keys(config.listen.keys, environment, "listen.keys")
            },
            **_named_keys(config, environment),
        }
        """The keys of the file by their digests."""
        given = config.listen.admin_key
        self.admin_digests: frozenset[bytes] = _digest_keys(
            () if given is None else (given,), environment, "listen.admin_key"
        )
        given = config.listen.metrics_key
        self.metrics_digests: frozenset[bytes] = _digest_keys(
            () if given is None else (given,), environment, "listen.metrics_key"
        )
        self.host_names: frozenset[str] = frozenset(name.lower() for name in config.listen.host_names)
        self.router: Router = Router(config, catalogue_of(config))
        _check_targets(config, self.router)
        self.breaker: Breaker = Breaker(config.limits.breaker_failures, config.limits.breaker_seconds, board)
        self.client: AsyncClient = _make_client(config, environment, self.router.catalogue, telemetry)
        self.source: bytes | None = None
        """The file that the configuration was read from again."""
        self.lists: dict[tuple[object, ...], bytes] = {}
        """Lists of models by protocol and rights, as they were written."""
        self._users = 0
        self._on_idle: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"Runtime({counted(len(self.config.models), 'route')}, {counted(len(self.keys), 'key')})"

    @property
    def key_digests(self) -> frozenset[bytes]:
        """The digests of the keys of the file."""
        return frozenset(self.keys)

    def used(self) -> Self:
        """Count a request that uses this runtime, until the end of the `with` block."""
        self._users += 1
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if self._on_idle is not None:
            self._call_if_idle()

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call a function, once, when no request uses this runtime."""
        self._on_idle = call
        self._call_if_idle()

    def _call_if_idle(self) -> None:
        if self._users == 0 and self._on_idle is not None:
            call, self._on_idle = self._on_idle, None
            call()


def _digest_keys(given: Sequence[str], environment: Mapping[str, str], name: str) -> frozenset[bytes]:
    keys = [read_secret(each, environment, key=name) for each in given]
    if any(len(key) < _SHORTEST_CLIENT_KEY for key in keys):
        raise SettingsError(
            f"a key in {name} has fewer than {_SHORTEST_CLIENT_KEY} characters; use a long random one", key=name
        )
    return frozenset(digest_of(key) for key in keys)


def _named_keys(config: Config, environment: Mapping[str, str]) -> dict[bytes, ClientKey]:
    found: dict[bytes, ClientKey] = {}
    for name, table in config.keys.items():
        (digest,) = _digest_keys((table.key,), environment, f"keys.{name}.key")
        if table.has_limits and config.state.store == "none":
            raise SettingsError(
                f"keys.{name} has a budget or a limit, and state.store is none; they are counted in a store", key="keys"
            )
        found[digest] = ClientKey(id=f"file:{name}", name=name, tenant=tenant_of(digest), rights=table)
    return found


def _check_targets(config: Config, router: Router) -> None:
    """Refuse routes without a model that could answer, and warn of settings that have no effect."""
    for name, route in config.models.items():
        for target in route.targets:
            if target == SAME:
                continue
            try:
                router.resolve(target)
            except UnknownModel as error:
                raise SettingsError(f'models."{name}".try: {error}', key=f"models.{name}.try") from error
        if SAME not in route.targets:
            try:
                notes = router.find(name).notes
            except UnknownModel as error:
                raise SettingsError(f'models."{name}": {error}', key=f"models.{name}") from error
            for note in notes:
                _LOG.warning('models."%s": %s', name, note)


def _make_client(
    config: Config, environment: Mapping[str, str], catalogue: Catalogue, telemetry: Telemetry | None
) -> AsyncClient:
    keys: dict[str, str | dict[str, str]] = {}
    for name, table in config.providers.items():
        if table.key is not None:
            keys[name] = read_secret(table.key, environment, key=f"providers.{name}.key")
        elif table.accounts:
            keys[name] = {
                account: read_secret(each.key, environment, key=f"providers.{name}.accounts.{account}.key")
                for account, each in table.accounts.items()
            }
    transport = AiohttpTransport(read_timeout=config.limits.timeout_seconds)
    return AsyncClient(
        api_key=keys,
        catalogue=catalogue,
        telemetry=telemetry,
        environment=environment,
        url_variables=False,  # in a shell that is set up for clients they name this gateway
        timeout=config.limits.timeout_seconds,
        retry=Retry(
            max_retries=config.limits.retries,
            first_wait=_FIRST_WAIT,
            longest_wait=_LONGEST_WAIT,
            longest_retry_after=_LONGEST_WAIT,
        ),
        transport={"all://": transport},
    )


def catalogue_of(config: Config) -> Catalogue:
    """Return the models that a configuration can name."""
    known = installed_catalogue() if config.catalogue is None else load_catalogue(config.catalogue)
    return known.with_models(ECHO)
