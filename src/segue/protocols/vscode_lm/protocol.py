"""The record of the `vscode-lm` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_parts
from segue.protocols.kit.reply_form import ReplyForm

PROTOCOL: Final = Protocol(
    **read_parts(__package__),
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
