"""The tables of a store, as a list of migrations. One schema serves SQLite and PostgreSQL.

A migration that was released is never changed; a new one is added at the end. `{bytes}` is the type for bytes, which
the two databases name differently.

- `states`: the states of replies. They have signatures and thinking, and no texts of the conversation.
- `state_keys`: under which keys a state is found.
- `requests`: one row for each request, without content.
- `responses`: the replies of the Responses protocol that a client asked to store, with their content.
- `conversations`: the model that answered each conversation last, and the one that was chosen for it.
- `keys`: the keys of clients, by their SHA-256 digests; the keys themselves are nowhere.
- `ledgers`: what each key spent, and what its running requests hold (`ledger.py`).
- `contents`: what requests and replies said, if `state.content` is set; compressed.
- `meta`: the version of the schema, and the key of the envelopes.
"""

from __future__ import annotations

from typing import Final

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
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
)
META: Final = "create table if not exists meta (name text primary key, value text not null)"
SET_META: Final = "insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value"
VERSION_NAME: Final = "schema"
