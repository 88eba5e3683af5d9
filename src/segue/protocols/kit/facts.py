"""Small records of facts about a protocol that the parts around the codecs read: gateway, training files, emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, final

import msgspec


@final
class StateSlots(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a reply in which clients return what they do not understand, so that they can hold an envelope.

    - `thinking`: how an envelope is written as the signature of thinking: as it is, or as an entry of details.
    - `call`, `text`: whether the signature of a call or a text may be an envelope.
    - `insert`: the content that is added where none of the reply's own has a field for it.
    - `is_ordered`: whether inserted content may come before other content; otherwise it is at the end.
    - `is_redacted`: whether inserted thinking is marked as redacted.
    - `prefix`: the first characters of the ids of calls.
    - `long_ids`: without a store, the id of a call is an envelope. Ids of 65,000 characters survive in 15 of 16 clients
      (run 2026-11).

    The default has no such field: only the store of a gateway has the state of a reply.
    """

    thinking: Literal["plain", "details"] | None = None
    call: bool = False
    text: bool = False
    insert: Literal["thinking", "text"] | None = None
    is_ordered: bool = False
    is_redacted: bool = False
    prefix: str = "call_"
    long_ids: bool = False


ClaudeWire: TypeAlias = Literal["messages", "converse"]
"""How a request to a Claude model is written: as Anthropic has it, or as Bedrock's Converse has it."""


@final
class SignatureForm(msgspec.Struct, frozen=True, kw_only=True):
    """How providers sign the reasoning of their replies, for the emulator. The default signs nothing.

    - `holder`: what is signed: the thinking itself, a reasoning item, an entry of `reasoning_details`, or the first
      call or last text of a reply; `thought`: the thinking, which every reply with calls has.
    - `refusal`: how a signature is refused that is not valid; `{message}` and `{piece}` are its place.
    - `valid_in`: what a signature is bound to: the caller's organization, or one of the provider's endpoints.
    - `other_realm`: how a valid signature of another organization or endpoint is refused, if in other words.
    - `claude`: how requests to Claude models are written; None: providers of this protocol do not check their prefix.
    - `asks_for_thinking(body)`: whether a request asks to see thinking; None: a reply has what there is.
    """

    holder: Literal["thinking", "item", "details", "part", "thought"] | None = None
    refusal: str = ""
    valid_in: Literal["organization", "endpoint"] | None = None
    other_realm: str | None = None
    claude: ClaudeWire | None = None
    asks_for_thinking: Callable[[Mapping[str, object]], bool] | None = None


@final
class SearchForm(msgspec.Struct, frozen=True, kw_only=True):
    """What searches of the provider leave in a reply, for the emulator.

    - `blocks`: the blocks of one search; `{}` in a value is its number.
    - `count(fields, searches)`: says how many there were in a body, or in the frame of a stream with a place for it.
    """

    blocks: tuple[Mapping[str, object], ...] = ()
    count: Callable[[dict[str, object], int], None] | None = None


@final
class TrainingForm(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a training file: the keys that it has, and whether its messages have weights.

    `writer` is the protocol that writes the line, if it is another one; `ids` is a pattern of the ids of the models
    that have this form; `rules` are those of its turns that requests of the writing protocol do not have.
    """

    keys: frozenset[str] = frozenset({"system", "messages", "tools"})
    writer: str | None = None
    ids: str = ""
    has_weights: bool = False
    rules: Mapping[str, object] = {}


NO_SLOTS: Final = StateSlots()
NO_SIGNATURES: Final = SignatureForm()
