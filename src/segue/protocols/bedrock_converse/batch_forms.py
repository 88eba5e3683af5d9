"""The batch files that take bodies of `bedrock-converse`.

It is imported without the rest of the folder, for batch files.

Facts (read 2026-11-15; limits as in the form of Claude's own bodies):
- `{recordId, modelInput}`, one model a job. A Converse job refuses `toolConfig`.      (botocore 1.44.0; user guide)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.families.batches import BEDROCK, read_bedrock_result
from segue.protocols.kit.batch_form import MEGABYTE, PATH_KEYS, WORD, BatchForm

_NO_TOOLS: Final = (
    "Bedrock refuses tools in a batch of Converse requests; for Claude add --to-protocol anthropic-messages, which"
    " writes the body of InvokeModel"
)

BATCH_FORMS: Final = (
    BatchForm(
        "bedrock",
        frozenset({"amazon-bedrock"}),
        BEDROCK,
        read_bedrock_result,
        alphabet=WORD,
        longest=64,
        requests=50_000,
        size=1_000 * MEGABYTE,
        dropped=PATH_KEYS,
        refused={"toolConfig": _NO_TOOLS},
    ),
)
