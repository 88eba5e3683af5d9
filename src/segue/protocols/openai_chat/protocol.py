"""The record of the `openai-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.families.openai_errors import decode_error, write_error
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.model_lists import OPENAI_MODEL_LIST
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.kit.request_fields import read_parameters
from segue.protocols.kit.token_count import TokenCount, below, only
from segue.protocols.openai_chat.batch_forms import BATCH_FORMS
from segue.protocols.openai_chat.check import check
from segue.protocols.openai_chat.clues import CLUES
from segue.protocols.openai_chat.content import cited_sources
from segue.protocols.openai_chat.request import decode_request, encode_request
from segue.protocols.openai_chat.response import (
    REPLY_FORM,
    decode_response,
    encode_response,
)
from segue.protocols.openai_chat.routes import ROUTES
from segue.protocols.openai_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.openai_chat.rules import PROTOCOL as NAME
from segue.protocols.openai_chat.server_tools import SERVER_TOOLS
from segue.protocols.openai_chat.stream import stream_decoder, stream_encoder

_HELD_CONTENT: Final = HeldContent(
    keys={
        "previous_response_id": "an earlier response and everything before it",
        "conversation_id": "a stored conversation",
        "context_id": "a stored context",
    },
    history=frozenset({"previous_response_id", "conversation_id", "context_id"}),
    blocks={"audio": "a spoken reply"},
    ids={"audio": "a spoken reply", "file_id": "a file"},
    free=frozenset({"parameters", "schema"}),
)
"""A request names earlier audio by its id (openai 3.49.0); the keys are those of vendors of this protocol (Volcengine:
`context_id` of its context API; Z.ai: `conversation_id`; 2026-11)."""

_COUNTED: Final = frozenset({"chat_template_kwargs", "messages", "model", "reasoning_format", "tool_choice", "tools"})
"""What is counted. For this protocol llama.cpp has such an endpoint, OpenAI has none (xllamacpp 2026.10, tried)."""

_PATH: Final = fixed_path("/chat/completions")

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
    encode_error=write_error,
    check=check,
    batch_forms=BATCH_FORMS,
    reply_form=REPLY_FORM,
    routes=ROUTES,
    server_tools=SERVER_TOOLS,
    cited_sources=cited_sources,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    cites_in_reply=True,
    json_mode={"response_format": {"type": "json_object"}},  # openai 3.49.0: ResponseFormatJSONObject
    framing="sse",
    reads_apart=True,
    usage_option=("stream_options", "include_usage"),
    path=_PATH,
    model_list=OPENAI_MODEL_LIST,
    token_count=TokenCount(path=below(_PATH, "/input_tokens"), body=only(_COUNTED), field="input_tokens"),
    default_fields={
        "n": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logprobs": False,
        "modalities": ["text"],
        "service_tier": "auto",
        "verbosity": "medium",
    },  # openai 3.49.0 for modalities, tier and verbosity; the others ask for nothing
    not_carried=NOT_IN_A_BODY
    | {
        # of results
        "is_error",
        "tool_name",
        # the signature of reasoning is the name of its field
        "thinking_signature",
        "redacted",
        # signatures: no field
        "text_signature",
        "thought_signature",
        "strict",  # where the provider does not accept it
        "mime_type",  # of media with a URL only
        # the boundaries between the texts of a turn or of a result, and their position among calls
        "pieces",
        "extra",
    },
    sdk_parameters=read_parameters(__package__),
    forwarded_headers=("openai-beta",),
    # pi and the SDK return `reasoning_details`; every client returns the ids of calls (run 2026-11)
    state_slots=StateSlots(thinking="details", insert="thinking", long_ids=True),
    # OpenAI, Together, Fireworks and Hugging Face: fine-tuning guides, read 2026-11-15
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools", "parallel_tool_calls"}), has_weights=True),),
    signatures=SignatureForm(
        holder="details",
        refusal="Invalid encrypted reasoning content in reasoning_details.",  # recorded, 2026-11
    ),
    replay=CHAT_REPLAY,
    copies_arguments=True,
    example=Model("gpt-5.2", "openai", "openai-chat", reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="OpenAI Chat Completions",
        link="https://platform.openai.com/docs/api-reference/chat",
        summary="`POST /chat/completions`. One list of messages; most vendors support this protocol.",
    ),
)
