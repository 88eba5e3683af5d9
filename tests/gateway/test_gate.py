"""The fair gate: who begins, with a virtual clock and virtual CPU time."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from gateway.asgi_client import ECHO, KEY, OTHER, PATHS, Client, make
from segue.gateway import console
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.exchange import Exchange
from segue.gateway.gate import Gate, GateTurn
from segue.gateway.keys import digest_of, tenant_of
from segue.gateway.service import Gateway


class Machine:
    """A clock and the CPU time of one thread, both moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.used = 0.0
        self.gate = Gate(clock=lambda: self.now, cpu=lambda: self.used)
        self.begun: list[str] = []

    def work(self, seconds: float) -> None:
        """Use CPU time; nothing else runs meanwhile."""
        self.now += seconds
        self.used += seconds

    async def request(self, name: str, *costs: float) -> None:
        """Send a request of so many steps."""

        async def steps() -> None:
            self.begun.append(name)
            for cost in costs:
                self.work(cost)
                await asyncio.sleep(0)

        turn = await self.gate.enter(name)
        try:
            await self.gate.metered(turn, steps())
        finally:
            turn.leave()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(main: Callable[[Machine], Coroutine[Any, Any, None]]) -> Machine:
    machine = Machine()
    asyncio.run(asyncio.wait_for(main(machine), 30))
    return machine


def test_a_debt_is_the_cpu_time_of_all_steps_and_halves_in_two_seconds() -> None:
    async def main(machine: Machine) -> None:
        await machine.request("a", 0.25, 0.5, 0.25)
        assert machine.gate.debt("a") == pytest.approx(1.0, rel=0.2)
        before = machine.gate.debt("a")
        machine.now += 2
        assert machine.gate.debt("a") == pytest.approx(before / 2)
        assert machine.gate.debt("b") == 0

    run(main)


def test_no_step_is_charged_for_the_time_in_which_it_waits_for_a_thread() -> None:
    async def main(machine: Machine) -> None:
        async def step() -> None:
            machine.now += 1.0  # of which another thread takes nearly all
            machine.used += 0.01

        turn = await machine.gate.enter("a")
        await machine.gate.metered(turn, step())
        assert machine.gate.debt("a") == pytest.approx(0.01)

    run(main)


def test_the_work_of_threads_counts_as_well() -> None:
    async def main(machine: Machine) -> None:
        async def at_once(work: Callable[[], None]) -> None:
            work()

        turn = await machine.gate.enter("a")
        await turn.in_thread(at_once, lambda: machine.work(0.75))
        assert machine.gate.debt("a") == pytest.approx(0.75)

    run(main)


def test_a_new_client_begins_before_those_that_used_cpu() -> None:
    async def main(machine: Machine) -> None:
        await machine.request("attacker", 1.0)
        many = [asyncio.create_task(machine.request("attacker", 0.02, 0.02)) for _ in range(40)]
        await asyncio.sleep(0)
        machine.begun.clear()
        await machine.request("victim", 0.001, 0.001, 0.001)
        assert machine.begun.index("victim") <= 2
        assert machine.begun.count("attacker") <= 2  # none begins while it is under way
        await asyncio.gather(*many)
        assert machine.begun.count("attacker") == 38  # two had begun before

    run(main)


def test_those_who_wait_begin_in_the_order_of_their_debts() -> None:
    async def main(machine: Machine) -> None:
        for name, spent in (("much", 3.0), ("little", 0.5), ("some", 1.5)):
            machine.gate.charge(name, spent)
        free = [await machine.gate.enter("nobody") for _ in range(2)]
        waiting = [asyncio.create_task(machine.request(name, 0.001)) for name in ("much", "some", "little")]
        await settle()
        assert machine.begun == []  # a poorer one is under way
        for turn in free:
            turn.leave()
        await asyncio.gather(*waiting)
        assert machine.begun == ["little", "some", "much"]

    run(main)


def test_each_gets_the_same_cpu_time_however_many_requests_it_sends() -> None:
    async def main(machine: Machine) -> None:
        used: Counter[str] = Counter()
        machine.gate.on_step = lambda name, seconds: used.update({name: round(seconds * 1e6)})

        async def send(name: str, cost: float) -> None:
            while machine.now < 130:
                await machine.request(name, cost)

        senders = [send("many", 0.05) for _ in range(30)] + [send("few", 0.02) for _ in range(2)]
        await asyncio.gather(*senders)
        assert 0.8 < used["few"] / used["many"] < 1.25, used

    run(main)


def test_nobody_is_held_back_for_long() -> None:
    async def main(machine: Machine) -> None:
        machine.gate.charge("rich", 5.0)
        poor = await machine.gate.enter("poor")
        poor.threads = 1  # it works on, in a thread
        task = asyncio.create_task(machine.request("rich", 0.001))
        await settle()
        assert machine.begun == []
        machine.now += 0.11
        await task
        assert machine.begun == ["rich"]

    run(main)


