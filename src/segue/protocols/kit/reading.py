"""Small functions that every codec uses to read and write: expected types, data kept of a reply, data URLs, base64."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import cast

import msgspec

from segue.conversation.content import Extra, NativeContent
from segue.conversation.context import NativeTool
from segue.errors import DecodeError, EncodeError, Path

# JSON objects are dicts: to ask whether something is any mapping costs ten times as much, so that comes second.

REPLY = "reply"
"""The key of a message's `extra`, beside those of protocols, for what stood only in the reply. It stays there
and is never sent."""


def of_reply(protocol: str, given: Mapping[str, object]) -> Extra:
    """Put what only a reply says where no request looks."""
    return {REPLY: {protocol: given}}


def reply_extra(extra: Extra | None, protocol: str) -> Mapping[str, object] | None:
    """Give back what only a reply of this protocol said; None when there was none."""
    kept = (extra or {}).get(REPLY, {}).get(protocol)
    return cast("Mapping[str, object]", kept) if isinstance(kept, (dict, Mapping)) else None


def is_of_reply(extra: Extra) -> bool:
    """Whether all that is kept is what only a reply said: so it is with most turns."""
    return len(extra) == 1 and REPLY in extra


def join_texts(before: str, after: str) -> str:
    """Join two texts of a turn where a wire has room for one.

    Most often they are one sentence in pieces (citations cut them so) and belong together as they are. Where one ends
    as a sentence does and the next begins like one, as after thinking that is told in words, they are paragraphs.
    """
    if before and after and before[-1] in _ENDS and (after[0].isupper() or after[0] in _BEGINNINGS):
        return f"{before}\n\n{after}"
    return before + after


_ENDS = frozenset(".!?:)]}\"'`*|>")
_BEGINNINGS = frozenset("#*-`>|[")
"""How texts end and begin that are whole, besides capital letters."""


def expect_object(value: object, path: Path) -> Mapping[str, object]:
    """Give a JSON object.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, (dict, Mapping)):
        return cast("Mapping[str, object]", value)
    raise DecodeError(f"expected an object, got {_name(value)}", path=path)


def expect_list(value: object, path: Path) -> list[object]:
    """Give a JSON array.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, (list, tuple)):
        return list(cast("list[object]", value))
    raise DecodeError(f"expected an array, got {_name(value)}", path=path)


def expect_objects(value: object, path: Path) -> list[Mapping[str, object]]:
    """Give a JSON array of objects.

    Raises:
        DecodeError: it is something else, or something else is in it.
    """
    items = expect_list(value, path)
    for index, item in enumerate(items):
        if not isinstance(item, (dict, Mapping)):
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
    """Give a string as it is, anything else as None."""
    return value if isinstance(value, str) else None


def number_of(value: object) -> int:
    """Give a count of tokens; whatever is not one counts as none."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and isfinite(value) else 0


def split_data_url(url: str) -> tuple[str | None, str] | None:
    """Take a base64 data URL apart into type and data; None for any other URL."""
    if not url.startswith("data:"):
        return None
    head, comma, data = url[5:].partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    return head.removesuffix(";base64") or None, data


def data_url(mime_type: str | None, data: str) -> str:
    """Put type and base64 data together."""
    return f"data:{mime_type or 'application/octet-stream'};base64,{data}"


def standard_base64(data: str) -> str:
    """Write base64 in the standard alphabet with padding; what is not base64 is given back unchanged."""
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
    """Give a block as it was received.

    Raises:
        EncodeError: another protocol received it.
    """
    if content.protocol != protocol:
        raise EncodeError(f"a block of {content.protocol} has no place on this wire", path=path)
    return content.block


def native_definition(protocol: str, tool: NativeTool, path: Path) -> Mapping[str, object]:
    """Give the definition of a tool that the provider runs itself.

    Raises:
        EncodeError: another protocol's provider runs it.
    """
    if tool.protocol != protocol:
        raise EncodeError(f"a tool of {tool.protocol} has no place on this wire", path=path)
    return tool.definition


def parse_body(body: object) -> object:
    """Give a body as far as it can be parsed: bytes as text, a text as the JSON in it, anything else as it is."""
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body).decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return body


def as_mapping(body: object) -> Mapping[str, object]:
    """Give a reply or a frame as plain values: a mapping as it is, an SDK's object by the ways such objects have.

    Raises:
        DecodeError: it is neither.
    """
    if isinstance(body, dict):  # nearly always, and asked at a fraction of the price
        return cast("dict[str, object]", body)
    if isinstance(body, Mapping):
        return cast("Mapping[str, object]", body)
    for name, options in (
        # Vendors say what the SDK's types do not foresee; that is no news to who reads it.
        ("model_dump", {"mode": "json", "by_alias": True, "exclude_unset": True, "warnings": False}),
        ("to_dict", {}),
        ("dict", {}),
    ):
        method = getattr(body, name, None)
        if callable(method):
            plain = method(**options)
            if isinstance(plain, Mapping):
                return cast("Mapping[str, object]", plain)
    raise DecodeError(f"expected a mapping or an SDK's object, got {type(body).__name__}")
