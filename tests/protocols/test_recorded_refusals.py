"""Recorded refusals are named, or say themselves why no body shows them; recorded replies are not accused.

Of the second set of recordings, which is not part of the repository.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

import segue
from protocols import traffic
from segue.models.model import Model

SECOND = traffic.FOLDER.parent / "traffic-2"
pytestmark = [pytest.mark.traffic, pytest.mark.skipif(not SECOND.exists(), reason="without the second set")]
WIRES = {"google-generate": "google-genai", "cohere-v2": "cohere-chat"}
PROVIDERS = {"bedrock": "amazon-bedrock", "bedrock-mantle": "amazon-bedrock", "vertex": "google-vertex"}
CHECKED = {
    *("openai-chat", "openai-responses", "anthropic-messages", "google-genai", "bedrock-converse", "mistral-chat"),
    "cohere-chat",
}

NOT_IN_A_BODY = {
    "no such model": r"not_found_error|model_not_found|does not exist|NOT_FOUND|model identifier is invalid",
    "no such deployment or endpoint": r"DeploymentNotFound|Resource not found",
    "a key": r"API.key",
    "an address that the provider cannot fetch": r"Cannot fetch content|Error while downloading",
    "what the model wrote": r"tool_use_failed",
}
"""Reasons why no body shows a refusal -> the words by which providers give them."""
TOO_LONG = re.compile(r"too long|exceeds|[Ee]xceeded|maximum context length|too many tokens|TOO_MANY_TOKENS")
"""Prompts beyond the window; the recorder wrote a placeholder for their texts."""


class Exchange(NamedTuple):
    """A recorded request, what `check` finds in it, and what the provider answered."""

    source: str
    status: int
    body: str
    answer: str
    found: list[Any]


@lru_cache
def exchanges() -> tuple[Exchange, ...]:
    return tuple(_read())


def _read() -> Iterator[Exchange]:
    for path in sorted(SECOND.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for entry in map(json.loads, lines):
                wire = WIRES.get(entry["wire"], entry["wire"])
                body = entry["request"]
                if wire in CHECKED and isinstance(body, dict):
                    found = segue.check(body, protocol=wire, model=_model_of(entry, wire))
                    answer = json.dumps(entry.get("response"))
                    yield Exchange(entry["source"], entry["status"], json.dumps(body), answer, found)


def _model_of(entry: dict[str, Any], wire: str) -> Model:
    given = str(entry.get("provider") or "")
    provider = PROVIDERS.get(given, given)
    if wire == "google-genai" and "/projects/" in (entry.get("url_path") or ""):
        provider = "google-vertex"
    name = entry.get("model") or entry["request"].get("model") or ""
    try:
        return replace(segue.get_model(f"{provider}/{name}"), protocol=wire)
    except segue.UnknownModel:
        return Model(name, provider, wire)


def _is_hidden(exchange: Exchange) -> bool:
    is_masked = "MASSIVE_TEXT" in exchange.body and TOO_LONG.search(exchange.answer) is not None
    return is_masked or any(re.search(words, exchange.answer) for words in NOT_IN_A_BODY.values())


def test_recorded_replies_are_not_accused():
    answered = [one for one in exchanges() if one.status == 200]
    accused = [one.source for one in answered if one.found]
    assert len(answered) > 5000
    assert len(accused) <= 0.002 * len(answered), accused


def test_a_recorded_refusal_is_named_or_no_body_shows_it():
    refused = [one for one in exchanges() if one.status in (400, 404, 413, 422)]
    named = [one for one in refused if one.found]
    unnamed = [one for one in refused if not one.found and not _is_hidden(one)]
    assert len(named) >= 30
    assert [(one.source, one.answer[:200]) for one in unnamed] == []
