"""The batch files that take bodies of `mistral-chat`.

It is imported without the rest of the folder, for batch files.

Facts (read 2026-11-15):
- `{custom_id, body}`; 512 MB; 100,000 requests (another page says a million).           (mistralai 3.7.0; Batch guide)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.families.batches import read_http_result
from segue.protocols.kit.batch_form import MEGABYTE, BatchForm, Envelope

BATCH_FORMS: Final = (
    BatchForm(
        "mistral",
        frozenset({"mistral"}),
        Envelope(("custom_id",), ("body",), absent=frozenset({"url"})),
        read_http_result,
        requests=100_000,
        size=512 * MEGABYTE,
        recognised_by=frozenset({"messages"}),
    ),
)
