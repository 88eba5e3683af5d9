"""The record of the `ollama-chat` protocol; importing this module imports the whole folder."""

from __future__ import annotations

from typing import Final

from segue.models.model import Model
from segue.protocols.kit.codec import NOT_IN_A_BODY
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.kit.protocol import Documentation, Protocol, fixed_path, only_arguments, read_parts
from segue.protocols.kit.replay import CHAT_REPLAY

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
    **read_parts(__package__),
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
