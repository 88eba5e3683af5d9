"""Writes the database of a gateway that served clients of every wire, and what it sends for their next requests.

Called by `make.py`, with the code of the version whose files are written.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from bound_state.inbound import SCHEMA, Chat, Inbound, Messages, Responses
from golden.served import KEY, ROUTES, continue_all, served
from segue.gateway.keys import Budget, ClientKey, Rights, digest_of, tenant_of
from segue.gateway.store.key_table import put_key
from segue.gateway.store.opening import open_store
from segue.testing.emulator import EmulatedCall, Step

TIME = 1_790_000_000_000
THINK = Step(thinking="Hm.", text="Yes.")
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}, id="toolu_look"),))


class Gemini(Inbound):
    """A client of generateContent."""

    def ask(self, text: str) -> httpx2.Response:
        self.path = f"/v1beta/models/{self.model}:generateContent"
        if not self.calls:
            self.history.append({"role": "user", "parts": [{"text": text}]})
            text = ""
        else:
            self.history += self.results()
        response = self.http.post(self.path, json=self.body())
        if response.status_code == 200:
            self.keep(response.json())
        return response

    def body(self) -> dict[str, Any]:
        return {
            "systemInstruction": {"parts": [{"text": self.system}]},
            "contents": self.history,
            "tools": [{"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters": SCHEMA}]}],
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}},
        }

    def keep(self, reply: dict[str, Any]) -> None:
        content = reply["candidates"][0]["content"]
        self.history.append(content)
        self.calls = [part["functionCall"]["id"] for part in content["parts"] if "functionCall" in part]

    def results(self) -> list[Any]:
        parts = [
            {"functionResponse": {"id": each, "name": "look", "response": {"output": "seen"}}} for each in self.calls
        ]
        return [{"role": "user", "parts": parts}]


class Stored(Responses):
    """A client of Responses that names the reply before."""

    newest: str | None = None

    def body(self) -> dict[str, Any]:
        body = {**super().body(), "store": True}
        del body["include"]
        return body if self.newest is None else {**body, "previous_response_id": self.newest}

    def keep(self, reply: dict[str, Any]) -> None:
        super().keep(reply)
        self.history, self.newest = [], reply["id"]


def _without_tools(wire: type[Inbound]) -> type[Inbound]:
    class WithoutTools(wire):
        def body(self) -> dict[str, Any]:
            body = super().body()
            del body["tools"]
            return body

    return WithoutTools


def _serve(url: str, emulator: Any, name: str, wire: type[Inbound], model: str, *, has_tools: bool):
    emulator.requests.clear()
    with httpx2.Client(base_url=url, timeout=60, headers={"x-api-key": KEY}) as http:
        client = (wire if has_tools else _without_tools(wire))(http, model)
        for number, step in enumerate((THINK, CALL, THINK) if has_tools else (THINK, THINK, THINK)):
            emulator.script.add(step)
            reply = client.ask(f"{name} {number}")
            assert reply.status_code == 200, reply.text
        # Its next request, which is not sent.
        sent: list[dict[str, Any]] = []
        client.http = _Recorder(sent)  # pyright: ignore[reportAttributeAccessIssue]
        client.ask(f"{name} next")
    return {"name": name, "path": client.path, "body": sent[0]}


class _Recorder:
    def __init__(self, sent: list[dict[str, Any]]) -> None:
        self.sent = sent

    def post(self, _: str, *, json: dict[str, Any], **__: Any) -> httpx2.Response:
        self.sent.append(json)
        return httpx2.Response(500)


def _serve_all(label: str, store: str) -> Iterator[dict[str, Any]]:
    with served(store) as (url, emulator):
        for wire in (Chat, Messages, Responses, Stored, Gemini):
            if label == "no store" and wire is Stored:
                continue  # what a reply is called is known to a store alone
            for model, has_tools in product(ROUTES, (True, False)):
                if (model == "deepseek" and wire is not Chat) or (model != "claude" and not has_tools):
                    continue  # more of the same
                name = f"{wire.__name__} {model} {'tools' if has_tools else 'text'} {label}"
                client = _serve(url, emulator, name, wire, model, has_tools=has_tools)
                yield {"store": label, **client}


def write_served(folder: Path) -> None:
    """Serve clients of each wire, with and without tools, with and without a store."""
    with TemporaryDirectory() as made:
        database = Path(made) / "served.db"
        store = open_store(f"sqlite:{database}")
        assert store is not None
        rights = Rights(budgets={"month": Budget(dollars=20.0, tokens=2_000_000)})
        key = ClientKey(
            id="key_golden", name="golden", tenant=tenant_of(digest_of(KEY)), hint="k", made=TIME, rights=rights
        )
        put_key(store.database, key, digest_of(KEY))
        store.close()
        clients = [*_serve_all("store", f"sqlite:{database}"), *_serve_all("no store", "none")]
        connection = sqlite3.connect(database, isolation_level=None)
        for statement in ("pragma wal_checkpoint(truncate)", "vacuum", "pragma wal_checkpoint(truncate)"):
            connection.execute(statement)
        connection.close()
        (folder / "served.db.gz").write_bytes(gzip.compress(database.read_bytes(), 9, mtime=0))
        written = json.dumps(clients, ensure_ascii=False, indent=1)
        (folder / "served.json.gz").write_bytes(gzip.compress(written.encode(), 9, mtime=0))
        rows = list(continue_all(folder, Path(made)))
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "served.requests.jsonl.gz").write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
