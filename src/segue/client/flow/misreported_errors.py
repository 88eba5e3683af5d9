"""Errors that do not look like errors: status 200 with an error body or no content, a web page, a redirect, damage.

Facts:
- Gateways answer 200 and put the error into the body, in any provider's format.   (MiniMax `base_resp`; issues, 2026)
- A base URL without its `/v1` answers 200 with the web page of the server.           (LM Studio, Open WebUI)
- Overloaded servers and filters answer 200 with a complete reply that has no content and no error. Clients retry it.
                                    (gemini-cli retries an "empty stream"; LiteLLM, vLLM, OpenRouter: issues, 2026)
- Claude ends its turn without content after tool results if it has nothing to add, and is billed for a few tokens.
                                                                  (Anthropic documentation: stop reasons, read 2026-11)
- Following a redirect would send the conversation and the key to another server.                      (our choice)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.client.flow.reading import is_page, parse_body
from segue.client.flow.steps import Head
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason
from segue.errors import DecodeError
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind

_SHOWN: Final = 200
"""Characters of a web page's text that the message quotes."""
_ANSWERED: Final = (StopReason.STOP, StopReason.TOOL_USE)
EMPTY_REPLY: Final = "a reply without content"
"""The evidence of a failure that is an empty reply."""


def explain_error(body: str, head: Head, provider: str) -> Failure:
    """Describe a reply with a status of 300 or more."""
    if head.status < 400:
        location = head.headers.get("location") or "an address that it does not name"
        text = f"the server redirects to {location}; redirects are not followed. If that address is right, set base_url"
        return Failure(
            kind=FailureKind.NOT_FOUND,
            provider=provider,
            status=head.status,
            evidence=f"status {head.status}",
            message=text,
        )
    return classify(parse_body(body.encode()), provider=provider, status=head.status, headers=head.headers)


def explain_document(body: str, head: Head, provider: str, error: DecodeError) -> Failure:
    """Describe a reply with a good status that cannot be decoded because of `error`."""
    parsed = parse_body(body.encode())
    if isinstance(parsed, Mapping):
        fields = cast("Mapping[str, object]", parsed)
        verdict = classify(fields, provider=provider, headers=head.headers)
        if "error" in fields or verdict.kind != FailureKind.UNKNOWN:
            return verdict
    kind, evidence, text = FailureKind.SERVER, "the body of the reply", f"the reply cannot be read: {error}"
    if is_page(head.headers):
        page = classify(body).message[:_SHOWN]
        text = f"the server sent a web page instead of a reply; check base_url. Text of the page: {page}"
        kind, evidence = FailureKind.NOT_FOUND, "the content type of the reply"
    return Failure(kind=kind, provider=provider, status=head.status, evidence=evidence, message=text)


def is_empty_reply(message: AssistantMessage, context: Context) -> bool:
    """Whether a reply ended as if it were an answer, but has no content.

    After tool results it is one if it cost tokens: the model had nothing to add.
    """
    if message.stop_reason not in _ANSWERED:
        return False
    for piece in message.content:
        if piece.kind not in ("text", "thinking") or _has_text(piece):
            return False
    is_after_results = bool(context.messages) and context.messages[-1].role == "toolResult"
    return not (is_after_results and message.usage is not None and message.usage.output)


def _has_text(piece: object) -> bool:
    is_text = getattr(piece, "text", None) or getattr(piece, "text_signature", None)
    return bool(is_text or getattr(piece, "thinking", None) or getattr(piece, "thinking_signature", None))


def note_empty(message: AssistantMessage) -> AssistantMessage:
    """Note on a reply that it is empty, in case no other attempt succeeds."""
    note = Diagnostic(type="empty_reply", message="The reply has status 200 and no content; it was asked for again.")
    return replace(message, diagnostics=(*message.diagnostics, note))
