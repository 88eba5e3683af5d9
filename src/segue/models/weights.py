"""Families of open models: what belongs to the weights and their chat template, whoever serves them.

A template refuses roles and orders, and a model without an encoder for images cannot read one, on every protocol that a
server offers. So these rows are read by all protocols, before the families of the protocol, which may correct them.
"""

from __future__ import annotations

from typing import Final

from segue.models.family import Family

WEIGHTS: Final[tuple[Family, ...]] = (
    Family(
        pattern=r"qwen|llama|gemma",
        # "No user query found in messages." (Qwen 3.5: dify #33152); Llama 3 ignores it (chat_templates #15)
        rules={"system_messages": "none", "instructions_alone": False},
        source="'System message must be at the beginning.' in their chat templates (Rapid-MLX #1543, 2026-08-06; a late"
        " system message of Claude Code at Ollama: ollama #17774)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"gemma-?[123](?!\d)",
        rules={"alternate": True, "first_user": True},
        source="'Conversation roles must alternate user/assistant/user/assistant/...' (vLLM: adk-python #1373,"
        " 2025-06-13; LM Studio: SillyTavern #4349, 2025-08-03)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"^glm-5\.2",
        rules={"refused_input": ["image"]},
        providers=("ollama",),  # where Z.ai or another host serves it, nothing was seen
        source="400, 'this model does not support image input' (ollama #17301, 2026-07-22)",
        read="2026-11-18",
    ),
)
