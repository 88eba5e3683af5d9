"""The instructions of a gateway for a request, counted by callgrind: a figure that other programs do not change.

CPU time on a shared machine differs by a tenth from run to run; instructions differ by 1 % (the order of sets, times in
values). They are not time: waits for memory and for the kernel are not counted, nor is the server in front. The gateway
runs in one process, its application is called directly, and a stub in place of its connections answers at once. All of
its threads count.

`python benchmarks/gateway_instructions.py [FOLDER...] [--rows NAME...] [--kept PART...]` compares the `src` folders of
commits. Rows are those of `gateway_pairs` that are not streamed; of `store`, `key` and `telemetry`, the parts that are
named are switched on. Needed: valgrind and a C compiler. A row takes about a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest.mock import patch

import httpx2
from figures import Figure
from gateway_pairs import NEW, Row, make_rows
from gateway_servers import KEY, WHOLE

_SWITCH: Final = """\
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; }
void end(void) { CALLGRIND_STOP_INSTRUMENTATION; }
"""
_REQUESTS: Final = 192
_WARM: Final = 256
_COUNTED: Final = re.compile(r"Collected : (\d+)")
_NUMBERS: Final = count(1)
Mark: TypeAlias = Callable[[], object]
PARTS: Final = ("store", "key", "telemetry")


class _Body(httpx2.AsyncByteStream):
    """The body of a reply that is there."""

    def __init__(self, tap: Callable[[bytes], object] | None) -> None:
        self._tap = tap
        self.is_read = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self.is_read:
            raise StopAsyncIteration
        self.is_read = True
        if self._tap is not None:
            self._tap(WHOLE)
        return WHOLE

    async def aclose(self) -> None:
        """Do nothing."""


class _Reply:
    """A reply of the provider."""

    def __init__(self, tap: Callable[[bytes], object] | None) -> None:
        self.status_code = 200
        self.headers = {"content-type": "application/json", "content-length": str(len(WHOLE))}
        self.stream = _Body(tap)

    async def aclose(self) -> None:
        """Do nothing."""


class _Sink(BaseHTTPRequestHandler):
    """Takes what telemetry sends."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Drop it."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def _write_config(folder: str, url: str, parts: Sequence[str]) -> str:
    lines = [
        '[providers.plain]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:1"\nkey = "env:PLAIN_KEY"',
        *(f'[models."{name}"]\ntry = ["plain/plain"]' for name in ("m", "plain")),
        f'[state]\nstore = "{f"sqlite:{folder}/gateway.db" if "store" in parts else "none"}"',
    ]
    lines += ['[keys.team]\nkey = "env:KEY"'] * ("key" in parts)
    lines += [f'[telemetry]\nendpoint = "{url}"'] * ("telemetry" in parts)
    return "\n".join(lines)


async def _call(app: Callable[..., Awaitable[None]], row: Row) -> None:
    body = row.body.replace(NEW, b"%08d" % next(_NUMBERS))
    received: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
    statuses: list[object] = []

    async def receive() -> dict[str, Any]:
        if not received:
            await asyncio.Event().wait()
        return received.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        statuses.append(message.get("status", 200))

    headers = {"host": "127.0.0.1", "content-type": "application/json", "x-api-key": KEY}
    headers |= {"anthropic-version": "2023-06-01", "content-length": str(len(body))}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": row.path,
        "raw_path": row.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    from segue.gateway.leaving import LEAVING, Connection

    await app({**scope, LEAVING: Connection()}, receive, send)
    if set(statuses) != {200}:
        raise AssertionError(f"the gateway answered {statuses}")


async def send_requests(row: Row, parts: Sequence[str], url: str, folder: str, *, begin: Mark, end: Mark) -> None:
    """Send requests to a gateway; those between `begin` and `end` are counted."""
    from segue.gateway.app import create_app
    from segue.gateway.config import load_config
    from segue.gateway.service import Gateway

    environment = {"PLAIN_KEY": "sk-upstream", "KEY": KEY, "XDG_STATE_HOME": folder}
    gateway = Gateway(load_config(_write_config(folder, url, parts)), environment=environment)
    gateway.owns_process = True
    await gateway.start()
    app = create_app(gateway=gateway)

    async def send_all(requests: int) -> None:
        for _ in range(requests // row.at_once):
            await asyncio.gather(*(asyncio.create_task(_call(app, row)) for _ in range(row.at_once)))

    await send_all(_WARM)
    begin()
    await send_all(_REQUESTS)
    end()
    await gateway.close()


async def _answer(*_: object) -> _Reply:
    from segue.gateway.transport import TAP

    await asyncio.sleep(0)
    return _Reply(TAP.get())


def run_here(key: str, parts: Sequence[str], url: str, begin: Mark, end: Mark) -> None:
    """Send the requests of a row in this process."""
    from segue.gateway.transport import AiohttpTransport

    try:
        import uvloop
    except ModuleNotFoundError:
        make = asyncio.new_event_loop
    else:
        make = uvloop.new_event_loop
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(AiohttpTransport, "send_directly", _answer),
        asyncio.Runner(loop_factory=make) as runner,
    ):
        runner.run(send_requests(make_rows()[key], parts, url, folder, begin=begin, end=end))


def count_instructions(key: str, parts: Sequence[str] = (), source: str | None = None) -> float:
    """Return the instructions of one request of a row, with parts of the gateway switched on."""
    sink = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "switch.c").write_text(_SWITCH)
        library = str(place / "switch.so")
        compiler = shutil.which("cc") or "cc"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(place / "switch.c")], check=True)
        environment = {**os.environ, **({"PYTHONPATH": source} if source else {}), "PYTHONHASHSEED": "0"}
        given = json.dumps([key, list(parts), f"http://127.0.0.1:{sink.server_port}", library])
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={place / 'counted'}"]
        command += [f"--log-file={place / 'log'}", sys.executable, __file__, "--here", given]
        subprocess.run(command, check=True, env=environment)
        found = _COUNTED.search((place / "log").read_text())
    sink.shutdown()
    if found is None or not int(found[1]):
        raise AssertionError("callgrind counted nothing")
    return int(found[1]) / _REQUESTS


def compare_instructions(rows: Sequence[str], parts: Sequence[str], sources: Sequence[str]) -> list[Figure]:
    """Count the instructions of each row, for each `src` folder; the first one is what others are compared with."""
    figures: list[Figure] = []
    for key in rows:
        first = 0.0
        for source in sources or ("",):
            counted = count_instructions(key, parts, source or None)
            first = first or counted
            note = f"{counted / first:.3f} of the first" if source else ""
            what = f"{key}, {', '.join(parts) or 'nothing kept'}{f': {source}' if source else ''}"
            figures.append(Figure("", what, "thousand", counted / 1e3, "", note))
    return figures


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description="Count the instructions of a gateway for a request")
    names = [key for key in make_rows() if "events" not in key]
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--rows", nargs="*", choices=names, default=("straight.32", "translated.32"))
    parser.add_argument("--kept", nargs="*", choices=PARTS, default=("store",))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        key, kept, url, library = json.loads(given.here)
        switch = ctypes.CDLL(library)
        run_here(key, kept, url, switch.begin, switch.end)
        return
    for figure in compare_instructions(given.rows, given.kept, given.sources):
        print("  ".join(figure.row()), flush=True)


if __name__ == "__main__":
    main()
