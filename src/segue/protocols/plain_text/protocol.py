"""The record of the `plain-text` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.plain_text.check import check
from segue.protocols.plain_text.clues import CLUES
from segue.protocols.plain_text.request import decode_request, encode_request
from segue.protocols.plain_text.response import decode_error, decode_response, encode_response
from segue.protocols.plain_text.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.plain_text.rules import PROTOCOL as NAME
from segue.protocols.plain_text.stream import stream_decoder

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
    check=check,
    samples=read_samples(__package__),
    framing="ndjson",
    path=fixed_path(""),  # no server uses this protocol: the caller decides what to do with the body
    reply_form=ReplyForm(thinking=False),
    not_carried=NOT_IN_A_BODY
    | {
        # of content
        "text_signature",
        # the boundaries between the texts of a turn
        "pieces",
        "extra",
    },
    example=Model("any", "plain-text", "plain-text"),
    documentation=Documentation(
        title="Plain text",
        summary="Roles and strings, for targets that accept nothing else; segue defines the JSON format.",
    ),
)
