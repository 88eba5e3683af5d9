"""The record of the `openai-responses` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.families.openai_errors import decode_error, write_error
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent, StoredForm
from segue.protocols.kit.model_lists import OPENAI_MODEL_LIST
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.request_fields import read_parameters
from segue.protocols.kit.token_count import TokenCount, below, only
from segue.protocols.openai_responses.batch_forms import BATCH_FORMS
from segue.protocols.openai_responses.check import check
from segue.protocols.openai_responses.clues import CLUES
from segue.protocols.openai_responses.content import REPLAY, cited_sources
from segue.protocols.openai_responses.options import NAMESPACES, SEARCHES, SERVER_EDITS, SERVER_TOOLS
from segue.protocols.openai_responses.request import decode_request, encode_request, items_of
from segue.protocols.openai_responses.response import (
    REPLY_FORM,
    decode_response,
    encode_response,
)
from segue.protocols.openai_responses.routes import ROUTES
from segue.protocols.openai_responses.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.openai_responses.rules import PROTOCOL as NAME
from segue.protocols.openai_responses.stream import stream_decoder
from segue.protocols.openai_responses.stream_writer import stream_encoder
from segue.protocols.openai_responses.turns import ITEM_IDS

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
        turns="output",
        as_turns=items_of,
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

_COUNTED: Final = frozenset(
    {
        *("conversation", "input", "instructions", "model", "parallel_tool_calls", "personality"),
        *("previous_response_id", "reasoning", "text", "tool_choice", "tools", "truncation"),
    }
)
"""What is counted (openai 3.49.0: responses/input_token_count_params; 2026-11-15)."""

_PATH: Final = fixed_path("/responses")

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
    item_ids=ITEM_IDS,
    namespaces=NAMESPACES,
    replay=REPLAY,
    reply_form=REPLY_FORM,
    routes=ROUTES,
    server_edits=SERVER_EDITS,
    server_tools=SERVER_TOOLS,
    searches=SEARCHES,
    cited_sources=cited_sources,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    json_mode={"text": {"format": {"type": "json_object"}}},  # openai 3.49.0: ResponseFormatJSONObject
    framing="sse",
    reads_apart=True,
    path=_PATH,
    model_list=OPENAI_MODEL_LIST,
    token_count=TokenCount(
        path=below(_PATH, "/input_tokens"),
        body=only(_COUNTED),
        field="input_tokens",
        beside={"object": "response.input_tokens"},
    ),
    default_fields={
        "background": False,
        "service_tier": "auto",
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "truncation": "disabled",
        "status": "completed",
    },  # openai 3.49.0; `background` and `status`, of items that return as they came, ask for nothing, by judgement
    not_carried=_NOT_CARRIED,
    sdk_parameters=read_parameters(__package__),
    forwarded_headers=("openai-beta",),
    # codex, opencode and pi return the encrypted content of reasoning items (run 2026-11)
    state_slots=StateSlots(thinking="plain", insert="thinking", is_ordered=True),
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
    copies_arguments=True,
    example=Model("gpt-5.4", "openai", "openai-responses", reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="OpenAI Responses",
        link="https://platform.openai.com/docs/api-reference/responses",
        summary="`POST /responses`. A list of items: messages, reasoning, calls and their outputs.",
    ),
)
