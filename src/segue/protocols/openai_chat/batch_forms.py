"""The batch files that take bodies of `openai-chat`."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.batch_form import openai_forms

BATCH_FORMS: Final = openai_forms("/chat/completions", xai="chat_get_completion")
