"""The protocols that each peer supports, and where a peer does less work than segue.

Less work was found in the requests that peers make of the same transcripts: reasoning is missing, or the result is not
dicts and lists yet.                                                         (versions as pinned in `peers`, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cases import Case, PreparedCase
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
"""The protocols of each peer."""

PASSES_THROUGH: Final = "less work: its own format is that of the request"
_CANNOT: Final[Mapping[tuple[str, str], str]] = {
    ("any-llm", CHAT): "its own format is that of the request: nothing is converted",
}
_NO_REASONING: Final = "less work: drops all reasoning"
_NO_FOREIGN: Final = "less work: drops the reasoning of other models"
_OBJECTS: Final = "makes objects of google-genai, not dicts"
_LESS: Final[Mapping[tuple[str, str, str], str]] = {
    ("litellm", ANTHROPIC, "cross-model"): _NO_FOREIGN,
    ("litellm", BEDROCK, "cross-model"): _NO_FOREIGN,
    ("litellm", CHAT, "same-model"): PASSES_THROUGH,
    ("litellm", CHAT, "cross-model"): PASSES_THROUGH,
    ("litellm", RESPONSES, "same-model"): "less work: without tools and options",
    ("litellm", RESPONSES, "cross-model"): "less work: without tools and options",
    ("llm-rosetta", RESPONSES, "cross-model"): _NO_FOREIGN,
    ("strands", ANTHROPIC, "cross-model"): _NO_FOREIGN,
    ("strands", BEDROCK, "same-model"): PASSES_THROUGH,
    ("strands", BEDROCK, "cross-model"): PASSES_THROUGH,
    ("strands", CHAT, "same-model"): _NO_REASONING,
    ("strands", CHAT, "cross-model"): _NO_REASONING,
    ("strands", RESPONSES, "same-model"): _NO_REASONING,
    ("strands", RESPONSES, "cross-model"): _NO_REASONING,
    ("any-llm", ANTHROPIC, "cross-model"): f"{_NO_FOREIGN}, and tools",
    ("any-llm", ANTHROPIC, "same-model"): "less work: without tools and options",
    ("any-llm", GOOGLE, "same-model"): f"{_NO_REASONING}; {_OBJECTS}",
    ("any-llm", GOOGLE, "cross-model"): f"{_NO_REASONING}; {_OBJECTS}",
    ("any-llm", BEDROCK, "same-model"): f"{_NO_REASONING}, and tools",
    ("any-llm", BEDROCK, "cross-model"): f"{_NO_REASONING}, and tools",
    ("langchain", ANTHROPIC, "cross-model"): _NO_FOREIGN,
    ("langchain", CHAT, "same-model"): _NO_REASONING,
    ("langchain", CHAT, "cross-model"): _NO_REASONING,
    ("langchain", RESPONSES, "cross-model"): _NO_FOREIGN,
    ("langchain", GOOGLE, "same-model"): _OBJECTS,
    ("langchain", GOOGLE, "cross-model"): f"{_NO_FOREIGN}; {_OBJECTS}",
    ("langchain", BEDROCK, "cross-model"): _NO_FOREIGN,
}


def less_work(peer: str, case: Case) -> str:
    """Return in which way a peer does less work than segue for a case."""
    default = "less work: without tools and options" if peer == "pydantic-ai" else ""
    return _LESS.get((peer, case.wire, case.place), default)


def has_no_goal(peer: str, case: Case) -> bool:
    """Whether a case has no goal, because the peer's own format is nearly that of the request."""
    return less_work(peer, case) == PASSES_THROUGH or (peer == "litellm" and case.wire == RESPONSES)


def why_unsupported(peer: str, case: Case) -> str:
    """Return why a peer does not support a case; an empty string if it does."""
    if case.wire in WIRES[peer]:
        return ""
    return _CANNOT.get((peer, case.wire), "it does not support this protocol")


def make_task(peer: str, prepared: PreparedCase, *, name: str = "", dumps: str = "", reads: bool = False) -> Task:
    """Make the task of a peer: the same transcript for the same target."""
    target, writer = prepared.case.target, prepared.case.writer
    wanted = {"protocol": target.protocol, "provider": target.provider, "id": target.id}
    # Only this peer has no format for stored histories.
    source = {"protocol": writer.protocol, "body": prepared.source} if peer == "llm-rosetta" else None
    return Task(name or prepared.case.name, wanted, prepared.transcript, prepared.body, source, dumps, reads)


def make_tasks(peer: str, prepared_cases: Iterable[PreparedCase]) -> list[Task]:
    """Make the tasks of a peer for all cases that it supports."""
    return [make_task(peer, prepared) for prepared in prepared_cases if not why_unsupported(peer, prepared.case)]
