"""`Store`: states by their keys, rows of requests, and stored responses, in a database.

All values are bound parameters. Rows are written in the order of their ids, table by table, so that two gateways never
wait for each other in turn. Writing the same row twice is the same as writing it once, so that a write whose outcome is
not known may be repeated. The functions block; `StoreService` calls them without blocking an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from secrets import token_hex
from typing import Any, Final, NamedTuple, TypeAlias, final

import msgspec

from segue.envelope.state import State, dump_state, load_state
from segue.errors import SettingsError
from segue.gateway.config import StateTable
from segue.gateway.logs import find_logger
from segue.gateway.shares import find_share
from segue.gateway.store.accounts import StoredAccount, Syncing
from segue.gateway.store.database import Database, Row, StoreBusy, Transaction, Value, clean_text
from segue.gateway.store.keyed_states import (
    StateRow,
    bytes_of,
    delete_states,
    id_of,
    join_keys,
    numbers_of,
    put_states,
    split_keys,
)
from segue.gateway.store.schema import META, MIGRATIONS, NAMES, SET_META, VERSION_NAME

_LOG: Final = find_logger()
DAY: Final = 86_400_000
"""Milliseconds."""
_KEY_NAME: Final = "envelope_key"
_PROBE_NAME: Final = "probe"
_CLOCK_NAME: Final = "sweep_clock"
_LONGEST_STEP: Final = DAY
"""Milliseconds by which the clock of expiry advances at most from one sweep to the next."""
_MOST_PARAMETERS: Final = 500
_STEP: Final = 4
"""Parameters are filled up to a multiple of it: each number of them is a statement that a database has to prepare."""
_FIRST: Final = itemgetter(0)
_MOST_BUSY: Final = 120
"""How often a store is tried that another program has locked. Each try takes a second."""
_NEWEST: Final = (
    "select max(seen) from (select seen from states union all select seen from responses"
    " union all select seen from conversations union all select time from requests) as rows"
)
_TABLES: Final = ("states", "requests", "responses", "conversations", "contents")
"""Those that have a tenant."""
_USE_STATE: Final = "update states set seen = ? where id = ? and seen < ?"
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
    "select s.id, s.tenant, s.data, s.seen, s.keys from (values {}) as wanted"
    " cross join state_keys k cross join states s where k.key = wanted.column1 and s.id = k.state union all "
)
"""In this form SQLite makes no table of the keys first. A state that several keys find comes several times."""
_FIND_CONVERSATION: Final = "select -1, tenant, data, 0, '' from conversations where id = ?"
"""Both at once: two queries take twice as long."""
_READ_CONVERSATIONS: Final = "select id, data from conversations where id in ({})"
_IN_ORDER: Final = ' order by id collate "C"'
"""In that of Python."""
_PUT_CONVERSATION: Final = (
    "insert into conversations (id, tenant, seen, data, size) values (?, ?, ?, ?, ?)"
    " on conflict (id) do update set seen = excluded.seen, data = excluded.data, size = excluded.size"
)


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
class StoredState(msgspec.Struct, frozen=True):
    """A state to store under its keys, and when it was made (without it: when it is stored).

    A write of an equal state of the same time is a repetition.
    """

    tenant: str
    keys: tuple[str, ...]
    state: State
    conversation: str = ""
    time: int | None = None


@final
class StoredRow(msgspec.Struct, frozen=True):
    """A row of a request: its id, its tenant, its data, and when the request began (without it: when it is stored)."""

    id: str
    tenant: str
    data: bytes
    time: int | None = None
    conversation: str = ""


@final
class StoredReply(msgspec.Struct, frozen=True):
    """A reply of the Responses protocol that the client asked to store."""

    id: str
    tenant: str
    data: bytes
    conversation: str = ""


@final
class StoredContent(msgspec.Struct, frozen=True):
    """What a request and its reply said, under the id of the request."""

    id: str
    tenant: str
    data: bytes
    conversation: str


@final
class StoredConversation(msgspec.Struct, frozen=True):
    """What is kept of a conversation: its models, no content.

    `merge` adds it to what the store has, which another gateway may have written; without it, it replaces that.
    """

    id: str
    tenant: str
    data: bytes
    merge: Callable[[bytes], bytes] | None = None


@final
class UsedStates(msgspec.Struct, frozen=True):
    """The ids of states that were used again, which puts off their expiry."""

    ids: tuple[int, ...]


_NONE_USED: Final = UsedStates(())


@final
class Found(msgspec.Struct, frozen=True):
    """The states of keys, those whose use has to be noted, and a conversation if it is in the store."""

    states: dict[str, list[State]]
    used: UsedStates
    conversation: StoredConversation | None


@final
class StoredValue(msgspec.Struct, frozen=True):
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
        self._lock = "" if database.is_local else " for update"
        try:
            for left in reversed(range(_MOST_BUSY)):
                try:
                    self._migrate()
                    break
                except StoreBusy:  # another gateway may move an earlier store: a minute for a million keys
                    if not left:
                        raise
        except BaseException:
            database.close()
            raise

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
            for number, steps in enumerate(MIGRATIONS[version:], version + 1):
                for step in steps:
                    if isinstance(step, str):
                        transaction.run(step.format_map(NAMES["sqlite" if self.database.is_local else "postgresql"]))
                    else:
                        step(transaction)
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
        given: dict[type[Stored], list[Any]] = {}
        for each in work:
            given.setdefault(type(each), []).append(each)
        states = [_row_of_state(each, now) for each in given.get(StoredState, ())]
        used = {(now, number, now) for each in given.get(UsedStates, ()) for number in each.ids}
        requests = [
            (
                each.id,
                each.tenant,
                now if each.time is None else each.time,
                each.data,
                each.conversation,
                len(each.data),
            )
            for each in given.get(StoredRow, ())
        ]
        replies = [
            (each.id, each.tenant, now, len(each.data), each.data, each.conversation)
            for each in given.get(StoredReply, ())
        ]
        contents = {  # of the same request the newest
            each.id: (each.id, each.tenant, each.conversation, now, len(each.data), each.data)
            for each in given.get(StoredContent, ())
        }
        accounts = Syncing()
        for each in given.get(StoredAccount, ()):
            accounts.add(each)
        size = sum([row[3] for row in states]) + sum([row[5] for row in requests]) + sum([row[3] for row in replies])
        with accounts, self.database.transaction(waits=waits) as transaction:
            # The order in which rows are locked is the same in every gateway.
            if states:
                put_states(transaction, states, lock=self._lock)
            if used:
                transaction.run_many(_USE_STATE, sorted(used))
            if requests:
                transaction.run_many(_PUT_REQUEST, sorted(requests, key=_FIRST))
            if replies:
                transaction.run_many(_PUT_REPLY, sorted(replies, key=_FIRST))
            if contents:
                transaction.run_many(_PUT_CONTENT, sorted(contents.values()))
            if StoredConversation in given:
                size += self._put_conversations(transaction, given[StoredConversation], now)
            accounts.write(transaction, now, is_local=self.database.is_local)
            for name_and_value in sorted({each.name: each.value for each in given.get(StoredValue, ())}.items()):
                transaction.run(SET_META, name_and_value)
        self.grown += size + sum([row[4] for row in contents.values()])

    def _put_conversations(self, transaction: Transaction, given: Iterable[StoredConversation], now: int) -> int:
        """Merge conversations with what the store has of them; return how many bytes they have."""
        changes: dict[str, list[StoredConversation]] = {}
        for each in given:
            changes.setdefault(clean_text(each.id), []).append(each)
        names = sorted(changes)
        known: dict[str, bytes] = {}
        for start in range(0, len(names), _MOST_PARAMETERS):
            some = names[start : start + _MOST_PARAMETERS]
            statement = _READ_CONVERSATIONS.format(_marks(some)) + (self._lock and _IN_ORDER + self._lock)
            known |= {str(name): bytes_of(data) for name, data in transaction.read(statement, some)}
        rows: list[tuple[str, str, int, bytes, int]] = []
        for name in names:
            data = known.get(name, b"")
            for each in changes[name]:
                data = each.merge(data) if data and each.merge is not None else each.data
            rows.append((name, changes[name][-1].tenant, now, data, len(data)))
        transaction.run_many(_PUT_CONVERSATION, rows)
        return sum([row[4] for row in rows])

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

    def find(self, keys: Sequence[str], conversation: str, now: int, tenant: str = "") -> Found:
        """Return the states of a tenant's keys, those whose use has to be noted, and a conversation.

        The newest states come first, and equal ones count once.
        """
        numbers = numbers_of(keys)
        rows = self._find_rows(numbers[:_MOST_PARAMETERS], conversation)
        for start in range(_MOST_PARAMETERS, len(numbers), _MOST_PARAMETERS):
            rows += self._find_rows(numbers[start : start + _MOST_PARAMETERS], conversation)
        kept: StoredConversation | None = None
        states: dict[int, tuple[str, bytes]] = {}
        stale: list[int] = []
        owner: str | None = None
        for number, given, data, seen, text in rows:
            assert isinstance(number, int)
            if number < 0:
                kept = StoredConversation(conversation, str(given), bytes_of(data))
                continue
            if owner is None:
                owner = clean_text(tenant)
            if number not in states and given == owner:
                assert isinstance(seen, int)
                states[number] = str(text), bytes_of(data)
                if now - seen > DAY:
                    stale.append(number)
        if not states:
            return Found({}, _NONE_USED, kept)
        return Found(_read_states(states, frozenset(keys)), UsedStates(tuple(stale)), kept)

    def _find_rows(self, numbers: tuple[int, ...], conversation: str) -> list[Row]:
        numbers += numbers[-1:] * (-len(numbers) % _STEP)
        return self.database.query(_find_statement(len(numbers)), (conversation,), numbers=numbers)

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
        return [(str(name), str(owner), bytes_of(data)) for name, owner, data in rows]

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
        return [StoredConversation(str(name), str(owner), bytes_of(data)) for name, owner, data in rows]

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
            count = delete_states(transaction, "seen < ?", (clock - limits.state_age,))
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
                _delete_rows(transaction, table, "tenant = ?", (tenant,))

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
                _delete_rows(transaction, table, f"{column} = ?{of_tenant}", values)
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


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


@lru_cache(_MOST_PARAMETERS // _STEP + 1)
def _find_statement(count: int) -> str:
    return (_FIND_STATES.format(", ".join(["(?)"] * count)) if count else "") + _FIND_CONVERSATION


def _read_states(rows: Mapping[int, tuple[str, bytes]], wanted: frozenset[str]) -> dict[str, list[State]]:
    """Return the states of those keys that are in full in their rows, the newest first."""
    found: dict[str, dict[bytes, State]] = {}
    for number in sorted(rows, reverse=True):
        text, data = rows[number]
        if (state := load_state(data)) is not None:
            for key in wanted.intersection(split_keys(text)):
                found.setdefault(key, {}).setdefault(data, state)
    return {key: [*states.values()] for key, states in found.items()}


def _row_of_state(given: StoredState, now: int) -> StateRow:
    data, keys = dump_state(given.state), join_keys(given.keys)
    number = id_of(now if given.time is None else given.time, keys)
    return number, given.tenant, now, len(data), given.conversation, keys, data


def _delete_rows(transaction: Transaction, table: str, where: str, values: Sequence[Value]) -> int:
    """Delete rows of a table; return how many."""
    if table == "states":
        return delete_states(transaction, where, values)
    return transaction.run(f"delete from {table} where {where}", values)  # noqa: S608


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
        for start in range(0, len(rows), _MOST_PARAMETERS):
            some = [row[0] for row in rows[start : start + _MOST_PARAMETERS]]
            deleted += _delete_rows(transaction, table, f"id in ({_marks(some)})", some)
    return deleted
