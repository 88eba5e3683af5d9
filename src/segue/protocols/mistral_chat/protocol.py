"""The record of the `mistral-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, only_arguments, read_parts
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.kit.request_fields import read_parameters

_HELD_CONTENT: Final = HeldContent(
    keys={"agent_id": "the instructions and tools of an agent", "conversation_id": "a stored conversation"},
    history=frozenset({"conversation_id"}),
    ids={"file_id": "a file", "library_ids": "documents of a library"},
    free=frozenset({"parameters", "schema"}),
)
"""mistralai 3.7.0: agents and conversations; FileChunk and DocumentLibraryTool."""

PROTOCOL: Final = Protocol(
    **read_parts(__package__),
    json_mode={"response_format": {"type": "json_object"}},  # mistralai 3.7.0: ResponseFormats
    framing="sse",
    path=fixed_path("/v1/chat/completions"),
    default_fields={
        "n": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "response_format": {"type": "text"},
        "safe_prompt": False,
    },  # mistralai 3.7.0 for the format; the others ask for nothing
    not_carried=NOT_IN_A_BODY
    | {
        # of results
        "is_error",
        "tool_name",
        # signatures: no field
        "text_signature",
        "thought_signature",
        "redacted",
        "mime_type",  # of audio, and of media with a URL or a file id only
        # the position of calls among the texts of a turn
        "pieces",
        "extra",
    },
    sdk_arguments=only_arguments("mistralai", read_parameters(__package__)),
    # README of mistral-finetune, read 2026-11-16
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools", "parallel_tool_calls"}), has_weights=True),),
    replay=CHAT_REPLAY,
    copies_arguments=True,
    example=Model("mistral-large-4", "mistral", "mistral-chat", reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="Mistral Chat",
        link="https://docs.mistral.ai/api/endpoint/chat",
        summary="`POST /v1/chat/completions`, with chunks of its own: thinking, documents, references.",
    ),
)
