"""The VS Code language model API as one record; its folder is imported when it is first spoken."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.codec import NOT_IN_A_BODY, Codec, Endpoint
from segue.protocols.vscode_lm.check import check
from segue.protocols.vscode_lm.errors import decode_error
from segue.protocols.vscode_lm.request import decode_request, encode_request
from segue.protocols.vscode_lm.response import decode_response, encode_response
from segue.protocols.vscode_lm.rules import PROTOCOL, RULES
from segue.protocols.vscode_lm.stream import stream_decoder


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - the contract of every codec
    return endpoint.dialect.path or ""  # it is called in a process: how the JSON gets there is the caller's business


CODEC: Final = Codec(
    name=PROTOCOL,
    rules=RULES,
    framing="ndjson",
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
        # of results
        "is_error",
        "tool_name",  # read from the call
        # of content
        "text_signature",
        "thought_signature",
        "arguments_text",  # input is an object here
        # of tools
        "strict",
    },
)
