"""The processes of `gateway_costs` and `gateway_pairs`: `python benchmarks/gateway_servers.py ROLE [URL OF UPSTREAM]`.

- `upstream`: a provider of OpenAI's chat protocol that answers at once, or with an event every few milliseconds. Below
  the path `/burst` it sends a hundred events at once.
- `bare`: uvicorn and httpx2, which pass the bytes of requests and replies on: the least that a gateway does.
- `starlette`: the same with Starlette's routes, requests and replies, as most gateways are written.
- `aiohttp`: a server and a client of aiohttp, which pass bytes on: the floor of what Python does with a framework.
- `gateway`: segue's gateway, with a store in a new folder. The model is one of OpenAI's chat protocol.
- `served`: the same as `segue serve` runs it: accepting in a loop, with the collector set for it.
- `plain` and `kept`: the same without a store; and with a store, a key that is counted, traces and metrics.

A process prints its port, then its CPU time in nanoseconds for each line of its standard input, and ends with it. Only
the standard library, uvicorn, httpx2 and segue are needed, so that `PYTHONPATH` chooses the commit of segue.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final

import httpx2
import uvicorn

EVENTS: Final = 40
"""Events of a streamed reply, besides those around them."""
BURST: Final = 100
"""Events of a streamed reply below the path `/burst`, of which ten come in a piece."""
_KEEP_SECONDS: Final = 600
_PAUSE: Final = 0.05
"""Seconds between two events: 200 streams get 4,000 events a second."""
_TEXT: Final = "I read the file first, then change the one function that is wrong, and run its tests again. "
_CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "src/app.py"}'}}

_USAGE: Final = {"prompt_tokens": 9000, "completion_tokens": 150, "total_tokens": 9150}


def _chunk(delta: dict[str, object], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    value = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "plain", "choices": [choice]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _write_whole() -> bytes:
    message = {"role": "assistant", "content": _TEXT * 6, "tool_calls": [_CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "plain", "choices": [choice]}
    return json.dumps(whole | {"usage": _USAGE}).encode()


WHOLE: Final = _write_whole()
"""A reply that is not streamed."""


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(WHOLE)
    first, last = _chunk({"role": "assistant", "content": ""}), _chunk({}, "stop")
    middle = _chunk({"content": _TEXT[:24]})
    # As OpenAI sends it to clients that ask for it, as segue does.
    counted = b"data: " + json.dumps({**json.loads(last[6:]), "choices": [], "usage": _USAGE}).encode() + b"\n\n"
    try:
        while True:
            given = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in given.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            sent = await reader.readexactly(int(length.partition(b":")[2]))
            if b'"stream":true' not in sent[:400] + sent[-400:]:
                writer.write(head + WHOLE)
                continue
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                + b"%x\r\n%s\r\n" % (len(first + middle), first + middle)
            )
            is_burst = given.startswith(b"POST /burst/")
            for at in range(BURST if is_burst else EVENTS):
                if not is_burst or at % 10 == 9:
                    await asyncio.sleep(0 if is_burst else _PAUSE)
                if writer.is_closing():
                    return
                writer.write(b"%x\r\n%s\r\n" % (len(middle), middle))
            end = last + counted + b"data: [DONE]\n\n"
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve_upstream(listener: socket.socket) -> None:
    server = await asyncio.start_server(_answer, sock=listener)
    await server.serve_forever()


def _bare_app(url: str) -> Callable[..., Awaitable[None]]:
    """Make an application that passes bytes on, streamed as they come."""
    http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None), timeout=60)

    async def app(
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        pieces: list[bytes] = []
        while True:
            message = await receive()
            pieces.append(message["body"])
            if not message.get("more_body"):
                break
        headers = {"content-type": "application/json", "authorization": "Bearer key"}
        request = http.build_request("POST", f"{url}/chat/completions", headers=headers, content=b"".join(pieces))
        response = await http.send(request, stream=True)
        kind = response.headers["content-type"]
        given = [(b"content-type", kind.encode())]
        if "event-stream" not in kind:
            body = await response.aread()
            given.append((b"content-length", b"%d" % len(body)))
            await send({"type": "http.response.start", "status": 200, "headers": given})
            await send({"type": "http.response.body", "body": body})
            return
        await send({"type": "http.response.start", "status": 200, "headers": given})
        chunks: AsyncIterator[bytes] = response.aiter_raw()
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await response.aclose()
        await send({"type": "http.response.body", "body": b""})

    return app


def _starlette_app(url: str) -> Callable[..., Awaitable[None]]:
    """Make the same with Starlette."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None), timeout=60)

    async def passed(request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name not in _OWN_HEADERS}
        sent = http.build_request("POST", f"{url}/chat/completions", headers=headers, content=await request.body())
        response = await http.send(sent, stream=True)
        kind = response.headers["content-type"]
        if "event-stream" not in kind:
            return Response(await response.aread(), response.status_code, media_type=kind)

        async def chunks() -> AsyncIterator[bytes]:
            async for chunk in response.aiter_raw():
                yield chunk
            await response.aclose()

        return StreamingResponse(chunks(), response.status_code, media_type=kind)

    return Starlette(routes=[Route("/{path:path}", passed, methods=["POST"])])


