"""Batch files of Cohere's v1 chat endpoint.

Facts this file rests on, all of cohere 7.3.1, read 2026-11-15:
- A batch reads a data set of the type `batch-chat-input`. The keys of its lines are not documented in the package; that
  they are `custom_id` and `body`, and that results have the status and the body of a reply, is inferred.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.families.batches import read_http_result
from segue.protocols.kit.batch_form import BatchForm, Envelope
from segue_cohere_v1.rules import PROTOCOL, PROVIDER

BATCH_FORMS: Final = (
    BatchForm(
        PROTOCOL,
        frozenset({PROVIDER}),
        Envelope(("custom_id",), ("body",), absent=frozenset({"url"})),
        read_http_result,
        recognised_by=frozenset({"message"}),
    ),
)
