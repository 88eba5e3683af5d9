"""Steps and contents that only this protocol has: what other models can read of them, and which belong together.

Facts this file rests on:
- A tool that Google runs is a call and a result, two steps of the model's turn; the result names the call by `call_id`.
  Both may be signed, and have to be returned unchanged.          (google-genai 3.1.0: StepParam; read 2026-11-17)
- The result of a search is a piece of HTML for display; what was found stands in the annotations of the answer.
                                                                                (google-genai 3.1.0: GoogleSearchResult)
- Calls written as text make other models write such text instead of calling.         (vscode copilot api #171)

So results that can be read have a fallback; calls and results without a text have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import FallbackContent, NativeContent, TextContent
from segue.protocols.google_interactions.content import decode_media
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.json_values import Block, is_object, kind_of, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import Pair, Replay, read_type
from segue.protocols.kit.sources import labelled, objects_in

_LABELS: Final[Mapping[str, str]] = {
    "code_execution_result": "output of executed code",
    "url_context_result": "pages read",
    "mcp_server_tool_result": "result of a server's tool",
    "retrieval_result": "documents found",
    "file_search_result": "documents found",
}


def native_step(step: Block) -> NativeContent:
    """Keep a step, or a content of the model, unchanged; with its fallback."""
    return NativeContent(protocol=PROTOCOL, block=step, fallback=_fallback(step))


def _fallback(step: Block) -> tuple[FallbackContent, ...]:
    media = decode_media(step)
    if media is not None:
        return (media,)
    kind = kind_of(step)
    if kind == "model_output":
        text = text_of(object_of(step.get("error")).get("message"))
        return (TextContent(text=text),) if text and text.strip() else ()
    if kind not in _LABELS:
        return ()
    result = step.get("result")
    lines = _lines(result)
    if not any(line.strip() for line in lines):
        return ()
    label = _LABELS[kind] + (": failed" if step.get("is_error") is True else "")
    return (TextContent(text=labelled(label, lines)),)


def _lines(result: object) -> list[str]:
    """Give what can be read of a result: a text, the texts of contents, addresses, or an object as JSON."""
    if isinstance(result, str):
        return [result.rstrip("\n")]
    if is_object(result):
        return [encode_arguments(result)] if result else []
    found: list[str] = []
    for entry in objects_in(result):
        url, text = text_of(entry.get("url")), text_of(entry.get("text"))
        if text is not None:
            found.append(text)
        elif url is not None:
            found.append(f"- {url} ({text_of(entry.get('status')) or 'read'})")
    return found


_SERVER_TOOLS: Final = (
    "code_execution",
    "google_search",
    "google_maps",
    "url_context",
    "file_search",
    "processing",
    "retrieval",
    "mcp_server_tool",
)

REPLAY: Final = Replay(
    read=read_type,
    # google-genai 3.1.0: `call_id` is "ID to match the ID from the function call block". Whether half a pair is refused
    # is not known; a turn that was cut may end with a call.                                              (2026-11-17)
    pairs=tuple(
        Pair(
            call=f"{tool}_call",
            results=(f"{tool}_result",),
            call_id="id",
            result_id=("call_id",),
            scope="run",
            call_alone=True,
        )
        for tool in _SERVER_TOOLS
    ),
    whole=frozenset({"image", "audio", "video", "document", "model_output"}),
    malformed=frozenset({"function_call", "function_result", "thought", "text", "user_input"}),
    stored=frozenset({"previous_interaction_id", "cached_content"}),
)
"""Calls of tools that Google runs, and their results."""
