"""Plain text as one record; its folder is imported when it is first spoken."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.codec import NOT_IN_A_BODY, Codec, Endpoint
from segue.protocols.plain_text.check import check
from segue.protocols.plain_text.errors import decode_error
from segue.protocols.plain_text.request import decode_request, encode_request
from segue.protocols.plain_text.response import decode_response, encode_response
from segue.protocols.plain_text.rules import PROTOCOL, RULES
from segue.protocols.plain_text.stream import stream_decoder


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - the contract of every codec
    return endpoint.dialect.path or ""  # nobody serves it: where it goes is the caller's business


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
        # of content
        "text_signature",
        # where one text of a turn ends and the next begins
        "pieces",
        "extra",
    },
)
