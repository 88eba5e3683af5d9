"""The files of the store and of the key belong to their owner alone, from the moment in which they exist."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.gateway.store import private_files
from segue.gateway.store.opening import open_store
from segue.gateway.store.private_files import read_or_make_secret
from segue.gateway.store.store import StoredReply

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_database_and_its_folder_are_created_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "segue" / "gateway.db"
    store = open_store(f"sqlite:{path}")
    assert store is not None
    store.envelope_key()
    store.put_all([StoredReply("r", "t", b"secret")], 1)
    assert sorted(file.name for file in path.parent.iterdir()) == ["gateway.db", "gateway.db-shm", "gateway.db-wal"]
    assert {_mode(file) for file in path.parent.iterdir()} == {0o600}
    assert {_mode(path.parent), _mode(path.parent.parent)} == {0o700}
    store.close()


def test_a_file_that_others_may_read_is_narrowed_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gateway.db"
    first = open_store(f"sqlite:{path}")
    assert first is not None
    first.put_all([StoredReply("r", "t", b"secret")], 1)
    files = [path, tmp_path / "gateway.db-wal", tmp_path / "gateway.db-shm"]
    for file in files:
        file.chmod(0o644)
    tmp_path.chmod(0o755)
    with caplog.at_level(logging.WARNING, "segue.gateway"):
        second = open_store(f"sqlite:{path}")
    assert second is not None
    assert second.get_response("r", "t") == b"secret"
    assert {_mode(file) for file in files} == {0o600}
    assert _mode(tmp_path) == 0o755  # a folder of the user's own stays as it is
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} had the permissions 644; now only its owner may read it" for file in files
    ]
    first.close()
    second.close()


def test_the_database_is_never_wider_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    original = private_files.narrow

    def narrow(path: Path) -> None:
        if path.exists():
            modes.append(_mode(path))
        original(path)

    monkeypatch.setattr(private_files, "narrow", narrow)
    store = open_store(f"sqlite:{tmp_path / 'x' / 'gateway.db'}")
    assert store is not None
    assert modes == [0o600]
    store.close()


def test_the_key_file_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "segue" / "gateway.key"
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(read_or_make_secret(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(bytes.fromhex(found[0])) == 32
    assert [file.name for file in path.parent.iterdir()] == ["gateway.key"]
    assert (_mode(path), _mode(path.parent)) == (0o600, 0o700)


def test_a_gateway_narrows_the_key_file_of_an_earlier_version(tmp_path: Path) -> None:
    folder = tmp_path / "segue"
    folder.mkdir()
    (folder / "gateway.key").write_text("ab" * 32)
    gateway = Gateway(load_config('[state]\nstore = "none"'), environment={"XDG_STATE_HOME": str(tmp_path)})
    assert _mode(folder / "gateway.key") == 0o600
    assert gateway.envelopes is not None
