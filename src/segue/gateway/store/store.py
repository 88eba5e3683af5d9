"""`Store`: states by their keys, rows of requests, and stored responses, in a database.

All values are bound parameters. The functions block; `StoreService` calls them without blocking an event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from secrets import token_hex
from typing import Final, NamedTuple, TypeAlias, final

from segue.envelope.state import State, dump_state, load_state
from segue.gateway.store.database import Database, Transaction
from segue.gateway.store.schema import META, MIGRATIONS, VERSION_NAME

DAY: Final = 86_400_000
"""Milliseconds."""
_KEY_NAME: Final = "envelope_key"
_MOST_PARAMETERS: Final = 500


@final
class Limits(NamedTuple):
    """How long and how much is kept: milliseconds since a state was last used, bytes in all, age of request rows."""

    state_age: int = 30 * DAY
    state_bytes: int = 2_000_000_000
    request_age: int = 7 * DAY


@final
class StoredState(NamedTuple):
    """A state to store under its keys."""

    tenant: str
    keys: tuple[str, ...]
    state: State


@final
class StoredRow(NamedTuple):
    """A row of a request: its id, its tenant, its data, and when the request began (without it: when it is stored)."""

    id: str
    tenant: str
    data: bytes
    time: int | None = None


@final
class StoredReply(NamedTuple):
    """A reply of the Responses protocol that the client asked to store."""

    id: str
    tenant: str
    data: bytes


@final
class StoredConversation(NamedTuple):
    """What is kept of a conversation: its models, no content."""

    id: str
    tenant: str
    data: bytes


Stored: TypeAlias = StoredState | StoredRow | StoredReply | StoredConversation


class Store:
    """The tables of a gateway in one database. `now` is Unix milliseconds in all of its methods."""

    def __init__(self, database: Database) -> None:
        self.database: Database = database
        self._migrate()

    def __repr__(self) -> str:
        return f"Store({self.database!r})"

    def _migrate(self) -> None:
        with self.database.transaction() as transaction:
            if not self.database.is_local:
                # Several gateways start at the same time; the lock ends with the transaction.
                transaction.read("select pg_advisory_xact_lock(7236501)")
            transaction.run(META)
            rows = transaction.read("select value from meta where name = ?", (VERSION_NAME,))
            version = int(str(rows[0][0])) if rows else 0
            for number, statements in enumerate(MIGRATIONS[version:], version + 1):
                for statement in statements:
                    transaction.run(statement.format(bytes=self.database.bytes_type))
                transaction.run("delete from meta where name = ?", (VERSION_NAME,))
                transaction.run("insert into meta (name, value) values (?, ?)", (VERSION_NAME, str(number)))

    def envelope_key(self) -> bytes:
        """Give the secret key of the envelopes; it is made once and shared by all gateways of the store."""
        with self.database.transaction() as transaction:
            transaction.run(
                "insert into meta (name, value) values (?, ?) on conflict do nothing", (_KEY_NAME, token_hex(32))
            )
            return bytes.fromhex(str(transaction.read("select value from meta where name = ?", (_KEY_NAME,))[0][0]))

    # -- states --------------------------------------------------------------------------------------------------------

    def put_states(self, states: Sequence[StoredState], now: int) -> None:
        """Store states under their keys."""
        self.put_all(states, now)

    def put_all(self, work: Iterable[Stored], now: int) -> None:
        """Store states under their keys, rows of requests, replies and conversations, in one transaction."""
        given = list(work)
        states = [each for each in given if isinstance(each, StoredState)]
        rows = [each for each in given if isinstance(each, StoredRow)]
        replies = [each for each in given if isinstance(each, StoredReply)]
        conversations = [each for each in given if isinstance(each, StoredConversation)]
        with self.database.transaction() as transaction:
            for tenant, keys, state in states:
                data = dump_state(state)
                name = sha256(tenant.encode("utf-8", "surrogatepass") + b"\x00" + data).hexdigest()[:40]
                transaction.run(
                    "insert into states (id, tenant, made, seen, size, data) values (?, ?, ?, ?, ?, ?)"
                    " on conflict do nothing",
                    (name, _storable(tenant), now, now, len(data), data),
                )
                transaction.run_many(
                    "insert into state_keys (key, state, made) values (?, ?, ?) on conflict do nothing",
                    [(key, name, now) for key in dict.fromkeys(keys)],
                )
            if rows:
                transaction.run_many(
                    "insert into requests (id, tenant, time, data) values (?, ?, ?, ?) on conflict do nothing",
                    [(row.id, _storable(row.tenant), now if row.time is None else row.time, row.data) for row in rows],
                )
            if replies:
                transaction.run_many(
                    "insert into responses (id, tenant, seen, size, data) values (?, ?, ?, ?, ?)"
                    " on conflict do nothing",
                    [(row.id, _storable(row.tenant), now, len(row.data), row.data) for row in replies],
                )
            if conversations:
                transaction.run_many(
                    "insert into conversations (id, tenant, seen, data) values (?, ?, ?, ?)"
                    " on conflict (id) do update set seen = excluded.seen, data = excluded.data",
                    [(row.id, _storable(row.tenant), now, row.data) for row in conversations],
                )

    def get_states(self, keys: Iterable[str], now: int) -> dict[str, list[State]]:
        """Give the states of keys, the newest first."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, list[State]] = {}
        read: dict[str, State | None] = {}
        stale: list[str] = []
        for start in range(0, len(wanted), _MOST_PARAMETERS):
            some = wanted[start : start + _MOST_PARAMETERS]
            marks = ", ".join("?" * len(some))
            rows = self.database.query(
                "select k.key, s.id, s.seen, s.data from state_keys k join states s on s.id = k.state"  # noqa: S608
                f" where k.key in ({marks}) order by k.made desc, s.id",
                some,
            )
            for key, given, seen, data in rows:
                name = str(given)
                if name not in read:
                    read[name] = load_state(bytes(data)) if isinstance(data, (bytes, memoryview)) else None
                    if isinstance(seen, int) and now - seen > DAY:
                        stale.append(name)
                if (state := read[name]) is not None:
                    found.setdefault(str(key), []).append(state)
        if stale:
            with self.database.transaction() as transaction:
                transaction.run_many("update states set seen = ? where id = ?", [(now, name) for name in stale])
        return found

    # -- rows of requests ----------------------------------------------------------------------------------------------

    def put_requests(self, rows: Sequence[StoredRow], now: int) -> None:
        """Store rows of requests."""
        self.put_all(rows, now)

    def list_requests(self, tenant: str, limit: int, before: int | None = None) -> list[bytes]:
        """Give the rows of the latest requests of a tenant, the newest first."""
        owner = _storable(tenant)
        if before is None:
            rows = self.database.query(
                "select data from requests where tenant = ? order by time desc, id limit ?", (owner, limit)
            )
        else:
            rows = self.database.query(
                "select data from requests where tenant = ? and time < ? order by time desc, id limit ?",
                (owner, before, limit),
            )
        return [bytes(data) for (data,) in rows if isinstance(data, (bytes, memoryview))]

    def get_request(self, name: str, tenant: str) -> bytes | None:
        """Give the row of one request of the tenant."""
        return self._one("select data from requests where id = ? and tenant = ?", (_storable(name), _storable(tenant)))

    # -- conversations -------------------------------------------------------------------------------------------------

    def get_conversation(self, name: str) -> StoredConversation | None:
        """Give a conversation."""
        rows = self.database.query("select id, tenant, data from conversations where id = ?", (_storable(name),))
        return next(iter(_conversations(rows)), None)

    def list_conversations(self, tenant: str, limit: int) -> list[StoredConversation]:
        """Give the conversations of a tenant that were used last."""
        rows = self.database.query(
            "select id, tenant, data from conversations where tenant = ? order by seen desc, id limit ?",
            (_storable(tenant), limit),
        )
        return _conversations(rows)

    # -- responses -----------------------------------------------------------------------------------------------------

    def put_response(self, row: StoredReply, now: int) -> None:
        """Store a response of the Responses protocol."""
        self.put_all((row,), now)

    def get_response(self, name: str, tenant: str) -> bytes | None:
        """Give a stored response of the tenant."""
        return self._one("select data from responses where id = ? and tenant = ?", (_storable(name), _storable(tenant)))

    def _one(self, statement: str, values: tuple[str, ...]) -> bytes | None:
        rows = self.database.query(statement, values)
        return bytes(rows[0][0]) if rows and isinstance(rows[0][0], (bytes, memoryview)) else None

    # -- expiry --------------------------------------------------------------------------------------------------------

    def sweep(self, limits: Limits, now: int) -> int:
        """Delete what is too old, then the oldest states until the rest fits; give the number of deleted states."""
        with self.database.transaction() as transaction:
            count = transaction.run("delete from states where seen < ?", (now - limits.state_age,))
            transaction.run("delete from responses where seen < ?", (now - limits.state_age,))
            transaction.run("delete from conversations where seen < ?", (now - limits.state_age,))
            transaction.run("delete from requests where time < ?", (now - limits.request_age,))
            return (
                count
                + _shrink(transaction, "states", limits.state_bytes)
                + _shrink(transaction, "responses", limits.state_bytes)
            )

    def delete_tenant(self, tenant: str) -> None:
        """Delete everything of a tenant."""
        with self.database.transaction() as transaction:
            for table in ("states", "requests", "responses", "conversations"):
                transaction.run(f"delete from {table} where tenant = ?", (_storable(tenant),))  # noqa: S608

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _conversations(rows: Iterable[Sequence[object]]) -> list[StoredConversation]:
    return [StoredConversation(str(name), str(tenant), _bytes(data)) for name, tenant, data in rows]


def _bytes(data: object) -> bytes:
    return bytes(data) if isinstance(data, (bytes, memoryview)) else b""  # pyright: ignore[reportUnknownArgumentType]


def _shrink(transaction: Transaction, table: str, most: int) -> int:
    """Delete the rows that were not used for the longest time, until at most `most` bytes are left."""
    rows = transaction.read(
        f"select id from (select id, sum(size) over (order by seen desc, id) as total from {table}) as sized"  # noqa: S608
        " where total > ?",
        (most,),
    )
    if rows:
        transaction.run_many(f"delete from {table} where id = ?", rows)  # noqa: S608
    return len(rows)


def _storable(text: str) -> str:
    """Give a text that every database stores: PostgreSQL has no null character, and neither has half a surrogate."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
