"""The record of the `ollama-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, only_arguments, read_samples
from segue.protocols.kit.replay import CHAT_REPLAY
from segue.protocols.ollama_chat.check import check
from segue.protocols.ollama_chat.clues import CLUES
from segue.protocols.ollama_chat.request import decode_request, encode_request
from segue.protocols.ollama_chat.response import (
    MODEL_LIST,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from segue.protocols.ollama_chat.routes import ROUTES
from segue.protocols.ollama_chat.rules import DIALECT, FAMILIES, PROVIDER, RULES
from segue.protocols.ollama_chat.rules import PROTOCOL as NAME
from segue.protocols.ollama_chat.stream import stream_decoder, stream_encoder

_CLIENT_ARGUMENTS: Final = frozenset(
    {
        "model",
        "messages",
        "tools",
        "stream",
        "think",
        "logprobs",
        "top_logprobs",
        "format",
        "options",
        "keep_alive",
    }
)
"""The arguments of `ollama.Client.chat` (ollama 0.6.3, read 2026-11-15)."""

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
    model_list=MODEL_LIST,
    routes=ROUTES,
    stream_encoder=stream_encoder,
    samples=read_samples(__package__),
    json_mode={"format": "json"},  # ollama 0.6.3: ChatRequest.format
    framing="ndjson",
    path=fixed_path("/api/chat"),
    not_carried=NOT_IN_A_BODY
    | {
        # of results
        "is_error",
        # signatures: no field
        "thinking_signature",
        "redacted",
        "text_signature",
        "thought_signature",
        # of content and tools
        "arguments_text",  # arguments are an object
        "mime_type",  # images are bare base64
        "strict",
        # of options: unset is written as false, because the server streams by default
        "stream",
        # the boundaries between the texts of a turn, and the position of images among them
        "pieces",
        "extra",
    },
    sdk_arguments=only_arguments("ollama", _CLIENT_ARGUMENTS),  # it drops ids and unknown schema keywords
    training_forms=(TrainingForm(keys=frozenset({"messages", "tools"})),),
    replay=CHAT_REPLAY,
    example=Model("qwen3-vl", "ollama", "ollama-chat", reasoning=True),
    documentation=Documentation(
        title="Ollama",
        link="https://docs.ollama.com/api/chat",
        summary="`POST /api/chat`. Each message has one string `content`; arguments of calls are objects.",
    ),
)
