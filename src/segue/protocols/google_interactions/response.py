"""Whole replies: steps, usage, status.

Error bodies of the Interactions API, and error events of its streams.

What replies of the Interactions API hold of other replies.

Facts:
- A reply has a `status`: `completed`, `requires_action` while functions of the client wait, `incomplete`, `failed`,
  `cancelled`, `budget_exceeded`, or an unfinished one (`in_progress`, `queued`).   (google-genai 3.1.0, 2026-11-17)
- `requires_continuation` is a reply that was cut at the limit of one request.
                                                          (google-genai 3.1.0: _interactions_continuation)
- Why a reply failed is in `errors`; the code of a withheld one names the filter (`safety`, `recitation`, ...).
                                           (google-genai 3.1.0; codes of a public adapter's live calls, 2026-11-16)
- `total_input_tokens` includes the cached ones; thoughts and results of tools are counted apart from input and output.
                                        (google-genai 3.1.0: Usage; the counts of generateContent are of the same form)
- An error body is `{"error": {"code", "message"}}` with a code in small letters; an event of a stream has the same
  `error` next to `event_type: error`.        (google-genai 3.1.0: CreateInteractionClientError, ErrorEvent; 2026-11-17)
- Codes: invalid_request, failed_precondition, authentication, permission_denied, payment_required, not_found,
  model_not_found, rate_limit_exceeded, missing_thought_signature, ...; a bad signature may also be `invalid_request`
  with "thought signature" in the text.                        (list of a public adapter's live calls, read 2026-11-16)
- The servers before it write the errors of other Google APIs: a number as `code`, a name as `status`.
                                                                                       (recorded traffic, 2026-11)
- A text has `annotations`; the place of a `url_citation` is counted in bytes. The place of pages that another model
  cites is not known, so they are at the end.            (google-genai 3.1.0: URLCitationParam, read 2026-11-17)
- A search is a call with its queries and a result, both signed, so no other search is written as one.    (the same)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError, EncodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_share
from segue.protocols.families.citations import write_span
from segue.protocols.families.google_errors import decode_google_error
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.google_interactions.turns import TurnReader, write_turn
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, JsonObject
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Wire, object_of
from segue.protocols.kit.reading import number_of, strings_of, text_of
from segue.protocols.kit.replies import ended_with, keep_reply, restore_reply
from segue.protocols.kit.reply_form import ReplyForm, Search
from segue.protocols.kit.sources import CitedPage, objects_in

decode_error: Final = decode_google_error

_ROWS: Final[Mapping[str, ErrorRow]] = {
    # codes of a public adapter's live calls; statuses as at generateContent; read 2026-11-16
    "overflow": ErrorRow(400, "invalid_argument"),
    "payload_too_large": ErrorRow(413, "invalid_argument"),
    "rate_limit": ErrorRow(429, "rate_limit_exceeded"),
    "quota": ErrorRow(402, "payment_required"),
    "auth": ErrorRow(401, "authentication"),
    "auth 403": ErrorRow(403, "permission_denied"),
    "auth 400": ErrorRow(400, "authentication"),
    "auth 502": ErrorRow(502, "internal"),
    "opaque_rejected": ErrorRow(400, "invalid_request"),
    "invalid_history": ErrorRow(400, "invalid_request"),
    "invalid_request": ErrorRow(400, "invalid_request"),
    "not_found": ErrorRow(404, "not_found"),
    "overloaded": ErrorRow(503, "unavailable"),
    "server": ErrorRow(500, "internal"),
    "network": ErrorRow(502, "internal"),
    "refused": ErrorRow(400, "content_blocked"),
}
_OVERFLOW: Final = "The input token count ({used}) exceeds the maximum number of tokens allowed ({limit})."
_UNKNOWN_OVERFLOW: Final = "The input token count exceeds the maximum number of tokens allowed."


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    row = find_row(_ROWS, fault)
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error_object(fault)})


def error_object(fault: Fault) -> Wire:
    """Write the `error` of a body or of an event."""
    return {"code": find_row(_ROWS, fault).type, "message": error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)}


def _cite_in_text(text: TextContent, pages: Sequence[CitedPage]) -> TextContent:
    annotations = [
        {"type": "url_citation", "url": page.url, "title": page.title, **write_span(text.text, page, in_bytes=True)}
        for page in pages
    ]
    return replace(text, extra={PROTOCOL: {"annotations": annotations}})


def _read_search(content: NativeContent) -> Search | None:
    match content.block.get("type"):
        case "google_search_call":
            queries = strings_of(object_of(content.block.get("arguments")).get("queries"))
            return Search(", ".join(queries), is_open=True) if queries else None
        case "google_search_result":
            return Search()  # the pages are in the annotations of the answer
        case _:
            return None


REPLY_FORM: Final = ReplyForm(
    refusals=(
        "content_blocked",
        "safety",
        "recitation",
        "language",
        "prohibited_content",
        "spii",
        "blocklist",
        "image_safety",
        "image_prohibited_content",
        "image_recitation",
        "image_other",
    ),  # codes of a public adapter's live calls, read 2026-11-16
    cite_in_text=_cite_in_text,
    read_search=_read_search,
)


_STATUSES: Final[Mapping[str, StopReason]] = {
    "completed": StopReason.STOP,
    "requires_action": StopReason.TOOL_USE,
    "incomplete": StopReason.LENGTH,
    "budget_exceeded": StopReason.LENGTH,
    "requires_continuation": StopReason.LENGTH,
    "failed": StopReason.ERROR,
    "cancelled": StopReason.ABORTED,
    # An unfinished reply: the content is incomplete.
    "in_progress": StopReason.ERROR,
    "queued": StopReason.ERROR,
}
_STATUS_OF: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "completed",
    StopReason.TOOL_USE: "requires_action",
    StopReason.LENGTH: "incomplete",
    StopReason.ERROR: "failed",
    StopReason.ABORTED: "cancelled",
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a reply; an error body gives a failed message.

    Raises:
        DecodeError: it has neither steps, a status nor an error.
    """
    if body.keys().isdisjoint(("steps", "status", "error", "errors")):
        raise DecodeError("the reply has no `steps`; pass the body of an interaction", path=("steps",))
    reader = TurnReader(tool_names, is_reply=True)
    steps = objects_in(body.get("steps"))
    content = reader.read_all(steps)
    message = replace(finish_message(body, content, endpoint), content=content, diagnostics=tuple(reader.diagnostics))
    # The content holds what its steps differ in, so the default has the steps as received.
    default = _default_response(message, steps, endpoint)
    return replace(message, extra=keep_reply(PROTOCOL, default, body))


