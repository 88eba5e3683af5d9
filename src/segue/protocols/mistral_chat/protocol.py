"""The record of the `mistral-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.errors import EncodeError
from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint, JsonObject
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.kit.held_content import HeldContent
from segue.protocols.kit.protocol import Documentation, Protocol, read_samples
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.mistral_chat.batch_forms import BATCH_FORMS
from segue.protocols.mistral_chat.check import check
from segue.protocols.mistral_chat.clues import CLUES
from segue.protocols.mistral_chat.errors import decode_error, encode_error
from segue.protocols.mistral_chat.model_list import MODEL_LIST
from segue.protocols.mistral_chat.request import decode_request, encode_request
from segue.protocols.mistral_chat.response import decode_response, encode_response
from segue.protocols.mistral_chat.routes import ROUTES
from segue.protocols.mistral_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.mistral_chat.rules import PROTOCOL as NAME
from segue.protocols.mistral_chat.server_tools import SERVER_TOOLS
from segue.protocols.mistral_chat.stream import stream_decoder
from segue.protocols.mistral_chat.stream_writer import stream_encoder


def _path(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - common signature
    return endpoint.dialect.path or "/v1/chat/completions"


_PARAMETERS: Final = frozenset(
    {
        "frequency_penalty",
        "guardrails",
        "logprobs",
        "max_tokens",
        "messages",
        "metadata",
        "min_tokens",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_logprobs",
        "prompt_mode",
        "random_seed",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "safe_prompt",
        "service_tier",
        "stop",
        "stream",
        "temperature",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "top_prompt_logprobs",
    }
)
"""The arguments of `chat.complete` and `chat.stream` (mistralai 3.7.0; read 2026-11-15)."""


def _sdk_arguments(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - common signature
    """Give the arguments of Mistral's client, which are the keys of the body.

    Raises:
        EncodeError: the body has a key that the client has no argument for.
    """
    for key in body:
        if key not in _PARAMETERS:
            raise EncodeError(f"the mistralai client has no argument {key!r}; send the body itself", path=(key,))
    return dict(body)


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
    server_tools=SERVER_TOOLS,
    framing="sse",
    path=_path,
    routes=ROUTES,
    model_list=MODEL_LIST,
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
    sdk_arguments=_sdk_arguments,
    batch_forms=BATCH_FORMS,
    # README of mistral-finetune, read 2026-11-16
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools", "parallel_tool_calls"}), has_weights=True),),
    replay=CHAT_REPLAY,
    copies_arguments=True,
    clues=CLUES,
    example=Model("mistral-large-4", "mistral", NAME, reasoning=True, input=("text", "image", "document")),
    held_content=_HELD_CONTENT,
    samples=read_samples(__package__ or ""),
    documentation=Documentation(
        title="Mistral Chat",
        link="https://docs.mistral.ai/api/endpoint/chat",
        summary="`POST /v1/chat/completions`, with chunks of its own: thinking, documents, references.",
    ),
)
