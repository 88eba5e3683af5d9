"""Requests to the application of a gateway without a server, and the forms of errors, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from gateway.running import KEYS
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway

KEY, OTHER = "sgw-key-of-the-attack-tests", "sgw-other-key-of-the-attack-tests"
PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "google-genai": "/v1beta/models/gemini-3.1-pro-preview:generateContent",
    "ollama-chat": "/api/chat",
}
ECHO = {"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def make(limits: str = "", *, keys: bool = True) -> Gateway:
    """Make a gateway whose every model is the echo."""
    listen = '[listen]\nkeys = ["env:KEY", "env:OTHER"]\n' if keys else ""
    text = f'{listen}[models."*"]\ntry = ["segue/echo"]\n[state]\nstore = "none"\n[limits]\n{limits}'
    return Gateway(load_config(text), environment={**KEYS, "XDG_STATE_HOME": "/tmp", "KEY": KEY, "OTHER": OTHER})


class Client:
    """Sends one request to an application without a server, and counts the pieces of the body that are read.

    `more`: the body has no end. `stays`: the client waits for the answer, whatever time that takes.
    """

    def __init__(
        self, gateway: Gateway, *pieces: bytes, client: str = "127.0.0.1", more: bool = False, stays: bool = False
    ) -> None:
        self.app: Any = create_app(gateway=gateway)
        self.pieces = list(pieces)
        self.has_more = more
        self.stays = stays
        self.address = client
        self.reads = 0
        self.reads_before_the_answer = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    async def receive(self) -> MutableMapping[str, Any]:
        self.reads += 1
        if not self.pieces:
            if self.has_more or self.stays:
                await asyncio.sleep(3600)
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or self.has_more}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.reads_before_the_answer = self.reads
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")

    async def ask(self, path: str, headers: dict[str, str], method: str = "POST") -> None:
        place, _, query = path.partition("?")
        given = {"host": "127.0.0.1", **headers}
        scope = {
            "type": "http",
            "method": method,
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": (self.address, 40000),
            "server": ("127.0.0.1", 8787),
            "root_path": "",
        }
        await self.app(scope, self.receive, self.send)


def ask(client: Client, path: str, **headers: str) -> Client:
    """Send the request, and give the client with the answer."""
    asyncio.run(client.ask(path, {name.replace("_", "-"): value for name, value in headers.items()}))
    return client


def has_form(protocol: str, body: bytes) -> bool:
    """Whether an error has the form of a protocol."""
    data = json.loads(body)
    error = data.get("error")
    match protocol:
        case "anthropic-messages":
            return data.get("type") == "error" and isinstance(error["message"], str)
        case "google-genai":
            return isinstance(error["code"], int) and isinstance(error["status"], str)
        case "ollama-chat":
            return isinstance(error, str)
        case "bedrock-converse" | "cohere-chat":
            return isinstance(data["message"], str)
        case "google-interactions":
            return isinstance(error["message"], str)
        case _:
            return isinstance(error["message"], str) and "type" in error
