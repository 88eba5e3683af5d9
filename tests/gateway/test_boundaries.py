"""Boundaries of the gateway, each with a rule that finds ways around it: logs, heads of replies, bytes of replies."""

from __future__ import annotations

import ast
import asyncio
import gzip
import io
import json
import logging
import re
import threading
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

import segue
from gateway.asgi_client import KEY, PATHS, Client, make
from gateway.running import KEYS, config_text, make_gateway, running
from gateway.server_stacks import serving
from segue.calls.replies import encode_error
from segue.client.http.reply_bytes import LARGEST_REPLY, decompressed, decompressed_async
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.gateway.answers import _is_error  # pyright: ignore[reportPrivateUsage]
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.logs import find_logger
from segue.gateway.service import Gateway
from segue.gateway.tracing import write_log
from segue.testing.emulator import Step, serve_in_thread

PACKAGE = Path(segue.__file__).parent
FORGED = "m\n2026-11-18 12:00:00 WARNING segue.gateway: all keys were revoked\x1b[2J"

# -- the rules ---------------------------------------------------------------------------------------------------------


def loggers(tree: ast.AST) -> Iterator[str]:
    """Loggers whose records are not escaped."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).rpartition(".")[2] == "getLogger":
            yield ast.unparse(node)


def heads(tree: ast.AST) -> Iterator[str]:
    """Heads of replies whose values are not quoted: neither constants of the module, nor made by `raw_headers`."""
    constants = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_constant(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }

    def is_safe(value: ast.expr) -> bool:
        return (
            _is_constant(value)
            or ast.unparse(value) in constants
            or (isinstance(value, ast.Call) and ast.unparse(value.func) in ("raw_headers", "self._head"))
        )

    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            given = {ast.unparse(key): value for key, value in zip(node.keys, node.values, strict=True) if key}
            kind = given.get("'type'")
            if kind is not None and ast.unparse(kind).endswith(".response.start'") and not is_safe(given["'headers'"]):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Response":
            if any(each.arg == "headers" and not is_safe(each.value) for each in node.keywords):
                yield ast.unparse(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            name = ast.unparse(node.targets[0].value)
            if name.endswith("response.headers") and not isinstance(node.value, ast.Constant):
                yield ast.unparse(node)


def _is_constant(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant():
            return True
        case ast.Dict(keys=keys, values=values):
            return None not in keys and all(map(_is_constant, values))
        case ast.Tuple(elts=elements):
            return all(map(_is_constant, elements))
        case ast.JoinedStr(values=values):
            return all(isinstance(each, ast.Constant) for each in values)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case _:
            return False


READERS = {"iter_bytes", "aiter_bytes", "iter_text", "aiter_text", "iter_lines", "aiter_lines", "iter_raw", "aiter_raw"}


def readers(tree: ast.AST) -> Iterator[str]:
    """Readers of replies whose decompression has no limit."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in READERS:
            yield node.attr


