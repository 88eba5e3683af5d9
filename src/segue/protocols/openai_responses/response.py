"""Whole replies: items, usage, stop reason.

What replies of the Responses protocol hold of other replies.

Facts:
- There is no stop reason for calls: a reply is `completed`, with calls among its items or without.    (openai 3.49.0)
- The reason of `incomplete` is in `incomplete_details`, that of `failed` in `error`.              (openai 3.49.0)
- `input_tokens` includes tokens read from the cache and written to it; `output_tokens` includes reasoning.
                                                             (openai 3.49.0; recorded traffic, 2026-11: cached of total)
- A reply repeats the request: tools, instructions, settings. No request sends it back, so it is kept under `reply`,
  as the difference to the reply that segue writes by default.
- A text has `annotations`; a `url_citation` has a title and the place in the text. The place of pages that another
  model cites is not known, so they are at the end.                                (openai 3.49.0, read 2026-11-15)
- A `web_search_call` has a query and sources, and nothing that only the provider can make.               (the same)
- `input_transformations` names the reasoning items that were withheld from the model, in the order of the input: by
  their original ids, each with a reason. Every object `response` of a stream has it. Which models withhold, and
  whether a request is ever refused instead, is not documented.            (openai 3.51.0: Response, read 2026-11-18)
- The input of a custom tool is a text; other protocols call it with the argument `input`.                (the same)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ToolCall
from segue.conversation.context import ToolDefinition
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason, Usage
from segue.errors import DecodeError, EncodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_fees, find_share
from segue.protocols.families.citations import write_span
from segue.protocols.families.functions import free_text
from segue.protocols.families.openai_errors import decode_error, write_error
from segue.protocols.kit.codec import Endpoint, Fault, JsonObject
from segue.protocols.kit.json_patch import difference
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.reading import number_of, of_reply, text_of
from segue.protocols.kit.replies import keep_reply, restore_reply
from segue.protocols.kit.reply_form import TRANSFORMATIONS, ReplyForm, Search, note_withheld
from segue.protocols.kit.sources import CitedPage, objects_in
from segue.protocols.kit.verbatim import VERBATIM, choose, chosen, data_of
from segue.protocols.openai_responses.options import custom_names
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.turns import (
    TurnReader,
    decode_reasoning,
    with_text_ids,
    with_text_input,
    write_turn,
)

_STREAM_CODES: Final[Mapping[str, str]] = {
    # openai 3.49.0: ResponseError.code; codex 0.166.0 stops on context_length_exceeded, insufficient_quota and
    # invalid_prompt, and retries on others (run against a probe, 2026-11)
    "invalid_history": "invalid_prompt",
    "invalid_request": "invalid_prompt",
}


def stream_error(fault: Fault) -> Wire:
    """Write the `error` of a reply that failed while it was streamed."""
    error = object_of(write_error(fault).body["error"])
    message, kind = str(error["message"]), str(fault.kind)
    if kind == "rate_limit" and fault.retry_after is not None:
        message = f"{message} Please try again in {fault.retry_after:g}s."  # codex reads the time from the text
    return {"code": error.get("code") or _STREAM_CODES.get(kind, "server_error"), "message": message}


_UNFINISHED: Final = ("in_progress", "queued")
_STATUSES: Final[Mapping[str, StopReason]] = {
    "completed": StopReason.STOP,
    "failed": StopReason.ERROR,
    "cancelled": StopReason.ABORTED,
    # An unfinished reply: the content is incomplete.
    **dict.fromkeys(_UNFINISHED, StopReason.ERROR),
}
_REASONS: Final[Mapping[str, StopReason]] = {
    "max_output_tokens": StopReason.LENGTH,
    "max_messages": StopReason.LENGTH,
    "content_filter": StopReason.ERROR,
    # A new user message interrupted it; the content so far is valid.
    "steered": StopReason.STOP,
}
_UNKNOWN_INCOMPLETE: Final = StopReason.ERROR
"""The stop reason of `incomplete` for an unknown reason: content is missing."""
_UNKNOWN_STATUS: Final = StopReason.STOP
"""The stop reason of an unknown status, or none, on a reply with content: vendors have other names for `completed`."""
_WITHHELD: Final = "content_filter"
ECHOED: Final[Mapping[str, object]] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
"""Options of the request that the SDK requires in a reply; their defaults. (openai 3.49.0)"""
_STATUS_OF: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "completed",
    StopReason.TOOL_USE: "completed",
    StopReason.LENGTH: "incomplete",
    StopReason.ERROR: "failed",
    StopReason.ABORTED: "cancelled",
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a reply; an error body gives a failed message.

    Raises:
        DecodeError: it has neither output nor an error.
    """
    return read_response(body, endpoint, tool_names, None)


