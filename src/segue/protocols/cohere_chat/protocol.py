"""The `cohere-chat` wire as one record; importing it imports the folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.cohere_chat.check import check
from segue.protocols.cohere_chat.clues import CLUES
from segue.protocols.cohere_chat.errors import decode_error
from segue.protocols.cohere_chat.request import decode_request, encode_request
from segue.protocols.cohere_chat.response import decode_response, encode_response
from segue.protocols.cohere_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.cohere_chat.rules import PROTOCOL as NAME
from segue.protocols.cohere_chat.stream import stream_decoder
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint, JsonObject
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - the contract of every codec
    return endpoint.dialect.path or "/v2/chat"


_PARAMETERS: Final = frozenset(
    {
        "citation_options",
        "documents",
        "frequency_penalty",
        "k",
        "logprobs",
        "max_tokens",
        "messages",
        "model",
        "p",
        "presence_penalty",
        "priority",
        "response_format",
        "safety_mode",
        "seed",
        "stop_sequences",
        "strict_tools",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""What `chat` and `chat_stream` name as arguments (cohere 7.3.1; read 2026-11-15)."""


def _sdk_arguments(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - the same
    """Give the arguments of the client: whether to stream is the choice of its method, more goes in its own place."""
    arguments: dict[str, object] = {key: value for key, value in body.items() if key in _PARAMETERS}
    beyond = {key: value for key, value in body.items() if key not in _PARAMETERS and key != "stream"}
    if beyond:
        arguments["request_options"] = {"additional_body_parameters": beyond}
    return arguments


PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    framing="sse",
    path=_path,
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    decode_error=decode_error,
    check=check,
    not_carried=NOT_IN_A_BODY
    | {
        # what a result is for the application
        "is_error",
        "tool_name",
        # signatures have no field
        "text_signature",
        "thinking_signature",
        "redacted",
        "thought_signature",
        # nor for strictness of one tool; the type of what only has an address; what others would see
        "strict",
        "mime_type",
        # texts beside calls are one plan, and stand before the calls
        "pieces",
        "extra",
    },
    sdk_arguments=_sdk_arguments,
    clues=CLUES,
    example=Model("command-a-reasoning", "cohere", NAME, reasoning=True),
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="Cohere Chat v2",
        link="https://docs.cohere.com/reference/chat",
        summary="`POST /v2/chat`. Text beside tool calls is a plan; thinking is a block of its own.",
    ),
)
