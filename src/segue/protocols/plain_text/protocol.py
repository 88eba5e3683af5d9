"""The record of the `plain-text` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_parts
from segue.protocols.kit.reply_form import ReplyForm

PROTOCOL: Final = Protocol(
    **read_parts(__package__),
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
