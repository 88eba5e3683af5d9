"""A server for attacks, in a process of its own: the gateway, or a bare application that reads every body.

Run as `python attacked_server.py gateway|shared|bare`; the first line of its output is its port. The shared gateway has
a store, stored contents and a provider that is away, and is served as `segue serve` does.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import uvicorn

from segue.cli.listening import listen
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.connections import draining_server, guarded_protocol, guarded_protocols
from segue.gateway.service import Gateway

CONFIG = """
[listen]
keys = ["env:ATTACK_KEY"]
[models."*"]
try = ["segue/echo"]
[state]
store = "none"
"""

SHARED = """
[listen]
keys = ["env:ATTACK_KEY", "env:VICTIM_KEY"]
[providers.google]
base_url = "http://127.0.0.1:9/v1beta"
[models."echo"]
try = ["segue/echo"]
[models."gemini"]
try = ["google/gemini-3.1-pro-preview"]
[state]
content = "full"
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
    listener = listen("127.0.0.1", 0)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    settings: dict[str, Any] = {"log_level": "critical", "access_log": False, "ws": "none"}
    if kind == "shared":
        text = SHARED + f'store = "sqlite:{os.environ["ATTACK_STORE"]}"'
        gateway = Gateway(load_config(text), environment=os.environ)
        gateway.owns_process = True
        settings |= guarded_protocols(lambda: gateway.config.limits)
        config = uvicorn.Config(create_app(gateway=gateway), lifespan="on", **settings)
        draining_server(config).run(sockets=[listener])
        return
    if kind == "bare":
        config = uvicorn.Config(bare, lifespan="off", **settings)
    else:
        gateway = Gateway(load_config(CONFIG), environment=os.environ)
        protocol = guarded_protocol(lambda: gateway.config.limits)
        config = uvicorn.Config(create_app(gateway=gateway), lifespan="on", http=protocol, **settings)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
