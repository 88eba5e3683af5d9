"""The keys under which a store has the states of replies, computed from what a client sends.

A turn has several keys, from the strongest to the weakest:

- `call`: the id of a call that the gateway made up: 128 random bits.
- `signature`: a signature that the client got unchanged.
- `chain`: the conversation up to and including the turn, as the client sends it.
- `thought`: the readable thinking. Some clients send it as text after the user switched models.
- `near`: the turn and the message before it. It survives when a client shortens earlier messages.

`thought` and `near` count only where one state has the key. Every key contains the tenant. Neither call ids nor
signatures nor thinking nor instructions are part of `chain` and `near`: clients drop and change them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, TypeAlias, final

import msgspec

from segue.conversation.content import AnyContent
from segue.conversation.messages import AssistantMessage, Message
from segue.envelope.canonical import canonical_json, text_bytes

LEAST_THOUGHT: Final = 24
"""Characters of the shortest thinking that identifies a turn."""
_SEPARATOR: Final = b"\x1f"
_DIGEST: Final = (32).to_bytes(8, "big")
"""The length of a digest as `make_key` writes it."""
_BLANKS: Final = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
"""The ASCII characters at which `str.split` splits. To delete them takes a tenth of the time."""
START: Final = b"\x00" * 32
"""The digest of an empty conversation."""
Chain: TypeAlias = tuple[bytes, bytes]
"""The digests of a conversation and of its last message."""
START_OF_CHAIN: Final[Chain] = (START, START)
UNIQUE: Final = frozenset({"thought", "near"})
"""Kinds of keys that count only where one state has the key."""


@final
class TurnKeys(msgspec.Struct, frozen=True):
    """The keys of one assistant turn, the strongest first, and its place among the messages."""

    place: int
    keys: tuple[str, ...]


def make_key(kind: str, tenant: bytes, part: bytes) -> str:
    """Make a key of a kind."""
    given = b"".join((tenant, len(part).to_bytes(8, "big"), part))
    return f"{kind}:{sha256(given).hexdigest()[:40]}"


def kind_of(key: str) -> str:
    """Return the kind of a key."""
    return key.partition(":")[0]


def digest_message(message: Message) -> bytes:
    """Return a digest of what a message of the user or of a tool shows: texts and media."""
    if len(message.content) == 1:  # nearly all
        return sha256(message.role.encode() + _SEPARATOR + _shown(message.content[0])).digest()
    return sha256(_SEPARATOR.join([message.role.encode(), *map(_shown, message.content)])).digest()


def _shown(piece: AnyContent) -> bytes:
    match piece.kind:
        case "text":
            return text_bytes(piece.text.strip())
        case "toolCall":
            return text_bytes(piece.name) + _SEPARATOR + canonical_json(piece.arguments)
        case "image":
            return text_bytes(piece.data or piece.url or "")
        case "file":
            return text_bytes(piece.data or piece.url or piece.file_id or "")
        case "thinking" | "native":
            return b""


def digest_reply(message: AssistantMessage) -> bytes:
    """Return the digest of a reply: its text without blanks, because clients join and split texts, and its calls."""
    texts: list[str] = []
    calls: list[bytes] = []
    for piece in message.content:
        if piece.kind == "text":
            texts.append(piece.text)
        elif piece.kind == "toolCall":
            calls.append(_shown(piece))
    text = "".join(texts)
    shown = text.encode().translate(None, _BLANKS) if text.isascii() else text_bytes("".join(text.split()))
    return sha256(_SEPARATOR.join((shown, *calls)) if calls else shown).digest()


def keys_of_reply(
    before: Sequence[Message],
    reply: AssistantMessage,
    tenant: str = "",
    *,
    native: bool = False,
    after: Chain = START_OF_CHAIN,
) -> tuple[str, ...]:
    """Return the keys of a reply as the client sees it, after the messages `before` as the client sent them.

    `native`: the client got the signatures unchanged. `after`: the digests of what comes before `before`.
    """
    chain, last = extend_chain(after, before)
    return _keys(chain, last, reply, digest_reply(reply), text_bytes(tenant), native=native)


def extend_chain(chain: Chain, messages: Iterable[Message]) -> Chain:
    """Return the digests of a conversation and of its last message, after more messages."""
    for message in messages:
        if message.role != "system":
            own = digest_reply(message) if message.role == "assistant" else digest_message(message)
            chain = sha256(chain[0] + own).digest(), own
    return chain


def keys_of_turns(
    messages: Sequence[Message],
    tenant: str = "",
    *,
    after: Chain = START_OF_CHAIN,
    digested: tuple[Message, bytes] | None = None,
) -> tuple[list[TurnKeys], Chain]:
    """Return the keys of each assistant turn of a conversation as the client sent it, and the digests of all of it.

    `after`: the digests of what comes before it. `digested`: a message of the user with its digest, if that is known.
    """
    found: list[TurnKeys] = []
    chain, last = after
    name = text_bytes(tenant)
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role == "assistant":
            own = digest_reply(message)
            found.append(TurnKeys(index, _keys(chain, last, message, own, name, native=True)))
        elif digested is not None and message is digested[0]:
            own = digested[1]
        else:
            own = digest_message(message)
        chain, last = sha256(chain + own).digest(), own
    return found, (chain, last)


def _keys(
    chain: bytes, last: bytes, turn: AssistantMessage, own: bytes, tenant: bytes, *, native: bool
) -> tuple[str, ...]:
    """Return the keys of a turn; `own` is its digest."""
    calls: list[str] = []
    thoughts: list[str] = []
    for piece in turn.content:
        if piece.kind == "toolCall":
            if piece.id:
                calls.append(make_key("call", tenant, text_bytes(piece.id)))
        elif piece.kind != "native":
            text = plain_thought(piece.text if piece.kind == "text" else piece.thinking)
            if len(text) >= LEAST_THOUGHT:
                thoughts.append(make_key("thought", tenant, text_bytes(text)))
    given = signatures_of(turn) if native else ()
    signatures = [make_key("signature", tenant, text_bytes(each)) for each in given] if given else ()
    before, after = tenant + _DIGEST, _DIGEST + own  # keys of two parts
    chained = f"chain:{sha256(before + chain + after).hexdigest()[:40]}"
    near = f"near:{sha256(before + last + after).hexdigest()[:40]}"
    return (*calls, *signatures, chained, *thoughts, near)


def signatures_of(turn: AssistantMessage) -> list[str]:
    """Return the signatures of a turn."""
    signatures: list[str] = []
    for piece in turn.content:
        match piece.kind:
            case "thinking":
                found = piece.thinking_signature
            case "text":
                found = piece.text_signature
            case "toolCall":
                found = piece.thought_signature
            case "native":
                found = None
        if found and len(found) >= LEAST_THOUGHT:
            signatures.append(found)
    return signatures


def plain_thought(text: str) -> str:
    """Return thinking without surrounding blanks and without the tags that some clients put there."""
    text = text.strip()
    if not text.startswith("<"):
        return text
    for tag in ("thinking", "think", "thought", "reasoning"):
        opening, closing = f"<{tag}>", f"</{tag}>"
        if text.startswith(opening) and text.endswith(closing):
            return text[len(opening) : -len(closing)].strip()
    return text
