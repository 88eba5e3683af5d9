"""The columns that a conversion of columns returns. All are flat, so that engines that use pandas keep them."""

from __future__ import annotations

from typing import Any, Final

from segue.corpus.columns import import_arrow

COLUMNS: Final = {
    "id": "string",
    "request": "large_string",
    "error": "string",
    "changes": "string",
    "messages": "int32",
    "tokens": "int64",
}
"""The name of each column -> the name of its Arrow type."""


def arrow_schema() -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the schema of the columns.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow = import_arrow()
    return arrow.schema([(name, getattr(arrow, kind)()) for name, kind in COLUMNS.items()])