def read_response(
    body: JsonObject,
    endpoint: Endpoint,
    tool_names: Mapping[str, str],
    known: tuple[TurnReader, Sequence[AssistantContent]] | None,
) -> AssistantMessage:
    """Read a reply; an error body gives a failed message.

    `known` is what was read of exactly these items before, and by whom.

    Raises:
        DecodeError: it has neither output nor an error.
    """
    output = body.get("output")
    if "output" not in body and not _is_failure(body):
        raise DecodeError("the reply has no `output`; pass the body of a response", path=("output",))
    items = [cast("JsonObject", item) for item in list_of(output) if isinstance(item, Mapping)]
    items = [*map(with_text_ids, items)]
    if known is None:
        reader = TurnReader(tool_names, is_reply=True)
        content = reader.read_all(items)
    else:
        reader, content = known[0], tuple(known[1])
    reason, raw = stop_of(body, called=any(piece.kind == "toolCall" for piece in content), has_content=bool(content))
    usage, written_long = decode_usage(body.get("usage"))
    if usage is not None:
        fees = find_fees(endpoint.model, blocks=items)
        share = find_share(endpoint.model, body)
        cost = find_cost(endpoint.model.cost, usage, cache_write_long=written_long, share=share, fees=fees)
        usage = replace(usage, cost=cost)
    message = replace(
        new_assistant_message(endpoint.model, content=content),
        protocol=PROTOCOL,
        response_id=text_of(body.get("id")),
        response_model=text_of(body.get("model")),
        usage=usage,
        stop_reason=reason,
        raw_stop_reason=raw,
        error_message=error_message_of(body, reason),
        diagnostics=(*reader.diagnostics, *note_removed(body)),
    )
    # The content holds what its items differ in, so the default has the items as received.
    default = _default_response(message, [with_text_input(item) for item in items], endpoint)
    return replace(message, extra=keep_reply(PROTOCOL, default, body if isinstance(body, dict) else dict(body)))


def _is_failure(body: JsonObject) -> bool:
    """Whether a body without output is a reply: an error, or an unfinished reply."""
    status = _STATUSES.get(text_of(body.get("status")) or "", StopReason.STOP)
    return body.get("error") is not None or body.get("type") == "error" or status != StopReason.STOP


def stop_of(body: JsonObject, *, called: bool, has_content: bool) -> tuple[StopReason, str | None]:
    """Return the stop reason of a reply, segue's and the provider's."""
    status = text_of(body.get("status"))
    if status == "incomplete":
        why = text_of(object_of(body.get("incomplete_details")).get("reason"))
        return _REASONS.get(why or "", _UNKNOWN_INCOMPLETE), why or status
    if status is None and (body.get("error") is not None or body.get("type") == "error"):
        return StopReason.ERROR, None
    reason = _STATUSES.get(status or "", _UNKNOWN_STATUS if has_content else StopReason.ERROR)
    return (StopReason.TOOL_USE if called and reason == StopReason.STOP else reason), status


def error_message_of(body: JsonObject, reason: StopReason) -> str | None:
    """Return the provider's error message; None when the reply did not fail."""
    if reason not in (StopReason.ERROR, StopReason.ABORTED):
        return None
    if body.get("error") is not None or body.get("type") == "error":
        return decode_error(body, None).message or "the provider reported an error"
    why = text_of(object_of(body.get("incomplete_details")).get("reason"))
    return f"the reply ended with {why or body.get('status') or 'no status'}"


