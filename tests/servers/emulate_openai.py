"""Wire formats of OpenAI's two protocols.

Facts this file rests on:
- Chat: the id and name of a call come with its first piece alone; usage comes last, in a chunk without choices;
  `[DONE]` ends it. Makers of reasoning models add `reasoning_content`. (openai 3.49.0, DeepSeek documentation; 2026-11)
- Responses: every event has a `sequence_number`; an item is added, grows, and is done; the whole reply stands in the
  last event; an error in mid-stream is an event of its own.                          (openai 3.49.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servers.emulate_replies import BUSY, ENCODED, PIECES, SIGNATURE, THINKING, TOOL, EmulatedReply, Frame, Wire


def openai_chat(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as chunks with a delta."""
    head: Wire = {"id": "chatcmpl-1", "created": 1_794_700_000, "model": "deepseek-v4"}
    usage: Wire = {
        "prompt_tokens": 125,
        "completion_tokens": 60,
        "total_tokens": 185,
        "prompt_tokens_details": {"cached_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }

    def chunk(delta: Wire, reason: str | None = None) -> Frame:
        choice: Wire = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return "", {**head, "object": "chat.completion.chunk", "choices": [choice], "usage": None}

    def growing(arguments: str) -> Frame:
        return chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})

    call: Wire = {"id": "call_1", "type": "function"}
    made: Wire = {**call, "function": {"name": TOOL, "arguments": ENCODED}}
    message: Wire = {
        "role": "assistant",
        "content": "".join(words),
        "refusal": None,
        "reasoning_content": "".join(THINKING),
        "tool_calls": [made],
    }
    choice: Wire = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    opened: Wire = {"index": 0, **call, "function": {"name": TOOL, "arguments": ""}}
    last: Wire = {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    return EmulatedReply(
        words=[
            chunk({"role": "assistant", "content": "", "refusal": None}),
            *(chunk({"reasoning_content": piece}) for piece in THINKING),
            *(chunk({"content": word}) for word in words),
        ],
        call=[
            chunk({"tool_calls": [opened]}),
            *map(growing, PIECES),
            chunk({}, "tool_calls"),
            ("", last),
            ("", "[DONE]"),
        ],
        whole={**head, "object": "chat.completion", "choices": [choice], "usage": usage},
        failing=("", {"error": {"message": "The server had an error.", "type": "server_error", "code": None}}),
        error={"error": {"message": BUSY, "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
    )


def openai_responses(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as items."""
    summary: Wire = {"type": "summary_text", "text": "".join(THINKING)}
    given: Wire = {"type": "output_text", "text": "".join(words), "annotations": [], "logprobs": []}
    thought: Wire = {"id": "rs_1", "type": "reasoning", "summary": [summary], "encrypted_content": SIGNATURE}
    message: Wire = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [given]}
    call: Wire = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": TOOL}
    made: Wire = {**call, "status": "completed", "arguments": ENCODED}
    usage: Wire = {
        "input_tokens": 125,
        "input_tokens_details": {"cached_tokens": 100},
        "output_tokens": 60,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 185,
    }
    head: Wire = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_794_700_000,
        "model": "gpt-5.4",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }
    begun: Wire = {**head, "status": "in_progress", "output": [], "usage": None}
    whole: Wire = {**head, "status": "completed", "output": [thought, message, made], "usage": usage}
    in_summary: Wire = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    in_text: Wire = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    in_call: Wire = {"item_id": "fc_1", "output_index": 2}
    emulated: list[tuple[str, Wire]] = [
        ("created", {"response": begun}),
        ("in_progress", {"response": begun}),
        ("output_item.added", {"output_index": 0, "item": {**thought, "summary": []}}),
        ("reasoning_summary_part.added", {**in_summary, "part": {"type": "summary_text", "text": ""}}),
        *(("reasoning_summary_text.delta", {**in_summary, "delta": piece}) for piece in THINKING),
        ("reasoning_summary_text.done", {**in_summary, "text": summary["text"]}),
        ("reasoning_summary_part.done", {**in_summary, "part": summary}),
        ("output_item.done", {"output_index": 0, "item": thought}),
        ("output_item.added", {"output_index": 1, "item": {**message, "status": "in_progress", "content": []}}),
        ("content_part.added", {**in_text, "part": {**given, "text": ""}}),
        *(("output_text.delta", {**in_text, "delta": word, "logprobs": []}) for word in words),
        ("output_text.done", {**in_text, "text": given["text"], "logprobs": []}),
        ("content_part.done", {**in_text, "part": given}),
        ("output_item.done", {"output_index": 1, "item": message}),
    ]
    calling: list[tuple[str, Wire]] = [
        ("output_item.added", {"output_index": 2, "item": {**call, "status": "in_progress", "arguments": ""}}),
        *(("function_call_arguments.delta", {**in_call, "delta": piece}) for piece in PIECES),
        ("function_call_arguments.done", {**in_call, "name": TOOL, "arguments": ENCODED}),
        ("output_item.done", {"output_index": 2, "item": made}),
        ("completed", {"response": whole}),
    ]
    failing: Wire = {"type": "error", "code": "server_error", "message": "The server had an error.", "param": None}
    return EmulatedReply(
        words=list(_numbered(emulated, 0)),
        call=list(_numbered(calling, len(emulated))),
        whole=whole,
        failing=("error", {**failing, "sequence_number": len(emulated)}),
        error={"error": {"message": BUSY, "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
    )


def _numbered(events: Sequence[tuple[str, Wire]], first: int) -> Iterator[Frame]:
    for number, (name, data) in enumerate(events, first):
        yield f"response.{name}", {"type": f"response.{name}", "sequence_number": number, **data}
