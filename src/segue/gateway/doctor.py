"""What `segue gateway doctor` looks at, before a gateway starts or while it runs. It costs nothing."""

from __future__ import annotations

import platform
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple, final
from urllib.parse import urlsplit

import httpx2

from segue.errors import SegueError, install_line
from segue.foundation.plurals import counted
from segue.foundation.version import __version__
from segue.gateway.config import Config
from segue.gateway.defaults import read_address
from segue.gateway.runtime import Runtime
from segue.gateway.store.database import StoreError
from segue.gateway.store.key_table import read_keys
from segue.gateway.store.opening import open_store, read_store_name
from segue.gateway.store.schema import MIGRATIONS
from segue.models.model import Model
from segue.models.providers import find_row
from segue.protocols.kit.json_values import object_of

_LARGEST_SKEW: Final = 60.0
"""Seconds. Signed requests to AWS fail at five minutes; expiry and budgets follow the clock."""
_PATIENCE: Final = 5.0
Get = Callable[[str], "httpx2.Response"]


@final
class GatewayFinding(NamedTuple):
    """One thing that was looked at. `fail`: the gateway would not work; `warn`: a part of it would not."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    text: str


def get_over_network(url: str) -> httpx2.Response:
    """Ask a server for any answer, without following it anywhere."""
    return httpx2.get(url, timeout=_PATIENCE, follow_redirects=False)


def examine(
    config: Config, environment: Mapping[str, str], get: Get | None = get_over_network
) -> Iterator[GatewayFinding]:
    """Look at a configuration and what it names; without `get`, at nothing beyond this machine and its store."""
    versions = f"segue {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield GatewayFinding("ok", "versions", versions)
    yield from _look_for_packages(config)
    try:
        runtime = Runtime(config, environment=environment)
    except SegueError as error:
        yield GatewayFinding("fail", "configuration", str(error))
        return
    count, keys = len(config.models), len(runtime.key_digests)
    yield GatewayFinding(
        "ok", "configuration", f"{counted(count, 'route')}, {counted(keys, 'key')} of clients in the file"
    )
    yield from _look_at_store(config, environment)
    models = _models_of(runtime)
    yield from _look_for_keys(runtime, models)
    if get is not None:
        yield from _look_at_address(config, get)
        yield from _look_at_providers(models, get)
        if config.telemetry.endpoint is not None:
            yield _reach("the collector", config.telemetry.endpoint, get)[0]


def _look_for_packages(config: Config) -> Iterator[GatewayFinding]:
    wanted = {"httptools": "gateway", "websockets": "gateway"}
    if config.telemetry.endpoint is not None:
        wanted["opentelemetry.sdk"] = "otel"
    for name, extra in wanted.items():
        try:
            is_there = find_spec(name) is not None
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            yield GatewayFinding("warn", "packages", f"{name} is not installed; run: {install_line(extra)}")


def _look_at_store(config: Config, environment: Mapping[str, str]) -> Iterator[GatewayFinding]:
    try:
        store = open_store(read_store_name(config.state.store, environment))
    except SegueError as error:
        yield GatewayFinding("fail", "store", str(error))
        return
    if store is None:
        yield GatewayFinding(
            "warn", "store", "there is none: no console, and clients that drop envelopes lose reasoning"
        )
        return
    try:
        now = time.time_ns() // 1_000_000
        store.probe(now)
        newest = store.newest_time()
        kind = "SQLite" if store.database.is_local else "PostgreSQL"
        yield GatewayFinding("ok", "store", f"{kind} takes writes, schema {len(MIGRATIONS)}")
        if count := len(read_keys(store.database)):
            text = f"the store has {counted(count, 'key')} of clients, so every client needs one, also on this machine"
            yield GatewayFinding("ok", "clients", text)
        if newest is not None and newest - now > _LARGEST_SKEW * 1000:
            ahead = round((newest - now) / 1000)
            yield GatewayFinding(
                "warn", "clock", f"the newest row of the store is {ahead} s ahead of this machine; set the clock"
            )
    except StoreError as error:
        yield GatewayFinding("fail", "store", f"it cannot be written: {error}; check its disk and its permissions")
    finally:
        store.close()


def _models_of(runtime: Runtime) -> dict[str, Model]:
    """Return the models that routes name, by their full names."""
    router, found = runtime.router, dict[str, Model]()
    for name in runtime.config.models:
        try:
            found |= {model.full_name(): model for model in router.find(name).models}
        except SegueError:
            continue  # "same": whatever the client names
    return found


def _look_for_keys(runtime: Runtime, models: Mapping[str, Model]) -> Iterator[GatewayFinding]:
    missing = {name: text for name, model in models.items() if (text := runtime.client.find_missing(model))}
    for name, text in missing.items():
        yield GatewayFinding("warn", "keys", f"{name}: {text}")
    if models and not missing:
        yield GatewayFinding("ok", "keys", f"{counted(len(models), 'model')} of routes can be asked")


def _look_at_address(config: Config, get: Get) -> Iterator[GatewayFinding]:
    place = read_address(config.listen.address)
    try:
        reply = get(f"{place.url}/health")
    except httpx2.HTTPError:
        yield GatewayFinding("ok", "address", f"nothing listens at {place.url} yet")
        return
    try:
        version = object_of(reply.json()).get("version")
    except ValueError:
        version = None
    if version is None:
        yield GatewayFinding(
            "fail", "address", f"another program listens at {place.url}; choose another listen.address"
        )
    else:
        state: Literal["ok", "warn"] = "ok" if version == __version__ else "warn"
        yield GatewayFinding(state, "address", f"a gateway of version {version} answers at {place.url}")


def _look_at_providers(models: Mapping[str, Model], get: Get) -> Iterator[GatewayFinding]:
    places: dict[str, str] = {}
    for model in models.values():
        row = find_row(model.provider, model.base_url)
        url = urlsplit(model.base_url or (row and row.base_url) or "")
        if url.scheme in ("http", "https") and "{" not in url.netloc:
            places.setdefault(model.provider, f"{url.scheme}://{url.netloc.rpartition('@')[2]}/")
    for provider, url in places.items():
        finding, skew = _reach(provider, url, get)
        yield finding
        if skew is not None and abs(skew) > _LARGEST_SKEW:
            yield GatewayFinding(
                "warn", "clock", f"this machine differs by {skew:.0f} s from {provider}; set the clock"
            )


def _reach(name: str, url: str, get: Get) -> tuple[GatewayFinding, float | None]:
    """Look whether a server answers, whatever it answers, and by how much its clock differs from this machine's."""
    try:
        reply = get(url)
    except httpx2.HTTPError as error:
        text = f"{name} at {url} does not answer: {type(error).__name__}; check network, proxy and firewall"
        return GatewayFinding("warn", "reachability", text), None
    try:
        skew = time.time() - parsedate_to_datetime(reply.headers["date"]).timestamp()
    except (KeyError, ValueError):
        skew = None
    return GatewayFinding("ok", "reachability", f"{name} answers at {url}"), skew
