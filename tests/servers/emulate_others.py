"""Wire formats of Mistral, Ollama, Cohere, VS Code and plain text.

Facts this file rests on:
- Mistral: thinking is a chunk of the content, text is a plain string; calls come whole; usage comes with the last
  chunk.                                                                             (mistralai 3.7.0, read 2026-11-15)
- Ollama: a line each; thinking beside the content; calls whole, arguments as an object; counts and the reason in the
  last line, which names no call.                                       (ollama server @fb30760; ollama 0.6.3, 2026-11)
- Cohere: content opens, grows and ends by its index; calls alike; the end carries the reason and the usage, or the
  error.                                                                                (cohere 7.3.1, read 2026-11-15)
- VS Code and plain text have no wire format: their JSON is ours, without thinking; plain text has no calls either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from servers.emulate_replies import ARGUMENTS, BUSY, ENCODED, PIECES, THINKING, TOOL, EmulatedReply, Frame, Wire


def mistral_chat(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as content chunks."""
    head: Wire = {"id": "cmpl-1", "created": 1_794_700_000, "model": "magistral-medium-latest"}
    usage: Wire = {"prompt_tokens": 125, "completion_tokens": 60, "total_tokens": 185}

    def chunk(delta: Wire, reason: str | None = None, **more: object) -> Frame:
        choice: Wire = {"index": 0, "delta": delta, "finish_reason": reason}
        return "", {**head, "object": "chat.completion.chunk", "choices": [choice], **more}

    def thinking(text: str) -> Wire:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    call: Wire = {"id": "callA0001", "type": "function", "function": {"name": TOOL, "arguments": ENCODED}, "index": 0}
    content: list[Wire] = [thinking("".join(THINKING)), {"type": "text", "text": "".join(words)}]
    message: Wire = {"role": "assistant", "content": content, "tool_calls": [call]}
    choice: Wire = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    failed: Wire = {"object": "error", "message": "Internal server error", "type": "internal_server_error"}
    return EmulatedReply(
        words=[
            chunk({"role": "assistant", "content": ""}),
            *(chunk({"content": [thinking(piece)]}) for piece in THINKING),
            *(chunk({"content": word}) for word in words),
        ],
        call=[chunk({"content": "", "tool_calls": [call]}, "tool_calls", usage=usage), ("", "[DONE]")],
        whole={**head, "object": "chat.completion", "choices": [choice], "usage": usage},
        failing=("", {**failed, "param": None, "code": "1000"}),
        error={"object": "error", "message": BUSY, "type": "rate_limited", "param": None, "code": "1300"},
    )


def ollama_chat(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as lines."""
    head: Wire = {"model": "qwen3", "created_at": "2026-11-15T05:00:00.000000Z"}
    counts: Wire = {
        "total_duration": 9_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": 125,
        "prompt_eval_duration": 2_000_000,
        "eval_count": 60,
        "eval_duration": 6_000_000,
    }
    ending: Wire = {"done": True, "done_reason": "stop", **counts}
    call: Wire = {"id": "call_1", "function": {"index": 0, "name": TOOL, "arguments": ARGUMENTS}}

    def line(**message: object) -> Frame:
        return "", {**head, "message": {"role": "assistant", "content": "", **message}, "done": False}

    given: Wire = {
        "role": "assistant",
        "content": "".join(words),
        "thinking": "".join(THINKING),
        "tool_calls": [call],
    }
    return EmulatedReply(
        words=[*(line(thinking=piece) for piece in THINKING), *(line(content=word) for word in words)],
        call=[
            line(tool_calls=[call]),
            ("", {**head, "message": {"role": "assistant", "content": ""}, **ending}),
        ],
        whole={**head, "message": given, **ending},
        failing=("", {"error": "an error was encountered while running the model"}),
        error={"error": BUSY},
    )


def cohere_chat(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as message events."""

    def event(kind: str, message: Wire, **more: object) -> Frame:
        return kind, {"type": kind, **more, "delta": {"message": message}}

    def content(index: int, start: Wire, deltas: Iterable[Wire]) -> list[Frame]:
        return [
            event("content-start", {"content": start}, index=index),
            *(event("content-delta", {"content": delta}, index=index) for delta in deltas),
            ("content-end", {"type": "content-end", "index": index}),
        ]

    usage: Wire = {
        "billed_units": {"input_tokens": 125.0, "output_tokens": 60.0},
        "tokens": {"input_tokens": 125.0, "output_tokens": 60.0},
    }
    call: Wire = {"id": "get_weather_1", "type": "function"}
    blocks: list[Wire] = [
        {"type": "thinking", "thinking": "".join(THINKING)},
        {"type": "text", "text": "".join(words)},
    ]
    made: Wire = {**call, "function": {"name": TOOL, "arguments": ENCODED}}
    opened: Wire = {**call, "function": {"name": TOOL, "arguments": ""}}
    begun: Wire = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    ending: Wire = {"finish_reason": "TOOL_CALL", "usage": usage}
    failing: Wire = {"finish_reason": "ERROR", "error": "The model failed.", "usage": usage}
    return EmulatedReply(
        words=[
            event("message-start", begun, id="c-1"),
            *content(0, {"type": "thinking", "thinking": ""}, ({"thinking": piece} for piece in THINKING)),
            *content(1, {"type": "text", "text": ""}, ({"text": word} for word in words)),
        ],
        call=[
            event("tool-call-start", {"tool_calls": opened}, index=0),
            *(
                event("tool-call-delta", {"tool_calls": {"function": {"arguments": piece}}}, index=0)
                for piece in PIECES
            ),
            ("tool-call-end", {"type": "tool-call-end", "index": 0}),
            ("message-end", {"type": "message-end", "id": "c-1", "delta": ending}),
        ],
        whole={
            "id": "c-1",
            "message": {"role": "assistant", "content": blocks, "tool_calls": [made]},
            "finish_reason": "TOOL_CALL",
            "usage": usage,
        },
        failing=("message-end", {"type": "message-end", "id": "c-1", "delta": failing}),
        error={"id": "e-1", "message": BUSY},
    )


def vscode_lm(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as response parts."""
    call: Wire = {"$": "toolCall", "callId": "call_1", "name": TOOL, "input": ARGUMENTS}
    return EmulatedReply(
        words=[("", {"$": "text", "value": word}) for word in words],
        call=[("", call)],
        whole={"role": "assistant", "content": [{"$": "text", "value": "".join(words)}, call]},
        failing=("", {"$": "error", "code": "Unknown", "message": "The model failed."}),
        error={"error": {"code": "Blocked", "message": BUSY}},
    )


def plain_text(words: Sequence[str]) -> EmulatedReply:
    """Encode the text only."""
    return EmulatedReply(
        words=[("", {"content": word}) for word in words],
        call=[],
        whole={"role": "assistant", "content": "".join(words)},
        failing=("", {"error": "The model failed."}),
        error={"error": BUSY},
    )
