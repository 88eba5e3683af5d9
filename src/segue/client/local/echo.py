"""The echo model: answers with the user's text, in this process, so that a first request needs no key and no server.

The client sends to it as to any provider: its replies are those of OpenAI chat, whole or streamed. Requests to other
models use the default transport, including the proxies of the environment. Without httpx2, which is an extra, a sync
client still answers for this model (`EchoOnly`): a first program needs nothing but segue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from segue.errors import MissingExtra
from segue.models.built_in import ECHO_HOST

if TYPE_CHECKING:
    import httpx2


_LARGE: Final = 256_000
"""Bytes of a request that is answered in a thread: reading it would take the event loop for long."""


@lru_cache(maxsize=1)
def echo_mounts() -> Mapping[str, httpx2.BaseTransport | httpx2.AsyncBaseTransport]:
    """Return the transport of the echo model as the `mounts` of a sync or async HTTP client."""
    import httpx2  # when the first client is made: it is an optional dependency

    class EchoTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            return _answer(httpx2.Response, request.read())

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            data = await request.aread()
            if len(data) < _LARGE:
                return _answer(httpx2.Response, data)
            import anyio

            return await anyio.to_thread.run_sync(_answer, httpx2.Response, data)

    return {f"all://{ECHO_HOST}": EchoTransport()}


NO_HTTP: Final = "sending requests needs httpx2, which is not installed"


class _EchoRequest(NamedTuple):
    url: str
    content: bytes


class _EchoReply:
    """What the client reads of an `httpx2.Response`."""

    status_code: Final = 200
    extensions: Final[Mapping[str, object]] = {}

    def __init__(self, content: bytes, kind: str) -> None:
        self.stream: tuple[bytes, ...] = (content,)
        self.headers: dict[str, str] = {"content-type": kind}

    def close(self) -> None:
        """Release nothing."""


class EchoOnly:
    """What the client uses of an `httpx2.Client`, for the echo model alone."""

    def build_request(self, method: str, url: str, *, content: bytes, **_: object) -> _EchoRequest:  # noqa: ARG002
        """Keep what the reply depends on."""
        return _EchoRequest(url, content)

    def send(self, request: _EchoRequest, **_: object) -> _EchoReply:
        """Answer for the echo model.

        Raises:
            MissingExtra: the request is for another model.
        """
        if urlsplit(request.url).hostname != ECHO_HOST:
            raise MissingExtra(NO_HTTP, extra="client")
        return _EchoReply(*_reply(request.content))

    def close(self) -> None:
        """Release nothing."""


def _answer(response: type[httpx2.Response], data: bytes) -> httpx2.Response:
    content, kind = _reply(data)
    return response(200, headers={"content-type": kind}, content=content)


def _reply(data: bytes) -> tuple[bytes, str]:
    """Return the body of the answer to a request, and its type."""
    body = cast("Mapping[str, object]", msgspec.json.decode(data))
    given = _last_text(cast("list[Mapping[str, object]]", body["messages"]))
    if body.get("stream"):
        return b"".join(_frames(given)), "text/event-stream"
    message = {"role": "assistant", "content": given}
    choice: dict[str, object] = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = _usage(given)
    reply = {"id": "echo", "object": "chat.completion", "created": 0, "model": "echo"}
    return msgspec.json.encode({**reply, "choices": [choice], "usage": usage}), "application/json"


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
