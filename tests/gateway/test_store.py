"""The store in both databases: keys, expiry, limits, migrations, several gateways at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.databases import REASON, find_programs, postgresql, states_of
from segue.conversation.content import ThinkingContent
from segue.envelope.state import Piece, State
from segue.errors import SettingsError
from segue.gateway.store.circuit import Circuit
from segue.gateway.store.database import StoreError
from segue.gateway.store.opening import open_store
from segue.gateway.store.schema import MIGRATIONS
from segue.gateway.store.service import StoreService
from segue.gateway.store.sqlite import SqliteDatabase
from segue.gateway.store.store import DAY, Store, StoredConversation, StoredReply, StoredRow, StoredState, StoreLimits
from segue.gateway.store.writer import Item, Writer

NOW = 1_800_000_000_000


def listed(store: Store, tenant: str, limit: int, before: tuple[int, str] | None = None) -> list[bytes]:
    return [data for _, _, data in store.list_requests(tenant, limit, before)]


@pytest.fixture(scope="module")
def server() -> Iterator[str | None]:
    if find_programs() is None:
        yield None
        return
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path, server: str | None) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'gateway.db'}"
    if server is None:
        pytest.skip(REASON)
    store = open_store(server)
    assert store is not None
    with store.database.transaction() as transaction:
        tables = (
            "state_keys",
            "states",
            "requests",
            "responses",
            "conversations",
            "contents",
            "keys",
            "ledgers",
            "meta",
        )
        for table in tables:
            transaction.run(f"drop table {table}")
    store.close()
    return server


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address)
    assert opened is not None
    yield opened
    opened.close()


def _state(name: str, size: int = 10) -> State:
    thought = ThinkingContent(thinking="", thinking_signature=name + "x" * size)
    return State(protocol="p", provider="q", model="m", pieces=(Piece(0, thought),))


def test_a_state_is_found_by_each_of_its_keys(store: Store) -> None:
    store.put_all([StoredState("t", ("call:1", "chain:2"), _state("a"))], NOW)
    assert states_of(store, ["call:1", "chain:2", "near:3"], NOW) == {"call:1": [_state("a")], "chain:2": [_state("a")]}


def test_the_newest_state_of_a_key_comes_first(store: Store) -> None:
    for number in range(3):
        store.put_all([StoredState("t", ("chain:1",), _state(str(number)))], NOW + number)
    assert states_of(store, ["chain:1"], NOW)["chain:1"] == [_state("2"), _state("1"), _state("0")]


def test_the_same_state_is_stored_once(store: Store) -> None:
    written = StoredState("t", ("chain:1", "near:1"), _state("a"), time=NOW)
    for number in range(3):
        store.put_all([written, *[written] * number], NOW + number)
    assert states_of(store, ["chain:1"], NOW)["chain:1"] == [_state("a")]
    assert store.database.query("select count(*) from states") == [(1,)]
    assert store.database.query("select count(*) from state_keys") == [(2,)]


def test_equal_states_of_one_key_count_once(store: Store) -> None:
    for number in range(3):
        store.put_all([StoredState("t", ("chain:1", f"near:{number}"), _state("a"))], NOW + number)
    store.put_all([StoredState("t", ("chain:1",), _state("b"))], NOW + 1)
    assert states_of(store, ["chain:1", "near:2"], NOW) == {
        "chain:1": [_state("a"), _state("b")],
        "near:2": [_state("a")],
    }


def test_more_keys_than_a_statement_has_room_for(store: Store) -> None:
    store.put_all([StoredState("t", tuple(f"call:{n}" for n in range(1300)), _state("a"))], NOW)
    assert len(states_of(store, [f"call:{n}" for n in range(2000)], NOW)) == 1300


def test_states_and_a_conversation_are_found_together(store: Store) -> None:
    keys = [f"call:{n}" for n in range(700)]
    store.put_all([StoredState("t", (each,), _state("old")) for each in keys], NOW)
    store.put_all([StoredState("t", (keys[0], keys[-1]), _state("new")), StoredConversation("c", "t", b"row")], NOW + 1)
    for some in ([], keys[:1], keys):
        found = store.find(some, "c", NOW, "t")
        assert found.conversation == StoredConversation("c", "t", b"row")
        assert found.states.keys() == set(some)
        assert all(found.states[key] == [_state("new"), _state("old")] for key in some if key in (keys[0], keys[-1]))
    assert store.find(keys[:1], "d", NOW, "t").conversation is None


def test_hostile_values_are_only_values(store: Store) -> None:
    evil = "'; drop table states; -- \x00 \ud800 ?%s"
    store.put_all([StoredRow("r1", evil, b"{}")], NOW)
    store.put_all([StoredState(evil, ("call:1",), _state("a"))], NOW)
    assert store.get_request(evil, evil) is None
    assert store.get_request("r1", evil) == b"{}"
    assert states_of(store, [evil.replace("\x00", "").replace("\ud800", "")], NOW, evil) == {}
    assert states_of(store, ["call:1"], NOW, evil) == {"call:1": [_state("a")]}
    store.delete_tenant(evil)
    assert states_of(store, ["call:1"], NOW, evil) == {}
    assert store.get_request("r1", evil) is None


def test_what_was_not_used_for_long_expires(store: Store) -> None:
    store.put_all([StoredState("t", ("call:old",), _state("old")), StoredState("t", ("call:used",), _state("u"))], NOW)
    states_of(store, ["call:used"], NOW + 20 * DAY)
    store.put_all([StoredRow("r1", "t", b"{}")], NOW)
    assert sum(store.sweep(StoreLimits(), NOW + day * DAY) for day in range(32)) == 1
    assert list(states_of(store, ["call:old", "call:used"], NOW)) == ["call:used"]
    assert store.database.query("select count(*) from state_keys") == [(1,)]
    assert listed(store, "t", 5) == []


def test_the_oldest_states_make_room(store: Store) -> None:
    for number in range(10):
        store.put_all([StoredState("t", (f"call:{number}",), _state(str(number), 1000))], NOW + number)
    store.sweep(StoreLimits(state_bytes=4500), NOW + 10)
    assert sorted(states_of(store, [f"call:{n}" for n in range(10)], NOW)) == [f"call:{n}" for n in range(6, 10)]


def test_responses_belong_to_a_tenant(store: Store) -> None:
    store.put_all([StoredReply("resp_1", "alice", b"items")], NOW)
    assert store.get_response("resp_1", "alice") == b"items"
    assert store.get_response("resp_1", "bob") is None


def test_requests_are_listed_newest_first(store: Store) -> None:
    for number in range(5):
        store.put_all([StoredRow(f"r{number}", "t", b"%d" % number)], NOW + number)
    assert listed(store, "t", 2) == [b"4", b"3"]
    assert listed(store, "t", 2, before=(NOW + 3, "~")) == [b"2", b"1"]


def test_rows_that_are_stored_together_keep_their_times(store: Store) -> None:
    store.put_all([StoredRow(f"r{number}", "t", b"%d" % number, NOW + number) for number in (2, 0, 1)], NOW + 9)
    assert listed(store, "t", 2) == [b"2", b"1"]
    assert listed(store, "t", 2, before=(NOW + 1, "~")) == [b"0"]


def test_requests_and_conversations_belong_to_a_tenant(store: Store) -> None:
    store.put_all([StoredRow("r", "alice", b"{}"), StoredConversation("c", "alice", b"1")], NOW)
    store.put_all([StoredConversation("c", "alice", b"2")], NOW + 1)
    assert store.get_request("r", "bob") is None
    assert listed(store, "bob", 5) == []
    assert store.list_conversations("bob", 5) == []
    assert store.list_conversations("alice", 5) == [StoredConversation("c", "alice", b"2")]
    assert store.find((), "c", NOW).conversation == StoredConversation("c", "alice", b"2")
    for day in range(32):
        store.sweep(StoreLimits(), NOW + day * DAY)
    assert store.find((), "c", NOW).conversation is None


def test_all_gateways_of_a_store_have_one_key_and_one_schema(address: str) -> None:
    opened: list[Store] = []
    failures: list[Exception] = []

    def start() -> None:
        try:
            store = open_store(address)
            assert store is not None
            opened.append(store)
            store.envelope_key()
        except Exception as error:  # noqa: BLE001 - the test names it
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len({store.envelope_key() for store in opened}) == 1
    assert opened[0].database.query("select value from meta where name = 'schema'") == [(str(len(MIGRATIONS)),)]
    for store in opened:
        store.close()


def test_a_service_writes_before_it_returns_and_reads_back(address: str) -> None:
    errors: list[str] = []

    async def run() -> None:
        service = StoreService(open_store(address), StoreLimits(), errors.append)
        service.start()
        await asyncio.gather(*(service.put(StoredState("t", (f"call:{n}",), _state(str(n))), NOW) for n in range(150)))
        service.put_later(StoredRow("r", "t", b"row"), NOW)
        found, _ = await service.find([f"call:{n}" for n in range(150)], "", NOW, "t")
        assert len(found) == 150
        await service.close()

    asyncio.run(run())
    assert errors == []
    again = open_store(address)
    assert again is not None
    assert again.get_request("r", "t") == b"row"
    again.close()


def test_what_nobody_waits_for_is_written_in_as_many_batches_as_have_come(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path / 'x.db'}")
    assert store is not None
    later: list[Callable[[], None]] = []
    soon: list[Callable[[], None]] = []

    def next_turn(call: Callable[[], None]) -> bool:
        soon.append(call)
        return True

    circuits = Circuit(lambda: None), Circuit(lambda: None)
    writer = Writer(store, *circuits, print, later=later.append, soon=next_turn)
    for number in range(250):
        writer.put(Item(StoredRow(f"r{number}", "t", b"row"), NOW, None, is_kept=True))
    assert len(later) == 1
    later[0]()
    while soon:
        soon.pop()()
    assert (len(later), store.database.query("select count(*) from requests")) == (1, [(250,)])
    store.close()


def test_what_the_thread_has_written_is_told_on_the_event_loop() -> None:
    async def run() -> None:
        service, loop = StoreService(None, StoreLimits(), print), asyncio.get_running_loop()
        waiting = [loop.create_future() for _ in range(3)]
        for done, is_durable in zip(waiting, (True, False, True), strict=True):
            given = (done, threading.get_ident(), is_durable)
            thread = threading.Thread(target=service._note_written, args=given)  # pyright: ignore[reportPrivateUsage]
            thread.start()
            thread.join()
        assert not any(done.done() for done in waiting), "a future belongs to the thread of its event loop"
        assert await asyncio.gather(*waiting) == [True, False, True]

    asyncio.run(run())


def test_a_store_that_fails_fails_no_reply(tmp_path: Path) -> None:
    errors: list[str] = []

    async def run() -> None:
        store = open_store(f"sqlite:{tmp_path / 'x.db'}")
        assert store is not None
        service = StoreService(store, StoreLimits(), errors.append)
        service.start()
        with store.database.transaction() as transaction:
            transaction.run("drop table state_keys")
        await service.put(StoredState("t", ("call:1",), _state("a")), NOW)
        assert (await service.find(["call:1"], "", NOW, "t"))[0] == {}
        await service.close()

    asyncio.run(run())
    assert len(errors) == 2
    assert "no such table" in errors[0]


def test_without_a_store_nothing_is_kept() -> None:
    async def run() -> None:
        service = StoreService(open_store("none"), StoreLimits(), print)
        service.start()
        await service.put(StoredState("t", ("call:1",), _state("a")), NOW)
        assert (await service.find(["call:1"], "", NOW, "t"))[0] == {}
        await service.close()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["", "redis://x", "sqlite:", "postgresql:x"])
def test_an_unknown_store_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match='use "sqlite:FILE"'):
        open_store(name)


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="choose another file"):
        open_store(f"sqlite:{tmp_path}/file/x.db")


def test_a_rolled_back_transaction_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.database.transaction() as transaction:
            transaction.run("insert into requests (id, tenant, time, data) values (?, ?, ?, ?)", ("r", "t", 1, b""))
            transaction.run("no such statement")

    with pytest.raises(StoreError):
        fail()
    assert store.get_request("r", "t") is None


def test_closing_waits_for_the_statements_of_other_threads(tmp_path):
    """A connection that is closed while another thread uses it ends the process."""
    database = SqliteDatabase(str(tmp_path / "a.db"))
    is_inside, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with database.transaction() as transaction:
            transaction.run("create table t (n integer)")
            is_inside.set()
            may_end.wait(60)
            transaction.run("insert into t values (1)")
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert is_inside.wait(60)
    closing = threading.Thread(target=database.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    may_end.set()
    closing.join(60)
    worker.join(60)
    assert done.is_set()
    assert SqliteDatabase(str(tmp_path / "a.db")).query("select n from t") == [(1,)]
