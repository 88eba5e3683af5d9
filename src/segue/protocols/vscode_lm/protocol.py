"""The record of the `vscode-lm` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.vscode_lm.check import check
from segue.protocols.vscode_lm.clues import CLUES
from segue.protocols.vscode_lm.request import decode_request, encode_request
from segue.protocols.vscode_lm.response import decode_error, decode_response, encode_error, encode_response
from segue.protocols.vscode_lm.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.vscode_lm.rules import PROTOCOL as NAME
from segue.protocols.vscode_lm.stream import stream_decoder, stream_encoder

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
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    framing="ndjson",
    path=fixed_path(""),  # an API inside a process, without a URL: the caller passes the JSON on
    reply_form=ReplyForm(thinking=False),
    not_carried=NOT_IN_A_BODY
    | {
        # of results
        "is_error",
        "tool_name",  # read from the call
        # of content
        "text_signature",
        "thought_signature",
        "arguments_text",  # `input` is an object
        # of tools
        "strict",
    },
    example=Model("copilot", "vscode", "vscode-lm"),
    documentation=Documentation(
        title="VS Code language model API",
        link="https://code.visualstudio.com/api/extension-guides/ai/language-model",
        summary="An API inside a process; segue defines the JSON format.",
    ),
)
