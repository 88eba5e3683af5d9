"""`segue ui`: addresses, ports, screens and files; every mistake is one sentence."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest

from cli.running import SESSION, run

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("uvicorn")


def first_lines(*arguments: object, env: dict[str, str] | None = None) -> list[str]:
    """Run `segue ui` until it waits for requests, and give what it printed."""
    command = [sys.executable, "-m", "segue", "ui", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            while "Ctrl-C" not in lines[-1]:
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            address = re.search(r"http://\S+", lines[0])
            assert address
            assert httpx2.get(address[0], timeout=60).status_code == 200
            process.terminate()
            return [line.strip() for line in [*lines, *process.stdout.readlines()]]
        finally:
            process.kill()


def sentence(*arguments: object) -> str:
    """Give the one line that a mistake prints."""
    done = run("ui", "--no-browser", *arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    return done.err


def test_a_busy_port_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is in use" in sentence("--port", port)


@pytest.mark.parametrize("host", ["203.0.113.1", "no such name.invalid"])
def test_an_address_of_another_machine_is_one_sentence(host):
    assert "address" in sentence("--host", host)


FILES = {
    "a binary file": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "this is a binary file"),
    "no JSON": (b"hello", "not valid JSON"),
    "an empty file": (b"", "empty"),
    "another JSON": (b'{"a": 1}', "--from"),
}


@pytest.mark.parametrize(("data", "given"), FILES.values(), ids=FILES.keys())
def test_a_file_that_is_no_conversation_is_one_sentence(tmp_path, data, given):
    path = tmp_path / "given.json"
    path.write_bytes(data)
    found = sentence(path)
    assert given in found
    assert str(path) in found


def test_a_machine_without_a_display_gets_the_address_and_no_browser():
    screens: dict[str, str] = dict.fromkeys(("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER"), "")
    lines = first_lines(SESSION, env=screens)
    assert sum("no display" in line for line in lines) == (sys.platform == "linux")


def test_every_address_of_the_machine_works_with_the_token_and_a_warning():
    lines = first_lines("--no-browser", "--host", "0.0.0.0", SESSION)
    assert "http://127.0.0.1:" in lines[0]
    assert f"http://{socket.gethostname()}:" in lines[1]
    assert "not encrypted" in lines[2]
    token = lines[0].rstrip("/").rpartition("/")[2]
    assert len(token) >= 20
    assert token in lines[1]


def test_loopback_of_version_six_is_written_in_brackets():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("with IPv6 (not on this machine)")
    assert "http://[::1]:" in first_lines("--no-browser", "--host", "::1")[0]
