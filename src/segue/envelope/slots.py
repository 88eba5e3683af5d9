"""Where a reply of each protocol can hold an envelope, as data.

Facts this file relies on (clients of 2026-11; each was run):
- Anthropic: Claude Code, opencode and pi return the signature of thinking, redacted thinking, and thinking after text.
- Responses: codex, opencode and pi return the encrypted content of reasoning items.
- Google: clients return the signature of a call. gemini-cli drops all others, and the one of a call when a session is
  resumed; ids of calls survive. Google itself sends a signature on an empty text at the end of a reply.
- Chat: pi and the SDK return `reasoning_details`; every client returns the ids of calls.
- Ids of 65,000 characters survive in 15 of 16 clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, final

import msgspec


@final
class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of one protocol that hold an envelope.

    - `thinking`: how an envelope is written as the signature of thinking: as it is, or as an entry of details.
    - `call`, `text`: whether the signature of a call or a text may be an envelope.
    - `insert`: the content that is added where none of the reply's own has a field for it.
    - `is_ordered`: whether inserted content may stand before other content; otherwise it stands at the end.
    - `is_redacted`: whether inserted thinking is marked as redacted.
    - `prefix`: the first characters of the ids of calls.
    - `long_ids`: without a store, the id of a call is an envelope.
    """

    thinking: Literal["plain", "details"] | None = None
    call: bool = False
    text: bool = False
    insert: Literal["thinking", "text"] | None = None
    is_ordered: bool = False
    is_redacted: bool = False
    prefix: str = "call_"
    long_ids: bool = False


_NONE: Final = Slots()

_SLOTS: Final[Mapping[str, Slots]] = {
    "anthropic-messages": Slots(
        thinking="plain", insert="thinking", is_ordered=True, is_redacted=True, prefix="toolu_"
    ),
    "openai-responses": Slots(thinking="plain", insert="thinking", is_ordered=True),
    "google-genai": Slots(thinking="plain", call=True, text=True, insert="text", long_ids=True),
    "openai-chat": Slots(thinking="details", insert="thinking", long_ids=True),
    "bedrock-converse": Slots(
        thinking="plain", insert="thinking", is_ordered=True, is_redacted=True, prefix="tooluse_"
    ),
}


def find_slots(protocol: str) -> Slots:
    """Give the fields of a protocol; one without a row has none, and only the store has its state."""
    return _SLOTS.get(protocol, _NONE)


def write_signature(slots: Slots, envelope: str, name: str) -> str:
    """Write an envelope as the signature of thinking; `name` is unique in the reply."""
    if slots.thinking == "details":
        entry = {"type": "reasoning.encrypted", "data": envelope, "id": name, "format": "segue-envelope-v1"}
        return msgspec.json.encode([entry]).decode()
    return envelope
