"""Contents of Google in a session: what can be at fault in their parts, for Gemini CLI and Qwen Code."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.anatomy import PLACEHOLDER
from segue.histories.kit.lines import Fields, object_of, text_of


def unsign_part(part: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a part without its signature; a call needs one, so it gets the placeholder."""
    if "functionCall" in part:
        return {**part, name: PLACEHOLDER}
    return {key: value for key, value in part.items() if key != name}


def picture_of_part(part: Fields) -> str | None:
    """Return the data of a picture."""
    data = object_of(part.get("inlineData"))
    return text_of(data.get("data")) if str(data.get("mimeType", "")).startswith("image/") else None


def call_of_part(part: Fields) -> str | None:
    """Return the id of the call that a part is."""
    return text_of(object_of(part.get("functionCall")).get("id"))


def result_of_part(part: Fields) -> str | None:
    """Return the id of the call that a part is the result of."""
    return text_of(object_of(part.get("functionResponse")).get("id"))
