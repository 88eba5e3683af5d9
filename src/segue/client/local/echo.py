"""The echo model: answers with the user's text, in this process, so that a first try needs no key and no server.

The client uses it like any provider: its replies are OpenAI chat streams. Requests to other models use the default
transport, including the proxies of the environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

import httpx2
import msgspec

from segue.models.model import Model

_HOST: Final = "echo.invalid"  # a name that can never be looked up (RFC 2606)

ECHO: Final = Model(
    "echo",
    "segue",
    "openai-chat",
    name="Echo: repeats your message",
    base_url=f"http://{_HOST}",
    context_window=128_000,
    dialect={"auth": "none"},
)


class EchoTransport(httpx2.BaseTransport):
    """Answers for the echo model."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        return _answer(request.read())


class AsyncEchoTransport(httpx2.AsyncBaseTransport):
    """Answers for the echo model in an async client."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        return _answer(await request.aread())


ECHO_PATTERN: Final = f"all://{_HOST}"
"""The URLs of the echo model, for the `transport` setting of a client."""
ECHO_MOUNT: Final = {ECHO_PATTERN: EchoTransport()}


def _answer(content: bytes) -> httpx2.Response:
    body = cast("Mapping[str, object]", msgspec.json.decode(content))
    given = _last_text(cast("list[Mapping[str, object]]", body["messages"]))
    return httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=httpx2.ByteStream(b"".join(_frames(given)))
    )


def _last_text(messages: list[Mapping[str, object]]) -> str:
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            return content
        parts = cast("list[Mapping[str, object]]", content)
        seen = sum(part.get("type") == "image_url" for part in parts)
        text = " ".join(str(part["text"]) for part in parts if part.get("type") == "text")
        return f"{text} (and {seen} {'image' if seen == 1 else 'images'})".strip() if seen else text
    return ""


def _frames(given: str) -> Iterator[bytes]:
    text = [value + " " for value in given.split(" ")]
    text[-1] = text[-1][:-1]
    counted = {"prompt_tokens": len(text), "completion_tokens": len(text), "total_tokens": 2 * len(text)}
    for value in text:
        yield _frame({"choices": [{"index": 0, "delta": {"content": value}, "finish_reason": None}]})
    end: dict[str, object] = {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}
    yield _frame({"choices": [end], "usage": counted})
    yield b"data: [DONE]\n\n"


def _frame(part: Mapping[str, object]) -> bytes:
    chunk = {"id": "echo", "object": "chat.completion.chunk", "created": 0, "model": "echo", **part}
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"