def decode_usage(given: object) -> tuple[Usage | None, int]:
    """Read the usage of a reply, and how many tokens were written to the cache for the longer time."""
    if not isinstance(given, Mapping):
        return None, 0
    wire = cast("JsonObject", given)
    into, out = object_of(wire.get("input_tokens_details")), object_of(wire.get("output_tokens_details"))
    cached, written = number_of(into.get("cached_tokens")), number_of(into.get("cache_write_tokens"))
    usage = Usage(
        input=max(0, number_of(wire.get("input_tokens")) - cached - written),
        output=number_of(wire.get("output_tokens")),
        cache_read=cached,
        cache_write=written,
        reasoning=number_of(out.get("reasoning_tokens")),
        total_tokens=number_of(wire.get("total_tokens")),
    )
    return usage, number_of(object_of(into.get("cache_write_tokens_details")).get("ttl_12h_tokens"))


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a reply; one that was read is written unchanged.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    output: list[Wire] = []
    try:
        write_turn(output, message.content, is_reply=True)
    except EncodeError as error:
        raise EncodeError(error.reason, path=("content", *error.path)) from error
    return restore_reply(PROTOCOL, _default_response(message, output, endpoint), message.extra)


def error_extra(message: str, error: object) -> Extra | None:
    """Keep the error object of a stream, as far as it differs from the default one."""
    found = difference(_default_error(message), error)
    return None if found is None else of_reply(PROTOCOL, {"in": {"error": found}})


def _default_response(message: AssistantMessage, output: Sequence[JsonObject], endpoint: Endpoint) -> Wire:
    stop = StopReason(message.stop_reason)
    is_withheld = stop == StopReason.ERROR and message.raw_stop_reason == _WITHHELD
    raw = message.raw_stop_reason
    status = raw if raw in _UNFINISHED and _STATUSES[raw] == stop else None
    status = status or _STATUS_OF[StopReason.LENGTH if is_withheld else stop]
    reason = _WITHHELD if is_withheld else "max_output_tokens"
    # Without an id, the time at which a reply came separates it from others.
    name = message.response_id or (str(message.timestamp) if message.timestamp else None)
    body: Wire = {
        "id": message.response_id or "",
        "object": "response",
        "created_at": (message.timestamp or 0) // 1000,
        "status": status,
        "error": _default_error(message.error_message) if status == "failed" else None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "model": message.response_model or message.model or endpoint.model.id,
        "output": [as_output(item, index, name) for index, item in enumerate(output)],
        **ECHOED,
    }
    if message.usage is not None:
        body["usage"] = _encode_usage(message.usage)
    return body


def _default_error(message: str | None) -> Wire:
    return {"code": "server_error", "message": message or ""}


def _encode_usage(usage: Usage) -> Wire:
    into: Wire = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {
        "input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "input_tokens_details": into,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total_tokens,
    }


_ID_PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}


def item_id(kind: str, index: int, response_id: str | None) -> str:
    """Make the id of an item without one: clients identify items of a stream by their ids.

    OpenAI refuses two items of `input` with one id ("Duplicate item found with id msg_4", pi #5149, 2026-05-28), so the
    ids of two replies differ as theirs do. A digest has the length and the characters that OpenAI accepts.
    """
    reply = f"{sha256(response_id.encode('utf-8', 'replace')).hexdigest()[:32]}_" if response_id else ""
    return f"{_ID_PREFIXES.get(kind, 'item')}_{reply}{index}"


def as_output(item: JsonObject, index: int, response_id: str | None) -> JsonObject:
    """Write an item as replies have it: with an id, a message and a call also with a status, a message with parts.

    The AI SDK of opencode leaves out a finished call without a status.                  (opencode 1.18, run 2026-11-16)
    """
    kind, content = item.get("type"), item.get("content")
    if item.get("role") == "assistant" and isinstance(content, str):
        part: Wire = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
        named: Wire = {"type": "message", "id": item_id("message", index, response_id), "status": "completed"}
        return {**named, **item, "content": [part]}
    if "id" in item or not isinstance(kind, str) or kind not in _ID_PREFIXES:
        return item
    status: Wire = {"status": "completed"} if kind == "message" else {}
    if kind == "function_call":
        is_whole = parse_arguments(text_of(with_text_input(item).get("arguments")) or "").is_whole
        status = {"status": "completed" if is_whole else "incomplete"}
    return {"id": item_id(kind, index, response_id), **status, **item}


