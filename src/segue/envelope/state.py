"""The state of one reply: what a client of another protocol cannot return, and what puts the reply together again.

A state has the origin of a reply (protocol, provider, model, endpoint) and its pieces. Thinking, signatures and native
blocks are in it whole. Texts and the arguments of calls are not: the client returns them, and the state has their
lengths and digests only, to find out whether the client changed them. So a store of states holds no conversation.

While a reply streams, only its first pieces are known. Such a state is partial: it has no `head` and no `count`. States
of one reply are joined by `merge_states`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, ToolCall
from segue.conversation.events import ToolCallStart
from segue.conversation.messages import AssistantMessage, Sent
from segue.envelope.canonical import canonical_json, text_bytes
from segue.models.model import Model


@final
class Piece(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One piece of content. Of a text and a call, what the client returns is left out of `content`.

    `size` and `digest` describe what was left out; `shown` is the id of a call as the client sees it, `name` its name
    where the client sees another one. A look-up, which the client never sees, is `searched`: in how many of the first
    messages of the conversation, and for how many tokens. It is whole.
    """

    index: int
    content: AssistantContent
    size: int = 0
    digest: bytes = b""
    shown: str = ""
    name: str = ""
    searched: tuple[int, int] | None = None


@final
class State(msgspec.Struct, frozen=True, kw_only=True, array_like=True, omit_defaults=True):
    """The state of a reply, or of its first pieces.

    `head` is the message without its content, `count` the number of its pieces; both are None while it streams. `sent`
    is what the reply was made after, as far as it is known while it streams; later it is in `head`.
    `shown` is a digest of the text that the client sees, where that is not the text of the reply.
    `endpoint` is the label of the base URL (`endpoint_label`), never the URL: that may hold credentials.
    """

    protocol: str
    provider: str
    model: str
    endpoint: str | None = None
    pieces: tuple[Piece, ...] = ()
    count: int | None = None
    head: AssistantMessage | None = None
    shown: bytes = b""
    sent: Sent | None = None

    @property
    def made_after(self) -> Sent | None:
        """What the reply was made after, as far as the state knows it."""
        return self.sent if self.head is None else self.head.sent

    @property
    def is_whole(self) -> bool:
        """Whether all pieces of the reply are known."""
        return self.count is not None and len(self.pieces) == self.count


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(State)
_DIGEST_BYTES: Final = 12
_LABEL: Final = "at:"
"""The first characters of a label; no URL begins with them."""
_LABEL_DIGITS: Final = 24
_PORTS: Final[Mapping[str, str]] = {"http": ":80", "https": ":443"}
"""The port of a scheme, which a URL may name or leave out."""


@lru_cache(maxsize=256)
def endpoint_label(base_url: str | None) -> str | None:
    """Return a label of a base URL that can be compared and reveals neither the address nor credentials.

    The label is a digest of scheme, host, port and path. User name, password, query and fragment are not part of it.
    None means the address that the provider has in the catalogue.
    """
    if base_url is None:
        return None
    scheme, _, rest = base_url.strip().partition("://")
    authority, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    scheme, host = scheme.lower(), authority.rpartition("@")[2].lower()
    host = host.removesuffix(_PORTS.get(scheme, "")) if scheme in _PORTS else host
    return _LABEL + sha256(text_bytes(f"{scheme}://{host}{slash}{path}".rstrip("/"))).hexdigest()[:_LABEL_DIGITS]


def digest_of(text: str) -> bytes:
    """Return a short digest of a text."""
    return sha256(text_bytes(text)).digest()[:_DIGEST_BYTES]


def arguments_digest(call: ToolCall) -> bytes:
    """Return a digest of a call's arguments that does not depend on the order of keys or on the form of numbers."""
    return sha256(canonical_json(call.arguments)).digest()[:_DIGEST_BYTES]


def make_piece(index: int, content: AssistantContent, shown: str = "") -> Piece:
    """Describe one piece of a reply; `shown` is the id of a call as the client sees it."""
    match content.kind:
        case "text":
            return Piece(index, replace(content, text=""), len(content.text), digest_of(content.text))
        case "toolCall":
            kept = replace(content, arguments={})
            return Piece(index, kept, 0, arguments_digest(content), shown)
        case "thinking" | "native":
            return Piece(index, content)


