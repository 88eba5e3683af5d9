"""The versions of the Messages API, as the header `anthropic-version` names them, and what each refuses.

Facts this file relies on:
- Under 2026-10-21 a body with `temperature`, `top_p` or `top_k` is refused for every model, also at the default values:
  "temperature: Extra inputs are not permitted". So are a document directly in a turn of the assistant, and a text with
  citations in a user turn or in a search result. This holds for messages, token counts and batches.
                       (Anthropic documentation: API versions; anthropic 2.8.0; published live comparisons; 2026-11-16)
- Under 2023-06-01 the same bodies are accepted where the model accepts them.                                (the same)
- Bodies for Bedrock and Vertex name the version themselves: `anthropic_version`, "2026-10-21" or an older name.
                                                                                             (anthropic 2.8.0, the same)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from segue.errors import Path
from segue.protocols.kit.api_versions import ApiVersion, ApiVersions
from segue.protocols.kit.checking import objects_of
from segue.protocols.kit.codec import JsonObject, Violation

_CODE: Final = "api_version"
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_NEWEST: Final = "2026-10-21"
_HINT: Final = f"anthropic-version {_NEWEST} does not accept it; remove it, or send anthropic-version 2023-06-01"


def _refused(body: JsonObject) -> list[Violation]:
    found = [_violation((key,), key) for key in _SAMPLING if key in body]
    for index, turn in objects_of(body.get("messages")):
        path: Path = ("messages", index, "content")
        for place, block in objects_of(turn.get("content")):
            if turn.get("role") == "assistant":
                if block.get("type") == "document":
                    found.append(_violation((*path, place), "a document in a turn of the assistant"))
            else:
                found += _cited(block, (*path, place))
    return found


def _cited(block: JsonObject, path: Path) -> Iterator[Violation]:
    """List the texts with citations: a block of a user turn, of a search result, or of a tool result."""
    if block.get("type") == "text" and block.get("citations"):
        yield _violation((*path, "citations"), "a text with citations in a user turn")
    for place, inner in objects_of(block.get("content")):
        yield from _cited(inner, (*path, "content", place))


def _violation(path: Path, what: str) -> Violation:
    return Violation(_CODE, path, f"{what}: {_HINT}")


VERSIONS: Final = ApiVersions(
    header="anthropic-version",
    body_key="anthropic_version",
    versions=(
        ApiVersion(
            name=_NEWEST,  # as anthropic 2.8.0 sends it
            refused=_refused,
            words=(b'"temperature"', b'"top_p"', b'"top_k"', b'"citations"', b'"document"'),
            source="Anthropic documentation: API versions; anthropic 2.8.0; published live comparisons",
            read="2026-11-16",
        ),
        ApiVersion(name="2023-06-01", source="Anthropic documentation: API versions", read="2026-11-16"),
    ),
)
