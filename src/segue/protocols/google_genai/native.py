"""What other models can read of parts that only this protocol has.

Facts this file rests on:
- Code that the model ran and server tools that it called stand in its turn, beside their results: `executableCode` and
  `codeExecutionResult`, `toolCall` and `toolResponse`. The latter is encrypted or made for display.
                                                                    (google-genai 3.1.0; recorded traffic, 2026-11)
- Images and speech that the model made are `inlineData` in its turn.                       (google-genai 3.1.0)
- Calls written as text make other models write such text instead of calling.   (vscode copilot api #171)

So the output of a program, a transcript and an image have a fallback; calls and encrypted parts have none.
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import FallbackContent, NativeContent, TextContent
from segue.protocols.google_genai.keys import read_keys
from segue.protocols.google_genai.media import MEDIA_FIELDS, decode_media
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.server_results import describe_output
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.replay import Replay


def decode_native(part: Block) -> NativeContent:
    """Keep a part unchanged, with its fallback."""
    return NativeContent(protocol=PROTOCOL, block=part, fallback=fallback_of(part))


def fallback_of(part: Block) -> tuple[FallbackContent, ...]:
    """Give what can be read of a part; empty for a thought, or when there is nothing."""
    wire = read_keys(part)
    if wire.get("thought") is True:
        return ()
    for field in MEDIA_FIELDS:
        if field in wire:
            media = decode_media(wire, field)
            return () if media is None else (media,)
    if "functionCall" in wire or "toolCall" in wire:
        return ()
    text = wire.get("text")
    if text is None:
        text = describe_output(object_of(wire.get("codeExecutionResult")))
    if text is None:
        text = object_of(wire.get("audioTranscription")).get("text")
    return (TextContent(text=text),) if isinstance(text, str) and text.strip() else ()


_KINDS: Final = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def _read(part: Block) -> tuple[str, Block]:
    """Read the kind of a part: the key that holds its data."""
    wire = read_keys(part)
    kind = next((kind for kind in (*_KINDS, "functionCall", "functionResponse") if kind in wire), "")
    return kind, object_of(wire.get(kind))


REPLAY: Final = Replay(
    read=_read,
    # No refusal of a half is known: the API itself sends `executableCode` without a result, and several results for
    # one code.                                              (recorded traffic, 2026-11; vercel/ai #11485, 2026-07-16)
    whole=frozenset(_KINDS),
    malformed=frozenset({"functionCall", "functionResponse"}),
    forms=frozenset(  # recorded traffic, 2026-11: names in both styles, any form of base64
        {
            "fileData.file_uri:as",
            "fileData.mime_type:as",
            "functionResponse.response.return_value:as",
            "function_call:as",
            "function_response.response.return_value:as",
            "function_response:as",
            "inlineData.data:base64",
            "inline_data.data:base64",
            "inline_data.mime_type:as",
            "thought_signature:as",
        }
    ),
    stored=frozenset({"cachedContent"}),
)
