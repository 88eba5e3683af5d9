"""The record of the `google-interactions` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from segue.models.model import Model
from segue.protocols.google_interactions.check import check
from segue.protocols.google_interactions.clues import CLUES
from segue.protocols.google_interactions.content import REPLAY, cited_sources
from segue.protocols.google_interactions.options import SERVER_TOOLS
from segue.protocols.google_interactions.request import decode_request, encode_request, steps_of
from segue.protocols.google_interactions.response import (
    REPLY_FORM,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.google_interactions.routes import ROUTES
from segue.protocols.google_interactions.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.google_interactions.rules import PROTOCOL as NAME
from segue.protocols.google_interactions.stream import stream_decoder, stream_encoder
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent, StoredForm
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, read_samples
from segue.protocols.kit.request_fields import read_parameters


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
        turns="steps",
        as_turns=steps_of,
        input_flag="include_input",
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
    replay=REPLAY,
    reply_form=REPLY_FORM,
    routes=ROUTES,
    server_tools=SERVER_TOOLS,
    cited_sources=cited_sources,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    framing="sse",
    path=fixed_path("/interactions"),
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
    sdk_parameters=read_parameters(__package__),
    # Clients return thoughts unchanged: without them the next request is refused (see `rules`).
    state_slots=StateSlots(thinking="plain", insert="thinking", is_ordered=True),
    # Vertex AI documentation: tuning, read 2026-11-16: contents, whatever protocol the model is used with
    training_forms=(TrainingForm(keys=frozenset({"systemInstruction", "contents", "tools"}), writer="google-genai"),),
    signatures=SignatureForm(holder="thought", refusal="Invalid thought signature.", valid_in="endpoint"),
    copies_arguments=True,
    example=Model(
        "gemini-3.5-flash", "google", "google-interactions", reasoning=True, input=("text", "image", "document")
    ),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="Google Interactions (Gemini API)",
        link="https://ai.google.dev/gemini-api/docs/interactions",
        summary="`POST /interactions`. A list of steps: inputs, thoughts, calls and their results, outputs.",
    ),
)
