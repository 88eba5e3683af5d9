"""Histories on their way: who wrote them, and which model they are made ready for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from replies import make_history
from transcripts import as_plain, make_transcript

from segue import Context, Model, UnknownProtocol, get_model
from segue.protocols.registry import get_protocol
from segue.request import prepare

CLAUDE: Final = get_model("anthropic/claude-sonnet-4-5")
GPT: Final = get_model("openai/gpt-5.4")
DEEPSEEK: Final = get_model("deepseek/deepseek-v4-pro")
GPT_CHAT: Final = Model("gpt-5.4", "openai", "openai-chat", reasoning=True)
GEMINI: Final = get_model("google/gemini-3.1-pro-preview")
CLAUDE_AT_AMAZON: Final = get_model("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")

WRITERS: Final[Mapping[str, Model]] = {
    "anthropic-messages": CLAUDE,
    "openai-chat": DEEPSEEK,
    "openai-responses": GPT,
}
"""Who streams server-sent events, word by word. OpenAI tells no reasoning over its chat wire, DeepSeek does."""


@dataclass(frozen=True)
class Passage:
    """A history on its way: where it goes, and who wrote it."""

    place: str
    writer: Model
    target: Model

    @property
    def wire(self) -> str:
        """The protocol that the target speaks."""
        return self.target.protocol

    @property
    def name(self) -> str:
        """What to call it in tables and tasks."""
        return f"{self.wire} {self.place}"


PASSAGES: Final = (
    Passage("home", CLAUDE, CLAUDE),
    Passage("abroad", GPT, CLAUDE),
    Passage("home", DEEPSEEK, DEEPSEEK),
    Passage("abroad", CLAUDE, GPT_CHAT),
    Passage("home", GPT, GPT),
    Passage("abroad", CLAUDE, GPT),
    Passage("home", GEMINI, GEMINI),
    Passage("abroad", CLAUDE, GEMINI),
    Passage("home", CLAUDE_AT_AMAZON, CLAUDE_AT_AMAZON),
    # GPT's: what Claude said at Anthropic would be at home at Amazon.
    Passage("abroad", GPT, CLAUDE_AT_AMAZON),
)
HOMES: Final = tuple(passage for passage in PASSAGES if passage.place == "home")


@dataclass(frozen=True)
class Journey:
    """A passage with a history of some length, and the request that segue makes of it."""

    passage: Passage
    context: Context
    body: dict[str, object]
    told: object
    """The transcript before it was decoded, as plain values: peers have signatures and ids in places of their own."""
    source: dict[str, object]
    """The request for whoever wrote it."""


def is_supported(protocol: str) -> str:
    """Say why a wire cannot be measured; nothing when it can."""
    try:
        get_protocol(protocol)
    except UnknownProtocol:
        return f"not measured: segue does not speak {protocol} yet"
    return ""


def make_journey(passage: Passage, length: int) -> Journey:
    """Make the history and the request; a passage home that changes anything is not the one that was meant."""
    context = make_history(length, passage.writer)
    request = prepare(context, passage.target)
    if passage.place == "home" and request.report.changes:
        raise AssertionError(f"{passage.name} is not free: {request.report.changes[:3]}")
    told = as_plain(make_transcript(length, model=passage.writer))
    return Journey(passage, context, request.body, told, prepare(context, passage.writer).body)


def without_replies(context: Context) -> Context:
    """Forget what the replies said beyond our words, as a history has it that was kept in our types from the start."""
    return replace(
        context,
        messages=tuple(
            replace(message, extra=None) if message.role == "assistant" else message for message in context.messages
        ),
    )
