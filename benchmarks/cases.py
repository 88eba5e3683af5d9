"""The measured cases: a history of one model, and the target model of the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from replies import make_history
from transcripts import as_plain, make_transcript

from segue import Context, Model, UnknownProtocol, get_model, prepare
from segue.protocols.registry import get_protocol


def _large(name: str) -> Model:
    """Give a model with a window that holds every history: cuts have measurements of their own."""
    return replace(get_model(name), context_window=100_000_000, max_input=0)


CLAUDE: Final = _large("anthropic/claude-sonnet-4-5")
GPT: Final = _large("openai/gpt-5.4")
DEEPSEEK: Final = _large("deepseek/deepseek-v4-pro")
GPT_CHAT: Final = Model("gpt-5.4", "openai", "openai-chat", reasoning=True)
GEMINI: Final = _large("google/gemini-3.1-pro-preview")
CLAUDE_AT_AMAZON: Final = _large("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")

WRITERS: Final[Mapping[str, Model]] = {
    "anthropic-messages": CLAUDE,
    "openai-chat": DEEPSEEK,
    "openai-responses": GPT,
}
"""Models that stream server-sent events in small deltas. OpenAI sends no reasoning over chat, DeepSeek does."""


@dataclass(frozen=True)
class Case:
    """A kind of request: the model that wrote the history, and the target."""

    place: str
    writer: Model
    target: Model

    @property
    def wire(self) -> str:
        """The protocol of the target."""
        return self.target.protocol

    @property
    def name(self) -> str:
        """The name in tables and tasks."""
        return f"{self.wire} {self.place}"


CASES: Final = (
    Case("same-model", CLAUDE, CLAUDE),
    Case("cross-model", GPT, CLAUDE),
    Case("same-model", DEEPSEEK, DEEPSEEK),
    Case("cross-model", CLAUDE, GPT_CHAT),
    Case("same-model", GPT, GPT),
    Case("cross-model", CLAUDE, GPT),
    Case("same-model", GEMINI, GEMINI),
    Case("cross-model", CLAUDE, GEMINI),
    Case("same-model", CLAUDE_AT_AMAZON, CLAUDE_AT_AMAZON),
    # A history of GPT: one of Claude at Anthropic would count as the same model at Amazon.
    Case("cross-model", GPT, CLAUDE_AT_AMAZON),
)
SAME_MODEL_CASES: Final = tuple(case for case in CASES if case.place == "same-model")


@dataclass(frozen=True)
class PreparedCase:
    """A case with a history, and the request that segue makes."""

    case: Case
    context: Context
    body: dict[str, object]
    transcript: object
    """The original transcript as dicts and lists: peers keep signatures and ids in other places."""
    source: dict[str, object]
    """The request for the model that wrote the history."""


def is_supported(protocol: str) -> str:
    """Return why a protocol cannot be measured; an empty string if it can."""
    try:
        get_protocol(protocol)
    except UnknownProtocol:
        return f"not measured: segue does not support {protocol}"
    return ""


def prepare_case(case: Case, length: int) -> PreparedCase:
    """Make the history and the request; a same-model case must not change anything."""
    context = make_history(length, case.writer)
    request = prepare(context, case.target)
    if case.place == "same-model" and request.report.changes:
        raise AssertionError(f"{case.name}: projection must not change anything: {request.report.changes[:3]}")
    transcript = as_plain(make_transcript(length, model=case.writer))
    return PreparedCase(case, context, request.body, transcript, prepare(context, case.writer).body)


def without_replies(context: Context) -> Context:
    """Remove the `extra` of assistant messages: other fields of the replies."""
    return replace(
        context,
        messages=tuple(
            replace(message, extra=None) if message.role == "assistant" else message for message in context.messages
        ),
    )
