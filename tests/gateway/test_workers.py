"""Workers of one gateway: what holds for all of them together, and what happens when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

import httpx2
import pytest

from cli.running import run
from gateway.running import KEYS, config_text
from gateway.test_metrics import total
from segue.gateway.app import create_app
from segue.gateway.board import Board, CommonNumbers, Tally, make_board, remove_board
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.gateway.store.database import StoreBusy
from segue.gateway.store.sqlite import SqliteDatabase
from segue.testing.emulator import EmulatorServer, Step, emulate, serve_in_thread

BODY = {"model": "m-anthropic", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}
PATIENCE = 240.0
"""Seconds after which something hangs: a busy machine takes a minute to start three processes."""
SECRETS = {"ADMIN": "the-key-of-the-operator", "ALICE": "the-key-of-a-client", "BOB": "the-key-of-another"}


def wait_for(is_done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@pytest.fixture
def boards() -> Generator[tuple[Board, Board]]:
    folder = make_board(2)
    yield Board(folder, 0, 2), Board(folder, 1, 2)
    remove_board(folder)
    assert not folder.exists()


# -- what they share ---------------------------------------------------------------------------------------------------


def test_a_limit_holds_for_all_workers_together(boards: tuple[Board, Board]) -> None:
    one, two = (Tally("running", board) for board in boards)
    other_kind = Tally("sockets", boards[1])
    assert one.take("alice", 2, 3)
    assert two.take("alice", 1, 3)
    assert not two.take("alice", 1, 3)
    assert not one.take("alice", 1, 3)
    assert two.take("bob", 3, 3)
    assert other_kind.take("alice", 3, 3)
    one.add("alice", -1)
    assert two.take("alice", 1, 3)
    assert (one.of("alice"), two.of("alice")) == (1, 2)


def test_what_a_dead_worker_took_up_is_free_again(boards: tuple[Board, Board]) -> None:
    one, two = (Tally("running", board) for board in boards)
    assert one.take("alice", 1, 2)
    assert two.take("alice", 1, 2)
    boards[0].clear(1)
    assert one.take("alice", 1, 2)
    assert not one.take("alice", 1, 2)


def test_a_tally_of_one_process_counts_the_same() -> None:
    tally = Tally("running")
    assert tally.take("alice", 2, 2)
    assert not tally.take("alice", 1, 2)
    tally.add("alice", -2)
    assert tally.sum() == 0


def test_numbers_of_all_workers_are_a_mapping(boards: tuple[Board, Board]) -> None:
    one, two = (CommonNumbers("until", board) for board in boards)
    one["openai", "gpt"] = 123456.25
    assert two.get(("openai", "gpt"), 0.0) == 123456.25
    assert two.get(("openai", "other"), 7.0) == 7.0
    two.pop(("openai", "gpt"), None)
    assert one.get(("openai", "gpt"), 0.0) == 0.0


def test_the_board_of_a_supervisor_that_was_killed_is_removed(boards: tuple[Board, Board]) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(PATIENCE)
    left = boards[0].folder.parent / f"segue-workers-{ended.pid}-left"
    left.mkdir()
    (left / "numbers").write_bytes(b"")
    remove_board(make_board(1))
    assert not left.exists()
    assert boards[0].folder.exists()


def test_a_link_of_another_user_removes_nothing(boards: tuple[Board, Board], tmp_path: Path) -> None:
    """Every user of the machine can make a link in the folder of the boards, with any name."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(PATIENCE)
    (tmp_path / "important").write_bytes(b"")
    left = boards[0].folder.parent / f"segue-workers-{ended.pid}-left"
    left.symlink_to(tmp_path)
    try:
        remove_board(make_board(1))
    finally:
        left.unlink()
    assert (tmp_path / "important").exists()


def test_what_is_counted_of_one_kind_is_never_in_the_way_of_another(boards: tuple[Board, Board]) -> None:
    """One key sends large bodies, with any name that a digest of two bytes has room for."""
    held, running = Tally("held", boards[0]), Tally("running", boards[1])
    for number in range(100_000):
        held.add(f"key {number}", 1_000_000)
    assert all(running.take(f"other {number}", 1, 1) for number in range(100))


