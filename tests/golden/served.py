"""What a gateway sends upstream when it continues the conversations of a stored database.

`make.py` calls `continue_all` with the version whose files it writes, `test_requests.py` with the version under test.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import gzip
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from yarl import URL

from gateway.running import KEYS, config_text
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.pool import Pool, PoolAddress
from segue.gateway.service import Gateway
from segue.gateway.transport import AiohttpTransport
from segue.testing.emulator import Emulator, emulate, serve_in_thread

PORT: Final = 8765
"""Of the providers. States of replies have the address that answered, so requests to it are sent to another port."""
KEY: Final = "k"
"""The key of every client."""
ROUTES: Final = {
    "claude": "anthropic/claude-opus-5-5",
    "gpt": "openai/gpt-5.4",
    "gemini": "google/gemini-3.1-pro-preview",
    "deepseek": "openrouter/deepseek/deepseek-v4-pro",
}
ENVELOPE_KEY: Final = "a key of golden envelopes, long enough for the gateway"
MORE: Final = 'days = 36500\nrequest_days = 36500\nkey = "env:ENVELOPE_KEY"\n' + "\n".join(
    f'[models."{name}"]\ntry = ["{target}"]' for name, target in ROUTES.items()
)


@contextmanager
def served(store: str) -> Generator[tuple[str, Emulator]]:
    """Run a gateway whose providers have the fixed address; an emulator on a free port answers."""
    with emulate(strict=False) as upstream:
        actual = URL(upstream.url).port
        send, pooled = AiohttpTransport._send, Pool.send

        async def redirected(self: AiohttpTransport, method: str, url: URL, *rest: Any) -> Any:
            return await send(self, method, url.with_port(actual), *rest)

        async def redirected_pooled(self: Pool, address: PoolAddress, *rest: Any) -> Any:
            return await pooled(self, address._replace(port=actual), *rest)

        AiohttpTransport._send, Pool.send = redirected, redirected_pooled
        try:
            text = config_text(f"http://127.0.0.1:{PORT}", store=store, more=MORE)
            environment = {**KEYS, "XDG_STATE_HOME": "/tmp", "ENVELOPE_KEY": ENVELOPE_KEY}
            gateway = Gateway(load_config(text), environment=environment)
            with serve_in_thread(create_app(gateway=gateway)) as url:
                yield url, upstream.emulator
        finally:
            AiohttpTransport._send, Pool.send = send, pooled


def unpack(folder: Path, to: Path) -> Path:
    """Make a copy of the stored database that can be opened."""
    path = to / "served.db"
    path.write_bytes(gzip.decompress((folder / "served.db.gz").read_bytes()))
    path.chmod(0o600)
    return path


def continue_all(folder: Path, to: Path) -> Iterator[dict[str, Any]]:
    """Send the next request of each client, and give what reached the provider first."""
    written = json.loads(gzip.decompress((folder / "served.json.gz").read_bytes()))
    for store in ("store", "no store"):
        clients = [each for each in written if each["store"] == store]
        yield from _continue(f"sqlite:{unpack(folder, to)}" if store == "store" else "none", clients)


def _continue(store: str, clients: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    with served(store) as (url, emulator), httpx2.Client(timeout=60, headers={"x-api-key": KEY}) as http:
        for each in clients:
            emulator.requests.clear()
            reply = http.post(url + each["path"], json=each["body"])
            sent = emulator.requests[0]
            yield {
                "name": each["name"],
                "status": reply.status_code,
                "path": sent.path,
                "body": json.dumps(sent.body, ensure_ascii=False),
            }
