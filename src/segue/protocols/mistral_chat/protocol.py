"""The record of the `mistral-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, only_arguments, read_samples
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.kit.request_fields import read_parameters
from segue.protocols.mistral_chat.batch_forms import BATCH_FORMS
from segue.protocols.mistral_chat.check import check
from segue.protocols.mistral_chat.clues import CLUES
from segue.protocols.mistral_chat.options import SERVER_TOOLS
from segue.protocols.mistral_chat.request import decode_request, encode_request
from segue.protocols.mistral_chat.response import (
    MODEL_LIST,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.mistral_chat.routes import ROUTES
from segue.protocols.mistral_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.mistral_chat.rules import PROTOCOL as NAME
from segue.protocols.mistral_chat.stream import stream_decoder, stream_encoder

_HELD_CONTENT: Final = HeldContent(
    keys={"agent_id": "the instructions and tools of an agent", "conversation_id": "a stored conversation"},
    history=frozenset({"conversation_id"}),
    ids={"file_id": "a file", "library_ids": "documents of a library"},
    free=frozenset({"parameters", "schema"}),
)
"""mistralai 3.7.0: agents and conversations; FileChunk and DocumentLibraryTool."""

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
    batch_forms=BATCH_FORMS,
    model_list=MODEL_LIST,
    routes=ROUTES,
    server_tools=SERVER_TOOLS,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
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