def test_nobody_richer_begins_while_a_reply_is_finished() -> None:
    async def main(machine: Machine) -> None:
        machine.gate.charge("rich", 5.0)
        poor = await machine.gate.enter("poor")
        poor.leave()  # it goes to its provider
        await machine.request("rich", 0.001)
        poor.finish()
        task = asyncio.create_task(machine.request("rich", 0.001))
        await settle()
        assert machine.begun == ["rich"]
        others = [await machine.gate.enter("poor") for _ in range(2)]  # it takes no place
        for turn in (*others, poor):
            turn.leave()
        await task
        assert machine.begun == ["rich", "rich"]

    run(main)


def test_the_work_of_a_client_goes_to_a_thread_if_it_used_much_and_others_are_there() -> None:
    async def main(machine: Machine) -> None:
        turn = await machine.gate.enter("a")
        machine.gate.charge("a", 2.0)
        assert not turn.works_apart  # it is alone, also in its first seconds
        machine.now += 3
        assert not turn.works_apart
        machine.gate.charge("b", 0.001)
        assert turn.works_apart
        assert not (await machine.gate.enter("b")).works_apart
        machine.now += 8
        assert not turn.works_apart

    run(main)


def test_ordinary_clients_do_not_wait_for_each_other() -> None:
    async def main(machine: Machine) -> None:
        machine.gate.charge("a", 0.005)
        turns = [await machine.gate.enter(name) for name in ("b", "a", "c")]
        assert all(turn.has_place for turn in turns)

    run(main)


async def three_places(machine: Machine) -> tuple[GateTurn, GateTurn, asyncio.Task[GateTurn]]:
    first, second = await machine.gate.enter("a"), await machine.gate.enter("a")
    third = asyncio.create_task(machine.gate.enter("a"))
    await settle()
    assert not third.done()
    return first, second, third


def test_a_request_that_only_waits_gives_its_place_up_and_waits_for_another_one() -> None:
    async def main(machine: Machine) -> None:
        first, second, third = await three_places(machine)
        second.threads = 1  # it does not only wait
        await third  # the first made no step
        assert (first.has_place, second.has_place) == (False, True)
        renewed = asyncio.create_task(first.renew())
        await settle()
        assert not renewed.done()
        second.leave()
        await renewed
        assert first.has_place

    run(main)


def test_a_request_that_leaves_makes_room_at_once() -> None:
    async def main(machine: Machine) -> None:
        first, second, third = await three_places(machine)
        first.threads = second.threads = 1
        first.leave()
        await third
        second.leave()
        second.leave()  # no harm
        (await third).leave()

    machine = run(main)
    assert not machine.gate._running  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_client_that_leaves_while_it_waits_takes_no_place(is_begun: bool) -> None:
    async def main(machine: Machine) -> None:
        first, second, third = await three_places(machine)
        first.threads = second.threads = 1
        if is_begun:
            first.leave()
            machine.gate._look()  # pyright: ignore[reportPrivateUsage]
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
        first.leave()
        second.leave()
        assert not machine.gate._running  # pyright: ignore[reportPrivateUsage]
        assert not machine.gate._waiting  # pyright: ignore[reportPrivateUsage]

    run(main)


def test_an_error_of_the_work_is_raised_and_its_steps_are_counted() -> None:
    async def main(machine: Machine) -> None:
        async def fail() -> None:
            machine.work(0.5)
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                machine.work(0.5)
                raise KeyError("end") from None

        turn = await machine.gate.enter("a")
        task = asyncio.ensure_future(machine.gate.metered(turn, fail()))
        await settle()
        task.cancel()
        with pytest.raises(KeyError):
            await task
        assert machine.gate.debt("a") == pytest.approx(1.0, rel=0.2)

    run(main)


def test_many_names_are_not_kept() -> None:
    gate = Gate(clock=lambda: 0.0)
    for number in range(25_000):
        gate.charge(f"address {number}", 1.0)
    assert len(gate._debts) <= 10_000  # pyright: ignore[reportPrivateUsage]


# -- in the gateway ----------------------------------------------------------------------------------------------------


def ask_all(gateway: Gateway, path: str, method: str = "POST", **headers: str) -> Client:
    client = Client(gateway, json.dumps(ECHO).encode())
    asyncio.run(client.ask(path, {name.replace("_", "-"): value for name, value in headers.items()}, method))
    return client


@pytest.mark.parametrize(
    ("path", "method"),
    [
        *((path, "POST") for path in PATHS.values()),
        ("/v1/messages/count_tokens", "POST"),
        ("/v1/models", "GET"),
        ("/v1/nothing", "GET"),
        ("/segue", "GET"),
        ("/segue/conversations", "GET"),
        ("/segue/requests", "GET"),
        ("/segue/requests/req_1/replay", "POST"),
        ("/segue/series", "GET"),
        ("/segue/admin/keys", "GET"),
        ("/metrics", "GET"),
        ("/nothing", "GET"),
    ],
)
@pytest.mark.parametrize("key", [KEY, "wrong", None])
def test_every_endpoint_passes_the_gate(path: str, method: str, key: str | None) -> None:
    gateway = make()
    steps: Counter[str] = Counter()
    gateway.gate.on_step = lambda name, _: steps.update([name])
    ask_all(gateway, path, method, **({} if key is None else {"x_api_key": key}))
    name = f"key {tenant_of(digest_of(KEY))}" if key == KEY else "address 127.0.0.1"
    assert set(steps) == {name}
    assert not gateway.gate._running  # pyright: ignore[reportPrivateUsage]


