"""The record of the `openai-responses` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent, StoredForm
from segue.protocols.kit.model_lists import OPENAI_MODEL_LIST
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.token_count import TokenCount, only
from segue.protocols.openai_responses.batch_forms import BATCH_FORMS
from segue.protocols.openai_responses.check import check
from segue.protocols.openai_responses.clues import CLUES
from segue.protocols.openai_responses.errors import decode_error, encode_error
from segue.protocols.openai_responses.namespaces import NAMESPACES
from segue.protocols.openai_responses.native import REPLAY
from segue.protocols.openai_responses.reply_form import FORM
from segue.protocols.openai_responses.request import decode_request, encode_request
from segue.protocols.openai_responses.response import decode_response, encode_response
from segue.protocols.openai_responses.routes import ROUTES
from segue.protocols.openai_responses.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.openai_responses.rules import PROTOCOL as NAME
from segue.protocols.openai_responses.server_edits import SERVER_EDITS
from segue.protocols.openai_responses.server_tools import SERVER_TOOLS
from segue.protocols.openai_responses.sources import cited_sources
from segue.protocols.openai_responses.stream import stream_decoder
from segue.protocols.openai_responses.stream_writer import stream_encoder

_NOT_CARRIED: Final = NOT_IN_A_BODY | {
    # An output has the id of its call, no tool name and no error flag.
    "tool_name",
    "is_error",
    # Reasoning may have no text; no field states why.
    "redacted",
    # Media with a URL or a file id have no type.
    "mime_type",
    # False and unset are both written as false.
    "strict",
    # Of several sources of the same media one is written: data, else the URL, else the file id.
    "url",
    "file_id",
    # Signatures of other protocols cannot be written.
    "text_signature",
    "thought_signature",
    # All items are in one list, which does not separate two turns of the same role.
    "turns",
}

_SDK_PARAMETERS: Final = frozenset(
    {
        "access_programs",
        "background",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
"""The arguments of `client.responses.create` (openai 3.49.0; read 2026-11-15)."""


def _path(endpoint: Endpoint, stream: bool) -> str:
    del stream  # a key of the body
    return endpoint.dialect.path or "/responses"


_HELD_CONTENT: Final = HeldContent(
    keys={
        "previous_response_id": "an earlier response and everything before it",
        "conversation": "a stored conversation",
        "prompt": "a stored prompt",
    },
    history=frozenset({"previous_response_id", "conversation"}),
    reply="previous_response_id",
    reply_flag="store",
    stored=StoredForm(
        noun="Response",
        fields=lambda made, previous: {"created_at": made, "store": True, "previous_response_id": previous},
        deleted=lambda name: {"id": name, "object": "response", "deleted": True},
    ),
    blocks={"item_reference": "a stored item", "image_generation_call": "a generated image"},
    ids={
        "file_id": "a file",
        "file_ids": "files",
        "container": "a container",
        "container_id": "a container",
        "vector_store_ids": "files of a vector store",
    },
    free=frozenset({"annotations", "parameters", "schema"}),
)
"""openai 3.49.0: response_create_params, ItemReference; an image call with its id alone was accepted (recorded); ids of
files in content, and of the tools file_search, code_interpreter and shell."""


def _count_path(endpoint: Endpoint) -> str:
    return f"{_path(endpoint, stream=False)}/input_tokens"


_COUNTED: Final = frozenset(
    {
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "personality",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    }
)
"""What is counted (openai 3.49.0: responses/input_token_count_params; 2026-11-15)."""

PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    server_tools=SERVER_TOOLS,
    namespaces=NAMESPACES,
    cited_sources=cited_sources,
    framing="sse",
    path=_path,
    routes=ROUTES,
    reply_form=FORM,
    server_edits=SERVER_EDITS,
    model_list=OPENAI_MODEL_LIST,
    token_count=TokenCount(
        path=_count_path, body=only(_COUNTED), field="input_tokens", beside={"object": "response.input_tokens"}
    ),
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
        "background": False,
        "service_tier": "auto",
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "truncation": "disabled",
        "status": "completed",
    },  # openai 3.49.0; `background` and `status`, of items that return as they came, ask for nothing, by judgement
    not_carried=_NOT_CARRIED,
    sdk_parameters=_SDK_PARAMETERS,
    forwarded_headers=("openai-beta",),
    # codex, opencode and pi return the encrypted content of reasoning items (run 2026-11)
    state_slots=StateSlots(thinking="plain", insert="thinking", is_ordered=True),
    batch_forms=BATCH_FORMS,
    # OpenAI fine-tuning guide, read 2026-11-15: chat messages, whatever protocol the model is used with
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools", "parallel_tool_calls"}), writer="openai-chat"),),
    signatures=SignatureForm(
        holder="item",
        refusal="The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or"
        " parsed.",
        valid_in="organization",
        other_realm="The encrypted content could not be verified. Reason: Encrypted content organization_id did not"
        " match the target organization.",
    ),  # recorded errors, 2026-02 to 2026-11
    replay=REPLAY,
    copies_arguments=True,
    clues=CLUES,
    example=Model("gpt-5.4", "openai", NAME, reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="OpenAI Responses",
        link="https://platform.openai.com/docs/api-reference/responses",
        summary="`POST /responses`. A list of items: messages, reasoning, calls and their outputs.",
    ),
)
