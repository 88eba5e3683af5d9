"""The store under faults: bad items, deadlocks, a database that is away, a full disk, a wrong clock."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.databases import REASON, find_programs, postgresql, states_of
from gateway.faults import FaultyDatabase
from segue.conversation.content import ThinkingContent
from segue.envelope.state import Piece, State
from segue.gateway.store import sqlite
from segue.gateway.store.circuit import Circuit
from segue.gateway.store.database import StoreAway, StoreBusy, StoreError, StoreNotWritable, clean_rows, clean_values
from segue.gateway.store.opening import open_store
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import DAY, Store, StoredConversation, StoredReply, StoredRow, StoredState, StoreLimits

NOW = 1_800_000_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[str | None]:
    if find_programs() is None:
        yield None
        return
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, server: str | None) -> Iterator[Store]:
    if request.param == "postgresql" and server is None:
        pytest.skip(REASON)
    opened = open_store(f"sqlite:{tmp_path / 'gateway.db'}" if request.param == "sqlite" else str(server))
    assert opened is not None
    with opened.database.transaction() as transaction:
        for table in ("states", "requests", "responses", "conversations"):
            transaction.run(f"delete from {table}")
        transaction.run("delete from meta where name = 'sweep_clock'")
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.store.circuit._GRACE", 0.25)
    monkeypatch.setattr("segue.gateway.store.writer._PROBE_SECONDS", 0.1)


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[FaultyDatabase]:
    database = FaultyDatabase(sqlite.SqliteDatabase(str(tmp_path / "faulty.db")))
    yield database
    database.close()


def _state(text: str) -> State:
    thought = ThinkingContent(thinking=text, thinking_signature="s" * 30)
    return State(protocol="p", provider="q", model="m", pieces=(Piece(0, thought),))


def _item(number: int) -> StoredState:
    return StoredState("t", (f"call:{number}",), _state(str(number)))


def _serve(store: Store, work: Callable[[StoreService], Awaitable[None]]) -> list[str]:
    """Run a service around some work; give what it reported."""
    reported: list[str] = []

    async def run() -> None:
        service = StoreService(store, StoreLimits(), reported.append)
        service.start()
        try:
            await work(service)
        finally:
            await service.close()

    asyncio.run(run())
    return reported


def _waiting_for(service: StoreService) -> int:
    return 0 if service._writer is None else len(service._writer.waiting())


async def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.02)


# -- one bad item ------------------------------------------------------------------------------------------------------


def test_an_item_that_is_refused_harms_no_other(faulty: FaultyDatabase) -> None:
    store = Store(faulty)
    faulty.poison = "call:37"

    async def work(service: StoreService) -> None:
        durable = await asyncio.gather(*(service.put(_item(number), NOW) for number in range(100)))
        assert durable == [number != 37 for number in range(100)]
        assert len(states_of(store, [f"call:{number}" for number in range(100)], NOW)) == 99
        assert service.is_available

    assert _serve(store, work) == ["one item cannot be stored: this value is refused"]


def test_a_state_that_cannot_be_written_harms_no_other(store: Store) -> None:
    bad = StoredState("t", ("call:bad",), _state("half a pair \ud800"))

    async def work(service: StoreService) -> None:
        good = [service.put(_item(number), NOW) for number in range(30)]
        durable = await asyncio.gather(*good, service.put(bad, NOW))
        assert durable == [True] * 30 + [False]
        assert len(states_of(store, [f"call:{number}" for number in range(30)], NOW)) == 30

    assert len(_serve(store, work)) == 1


@pytest.mark.parametrize("name", ["a\x00b", "a\ud800b", "\x00", "\udfff"])
def test_characters_that_a_database_cannot_store_harm_nobody(store: Store, name: str) -> None:
    async def work(service: StoreService) -> None:
        durable = await asyncio.gather(
            service.put(StoredConversation(name, name, b"1"), NOW),
            service.put(StoredRow(name, name, b"2"), NOW),
            service.put(StoredReply(name, name, b"3"), NOW),
            service.put(StoredState(name, (name,), _state("x")), NOW),
            *(service.put(_item(number), NOW) for number in range(20)),
        )
        assert all(durable)
        assert store.get_response(name, name) == b"3"
        assert store.get_request(name, name) == b"2"
        found = store.find((), name, NOW).conversation
        assert found is not None
        assert found.data == b"1"
        assert store.get_response(name, "t") is None

    assert _serve(store, work) == []


def test_cleaned_values_of_different_texts_are_different() -> None:
    texts = ["a", "a\x00", "a\ufffd", "a?", "a\ud800", "a\ud801", "é", "漢\x00"]
    cleaned = clean_values(texts)
    assert len(set(cleaned)) == len(texts)
    assert [text for text, value in zip(texts, cleaned, strict=True) if text == value] == ["a", "a\ufffd", "a?", "é"]
    assert [*clean_rows([["b", *texts], texts])] == [["b", *cleaned], cleaned]


# -- a database that is busy or away -----------------------------------------------------------------------------------


def test_deadlocks_and_short_failures_are_retried(faulty: FaultyDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.store.circuit._GRACE", 60.0)
    monkeypatch.setattr("segue.gateway.store.service._LONGEST_WAIT", 60.0)
    store = Store(faulty)

    async def work(service: StoreService) -> None:
        faulty.busy = 2
        assert await service.put(_item(1), NOW)
        faulty.write_failure = StoreAway("gone")
        waiting = asyncio.create_task(service.put(_item(2), NOW))
        before = faulty.calls
        await _until(lambda: faulty.calls > before)
        faulty.write_failure = None
        assert await waiting
        assert service.is_available

    assert _serve(store, work) == []


def test_while_the_database_is_away_nobody_waits_and_nothing_is_acknowledged(faulty: FaultyDatabase) -> None:
    store = Store(faulty)

    async def work(service: StoreService) -> None:
        faulty.failure = StoreAway("gone")
        first = await asyncio.gather(*(service.put(_item(number), NOW, is_kept=True) for number in range(5)))
        assert first == [False] * 5
        assert not service.is_available
        assert (await service.find(["call:0"], "", NOW, "t"))[0] == {"call:0": [_state("0")]}  # from memory
        await _until(lambda: service._reads.is_open)
        # The thread that probes is the only one that calls the database now.
        callers: set[str] = set()
        faulty.inner = _Watched(faulty.inner, callers)  # type: ignore[assignment]
        faulty.failure = None
        faulty.write_failure = StoreNotWritable("still away")
        assert await service.put(_item(5), NOW, is_kept=True) is False
        assert await service.put(StoredReply("resp", "t", b"x"), NOW) is False
        faulty.write_failure = None
        await _until(lambda: len(states_of(store, [f"call:{number}" for number in range(6)], NOW)) == 6)
        assert callers == {"segue-store"}
        assert store.get_response("resp", "t") is None  # its caller was told that it is not stored

    reported = _serve(store, work)
    assert any("cannot be written: gone" in text for text in reported)
    assert reported[-1] == "the store can be written again"


def test_rows_that_nobody_waits_for_are_all_stored_when_the_gateway_ends(faulty: FaultyDatabase) -> None:
    async def work(service: StoreService) -> None:
        for number in range(250):
            service.put_later(StoredRow(f"req_{number}", "t", b"x"), NOW)

    _serve(Store(faulty), work)
    rows = [row[0] for statement, rows in faulty.written if "into requests" in statement for row in rows]
    assert sorted(map(str, rows)) == sorted(f"req_{number}" for number in range(250))


class _Watched:
    """Notes which threads call a database."""

    def __init__(self, inner: sqlite.SqliteDatabase, callers: set[str]) -> None:
        self._inner = inner
        self._callers = callers

    def transaction(self, *, waits: bool = True) -> object:
        self._callers.add(threading.current_thread().name)
        return self._inner.transaction(waits=waits)

    def query(self, *given: object, **named: object) -> object:
        if threading.current_thread() is not threading.main_thread():
            self._callers.add(threading.current_thread().name)
        return self._inner.query(*given, **named)  # type: ignore[arg-type]

    def close(self) -> None:
        self._inner.close()


def test_a_query_fails_at_once_while_the_database_is_away(faulty: FaultyDatabase) -> None:
    store = Store(faulty)

    async def work(service: StoreService) -> None:
        faulty.failure = StoreAway("gone")
        with pytest.raises(StoreAway):
            await service.fetch(lambda: store.get_response("x", "t"))
        ran: list[int] = []
        for number in range(50):
            assert await service.read(lambda number=number: ran.append(number)) is None
        assert ran == []
        faulty.failure = None
        await _until(lambda: service.is_available)
        assert await service.fetch(lambda: store.get_response("x", "t")) is None

    _serve(store, work)


def test_a_database_that_hangs_is_not_waited_for(faulty: FaultyDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.store.service._LONGEST_WAIT", 0.1)
    store = Store(faulty)
    hangs = threading.Event()
    original = store.put_all

    def put_all(*given: object) -> None:
        hangs.wait(20)
        original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "put_all", put_all)

    async def work(service: StoreService) -> None:
        assert await service.put(_item(1), NOW) is False
        assert not service.is_available
        assert await service.put(_item(2), NOW) is False
        hangs.set()
        await _until(lambda: service.is_available)
        assert await service.put(_item(3), NOW)

    _serve(store, work)


def test_an_item_that_breaks_the_connection_does_not_stop_the_backlog(faulty: FaultyDatabase) -> None:
    store = Store(faulty)
    original = store.put_all

    def put_all(work: list[object], now: int) -> None:
        if any(isinstance(each, StoredState) and each.keys == ("call:1",) for each in work):
            raise StoreAway("the server closed the connection")
        original(work, now)  # type: ignore[arg-type]

    store.put_all = put_all  # type: ignore[method-assign, assignment]

    async def work(service: StoreService) -> None:
        waiting = [service.put(_item(number), NOW, is_kept=True) for number in range(3)]
        assert await asyncio.gather(*waiting) == [False] * 3
        await _until(lambda: service.is_available and not _waiting_for(service))
        assert sorted(states_of(store, [f"call:{number}" for number in range(3)], NOW)) == ["call:0", "call:2"]

    _serve(store, work)


def test_who_waits_when_the_gateway_ends_is_told(faulty: FaultyDatabase) -> None:
    store = Store(faulty)
    reported: list[str] = []

    async def run() -> None:
        service = StoreService(store, StoreLimits(), reported.append)
        service.start()
        faulty.write_failure = StoreAway("gone")
        waiting = [asyncio.create_task(service.put(_item(number), NOW, is_kept=True)) for number in range(3)]
        await asyncio.sleep(0)
        await service.close()
        assert [await each for each in waiting] == [False] * 3
        assert await service.put(_item(9), NOW) is False

    asyncio.run(run())
    assert "the gateway ends, and 3 items could not be stored" in reported


def test_a_circuit_opens_after_some_failures_and_closes_with_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.store.circuit._GRACE", 1.0)
    now = [0.0]
    opened: list[float] = []
    circuit = Circuit(lambda: opened.append(now[0]), lambda: now[0])
    assert [circuit.fail() for now[0] in (0.0, 0.5, 0.9)] == [True] * 3
    circuit.succeed()
    assert [circuit.fail() for now[0] in (10.0, 10.9, 11.0, 12.0)] == [True, True, False, False]
    assert opened == [11.0]
    assert circuit.succeed()
    assert not circuit.is_open


# -- a full disk -------------------------------------------------------------------------------------------------------


def test_on_a_full_disk_nothing_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [1_000_000]
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def limited(*given: object, **options: object) -> sqlite3.Connection:
        connection = connect(*given, **options)  # type: ignore[call-overload]
        connection.execute(f"pragma max_page_count={pages[0]}")
        opened.append(connection)
        return connection

    monkeypatch.setattr(sqlite.sqlite3, "connect", limited)
    store = open_store(f"sqlite:{tmp_path / 'gateway.db'}")
    assert store is not None
    large = [StoredState("t", (f"call:{number}",), _state(str(number) * 9000)) for number in range(10)]

    async def work(service: StoreService) -> None:
        used = store.database.query("pragma page_count")[0][0]
        assert isinstance(used, int)
        pages[0] = used + 12
        durable = [await service.put(each, NOW, is_kept=True) for each in large]
        assert durable[0]
        assert not all(durable)
        for connection in opened:
            connection.execute("pragma max_page_count=1000000")
        await _until(lambda: len(states_of(store, [f"call:{number}" for number in range(10)], NOW)) == 10)
        await _until(lambda: service.is_available)
        assert await service.put(_item(99), NOW)

    reported = _serve(store, work)
    assert any("full" in text for text in reported)


# -- several gateways, and the clock -----------------------------------------------------------------------------------


def test_rows_are_written_in_one_order(faulty: FaultyDatabase) -> None:
    store = Store(faulty)
    for items in (range(20), reversed(range(20))):
        faulty.written.clear()
        store.put_all([each for number in items for each in _all_kinds(number)], NOW)
        names: dict[str, list[Any]] = {}
        for statement, rows in faulty.written:
            names.setdefault(statement, []).extend(row[statement.startswith("insert into state_keys")] for row in rows)
        assert len(names) == 5
        assert all(found == sorted(found) for found in names.values())


def _all_kinds(number: int) -> list[StoredState | StoredRow | StoredReply | StoredConversation]:
    name = f"{number:02}"
    return [
        StoredState("t", (f"near:{name}", f"call:{name}"), _state(name)),
        StoredRow(name, "t", b""),
        StoredReply(name, "t", b""),
        StoredConversation(name, "t", b""),
    ]


def test_two_gateways_that_write_the_same_rows_do_not_block_each_other(store: Store) -> None:
    failures: list[Exception] = []

    def write(*, backwards: bool) -> None:
        numbers = list(range(30))
        try:
            for _ in range(15):
                order = numbers[::-1] if backwards else numbers
                store.put_all([each for number in order for each in _all_kinds(number)], NOW)
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, kwargs={"backwards": each}) for each in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [failure for failure in failures if not isinstance(failure, StoreBusy) or not store.database.is_local] == []


def test_a_clock_that_jumps_deletes_nothing(store: Store) -> None:
    store.put_all([_item(1)], NOW)
    store.sweep(StoreLimits(), NOW)
    for hour in range(3):
        store.sweep(StoreLimits(), NOW + 400 * DAY + hour)  # wrong for some hours
        store.put_all([_item(2)], NOW + 400 * DAY + hour)  # and used meanwhile
    store.sweep(StoreLimits(), NOW + 1)  # right again
    assert sorted(states_of(store, ["call:1", "call:2"], NOW)) == ["call:1", "call:2"]


def test_a_store_without_a_noted_clock_is_measured_by_its_newest_row(store: Store) -> None:
    store.put_all([_item(1)], NOW)
    store.sweep(StoreLimits(), NOW + 400 * DAY)
    assert states_of(store, ["call:1"], NOW)


# -- commits on the event loop -----------------------------------------------------------------------------------------


def callers_of(
    path: Path, work: Callable[[StoreService, Store], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Run work with a store, and give the threads that wrote to it, one for each transaction."""
    callers: list[str] = []
    transaction = sqlite.SqliteDatabase.transaction

    def noted(self: sqlite.SqliteDatabase, *, waits: bool = True) -> Any:
        callers.append("loop" if not waits else threading.current_thread().name)
        return transaction(self, waits=waits)

    store = Store(sqlite.SqliteDatabase(str(path)))
    monkeypatch.setattr(sqlite.SqliteDatabase, "transaction", noted)

    async def run() -> None:
        service = StoreService(store, StoreLimits(), lambda _: None)
        service.start()
        await work(service, store)
        await service.close()

    asyncio.run(run())
    return callers


