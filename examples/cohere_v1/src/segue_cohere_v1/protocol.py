"""The record of Cohere's v1 chat protocol."""

from __future__ import annotations

from typing import Final

from segue import Model
from segue.protocols import NOT_IN_A_BODY, Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.reply_form import ReplyForm
from segue_cohere_v1.batch_forms import BATCH_FORMS
from segue_cohere_v1.check import check
from segue_cohere_v1.clues import CLUES
from segue_cohere_v1.errors import decode_error, encode_error
from segue_cohere_v1.request import decode_request, encode_request
from segue_cohere_v1.response import decode_response, encode_response
from segue_cohere_v1.routes import ROUTES
from segue_cohere_v1.rules import DIALECT, PROVIDER, RULES
from segue_cohere_v1.rules import PROTOCOL as NAME
from segue_cohere_v1.stream import stream_decoder
from segue_cohere_v1.stream_writer import stream_encoder

PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    clues=CLUES,
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    decode_error=decode_error,
    encode_error=encode_error,
    check=check,
    batch_forms=BATCH_FORMS,
    routes=ROUTES,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    framing="ndjson",  # cohere 7.3.1: "The default is `\\n` delimited events"
    path=fixed_path("/v1/chat"),
    reply_form=ReplyForm(thinking=False, refusals=("ERROR_TOXIC",)),
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
    example=Model("command-r-08-2024", "cohere", "cohere-v1"),
    documentation=Documentation(
        title="Cohere Chat v1",
        link="https://docs.cohere.com/v1/reference/chat",
        summary="`POST /v1/chat`. One `message` beside a `chat_history`; calls have no ids.",
    ),
)
