"""Recorded exchanges, for tests marked `traffic`, which `conftest.py` skips where there are no recordings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traffic"

PROVIDERS = {
    "bedrock": "amazon-bedrock",
    "bedrock-mantle": "amazon-bedrock",
    "vertex": "google-vertex",
    "alibaba": "alibaba",
}
"""The recordings' names of providers -> the catalogue's, where they differ."""

WIRES = {
    ("openai-chat", "mistral"): "mistral-chat",
    ("google-generate", None): "google-genai",
    ("cohere-v2", None): "cohere-chat",
}


@lru_cache
def exchanges() -> tuple[dict[str, Any], ...]:
    """List what is recorded: each row names `file`, `protocol` and `provider` (ours), `model`, `status`, `fidelity`."""
    index = FOLDER / "index.jsonl"
    if not index.exists():
        return ()
    rows: list[dict[str, Any]] = []
    for line in index.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["wire"] == "xai-grpc":
            continue
        wire, provider = row["wire"], row["provider"]
        row["protocol"] = WIRES.get((wire, provider)) or WIRES.get((wire, None)) or wire
        row["provider"] = PROVIDERS.get(provider, provider)
        rows.append(row)
    return tuple(rows)


def of_protocol(protocol: str) -> list[dict[str, Any]]:
    """Give the exchanges of one protocol."""
    return [row for row in exchanges() if row["protocol"] == protocol]


def each_exchange(
    rows: Iterable[dict[str, Any]], holds: Callable[[dict[str, Any], dict[str, Any]], bool]
) -> pytest.MarkDecorator:
    """Run a test with every `row` of which something holds, given the row and the exchange itself."""
    kept = [row for row in rows if holds(row, read(row["file"]))]
    return pytest.mark.parametrize("row", kept, ids=[str(row["file"]) for row in kept])


def has_json_request(_row: dict[str, Any], exchange: dict[str, Any]) -> bool:
    """Say whether the body of the request was recorded, and as JSON."""
    body = exchange["request"]
    return isinstance(body, dict) and "_raw" not in body


def was_accepted(row: dict[str, Any], exchange: dict[str, Any]) -> bool:
    """Say whether a provider accepted exactly this body."""
    return row["status"] == 200 and row["fidelity"] == "recorded" and has_json_request(row, exchange)


@lru_cache(maxsize=512)
def read(file: str) -> dict[str, Any]:
    """Read one exchange: `request`, and `response` or `stream` (list of frames) and `stream_raw` (text of the body)."""
    return json.loads((FOLDER / file).read_text("utf-8"))
