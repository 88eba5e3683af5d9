"""The record of the `google-interactions` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from segue.models.model import Model
from segue.protocols.google_interactions.check import check
from segue.protocols.google_interactions.clues import CLUES
from segue.protocols.google_interactions.errors import decode_error, encode_error
from segue.protocols.google_interactions.native import REPLAY
from segue.protocols.google_interactions.reply_form import FORM
from segue.protocols.google_interactions.request import decode_request, encode_request
from segue.protocols.google_interactions.response import decode_response, encode_response
from segue.protocols.google_interactions.routes import ROUTES
from segue.protocols.google_interactions.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.google_interactions.rules import PROTOCOL as NAME
from segue.protocols.google_interactions.server_tools import SERVER_TOOLS
from segue.protocols.google_interactions.sources import cited_sources
from segue.protocols.google_interactions.stream import stream_decoder
from segue.protocols.google_interactions.stream_writer import stream_encoder
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent, StoredForm
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples


def _path(endpoint: Endpoint, stream: bool) -> str:
    del stream  # a key of the body
    return endpoint.dialect.path or "/interactions"


def _stored_fields(made: int, previous: str | None) -> Mapping[str, object]:
    day = datetime.fromtimestamp(made, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    before = {} if previous is None else {"previous_interaction_id": previous}
    return {"created": day, "updated": day, **before}


_HELD_CONTENT: Final = HeldContent(
    keys={
        "previous_interaction_id": "an earlier interaction and everything before it",
        "cached_content": "a cached prompt: turns, instructions and tools",
    },
    values={"continuation_token": "a reply that was cut", "environment": "files and state of a sandbox"},
    history=frozenset({"previous_interaction_id", "cached_content"}),
    reply="previous_interaction_id",
    stored=StoredForm(
        noun="Interaction",
        fields=_stored_fields,
        deleted=lambda _: {},
        input_flag="include_input",
        turns="steps",
    ),
    per_model=frozenset({"cached_content", "continuation_token"}),
    ids={
        "environment_id": "files and state of a sandbox",
        "file_search_store_names": "files of a store",
        "rag_corpus": "a corpus",
    },
    free=frozenset({"annotations", "arguments", "parameters", "result", "schema"}),
)
"""google-genai 3.1.0: CreateModelInteractionParam, Interaction, Empty; read 2026-11-17."""

_SDK_PARAMETERS: Final = frozenset(
    {
        "agent",
        "agent_config",
        "background",
        "cached_content",
        "continuation_token",
        "environment",
        "generation_config",
        "input",
        "labels",
        "model",
        "previous_interaction_id",
        "response_format",
        "response_mime_type",
        "response_modalities",
        "safety_settings",
        "service_tier",
        "store",
        "stream",
        "system_instruction",
        "tools",
        "webhook_config",
    }
)
"""The arguments of `client.interactions.create` (google-genai 3.1.0; read 2026-11-17)."""


PROTOCOL: Final = Protocol(
    name=NAME,
    provider=PROVIDER,
    rules=RULES,
    dialect=DIALECT,
    families=FAMILIES,
    server_tools=SERVER_TOOLS,
    cited_sources=cited_sources,
    framing="sse",
    path=_path,
    routes=ROUTES,
    reply_form=FORM,
    encode_request=encode_request,
    decode_request=decode_request,
    encode_response=encode_response,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    stream_encoder=stream_encoder,
    decode_error=decode_error,
    encode_error=encode_error,
    check=check,
    # google-genai 3.1.0; by judgement: values that ask for no more than their absence
    default_fields={"background": False, "service_tier": "standard"},
    not_carried=NOT_IN_A_BODY
    | {
        "tool_name",  # of a result: that of its call is written
        "pieces",  # of the system prompt: it is one text
        "turns",  # all steps are in one list, which does not separate two turns of the same role
        # of content
        "redacted",  # a redacted thought is a thought without a summary
        "arguments_text",  # `arguments` is an object
        "text_signature",  # only thoughts have signatures
        "thought_signature",
        "name",  # only a video has one
        "mime_type",  # a class of types is written as the type of the content alone
        # of several sources of the same media one is written: data, else the URL, else the file id
        "url",
        "file_id",
        # of tools
        "strict",  # no such field
        # of the prompt
        "options",  # budgets become levels
    },
    sdk_parameters=_SDK_PARAMETERS,
    # Clients return thoughts unchanged: without them the next request is refused (see `rules`).
    state_slots=StateSlots(thinking="plain", insert="thinking", is_ordered=True),
    # Vertex AI documentation: tuning, read 2026-11-16: contents, whatever protocol the model is used with
    training_forms=(TrainingForm(keys=frozenset({"systemInstruction", "contents", "tools"}), writer="google-genai"),),
    signatures=SignatureForm(holder="thought", refusal="Invalid thought signature.", valid_in="endpoint"),
    replay=REPLAY,
    copies_arguments=True,
    clues=CLUES,
    example=Model("gemini-3.5-flash", "google", NAME, reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="Google Interactions (Gemini API)",
        link="https://ai.google.dev/gemini-api/docs/interactions",
        summary="`POST /interactions`. A list of steps: inputs, thoughts, calls and their results, outputs.",
    ),
)
