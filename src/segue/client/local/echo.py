"""The echo model: answers with the user's text, in this process, so that a first request needs no key and no server.

The client sends to it as to any provider: its replies are those of OpenAI chat, whole or streamed. Requests to other
models use the default transport, including the proxies of the environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import msgspec

from segue.models.built_in import ECHO_HOST

if TYPE_CHECKING:
    import httpx2


@lru_cache(maxsize=1)
def echo_mounts() -> Mapping[str, httpx2.BaseTransport | httpx2.AsyncBaseTransport]:
    """Return the transport of the echo model as the `mounts` of a sync or async HTTP client."""
    import httpx2  # when the first client is made: it is an optional dependency

    class EchoTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            return _answer(httpx2.Response, request.read())

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return _answer(httpx2.Response, await request.aread())

    return {f"all://{ECHO_HOST}": EchoTransport()}


def _answer(response: type[httpx2.Response], data: bytes) -> httpx2.Response:
    body = cast("Mapping[str, object]", msgspec.json.decode(data))
    given = _last_text(cast("list[Mapping[str, object]]", body["messages"]))
    if body.get("stream"):
        return response(200, headers={"content-type": "text/event-stream"}, content=b"".join(_frames(given)))
    message = {"role": "assistant", "content": given}
    choice: dict[str, object] = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = _usage(given)
    reply = {"id": "echo", "object": "chat.completion", "created": 0, "model": "echo"}
    return response(200, json={**reply, "choices": [choice], "usage": usage})


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
    for value in text:
        yield _frame({"choices": [{"index": 0, "delta": {"content": value}, "finish_reason": None}]})
    end: dict[str, object] = {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}
    yield _frame({"choices": [end], "usage": _usage(given)})
    yield b"data: [DONE]\n\n"


def _usage(given: str) -> dict[str, int]:
    words = len(given.split(" "))
    return {"prompt_tokens": words, "completion_tokens": words, "total_tokens": 2 * words}


def _frame(part: Mapping[str, object]) -> bytes:
    chunk = {"id": "echo", "object": "chat.completion.chunk", "created": 0, "model": "echo", **part}
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"
