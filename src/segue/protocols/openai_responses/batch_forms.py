"""The batch files that take bodies of `openai-responses`.

It is imported without the rest of the folder, for batch files.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.families.batches import openai_forms

BATCH_FORMS: Final = openai_forms("/responses", xai="responses")
