"""What every protocol offers: the same functions and data, in one frozen record.

A protocol is a folder with the same file names in each: `rules`, `content` (blocks both ways), `request`, `response`,
`stream`, `check`, `errors`, `options`; a missing file means that it has no such thing. Its `codec` puts them together:
`CODEC = Codec(...)`. It is imported when someone wants to speak, so that rules alone stay cheap.

Codecs never lose and never look at an origin. Wire blocks they do not know become `NativeContent`; keys they do not
know go to `extra[protocol]`; how something was spelt goes to `extra[protocol]["shape"]`. Neutral content that the wire
has no word for raises `EncodeError` with its path: making it fit is projection's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import Path
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.rules import Rules
from segue.protocols.kit.streaming import StreamDecoder

Framing: TypeAlias = Literal["sse", "ndjson", "aws-event-stream", "none"]
JsonObject: TypeAlias = Mapping[str, object]


NOT_IN_A_BODY: Final = frozenset(
    {
        # of messages: a body holds the conversation, not how it came about
        "protocol",
        "provider",
        "model",
        "response_model",
        "response_id",
        "usage",
        "stop_reason",
        "raw_stop_reason",
        "error_message",
        "diagnostics",
        "timestamp",
        "details",  # what a result is for the application
        "fallback",  # of a native block: read from it
    }
)
"""What no request of any wire tells; each codec's `not_carried` adds what its own cannot."""


@final
class Endpoint(msgspec.Struct, frozen=True):
    """Who is spoken to: the model, what it can carry and how it spells things, all resolved."""

    model: Model
    rules: Rules
    dialect: Dialect


@final
class WireError(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider's error body says, as it says it; `classify` reads it."""

    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str = ""


@final
class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in a wire body that the provider would refuse; `path` leads to it in that body."""

    code: str
    path: Path
    message: str


@final
class Codec(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol's functions.

    - `path(endpoint, stream)`: where a request goes below the base URL.
    - `encode_request(prompt, endpoint)`: the body; what `decode_request` read comes out as it was.
    - `decode_request(body, endpoint)`: a body, or its bare list of messages, read.
    - `encode_response(message, endpoint)` / `decode_response(body, endpoint, tool_names)`: a whole reply, both ways.
    - `stream_decoder(endpoint, tool_names)`: a streamed reply, frame by frame.
    - `decode_error(body, status)`: an error body, or the error object of a stream.
    - `check(body, endpoint)`: what the provider would refuse.
    - `not_carried`: what a body cannot tell, by the names of fields of the neutral types; `turns` where it cannot tell
      one turn from the next of the same role, `pieces` where it joins the texts of a turn.
    - `headers`: what every request of this wire carries besides its key.
    - `turns_key`: the key of a body under which its turns stand.
    - `affects_later(message)`: whether what is written later depends on this message; nothing does on most wires.
    - `sdk_parameters`: what the provider's own client names as arguments; the rest goes under `extra_body`.
    - `sdk_arguments(body, endpoint)`: for clients that take a request in another form than its body: bytes, a `config`.
    """

    name: str
    rules: Rules
    framing: Framing
    path: Callable[[Endpoint, bool], str]
    encode_request: Callable[[Prompt, Endpoint], dict[str, object]]
    decode_request: Callable[[JsonObject | Sequence[object], Endpoint], Prompt]
    encode_response: Callable[[AssistantMessage, Endpoint], dict[str, object]]
    decode_response: Callable[[JsonObject, Endpoint, Mapping[str, str]], AssistantMessage]
    stream_decoder: Callable[[Endpoint, Mapping[str, str]], StreamDecoder]
    decode_error: Callable[[object, int | None], WireError]
    check: Callable[[JsonObject, Endpoint], list[Violation]]
    not_carried: frozenset[str]
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    turns_key: str = "messages"
    affects_later: Callable[[Message], bool] | None = None
    sdk_parameters: frozenset[str] = frozenset()
    sdk_arguments: Callable[[JsonObject, Endpoint], dict[str, object]] | None = None
