"""Functions that every codec uses: expected types, data that only a reply has, data URLs, base64."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import unquote_to_bytes

import msgspec

from segue.conversation.content import Extra, NativeContent
from segue.conversation.context import NativeTool
from segue.errors import DecodeError, EncodeError, Path

# `isinstance(value, (dict, Mapping))`: JSON objects are dicts, and the check for any other mapping is ten times slower.

REPLY = "reply"
"""The key of a message's `extra`, next to the names of protocols, for data that only the reply had. Requests do not
send it."""


_OBJECTS = frozenset[type]({dict})


def of_reply(protocol: str, given: Mapping[str, object]) -> Extra:
    """Make the `extra` for data that only a reply has."""
    return {REPLY: {protocol: given}}


def reply_extra(extra: Extra | None, protocol: str) -> Mapping[str, object] | None:
    """Return the data that only the reply of this protocol had; None if there is none."""
    kept = (extra or {}).get(REPLY, {}).get(protocol)
    return cast("Mapping[str, object]", kept) if isinstance(kept, (dict, Mapping)) else None


def is_of_reply(extra: Extra) -> bool:
    """Whether `extra` holds only reply data, as it does for most turns."""
    return len(extra) == 1 and REPLY in extra


def expect_object(value: object, path: Path) -> Mapping[str, object]:
    """Return a JSON object.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, (dict, Mapping)):
        return cast("Mapping[str, object]", value)
    raise DecodeError(f"expected an object, got {_name(value)}", path=path)


def expect_list(value: object, path: Path) -> list[object]:
    """Return a JSON array.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, (list, tuple)):
        return list(cast("list[object]", value))
    raise DecodeError(f"expected an array, got {_name(value)}", path=path)


def expect_objects(value: object, path: Path) -> list[Mapping[str, object]]:
    """Return a JSON array of objects; nobody may change it, because it may be that of the body.

    Raises:
        DecodeError: it is not an array, or an item is not an object.
    """
    if type(value) is list and _OBJECTS.issuperset(map(type, cast("list[object]", value))):
        return cast("list[Mapping[str, object]]", value)
    items = expect_list(cast("object", value), path)
    for index, item in enumerate(items):
        if type(item) is not dict and not isinstance(item, Mapping):
            raise DecodeError(f"expected an object, got {_name(item)}", path=(*path, index))
    return cast("list[Mapping[str, object]]", items)


def _name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return "a string" if isinstance(value, str) else f"a {type(value).__name__}"


def text_of(value: object) -> str | None:
    """Return a string unchanged; None for any other value."""
    return value if isinstance(value, str) else None


def integer_of(value: object) -> int | None:
    """Return an integer unchanged; None for any other value. A boolean is not a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def real_of(value: object) -> float | None:
    """Return a number unchanged, an integer as well; None for any other value. A boolean is not a number."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def strings_of(value: object) -> tuple[str, ...] | None:
    """Return a list of strings as a tuple; None for any other value."""
    if not isinstance(value, (list, tuple)):
        return None
    items = cast("Sequence[object]", value)
    return tuple(cast("Sequence[str]", items)) if all(isinstance(item, str) for item in items) else None


_LARGEST = 1 << 63
"""A larger count is an error; prices are floats, which could not be multiplied by it."""


def number_of(value: object) -> int:
    """Return a count of tokens; 0 for a value that is not a number, or is larger than any count."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, (int, float))):
        return 0
    return int(value) if -_LARGEST < value < _LARGEST else 0


def split_data_url(url: str, *, exact: bool = True) -> tuple[str | None, str] | None:
    """Split a data URL into MIME type and base64 data; None for any other URL.

    With `exact`, only one as `data_url` writes it: a codec has to write the URL that it read. Others may have capitals,
    or text in place of base64.
    """
    start = url[:5]
    if (start if exact else start.lower()) != "data:":
        return None
    comma = url.find(",", 5)
    head = url[5:comma]
    if comma > 0 and (head if exact else head.lower()).endswith(";base64"):
        return head[: -len(";base64")] or None, url[comma + 1 :]
    if exact or comma < 0:
        return None
    return head or "text/plain", b64encode(unquote_to_bytes(url[comma + 1 :])).decode()


def data_url(mime_type: str | None, data: str) -> str:
    """Make a data URL of a MIME type and base64 data."""
    return f"data:{mime_type or 'application/octet-stream'};base64,{data}"


def standard_base64(data: str) -> str:
    """Write base64 in the standard alphabet with padding; a text that is not base64 is returned unchanged."""
    if len(data) % 4 == 0 and "-" not in data and "_" not in data:
        return data
    digits = data.rstrip("=").translate(_URL_SAFE)
    padding = -len(digits) % 4
    if padding == 3 or len(data) - len(digits) > padding or not _BASE64_DIGITS.fullmatch(digits):
        return data
    return digits + "=" * padding


_URL_SAFE = str.maketrans("-_", "+/")
_BASE64_DIGITS = re.compile(r"[A-Za-z0-9+/]*")


def native_block(protocol: str, content: NativeContent, path: Path = ()) -> Mapping[str, object]:
    """Return the block of native content.

    Raises:
        EncodeError: it is a block of another protocol.
    """
    if content.protocol != protocol:
        raise EncodeError(f"{protocol} does not support a block of {content.protocol}; project the context", path=path)
    return content.block


def native_definition(protocol: str, tool: NativeTool, path: Path) -> Mapping[str, object]:
    """Return the definition of a tool that the provider runs itself.

    Raises:
        EncodeError: it is a tool of another protocol.
    """
    if tool.protocol != protocol:
        raise EncodeError(f"{protocol} does not support a tool of {tool.protocol}; remove it", path=path)
    return tool.definition


def body_with_messages(body: Mapping[str, object] | Sequence[object]) -> Mapping[str, object]:
    """Return the body of a request; a bare list of messages becomes one.

    Raises:
        DecodeError: it has no messages.
    """
    whole = body if isinstance(body, Mapping) else {"messages": list(body)}
    if "messages" not in whole:
        raise DecodeError("the request has no `messages`; add them", path=("messages",))
    return whole


def parse_body(body: object) -> object:
    """Parse a body that is JSON bytes or text; text that is not JSON and other values are returned unchanged."""
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body).decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return body


def as_mapping(body: object) -> Mapping[str, object]:
    """Return a reply or a frame as a mapping; an SDK object is converted with its `model_dump`, `to_dict` or `dict`.

    Raises:
        DecodeError: it is neither a mapping nor such an object.
    """
    if isinstance(body, (dict, Mapping)):
        return cast("Mapping[str, object]", body)
    for name, options in (
        # Vendors send values that the SDK's types do not allow; pydantic would warn about each of them.
        ("model_dump", {"mode": "json", "by_alias": True, "exclude_unset": True, "warnings": False}),
        ("to_dict", {}),
        ("dict", {}),
    ):
        method = getattr(body, name, None)
        if callable(method):
            plain = method(**options)
            if isinstance(plain, Mapping):
                return cast("Mapping[str, object]", plain)
    raise DecodeError(f"expected a mapping or an SDK object, got {type(body).__name__}; pass the parsed JSON body")
