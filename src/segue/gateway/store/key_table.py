"""The table of keys. All functions block; `now` is Unix milliseconds."""

from __future__ import annotations

from secrets import token_hex
from typing import Final, NamedTuple, final

import msgspec

from segue.errors import SettingsError
from segue.gateway.keys import ClientKey
from segue.gateway.store.database import Database, Transaction
from segue.gateway.store.ledger import Ledger, advance, load_ledger
from segue.gateway.store.schema import SET_META

_VERSION: Final = "keys_version"


@final
class KeySpending(NamedTuple):
    """A key, and what it spent up to now."""

    key: ClientKey
    ledger: Ledger


def put_key(database: Database, key: ClientKey, digest: bytes) -> None:
    """Store a key by its digest.

    Raises:
        SettingsError: another key that is not revoked has the same name.
    """
    with database.transaction() as transaction:
        made = transaction.run(
            "insert into keys (id, digest, name, data) values (?, ?, ?, ?) on conflict do nothing",
            (key.id, digest.hex(), key.name, msgspec.json.encode(key)),
        )
        # A write whose outcome was not known is repeated.
        if not made and not transaction.read("select id from keys where id = ?", (key.id,)):
            raise SettingsError(
                f"there is a key {key.name!r} already; choose another name, or revoke it first", key="name"
            )
        _change_version(transaction)


def revoke_key(database: Database, name: str, now: int) -> ClientKey:
    """Revoke a key by its id or its name; one that is revoked stays so.

    Raises:
        SettingsError: there is no such key.
    """
    with database.transaction() as transaction:
        found = _read(transaction.read("select digest, revoked, data from keys where id = ?", (name,)))
        found = found or _read(
            transaction.read("select digest, revoked, data from keys where name = ? and revoked is null", (name,))
        )
        if not found:
            raise SettingsError(f"there is no key {name!r}; `segue gateway keys list` lists them", key="name")
        key = next(iter(found.values()))
        transaction.run("update keys set revoked = ? where id = ? and revoked is null", (now, key.id))
        _change_version(transaction)
    return key if key.revoked is not None else msgspec.structs.replace(key, revoked=now)


def keys_version(database: Database) -> str | None:
    """Return a value that changes with every change of a key; None if there was never a key."""
    rows = database.query("select value from meta where name = ?", (_VERSION,))
    return str(rows[0][0]) if rows else None


def read_keys(database: Database) -> dict[bytes, ClientKey]:
    """Return all keys by their digests, also those that are revoked."""
    return _read(database.query("select digest, revoked, data from keys"))


def read_spending(database: Database, now: int) -> list[KeySpending]:
    """Return all keys with what they spent, in the order in which they were made."""
    keys = sorted(read_keys(database).values(), key=lambda key: (key.made, key.id))
    ledgers = {str(key): data for key, data in database.query("select key, data from ledgers")}
    return [KeySpending(key, _current(ledgers.get(key.tenant), now)) for key in keys]


def _current(data: object, now: int) -> Ledger:
    ledger = load_ledger(bytes(data) if isinstance(data, (bytes, memoryview)) else None)  # pyright: ignore[reportUnknownArgumentType]
    advance(ledger, now)
    return ledger


def _read(rows: list[tuple[str | int | bytes | None, ...]]) -> dict[bytes, ClientKey]:
    found: dict[bytes, ClientKey] = {}
    for digest, revoked, data in rows:
        assert isinstance(data, (bytes, memoryview)), "the column has bytes"
        try:
            key = msgspec.json.decode(data, type=ClientKey)
        except msgspec.MsgspecError:  # of another version: it is refused, and the others are not
            continue
        found[bytes.fromhex(str(digest))] = msgspec.structs.replace(
            key, revoked=revoked if isinstance(revoked, int) else None
        )
    return found


def _change_version(transaction: Transaction) -> None:
    transaction.run(SET_META, (_VERSION, token_hex(8)))
