"""Classify an error of a provider, a client library or a stream as one `Failure`.

The order of evidence, the strongest first:

1. an unambiguous code (`insufficient_quota`), anywhere in the body;
2. an unambiguous status (401, 402, 429, 529);
3. the text of the message: wordings about an unusable reply, the history, quotas, false positives of overflow,
   overflow (`_TABLES`), a count of tokens above a limit, all other wordings;
4. an ambiguous code (`invalid_request_error`), any other status.

The time to wait is read for every kind; the counts of tokens for an overflow and a rate limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.events import DoneEvent, ErrorEvent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.failures.codes import (
    CODES,
    DECISIVE_STATUSES,
    NUMBERED_CODES,
    OVERFLOW_CODE,
    VAGUE_CODES,
    kind_of_status,
    normalize_code,
)
from segue.failures.error_inputs import OUR_ERRORS, read_exception, read_message, read_wire_error
from segue.failures.failure import Failure, FailureKind
from segue.failures.history import HISTORY_FORMS, SIGNATURES
from segue.failures.masking import mask_keys
from segue.failures.numbers import asks_too_much_output, counts_too_many, read_numbers
from segue.failures.overflow import CERTAIN, LOOSE, STRICT
from segue.failures.overflow_false_positives import OVERFLOW_FALSE_POSITIVES
from segue.failures.row import Row, find_row, in_scope
from segue.failures.symptoms import Symptoms, read_body, read_headers
from segue.failures.waiting import wait_from_headers, wait_from_text
from segue.failures.wordings import GENERATIONS, QUOTAS, WORDINGS
from segue.protocols.kit.codec import WireError

_Verdict = tuple[FailureKind, str]

_QUOTES: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_ASKED_PROVIDER: Final = re.compile(r"provider returned (?:an )?error[:.\s]*")
_FOREVER: Final = 1e9
"""Seconds. Longer waits are ignored: they are not meant as a wait."""
_COUNTED: Final = frozenset({FailureKind.OVERFLOW, FailureKind.RATE_LIMIT})
"""Kinds whose message may have counts of tokens."""
_TABLES: Final[tuple[tuple[Row, ...], ...]] = (
    SIGNATURES,
    GENERATIONS,
    HISTORY_FORMS,
    CERTAIN,
    QUOTAS,
    OVERFLOW_FALSE_POSITIVES,
    STRICT,
    LOOSE,
)
"""Tables of wordings, in the order in which they are searched. `WORDINGS` come after the check of token counts."""
_TABLES_OF_413: Final[tuple[tuple[Row, ...], ...]] = (CERTAIN, OVERFLOW_FALSE_POSITIVES, STRICT)
"""Status 413 means a body of too many bytes, unless the message is about the prompt or the context."""


def classify(
    error: object,
    *,
    provider: str | None = None,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Failure:
    """Classify an error.

    `error` is a text, a body (parsed, bytes or JSON text), an exception of an official client or of a transport, a
    `SegueError`, a `WireError`, an error event of a stream, or a message. The arguments `provider`, `status` and
    `headers` override what the error itself contains. This function never raises.
    """
    symptoms = Symptoms(provider=(provider or "").lower(), status=status)
    if headers is not None:
        read_headers(headers, symptoms)
    known = _read(error, symptoms)
    if isinstance(known, Failure):
        return known
    given = symptoms.message()
    # OpenRouter puts this before the error of the provider that it asked, which says more.
    text = _ASKED_PROVIDER.sub("", given.translate(_QUOTES).lower())
    kind, evidence = known or _find_kind(symptoms, text)
    used, limit = symptoms.used, symptoms.limit
    if kind in _COUNTED and used is None and limit is None:
        used, limit = read_numbers(text)
    return Failure(
        kind=kind,
        provider=symptoms.provider or None,
        status=symptoms.status,
        retry_after=_wait(symptoms, text),
        used=used,
        limit=limit,
        evidence=mask_keys(evidence),
        message=mask_keys(given),
    )


def is_context_overflow(message: AssistantMessage, context_window: int = 0) -> bool:
    """Whether a reply shows that the conversation is longer than the model's context window.

    Three signs: an error of the kind `overflow`; a success with more input tokens, cached or not, than the window (some
    providers truncate silently); the stop reason `length` with no output and 99 % of the window used. The last two need
    `context_window`.
    """
    is_failed = (
        message.stop_reason == StopReason.ERROR or _code_verdict([message.raw_stop_reason or ""], "") is not None
    )
    if is_failed and classify(message).kind == FailureKind.OVERFLOW:
        return True
    usage = message.usage
    if context_window <= 0 or usage is None:
        return False
    filled = usage.input + usage.cache_read + usage.cache_write
    if message.stop_reason in (StopReason.STOP, StopReason.TOOL_USE):
        return filled > context_window
    return message.stop_reason == StopReason.LENGTH and usage.output == 0 and filled * 100 >= context_window * 99


def _read(error: object, into: Symptoms) -> _Verdict | Failure | None:
    """Collect the symptoms; return a verdict if the type of the error decides."""
    if isinstance(error, ErrorEvent | DoneEvent):
        error = error.message
    if isinstance(error, Failure):
        return error
    if isinstance(error, AssistantMessage):
        read_message(error, into)
        return _verdict_of_message(error)
    if isinstance(error, WireError):
        read_wire_error(error, into)
        return None
    if isinstance(error, BaseException):
        carried = cast("object", getattr(error, "failure", None))
        if isinstance(carried, Failure):
            return carried
        for kind, verdict in OUR_ERRORS:
            if isinstance(error, kind):
                into.texts.append(str(error))
                return verdict, type(error).__name__
        read_exception(error, into)
        return None
    read_body(error, into)
    return None


def _verdict_of_message(message: AssistantMessage) -> _Verdict | None:
    if message.stop_reason == StopReason.ABORTED:
        return FailureKind.UNKNOWN, "the caller aborted the request"
    if message.stop_reason == StopReason.ERROR or _code_verdict([message.raw_stop_reason or ""], "") is not None:
        return None
    return FailureKind.UNKNOWN, f"the message is not a failure: its stop reason is {message.stop_reason}"


def _find_kind(symptoms: Symptoms, text: str) -> _Verdict:
    status, provider = symptoms.status, symptoms.provider
    if symptoms.unreachable:
        return FailureKind.NETWORK, symptoms.unreachable
    verdict = _code_verdict(symptoms.codes, provider)
    if verdict is None and status is not None and status in DECISIVE_STATUSES:
        verdict = DECISIVE_STATUSES[status], f"status {status}"
    if verdict is not None:
        return _rate_or_quota(verdict, symptoms, text)
    found = _find(_TABLES_OF_413 if status == 413 else _TABLES, text, provider)
    if found is None and status != 413:
        if counts_too_many(text):
            return FailureKind.OVERFLOW, "counts of tokens"
        found = find_row(WORDINGS, text, provider)
    if found is None:
        return _last_resort(symptoms)
    kind, terms = found[0].kind, f"message: {found[1]}"
    if kind == FailureKind.OVERFLOW and asks_too_much_output(text):
        kind = FailureKind.INVALID_REQUEST
    return _rate_or_quota((kind, terms), symptoms, text)


def _find(tables: tuple[tuple[Row, ...], ...], text: str, provider: str) -> tuple[Row, str] | None:
    for rows in tables:
        found = find_row(rows, text, provider)
        if found is not None:
            return found
    return None


def _code_verdict(codes: list[str], provider: str) -> _Verdict | None:
    for value in codes:
        code = normalize_code(value)
        kind = CODES.get(code)
        if kind is None and OVERFLOW_CODE.search(code) is not None:
            kind = FailureKind.OVERFLOW
        if kind is not None:
            return kind, f"code {value}"
        if provider and value.isdecimal():
            for scope, numbered, numbers in NUMBERED_CODES:
                if in_scope(scope, provider) and value in numbers.split():
                    return numbered, f"code {value}"
    return None


def _rate_or_quota(verdict: _Verdict, symptoms: Symptoms, text: str) -> _Verdict:
    """Distinguish a quota from a rate limit. Both come as status 429, at xAI as `permission-denied`."""
    if verdict[0] not in (FailureKind.RATE_LIMIT, FailureKind.AUTH):
        return verdict
    # Google sends the same message for both; the id of the exceeded quota distinguishes them.
    quota_ids = " ".join(code for code in symptoms.codes if "Per" in code)
    if "PerDay" in quota_ids:
        return FailureKind.QUOTA, f"{verdict[1]}, a quota per day"
    if "PerMinute" in quota_ids:
        return verdict
    found = find_row(QUOTAS, text, symptoms.provider)
    return verdict if found is None else (FailureKind.QUOTA, f"{verdict[1]}, message: {found[1]}")


def _last_resort(symptoms: Symptoms) -> _Verdict:
    status = symptoms.status
    kind = kind_of_status(status) if status is not None else None
    for value in symptoms.codes:
        vague = VAGUE_CODES.get(normalize_code(value))
        if vague is not None and (kind is None or kind in (FailureKind.INVALID_REQUEST, FailureKind.SERVER)):
            return vague, f"code {value}"
    if kind is not None:
        return kind, f"status {status}"
    if _ASKED_PROVIDER.search(symptoms.message().lower()) is not None:
        return FailureKind.SERVER, "message: provider returned error"
    return FailureKind.UNKNOWN, ""


def _wait(symptoms: Symptoms, text: str) -> float | None:
    seconds = wait_from_headers(symptoms.headers)
    if seconds is not None and seconds < _FOREVER:
        return seconds
    seconds = symptoms.retry_after if symptoms.retry_after is not None else wait_from_text(text)
    return seconds if seconds is not None and seconds < _FOREVER else None
