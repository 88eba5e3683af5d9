"""A generateContent reply, both ways: content, usage, stop reason.

How a reply differs from the default format is one entry of the message's `extra`, under `reply`. No request repeats it
(grounding, citations, ratings, log probabilities, times). The first candidate is the message; the others are kept in
that entry.

The answers of `google-genai` about models (google-genai 3.1.0: models.py, `_Model_from_mldev`, read 2026-11-15).

Error bodies of the Gemini API and Vertex.

What replies of Gemini's protocol hold of other replies.

Facts:
- `promptTokenCount` includes the cached tokens; thoughts are counted apart from the candidates; what server tools
  returned to the model is counted separately. All of them add up to the total.
                                      (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- There is no finish reason for calls: a reply with calls ends with STOP.                  (recorded traffic, 2026-11)
- Every reason but STOP and the two limits means that something was withheld or failed.
                                                                     (google-genai 3.1.0: finish reasons)
- The reply to a blocked prompt has no candidates: `promptFeedback` has the reason.        (google-genai 3.1.0)
- A whole reply may have content and no finish reason.                  (1.5 Flash, as pydantic-ai has recorded it)
- Google's generated clients request enums as numbers (`enum-encoding=int`); up to 5 both endpoints number finish
  reasons alike.     (google.ai.generativelanguage and google.cloud.vertexai: Candidate.FinishReason, read 2026-11-15)
- `{"error": {code, message, status, details: [{"@type", reason, ...}]}}`, also in mid-stream; `status` is a name
  of google.rpc.Code, `code` the HTTP status.                            (google-genai 3.1.0: errors, read 2026-11-15)
- A stream that is a JSON array has its error in an array.                                                (the same)
- Gateways respond with a text, an HTML page, or `{"message"}` / `{"error": "text"}`.            (litellm, Cloudflare)
- The pages that a reply relies on, and what was searched for, are `groundingMetadata` of its candidate. Clients do not
  send them back.                                                                (google-genai 3.1.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_fees, find_share
from segue.protocols.families.citations import write_span
from segue.protocols.families.google_errors import decode_google_error
from segue.protocols.google_genai.content import TO_CAMEL, encode_assistant_parts, read_keys
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.turns import decode_model_parts, parts_of
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_patch import difference
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.reading import expect_list, expect_object, number_of, of_reply, text_of
from segue.protocols.kit.replies import keep_reply, restore_reply
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.sources import CitedPage, distinct

_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def _one(model: Model) -> Wire:
    window = model.max_input or model.context_window
    return {
        "name": model.id if "/" in model.id else f"models/{model.id}",
        "version": "001",
        "displayName": model.name or model.id,
        **({"inputTokenLimit": window} if window else {}),
        **({"outputTokenLimit": model.max_tokens} if model.max_tokens else {}),
        "supportedGenerationMethods": list(_METHODS),
        "thinking": model.reasoning,
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"models": [_one(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)


decode_error: Final = decode_google_error

_ROWS: Final[Mapping[str, ErrorRow]] = {
    # Google documentation: Gemini API troubleshooting; google.rpc.Code; read 2026-11-15
    "overflow": ErrorRow(400, "INVALID_ARGUMENT"),
    "payload_too_large": ErrorRow(413, "INVALID_ARGUMENT"),
    "rate_limit": ErrorRow(429, "RESOURCE_EXHAUSTED"),
    "quota": ErrorRow(429, "RESOURCE_EXHAUSTED"),
    "quota 402": ErrorRow(402, "RESOURCE_EXHAUSTED"),
    "auth": ErrorRow(401, "UNAUTHENTICATED"),
    "auth 403": ErrorRow(403, "PERMISSION_DENIED"),
    "auth 400": ErrorRow(400, "INVALID_ARGUMENT"),
    "auth 502": ErrorRow(502, "UNKNOWN"),
    "opaque_rejected": ErrorRow(400, "INVALID_ARGUMENT"),
    "invalid_history": ErrorRow(400, "INVALID_ARGUMENT"),
    "invalid_request": ErrorRow(400, "INVALID_ARGUMENT"),
    "not_found": ErrorRow(404, "NOT_FOUND"),
    "overloaded": ErrorRow(503, "UNAVAILABLE"),
    "server": ErrorRow(500, "INTERNAL"),
    "network": ErrorRow(502, "UNKNOWN"),
    "refused": ErrorRow(400, "INVALID_ARGUMENT"),
}
_OVERFLOW: Final = "The input token count ({used}) exceeds the maximum number of tokens allowed ({limit})."
_UNKNOWN_OVERFLOW: Final = "The input token count exceeds the maximum number of tokens allowed."
_RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error frame of a stream, too."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    error: dict[str, object] = {"code": row.status, "message": message, "status": row.type}
    if fault.retry_after is not None:
        error["details"] = [{"@type": _RETRY_INFO, "retryDelay": f"{fault.retry_after:g}s"}]
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error})


STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "STOP": StopReason.STOP,
    "MAX_TOKENS": StopReason.LENGTH,
    "CONTINUATION": StopReason.LENGTH,  # the limit of one request; `continuationToken` continues it
}
"""Any other reason is an error: the reply is not the whole answer, or none."""

_WITHHELD: Final = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
"""Reasons of a reply that was withheld, at both endpoints (google-genai 3.1.0: FinishReason, read 2026-11-15)."""

_MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
_NUMBERED: Final[Mapping[object, str | None]] = {
    0: None,  # unspecified
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    5: "OTHER",
}
"""Finish reasons by their numbers; the two endpoints differ in the others."""

_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "STOP",
    StopReason.TOOL_USE: "STOP",
    StopReason.LENGTH: "MAX_TOKENS",
}
_BODY_KEYS: Final = frozenset(
    {"promptFeedback", "usageMetadata", "error", "modelVersion", "responseId", "createTime", "modelStatus"}
)
"""Keys of a reply without candidates."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; an error, or the reply to a blocked prompt, is a message that failed.

    Raises:
        DecodeError: it is not a reply, or its content is not what the protocol defines.
    """
    wire = read_keys(body)
    first: Block = {}
    candidates = wire.get("candidates")
    if candidates is not None:
        items = expect_list(candidates, ("candidates",))
        if items:
            first = read_keys(expect_object(items[0], ("candidates", 0)))
    elif wire.keys().isdisjoint(_BODY_KEYS) and "candidates" not in body:
        raise DecodeError("a reply needs `candidates`", path=("candidates",))
    content = first.get("content")
    parts: Sequence[Block] = ()
    if content is not None:
        turn = expect_object(content, ("candidates", 0, "content"))
        parts = parts_of(turn, ("candidates", 0, "content"))
    prefix = id_prefix(text_of(wire.get("responseId")))
    pieces = decode_model_parts(parts, prefix, tool_names, endpoint, is_reply=True)
    return finish_response(body, pieces, endpoint)


def id_prefix(response_id: str | None) -> str:
    """Begin the ids of calls that come without one; the reply's own id distinguishes those of different replies."""
    return f"call_{response_id}_" if response_id else "call_"


