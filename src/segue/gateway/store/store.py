"""`Store`: states by their keys, rows of requests, and stored responses, in a database.

All values are bound parameters. Rows are written in the order of their ids, table by table, so that two gateways never
wait for each other in turn. Writing the same row twice is the same as writing it once, so that a write whose outcome is
not known may be repeated. The functions block; `StoreService` calls them without blocking an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from secrets import token_hex
from typing import Final, NamedTuple, TypeAlias, cast, final

from segue.envelope.canonical import text_bytes
from segue.envelope.state import State, dump_state, load_state
from segue.errors import SettingsError
from segue.gateway.config import StateTable
from segue.gateway.logs import find_logger
from segue.gateway.shares import find_share
from segue.gateway.store.accounts import StoredAccount, Syncing
from segue.gateway.store.database import Database, Transaction
from segue.gateway.store.schema import META, MIGRATIONS, SET_META, VERSION_NAME

_LOG: Final = find_logger()
DAY: Final = 86_400_000
"""Milliseconds."""
_KEY_NAME: Final = "envelope_key"
_PROBE_NAME: Final = "probe"
_CLOCK_NAME: Final = "sweep_clock"
_LONGEST_STEP: Final = DAY
"""Milliseconds by which the clock of expiry advances at most from one sweep to the next."""
_MOST_PARAMETERS: Final = 500
_NEWEST: Final = (
    "select max(seen) from (select seen from states union all select seen from responses"
    " union all select seen from conversations union all select time from requests) as rows"
)
_TABLES: Final = ("states", "requests", "responses", "conversations", "contents")
"""Those that have a tenant."""
_PUT_STATE: Final = (
    "insert into states (id, tenant, made, seen, size, data, conversation) values (?, ?, ?, ?, ?, ?, ?)"
    " on conflict do nothing"
)
_USE_STATE: Final = "update states set seen = ? where id = ? and seen < ?"
_PUT_KEY: Final = "insert into state_keys (key, state, made) values (?, ?, ?) on conflict do nothing"
_PUT_REQUEST: Final = (
    "insert into requests (id, tenant, time, data, conversation, size) values (?, ?, ?, ?, ?, ?) on conflict do nothing"
)
_PUT_REPLY: Final = (
    "insert into responses (id, tenant, seen, size, data, conversation) values (?, ?, ?, ?, ?, ?)"
    " on conflict do nothing"
)
_PUT_CONTENT: Final = (
    "insert into contents (id, tenant, conversation, seen, size, data) values (?, ?, ?, ?, ?, ?) on conflict do nothing"
)
_FIND_STATES: Final = (
    "select k.key, s.id, s.seen, s.data, k.made from state_keys k join states s on s.id = k.state"
    " where k.key in ({}) union all "
)
_FIND_CONVERSATION: Final = "select '', tenant, 0, data, 0 from conversations where id = ? order by 5 desc, 2"
"""Both at once: two queries take twice as long."""
_READ_CONVERSATION: Final = "select data from conversations where id = ?"
_PUT_CONVERSATION: Final = (
    "insert into conversations (id, tenant, seen, data, size) values (?, ?, ?, ?, ?)"
    " on conflict (id) do update set seen = excluded.seen, data = excluded.data, size = excluded.size"
)
_WRITES: Final = (_PUT_STATE, _USE_STATE, _PUT_KEY, _PUT_REQUEST, _PUT_REPLY, _PUT_CONTENT)
"""In the order in which they are run, before conversations and accounts."""
_SIZES: Final = {_PUT_STATE: 4, _PUT_REQUEST: 5, _PUT_REPLY: 3, _PUT_CONTENT: 4}
"""Which value of their rows is the number of bytes."""


@final
class StoreLimits(NamedTuple):
    """Milliseconds since a state was last used, bytes of all states, and the ages of rows and of contents."""

    state_age: int = 30 * DAY
    state_bytes: int = 2_000_000_000
    request_age: int = 7 * DAY
    content_age: int = 7 * DAY

    @classmethod
    def of_days(cls, table: StateTable) -> StoreLimits:
        """Return the limits of a configuration."""
        return cls(
            round(table.days * DAY),
            table.megabytes * 1_000_000,
            round(table.request_days * DAY),
            round(table.content_days * DAY),
        )


@final
class StoredState(NamedTuple):
    """A state to store under its keys."""

    tenant: str
    keys: tuple[str, ...]
    state: State
    conversation: str = ""


@final
class StoredRow(NamedTuple):
    """A row of a request: its id, its tenant, its data, and when the request began (without it: when it is stored)."""

    id: str
    tenant: str
    data: bytes
    time: int | None = None
    conversation: str = ""


@final
class StoredReply(NamedTuple):
    """A reply of the Responses protocol that the client asked to store."""

    id: str
    tenant: str
    data: bytes
    conversation: str = ""


@final
class StoredContent(NamedTuple):
    """What a request and its reply said, under the id of the request."""

    id: str
    tenant: str
    data: bytes
    conversation: str


@final
class StoredConversation(NamedTuple):
    """What is kept of a conversation: its models, no content.

    `merge` adds it to what the store has, which another gateway may have written; without it, it replaces that.
    """

    id: str
    tenant: str
    data: bytes
    merge: Callable[[bytes], bytes] | None = None


@final
class UsedStates(NamedTuple):
    """The ids of states that were used again, which puts off their expiry."""

    ids: tuple[str, ...]


@final
class Found(NamedTuple):
    """The states of keys, those whose use has to be noted, and a conversation if it is in the store."""

    states: dict[str, list[State]]
    used: UsedStates
    conversation: StoredConversation | None


@final
class StoredValue(NamedTuple):
    """A value of the gateway itself under its name; it replaces the one before."""

    name: str
    value: str


Stored: TypeAlias = (
    StoredState
    | StoredRow
    | StoredReply
    | StoredConversation
    | StoredContent
    | UsedStates
    | StoredAccount
    | StoredValue
)


class Store:
    """The tables of a gateway in one database. `now` is Unix milliseconds in all of its methods.

    Raises:
        SettingsError: a later version of segue made the tables; they are unchanged.
    """

    def __init__(self, database: Database) -> None:
        self.database: Database = database
        self.grown: int = 0
        """Bytes that were written since the last sweep."""
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
            if version > len(MIGRATIONS):
                # Its columns may have another meaning: rows of this version could make it unreadable for both.
                raise SettingsError(
                    f"the store has schema {version}, of a later version of segue; this one reads and writes schema"
                    f" {len(MIGRATIONS)}: upgrade segue, or use another store",
                    key="state.store",
                )
            for number, statements in enumerate(MIGRATIONS[version:], version + 1):
                for statement in statements:
                    transaction.run(statement.format(bytes=self.database.bytes_type))
                transaction.run("delete from meta where name = ?", (VERSION_NAME,))
                transaction.run("insert into meta (name, value) values (?, ?)", (VERSION_NAME, str(number)))

    def envelope_key(self) -> bytes:
        """Return the secret key of the envelopes; it is made once and shared by all gateways of the store."""
        with self.database.transaction() as transaction:
            transaction.run(
                "insert into meta (name, value) values (?, ?) on conflict do nothing", (_KEY_NAME, token_hex(32))
            )
            return bytes.fromhex(str(transaction.read("select value from meta where name = ?", (_KEY_NAME,))[0][0]))

    # -- states --------------------------------------------------------------------------------------------------------

    def put_all(self, work: Iterable[Stored], now: int, *, waits: bool = True) -> None:
        """Store states, rows of requests, replies, conversations, contents and accounts, in one transaction.

        Without `waits` it fails at once where another transaction is in the way.
        """
        tables: dict[str, dict[object, tuple[str | int | bytes, ...]]] = {statement: {} for statement in _WRITES}
        conversations: dict[str, list[StoredConversation]] = {}
        accounts = Syncing()
        values: dict[str, str] = {}
        for each in work:
            match each:
                case StoredState():
                    data = dump_state(each.state)
                    name = sha256(text_bytes(each.tenant) + b"\x00" + data).hexdigest()[:40]
                    row = name, each.tenant, now, now, len(data), data, each.conversation
                    tables[_PUT_STATE][name] = row
                    tables[_PUT_KEY].update({(key, name): (key, name, now) for key in each.keys})
                case StoredRow():
                    time = now if each.time is None else each.time
                    row = each.id, each.tenant, time, each.data, each.conversation, len(each.data)
                    tables[_PUT_REQUEST].setdefault(each.id, row)
                case StoredReply():
                    row = each.id, each.tenant, now, len(each.data), each.data, each.conversation
                    tables[_PUT_REPLY].setdefault(each.id, row)
                case StoredConversation():
                    conversations.setdefault(each.id, []).append(each)
                case StoredContent():
                    row = each.id, each.tenant, each.conversation, now, len(each.data), each.data
                    tables[_PUT_CONTENT][each.id] = row
                case UsedStates():
                    tables[_USE_STATE].update({name: (now, name, now) for name in each.ids})
                case StoredAccount():
                    accounts.add(each)
                case StoredValue():
                    values[each.name] = each.value
        with accounts, self.database.transaction(waits=waits) as transaction:
            for statement, rows in tables.items():
                if rows:
                    # The order in which rows are locked is the same in every gateway.
                    transaction.run_many(statement, sorted(rows.values()))
            for name, given in sorted(conversations.items()):
                read = transaction.read(_READ_CONVERSATION + ("" if self.database.is_local else " for update"), (name,))
                data = _bytes(read[0][0]) if read else b""
                for one in given:
                    data = one.merge(data) if data and one.merge is not None else one.data
                transaction.run_many(_PUT_CONVERSATION, [(name, given[-1].tenant, now, data, len(data))])
                self.grown += len(data)
            accounts.write(transaction, now, is_local=self.database.is_local)
            for name_and_value in sorted(values.items()):
                transaction.run(SET_META, name_and_value)
        sizes = [row[at] for statement, at in _SIZES.items() for row in tables[statement].values()]
        self.grown += sum(cast("list[int]", sizes))

    def get_value(self, name: str) -> str | None:
        """Return a value of the gateway itself."""
        rows = self.database.query("select value from meta where name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def probe(self, now: int) -> None:
        """Write one value, to find out whether the database takes writes."""
        with self.database.transaction() as transaction:
            transaction.run(SET_META, (_PROBE_NAME, str(now)))

    def newest_time(self) -> int | None:
        """Return when something was stored or used last."""
        newest = self.database.query(_NEWEST)[0][0]
        return newest if isinstance(newest, int) else None

    def find(self, keys: Iterable[str], conversation: str, now: int) -> Found:
        """Return the states of keys, the newest first, those whose use has to be noted, and a conversation."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, list[State]] = {}
        read: dict[str, State | None] = {}
        stale: list[str] = []
        kept: StoredConversation | None = None
        for start in range(0, len(wanted) or 1, _MOST_PARAMETERS):
            some = wanted[start : start + _MOST_PARAMETERS]
            statement = _FIND_STATES.format(", ".join("?" * len(some))) if some else ""
            for key, given, seen, data, _ in self.database.query(statement + _FIND_CONVERSATION, (*some, conversation)):
                name = str(given)
                if not key:
                    kept = StoredConversation(conversation, name, _bytes(data))
                    continue
                if name not in read:
                    read[name] = load_state(bytes(data)) if isinstance(data, (bytes, memoryview)) else None
                    if isinstance(seen, int) and now - seen > DAY:
                        stale.append(name)
                if (state := read[name]) is not None:
                    found.setdefault(str(key), []).append(state)
        return Found(found, UsedStates(tuple(stale)), kept)

    # -- rows of requests ----------------------------------------------------------------------------------------------

    def list_requests(
        self, tenant: str | None, limit: int, before: tuple[int, str] | None = None, conversation: str | None = None
    ) -> list[tuple[str, str, bytes]]:
        """Return the id, the tenant and the row of requests, the newest first, after a place.

        Of one tenant or of all.
        """
        given = {"tenant = ?": tenant, "conversation = ?": conversation}
        terms = [term for term, value in given.items() if value is not None]
        values: list[str | int] = [value for value in given.values() if value is not None]
        if before is not None:
            terms.append("(time < ? or (time = ? and id > ?))")
            values += [before[0], before[0], before[1]]
        where = f" where {' and '.join(terms)}" if terms else ""
        rows = self.database.query(
            f"select id, tenant, data from requests{where} order by time desc, id limit ?",  # noqa: S608
            (*values, limit),
        )
        return [(str(name), str(owner), _bytes(data)) for name, owner, data in rows]

    def get_request(self, name: str, tenant: str | None) -> bytes | None:
        """Return the row of one request, of the tenant or of any."""
        return self._one("select data from requests where id = ?", name, tenant)

    # -- conversations -------------------------------------------------------------------------------------------------

    def list_conversations(self, tenant: str | None, limit: int) -> list[StoredConversation]:
        """Return the conversations of a tenant, or of all, that were used last."""
        of_tenant, values = ("", (limit,)) if tenant is None else (" where tenant = ?", (tenant, limit))
        rows = self.database.query(
            f"select id, tenant, data from conversations{of_tenant} order by seen desc, id limit ?",  # noqa: S608
            values,
        )
        return [StoredConversation(str(name), str(owner), _bytes(data)) for name, owner, data in rows]

    # -- responses -----------------------------------------------------------------------------------------------------

    def get_response(self, name: str, tenant: str) -> bytes | None:
        """Return a stored response of the tenant."""
        return self._one("select data from responses where id = ?", name, tenant)

    def delete_response(self, name: str, tenant: str) -> None:
        """Delete a stored response of the tenant."""
        with self.database.transaction() as transaction:
            transaction.run("delete from responses where id = ? and tenant = ?", (name, tenant))

    def _one(self, statement: str, name: str, tenant: str | None, order: str = "") -> bytes | None:
        of_tenant, values = ("", (name,)) if tenant is None else (" and tenant = ?", (name, tenant))
        rows = self.database.query(statement + of_tenant + order, values)
        return bytes(rows[0][0]) if rows and isinstance(rows[0][0], (bytes, memoryview)) else None

    # -- expiry --------------------------------------------------------------------------------------------------------

    def sweep(self, limits: StoreLimits, now: int) -> int:
        """Delete what is too old, then what is too much; return the number of rows that were too much, and old states.

        Every table holds so many bytes at most. Keys that have less than their equal share of them lose nothing, the
        others lose what they did not use for the longest time.

        Age is measured by its own clock, which follows `now` by at most a day in each sweep. A system clock that
        is wrong for a while therefore deletes next to nothing, and after a long pause the sweeps catch up one by one.
        """
        with self.database.transaction() as transaction:
            clock = _advance_clock(transaction, now)
            count = transaction.run("delete from states where seen < ?", (clock - limits.state_age,))
            transaction.run("delete from responses where seen < ?", (clock - limits.state_age,))
            transaction.run("delete from conversations where seen < ?", (clock - limits.state_age,))
            transaction.run("delete from requests where time < ?", (clock - limits.request_age,))
            transaction.run("delete from contents where seen < ?", (clock - limits.content_age,))
            count += sum(_shrink(transaction, table, limits.state_bytes) for table in _TABLES)
        self.grown = 0
        return count

    def delete_tenant(self, tenant: str) -> None:
        """Delete everything of a tenant."""
        with self.database.transaction() as transaction:
            for table in _TABLES:
                transaction.run(f"delete from {table} where tenant = ?", (tenant,))  # noqa: S608

    def delete_request(self, name: str, tenant: str | None) -> int:
        """Delete the row and the content of a request, and what it left if its conversation has no name itself."""
        columns = {"states": "conversation", "requests": "id", "responses": "conversation", "contents": "id"}
        return self._delete(columns, name, tenant)

    def delete_conversation(self, name: str, tenant: str | None) -> int:
        """Delete everything of a conversation, of one tenant or of all; return how many rows that were."""
        return self._delete(dict.fromkeys(_TABLES, "conversation") | {"conversations": "id"}, name, tenant)

    def _delete(self, columns: dict[str, str], name: str, tenant: str | None) -> int:
        """Delete the rows of tables in whose column the name is; return how many rows that were."""
        of_tenant, values = ("", (name,)) if tenant is None else (" and tenant = ?", (name, tenant))
        with self.database.transaction() as transaction:
            return sum(
                transaction.run(f"delete from {table} where {column} = ?{of_tenant}", values)  # noqa: S608
                for table, column in columns.items()
            )

    # -- the console ---------------------------------------------------------------------------------------------------

    def get_content(self, name: str, tenant: str | None) -> bytes | None:
        """Return what a request and its reply said."""
        return self._one("select data from contents where id = ?", name, tenant)

    def newest_content(self, conversation: str, tenant: str | None) -> bytes | None:
        """Return what the newest request of a conversation and its reply said."""
        newest = " order by seen desc, id limit 1"
        return self._one("select data from contents where conversation = ?", conversation, tenant, newest)

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _advance_clock(transaction: Transaction, now: int) -> int:
    """Return the time by which age is measured, and note it."""
    rows = transaction.read("select value from meta where name = ?", (_CLOCK_NAME,))
    if rows:
        last = int(str(rows[0][0]))
    else:
        newest = transaction.read(_NEWEST)[0][0]
        last = newest if isinstance(newest, int) else now
    clock = min(now, last + _LONGEST_STEP)
    if now - clock > _LONGEST_STEP:
        _LOG.warning(
            "the system clock is %d days ahead of the last sweep of the store; expiry follows it by one day a sweep",
            (now - clock) // DAY,
        )
    transaction.run(SET_META, (_CLOCK_NAME, str(clock)))
    return clock


def _bytes(data: object) -> bytes:
    return bytes(data) if isinstance(data, (bytes, memoryview)) else b""  # pyright: ignore[reportUnknownArgumentType]


def _shrink(transaction: Transaction, table: str, most: int) -> int:
    """Delete rows until at most `most` bytes are left: the oldest of the keys that have more than their share."""
    totals = transaction.read(f"select tenant, sum(size) from {table} group by tenant")  # noqa: S608
    sizes = {str(tenant): int(str(size)) for tenant, size in totals}
    if sum(sizes.values()) <= most:
        return 0
    share, seen, deleted = find_share(sizes.values(), most), "time" if table == "requests" else "seen", 0
    for tenant in sorted(tenant for tenant, size in sizes.items() if size > share):
        rows = transaction.read(
            f"select id from (select id, sum(size) over (order by {seen} desc, id) as total from {table}"  # noqa: S608
            " where tenant = ?) as sized where total > ?",
            (tenant, share),
        )
        transaction.run_many(f"delete from {table} where id = ?", sorted(rows, key=str))  # noqa: S608
        deleted += len(rows)
    return deleted