def test_processes_that_write_to_a_store_take_turns(tmp_path: Path) -> None:
    path, turns = str(tmp_path / "g.db"), tmp_path / "turns"
    one, two = SqliteDatabase(path, turns=turns), SqliteDatabase(path, turns=turns)
    with one.transaction() as first:
        first.run("create table t (x integer)")
        with pytest.raises(StoreBusy), two.transaction(waits=False):
            pass
    with two.transaction(waits=False) as second:
        second.run("insert into t values (1)")
    assert one.query("select x from t") == [(1,)]
    one.close()
    two.close()


# -- two of them in one process ----------------------------------------------------------------------------------------


@final
class Pair(NamedTuple):
    """Two workers, each at an address of its own, and the emulator behind them."""

    one: str
    two: str
    gateways: tuple[Gateway, Gateway]
    upstream: EmulatorServer


@contextmanager
def pair(boards: tuple[Board, Board], folder: Path, *steps: Step, more: str = "") -> Generator[Pair]:
    with emulate(*steps) as upstream, ExitStack() as stack:
        config = load_config(config_text(upstream.url, store=f"sqlite:{folder}/g.db", more=more))
        made = tuple(Gateway(config, environment={**KEYS, **SECRETS}, board=board) for board in boards)
        urls = [stack.enter_context(serve_in_thread(create_app(gateway=gateway))) for gateway in made]
        yield Pair(urls[0], urls[1], (made[0], made[1]), upstream)


def post(url: str, body: object = BODY, **headers: str) -> httpx2.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(f"{url}/v1/messages", json=body, headers=given, timeout=PATIENCE)


def test_requests_of_a_key_are_counted_at_both(boards: tuple[Board, Board], tmp_path: Path) -> None:
    slow = Step(text="one two three four", pause=0.3)
    with pair(boards, tmp_path, slow, more="[limits]\nrequests_per_key = 1") as workers:
        with httpx2.stream(
            "POST", f"{workers.one}/v1/messages", json={**BODY, "stream": True}, timeout=PATIENCE
        ) as reply:
            pieces = reply.iter_text()
            next(pieces)
            refused = post(workers.two)
            assert refused.status_code == 429
            assert "1 requests with this key run already" in refused.text
            assert "message_stop" in "".join(pieces)
        wait_for(lambda: not workers.gateways[0].intake.running, "the first request does not end")
        assert post(workers.two).status_code == 200


def test_a_model_that_fails_at_one_is_left_out_at_the_other(boards: tuple[Board, Board], tmp_path: Path) -> None:
    more = (
        '[models."two"]\ntry = ["anthropic/claude-opus-4-8", "openai/gpt-5.4"]\nsticky = false\n'
        "[limits]\nbreaker_failures = 2\nbreaker_seconds = 600\nretries = 0"
    )
    bad = Step(status=500, text="broken")
    with pair(boards, tmp_path, bad, Step(text="ok"), bad, Step(text="ok"), more=more) as workers:
        body = {**BODY, "model": "two"}
        tried = [post(url, body).headers["x-segue-attempts"] for url in (workers.one, workers.two)]
        assert tried == ["2", "2"]
        assert [post(url, body).headers["x-segue-attempts"] for url in (workers.one, workers.two)] == ["1", "1"]


def test_figures_are_those_of_both_and_outlive_one(boards: tuple[Board, Board], tmp_path: Path) -> None:
    def counted(url: str) -> float:
        return total(httpx2.get(f"{url}/metrics").text, "segue_requests_total")

    with pair(boards, tmp_path) as workers:
        for url in (workers.one, workers.two, workers.two):
            assert post(url).status_code == 200
        assert [counted(workers.one), counted(workers.two)] == [3, 3]
        text = httpx2.get(f"{workers.one}/metrics").text
        assert total(text, "segue_request_seconds_count") == 3
        assert total(text, "segue_requests_running") == 0
    with pair(boards, tmp_path) as workers:  # started again
        assert post(workers.two).status_code == 200
        assert [counted(workers.one), counted(workers.two)] == [4, 4]


def test_a_row_can_be_asked_for_and_erased_at_the_other(boards: tuple[Board, Board], tmp_path: Path) -> None:
    with pair(boards, tmp_path) as workers:
        name = post(workers.one, x_session_id="mine").headers["x-segue-request-id"]
        row = httpx2.get(f"{workers.two}/segue/requests/{name}")
        assert row.status_code == 200
        conversation = row.json()["conversation"]
        assert httpx2.get(f"{workers.two}/segue/requests").json()["requests"][0]["id"] == name
        assert httpx2.delete(f"{workers.two}/segue/conversations/{conversation}").json()["erased"]
        for url in (workers.one, workers.two):
            assert httpx2.get(f"{url}/segue/requests/{name}").status_code == 404
            assert httpx2.get(f"{url}/segue/conversations").json()["conversations"] == []