def begin_piece(event: ToolCallStart, shown_name: str) -> Piece:
    """Describe a call whose arguments are still to come: it has no digest, so whatever the client returns counts."""
    call = ToolCall(id=event.id, name=event.name)
    return Piece(event.index, call, name=shown_name if shown_name != event.name else "")


def make_state(model: Model, base_url: str | None, pieces: Iterable[Piece], sent: Sent | None = None) -> State:
    """Make a partial state; `sent` is what is known so far of what the reply is made after."""
    return State(
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
        endpoint=endpoint_label(base_url),
        pieces=tuple(pieces),
        sent=sent,
    )


def finish_state(
    message: AssistantMessage, base_url: str | None, pieces: Iterable[Piece], seen: AssistantMessage
) -> State:
    """Make the state of a complete reply; `seen` is the reply as the client sees it."""
    shown = b""
    if seen is not message and shown_text(seen) != shown_text(message):
        shown = digest_of(shown_text(seen))
        own = {index: piece for index, piece in enumerate(message.content) if piece.kind == "text"}
        pieces = [Piece(piece.index, own[piece.index]) if piece.index in own else piece for piece in pieces]
    return State(
        protocol=message.protocol,
        provider=message.provider,
        model=message.model,
        endpoint=endpoint_label(base_url),
        pieces=tuple(pieces),
        count=len(message.content),
        head=replace(message, content=()),
        shown=shown,
    )


def with_look_ups(state: State, look_ups: Sequence[tuple[int, ToolCall]], searched: tuple[int, int]) -> State:
    """Add the look-ups of a whole reply, with their places among all pieces, in order."""
    pieces = list(state.pieces)
    for place, call in look_ups:
        pieces.insert(place, Piece(place, call, searched=searched))
    pieces = [replace(piece, index=index) for index, piece in enumerate(pieces)]
    return replace(state, pieces=tuple(pieces), count=len(pieces))


def shown_text(message: AssistantMessage) -> str:
    """Return the characters of a message's text, without blanks: clients join and split texts."""
    return "".join(message.text().split())


def merge_states(states: Sequence[State]) -> State | None:
    """Join the states of one reply; None if there is none, or if they are of different replies."""
    if not states:
        return None
    first = states[0]
    for state in states:
        if state.is_whole:
            return state
        if (state.protocol, state.provider, state.model, state.endpoint) != _origin(first):
            return None
    # Calls whose arguments were still to come come first, so that what is known about them later replaces them.
    known = sorted((piece for state in states for piece in state.pieces), key=_is_finished)
    pieces = {piece.index: piece for piece in known}
    # The last one that was written knows most blocks of the reply.
    sent = max((state.sent for state in states if state.sent is not None), key=_count_blocks, default=None)
    return replace(first, pieces=tuple(pieces[index] for index in sorted(pieces)), sent=sent)


def _is_finished(piece: Piece) -> bool:
    return piece.content.kind != "toolCall" or bool(piece.digest)


def _count_blocks(sent: Sent) -> int:
    return len(sent.blocks)


def _origin(state: State) -> tuple[str, str, str, str | None]:
    return state.protocol, state.provider, state.model, state.endpoint


def has_opaque_data(content: AssistantContent) -> bool:
    """Whether a piece has data that only its model accepts and that a client of another protocol cannot return."""
    match content.kind:
        case "thinking":
            return content.thinking_signature is not None or content.redacted
        case "text":
            return content.text_signature is not None
        case "toolCall":
            return content.thought_signature is not None
        case "native":
            return True


def dump_state(state: State) -> bytes:
    """Write a state as bytes."""
    return _ENCODER.encode(state)


def load_state(data: bytes) -> State | None:
    """Read a state; None if this version cannot read the bytes.

    Earlier versions wrote the base URL where the label is now.
    """
    try:
        state = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if state.endpoint is None or state.endpoint.startswith(_LABEL):
        return state
    return replace(state, endpoint=endpoint_label(state.endpoint))
