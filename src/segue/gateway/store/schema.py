"""The tables of a store, as a list of migrations. One schema serves SQLite and PostgreSQL.

A migration that was released is never changed; a new one is added at the end. `{bytes}` is the type for bytes, which
the two databases name differently.

- `states`: the states of replies. They have signatures and thinking, and no texts of the conversation.
- `state_keys`: under which keys a state is found.
- `requests`: one row for each request, without content.
- `responses`: the replies of the Responses protocol that a client asked to store, with their content.
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
)
META: Final = "create table if not exists meta (name text primary key, value text not null)"
VERSION_NAME: Final = "schema"