def test_who_watches_the_process_waits_for_nobody() -> None:
    gateway = make()
    steps: list[str] = []
    gateway.gate.on_step = lambda name, _: steps.append(name)
    assert ask_all(gateway, "/health", "GET").status == 200
    assert steps == []


def test_no_body_is_read_before_the_turn() -> None:
    gateway = make()

    async def main() -> None:
        name = f"key {tenant_of(digest_of(KEY))}"
        turns = [await gateway.gate.enter(name) for _ in range(2)]
        for turn in turns:
            turn.threads = 1
        one = Client(gateway, json.dumps(ECHO).encode(), stays=True)
        other = Client(gateway, json.dumps(ECHO).encode(), stays=True)
        waiting = asyncio.create_task(one.ask("/v1/messages", {"x-api-key": KEY}, "POST"))
        await settle()
        assert one.reads == 0
        await other.ask("/v1/messages", {"x-api-key": OTHER}, "POST")
        assert (other.status, one.reads) == (200, 0)
        turns[0].leave()
        await waiting
        assert one.status == 200

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_body_that_took_long_is_not_parsed_before_there_is_a_place_again() -> None:
    gateway = make()
    name, turns = f"key {tenant_of(digest_of(KEY))}", list[GateTurn]()

    class Slow(Client):
        async def receive(self) -> MutableMapping[str, Any]:
            if not turns:
                (own,) = gateway.gate._running[name]  # pyright: ignore[reportPrivateUsage]
                own.leave()
                turns.extend([await gateway.gate.enter(name) for _ in range(2)])
                for turn in turns:
                    turn.threads = 1
            return await super().receive()

    async def main() -> None:
        client = Slow(gateway, json.dumps(ECHO).encode(), stays=True)
        waiting = asyncio.create_task(client.ask("/v1/messages", {"x-api-key": KEY}, "POST"))
        await settle()
        assert (client.reads, client.status) == (1, 0)
        turns[0].leave()
        await waiting
        assert client.status == 200

    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("count", "is_apart"), [(1, False), (20_000, True)])
def test_a_large_history_is_projected_in_a_thread(
    count: int, is_apart: bool, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_request = Exchange._make_request  # pyright: ignore[reportPrivateUsage]
    seen: list[bool] = []

    def noted(self: Exchange, given: Any) -> Any:
        seen.append(threading.current_thread() is not threading.main_thread())
        return make_request(self, given)

    monkeypatch.setattr(Exchange, "_make_request", noted)
    turns = [{"role": ("user", "assistant")[at % 2], "content": f"turn {at}"} for at in range(count | 1)]
    client = Client(make(), json.dumps({**ECHO, "messages": turns, "stream": stream}).encode(), stays=True)
    asyncio.run(client.ask("/v1/messages", {"x-api-key": KEY}))
    assert (client.status, seen) == (200, [is_apart])


def test_console_work_is_done_in_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and contents are decoded, and requests prepared again, off the event loop; nothing is decoded twice."""
    seen: list[tuple[str, bool]] = []
    for name in ("_part_of", "_find_offered", "_prepare"):
        original = getattr(console, name)

        def noted(*given: Any, name: str = name, original: Any = original) -> Any:
            seen.append((name, threading.current_thread() is not threading.main_thread()))
            return original(*given)

        monkeypatch.setattr(console, name, noted)
    text = f'[models."*"]\ntry = ["segue/echo"]\n[state]\ncontent = "full"\nstore = "sqlite:{tmp_path}/g.db"'
    gateway = Gateway(load_config(text), environment={"XDG_STATE_HOME": str(tmp_path)})

    app = create_app(gateway=gateway)

    async def send(path: str, body: object, method: str) -> Client:
        client = Client(gateway, json.dumps(body).encode(), stays=True)
        client.app = app
        await client.ask(path, {}, method)
        return client

    async def main() -> None:
        await gateway.start()
        row = (await send("/v1/messages", ECHO, "POST")).headers["x-segue-request-id"]
        for _ in range(3):
            listed = json.loads((await send("/segue/conversations", {}, "GET")).body)
        assert [sums["requests"] for sums in listed["caching"].values()] == [1]
        again = await send(f"/segue/requests/{row}/replay", {"model": "segue/echo"}, "POST")
        assert again.status == 200, again.body
        await gateway.close()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert sorted(seen) == [("_find_offered", True), ("_part_of", True), ("_prepare", True)]


def test_clients_without_keys_are_told_apart_by_their_connection_here_and_by_their_address_elsewhere() -> None:
    gateway = make(keys=False)
    names = [gateway.name_client(client, {}, "/") for client in (("127.0.0.1", 1), ("127.0.0.1", 2), ("192.0.2.7", 3))]
    assert names == ["connection 127.0.0.1:1", "connection 127.0.0.1:2", "address 192.0.2.7"]
    assert create_app(gateway=gateway).state.gateway is gateway
