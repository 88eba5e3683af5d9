"""Requests to a gateway in this process: no socket on either side, so that only the gateway itself is measured.

The upstream answers at once with the same reply. The client of the gateway speaks Anthropic's protocol and the model
OpenAI's chat, so that requests and replies are translated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import patch

import httpx2
import orjson
from cases import CLAUDE, DEEPSEEK
from replies import make_history, write_reply
from streamed import mixed_stream

from segue import prepare
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.gateway.transport import AiohttpTransport

_CONFIG: Final = '[models."m"]\ntry = ["deepseek/deepseek-v4-pro"]\n[state]\nstore = "none"\n'
_LENGTH: Final = 20
"""Messages of the request: about 38 KB, as agents send them."""


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class _Upstream:
    """Answers every request with one reply, in pieces if the request asks for a stream."""

    def __init__(self) -> None:
        history = make_history(_LENGTH, DEEPSEEK)
        reply = next(message for message in history.messages if message.role == "assistant")
        self._whole = orjson.dumps(write_reply(reply, history))
        self._pieces = mixed_stream(DEEPSEEK, steps=3).pieces

    async def answer_directly(self, outgoing: Any) -> httpx2.Response:  # noqa: ANN401 - earlier commits have no such type
        return await self.answer(httpx2.Request("POST", outgoing.url, content=outgoing.content))

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        body = orjson.loads(await request.aread())
        if body.get("stream"):
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, stream=_Pieces(self._pieces), request=request)
        return httpx2.Response(200, json=orjson.loads(self._whole), request=request)


class GatewayCalls:
    """A gateway, and a request to it, whole and streamed. It runs inside its `with` block."""

    def __init__(self, folder: Path) -> None:
        self._environment = {"DEEPSEEK_API_KEY": "sk-upstream", "XDG_STATE_HOME": str(folder)}
        body = prepare(make_history(_LENGTH, CLAUDE), CLAUDE).body | {"model": "m"}
        self.bodies: Mapping[bool, bytes] = {
            stream: orjson.dumps(body | {"stream": stream}) for stream in (False, True)
        }

    def __enter__(self) -> Self:
        # The methods, not the class: commits differ in the module that uses it, and in what it calls.
        upstream = _Upstream()
        self._patches = ExitStack()
        self._patches.enter_context(patch.object(AiohttpTransport, "handle_async_request", upstream.answer))
        if hasattr(AiohttpTransport, "send_directly"):
            self._patches.enter_context(patch.object(AiohttpTransport, "send_directly", upstream.answer_directly))
        self._runner = asyncio.Runner()
        self._gateway = self._runner.run(self._start())
        self._app = create_app(gateway=self._gateway)
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._gateway.close())
        self._runner.close()
        self._patches.close()

    async def _start(self) -> Gateway:
        gateway = Gateway(load_config(_CONFIG), environment=self._environment)
        await gateway.start()
        return gateway

    def call(self, *, stream: bool) -> bytes:
        """Send the request and give the reply.

        Raises:
            AssertionError: the gateway does not answer with 200.
        """
        return self._runner.run(self._call(self.bodies[stream]))

    async def _call(self, body: bytes) -> bytes:
        received: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[bytes] = []
        statuses: list[object] = []
        left = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if received:
                return received.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            elif isinstance(piece := message.get("body"), bytes):
                sent.append(piece)

        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/v1/messages",
            "raw_path": b"/v1/messages",
            "query_string": b"",
            "root_path": "",
            "headers": [
                (b"host", b"127.0.0.1"),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"anthropic-version", b"2023-06-01"),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        await self._app(scope, receive, send)
        left.set()
        reply = b"".join(sent)
        if statuses != [200]:
            raise AssertionError(f"the gateway answered {statuses}: {reply[:300]!r}")
        return reply
