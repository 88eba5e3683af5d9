"""What a changed configuration would take away, so that requests and their keys go elsewhere; and who accepts that.

A file that is cut short is often valid: a `base_url` at its end is missing, and the keys of a company's proxy would go
to the provider's public address. Such a change is held. The operator accepts it with `segue gateway reload --accept`,
which writes the digest of the accepted file next to it: whoever can write there can replace the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, final
from urllib.parse import urlsplit

from segue.gateway.config import SAME, Config, ProviderTable
from segue.gateway.runtime import Runtime

ACCEPT: Final = "segue gateway reload --accept"
_EVERY_NAME: Final = "*"


@final
class Held(NamedTuple):
    """A configuration that is not applied: the digest of its file, and a sentence on each thing that it removes."""

    digest: bytes
    removed: tuple[str, ...]


def describe_held(held: Held) -> dict[str, object]:
    """Describe what is held for the operator: why, and what to do."""
    return {"state": "held", "removed": held.removed, "accept": f"{ACCEPT}, or a new start"}


def find_removed(old: Runtime, new: Runtime) -> tuple[str, ...]:
    """List what a configuration no longer has, so that requests or keys would go to another address than before."""
    found = [*_removed_tables(old.config, new.config), *_removed_addresses(old, new)]
    route = old.config.models.get(_EVERY_NAME)
    if route is not None and set(route.targets) != {SAME} and _EVERY_NAME not in new.config.models:
        found.append(f'models."{_EVERY_NAME}" is gone: names without a route would go to the provider that has them')
    return tuple(found)


def _removed_tables(old: Config, new: Config) -> Iterator[str]:
    for name, before in old.providers.items():
        place, now = f"providers.{name}", new.providers.get(name)
        if now is None:
            yield f"{place} is gone{_no_longer(before)}"
            continue
        if before.base_url is not None and now.base_url is None:
            yield f"{place}.base_url is gone{_no_longer(before)}"
        has_key = now.key is not None or bool(now.accounts)
        if now.base_url is not None and (before.key is not None or before.accounts) and not has_key:
            yield f"{place} has no key: that of the environment would go to {_host(now.base_url)}"
        for account, table in before.accounts.items():
            own = now.accounts.get(account)
            if table.base_url is not None and own is not None and own.base_url is None:
                host = _host(table.base_url)
                yield f"{place}.accounts.{account}.base_url is gone: its key would no longer go to {host}"


def _removed_addresses(old: Runtime, new: Runtime) -> Iterator[str]:
    """List what a catalogue file no longer has."""
    if old.config.catalogue is None:
        return
    before, now = old.router.catalogue, new.router.catalogue
    stated = {name for name, table in new.config.providers.items() if table.base_url is not None}
    for row in before.providers:
        found = now.find_row(row.name)
        if row.base_url and row.name not in stated and (found is None or not found.base_url):
            yield f"the catalogue has no address of {row.name}: requests would no longer go to {_host(row.base_url)}"
    for model in before.models:
        if model.base_url and model.provider not in stated:
            same = now.lookup(model.full_name())
            if same is None or not now.complete(same).base_url:
                name = model.full_name()
                yield f"the catalogue has no address of {name}: requests would no longer go to {_host(model.base_url)}"


def _no_longer(table: ProviderTable) -> str:
    if table.base_url is None:
        return ": its requests would go with another key, or none"
    return f": its requests and their key would no longer go to {_host(table.base_url)}"


def _host(url: str) -> str:
    """Return the host of an address: the rest may have a secret."""
    try:
        return urlsplit(url).hostname or "its address"
    except ValueError:
        return "its address"


# -- what the operator accepted ----------------------------------------------------------------------------------------


def is_accepted(path: Path, digest: bytes) -> bool:
    """Whether the file with this digest was accepted."""
    try:
        return _beside(path).read_text("ascii").strip() == digest.hex()
    except (OSError, UnicodeDecodeError):
        return False


def accept(path: Path) -> None:
    """Accept a configuration file as it is now.

    Raises:
        OSError: the file cannot be read, or nothing can be written next to it.
    """
    target = _beside(path)
    written = target.with_name(f"{target.name}.{os.getpid()}")
    written.write_text(sha256(path.read_bytes()).hexdigest(), "ascii")
    written.replace(target)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.accepted")