RULES: dict[str, tuple[Callable[[ast.AST], Iterator[str]], tuple[str, ...], frozenset[str], tuple[str, ...]]] = {
    "logs": (
        loggers,
        ("gateway",),
        frozenset({"logs.py"}),
        ("import logging\nlogging.getLogger('x')", "from logging import getLogger\ngetLogger('x')"),
    ),
    "heads": (
        heads,
        ("gateway",),
        frozenset(),
        (
            "await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'x', model.encode())]})",
            "Response(data, headers={'x-segue-model': model})",
            "response.headers['x-segue-model'] = model",
        ),
    ),
    "replies": (
        readers,
        ("gateway", "client"),
        frozenset(),
        ("async for piece in reply.aiter_bytes(): pass", "list(reply.iter_lines())"),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_nothing_goes_around_a_boundary(name: str) -> None:
    rule, rooms, allowed, planted = RULES[name]
    paths = [path for room in rooms for path in (PACKAGE / room).rglob("*.py") if path.name not in allowed]
    assert len(paths) > 30
    found = {str(path): list(rule(ast.parse(path.read_text("utf-8")))) for path in paths}
    assert {path: each for path, each in found.items() if each} == {}
    for source in planted:
        assert list(rule(ast.parse(source))), source


# -- logs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_forges_no_line_of_a_log(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    monkeypatch.setattr("sys.stderr", stream)
    write_log(form)
    try:
        log = find_logger("segue.gateway")
        log.warning("the model %s does not exist", FORGED)
        log.warning(f"the model {FORGED} does not exist")  # noqa: G004 - somebody will write it
        log.error("it failed", exc_info=ValueError(FORGED))
    finally:
        root.handlers[:], root.level = kept, level
    lines = stream.getvalue().splitlines()
    begun = [line for line in lines if line.startswith(("2026-11-18 12:00:00", "m\n", "WARNING"))]
    assert begun == []
    assert "\x1b" not in stream.getvalue()
    assert len([line for line in lines if not line.startswith("  ")]) == 3


# -- headers of replies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [" ", "  a ", "a\r\nx-evil: 1", "ä\u2028", "x" * 400])
@pytest.mark.parametrize("stream", [False, True])
def test_no_name_of_a_model_loses_a_reply(name: str, stream: bool) -> None:
    gateway = make(keys=False)
    body = {"model": name, "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    with serving(gateway) as (port, _):
        reply = httpx2.post(f"http://127.0.0.1:{port}/v1/messages", json=body, timeout=60)
    assert reply.status_code == 200
    assert "hi" in reply.text
    assert "x-evil" not in reply.headers


def test_a_reply_to_a_blank_name_has_a_header_that_servers_write() -> None:
    with running(Step(text="hello"), store="none", more='[models."*"]\ntry = ["same"]') as gateway:
        body = {"model": "anthropic/ ", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        reply = httpx2.post(f"{gateway.url}/v1/messages", json=body, timeout=60)
    assert reply.status_code == 404, reply.text  # of the provider; a server refuses to write a blank at the end
    assert reply.headers["x-segue-model"] == "anthropic/%20"


# -- bytes of replies --------------------------------------------------------------------------------------------------


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


FORMS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, gzip": lambda data: gzip.compress(zlib.compress(data)),
    "identity": bytes,
}


async def _arriving(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@pytest.mark.parametrize("encoding", FORMS)
def test_a_compressed_reply_is_read(encoding: str) -> None:
    text = json.dumps({"text": "hello " * 50_000}).encode()
    data = FORMS[encoding](text)
    pieces = [data[at : at + 100] for at in range(0, len(data), 100)]
    assert b"".join(decompressed(iter(pieces), encoding)) == text

    async def read() -> bytes:
        return b"".join([piece async for piece in decompressed_async(_arriving(*pieces), encoding)])

    assert asyncio.run(read()) == text
    assert b"".join(decompressed(iter([raw_deflate(text)]), "deflate")) == text


def test_a_small_reply_does_not_become_a_large_one_in_memory() -> None:
    bomb = gzip.compress(bytes(200_000_000))
    assert len(bomb) < 400_000
    tracemalloc.start()
    try:
        sizes = [len(piece) for piece in decompressed(iter([bomb]), "gzip")]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 200_000_000
    assert max(sizes) <= 65_536
    assert peak < 3_000_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "compress"])
def test_another_encoding_is_an_error(encoding: str) -> None:
    with pytest.raises(httpx2.DecodingError, match="not asked for"):
        list(decompressed(iter([b"data"]), encoding))


def test_a_damaged_reply_is_an_error() -> None:
    with pytest.raises(httpx2.DecodingError, match="cannot be decompressed"):
        list(decompressed(iter([b"not gzip"]), "gzip"))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_gets_an_error_for_a_reply_without_an_end(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LARGEST_REPLY >= 50_000_000
    monkeypatch.setattr("segue.client.http.async_sending.LARGEST_REPLY", 20_000)
    with running(Step(text="x" * 200_000), store="none") as gateway:
        body = {"model": "m-anthropic", "max_tokens": 60_000, "messages": [{"role": "user", "content": "hi"}]}
        reply = httpx2.post(f"{gateway.url}/v1/messages", json={**body, "stream": stream}, timeout=60)
    assert reply.status_code == 500
    assert "xxx" not in reply.text


def test_clients_are_refused_with_quoted_headers() -> None:
    client = Client(make())
    asyncio.run(client.ask("/v1/messages", {}, "POST"))
    assert client.status == 401


# -- what clients are told ---------------------------------------------------------------------------------------------


class _Page(BaseHTTPRequestHandler):
    """A provider, or a proxy before it, that fails."""

    status, kind, body = 200, "text/html", b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.send_header("content-type", self.kind)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Print nothing."""


PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1><hr>nginx at internal-host</body></html>"
FAILURES = {
    f"{status} {kind} {name}": (status, kind, body)
    for status in (200, 403, 404, 502)
    for kind in ("text/html", "application/json")
    for name, body in (
        ("page", PAGE),
        ("page in JSON", json.dumps({"error": {"message": PAGE.decode()}}).encode()),
        ("traceback", b'Traceback (most recent call last):\n  File "/srv/x.py", line 1\nKeyError: 5'),
    )
}


@pytest.mark.parametrize("protocol", ["m-anthropic", "m-gemini"])
def test_clients_get_no_source_of_pages_or_programs(protocol: str) -> None:
    body = {"model": protocol, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    text = config_text(f"http://127.0.0.1:{server.server_port}", store="none", more="[limits]\nretries = 0")
    try:
        with serve_in_thread(create_app(gateway=make_gateway(load_config(text)))) as url:
            for name, (_Page.status, _Page.kind, _Page.body) in FAILURES.items():
                for stream in (False, True):
                    reply = httpx2.post(f"{url}/v1/messages", json={**body, "stream": stream}, timeout=60)
                    assert reply.status_code >= 400, name
                    message = reply.json()["error"]["message"]
                    assert not re.search(r"<\w|Traceback|File |KeyError|internal-host", message), (name, message)
            server.shutdown()
            server.server_close()
            reply = httpx2.post(f"{url}/v1/messages", json=body, timeout=60)  # nobody is there
    finally:
        server.server_close()
        thread.join(30)
    message = reply.json()["error"]["message"]
    assert "the connection failed" in message
    assert not re.search(r"Error:|127\.0\.0\.1|Errno|Connect call", message), message


@pytest.mark.parametrize("protocol", PATHS)
def test_a_refusal_of_a_right_is_not_one_of_a_key(protocol: str) -> None:
    denied = encode_error(Failure(kind=FailureKind.AUTH, status=403, message="no access"), protocol=protocol)
    assert "Invalid API key" not in json.dumps(denied.body)
    wrong = encode_error(Failure(kind=FailureKind.AUTH, status=401, message="what?"), protocol=protocol)
    assert classify(wrong.body, status=wrong.status, headers=wrong.headers).kind == FailureKind.AUTH
    assert classify(denied.body, status=denied.status, headers=denied.headers).kind == FailureKind.AUTH


LISTS = {
    "/v1/models": {"authorization": f"Bearer {KEY}"},
    "/v1/models?limit=9": {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
    "/v1beta/models": {"x-goog-api-key": KEY},
    "/api/tags": {"authorization": f"Bearer {KEY}"},
}


@pytest.mark.parametrize("rights", ["", 'models = ["openai/*"]', 'routes = ["gpt-*"]', 'models = ["google/*"]'])
@pytest.mark.parametrize("route", ["", '[models."*"]\ntry = ["same"]', '[models."*"]\ntry = ["openai/gpt-5.4"]'])
def test_lists_of_models_name_what_a_key_may_ask_for(route: str, rights: str) -> None:
    text = f'{route}\n[keys.a]\nkey = "env:KEY"\n{rights}\n[state]\nstore = "none"'
    gateway = Gateway(load_config(text), environment={**KEYS, "KEY": KEY, "XDG_STATE_HOME": "/tmp"})
    is_other = "gpt-5.4" in route and "google" in rights  # the route's model is none of the key's
    for path, headers in LISTS.items():
        for _ in range(2):  # the second is kept
            client = Client(gateway, b"")
            asyncio.run(client.ask(path, headers, "GET"))
            assert client.status == 200
            found = json.loads(client.body)
            names = [each.get("id") or each["name"] for each in found.get("data", found.get("models", ()))]
            assert bool(names) != is_other, (path, names)
        if names and path == "/v1/models":
            asked = Client(gateway, b"")
            asyncio.run(asked.ask(f"/v1/models/{quote(names[0], safe='')}", headers, "GET"))
            assert asked.status == 200, names[0]


@pytest.mark.parametrize(
    ("error", "is_error"),
    [
        ({"message": "no", "type": "invalid"}, True),
        ({"message": "no", "code": None}, True),
        ({"message": "no"}, False),
        ({"type": "invalid"}, False),
        ({"message": 5, "type": "invalid"}, False),
    ],
)
def test_a_body_is_an_error_of_a_provider_only_with_a_message_and_a_kind(
    error: dict[str, object], is_error: bool
) -> None:
    assert _is_error(json.dumps({"error": error}).encode()) is is_error
