"""A provider that writes as many tokens as a request lets it, and can report any usage, for tests of budgets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from gateway.running import config_text, make_gateway
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.testing.emulator import serve_in_thread

LIMIT = 128_000
"""Output tokens that a request without a limit of its own gets."""
INPUT = 20
_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Greedy:
    """The ASGI application of the provider.

    `usage` replaces figures of what it reports, `reply` other fields of its replies. Without `has_usage`, replies of
    Chat have none. While `holds` is set, no reply ends.
    """

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.usage: Mapping[str, Any] = {}
        self.reply: Mapping[str, Any] = {}
        self.has_usage = True
        self.holds = False
        self.is_held = False

    @property
    def written(self) -> int:
        """The output tokens of all replies."""
        return sum(self.output_of(body) for body in self.bodies)

    @staticmethod
    def output_of(body: Mapping[str, Any]) -> int:
        asked = next((body[name] for name in _FIELDS if isinstance(body.get(name), int)), LIMIT)
        return int(asked) * int(body.get("n") or 1)

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), bool(message.get("more_body"))
        body = json.loads(raw)
        self.bodies.append(body)
        form = self._messages if scope["path"].endswith("/messages") else self._chat
        is_stream = bool(body.get("stream"))
        pieces = form(body, is_stream=is_stream)
        kind = b"text/event-stream" if is_stream else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for piece in pieces[:-1]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        while self.holds:
            self.is_held = True
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": pieces[-1]})

    def _messages(self, body: dict[str, Any], *, is_stream: bool) -> list[bytes]:
        usage = {"input_tokens": INPUT, "output_tokens": self.output_of(body), **self.usage}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], **self.reply}
        if not is_stream:
            content = [{"type": "text", "text": "Yes."}]
            whole = {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
            return [json.dumps(whole).encode()]
        start = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Yes."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        written = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
        return [*written[:3], b"".join(written[3:])]

    def _chat(self, body: dict[str, Any], *, is_stream: bool) -> list[bytes]:
        output = self.output_of(body)
        usage = {"prompt_tokens": INPUT, "completion_tokens": output, "total_tokens": INPUT + output, **self.usage}
        head = {"id": "chatcmpl-1", "created": 1, "model": body["model"], **self.reply}
        if not is_stream:
            message = {"role": "assistant", "content": "Yes."}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {**head, "object": "chat.completion", "choices": [choice]}
            return [json.dumps({**whole, "usage": usage} if self.has_usage else whole).encode()]
        head["object"] = "chat.completion.chunk"
        delta = {"role": "assistant", "content": "Yes."}
        chunks: list[dict[str, Any]] = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        if self.has_usage and (body.get("stream_options") or {}).get("include_usage"):
            chunks = [{**chunk, "usage": None} for chunk in chunks]
            chunks.append({**head, "choices": [], "usage": usage})
        written = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        return [written[0], b"".join([*written[1:], b"data: [DONE]\n\n"])]


class Served(NamedTuple):
    """A gateway in front of the provider; `asked` has the paths of the requests that reached it."""

    url: str
    gateway: Gateway
    upstream: Greedy
    asked: list[str]


@contextmanager
def served(store: str, more: str = "") -> Generator[Served]:
    """Run the provider, and a gateway in front of it."""
    upstream = Greedy()
    with serve_in_thread(upstream) as address:
        gateway = make_gateway(load_config(config_text(address, store=store, more=more)))
        app, asked = create_app(gateway=gateway), list[str]()

        async def counting(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                asked.append(scope["path"])
            await app(scope, receive, send)

        with serve_in_thread(counting) as url:
            yield Served(url, gateway, upstream, asked)