_CUSTOM: Final = choose("type", "function", "custom")
"""The extra of a call of a custom tool."""
_CUSTOM_START: Final[Block] = {"type": "custom_tool_call"}


def _cite_in_text(text: TextContent, pages: Sequence[CitedPage]) -> TextContent:
    annotations = [
        {"type": "url_citation", "url": page.url, "title": page.title, **write_span(text.text, page)} for page in pages
    ]
    return replace(text, extra={PROTOCOL: {"annotations": annotations}})


def _read_search(content: NativeContent) -> Search | None:
    if content.block.get("type") != "web_search_call":
        return None
    action = object_of(content.block.get("action"))
    queries = action.get("queries")
    query = text_of(action.get("query")) or ", ".join(text for text in map(text_of, list_of(queries)) if text)
    if not query:
        return None  # a page was opened, not searched for
    found = [*objects_in(action.get("sources")), *objects_in(content.block.get("results"))]
    pages = (CitedPage(url, text_of(page.get("title")) or "") for page in found if (url := text_of(page.get("url"))))
    return Search(query, tuple(pages))


def _write_search(search: Search, block: Block) -> Block:
    # The same search may be made again: the block has the id that its provider gave to this one.
    name = sha256(encode_arguments(block).encode("utf-8", "replace"))
    action: Block = {
        "type": "search",
        "query": search.query,
        "sources": [{"type": "url", "url": page.url} for page in search.pages],
    }
    return {"id": f"ws_{name.hexdigest()[:32]}", "type": "web_search_call", "status": "completed", "action": action}


def _as_declared(call: ToolCall, tool: ToolDefinition) -> tuple[ToolCall, Block]:
    if not custom_names((tool,)):
        return call, EMPTY
    known = (call.extra or {}).get(PROTOCOL, EMPTY)
    formats = {**object_of(known.get(VERBATIM)), **_CUSTOM}
    text = free_text(call, has_grammar=object_of(data_of(tool.extra, PROTOCOL).get("format")).get("type") == "grammar")
    extra = {**(call.extra or {}), PROTOCOL: {**known, VERBATIM: formats}}
    return replace(call, arguments={"input": text}, arguments_text=None, extra=extra), _CUSTOM_START


def _removed(reply: Block) -> list[Block]:
    entries = map(object_of, list_of(reply.get(TRANSFORMATIONS)))
    return [entry for entry in entries if entry.get("type") == "reasoning" and entry.get("action") == "removed"]


def note_removed(reply: Block) -> tuple[Diagnostic, ...]:
    """Say which reasoning items the model did not get; empty if it got all of them, or the reply does not say."""
    if TRANSFORMATIONS not in reply:
        return ()
    return note_withheld(
        [{"id": str(entry.get("id")), "reason": str(entry.get("reason"))} for entry in _removed(reply)]
    )


def _find_withheld(reply: Block, body: Block) -> dict[str, str] | None:
    if not isinstance(reply.get(TRANSFORMATIONS), list):
        return None
    removed = _removed(reply)
    items = [item for item in map(object_of, list_of(body.get("input"))) if item.get("type") == "reasoning"]
    if len(removed) == len(items):  # in the order of the input, and clients may leave out the ids
        pairs = [*zip(items, removed, strict=True)]
    else:
        by_id = {item.get("id"): item for item in items if item.get("id")}
        pairs = [(by_id[entry.get("id")], entry) for entry in removed if entry.get("id") in by_id]
    found = ((decode_reasoning(item).thinking_signature, entry) for item, entry in pairs)
    return {signature: str(entry.get("reason")) for signature, entry in found if signature}


REPLY_FORM: Final = ReplyForm(
    id_prefix="resp_",
    refusals=("content_filter",),  # openai 3.49.0: IncompleteDetails
    is_refusal=lambda text: chosen(text.extra, PROTOCOL, "field", "text") == "refusal",
    cite_in_text=_cite_in_text,
    read_search=_read_search,
    write_search=_write_search,
    as_declared=_as_declared,
    withheld=_find_withheld,
)
