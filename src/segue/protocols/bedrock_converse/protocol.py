"""The record of the `bedrock-converse` protocol; importing this module imports the whole folder."""

from __future__ import annotations

import re
from typing import Final

from segue.foundation.quoting import quote_segment
from segue.models.model import Model
from segue.protocols.bedrock_converse.batch_forms import BATCH_FORMS
from segue.protocols.bedrock_converse.check import check, check_options
from segue.protocols.bedrock_converse.clues import CLUES
from segue.protocols.bedrock_converse.native import REPLAY, cite_in_text, cited_sources, names_documents
from segue.protocols.bedrock_converse.options import SERVER_TOOLS
from segue.protocols.bedrock_converse.request import PREFIX, decode_request, encode_request, find_withheld
from segue.protocols.bedrock_converse.response import (
    MODEL_LIST,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.bedrock_converse.routes import ROUTES
from segue.protocols.bedrock_converse.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.bedrock_converse.rules import PROTOCOL as NAME
from segue.protocols.bedrock_converse.sdk import sdk_arguments
from segue.protocols.bedrock_converse.stream import stream_decoder, stream_encoder
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint, JsonObject
from segue.protocols.kit.facts import SignatureForm, StateSlots, TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.token_count import TokenCount


def _path(endpoint: Endpoint, stream: bool) -> str:
    """Return the path with the quoted model id: ids have colons, ARNs slashes (botocore 1.44.0; recorded, 2026-11)."""
    if endpoint.dialect.path is not None:
        return endpoint.dialect.path
    return f"/model/{quote_segment(endpoint.model.id)}/{'converse-stream' if stream else 'converse'}"


_HELD_CONTENT: Final = HeldContent(
    keys={"modelId": "a stored prompt"},
    values={"promptVariables": "a stored prompt"},
    per_model=frozenset({"promptVariables"}),
    model_pattern=r":prompt/",
    free=frozenset({"input", "inputSchema", "json"}),
)
"""botocore 1.44.0: `modelId` may be the ARN of a prompt of Prompt management, which `promptVariables` fill in."""

_PROFILE: Final = re.compile(r"^(?:us|us-gov|eu|apac|jp|au|ca|sa|global)\.(?=\w+\.)")


def _count_path(endpoint: Endpoint) -> str:
    """Return the path. An inference profile (`us.anthropic...`) is refused, its model counted (recorded, 2026-11)."""
    return f"/model/{quote_segment(_PROFILE.sub('', endpoint.model.id))}/count-tokens"


_COUNTED: Final = frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"})
"""What is counted (botocore 1.44.0: ConverseTokensRequest; 2026-11-15)."""


def _count_body(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - common signature
    return {"input": {"converse": {key: value for key, value in body.items() if key in _COUNTED}}}


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
    model_list=MODEL_LIST,
    replay=REPLAY,
    prefix=PREFIX,
    routes=ROUTES,
    sdk_arguments=sdk_arguments,
    server_tools=SERVER_TOOLS,
    cited_sources=cited_sources,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    framing="aws-event-stream",
    path=_path,
    reply_form=ReplyForm(
        # botocore 1.44.0: StopReason, CitationLocation
        refusals=("content_filtered", "guardrail_intervened"),
        cite_in_text=cite_in_text,
        withheld=find_withheld,
    ),
    token_count=TokenCount(path=_count_path, body=_count_body, field="inputTokens", inside=("input", "converse")),
    default_fields={"serviceTier": {"type": "default"}},  # it asks for nothing, by judgement; botocore has no default
    not_carried=NOT_IN_A_BODY
    | {
        "tool_name",  # of a result: read from its call
        "is_error",  # where the model accepts no status
        # of content
        "text_signature",
        "thought_signature",  # only reasoning has a signature
        "thinking_signature",  # where the model does not accept it
        "arguments_text",  # `input` is an object
        "mime_type",  # of media whose type has several MIME names
        "name",  # of a file: changed to a valid and unique name; names of tools and calls are written unchanged
        # of tools
        "strict",  # where the model does not accept it
        # of the prompt
        "system_prompt",  # a text and a list of one text have the same wire format
        "options",  # levels become budgets or efforts, retention becomes cache points
        "stream",  # part of the URL
    },
    affects_later=names_documents,
    # As at Anthropic, whose thinking this protocol has.
    state_slots=StateSlots(thinking="plain", insert="thinking", is_ordered=True, is_redacted=True, prefix="tooluse_"),
    training_forms=(
        # Anthropic cookbook: fine-tuning on Bedrock, read 2026-11-16: `system` and `messages`, no other key; user and
        # assistant take turns, and a content is text.
        TrainingForm(
            keys=frozenset({"system", "messages"}),
            writer="anthropic-messages",
            ids="claude",
            rules={"alternate": True, "reasoning_replay": "none"},
        ),
        TrainingForm(keys=frozenset({"system", "messages", "toolConfig"})),
    ),
    signatures=SignatureForm(
        holder="thinking",
        refusal="messages.{message}.content.{piece}: Invalid `signature` in `thinking` block",  # recorded, 2026-11
        claude="converse",
    ),
    copies_arguments=True,
    example=Model(
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "amazon-bedrock",
        "bedrock-converse",
        reasoning=True,
        input=("text", "image", "document"),
    ),
    held_content=_HELD_CONTENT,
    documentation=Documentation(
        title="Amazon Bedrock Converse",
        link="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
        summary="`POST /model/{id}/converse`. A block is an object with one key that names its type.",
    ),
)
