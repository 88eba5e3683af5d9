"""Signatures of emulated models, and their verification.

A token names the model and the realm that it belongs to, and is bound to the text of the thinking, or the name and
arguments of the call. It is authenticated with the emulator's key, so that another emulator refuses it, as one endpoint
of a provider refuses the signatures of another.

How a protocol holds a token, and how it refuses one, is in its record (`SignatureForm`).

Facts:
- The text of Claude's thinking is for display since Claude 5: a changed one is accepted.           (probed, 2026-09)

What else Claude's thinking is bound to is checked in `binding`.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message
from segue.envelope.canonical import canonical_json, text_bytes
from segue.protocols.kit.facts import SignatureForm
from segue.protocols.kit.json_values import list_of
from segue.testing.emulator.claude import claude_of, hides_thinking

_MARK: Final = b"emu\x01"
_MAC_BYTES: Final = 24
_REALM_BYTES: Final = 8
_PLACEHOLDERS: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What Google documents for calls of other models."""
_ACCEPTED: Final = frozenset(_PLACEHOLDERS) | {b64encode(text.encode()).decode() for text in _PLACEHOLDERS}


@final
class Token(NamedTuple):
    """What a whole token says: the model, and a digest of the realm."""

    model: str
    realm: bytes


class Signer:
    """Signs and verifies for one emulator. Its repr has no key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "Signer()"

    def sign(
        self, content: Sequence[AssistantContent], form: SignatureForm, model: str, realm: str, number: int
    ) -> tuple[AssistantContent, ...]:
        """Sign the content of a reply as providers of this protocol do; `number` distinguishes replies."""
        if form.holder is None:
            return tuple(content)
        places = count()
        return _WRITERS[form.holder](
            tuple(content), lambda bound: self._token(model, bound, realm, (number << 16) + next(places))
        )

    def token(self, model: str, bound: bytes, realm: str = "") -> str:
        """Sign something else than reasoning, such as a summary."""
        return self._token(model, bound, realm, 0)

    def _token(self, model: str, bound: bytes, realm: str, number: int) -> str:
        name = text_bytes(model)
        head = _MARK + len(name).to_bytes(2, "big") + name + number.to_bytes(8, "big") + _realm_digest(realm)
        return b64encode(head + self._mac(head, _covered(model, bound))).decode()

    def _mac(self, head: bytes, bound: bytes) -> bytes:
        return hmac.digest(self._key, head + sha256(bound).digest(), "sha256")[:_MAC_BYTES]

    def read(self, token: str, bound: bytes) -> Token | None:
        """Read a token of this emulator; None if it is damaged, or made by another one or for other content."""
        try:
            data = b64decode(token.replace("-", "+").replace("_", "/"), validate=True)
        except ValueError:
            return None
        head, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
        size = int.from_bytes(head[4:6], "big")
        if head[:4] != _MARK or len(head) != 6 + size + 8 + _REALM_BYTES:
            return None
        model = head[6 : 6 + size].decode("utf-8", "surrogatepass")
        is_whole = hmac.compare_digest(mac, self._mac(head, _covered(model, bound)))
        return Token(model, head[-_REALM_BYTES:]) if is_whole else None

    def find_refusal(
        self, messages: Sequence[Message], form: SignatureForm, model: str, realm: str, *, withholds: bool = False
    ) -> str | None:
        """Return the provider's message about the first signature that is not valid; None if all are.

        A provider that `withholds` refuses only damaged ones.
        """
        if form.holder is None:
            return None
        for place, message in enumerate(messages):
            if message.role != "assistant":
                continue
            for at, (text, bound) in enumerate(_signatures(message, form)):
                if text is None:
                    continue
                token = self.read(text, bound)
                if token is not None and withholds:
                    continue
                if token is None or token.model != model:
                    return form.refusal.format(message=place, piece=at)
                if token.realm != _realm_digest(realm):
                    return (form.other_realm or form.refusal).format(message=place, piece=at)
        return None


def _realm_digest(realm: str) -> bytes:
    return sha256(text_bytes(realm)).digest()[:_REALM_BYTES]


def _covered(model: str, bound: bytes) -> bytes:
    """Return the bytes that a token of this model covers."""
    claude = claude_of(model)
    return b"" if claude is not None and hides_thinking(claude) else bound


def _bound(content: AssistantContent) -> bytes:
    match content.kind:
        case "thinking":
            return text_bytes(content.thinking)
        case "toolCall":
            return text_bytes(content.name) + b"\x00" + canonical_json(content.arguments)
        case "text":
            return b"text"
        case "native":
            return b""


# -- how each protocol holds a token -----------------------------------------------------------------------------------

_Sign = Callable[[bytes], str]


def _sign_thinking(content: tuple[AssistantContent, ...], sign: _Sign) -> tuple[AssistantContent, ...]:
    return tuple(
        replace(piece, thinking_signature=sign(_bound(piece))) if piece.kind == "thinking" else piece
        for piece in content
    )


def _sign_items(content: tuple[AssistantContent, ...], sign: _Sign) -> tuple[AssistantContent, ...]:
    """Sign reasoning items: the encrypted content is not bound to the summary, which may be empty."""
    return tuple(
        replace(
            piece,
            thinking_signature=msgspec.json.encode(
                {"id": "rs_" + sha256(text_bytes(sign(b"id"))).hexdigest()[:40], "encrypted_content": sign(b"item")}
            ).decode(),
        )
        if piece.kind == "thinking"
        else piece
        for piece in content
    )


def _sign_details(content: tuple[AssistantContent, ...], sign: _Sign) -> tuple[AssistantContent, ...]:
    places = count()

    def details(piece: ThinkingContent) -> str:
        form = {"format": "emulator-v1"}
        entries = [
            {"type": "reasoning.text", "text": piece.thinking, **form, "index": next(places)},
            {"type": "reasoning.encrypted", "data": sign(b"item"), "id": "rs_emu", **form, "index": next(places)},
        ]
        return msgspec.json.encode(entries).decode()

    return tuple(
        replace(piece, thinking_signature=details(piece)) if piece.kind == "thinking" else piece for piece in content
    )


def _sign_parts(content: tuple[AssistantContent, ...], sign: _Sign) -> tuple[AssistantContent, ...]:
    """Sign the first call, or the last text of a reply without calls."""
    calls = [at for at, piece in enumerate(content) if piece.kind == "toolCall"]
    texts = [at for at, piece in enumerate(content) if piece.kind == "text"]
    signed = list(content)
    if calls:
        call = cast("ToolCall", signed[calls[0]])
        signed[calls[0]] = replace(call, thought_signature=sign(_bound(call)))
    elif texts:
        piece = signed[texts[-1]]
        assert piece.kind == "text", "the place of a text"
        signed[texts[-1]] = replace(piece, text_signature=sign(_bound(piece)))
    return tuple(signed)


def _sign_thoughts(content: tuple[AssistantContent, ...], sign: _Sign) -> tuple[AssistantContent, ...]:
    """Sign thinking; a reply with calls always has some, if need be without a summary."""
    is_bare = not any(piece.kind == "thinking" for piece in content)
    if is_bare and any(piece.kind == "toolCall" for piece in content):
        content = (ThinkingContent(thinking=""), *content)
    return _sign_thinking(content, sign)


_WRITERS: Final[Mapping[str, Callable[[tuple[AssistantContent, ...], _Sign], tuple[AssistantContent, ...]]]] = {
    "thinking": _sign_thinking,
    "item": _sign_items,
    "details": _sign_details,
    "part": _sign_parts,
    "thought": _sign_thoughts,
}


def _signatures(message: AssistantMessage, form: SignatureForm) -> list[tuple[str | None, bytes]]:
    """Return the token of each piece of a turn, and what the token has to be bound to."""
    found: list[tuple[str | None, bytes]] = []
    for piece in message.content:
        match piece.kind:
            case "thinking":
                found += _thinking_tokens(piece, form)
            case "text":
                found.append((_unless_accepted(piece.text_signature, form), _bound(piece)))
            case "toolCall":
                found.append((_unless_accepted(piece.thought_signature, form), _bound(piece)))
            case "native":
                found.append((None, b""))
    return found


def tokens_of(message: AssistantMessage, form: SignatureForm) -> list[str | None]:
    """Return the token of each piece of a turn; None for a piece without one."""
    return [] if form.holder is None else [token for token, _ in _signatures(message, form)]


def _unless_accepted(token: str | None, form: SignatureForm) -> str | None:
    """Return the token of a text or a call; where only thinking is signed, their fields hold the ids of items."""
    return None if token in _ACCEPTED or form.holder != "part" else token


def _thinking_tokens(piece: ThinkingContent, form: SignatureForm) -> list[tuple[str | None, bytes]]:
    signature = piece.thinking_signature
    if form.holder == "thought":
        return [(None if signature in _ACCEPTED else signature, _bound(piece))]
    if form.holder == "thinking" or form.holder == "part":
        return [(signature, _bound(piece))]
    if form.holder == "details":
        return [(token, b"item") for token in _encrypted(signature)] or [(None, b"")]
    if signature is not None and signature.startswith("{"):
        with suppress(msgspec.DecodeError):
            signature = cast("dict[str, str]", msgspec.json.decode(signature)).get("encrypted_content")
    return [(signature, b"item")]


def _encrypted(signature: str | None) -> list[str]:
    """Return the encrypted entries of reasoning details."""
    try:
        entries = cast("object", msgspec.json.decode(signature or "null"))
    except msgspec.DecodeError:
        return []
    found: list[str] = []
    for entry in list_of(entries):
        if isinstance(entry, dict):
            data = cast("dict[str, object]", entry).get("data")
            if isinstance(data, str):
                found.append(data)
    return found
