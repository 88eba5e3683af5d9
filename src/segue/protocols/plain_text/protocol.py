"""The record of the `plain-text` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.plain_text.check import check
from segue.protocols.plain_text.clues import CLUES
from segue.protocols.plain_text.errors import decode_error
from segue.protocols.plain_text.request import decode_request, encode_request
from segue.protocols.plain_text.response import decode_response, encode_response
from segue.protocols.plain_text.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.plain_text.rules import PROTOCOL as NAME
from segue.protocols.plain_text.stream import stream_decoder


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - common signature
    return endpoint.dialect.path or ""  # no server uses this protocol: the caller decides what to do with the body


PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    framing="ndjson",
    path=_path,
    reply_form=ReplyForm(thinking=False),
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
        # the boundaries between the texts of a turn
        "pieces",
        "extra",
    },
    clues=CLUES,
    example=Model("any", "plain-text", NAME),
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="Plain text",
        summary="Roles and strings, for targets that accept nothing else; segue defines the JSON format.",
    ),
)
