"""Error bodies: a text, `{"error": ...}`, `{"detail": ...}`, or an object with `message`, `type` and `code`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import parse_body, text_of


def find_error_object(body: object, status: int | None) -> Block | WireError:
    """Return the object that describes an error: that under `error`, else the body, which may be unparsed JSON.

    Where there is a text in place of the object, it is the message of the returned error.
    """
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=text_of(body) or "")
    outer = cast("Block", body)
    error = outer.get("error")
    return WireError(status=status, message=error) if isinstance(error, str) else object_of(error) or outer


def describe_unknown(error: Block) -> str:
    """Return the message of an error without one: its JSON."""
    return json.dumps(error, ensure_ascii=False, default=str)