def test_a_title_that_was_read_at_one_is_gone_when_its_request_is_erased_at_the_other(
    boards: tuple[Board, Board], tmp_path: Path
) -> None:
    with pair(boards, tmp_path, more='content = "full"') as workers:
        name = post(workers.one, x_session_id="mine").headers["x-segue-request-id"]

        def titles() -> list[str]:
            return [*httpx2.get(f"{workers.two}/segue/conversations", timeout=PATIENCE).json()["titles"].values()]

        def rows() -> list[Any]:
            return httpx2.get(f"{workers.one}/segue/requests").json()["requests"]

        # Contents are written after replies; those that are written together are equally new.
        wait_for(lambda: len(rows()) == 1, "the first request has no row")
        post(workers.one, {**BODY, "messages": [{"role": "user", "content": "Later"}]}, x_session_id="mine")
        wait_for(lambda: len(rows()) == 2, "the second request has no row")
        assert titles() == ["Later"]
        for row in rows():
            if row["id"] != name:
                assert httpx2.delete(f"{workers.one}/segue/requests/{row['id']}").json()["erased"]
        assert titles() == ["Hi"]


def test_a_switch_made_at_one_is_seen_at_the_other(boards: tuple[Board, Board], tmp_path: Path) -> None:
    with pair(boards, tmp_path) as workers:
        name = post(workers.one, x_session_id="mine").headers["x-segue-request-id"]
        conversation = httpx2.get(f"{workers.two}/segue/requests/{name}").json()["conversation"]
        for first, second, model in (
            (workers.two, workers.one, "openai/gpt-5.4"),
            (workers.one, workers.two, "google/gemini-3.1-pro-preview"),
        ):
            chosen = httpx2.put(f"{first}/segue/conversations/{conversation}", json={"model": model})
            assert chosen.status_code == 200
            assert post(second, x_session_id="mine").headers["x-segue-model"] == model


def test_a_switch_by_request_is_seen_at_the_other(boards: tuple[Board, Board], tmp_path: Path) -> None:
    """Nothing names the conversation, so what continues the reply is switched; the choice is in memory alone."""
    with pair(boards, tmp_path) as workers:
        messages: list[Any] = list(BODY["messages"])  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
        first = post(workers.one, {**BODY, "messages": messages})
        name = first.headers["x-segue-request-id"]
        switched = httpx2.put(f"{workers.two}/segue/requests/{name}", json={"model": "openai/gpt-5.4"})
        assert switched.status_code == 200
        reply = first
        for url in (workers.one, workers.two, workers.one):
            messages += [
                {"role": "assistant", "content": reply.json()["content"]},
                {"role": "user", "content": "and now?"},
            ]
            reply = post(url, {**BODY, "messages": messages})
            assert reply.headers["x-segue-model"] == "openai/gpt-5.4"


def test_a_key_that_is_revoked_at_one_is_refused_at_the_other(boards: tuple[Board, Board], tmp_path: Path) -> None:
    admin = {"authorization": "Bearer the-key-of-the-operator"}
    with pair(boards, tmp_path, more='[listen]\nadmin_key = "env:ADMIN"') as workers:
        place = "/segue/admin/keys"
        secret = httpx2.post(f"{workers.one}{place}", json={"name": "alice"}, headers=admin).json()["key"]
        assert post(workers.two).status_code == 401
        assert post(workers.two, x_api_key=secret).status_code == 200
        assert httpx2.delete(f"{workers.two}{place}/alice", headers=admin).status_code == 200
        assert post(workers.one, x_api_key=secret).status_code == 401


def test_a_worker_that_is_gone_is_left_out(boards: tuple[Board, Board], tmp_path: Path) -> None:
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db"))
        with serve_in_thread(create_app(gateway=Gateway(config, environment=KEYS, board=boards[0]))) as url:
            assert post(url).status_code == 200
            assert total(httpx2.get(f"{url}/metrics").text, "segue_requests_total") == 1


# -- processes ---------------------------------------------------------------------------------------------------------