def finish_message(body: JsonObject, content: Sequence[AssistantContent], endpoint: Endpoint) -> AssistantMessage:
    """Make a message of the fields of a reply next to its steps; `content` is what was read of them."""
    stop, raw = stop_of(body, content)
    usage = decode_usage(body.get("usage"))
    if usage is not None:
        share = find_share(endpoint.model, body)
        usage = replace(usage, cost=find_cost(endpoint.model.cost, usage, share=share))
    return replace(
        new_assistant_message(endpoint.model),
        protocol=PROTOCOL,
        response_id=text_of(body.get("id")) or None,
        response_model=text_of(body.get("model")),
        usage=usage,
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=_error_message(body, raw, stop),
    )


def stop_of(body: JsonObject, content: Sequence[AssistantContent]) -> tuple[StopReason, str | None]:
    """Return the stop reason of a reply, segue's and the provider's: its status, or the code of its error."""
    status = text_of(body.get("status"))
    if status is None and body.get("error") is not None:
        return StopReason.ERROR, decode_error(body, None).code
    # An unknown status comes with a complete reply.
    stop = _STATUSES.get(status or "", StopReason.STOP if content else StopReason.ERROR)
    if stop == StopReason.STOP and any(piece.kind == "toolCall" for piece in content):
        stop = StopReason.TOOL_USE
    code = next((code for error in objects_in(body.get("errors")) if (code := text_of(error.get("code")))), None)
    return stop, (code or status) if stop == StopReason.ERROR else status


def _error_message(body: JsonObject, raw: str | None, stop: StopReason) -> str | None:
    if stop not in (StopReason.ERROR, StopReason.ABORTED):
        return None
    if body.get("error") is not None:
        return decode_error(body, None).message or "the provider reported an error"
    failed = [object_of(step.get("error")) for step in objects_in(body.get("steps"))]
    found = (text_of(error.get("message")) for error in (*objects_in(body.get("errors")), *failed))
    return next((message for message in found if message), None) or ended_with(raw, stop)


def decode_usage(given: object) -> Usage | None:
    """Read the token counts."""
    if not isinstance(given, Mapping):
        return None
    wire = cast("JsonObject", given)
    prompt, cached = number_of(wire.get("total_input_tokens")), number_of(wire.get("total_cached_tokens"))
    tools, thoughts = number_of(wire.get("total_tool_use_tokens")), number_of(wire.get("total_thought_tokens"))
    output = number_of(wire.get("total_output_tokens")) + thoughts
    return Usage(
        input=max(prompt - cached, 0) + tools,
        output=output,
        cache_read=cached,
        reasoning=thoughts,
        total_tokens=number_of(wire.get("total_tokens")) or prompt + tools + output,
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a reply; one that was read is written unchanged.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    steps: list[Wire] = []
    try:
        write_turn(steps, message.content, endpoint)
    except EncodeError as error:
        raise EncodeError(error.reason, path=("content", *error.path)) from error
    return restore_reply(PROTOCOL, _default_response(message, steps, endpoint), message.extra)


def _default_response(message: AssistantMessage, steps: Sequence[JsonObject], endpoint: Endpoint) -> Wire:
    stop = StopReason(message.stop_reason)
    body: Wire = {"id": message.response_id or ""}
    model = message.response_model or message.model or endpoint.model.id
    if model:
        body["model"] = model
    body["status"] = status_of(message)
    if stop == StopReason.ERROR:
        raw = message.raw_stop_reason
        body["errors"] = [
            {"code": raw if raw in REPLY_FORM.refusals else "internal", "message": message.error_message or ""}
        ]
    body["steps"] = list(steps)
    if message.usage is not None:
        body["usage"] = encode_usage(message.usage)
    return body


def status_of(message: AssistantMessage) -> str:
    """Return the status of a reply: the provider's own if it says what the stop reason says."""
    stop, raw = StopReason(message.stop_reason), message.raw_stop_reason
    return raw if raw is not None and _STATUSES.get(raw) == stop else _STATUS_OF[stop]


def encode_usage(usage: Usage) -> Wire:
    """Write the token counts."""
    return {
        "total_input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "total_output_tokens": usage.output - usage.reasoning,
        "total_thought_tokens": usage.reasoning,
        "total_cached_tokens": usage.cache_read,
        "total_tool_use_tokens": 0,
        "total_tokens": usage.total_tokens,
    }
