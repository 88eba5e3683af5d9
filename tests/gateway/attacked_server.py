"""A server for attacks, in a process of its own: the gateway, or a bare application that reads every body.

Run as `python attacked_server.py gateway|bare`; the first line of its output is its port.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import uvicorn

from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.connections import guarded_protocol
from segue.gateway.service import Gateway

CONFIG = """
[listen]
keys = ["env:ATTACK_KEY"]
[models."*"]
try = ["segue/echo"]
[state]
store = "none"
"""


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, and answer."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"15")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"status":"ok"}'})


def main(kind: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    settings: dict[str, Any] = {"log_level": "critical", "access_log": False, "ws": "none"}
    if kind == "bare":
        config = uvicorn.Config(bare, lifespan="off", **settings)
    else:
        gateway = Gateway(load_config(CONFIG), environment=os.environ)
        protocol = guarded_protocol(lambda: gateway.config.limits)
        config = uvicorn.Config(create_app(gateway=gateway), lifespan="on", http=protocol, **settings)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
