"""The record of the `anthropic-messages` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.models.model import Model
from segue.protocols.anthropic_messages.batch_forms import BATCH_FORMS
from segue.protocols.anthropic_messages.check import check, check_options
from segue.protocols.anthropic_messages.clues import CLUES
from segue.protocols.anthropic_messages.native import REPLAY, cited_sources
from segue.protocols.anthropic_messages.options import (
    SEARCHES,
    SERVER_EDITS,
    SERVER_TOOLS,
    VERSIONS,
    needed_headers,
    tool_changes,
)
from segue.protocols.anthropic_messages.request import (
    PREFIX,
    TRANSPORTS,
    decode_request,
    encode_request,
    find_withheld,
)
from segue.protocols.anthropic_messages.response import (
    MODEL_LIST,
    REPLY_FORM,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.anthropic_messages.routes import ROUTES
from segue.protocols.anthropic_messages.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.anthropic_messages.rules import PROTOCOL as NAME
from segue.protocols.anthropic_messages.stream import stream_decoder, stream_encoder
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.token_count import TokenCount, below, only


def _path(endpoint: Endpoint, stream: bool) -> str:
    transport = TRANSPORTS.get(endpoint.dialect.transport or "")
    if endpoint.dialect.path is None and transport is not None:
        return transport.path(endpoint.model.id, stream=stream)
    return endpoint.dialect.path or "/v1/messages"


_HELD_CONTENT: Final = HeldContent(
    keys={"container": "the files of a container", "thread": "a stored thread"},
    history=frozenset({"thread"}),
    ids={"file_id": "a file"},
    free=frozenset({"input", "input_schema"}),
)
"""anthropic 2.8.0: `container` by its id (one of skills alone has none), `thread` of the beta types; `file_id` of the
sources of documents and images, and of uploads to a container."""

_COUNTED: Final = frozenset(
    {
        "cache_control",
        "compaction",
        "context_management",
        "mcp_servers",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""What is counted; `max_tokens` and the rest are refused (anthropic 2.8.0: message_count_tokens_params; 2026-11-15)."""

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
    check_options=check_options,
    batch_forms=BATCH_FORMS,
    needed_headers=needed_headers,
    tool_changes=tool_changes,
    model_list=MODEL_LIST,
    replay=REPLAY,
    prefix=PREFIX,
    reply_form=replace(REPLY_FORM, withheld=find_withheld),
    routes=ROUTES,
    server_edits=SERVER_EDITS,
    server_tools=SERVER_TOOLS,
    searches=SEARCHES,
    cited_sources=cited_sources,
    stream_encoder=stream_encoder,
    transports=TRANSPORTS,
    versions=VERSIONS,
    samples=read_samples(__package__),
    framing="sse",
    reads_apart=True,
    path=_path,
    token_count=TokenCount(path=below(_path, "/count_tokens"), body=only(_COUNTED), field="input_tokens"),
    not_carried=NOT_IN_A_BODY
    | {
        "tool_name",  # of a result: read from its call
        # of content
        "text_signature",
        "thought_signature",  # only thinking has a signature
        "arguments_text",  # `input` is an object
        "mime_type",  # of media with a URL or a file id
        # of tools
        "strict",  # where the provider does not accept it
        # of the prompt
        "options",  # levels become budgets or efforts, retention becomes cache marks, `max_tokens` is required
    },
    sdk_parameters=frozenset(
        {
            # anthropic 2.8.0, `messages.create`; temperature, top_p and top_k are no longer among them
            "cache_control",
            "container",
            "diagnostics",
            "inference_geo",
            "max_tokens",
            "messages",
            "metadata",
            "model",
            "output_config",
            "service_tier",
            "speed",
            "stop_sequences",
            "stream",
            "system",
            "thinking",
            "tool_choice",
            "tools",
        }
    ),
    forwarded_headers=("anthropic-beta",),
    # Claude Code, opencode and pi return the signature of thinking, redacted thinking, and thinking after text.
    # (run 2026-11)
    state_slots=StateSlots(thinking="plain", insert="thinking", is_ordered=True, is_redacted=True, prefix="toolu_"),
    training_forms=(TrainingForm(keys=frozenset({"system", "messages", "tools"})),),
    signatures=SignatureForm(
        holder="thinking",
        refusal="messages.{message}.content.{piece}: Invalid `signature` in `thinking` block",  # recorded, 2026-11
        claude="messages",
    ),
    copies_arguments=True,
    example=Model(
        "claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True, input=("text", "image", "document")
    ),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="Anthropic Messages",
        link="https://docs.claude.com/en/api/messages",
        summary="`POST /v1/messages`. Messages hold lists of typed blocks; thinking is signed.",
    ),
)