async def _serve_aiohttp(url: str, listener: socket.socket) -> None:
    """Serve the floor."""
    import aiohttp
    from aiohttp import web

    timeout = aiohttp.ClientTimeout(total=60)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
    )

    async def passed(request: web.BaseRequest) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OWN_HEADERS}
        async with session.post(f"{url}/chat/completions", data=await request.read(), headers=headers) as response:
            kind = response.headers["content-type"]
            if "event-stream" not in kind:
                body = await response.read()
                return web.Response(body=body, status=response.status, headers={"content-type": kind})
            answer = web.StreamResponse(status=response.status, headers={"content-type": kind})
            await answer.prepare(request)
            async for chunk in response.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
            return answer

    runner = web.ServerRunner(web.Server(passed, access_log=None, keepalive_timeout=_KEEP_SECONDS))
    await runner.setup()
    await web.SockSite(runner, listener).start()
    await asyncio.Event().wait()


_OWN_HEADERS: Final = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
KEY: Final = "a-key-of-a-client-that-is-counted"


def _serve_gateway(url: str, listener: socket.socket, role: str) -> None:
    from segue.gateway.app import create_app
    from segue.gateway.config import load_config
    from segue.gateway.connections import draining_server, guarded_protocols
    from segue.gateway.service import Gateway

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        config = load_config(
            f'[providers.plain]\nprotocol = "openai-chat"\nbase_url = "{url}"\nkey = "env:PLAIN_KEY"\n'
            f'[models."m"]\ntry = ["plain/plain"]\n[models."plain"]\ntry = ["plain/plain"]\n'
            f'[state]\nstore = "{"none" if role == "plain" else f"sqlite:{folder}/gateway.db"}"\n'
            + (f'[keys.team]\nkey = "env:KEY"\n[telemetry]\nendpoint = "{url}"\n' if role == "kept" else "")
        )
        environment = {"PLAIN_KEY": "sk-upstream", "KEY": KEY, "XDG_STATE_HOME": folder}
        gateway = Gateway(config, environment=environment)
        settings = guarded_protocols(lambda: gateway.config.limits)
        gateway.owns_process = role != "gateway"
        server = uvicorn.Server if role == "gateway" else draining_server
        _run(create_app(gateway=gateway), listener, server, lifespan="on", **settings)


def _run(
    app: Any,  # noqa: ANN401 - an application
    listener: socket.socket,
    server: Callable[[uvicorn.Config], uvicorn.Server] = uvicorn.Server,
    **settings: Any,  # noqa: ANN401 - as uvicorn takes them
) -> None:
    given = {"log_level": "warning", "access_log": False, "server_header": False, "timeout_keep_alive": _KEEP_SECONDS}
    config = uvicorn.Config(app, **given, **settings)
    server(config).run(sockets=[listener])


def _find_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Find the event loop that uvicorn would take."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _report() -> None:
    for _ in sys.stdin:
        print(time.process_time_ns(), flush=True)
    os._exit(0)


def main() -> None:
    """Serve until standard input is closed."""
    role, url = sys.argv[1], sys.argv[-1]
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_report, daemon=True).start()
    if role == "upstream":
        asyncio.run(_serve_upstream(listener))
    elif role == "bare":
        _run(_bare_app(url), listener, lifespan="off")
    elif role == "starlette":
        _run(_starlette_app(url), listener, lifespan="off")
    elif role == "aiohttp":
        with asyncio.Runner(loop_factory=_find_loop()) as runner:
            runner.run(_serve_aiohttp(url, listener))
    else:
        _serve_gateway(url, listener, role)


if __name__ == "__main__":
    main()
