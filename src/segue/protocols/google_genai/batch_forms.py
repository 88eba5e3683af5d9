"""The batch files that take bodies of `google-genai`.

It is imported without the rest of the folder, for batch files.

Facts (all read 2026-11-15):
- Gemini API: `{key, request}` in a file of at most 2 GB; the model is in the URL.  (google-genai 3.1.0; Batch guide)
- Vertex AI: `{request}` without an id; `request.labels` come back. A label has up to 63 small letters, digits, `-` and
  `_`.                                                                                   (Google Cloud documentation)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.families.batches import LABEL, read_gemini_result, read_vertex_result
from segue.protocols.kit.batch_form import MEGABYTE, PATH_KEYS, BatchForm, Envelope

BATCH_FORMS: Final = (
    BatchForm(
        "gemini",
        frozenset({"google"}),
        Envelope(
            ("key",), ("request",), other_ids=(("metadata", "key"), ("metadata",)), absent=frozenset({"custom_id"})
        ),
        read_gemini_result,
        size=2_000 * MEGABYTE,
        dropped=PATH_KEYS,
    ),
    BatchForm(
        "vertex",
        frozenset({"google-vertex"}),
        Envelope(("request", "labels", LABEL), ("request",), absent=frozenset({"custom_id", "key", "metadata"})),
        read_vertex_result,
        alphabet="a-z0-9_-",
        longest=63,
        dropped=PATH_KEYS,
    ),
)