def finish_response(
    body: Block, pieces: tuple[AssistantContent, ...], endpoint: Endpoint, *, is_whole: bool = True
) -> AssistantMessage:
    """Make a message of the content that was read from a reply, and of the reply itself.

    `is_whole` is False for a stream, which is finished only with a reason; its body is empty if nothing was received.
    """
    wire = read_keys(body)
    listed = wire.get("candidates")
    candidates = cast("Sequence[object]", listed) if isinstance(listed, (list, tuple)) else ()
    candidate = read_keys(object_of(candidates[0] if candidates else None))
    raw = finish_reason(candidate) or block_reason(wire)
    stop = stop_reason_of(raw, pieces) if is_whole or raw is not None else StopReason.ERROR
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(wire.get("responseId")),
        response_model=text_of(wire.get("modelVersion")),
        usage=decode_usage(wire.get("usageMetadata"), endpoint, candidate),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=_failure(wire, candidate, raw) if stop == StopReason.ERROR else None,
    )
    entry = difference(encode_response(message, endpoint), body, aliases=TO_CAMEL) if body else None
    return message if entry is None else replace(message, extra=of_reply(PROTOCOL, entry))


def finish_reason(candidate: Block) -> str | None:
    """Return the finish reason of a candidate, also where it is a number; None when there is none."""
    reason = candidate.get("finishReason")
    if isinstance(reason, int) and not isinstance(reason, bool):
        return _NUMBERED.get(reason, str(reason))
    return text_of(reason)


def stop_reason_of(raw: str | None, pieces: Sequence[AssistantContent]) -> StopReason:
    """Return the stop reason; a reply that stopped with calls in it waits for their results.

    A reply without a finish reason is whole if it has content.
    """
    has_calls = any(piece.kind == "toolCall" for piece in pieces)
    default = StopReason.STOP if pieces else StopReason.ERROR
    stop = default if raw is None else STOP_REASONS.get(raw.upper(), StopReason.ERROR)
    return StopReason.TOOL_USE if has_calls and stop == StopReason.STOP else stop


def block_reason(wire: Block) -> str | None:
    """Return the reason why a prompt was blocked; None when it was not."""
    return text_of(read_keys(object_of(wire.get("promptFeedback"))).get("blockReason"))


