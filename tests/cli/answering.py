"""A server of the protocol openai-chat on this machine: gives one answer, or one error, to every request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class AnsweringServer:
    """Streams `text`, or fails with `status`; `requests` are the bodies that it got, `keys` the headers."""

    def __init__(self, text: str = "Yes.", *, status: int = 200, finish: str = "stop", call: str | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        answer = {"content": text} if call is None else {"tool_calls": [_call(call)]}

        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                server.requests.append(json.loads(body))
                server.keys.append(self.headers["authorization"])
                if status != 200:
                    content = json.dumps({"error": {"message": "no, thank you", "code": "x"}}).encode()
                else:
                    chunks = [{"delta": answer, "finish_reason": None}, {"delta": {}, "finish_reason": finish}]
                    content = b"".join(map(_frame, chunks)) + b"data: [DONE]\n\n"
                self.send_response(status)
                self.send_header("content-type", "text/event-stream" if status == 200 else "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _call(name: str) -> dict[str, object]:
    return {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}


def _frame(choice: dict[str, object]) -> bytes:
    chunk = {"id": "1", "object": "chat.completion.chunk", "model": "x", "choices": [{"index": 0, **choice}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
