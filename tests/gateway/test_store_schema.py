"""The tables of a store: earlier ones are moved, what finds states goes with them, and queries use indexes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from gateway.databases import states_of
from gateway.test_store import NOW, _state, address, server, store  # noqa: F401 - fixtures
from segue.envelope.keys import make_key
from segue.envelope.state import dump_state
from segue.errors import SettingsError
from segue.gateway.store import keyed_states, schema
from segue.gateway.store.database import Row, StoreError
from segue.gateway.store.keyed_states import numbers_of
from segue.gateway.store.opening import open_store
from segue.gateway.store.store import (
    DAY,
    Store,
    StoredContent,
    StoredConversation,
    StoredReply,
    StoredRow,
    StoredState,
    StoreLimits,
)

TEXT_KEYS = 5
"""The migrations of the versions whose keys of states were texts."""


def key(kind: str, part: object) -> str:
    return make_key(kind, b"t", f"{kind} {part}".encode())


def pairs(store: Store) -> list[Row]:  # noqa: F811
    return store.database.query("select key, state from state_keys order by state, key")


def expected(store: Store) -> list[Row]:  # noqa: F811
    """Return what has to find the states that there are."""
    rows = store.database.query("select id, keys from states")
    found = {(number, int(str(name))) for name, keys in rows for number in numbers_of(str(keys).split("\n"))}
    return sorted(found, key=lambda pair: (pair[1], pair[0]))


@pytest.fixture
def old(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:  # noqa: F811
    """Make a store of an earlier version, with states that were written as that version did."""
    with monkeypatch.context() as patched:
        patched.setattr("segue.gateway.store.store.MIGRATIONS", schema.MIGRATIONS[:TEXT_KEYS])
        opened = open_store(address)
    assert opened is not None
    with opened.database.transaction() as transaction:
        for number in range(1300):
            name, made = f"{number * 7919 % 1300:040x}", NOW + number // 3
            data = dump_state(_state(str(number)))
            transaction.run(
                "insert into states (id, tenant, made, seen, size, data, conversation) values (?, ?, ?, ?, ?, ?, ?)",
                (name, "t", made, made + 5, len(data), data, f"conv_{number % 10}"),
            )
            transaction.run_many(
                "insert into state_keys (key, state, made) values (?, ?, ?)",
                [(each, name, made) for each in (key("call", number), key("near", number % 2), key("chain", number))],
            )
    yield opened
    opened.close()


def test_a_store_of_an_earlier_version_keeps_its_states(
    old: Store,
    address: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = open_store(address)
    assert found is not None
    for number in range(1300):
        wanted = [key("call", number), key("chain", number)]
        assert states_of(found, wanted, NOW) == {each: [_state(str(number))] for each in wanted}
    near = states_of(found, [key("near", 1)], NOW)[key("near", 1)]
    assert len(near) == 650
    assert near[0] in (_state("1299"), _state("1297"))  # of the same time
    assert near[-1] == _state("1")
    assert len(pairs(found)) == 3900
    assert pairs(found) == expected(found)
    assert found.delete_conversation("conv_3", "t") == 130
    assert len(pairs(found)) == 3510
    assert sum(found.sweep(StoreLimits(), NOW + day * DAY) for day in range(33)) == 1170
    assert pairs(found) == []
    found.close()
    monkeypatch.setattr("segue.gateway.store.store.MIGRATIONS", schema.MIGRATIONS[:TEXT_KEYS])
    with pytest.raises(SettingsError, match="of a later version"):
        open_store(address)


def test_a_gateway_of_an_earlier_version_that_runs_on_harms_nothing(old: Store, address: str) -> None:  # noqa: F811
    found = open_store(address)
    assert found is not None
    before = pairs(found)
    for table, columns in (("states", "id, tenant, made, seen, size, data"), ("state_keys", "key, state, made")):
        values: list[Any] = ["x", "t", NOW, NOW, 1, b"x"] if table == "states" else ["x", "x", NOW]
        with pytest.raises(StoreError), old.database.transaction() as transaction:
            transaction.run(f"insert into {table} ({columns}) values ({', '.join('?' * len(values))})", values)
    assert pairs(found) == before
    found.close()


def test_nothing_is_left_that_finds_states_that_are_deleted(store: Store) -> None:  # noqa: F811
    for number in range(30):
        tenant = f"t{number % 3}"
        keys = (key("call", number), key("near", number % 4))
        store.put_all(
            [
                StoredState(tenant, keys, _state(str(number), 1_000), f"conv_{number % 5}"),
                StoredRow(f"req_{number}", tenant, b"row", conversation=f"conv_{number % 5}"),
                StoredReply(f"resp_{number}", tenant, b"reply", f"req_{number}"),
                StoredContent(f"req_{number}", tenant, b"content", f"conv_{number % 5}"),
            ],
            NOW + number,
        )
    assert len(pairs(store)) == 60
    assert store.delete_conversation("conv_1", "t0") == 6
    assert store.delete_conversation("conv_1", None) == 12
    store.put_all([StoredState("t0", (key("call", 99),), _state("99"), "req_0")], NOW)
    assert store.delete_request("req_0", "t1") == 0
    assert store.delete_request("req_0", "t0") == 4
    assert len(pairs(store)) == 48
    assert pairs(store) == expected(store)
    store.delete_tenant("t2")
    assert pairs(store) == expected(store)
    assert len(pairs(store)) == 32
    store.sweep(StoreLimits(state_bytes=5_000), NOW + 40)
    assert 0 < len(pairs(store)) < 16
    assert pairs(store) == expected(store)


def test_more_states_are_deleted_than_are_read_at_once(
    store: Store,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_states, "_CHUNK", 7)
    store.put_all([StoredState("t", (key("call", number),), _state(str(number)), "c") for number in range(20)], NOW)
    assert store.delete_conversation("c", "t") == 20
    assert pairs(store) == []


# -- integers that are the same ----------------------------------------------------------------------------------------


def test_a_key_with_the_integer_of_another_one_finds_nothing(store: Store) -> None:  # noqa: F811
    same = "f" * 15
    mine, other = f"call:{'0' * 25}{same}", f"call:{'1' * 25}{same}"
    assert numbers_of((mine,)) == numbers_of((other,)) == numbers_of((mine.replace("call", "near"),))
    store.put_all([StoredState("t", (mine,), _state("a"))], NOW)
    assert states_of(store, [other, mine.replace("call", "near")], NOW) == {}
    assert states_of(store, [mine], NOW, "another") == {}
    store.put_all([StoredState("t", (other,), _state("b")), StoredState("another", (mine,), _state("c"))], NOW)
    assert states_of(store, [mine, other], NOW) == {mine: [_state("a")], other: [_state("b")]}
    assert states_of(store, [mine, other], NOW, "another") == {mine: [_state("c")]}


def test_a_state_with_the_integer_of_another_one_gets_the_next(
    store: Store,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_states, "_LOW", 0)
    work = [StoredState("t", (key("call", number), "x\x00"), _state(str(number)), time=NOW) for number in range(5)]
    for batch in (work[:2], work, work[3:], [work[4]]):  # as when the outcome of a commit is not known
        store.put_all(batch, NOW)
    names = [int(str(name)) for (name,) in store.database.query("select id from states order by id")]
    assert names == [(NOW << 21) + number for number in range(5)]
    assert len(pairs(store)) == 10
    for number in range(5):
        assert states_of(store, [key("call", number)], NOW) == {key("call", number): [_state(str(number))]}
    more = StoredState("another", work[0].keys, work[0].state, time=NOW)
    store.put_all([more], NOW)
    assert states_of(store, more.keys[:1], NOW, "another") == {more.keys[0]: [more.state]}


def test_integers_of_keys_do_not_depend_on_the_keys_next_to_them() -> None:
    keys = [
        key("call", 1),
        "x",
        key("near", 2),
        "call:1",
        "漢" * 20,
        " " * 20,
        "0" * 14,
        "0" * 15,
        "a b c d e f 0 1 2 3",
    ]
    assert numbers_of(keys) == tuple(numbers_of((each,))[0] for each in keys)
    assert all(0 <= number < 2**60 for number in numbers_of(keys))
    assert len(set(numbers_of(keys))) == len(keys) - 1  # two are 0
    assert numbers_of(()) == ()


@pytest.mark.parametrize("time", [-1, 0, 2**42, 2**62])
def test_a_wrong_clock_makes_no_wrong_integer(store: Store, time: int) -> None:  # noqa: F811
    store.put_all([StoredState("t", ("call:1",), _state("a"), time=time)], NOW)
    assert states_of(store, ["call:1"], NOW) == {"call:1": [_state("a")]}


def test_an_integer_that_is_too_large_is_refused(store: Store) -> None:  # noqa: F811
    with pytest.raises(StoreError):
        store.put_all([StoredRow("r", "t", b"{}", 2**63)], NOW)
    assert store.get_request("r", "t") is None


# -- indexes -----------------------------------------------------------------------------------------------------------


def test_no_statement_reads_a_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_store(f"sqlite:{tmp_path / 'gateway.db'}")
    assert opened is not None
    ran: set[str] = set()
    query, transaction = opened.database.query, opened.database.transaction

    class Noting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            def call(statement: str, *values: Any) -> Any:
                ran.add(statement)
                return getattr(self._inner, name)(statement, *values)

            return call

        def __enter__(self) -> Self:
            return type(self)(self._inner.__enter__())

        def __exit__(self, *error: object) -> None:
            self._inner.__exit__(*error)

    def note(statement: str, *given: Any, **named: Any) -> Any:
        ran.add(statement)
        return query(statement, *given, **named)

    monkeypatch.setattr(opened.database, "query", note)
    monkeypatch.setattr(opened.database, "transaction", lambda **given: Noting(transaction(**given)))
    work = [
        StoredState("t", (key("call", 1),), _state("a"), "c", NOW),
        StoredRow("r", "t", b"", conversation="c"),
        StoredReply("x", "t", b"", "c"),
        StoredContent("r", "t", b"", "c"),
        StoredConversation("c", "t", b"1", lambda data: data),
    ]
    for now in (NOW, NOW, NOW + 2 * DAY):
        opened.put_all(work, now)
        opened.put_all([opened.find([key("call", n) for n in range(9)], "c", now + 2 * DAY, "t").used], now)
    opened.find((), "c", NOW)
    for tenant in ("t", None):
        opened.list_requests(tenant, 5)
        opened.list_requests(tenant, 5, (NOW, "r"))
        opened.list_requests(tenant, 5, None, "c")
        opened.list_conversations(tenant, 5)
        opened.get_request("r", tenant)
        opened.get_content("r", tenant)
        opened.newest_content("c", tenant)
        opened.delete_request("r", tenant)
        opened.delete_conversation("c", tenant)
    opened.get_response("x", "t")
    opened.delete_response("x", "t")
    opened.delete_tenant("t")
    assert len(ran) > 35
    for statement in ran:
        plan = query(f"explain query plan {statement}", [0] * statement.count("?"))
        steps = [str(row[3]) for row in plan if "INDEX" not in str(row[3])]
        scans = [
            step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step and "wanted" not in step
        ]
        assert not scans, (statement, plan)
        # The times of rows are in order; what is sorted is of one time, or of one conversation.
        is_sorted = any("ORDER BY" in step and "RIGHT PART" not in step for step in steps)
        assert not is_sorted or "conversation = ?" in statement, (statement, plan)
    opened.close()