def a_row(name: str) -> StoredRow:
    return StoredRow(name, "t", b"{}", 1)


def test_what_is_put_in_one_turn_is_one_commit_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(service: StoreService, store: Store) -> None:
        assert all(await asyncio.gather(*(service.put(a_row(f"r{at}"), 1) for at in range(5))))
        assert len(store.list_requests(None, 10)) == 5

    assert callers_of(tmp_path / "g.db", work, monkeypatch) == ["loop"]


def test_a_put_that_is_not_alone_writes_what_was_put_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(service: StoreService, store: Store) -> None:
        service.put_later(a_row("later"), 1)
        assert await service.put(a_row("alone"), 1, is_alone=True)
        assert [name for name, _, _ in store.list_requests(None, 10)] == ["alone"]
        assert await service.put(a_row("all"), 1)
        assert len(store.list_requests(None, 10)) == 3

    callers_of(tmp_path / "g.db", work, monkeypatch)


def test_slow_commits_leave_the_loop_for_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000))
    monkeypatch.setattr("segue.gateway.store.writer.time.perf_counter", lambda: next(clock))  # a second for each commit

    async def work(service: StoreService, store: Store) -> None:
        for at in range(3):
            assert await service.put(a_row(f"r{at}"), 1)
        assert len(store.list_requests(None, 10)) == 3

    assert callers_of(tmp_path / "g.db", work, monkeypatch) == ["loop", "segue-store", "segue-store"]


def test_the_loop_does_not_wait_for_the_transaction_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite.SqliteDatabase(str(tmp_path / "g.db"))

    async def work(service: StoreService, store: Store) -> None:
        with other.transaction() as transaction:
            transaction.run("insert into meta (name, value) values ('x', 'y')")
            waiting = asyncio.create_task(service.put(a_row("r"), 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not waiting.done()  # the loop is free
        assert await waiting

    assert callers_of(tmp_path / "g.db", work, monkeypatch)[-2:] == ["loop", "segue-store"]


def test_items_are_written_in_their_order_on_the_loop_and_in_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(service: StoreService, store: Store) -> None:
        large = StoredConversation("c", "t", b"1" * 100_000)
        first = asyncio.create_task(service.put(large, 1))  # too large for the loop
        await asyncio.sleep(0)
        assert await service.put(StoredConversation("c", "t", b"2"), 2)
        assert await first
        found = store.find((), "c", NOW).conversation
        assert found is not None
        assert found.data == b"2"

    callers_of(tmp_path / "g.db", work, monkeypatch)
