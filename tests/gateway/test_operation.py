"""The operation of a gateway: the doctor, backups, gc, erasing, and how it stops."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli.running import ROOT, run
from gateway.running import KEYS, config_text
from segue.errors import SettingsError
from segue.gateway.config import load_config
from segue.gateway.doctor import GatewayFinding, examine
from segue.gateway.reloading import is_accepted
from segue.gateway.store.backups import back_up, restore_file
from segue.gateway.store.opening import open_store
from segue.gateway.store.store import DAY, Store, StoredContent, StoredRow
from segue.testing.emulator import Step, emulate

NOW = 1_800_000_000_000


def answer(status: int = 404, *, behind: int = 0) -> Any:
    date = format_datetime(datetime.now(UTC) - timedelta(seconds=behind), usegmt=True)

    def get(url: str) -> httpx2.Response:
        if url.endswith("/health"):
            raise httpx2.ConnectError("refused")
        return httpx2.Response(status, headers={"date": date}, request=httpx2.Request("GET", url))

    return get


def refuse(url: str) -> httpx2.Response:
    raise httpx2.ConnectError("no route", request=httpx2.Request("GET", url))


def other_program(url: str) -> httpx2.Response:
    return httpx2.Response(200, text="hello", request=httpx2.Request("GET", url))


def old_gateway(url: str) -> httpx2.Response:
    return httpx2.Response(200, json={"version": "0.0.1"}, request=httpx2.Request("GET", url))


ROUTE = '[models."a"]\ntry = ["anthropic/claude-opus-4-8"]\n'
CASES: dict[str, tuple[str, Any, Any, tuple[str, str, str]]] = {
    "all is well": (ROUTE, KEYS, answer(), ("ok", "reachability", "anthropic answers at https://api.anthropic.com/")),
    "keys are there": (ROUTE, KEYS, answer(), ("ok", "keys", "1 model of routes can be asked")),
    "a key is missing": (ROUTE, {}, answer(), ("warn", "keys", "ANTHROPIC_API_KEY")),
    "no way to a provider": (ROUTE, KEYS, refuse, ("warn", "reachability", "ConnectError")),
    "a wrong clock": (ROUTE, KEYS, answer(behind=400), ("warn", "clock", "set the clock")),
    "an unknown model": ('[models."a"]\ntry = ["no/such"]\n', KEYS, answer(), ("fail", "configuration", "no/such")),
    "open to all": ('[listen]\naddress = "0.0.0.0:1"\n', KEYS, answer(), ("fail", "configuration", "key")),
    "another program": (ROUTE, KEYS, other_program, ("fail", "address", "another program listens")),
    "an older gateway": (ROUTE, KEYS, old_gateway, ("warn", "address", "version 0.0.1")),
    "a collector that is away": (
        f'{ROUTE}[telemetry]\nendpoint = "http://127.0.0.1:9"\n',
        KEYS,
        refuse,
        ("warn", "reachability", "the collector"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_doctor_finds(name: str) -> None:
    text, environment, get, (state, subject, part) = CASES[name]
    config = load_config(text + '[state]\nstore = "none"\n')
    found = [*examine(config, {**environment, "HOME": "/nowhere"}, get)]
    assert [each for each in found if each[:2] == (state, subject) and part in each.text], found
    assert "sk-upstream-key" not in str(found)


def find_store(text: str) -> GatewayFinding:
    return next(
        each for each in examine(load_config(text), {**KEYS, "HOME": "/nowhere"}, None) if each.subject == "store"
    )


def test_the_doctor_looks_at_the_store(tmp_path: Path) -> None:
    assert find_store(f'[state]\nstore = "sqlite:{tmp_path}/g.db"')[:2] == ("ok", "store")
    assert find_store('[state]\nstore = "none"').state == "warn"
    (tmp_path / "bad.db").write_bytes(b"no database" * 100)
    assert find_store(f'[state]\nstore = "sqlite:{tmp_path}/bad.db"').state == "fail"


def test_the_doctor_says_how_far_the_store_is_ahead(tmp_path: Path) -> None:
    store = opened(tmp_path / "g.db")
    store.put_all([StoredRow("first", "t", b"{}")], time.time_ns() // 1_000_000 + 3_600_000)
    store.close()
    config = load_config(f'[state]\nstore = "sqlite:{tmp_path}/g.db"')
    (found,) = (each for each in examine(config, {**KEYS, "HOME": "/nowhere"}, None) if each.subject == "clock")
    ahead = re.search(r"(\d+) s ahead", found.text)
    assert ahead is not None
    assert 3000 < int(ahead[1]) <= 3600


def test_the_program_prints_findings_and_its_status_says_whether_it_would_work(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'[models."*"]\ntry = ["segue/echo"]\n[state]\nstore = "sqlite:{tmp_path}/g.db"\n')
    ran = run("gateway", "doctor", "--offline", "--config", file)
    assert ran.status == 0, ran
    assert "ok    store: SQLite takes writes" in ran.out
    file.write_text('[models."a"]\ntry = ["no/such"]\n')
    ran = run("gateway", "doctor", "--offline", "--config", file)
    assert ran.status == 1
    assert "fail  configuration" in ran.out


def opened(path: Path) -> Store:
    store = open_store(f"sqlite:{path}")
    assert store is not None
    return store


def count(store: Store, table: str = "requests") -> int:
    return len(store.database.query(f"select id from {table}"))


def test_a_backup_is_whole_while_the_store_is_written(tmp_path: Path) -> None:
    store, source, target = opened(tmp_path / "g.db"), tmp_path / "g.db", tmp_path / "copies" / "b.db"
    store.put_all([StoredRow(f"first{n}", "t", b"{}") for n in range(500)], NOW)
    key = store.envelope_key()
    is_over = threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            store.put_all([StoredRow(f"r{number}-{n}", "t", b"{}") for n in range(10)], NOW)
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            back_up(source, target)
            copy = sqlite3.connect(target)
            assert copy.execute("pragma integrity_check").fetchone() == ("ok",)
            found = copy.execute("select count(*) from requests").fetchone()[0]
            assert found >= 500
            assert found % 10 == 0  # whole transactions
            copy.close()
    finally:
        is_over.set()
        thread.join()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    store.close()
    restored = tmp_path / "other.db"
    restore_file(target, restored)
    again = opened(restored)
    assert again.envelope_key() == key  # envelopes of clients stay readable
    assert count(again) >= 500
    again.close()


def test_a_restored_store_replaces_the_old_one_with_its_log(tmp_path: Path) -> None:
    store = opened(tmp_path / "g.db")
    store.put_all([StoredRow("old", "t", b"{}")], NOW)
    back_up(tmp_path / "g.db", tmp_path / "b.db")
    store.put_all([StoredRow("new", "t", b"{}")], NOW)
    store.close()
    (tmp_path / "g.db-wal").write_bytes(b"of the old store")
    ran = run("gateway", "restore", tmp_path / "b.db", "--store", f"sqlite:{tmp_path}/g.db")
    assert ran.status == 2
    assert "--replace" in ran.err
    assert run("gateway", "restore", tmp_path / "b.db", "--store", f"sqlite:{tmp_path}/g.db", "--replace").status == 0
    again = opened(tmp_path / "g.db")
    assert [row[0] for row in again.database.query("select id from requests")] == ["old"]
    again.close()


@pytest.mark.parametrize("kind", ["no store", "damaged", "later", "no database"])
def test_what_is_no_backup_changes_nothing(tmp_path: Path, kind: str) -> None:
    store = opened(tmp_path / "g.db")
    store.put_all([StoredRow(f"r{n}", "t", b"x" * 2000) for n in range(50)], NOW)
    store.close()
    before, bad = (tmp_path / "g.db").read_bytes(), tmp_path / "bad.db"
    if kind == "no database":
        bad.write_bytes(b"text" * 999)
    elif kind == "damaged":
        bad.write_bytes(before[:8192] + os.urandom(8192) + before[16384:])
    else:
        made = sqlite3.connect(bad)
        made.execute("create table meta (name text primary key, value text not null)")
        if kind == "later":
            made.execute("insert into meta values ('schema', '999')")
        made.commit()
        made.close()
    with pytest.raises(SettingsError):
        restore_file(bad, tmp_path / "g.db")
    assert (tmp_path / "g.db").read_bytes() == before
    assert not [*tmp_path.glob("*.new")]


def test_gc_deletes_what_has_expired_and_shrinks_the_file(tmp_path: Path) -> None:
    import time

    now = time.time_ns() // 1_000_000
    store = opened(tmp_path / "g.db")
    store.put_all([StoredContent(f"c{n}", "t", os.urandom(20_000), "x") for n in range(100)], now - 9 * DAY)
    store.put_all([StoredRow("new", "t", b"{}")], now)
    store.close()
    size = (tmp_path / "g.db").stat().st_size
    ran = run("gateway", "gc", "--store", f"sqlite:{tmp_path}/g.db")
    assert ran.status == 0, ran
    store = opened(tmp_path / "g.db")
    assert (count(store, "contents"), count(store)) == (0, 1)
    store.close()
    assert (tmp_path / "g.db").stat().st_size < size / 10


def test_the_program_erases_a_conversation_or_a_key(tmp_path: Path) -> None:
    store = opened(tmp_path / "g.db")
    rows = [StoredRow(f"r{n}", "alice" if n % 2 else "bob", b"{}", NOW, f"c{n}") for n in range(4)]
    store.put_all(rows, NOW)
    where = ("--store", f"sqlite:{tmp_path}/g.db", "--yes")
    assert run("gateway", "erase", *where).status == 2
    assert "erased 1 row" in run("gateway", "erase", "--conversation", "c0", *where).out
    assert run("gateway", "erase", "--tenant", "alice", *where).status == 0
    assert [row[0] for row in store.database.query("select id from requests")] == ["r2"]
    store.close()


def test_postgresql_is_backed_up_by_its_own_tools() -> None:
    ran = run("gateway", "backup", "x", "--store", "postgresql://host/name")
    assert ran.status == 2
    assert "pg_dump" in ran.err


def test_a_gateway_that_is_told_to_stop_ends_the_replies_that_run_and_takes_no_new_ones(tmp_path: Path) -> None:
    body = {
        "model": "m-anthropic",
        "max_tokens": 64,
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    with emulate(Step(text="one two three four five six", pause=0.3)) as upstream:
        file = tmp_path / "gateway.toml"
        more = '[listen]\naddress = "127.0.0.1:0"\n'
        file.write_text(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more))
        process = subprocess.Popen(
            [sys.executable, "-m", "segue", "serve", "--config", str(file)],
            cwd=ROOT,
            env={**os.environ, **KEYS, "PYTHONUNBUFFERED": "1", "XDG_STATE_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            with httpx2.stream("POST", f"{url}/v1/messages", json=body, timeout=60) as reply:
                pieces = reply.iter_text()
                text = next(pieces)
                process.send_signal(signal.SIGTERM)
                is_refused = False
                for piece in pieces:
                    text += piece
                    if not is_refused:
                        try:
                            httpx2.get(f"{url}/health", timeout=5)
                        except httpx2.ConnectError:
                            is_refused = True
            assert is_refused
            assert "six" in text
            assert "message_stop" in text
            assert process.wait(45) in (0, -signal.SIGTERM)  # the server raises the signal again at its end
        finally:
            process.kill()
            process.communicate(timeout=10)
    store = opened(tmp_path / "g.db")
    assert count(store) == 1  # its row is stored
    store.close()


def test_the_unit_of_systemd_names_commands_that_exist() -> None:
    unit = (ROOT / "deploy" / "segue-gateway.service").read_text()
    commands = [line.partition("=")[2].split()[1:] for line in unit.splitlines() if line.startswith("ExecStart")]
    assert commands == [
        ["gateway", "doctor", "--offline", "--config", "/etc/segue/gateway.toml"],
        ["serve", "--config", "/etc/segue/gateway.toml"],
    ]
    for command in commands:
        shown = run(*[word for word in command if word[0] not in "-/"], "--help").out
        assert all(word in shown for word in command if word.startswith("--"))


@pytest.mark.parametrize("page", ["team.md", "gateway.md", "gateway-operation.md"])
def test_the_configurations_of_the_documents_can_be_read(page: str) -> None:
    blocks = re.findall(r"^( *)```toml\n(.*?)^ *```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    for indent, block in blocks:
        load_config("".join(line.removeprefix(indent) for line in block.splitlines(keepends=True)))


def test_a_folder_is_made_before_files_are_put_into_it() -> None:
    lines = (ROOT / "docs" / "team.md").read_text().splitlines()
    made = next(at for at, line in enumerate(lines) if re.search(r"install -d .*/etc/segue$", line))
    used = [at for at, line in enumerate(lines) if re.search(r"(install -m|link) .*/etc/segue/", line)]
    assert used
    assert made < min(used)


def test_a_changed_file_is_accepted_by_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[models."*"]\ntry = ["same"]\n')
    digest = sha256(file.read_bytes()).digest()
    assert "is valid" in run("gateway", "reload", "--config", str(file)).out
    assert not is_accepted(file, digest)
    assert "is accepted" in run("gateway", "reload", "--accept", "--config", str(file)).out
    assert is_accepted(file, digest)
    file.write_text("[models")
    assert run("gateway", "reload", "--accept", "--config", str(file)).status == 2


def test_the_commands_of_the_documents_exist() -> None:
    text = (ROOT / "docs" / "team.md").read_text()
    commands = set(re.findall(r"segue gateway (\w+)", text))
    assert commands == {"doctor", "reload", "backup", "restore", "gc", "erase"}
    shown = run("gateway", "--help").out
    assert all(f"  {name} " in shown for name in commands)
