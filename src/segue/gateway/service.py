"""`Gateway`: what the requests of one gateway share: routes, client, store, envelopes, failures so far."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from msgspec.structs import replace

from segue.client.http.settings import shared_tls
from segue.client.http.telemetry import Telemetry
from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.envelope.envelopes import Envelopes
from segue.errors import SegueError, SettingsError
from segue.failures.failure import FailureKind
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.gateway.board import Board
from segue.gateway.config import Config, load_config, read_secret
from segue.gateway.conversations import Conversations
from segue.gateway.defaults import Address, needs_key, read_address
from segue.gateway.gate import Gate
from segue.gateway.guarding import find_digest, is_remote
from segue.gateway.histories import Histories
from segue.gateway.intake import Intake, Refused
from segue.gateway.keys import ANYONE, ClientKey, KeyRing
from segue.gateway.logs import find_logger
from segue.gateway.metrics import Metrics
from segue.gateway.records import RequestRow
from segue.gateway.reloading import ACCEPT, Held, find_removed, is_accepted
from segue.gateway.routing import Router
from segue.gateway.runtime import Runtime
from segue.gateway.shares import SharedCache, SharedDigests
from segue.gateway.spending import Spending
from segue.gateway.store.database import StoreError
from segue.gateway.store.key_table import keys_version, read_keys
from segue.gateway.store.opening import open_store, read_store_name
from segue.gateway.store.private_files import read_or_make_secret
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import StoredRow, StoreLimits
from segue.gateway.tracing import RequestTrace, Tracing, log_request, open_telemetry
from segue.models.built_in import ECHO
from segue.protocols.registry import all_protocols
from segue.requests.prepare import prepare

_NO_KEY: Final = "the key is not one of this gateway; its operator makes one with `segue gateway keys create NAME`"
FIRST_KEY: Final = "the store has its first key: from now on every client needs one, also on this machine"
LOG: Final = find_logger()
APPLIED: Final = "applied.toml"
"""The file of the board with the configuration in use: a worker that is started again begins with it, and not with one
that the others hold or refuse."""
_SWEEP_SECONDS: Final = 3600.0
_GROWTH_SECONDS: Final = 5.0
"""How often it is looked whether the store has grown so much that it is swept before its time."""
_WATCH_SECONDS: Final = 0.5
_KEY_SECONDS: Final = 0.5
"""How often the store is asked whether its keys have changed."""
_SWITCH_SECONDS: Final = 0.001
"""How long Python code of a thread lets the event loop wait, where CPython's default is 5 ms: for each request it waits
several times, and a large body is read in a thread for seconds."""
_MOST_NAMES: Final = 1_000
"""How many names of what is new in replies are counted."""
_THRESHOLDS: Final = (10_000, 20, 50)
"""When each generation is collected: after so many new objects, and so many collections of the one before."""
_RECENT_ROWS: Final = 1_000
"""Rows of requests in memory: rows are stored in batches, and clients ask for theirs when the reply ends."""


class Gateway:
    """The state of a running gateway.

    `path` is the configuration file. It is read again when it changes; `adapt` then makes the same changes to it that
    the caller made at the start, such as options of the command line. `place` is the address that the server is bound
    to, if it is not the one in the configuration. `authenticated`: an application around the gateway checks who its
    clients are, so that clients of other machines need no key. `telemetry` replaces that of the configuration. `board`
    is what the gateway shares with the other workers of its address.

    Raises:
        SettingsError: the configuration is wrong.
    """

    def __init__(
        self,
        config: Config,
        *,
        path: Path | None = None,
        environment: Mapping[str, str] | None = None,
        place: Address | None = None,
        adapt: Callable[[Config], Config] | None = None,
        authenticated: bool = False,
        telemetry: Telemetry | None = None,
        board: Board | None = None,
    ) -> None:
        self.board: Board | None = board
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.path: Path | None = path
        self.authenticated: bool = authenticated
        self._place = place
        self._adapt = adapt
        made, self._close_telemetry = open_telemetry(config.telemetry) if telemetry is None else (telemetry, None)
        self._telemetry = made
        self.runtime: Runtime = Runtime(config, environment=self.environment, place=place, telemetry=made, board=board)
        """What the next request uses. A request keeps the runtime that it began with."""
        self.gate: Gate = Gate()
        self.intake: Intake = Intake(board)
        turns = None if board is None else board.folder / "store.turns"
        store = open_store(read_store_name(config.state.store, self.environment), turns=turns)
        limits = StoreLimits.of_days(config.state)
        self.store: StoreService = StoreService(store, limits, LOG.warning)
        self.keys: KeyRing = KeyRing()
        """The keys of the store."""
        if store is not None:
            self.keys.load(lambda: keys_version(store.database), lambda: read_keys(store.database))
        self.spending: Spending = Spending(self.store, now_ms)
        self.conversations: Conversations = Conversations(self.store)
        self.histories: Histories = Histories()
        self.digests: SharedDigests = SharedDigests()
        self.envelopes: Envelopes = Envelopes(self._read_envelope_keys(config))
        self.metrics: Metrics = Metrics()
        self.tracing: Tracing | None = None if made is None else Tracing(made, self.metrics)
        """Writes spans, if telemetry is configured."""
        self.drift: Counter[str] = Counter()
        """How many replies had something that the provider's SDK does not know, by its name, since the start."""
        self._rows: SharedCache[str, StoredRow] = SharedCache(_RECENT_ROWS)
        self.erased: int = 0
        """How often something was erased, here or at another worker."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._work: set[asyncio.Task[None]] = set()
        self._retired: set[Runtime] = set()
        applied = None if board is None else board.read(APPLIED)
        self._seen: bytes | None = self._fingerprint() if applied is None else sha256(applied).digest()
        self.held: Held | None = None
        """The configuration file that is not applied by itself, because requests would go elsewhere."""
        self._is_started = False
        self.owns_process: bool = False
        """Whether nothing but the gateway runs in this process: then the collector is set for it."""

    def __repr__(self) -> str:
        return f"Gateway({counted(len(self.config.models), 'route')}, {self.store!r})"

    @property
    def has_store(self) -> bool:
        """Whether states are stored."""
        return self.store.store is not None

    @property
    def keeps_bytes(self) -> bool:
        """Whether the store keeps what requests and replies say, byte by byte."""
        return self.config.state.content == "full" and self.has_store

    @property
    def config(self) -> Config:
        """The configuration that is in use."""
        return self.runtime.config

    @property
    def router(self) -> Router:
        """The routes that are in use."""
        return self.runtime.router

    # -- keys of clients -----------------------------------------------------------------------------------------------

    def needs_key(self, runtime: Runtime) -> bool:
        """Whether clients need a key. A store that ever had one needs one: revoking the last key opens nothing."""
        return bool(runtime.keys) or bool(len(self.keys)) or runtime.config.listen.require_key

    def authenticate(self, headers: Mapping[str, str], query: str, runtime: Runtime) -> ClientKey:
        """Return the key of a request; `ANYONE` if none is needed.

        Raises:
            Refused: it has no valid key.
        """
        if not self.needs_key(runtime):
            return ANYONE
        digest = find_digest(headers, query)
        key = None if digest is None else runtime.keys.get(digest) or self.keys.find(digest)
        problem = _NO_KEY if key is None else key.refusal(now_ms())
        if key is None or problem is not None:
            raise Refused(problem or _NO_KEY, 401, FailureKind.AUTH)
        return key

    def name_client(self, client: object, headers: Mapping[str, str], path: str) -> str:
        """Name the client of a request for the gate: by its key if that is valid, else by its address.

        Without keys, clients of this machine are named by their connection: they have the address in common.
        """
        host, port = cast("tuple[str, int]", client) if client else ("", 0)
        if (admins := self.runtime.admin_digests) and find_digest(headers, "") in admins:
            return "admin"
        try:
            key = self.authenticate(headers, path.partition("?")[2], self.runtime)
        except Refused:
            return f"address {host}"
        if key.tenant:
            return f"key {key.tenant}"
        return f"address {host}" if is_remote(client) else f"connection {host}:{port}"

    async def load_keys(self) -> None:
        """Read the keys of the store, if they have changed.

        Raises:
            StoreError: the store fails.
        """
        if (store := self.store.store) is not None:
            was_open = not self.needs_key(self.runtime)
            await self.store.fetch(
                lambda: self.keys.load(lambda: keys_version(store.database), lambda: read_keys(store.database))
            )
            if was_open and self.needs_key(self.runtime):
                LOG.warning(FIRST_KEY)

    async def _watch_keys(self) -> None:
        """Follow the keys of the store. While the database is away, the keys that are known stay valid."""
        while True:
            await asyncio.sleep(_KEY_SECONDS)
            try:
                await self.load_keys()
            except StoreError as error:
                LOG.debug("the keys could not be read: %s", error)
            except Exception:  # whatever happens, later changes have to be seen: they may revoke a key
                LOG.exception("the keys could not be read; it is tried again")

    def _read_envelope_keys(self, config: Config) -> list[bytes]:
        given = config.state.key
        if given is not None:
            return [sha256(read_secret(given, self.environment, key="state.key").encode()).digest()]
        if self.store.store is not None:
            return [self.store.store.envelope_key()]
        return [_key_of_file(self.environment)]

    # -- rows of requests ----------------------------------------------------------------------------------------------

    def count_drift(self, names: Sequence[str]) -> None:
        """Count what was new in a reply."""
        for name in names:
            if name in self.drift or len(self.drift) < _MOST_NAMES:
                self.drift[name] += 1

    def keep_row(self, row: RequestRow, tenant: str, trace: RequestTrace | None = None) -> None:
        """Count a request and keep its row: it is stored later, and can be found at once."""
        self.metrics.add(row)
        log_request(row, trace)
        if not self.has_store:
            return
        stored = StoredRow(row.id, tenant, encode_valid_json(row), row.time, row.conversation)
        self._rows.put(tenant, row.id, stored)
        self.store.put_later(stored, now_ms())

    def find_recent_row(self, name: str, tenant: str | None) -> bytes | None:
        """Find a row that may not be stored yet; of any tenant with None."""
        row = self._rows.get(name)
        return row.data if row is not None and tenant in (None, row.tenant) else None

    def forget_row(self, name: str, tenant: str | None) -> None:
        """Drop the row of a request from memory."""
        self.erased += 1
        row = self._rows.get(name)
        if row is not None and tenant in (None, row.tenant):
            self.histories.forget(row.conversation, tenant)
            self._rows.drop(name)

    def forget_rows(self, conversation: str, tenant: str | None) -> None:
        """Drop the rows of a conversation, and what was read of it, from memory."""
        self.erased += 1
        self.histories.forget(conversation, tenant)
        for name, owner, row in self._rows.items():
            if row.conversation == conversation and tenant in (None, owner):
                self._rows.drop(name)

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start what runs alongside the requests."""
        if self._is_started:
            return
        self._is_started = True
        if self.owns_process:
            await asyncio.to_thread(self.warm_up)
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        self.store.start()
        self._spawn(self._sweep())
        if self.has_store:
            self._spawn(self._watch_keys())
            self._spawn(self.spending.renew())
        if self.path is not None:
            self._spawn(self._watch())
        if self.owns_process:
            freeze_memory()

    def warm_up(self) -> None:
        """Make what the first request would make on the event loop, and all others would wait for: 0.2 s and more."""
        shared_tls()
        import_module("anyio._backends._asyncio")
        all_protocols()
        router, context = self.router, Context(messages=(UserMessage.of("-"),))
        with suppress(SegueError):
            router.find("no-such-provider/no-such-model")  # similar names are looked for in an index
        for name in (*router.listed(), ECHO.full_name()):
            with suppress(SegueError):
                for model in router.find(name).models:
                    _ = prepare(context, model).content

    def spawn(self, work: object) -> None:
        """Do work alongside the requests; the gateway waits for it when it ends."""
        self._spawn(work, keeps=True)

    def _spawn(self, work: object, *, keeps: bool = False) -> None:
        task = asyncio.get_running_loop().create_task(work)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
        tasks = self._work if keeps else self._tasks
        tasks.add(task)  # pyright: ignore[reportUnknownArgumentType]
        task.add_done_callback(tasks.discard)  # pyright: ignore[reportUnknownMemberType]

    async def close(self) -> None:
        """End everything; replies that run have ended before."""
        if self._work:
            await asyncio.gather(*self._work, return_exceptions=True)
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for runtime in (self.runtime, *self._retired):
            await runtime.client.close()
        self._retired.clear()
        await self.store.close()
        if self._close_telemetry is not None:
            await asyncio.to_thread(self._close_telemetry)
        self._is_started = False

    async def _sweep(self) -> None:
        is_first = self.board is None or self.board.index == 0
        while self.has_store:
            if is_first or self.store.has_grown:
                await asyncio.to_thread(self.store.sweep, now_ms())
            for _ in range(round(_SWEEP_SECONDS / _GROWTH_SECONDS)):
                await asyncio.sleep(_GROWTH_SECONDS)
                if self.store.has_grown:  # an hour is enough to fill a disk
                    break

    # -- the configuration ---------------------------------------------------------------------------------------------

    def _fingerprint(self) -> bytes | None:
        """Return a digest of the file; None if it cannot be read.

        Times are too coarse: two changes in one tick of the clock have the same.
        """
        try:
            return None if self.path is None else sha256(self.path.read_bytes()).digest()
        except OSError:
            return None

    def _is_accepted(self) -> bool:
        return self.path is not None and self.held is not None and is_accepted(self.path, self.held.digest)

    async def _watch(self) -> None:
        """Read the file again when it has changed and stayed the same for one interval: then it is complete."""
        pending: bytes | None = None
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                found = await asyncio.to_thread(self._fingerprint)
                if found is not None and found == self._seen and await asyncio.to_thread(self._is_accepted):
                    self._apply(await asyncio.to_thread(self._read_again))
                elif found is None or found == self._seen:
                    pending = None
                elif found != pending:
                    pending = found
                else:
                    pending, self._seen = None, found
                    # The catalogue may be large, and secrets may be files: off the event loop.
                    made = await asyncio.to_thread(self._read_again)
                    self._apply(made)
            except Exception:  # whatever happens, later changes have to be seen: they may revoke a key
                LOG.exception("the configuration file could not be watched; it is tried again")

    def reload(self, *, accept: bool = False) -> str | None:
        """Read the configuration file again; a wrong one is reported, and the old one stays. Return the error.

        A file with which requests or their keys would go elsewhere, because it lacks something, is held (`held`) unless
        it is accepted. Requests that run go on as they began. The address and the table `state` need a new start.
        """
        return self._apply(self._read_again(accept=accept))

    def _read_again(self, *, accept: bool = False) -> Runtime | Held | str:
        """Make the runtime of the file; return the error if there is one, or what it removes."""
        try:
            return self._make_runtime(accept=accept)
        except SegueError as error:
            return str(error)
        except Exception as error:
            LOG.debug("the configuration could not be read", exc_info=error)
            return f"{self.path} could not be read: {type(error).__name__}"

    def _make_runtime(self, *, accept: bool) -> Runtime | Held:
        """Make the runtime of the file.

        Raises:
            SettingsError: the file is wrong, or would open the gateway to clients without a key.
        """
        assert self.path is not None, "there is no file to read again"
        try:
            data = self.path.read_bytes()  # once: what was accepted is what is applied
        except OSError as error:
            text = f"{self.path} cannot be read: {error.strerror}; check the path"
            raise SettingsError(text, key=str(self.path)) from error
        config = load_config(data, name=str(self.path))
        if config == Config():
            raise SettingsError(f"{self.path} is empty; a file that is being written is not used", key=str(self.path))
        if self._adapt is not None:
            config = self._adapt(config)
        if needs_key(self.config) and not needs_key(config):
            raise SettingsError(
                f"{self.path}: listen.keys is gone, and clients would need no key; start the gateway again for that",
                key="listen.keys",
            )
        # The address that is bound stays the same, whatever the file says now.
        place = self._place or read_address(self.config.listen.address)
        made = Runtime(config, environment=self.environment, place=place, telemetry=self._telemetry, board=self.board)
        made.source = data
        removed = () if accept else find_removed(self.runtime, made)
        digest = sha256(data).digest()
        return made if not removed or is_accepted(self.path, digest) else Held(digest, removed)

    def _apply(self, made: Runtime | Held | str) -> str | None:
        if isinstance(made, Held):
            text = f"{'; '.join(made.removed)}. If that is meant, run `{ACCEPT}` or start the gateway again"
            if made != self.held:
                LOG.warning("the configuration was not changed: %s", text)
            self.held = made
            return text
        self.held = None
        if isinstance(made, str):
            LOG.warning("the configuration was not changed: %s", made)
            return made
        old, config = self.runtime, made.config
        if (config.limits.breaker_failures, config.limits.breaker_seconds) == (
            old.config.limits.breaker_failures,
            old.config.limits.breaker_seconds,
        ):
            made.breaker = old.breaker
        if config.listen.address != old.config.listen.address:
            LOG.warning("listen.address is changed by a new start only; the gateway stays at its address")
            kept = replace(config.listen, address=old.config.listen.address)
            made.config = config = replace(config, listen=kept)
        if config.state != old.config.state:
            LOG.warning("the table state is changed by a new start only; the gateway keeps its store")
            made.config = config = replace(config, state=old.config.state)
        if config.telemetry != old.config.telemetry:
            LOG.warning("the table telemetry is changed by a new start only; the gateway goes on as it began")
            made.config = config = replace(config, telemetry=old.config.telemetry)
        self.runtime = made
        if self.board is not None and made.source is not None:
            with suppress(OSError):
                self.board.write(APPLIED, made.source)
        self._retired.add(old)
        old.when_idle(lambda: self._close_retired(old))
        LOG.warning("the configuration was read again")
        if self.owns_process:
            freeze_memory()
        return None

    def _close_retired(self, runtime: Runtime) -> None:
        """Close the client of a runtime that no request uses any more, at the latest when the gateway ends."""
        if not self._is_started:
            return

        async def close() -> None:
            try:
                await runtime.client.close()
            finally:
                self._retired.discard(runtime)

        self._spawn(close())


def freeze_memory() -> None:
    """Take what is there now out of what the collector looks at, and let it look less often.

    The catalogue and the tables of protocols are some hundred thousand objects that stay. Without this the collector
    takes up to 40 % of a large request; with it a translated request costs 0.85 to 0.91. (measured 2026-11-18)
    """
    gc.unfreeze()  # of an earlier configuration
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def _key_of_file(environment: Mapping[str, str]) -> bytes:
    """Return the key of a file in the user's folder, made once.

    Without a store, envelopes outlive the process by it.
    """
    folder = Path(environment.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "segue"
    path = folder / "gateway.key"
    try:
        return bytes.fromhex(read_or_make_secret(path))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f'the key of the envelopes cannot be kept in {path}: {error}; set state.key = "env:NAME"', key="state.key"
        ) from error


def now_ms() -> int:
    """Return the time as Unix milliseconds."""
    return time.time_ns() // 1_000_000
