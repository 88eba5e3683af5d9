"""The tables of a store, as a list of migrations. One schema serves SQLite and PostgreSQL.

A migration that was released is never changed; a new one is added at the end. What the two databases name differently
is in braces: `{bytes}` is the type for bytes, `{id}` that of an integer that a table is in the order of, and
`{in_order}` is what keeps a table in the order of its key.

- `states`: the states of replies. They have signatures and thinking, and no texts of the conversation.
- `state_keys`: under which keys a state is found, as integers (`keyed_states.py`).
- `requests`: one row for each request, without content.
- `responses`: the replies of the Responses protocol that a client asked to store, with their content.
- `conversations`: the model that answered each conversation last, and the one that was chosen for it.
- `keys`: the keys of clients, by their SHA-256 digests; the keys themselves are nowhere.
- `ledgers`: what each key spent, and what its running requests hold (`ledger.py`).
- `contents`: what requests and replies said, if `state.content` is set; compressed.
- `meta`: the version of the schema, and the key of the envelopes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from segue.gateway.store.database import Transaction
from segue.gateway.store.keyed_states import move_states

MIGRATIONS: Final[tuple[tuple[str | Callable[[Transaction], object], ...], ...]] = (
    (
        (
            "create table states (id text primary key, tenant text not null, made bigint not null,"
            " seen bigint not null, size bigint not null, data {bytes} not null)"
        ),
        "create index states_seen on states (seen)",
        (
            "create table state_keys (key text not null, state text not null references states (id) on delete cascade,"
            " made bigint not null, primary key (key, state))"
        ),
        "create index state_keys_state on state_keys (state)",
        (
            "create table requests (id text primary key, tenant text not null, time bigint not null,"
            " data {bytes} not null)"
        ),
        "create index requests_time on requests (time)",
        (
            "create table responses (id text primary key, tenant text not null, seen bigint not null,"
            " size bigint not null, data {bytes} not null)"
        ),
        "create index responses_seen on responses (seen)",
    ),
    (
        (
            "create table conversations (id text primary key, tenant text not null, seen bigint not null,"
            " data {bytes} not null)"
        ),
        "create index conversations_seen on conversations (seen)",
    ),
    (
        (
            "create table keys (id text primary key, digest text not null unique, name text not null,"
            " revoked bigint, data {bytes} not null)"
        ),
        "create unique index keys_name on keys (name) where revoked is null",
        "create table ledgers (key text primary key, data {bytes} not null)",
    ),
    (
        # Everything of a conversation can be erased; rows of earlier versions expire.
        "alter table states add column conversation text not null default ''",
        "create index states_conversation on states (conversation)",
        "alter table requests add column conversation text not null default ''",
        "create index requests_conversation on requests (conversation)",
        "create index requests_order on requests (time desc, id)",
        "alter table responses add column conversation text not null default ''",
        "create index responses_conversation on responses (conversation)",
        (
            "create table contents (id text primary key, tenant text not null, conversation text not null,"
            " seen bigint not null, size bigint not null, data {bytes} not null)"
        ),
        "create index contents_seen on contents (seen)",
        "create index contents_conversation on contents (conversation)",
    ),
    (
        # Each key has a share of every table: sizes are added up by tenant. Rows of earlier versions count nothing.
        "alter table requests add column size bigint not null default 0",
        "alter table conversations add column size bigint not null default 0",
        "create index states_share on states (tenant, seen, size)",
        "create index requests_share on requests (tenant, time, size)",
        "create index responses_share on responses (tenant, seen, size)",
        "create index conversations_share on conversations (tenant, seen, size)",
        "create index contents_share on contents (tenant, seen, size)",
    ),
    (
        # States are found by integers, and the times of requests are in one index instead of two. What finds a state is
        # sorted before it is added: else every row would change another page. What is not needed goes first, so that
        # its pages are used again.
        "drop index states_seen",
        "drop index states_conversation",
        "drop index states_share",
        "drop index requests_order",
        "alter table states rename to old_states",
        "alter table state_keys rename to old_state_keys",
        "create index old_states_made on old_states (made, id)",
        (
            "create table states (id {id} primary key, tenant text not null, seen bigint not null,"
            " size bigint not null, conversation text not null, keys text not null, data {bytes} not null)"
        ),
        "create table moved_keys (key bigint not null, state bigint not null)",
        move_states,
        "drop table old_state_keys",
        "drop table old_states",
        "create table state_keys (key bigint not null, state bigint not null, primary key (key, state)){in_order}",
        "insert into state_keys (key, state) select distinct key, state from moved_keys order by key, state",
        "drop table moved_keys",
        "create index states_seen on states (seen)",
        "create index states_conversation on states (conversation)",
        "create index states_share on states (tenant, seen, size)",
    ),
)
NAMES: Final = {
    "sqlite": {"bytes": "blob", "id": "integer", "in_order": " without rowid"},
    "postgresql": {"bytes": "bytea", "id": "bigint", "in_order": ""},
}
"""What replaces the names in braces."""
META: Final = "create table if not exists meta (name text primary key, value text not null)"
SET_META: Final = "insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value"
VERSION_NAME: Final = "schema"
