"""The record of Cohere's v1 chat protocol."""

from __future__ import annotations

from typing import Final

from segue import Model
from segue.protocols import NOT_IN_A_BODY, Clues, Documentation, Endpoint, Protocol, read_samples
from segue.protocols.kit.reply_form import ReplyForm
from segue_cohere_v1.check import check
from segue_cohere_v1.request import decode_request, encode_request
from segue_cohere_v1.response import decode_error, decode_response, encode_response, stream_decoder
from segue_cohere_v1.rules import DIALECT, NAME, PROVIDER, RULES
from segue_cohere_v1.server import BATCH_FORMS, ROUTES, encode_error, stream_encoder


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - common signature
    return endpoint.dialect.path or "/v1/chat"


PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    framing="ndjson",  # cohere 7.3.1: "The default is `\\n` delimited events"
    path=_path,
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    stream_encoder=stream_encoder,
    decode_error=decode_error,
    encode_error=encode_error,
    routes=ROUTES,
    reply_form=ReplyForm(thinking=False, refused="ERROR_TOXIC"),
    batch_forms=BATCH_FORMS,
    check=check,
    not_carried=NOT_IN_A_BODY
    | {
        "id",  # calls have none
        "tool_call_id",
        "tool_name",
        "is_error",
        "arguments_text",  # parameters are an object
        "text_signature",
        "thought_signature",
        "strict",
        "pieces",  # a message is one string
        "extra",
    },
    clues=Clues(
        turns_key=None,  # the last turn is not in the history
        body_keys={"chat_history": 9, "preamble": 9, "tool_results": 9, "message": 9},
        tool_keys={"parameter_definitions": 9},
        reply_keys={"generation_id": 20},
    ),
    example=Model("command-r-08-2024", PROVIDER, NAME),
    samples=read_samples("segue_cohere_v1"),
    documentation=Documentation(
        title="Cohere Chat v1",
        link="https://docs.cohere.com/v1/reference/chat",
        summary="`POST /v1/chat`. One `message` beside a `chat_history`; calls have no ids.",
    ),
)
