"""What other models can read of parts that only this wire has.

Facts this file rests on:
- Code that the model ran and server tools it called stand in its turn, beside what came of them: `executableCode` and
  `codeExecutionResult`, `toolCall` and `toolResponse`. The latter is sealed or made for the eye.
                                                                    (google-genai 3.1.0; recorded traffic, 2026-11)
- Pictures and speech that the model made are `inlineData` in its turn.                     (google-genai 3.1.0)
- Calls written out as text make other models write such text instead of calling.   (vscode copilot api #171)

So what a program printed, what was transcribed and what was drawn can be read; calls and sealed things cannot.
"""

from __future__ import annotations

from segue.conversation.content import FallbackContent, NativeContent, TextContent
from segue.protocols.google_genai.media import MEDIA_FIELDS, decode_media
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.verbatim import Block, object_of, open_object


def decode_native(part: Block) -> NativeContent:
    """Keep a part as it was, with what can be read of it."""
    return NativeContent(protocol=PROTOCOL, block=part, fallback=fallback_of(part))


def fallback_of(part: Block) -> tuple[FallbackContent, ...]:
    """Give the readable side of a part; empty when it has none, or was a thought."""
    wire, _ = open_object(part)
    if wire.get("thought") is True:
        return ()
    for field in MEDIA_FIELDS:
        if field in wire:
            media = decode_media({field: wire[field]}, field, {})
            return () if media is None else (media,)
    if "functionCall" in wire or "toolCall" in wire:
        return ()
    given = wire.get("text")
    if given is None:
        given = object_of(wire.get("codeExecutionResult")).get("output")
    if given is None:
        given = object_of(wire.get("audioTranscription")).get("text")
    return (TextContent(text=given),) if isinstance(given, str) and given.strip() else ()
