"""Values that enter a URL or a header: quoted so that they stay one value, or refused.

A model id, an account or a region may come from a client. It must not change which resource or method a request
reaches, add a header, or make one too large. Every such value goes through this module.

Facts:
- A path segment is percent-encoded except for unreserved characters; `%` is encoded as well, so that a value is decoded
  to itself.                                                  (RFC 3986, 2.1 and 3.3; botocore 1.44.0: `percent_encode`)
- Clients and servers resolve `.` and `..`, also where they are percent-encoded.         (WHATWG URL; yarl 1.x; httpx2)
- google-genai refuses a model id with `..`, `?` or `&` and inserts any other unquoted; `:` begins the method.
                                                                           (google-genai 3.1.0: `t_model`; 2026-11-16)
- A header value has visible ASCII characters and spaces; others have no agreed encoding.      (RFC 9110, 5.5; h11 0.16)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from segue.errors import SettingsError

_LONGEST: Final = 2048
"""Characters of the longest value in a path: an ARN of Bedrock has at most 2,048 (botocore 1.44.0)."""
_LONGEST_HEADER: Final = 8192
"""Characters of the longest header value that common servers accept (nginx, uvicorn with h11: 8 KB and more)."""
_LONGEST_SHOWN: Final = 512
_SEPARATORS: Final = re.compile(r"[/\\?#&;:]")
_BETWEEN_SEGMENTS: Final = re.compile(r"[/\\]")
_HOST_LABELS: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PATH: Final = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@{}-]|%[0-9A-Fa-f]{2})*)*(?:\?[\x21-\x22\x24-\x7e]*)?")
SECRET_NAME: Final = re.compile(
    r"(?:api|access|secret|private|account|auth)[-_]?key|token$|secret|passw|authorization|credential|cookie|signature",
    re.IGNORECASE,
)
"""Names of fields and headers whose values are secrets; reports do not show them."""


def quote_segment(value: str, *, what: str = "the model id") -> str:
    """Quote a value as one segment of a path; slashes are encoded too.

    Raises:
        SettingsError: the value is empty or too long, has control characters, or would be read as another path.
    """
    return quote(_checked(value, what), safe="")


def quote_path(value: str, *, what: str = "the model id", refused: str = "", refused_last: str = "") -> str:
    """Quote a value that is itself a path: its slashes separate segments.

    `refused` are characters that the provider does not accept, `refused_last` those that it does not accept in the last
    segment.

    Raises:
        SettingsError: as `quote_segment`; also for a refused character or an empty segment.
    """
    segments = _checked(value, what).split("/")
    found = next((each for each in refused if each in value), None)
    found = found or next((each for each in refused_last if each in segments[-1]), None)
    if found is not None or not all(segments):
        _refuse(value, what, f"contains {found!r}" if found else "has an empty part between slashes")
    return "/".join(quote(segment, safe="") for segment in segments)


def quote_variable(value: str, *, name: str, in_host: bool) -> str:
    """Quote the value of an environment variable for its place in a URL: a label of a host, or a segment of a path.

    Raises:
        SettingsError: the value is not allowed there.
    """
    what = f"the environment variable {name}"
    if not in_host:
        return quote_segment(value, what=what)
    if _HOST_LABELS.fullmatch(value) is None or ".." in value:
        _refuse(value, what, "is not a part of a host name")
    return value


def check_path(path: str, *, model_id: str) -> str:
    """Return the path and query of a request if no part of it can be read as another path.

    This holds for protocols of other packages as well, whatever they insert.

    Raises:
        SettingsError: it has a fragment, unquoted characters, or `.` or `..` as a segment, or the model id is too long.
    """
    if len(model_id) > _LONGEST:
        _refuse(model_id, "the model id", f"is longer than {_LONGEST:,} characters")
    if _PATH.fullmatch(path) is None or _has_dots(_decoded(path.partition("?")[0])):
        _refuse(model_id, "the model id", f"gives the path {path[:80]!r} with unquoted characters, a fragment, or `..`")
    return path


def check_header(value: str, *, name: str) -> str:
    """Return the value of a header of a request.

    Raises:
        SettingsError: it is too long, or has characters that a header cannot have. The message does not contain it.
    """
    if len(value) > _LONGEST_HEADER or not (value.isascii() and value.isprintable()):
        problem = (
            f"is longer than {_LONGEST_HEADER:,} characters"
            if len(value) > _LONGEST_HEADER
            else "has characters other than printable ASCII, such as a line break"
        )
        raise SettingsError(f"the value of the header {name!r} {problem}; correct it", key=name)
    return value


def check_headers(headers: Mapping[str, str]) -> None:
    """Check the values of the headers of a request, all at once where they are well-formed: see `check_header`."""
    values = "".join(headers.values())
    if len(values) > _LONGEST_HEADER or not (values.isascii() and values.isprintable()):
        for name, value in headers.items():
            check_header(value, name=name)


def quote_header(value: str) -> str:
    """Quote a text for a header of a reply: other characters than printable ASCII as `%XX`, and cut when it is long.

    Blanks at its ends are quoted as well: servers refuse to write them, and the reply would be lost.
    """
    if not (value.isascii() and value.isprintable()):
        value = quote(value[:_LONGEST_SHOWN], safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}", errors="replace")
    if value[:1] == " " or value[-1:] == " ":
        inner, before = value.strip(" "), len(value) - len(value.lstrip(" "))
        value = "%20" * before + inner + "%20" * (len(value) - before - len(inner))
    return value if len(value) <= _LONGEST_SHOWN else f"{value[: _LONGEST_SHOWN - 3]}..."


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a reply as ASGI sends them. Every reply of the gateway gets its headers here."""
    values = "".join(headers.values())  # nearly always plain: then none of them has to be quoted
    if not (len(values) <= _LONGEST_SHOWN and values.isascii() and values.isprintable() and " " not in values):
        headers = {name: quote_header(value) for name, value in headers.items()}
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _checked(value: str, what: str) -> str:
    if not value or len(value) > _LONGEST:
        _refuse(value, what, f"is longer than {_LONGEST:,} characters" if value else "is empty")
    decoded = _decoded(value)
    if not decoded.isprintable():  # control characters, line separators, lone surrogates; a space is printable
        _refuse(value, what, "has control characters")
    if _has_dots(decoded):
        _refuse(value, what, "has `.` or `..` as a part of a path")
    if decoded != value and len(_SEPARATORS.findall(decoded)) != len(_SEPARATORS.findall(value)):
        _refuse(value, what, "has percent-encoded separators")
    return value


def _decoded(value: str) -> str:
    """Decode until nothing changes: a proxy on the way may decode once more than the provider."""
    for _ in range(len(value)):
        once = unquote(value, errors="surrogateescape")  # bytes that are not UTF-8 are not printable
        if once == value:
            break
        value = once
    return value


def _has_dots(decoded: str) -> bool:
    # Servers of Java remove `;parameters` from a segment before they resolve dots.
    return any(segment.partition(";")[0].strip() in (".", "..") for segment in _BETWEEN_SEGMENTS.split(decoded))


def _refuse(value: str, what: str, problem: str) -> None:
    shown = repr(value if len(value) <= 80 else f"{value[:77]}...")
    raise SettingsError(f"{what} {shown} {problem}, so it cannot be part of a URL; correct it", key=what)


def join_headers(headers: Mapping[str, str], needed: Mapping[str, str]) -> dict[str, str]:
    """Add headers whose values are lists: what both have is joined, whatever the case of the names."""
    joined = dict(headers)
    for name, value in needed.items():
        known = next((key for key in joined if key.lower() == name), name)
        values = [item.strip() for item in joined.get(known, "").split(",") if item.strip()]
        joined[known] = ",".join([*values, *(item for item in value.split(",") if item not in values)])
    return joined
