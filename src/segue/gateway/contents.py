"""What requests and replies say, as the store keeps it for the console: only if `state.content` is set."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final, final

import msgspec

from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage
from segue.conversation.stored import dump, dump_message
from segue.foundation.json_text import encode_json
from segue.foundation.redaction import Place, hide_texts

_FAST: Final = 1
_MOST_BYTES: Final = 4_000_000
"""Bytes of a body that are kept as they came."""
_IN_CONTENT: Final = (
    "type id name tool_use_id status source.type source.media_type cache_control.type cache_control.ttl"
    " content.*.type content.*.source.type content.*.source.media_type content.*.tool_name"
    " toolUse.name toolUse.toolUseId toolResult.toolUseId toolResult.status text.type"
)
_IN_PART: Final = (
    "functionCall.name functionCall.id functionResponse.name functionResponse.id inlineData.mimeType fileData.mimeType"
    " executableCode.language codeExecutionResult.outcome"
    " function_call.name function_response.name inline_data.mime_type"
)
_IN_MESSAGE: Final = (
    "role type id status call_id tool_call_id name tool_calls.*.id tool_calls.*.type tool_calls.*.function.name"
    " function_call.name toolCallId toolName model provider protocol responseModel responseId stopReason rawStopReason"
)
_IN_TOOL: Final = (
    "name type function.name cache_control.type strict functionDeclarations.*.name function_declarations.*.name"
    " toolSpec.name server_label"
)
_AT_TOP: Final = (
    "model object id type service_tier tool_choice tool_choice.type tool_choice.name tool_choice.function.name"
    " thinking.type thinking.display reasoning.effort reasoning.summary reasoning_effort output_config.effort"
    " response_format.type text.format.type text.verbosity verbosity truncation modalities.* include.*"
    " anthropic_version anthropic_beta.* previous_response_id toolConfig.functionCallingConfig.mode"
    " toolConfig.toolChoice.tool.name generationConfig.responseMimeType generationConfig.thinkingConfig.thinkingLevel"
    " safetySettings.*.category safetySettings.*.threshold system.*.type system.*.cache_control.type stop_reason"
)


def _places() -> frozenset[Place]:
    """List where bodies of all protocols, and a message of segue, have their own words, and names and ids."""
    messages = {
        *_IN_MESSAGE.split(),
        *(f"content.*.{place}" for place in _IN_CONTENT.split()),
        *(f"parts.*.{place}" for place in _IN_PART.split()),
    }
    named = {
        *_AT_TOP.split(),
        *messages,  # the reply
        *(f"{key}.*.{place}" for key in ("messages", "input", "contents") for place in messages),
        *(f"tools.*.{place}" for place in _IN_TOOL.split()),
        *(f"toolConfig.tools.*.{place}" for place in _IN_TOOL.split()),
    }
    return frozenset(tuple(place.split(".")) for place in named)


_PLACES: Final = _places()
"""Where a redacted body keeps its texts: by the place, because a field of the same name may be the user's elsewhere."""


@final
class KeptExchange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request and its reply.

    - `received`: the body of the client. `sent`: that of the last request to a provider.
    - `context`, `options`: the history with all of its states, and the options, in segue's own form.
    - `reply`: the message of the model. `redacted`: texts are replaced by their lengths.
    - `received_bytes`, `reply_bytes`: the bodies of the client and of the provider as they came, unless redacted.
    """

    received: msgspec.Raw = msgspec.Raw(b"null")
    sent: msgspec.Raw = msgspec.Raw(b"null")
    context: msgspec.Raw = msgspec.Raw(b"null")
    options: Options = Options()
    reply: msgspec.Raw = msgspec.Raw(b"null")
    redacted: bool = False
    received_bytes: bytes = b""
    reply_bytes: bytes = b""


_DECODER: Final = msgspec.json.Decoder(KeptExchange)


def dump_content(
    *,
    received: Mapping[str, object] | None,
    sent: bytes | None,
    context: Context,
    options: Options,
    reply: AssistantMessage | None,
    is_redacted: bool,
    received_bytes: bytes = b"",
    reply_bytes: bytes = b"",
) -> bytes:
    """Write a request and its reply; compressed, because agents send their whole history each time."""
    content = KeptExchange(
        received=_raw(encode_json(received), is_redacted=is_redacted),
        sent=_raw(sent or b"null", is_redacted=is_redacted),
        context=_raw(b"null" if is_redacted else dump(context), is_redacted=False),
        options=Options() if is_redacted else options,
        reply=_raw(b"null" if reply is None else dump_message(reply), is_redacted=is_redacted),
        redacted=is_redacted,
        received_bytes=b"" if is_redacted else received_bytes[:_MOST_BYTES],
        reply_bytes=b"" if is_redacted else reply_bytes[:_MOST_BYTES],
    )
    return zlib.compress(encode_json(content), _FAST)


def load_content(data: bytes) -> KeptExchange:
    """Read what `dump_content` wrote."""
    return _DECODER.decode(zlib.decompress(data))


def is_missing(part: msgspec.Raw) -> bool:
    """Whether a part of a content is not there; `Raw` is equal to no bytes."""
    return bytes(part) == b"null"


def _raw(data: bytes, *, is_redacted: bool) -> msgspec.Raw:
    return msgspec.Raw(encode_json(hide_texts(msgspec.json.decode(data), _PLACES)) if is_redacted else data)
