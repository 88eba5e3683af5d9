"""The record of Cohere's v1 chat protocol."""

from __future__ import annotations

from typing import Final

from segue import Model
from segue.protocols import NOT_IN_A_BODY, Documentation, Protocol, fixed_path, read_parts
from segue.protocols.kit.reply_form import ReplyForm

PROTOCOL: Final = Protocol(
    **read_parts(__package__),
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
