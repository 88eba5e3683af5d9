"""Which peer is measured on which wire, and where it does less than segue does there.

Where a peer does less was seen by what it made of the same transcripts: it is shorter by the reasoning that was left
out, or it is no plain value yet.                                            (versions as pinned in `peers`, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from passages import Journey, Passage
from peer_processes import Task

ANTHROPIC: Final = "anthropic-messages"
CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
GOOGLE: Final = "google-genai"
BEDROCK: Final = "bedrock-converse"
_ALL: Final = frozenset({ANTHROPIC, CHAT, RESPONSES, GOOGLE, BEDROCK})

WIRES: Final[Mapping[str, frozenset[str]]] = {
    "pydantic-ai": _ALL,
    "litellm": _ALL,
    "llm-rosetta": _ALL - {BEDROCK},
    "strands": _ALL,
    "any-llm": frozenset({ANTHROPIC, GOOGLE, BEDROCK}),
    "langchain": _ALL,
}
"""Which wires each peer makes requests for."""

PASSES_THROUGH: Final = "less work: its own form is this wire, nearly a pass-through"
_CANNOT: Final[Mapping[tuple[str, str], str]] = {
    ("any-llm", CHAT): "its own form is this wire: nothing is converted",
}
_NO_REASONING: Final = "less work: leaves all reasoning out"
_NO_FOREIGN: Final = "less work: leaves foreign reasoning out"
_OBJECTS: Final = "makes objects of google-genai, no plain values"
_LESS: Final[Mapping[tuple[str, str, str], str]] = {
    ("litellm", ANTHROPIC, "abroad"): _NO_FOREIGN,
    ("litellm", BEDROCK, "abroad"): _NO_FOREIGN,
    ("litellm", CHAT, "home"): PASSES_THROUGH,
    ("litellm", CHAT, "abroad"): PASSES_THROUGH,
    ("litellm", RESPONSES, "home"): "less work: without tools and options",
    ("litellm", RESPONSES, "abroad"): "less work: without tools and options",
    ("llm-rosetta", RESPONSES, "abroad"): _NO_FOREIGN,
    ("strands", ANTHROPIC, "abroad"): _NO_FOREIGN,
    ("strands", BEDROCK, "home"): PASSES_THROUGH,
    ("strands", BEDROCK, "abroad"): PASSES_THROUGH,
    ("strands", CHAT, "home"): _NO_REASONING,
    ("strands", CHAT, "abroad"): _NO_REASONING,
    ("strands", RESPONSES, "home"): _NO_REASONING,
    ("strands", RESPONSES, "abroad"): _NO_REASONING,
    ("any-llm", ANTHROPIC, "abroad"): f"{_NO_FOREIGN}, and tools",
    ("any-llm", ANTHROPIC, "home"): "less work: without tools and options",
    ("any-llm", GOOGLE, "home"): f"{_NO_REASONING}; {_OBJECTS}",
    ("any-llm", GOOGLE, "abroad"): f"{_NO_REASONING}; {_OBJECTS}",
    ("any-llm", BEDROCK, "home"): f"{_NO_REASONING}, and tools",
    ("any-llm", BEDROCK, "abroad"): f"{_NO_REASONING}, and tools",
    ("langchain", ANTHROPIC, "abroad"): _NO_FOREIGN,
    ("langchain", CHAT, "home"): _NO_REASONING,
    ("langchain", CHAT, "abroad"): _NO_REASONING,
    ("langchain", RESPONSES, "abroad"): _NO_FOREIGN,
    ("langchain", GOOGLE, "home"): _OBJECTS,
    ("langchain", GOOGLE, "abroad"): f"{_NO_FOREIGN}; {_OBJECTS}",
    ("langchain", BEDROCK, "abroad"): _NO_FOREIGN,
}


def less_work(peer: str, passage: Passage) -> str:
    """Say where a peer does less than segue does on the same passage."""
    usual = "less work: without tools and options" if peer == "pydantic-ai" else ""
    return _LESS.get((peer, passage.wire, passage.place), usual)


def is_aside(peer: str, passage: Passage) -> bool:
    """Say whether a passage has no goal: the peer's own form is the wire, or nearly so."""
    return less_work(peer, passage) == PASSES_THROUGH or (peer == "litellm" and passage.wire == RESPONSES)


def why_not(peer: str, passage: Passage) -> str:
    """Say why a peer cannot make a passage; nothing when it can."""
    if passage.wire in WIRES[peer]:
        return ""
    return _CANNOT.get((peer, passage.wire), "it does not speak this wire")


def make_task(peer: str, journey: Journey, *, name: str = "", dumps: str = "", reads: bool = False) -> Task:
    """Say what a peer is asked to do: the same transcript for the same target."""
    target, writer = journey.passage.target, journey.passage.writer
    wanted = {"protocol": target.protocol, "provider": target.provider, "id": target.id}
    # Only this one has no form of its own to keep a history in.
    source = {"protocol": writer.protocol, "body": journey.source} if peer == "llm-rosetta" else None
    return Task(name or journey.passage.name, wanted, journey.told, journey.body, source, dumps, reads)


def make_tasks(peer: str, journeys: Iterable[Journey]) -> list[Task]:
    """Give a peer all the passages it can make."""
    return [make_task(peer, journey) for journey in journeys if not why_not(peer, journey.passage)]
