"""Read the time to wait before a retry from headers, fields and message texts.

This module uses no clock: a point in time is compared with the `date` header of the same response.

Facts (documentation read 2026-11):
- `retry-after` is seconds or an HTTP date; `retry-after-ms` milliseconds.            (RFC 9110; Azure, OpenAI client)
- `x-ratelimit-reset-requests` and `-tokens` are durations such as `6m0s` or `20ms`; the one whose
  `x-ratelimit-remaining-*` is 0 applies.                                                                (OpenAI, Groq)
- `x-ratelimit-reset` is seconds, or a time in Unix seconds or milliseconds.             (OpenRouter, GitHub, Together)
- `anthropic-ratelimit-*-reset` is a time in RFC 3339.                                                     (Anthropic)
- Google sends `retryDelay: "34s"` in `details`, Codex `resets_in_seconds`, OpenAI a text, "Please try again in 6m0s".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

_UNITS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT: Final = r"(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_PIECE: Final = re.compile(rf"(\d+(?:\.\d+)?)\s*({_UNIT})")
_SPAN: Final = rf"((?:\d+(?:\.\d+)?\s*{_UNIT}(?:\s|,|and\b)*)+)"
_PHRASES: Final = re.compile(
    rf"(?:(?:try|retry|again|retrying|wait|resets?|available)\b[^\n.]{{0,30}}?\b(?:in|after|for|about|wait)|\bwait|"
    rf"\bretry[_ -]?(?:after|delay)[\"']?\s*[:=])\s*(?:about |another |at least |~|[\"'])?\s*{_SPAN}"
)
_BARE: Final = re.compile(r"retry[_ -]?after(?:[_ ]seconds)?[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)\b(?!\s*m)")
_HTTP_DATE: Final = re.compile(r"\w{3,9}, (\d\d)[ -](\w{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNIX_SECONDS: Final = 1e9
_UNIX_MILLISECONDS: Final = 1e12


def wait_from_headers(headers: Mapping[str, str]) -> float | None:
    """Read the seconds to wait from headers with lower-case names."""
    if not headers:
        return None
    milliseconds = _plain(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    date = _moment(headers.get("date"))
    for value in (headers.get("retry-after"), _resource_reset(headers), headers.get("x-ratelimit-reset")):
        seconds = _seconds(value, date)
        if seconds is not None:
            return seconds
    for name in ("ratelimit-reset", "x-ratelimit-timeremaining"):
        seconds = _seconds(headers.get(name), date)
        if seconds is not None:
            return seconds
    return None


def wait_from_text(text: str) -> float | None:
    """Read the seconds to wait from a message in lower case."""
    if "again" not in text and "retry" not in text and "wait" not in text and "reset" not in text:
        return None
    found = _PHRASES.search(text)
    if found is not None:
        return read_span(found.group(1))
    found = _BARE.search(text)
    return None if found is None else float(found.group(1))


def read_span(text: str) -> float | None:
    """Read `6m0s`, `34.07s`, `20ms`, `2 hours` or a bare number of seconds."""
    plain = _plain(text)
    if plain is not None:
        return plain
    pieces = _PIECE.findall(text.lower())
    if not pieces:
        return None
    return round(sum(float(count) * _unit(unit) for count, unit in pieces), 6)


def _unit(name: str) -> float:
    return _UNITS["ms"] if name.startswith(("ms", "milli")) else _UNITS[name[0]]


def _resource_reset(headers: Mapping[str, str]) -> str | None:
    """Return the reset of the resource whose remainder is 0; without remainders, the only reset."""
    resets: list[tuple[str, str]] = []
    for name, value in headers.items():
        if "ratelimit" in name and "-reset" in name and name not in ("x-ratelimit-reset", "ratelimit-reset"):
            resets.append((name, value))
            if headers.get(name.replace("-reset", "-remaining")) == "0":
                return value
    return resets[0][1] if len(resets) == 1 else None


def _seconds(value: str | None, date: datetime | None) -> float | None:
    if not value:
        return None
    number = _plain(value)
    if number is not None and number < _UNIX_SECONDS:
        return number
    if number is not None:
        seconds = number / 1000 if number >= _UNIX_MILLISECONDS else number
        return None if date is None else max(0.0, seconds - date.timestamp())
    moment = _moment(value)
    if moment is not None:
        return None if date is None else max(0.0, (moment - date) / timedelta(seconds=1))
    return read_span(value)


def _plain(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


def _moment(value: str | None) -> datetime | None:
    """Read an HTTP date or an RFC 3339 one."""
    if not value:
        return None
    found = _HTTP_DATE.match(value)
    try:
        if found is not None:
            day, month, year, *clock = found.groups()
            hour, minute, second = (int(part) for part in clock)
            number = _MONTHS.index(month.lower()) + 1
            return datetime(int(year), number, int(day), hour, minute, second, tzinfo=UTC)
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
