"""Error bodies of Mistral's endpoint, and error objects in its streams.

Facts this file rests on:
- `{"object": "error", "message", "type", "param", "code"}`; the code is a number as text (3230, 3280).
                                                            (ironclaw #1241, 2026-03-16; facts of many threads)
- What the schema refuses comes with 422 as `{"detail": [{"type", "loc", "msg"}]}`, also inside `message`.
                                                                   (mistral-go #2; php-mistral #76, 2025-11-13)
- The proxy before it answers `{"message", "request_id"}` or `{"detail": "text"}`.    (nextcloud integration_openai #76)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; the message of another is its JSON."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=body if isinstance(body, str) else "")
    outer = cast("Block", body)
    error = outer.get("error")
    if isinstance(error, str):
        return WireError(status=status, message=error)
    inner = object_of(error) or outer
    code = inner.get("code")
    message = _message(inner.get("message")) or _message(inner.get("detail"))
    return WireError(
        status=status if status is not None else _status(inner.get("raw_status_code")),
        code=None if code is None else str(code),
        type=text_of(inner.get("type")),
        message=message or json.dumps(inner, ensure_ascii=False, default=str),
    )


def _message(value: object) -> str:
    """Give a message; of a list of what the schema refused, every entry with its path."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _message(cast("Block", value).get("detail"))
    if not isinstance(value, list):
        return ""
    found: list[str] = []
    for item in cast("list[object]", value):
        text = text_of(object_of(item).get("msg")) or (item if isinstance(item, str) else "")
        place = object_of(item).get("loc")
        steps = cast("Sequence[object]", place) if isinstance(place, (list, tuple)) else ()
        found.append(f"{'.'.join(map(str, steps))}: {text}" if steps else text)
    return "; ".join(filter(None, found))


def _status(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
