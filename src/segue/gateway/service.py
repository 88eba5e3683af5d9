"""`Gateway`: what the requests of one gateway share: routes, client, store, envelopes, failures so far."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from segue.client.flow.backoff import Retry
from segue.client.http.clients import AsyncClient
from segue.envelope.envelopes import Envelopes
from segue.errors import SegueError, SettingsError
from segue.gateway.config import Config, read_config, read_secret
from segue.gateway.conversations import Conversations
from segue.gateway.routing import Breaker, Router
from segue.gateway.store.opening import open_store
from segue.gateway.store.private_files import read_or_make_secret
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import DAY, Limits
from segue.gateway.transport import AiohttpTransport
from segue.models.built_in import ECHO
from segue.models.catalogue import Catalogue, installed_catalogue, load_catalogue
from segue.plurals import counted

LOG: Final = logging.getLogger("segue.gateway")
_SWEEP_SECONDS: Final = 3600.0
_WATCH_SECONDS: Final = 1.0
_SHORTEST_CLIENT_KEY: Final = 16
_FIRST_WAIT: Final = 0.3
_LONGEST_WAIT: Final = 5.0
"""Seconds to wait before the retry of a model: clients wait and retry themselves."""


class Gateway:
    """The state of a running gateway. `path` is the configuration file, which is read again when it changes."""

    def __init__(
        self, config: Config, *, path: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.path: Path | None = path
        self.config: Config = config
        self.router: Router = Router(config, _catalogue_of(config))
        self.breaker: Breaker = Breaker(config.limits.breaker_failures, config.limits.breaker_seconds)
        self.key_digests: frozenset[bytes] = self._read_client_keys(config)
        store = open_store(config.state.store)
        limits = Limits(
            round(config.state.days * DAY), config.state.megabytes * 1_000_000, round(config.state.request_days * DAY)
        )
        self.store: StoreService = StoreService(store, limits, LOG.warning)
        self.conversations: Conversations = Conversations(self.store)
        self.envelopes: Envelopes = Envelopes(self._read_envelope_keys(config))
        self.client: AsyncClient = self._make_client(config)
        self._tasks: set[asyncio.Task[None]] = set()
        self._modified: int | None = self._read_time()
        self._is_started = False

    def __repr__(self) -> str:
        return f"Gateway({counted(len(self.config.models), 'route')}, {self.store!r})"

    @property
    def has_store(self) -> bool:
        """Whether states are stored."""
        return self.store.store is not None

    def _read_client_keys(self, config: Config) -> frozenset[bytes]:
        keys = [read_secret(given, self.environment, key="listen.keys") for given in config.listen.keys]
        if any(len(key) < _SHORTEST_CLIENT_KEY for key in keys):
            raise SettingsError(
                f"a key in listen.keys has fewer than {_SHORTEST_CLIENT_KEY} characters; use a long random one",
                key="listen.keys",
            )
        return frozenset(sha256(key.encode()).digest() for key in keys)

    def _read_envelope_keys(self, config: Config) -> list[bytes]:
        given = config.state.key
        if given is not None:
            return [sha256(read_secret(given, self.environment, key="state.key").encode()).digest()]
        if self.store.store is not None:
            return [self.store.store.envelope_key()]
        return [_key_of_file(self.environment)]

    def _make_client(self, config: Config) -> AsyncClient:
        keys = {
            name: read_secret(table.key, self.environment, key=f"providers.{name}.key")
            for name, table in config.providers.items()
            if table.key is not None
        }
        transport = AiohttpTransport(read_timeout=config.limits.timeout_seconds)
        return AsyncClient(
            api_key=keys,
            catalogue=self.router.catalogue,
            environment=self.environment,
            timeout=config.limits.timeout_seconds,
            retry=Retry(
                max_retries=config.limits.retries,
                first_wait=_FIRST_WAIT,
                longest_wait=_LONGEST_WAIT,
                longest_retry_after=_LONGEST_WAIT,
            ),
            transport={"all://": transport},
        )

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start what runs beside the requests."""
        if self._is_started:
            return
        self._is_started = True
        self.store.start()
        self._spawn(self._sweep())
        if self.path is not None:
            self._spawn(self._watch())

    def _spawn(self, work: object) -> None:
        task = asyncio.get_running_loop().create_task(work)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
        self._tasks.add(task)  # pyright: ignore[reportUnknownArgumentType]
        task.add_done_callback(self._tasks.discard)  # pyright: ignore[reportUnknownMemberType]

    async def close(self) -> None:
        """End everything; replies that run have ended before."""
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.client.close()
        await self.store.close()
        self._is_started = False

    async def _sweep(self) -> None:
        while self.has_store:
            await asyncio.to_thread(self.store.sweep, now_ms())
            await asyncio.sleep(_SWEEP_SECONDS)

    # -- the configuration ---------------------------------------------------------------------------------------------

    def _read_time(self) -> int | None:
        try:
            return None if self.path is None else self.path.stat().st_mtime_ns
        except OSError:
            return None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            modified = self._read_time()
            if modified is not None and modified != self._modified:
                self._modified = modified
                self.reload()

    def reload(self) -> str | None:
        """Read the configuration file again; a wrong one is reported, and the old one stays. Gives the error.

        Replies that run go on. The address, the store and the limits need a new start.
        """
        assert self.path is not None, "there is no file to read again"
        try:
            config = read_config(self.path)
            router = Router(config, _catalogue_of(config))
            keys = self._read_client_keys(config)
            is_changed = config.providers != self.config.providers
        except SegueError as error:
            LOG.warning("the configuration was not changed: %s", error)
            return str(error)
        self.router, self.key_digests, self.config = router, keys, config
        if is_changed:
            old, self.client = self.client, self._make_client(config)
            self._spawn(_close_later(old))
        LOG.warning("the configuration was read again")
        return None


async def _close_later(client: AsyncClient) -> None:
    """Close a client when the replies that it reads have ended, at the latest when the gateway ends."""
    try:
        await asyncio.sleep(3600)
    finally:
        await client.close()


def _catalogue_of(config: Config) -> Catalogue:
    known = installed_catalogue() if config.catalogue is None else load_catalogue(config.catalogue)
    return known.with_models(ECHO)


def _key_of_file(environment: Mapping[str, str]) -> bytes:
    """Give the key of a file in the user's folder, made once: without a store, envelopes outlive the process by it."""
    folder = Path(environment.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "segue"
    path = folder / "gateway.key"
    try:
        return bytes.fromhex(read_or_make_secret(path))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f'the key of the envelopes cannot be kept in {path}: {error}; set state.key = "env:NAME"', key="state.key"
        ) from error


def now_ms() -> int:
    """Give the time as Unix milliseconds."""
    return time.time_ns() // 1_000_000