def error_text(body: Block) -> str:
    """Return the message of an error body, or of the error frame of a stream."""
    error = decode_error(body, None)
    return ": ".join(text for text in (error.type, error.message) if text) or "the provider reported an error"


def _failure(wire: Block, candidate: Block, raw: str | None) -> str:
    """Return the error message, the provider's own where there is one."""
    if "error" in wire:
        return error_text(wire)
    if raw is None:
        return "the reply ended without a finish reason"
    if "finishReason" not in candidate:
        feedback = read_keys(object_of(wire.get("promptFeedback")))
        return text_of(feedback.get("blockReasonMessage")) or f"the prompt was blocked: {raw}"
    return text_of(candidate.get("finishMessage")) or f"the reply ended with {raw}"


def decode_usage(given: object, endpoint: Endpoint, candidate: Block) -> Usage | None:
    """Read the token counts, and compute their cost with that of the searches of the first candidate."""
    if not isinstance(given, (dict, Mapping)):
        return None
    wire = read_keys(cast("Block", given))
    prompt, cached = number_of(wire.get("promptTokenCount")), number_of(wire.get("cachedContentTokenCount"))
    tools, thoughts = number_of(wire.get("toolUsePromptTokenCount")), number_of(wire.get("thoughtsTokenCount"))
    output = number_of(wire.get("candidatesTokenCount")) + thoughts
    usage = Usage(
        input=max(prompt - cached, 0) + tools,
        output=output,
        cache_read=cached,
        reasoning=thoughts,
        total_tokens=number_of(wire.get("totalTokenCount")) or prompt + tools + output,
    )
    grounding = read_keys(object_of(candidate.get("groundingMetadata")))
    fees = find_fees(endpoint.model, counts=grounding) if grounding else 0.0
    share = find_share(endpoint.model, wire)
    return replace(usage, cost=find_cost(endpoint.model.cost, usage, share=share, fees=fees))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:
    """Write a whole reply; one that `decode_response` read is written as it was received.

    Raises:
        EncodeError: the protocol does not support its content.
    """
    raw = message.raw_stop_reason
    is_known = raw in STOP_REASONS or (raw in {*_WITHHELD, _MALFORMED} and message.stop_reason == StopReason.ERROR)
    reason = raw if is_known else _REASONS_BACK.get(message.stop_reason, "OTHER")
    content: Wire = {"role": "model", "parts": encode_assistant_parts(message.content, endpoint, {})}
    body: Wire = {"candidates": [{"content": content, "finishReason": reason, "index": 0}]}
    if message.usage is not None:
        body["usageMetadata"] = _encode_usage(message.usage)
    body["modelVersion"] = message.response_model or message.model
    if message.response_id is not None:
        body["responseId"] = message.response_id
    return restore_reply(PROTOCOL, body, message.extra)


def _encode_usage(usage: Usage) -> Wire:
    wire: Wire = {
        "promptTokenCount": usage.input + usage.cache_read + usage.cache_write,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.total_tokens,
    }
    if usage.cache_read:
        wire["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        wire["thoughtsTokenCount"] = usage.reasoning
    return wire


def _support(text: str, page: CitedPage, chunk: int) -> Wire:
    """Write the place for which a page is cited, which is counted in bytes."""
    place = write_span(text, page, in_bytes=True)
    start, end = page.span or (0, 0)
    segment: Wire = {"startIndex": place["start_index"], "endIndex": place["end_index"], "text": text[start:end]}
    return {"segment": segment, "groundingChunkIndices": [chunk]}


def _cite_in_reply(
    message: AssistantMessage, endpoint: Endpoint, pages: Sequence[CitedPage], queries: Sequence[str]
) -> AssistantMessage:
    default = encode_response(message, endpoint)
    first, *others = cast("list[Wire]", default["candidates"])
    text, shown = message.text(), distinct(replace(page, span=None) for page in pages)
    places = {page.url: at for at, page in enumerate(shown)}
    supports = [_support(text, page, places[page.url]) for page in pages if page.span is not None]
    grounding: Wire = {
        **({"webSearchQueries": list(queries)} if queries else {}),
        "groundingChunks": [{"web": {"uri": page.url, "title": page.title or page.url}} for page in shown],
        **({"groundingSupports": supports} if supports else {}),
    }
    received = {**default, "candidates": [{**first, "groundingMetadata": grounding}, *others]}
    return replace(message, extra=keep_reply(PROTOCOL, default, received, message.extra))


REPLY_FORM: Final = ReplyForm(
    refusals=(
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_OTHER",
        "MODEL_ARMOR",
        "ESCALATION",
    ),  # google-genai 3.3.0: FinishReason; read 2026-11-18
    cite_in_reply=_cite_in_reply,
    searches_in_reply=True,
)
