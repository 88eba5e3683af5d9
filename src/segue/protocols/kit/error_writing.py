"""Functions that write errors: rows of data for each kind of failure, headers, and the words of an overflow.

Facts:
- Codex gives up at once on a 429 without `retry-after`; Claude Code, codex, opencode and the SDKs wait for it.
                                                                            (run against a probe, 2026-11; codex 0.166)
- opencode retries any error whose text has a status such as 429 or 500: numbers stay out of sentences.
                                                                                          (opencode @d545d8fb: retry.ts)
- Claude Code repeats a request seven times after a 401 and stops after a 403: a 403 stays one.
                                                                               (claude-code 2.1.325, run 2026-11-16)
- The SDKs of OpenAI and Anthropic do not repeat a request after `x-should-retry: false`; that of OpenAI neither after a
  `retry-after` of more than two minutes.                              (openai 3.49.0, anthropic 2.8.0: _base_client)
- pi sends a request again by the words of an error; "Connection error" is among them.   (pi 0.87.1, run 2026-11-16)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final, NamedTuple

from segue.protocols.kit.codec import Fault

_WAIT_STATUSES: Final = frozenset({429, 503, 529})
_DEFAULT_WAIT: Final = 5
"""Seconds, where the failure has none."""
_FINAL: Final = frozenset({"quota"})
"""Kinds that no wait of seconds ends: clients are told not to try again, and the time only if it is known."""
OTHER: Final = "server"
"""The kind whose row serves for kinds without one: what cannot be classified is a failure of the server."""


STATUSES: Final[Mapping[str, int]] = {
    "overflow": 400,
    "payload_too_large": 413,
    "rate_limit": 429,
    "quota": 402,
    "auth": 401,
    "auth 403": 403,
    "auth 400": 400,
    "auth 502": 502,
    "opaque_rejected": 400,
    "invalid_history": 400,
    "invalid_request": 400,
    "not_found": 404,
    "overloaded": 503,
    "server": 500,
    "network": 502,
    "refused": 400,
}
"""The statuses of protocols that report a failure by its status alone."""


_LEADS: Final[Mapping[str, str]] = {"network": "Connection error"}
"""What a text begins with, so that programs that look for words know that the request may be sent again."""


class ErrorRow(NamedTuple):
    """How a protocol reports one kind of failure."""

    status: int
    type: str
    code: str | None = None


def find_row(rows: Mapping[str, ErrorRow], fault: Fault) -> ErrorRow:
    """Return the row of a failure: of its kind and status (`auth 403`) if there is one, else of its kind."""
    return rows.get(f"{fault.kind!s} {fault.status}") or rows.get(str(fault.kind)) or rows[OTHER]


def find_status(statuses: Mapping[str, int], fault: Fault) -> int:
    """Return the status of a failure, as `find_row` gives its row."""
    return statuses.get(f"{fault.kind!s} {fault.status}") or statuses.get(str(fault.kind)) or statuses[OTHER]


def error_headers(fault: Fault, status: int) -> dict[str, str]:
    """Return the headers of an error: the type of its body, and the time to wait."""
    headers = {"content-type": "application/json"}
    wait = fault.retry_after
    if str(fault.kind) in _FINAL:
        headers["x-should-retry"] = "false"
        if wait is not None:
            headers["retry-after"] = str(max(0, ceil(wait)))
    elif status in _WAIT_STATUSES:
        headers["retry-after"] = str(_DEFAULT_WAIT if wait is None else max(0, ceil(wait)))
    return headers


def error_message(fault: Fault, overflow: str, unknown_overflow: str) -> str:
    """Return the text of an error; an overflow has the provider's words, `overflow` with `{used}` and `{limit}`."""
    kind = str(fault.kind)
    if kind != "overflow":
        lead = _LEADS.get(kind)
        return fault.message if lead is None or fault.message.startswith(lead) else f"{lead}: {fault.message}"
    if fault.used is None or fault.limit is None:
        return unknown_overflow
    return overflow.format(used=fault.used, limit=fault.limit)
