"""The batch files that take bodies of `anthropic-messages`.

It is imported without the rest of the folder, for batch files.

Facts (all read 2026-11-15):
- Anthropic: `{custom_id, params}`, elements of `requests` in one POST; 100,000 requests or 256 MB; an id has 1 to 64
  letters, digits, `-` and `_`.                                       (anthropic 2.8.0; API reference; SDK issue 984)
- Vertex AI: `{custom_id, request}` with `anthropic_version`.                            (Google Cloud documentation)
- Bedrock: `{recordId, modelInput}`, one model a job; InvokeModel takes the model's own body. By default 50,000 records
  and 1 GB a file; an account may have more records, and new models may differ.
                              (botocore 1.44.0; user guide; quotas of the AWS General Reference in a copy of June 2025)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.families.batches import BEDROCK, read_anthropic_result, read_bedrock_result, read_vertex_result
from segue.protocols.kit.batch_form import MEGABYTE, PATH_KEYS, WORD, BatchForm, Envelope

BATCH_FORMS: Final = (
    BatchForm(
        "anthropic",
        frozenset({"anthropic"}),
        Envelope(("custom_id",), ("params",)),
        read_anthropic_result,
        alphabet=WORD,
        longest=64,
        requests=100_000,
        size=256 * MEGABYTE,
    ),
    BatchForm(
        "vertex-claude",
        frozenset({"google-vertex"}),
        Envelope(("custom_id",), ("request",)),
        read_vertex_result,
        alphabet=WORD,
        longest=64,
        constants={"anthropic_version": "vertex-2023-10-16"},
        dropped=PATH_KEYS,
    ),
    BatchForm(
        "bedrock-claude",
        frozenset({"amazon-bedrock"}),
        BEDROCK,
        read_bedrock_result,
        alphabet=WORD,
        longest=64,
        requests=50_000,
        size=1_000 * MEGABYTE,
        constants={"anthropic_version": "bedrock-2023-05-31"},
        recognised_by=frozenset({"anthropic_version"}),
        dropped=PATH_KEYS,
    ),
)
