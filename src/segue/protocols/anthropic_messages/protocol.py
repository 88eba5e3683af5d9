"""The record of the `anthropic-messages` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.anthropic_messages.batch_forms import BATCH_FORMS
from segue.protocols.anthropic_messages.betas import needed_headers, write_tool_changes
from segue.protocols.anthropic_messages.check import check, check_options
from segue.protocols.anthropic_messages.clues import CLUES
from segue.protocols.anthropic_messages.errors import decode_error, encode_error
from segue.protocols.anthropic_messages.model_list import MODEL_LIST
from segue.protocols.anthropic_messages.native import REPLAY
from segue.protocols.anthropic_messages.prefix import PREFIX
from segue.protocols.anthropic_messages.reply_form import FORM
from segue.protocols.anthropic_messages.request import decode_request, encode_request
from segue.protocols.anthropic_messages.response import decode_response, encode_response
from segue.protocols.anthropic_messages.routes import ROUTES
from segue.protocols.anthropic_messages.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.anthropic_messages.rules import PROTOCOL as NAME
from segue.protocols.anthropic_messages.server_edits import SERVER_EDITS
from segue.protocols.anthropic_messages.server_tools import SERVER_TOOLS
from segue.protocols.anthropic_messages.sources import cited_sources
from segue.protocols.anthropic_messages.stream import stream_decoder
from segue.protocols.anthropic_messages.stream_writer import stream_encoder
from segue.protocols.anthropic_messages.transports import TRANSPORTS
from segue.protocols.anthropic_messages.versions import VERSIONS
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.token_count import TokenCount, only


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


def _count_path(endpoint: Endpoint) -> str:
    return f"{_path(endpoint, stream=False)}/count_tokens"


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
    server_tools=SERVER_TOOLS,
    cited_sources=cited_sources,
    framing="sse",
    path=_path,
    routes=ROUTES,
    transports=TRANSPORTS,
    reply_form=FORM,
    prefix=PREFIX,
    server_edits=SERVER_EDITS,
    needed_headers=needed_headers,
    tool_changes=write_tool_changes,
    model_list=MODEL_LIST,
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
    check_options=check_options,
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
    versions=VERSIONS,
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
    batch_forms=BATCH_FORMS,
    training_forms=(TrainingForm(keys=frozenset({"system", "messages", "tools"})),),
    signatures=SignatureForm(
        holder="thinking",
        refusal="messages.{message}.content.{piece}: Invalid `signature` in `thinking` block",  # recorded, 2026-11
        claude="messages",
    ),
    replay=REPLAY,
    copies_arguments=True,
    clues=CLUES,
    example=Model("claude-opus-4-8", "anthropic", NAME, reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="Anthropic Messages",
        link="https://docs.claude.com/en/api/messages",
        summary="`POST /v1/messages`. Messages hold lists of typed blocks; thinking is signed.",
    ),
)
