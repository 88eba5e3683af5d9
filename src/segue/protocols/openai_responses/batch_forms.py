"""The batch files that take bodies of `openai-responses`."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.batch_form import openai_forms

BATCH_FORMS: Final = openai_forms("/responses", xai="responses")
