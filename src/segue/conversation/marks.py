"""Marks: short digests by which signatures and other opaque blocks are recognized."""

from __future__ import annotations

import json
from binascii import b2a_base64
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from segue.conversation.content import ThinkingContent
from segue.conversation.messages import AssistantMessage

_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode
_STORED_BYTES: Final = 9
"""The length of a stored digest, before base64: 12 characters."""
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


@lru_cache(maxsize=64)  # the digest of a request is asked for with its reply, and again in the next request
def stored_digest(digest: bytes) -> str:
    """Give the form of a digest that is stored."""
    return b2a_base64(digest[:_STORED_BYTES], newline=False).translate(_URL_SAFE).decode()


def digest_value(value: object) -> str:
    """Give the digest of a JSON value. Key order does not count."""
    try:
        data = _ENCODE(value)
    except UnicodeEncodeError:  # half a surrogate pair
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return stored_digest(sha256(data).digest())


@lru_cache(maxsize=4096)
def mark_of(signature: str) -> str:
    """Give the mark of a block by its signature."""
    return stored_digest(sha256(signature.encode("utf-8", "surrogatepass")).digest())


def marks_of(message: AssistantMessage) -> tuple[str, ...]:
    """Give the marks of the signed thinking of a message, in order."""
    return tuple(
        [
            mark_of(piece.thinking_signature)
            for piece in message.content
            if type(piece) is ThinkingContent and piece.thinking_signature
        ]
    )


def signature_lengths(message: AssistantMessage) -> list[int]:
    """Give the lengths of the signatures that `marks_of` gives the marks of."""
    signatures = [piece.thinking_signature for piece in message.content if type(piece) is ThinkingContent]
    return [len(signature) for signature in signatures if signature]


def all_marks_of(message: AssistantMessage) -> list[str]:
    """Give the marks of everything in a message that only a provider can read: signatures and native blocks."""
    marks: list[str] = []
    for piece in message.content:
        match piece.kind:
            case "thinking":
                signature = piece.thinking_signature
            case "toolCall":
                signature = piece.thought_signature
            case "text":
                signature = piece.text_signature
            case "native":
                marks.append(digest_value(piece.block))
                continue
        if signature:
            marks.append(mark_of(signature))
    return marks
