"""The record of the `cohere-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.cohere_chat.check import check
from segue.protocols.cohere_chat.clues import CLUES
from segue.protocols.cohere_chat.request import decode_request, encode_request
from segue.protocols.cohere_chat.response import (
    MODEL_LIST,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.cohere_chat.routes import ROUTES
from segue.protocols.cohere_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.cohere_chat.rules import PROTOCOL as NAME
from segue.protocols.cohere_chat.stream import stream_decoder, stream_encoder
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint, JsonObject
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.request_fields import read_parameters

_PARAMETERS: Final = read_parameters(__package__)


def _sdk_arguments(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - common signature
    """Return the arguments of Cohere's client.

    `stream` is left out: the client has two methods. Unknown keys go to `additional_body_parameters`.
    """
    named = _PARAMETERS()
    arguments: dict[str, object] = {key: value for key, value in body.items() if key in named and key != "stream"}
    additional = {key: value for key, value in body.items() if key not in named}
    if additional:
        arguments["request_options"] = {"additional_body_parameters": additional}
    return arguments


_HELD_CONTENT: Final = HeldContent(
    keys={"conversation_id": "a stored conversation"}, history=frozenset({"conversation_id"})
)
"""cohere 7.3.1: a parameter of v1, which some clients still send."""

PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    clues=CLUES,
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    decode_error=decode_error,
    encode_error=encode_error,
    check=check,
    model_list=MODEL_LIST,
    routes=ROUTES,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    json_mode={"response_format": {"type": "json_object"}},  # cohere 7.3.1: JsonResponseFormatV2
    framing="sse",
    path=fixed_path("/v2/chat"),
    reply_form=ReplyForm(refusals=("ERROR_TOXIC",)),  # cohere 7.3.1: ChatFinishReason
    default_fields={
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "k": 0,
        "logprobs": False,
        "safety_mode": "CONTEXTUAL",
    },  # cohere 7.3.1: parameters of V2Client.chat
    not_carried=NOT_IN_A_BODY
    | {
        # of results: the wire has no field for these
        "is_error",
        "tool_name",
        # signatures: no field
        "text_signature",
        "thinking_signature",
        "redacted",
        "thought_signature",
        "strict",  # no field for a single tool
        "mime_type",  # of media with a URL only
        # the texts with calls are one `tool_plan` before the calls
        "pieces",
        "extra",
    },
    sdk_arguments=_sdk_arguments,
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools"})),),
    replay=CHAT_REPLAY,
    copies_arguments=True,
    example=Model("command-a-reasoning", "cohere", "cohere-chat", reasoning=True),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="Cohere Chat v2",
        link="https://docs.cohere.com/reference/chat",
        summary="`POST /v2/chat`. Text beside tool calls is a plan; thinking is a block of its own.",
    ),
)
