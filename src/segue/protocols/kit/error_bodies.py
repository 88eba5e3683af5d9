"""What most error bodies have in common: a text, or an object that may be under `error`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.reading import text_of


def find_error_object(body: object, status: int | None) -> Block | WireError:
    """Return the object that describes an error: that under `error`, else the parsed body itself.

    Where there is a text in place of the object, it is the message of the returned error.
    """
    error = cast("Block", body).get("error", cast("object", body)) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        return cast("Block", error)
    return WireError(status=status, message=text_of(error) or "")


def describe_error(error: Block, status: int | None, message: str, code: object = None) -> WireError:
    """Make the error of such an object; its `code` counts unless another one is given."""
    if code is None:
        code = error.get("code")
    return WireError(
        status=status, code=None if code is None else str(code), type=text_of(error.get("type")), message=message
    )