@final
class Served(NamedTuple):
    """A gateway with two workers, and its configuration file."""

    url: str
    process: subprocess.Popen[str]
    file: Path

    def workers(self) -> list[int]:
        """Give the ids of the processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in children.split()]


@contextmanager
def served(upstream: str, folder: Path, more: str = "") -> Generator[Served]:
    file = folder / "gateway.toml"
    listen = '[listen]\naddress = "127.0.0.1:0"\n'
    file.write_text(config_text(upstream, store=f"sqlite:{folder}/g.db", more=f"{listen}{more}"))
    (folder / "uvicorn.py").write_text("raise SystemExit('a module of the folder in which the gateway is started')")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "segue", "serve", "--config", str(file), "--workers", "2"],
        cwd=folder,
        env={**os.environ, **KEYS, **SECRETS, "PYTHONUNBUFFERED": "1", "XDG_STATE_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        made = Served(process.stdout.readline().split()[-1], process, file)
        assert post(made.url).status_code < 500
        yield made
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.communicate(timeout=10)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    with emulate() as upstream, served(upstream.url, tmp_path) as gateway:
        before = gateway.workers()
        assert len(before) == 2
        names: list[str] = []
        os.kill(before[0], signal.SIGKILL)
        for _ in range(8):  # each on a new connection: some wait for the successor
            reply = post(gateway.url, x_session_id="mine")
            assert reply.status_code == 200
            names.append(reply.headers["x-segue-request-id"])
        wait_for(lambda: len(gateway.workers()) == 2, "the worker is not started again")
        assert before[0] not in gateway.workers()
        listed = httpx2.get(f"{gateway.url}/segue/requests", timeout=PATIENCE).json()["requests"]
        assert set(names) <= {row["id"] for row in listed}
        # A file that is held is not applied by a worker that is started again, either.
        text = gateway.file.read_text()
        gateway.file.write_text(text.replace(f'base_url = "{upstream.url}"', ""))
        wait_for(lambda: "held" in httpx2.get(f"{gateway.url}/health").text, "the file is not held")
        os.kill(before[1], signal.SIGKILL)
        wait_for(lambda: before[1] not in gateway.workers() and len(gateway.workers()) == 2, "it is not started again")
        assert [post(gateway.url).status_code for _ in range(8)] == [200] * 8
        workers = gateway.workers()
        gateway.process.terminate()
        assert gateway.process.wait(PATIENCE) in (0, -signal.SIGTERM)
        assert not any(map(is_running, workers))


@linux
def test_budgets_outlive_a_killed_worker_and_changes_of_the_file_reach_all(tmp_path: Path) -> None:
    more = '[keys.alice]\nkey = "env:ALICE"\nbudgets = {total = {tokens = 300}}\n[keys.bob]\nkey = "env:BOB"\n'
    with emulate() as upstream, served(upstream.url, tmp_path, more) as gateway:
        replies = [post(gateway.url, x_api_key=SECRETS["ALICE"]) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200] * 3
        os.kill(gateway.workers()[0], signal.SIGKILL)  # neither what it spent nor the rest of the budget is lost
        replies += [post(gateway.url, x_api_key=SECRETS["ALICE"]) for _ in range(37)]
        used = [reply.json()["usage"] for reply in replies if reply.status_code == 200]
        spent = sum(usage["input_tokens"] + usage["output_tokens"] for usage in used)
        assert 150 < spent <= 300
        assert len(used) < len(replies)
        assert len(upstream.emulator.requests) == len(used)
        gateway.file.write_text(gateway.file.read_text() + '[models."new"]\ntry = ["openai/gpt-5.4"]\n')
        body = {**BODY, "model": "new"}

        def have_all() -> bool:
            return all(post(gateway.url, body, x_api_key=SECRETS["BOB"]).status_code == 200 for _ in range(8))

        wait_for(have_all, "a worker has the old routes")
        # Workers end with their supervisor, however it ends.
        workers = gateway.workers()
        gateway.process.kill()
        wait_for(lambda: not any(map(is_running, workers)), "the workers outlive their supervisor")


# -- the program -------------------------------------------------------------------------------------------------------


def test_workers_need_a_store() -> None:
    ran = run("serve", "--workers", "2", "--store", "none", "--port", "0")
    assert ran.status != 0
    assert "set state.store" in ran.err
