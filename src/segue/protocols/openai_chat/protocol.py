"""The record of the `openai-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.model_lists import OPENAI_MODEL_LIST
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.kit.token_count import TokenCount, only
from segue.protocols.openai_chat.batch_forms import BATCH_FORMS
from segue.protocols.openai_chat.check import check
from segue.protocols.openai_chat.clues import CLUES
from segue.protocols.openai_chat.errors import decode_error, encode_error
from segue.protocols.openai_chat.reply_form import FORM
from segue.protocols.openai_chat.request import decode_request, encode_request
from segue.protocols.openai_chat.response import decode_response, encode_response
from segue.protocols.openai_chat.routes import ROUTES
from segue.protocols.openai_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.openai_chat.rules import PROTOCOL as NAME
from segue.protocols.openai_chat.server_tools import SERVER_TOOLS
from segue.protocols.openai_chat.sources import cited_sources
from segue.protocols.openai_chat.stream import stream_decoder
from segue.protocols.openai_chat.stream_writer import stream_encoder


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - common signature
    return endpoint.dialect.path or "/chat/completions"


_SDK_PARAMETERS: Final = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""The arguments of `chat.completions.create` (openai 3.49.0; read 2026-11-15)."""

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


def _count_path(endpoint: Endpoint) -> str:
    return f"{_path(endpoint, stream=False)}/input_tokens"


_COUNTED: Final = frozenset({"chat_template_kwargs", "messages", "model", "reasoning_format", "tool_choice", "tools"})
"""What is counted. For this protocol llama.cpp has such an endpoint, OpenAI has none (xllamacpp 2026.10, tried)."""

PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    server_tools=SERVER_TOOLS,
    cited_sources=cited_sources,
    cites_in_reply=True,
    framing="sse",
    path=_path,
    routes=ROUTES,
    reply_form=FORM,
    model_list=OPENAI_MODEL_LIST,
    token_count=TokenCount(path=_count_path, body=only(_COUNTED), field="input_tokens"),
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    stream_encoder=stream_encoder,
    decode_error=decode_error,
    encode_error=encode_error,
    check=check,
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
    sdk_parameters=_SDK_PARAMETERS,
    forwarded_headers=("openai-beta",),
    # pi and the SDK return `reasoning_details`; every client returns the ids of calls (run 2026-11)
    state_slots=StateSlots(thinking="details", insert="thinking", long_ids=True),
    batch_forms=BATCH_FORMS,
    # OpenAI, Together, Fireworks and Hugging Face: fine-tuning guides, read 2026-11-15
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools", "parallel_tool_calls"}), has_weights=True),),
    signatures=SignatureForm(
        holder="details",
        refusal="Invalid encrypted reasoning content in reasoning_details.",  # recorded, 2026-11
    ),
    replay=CHAT_REPLAY,
    copies_arguments=True,
    clues=CLUES,
    example=Model("gpt-5.2", "openai", NAME, reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="OpenAI Chat Completions",
        link="https://platform.openai.com/docs/api-reference/chat",
        summary="`POST /chat/completions`. One list of messages; most vendors support this protocol.",
    ),
)
