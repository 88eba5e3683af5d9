"""Read exceptions of client libraries by their attributes, without importing the libraries.

Facts (installed packages, read 2026-11-15):
- openai 3.49, anthropic 2.8: `.status_code`, `.body` (parsed), `.response.headers`; no answer: `APIConnectionError`.
- google-genai 3.1: `.code` (number), `.status` (name), `.details` (the body), `.response`.
- botocore 1.44: `.response = {"Error": {"Code", "Message"}, "ResponseMetadata": {"HTTPStatusCode", "HTTPHeaders"}}`.
- mistralai 3.7: `.status_code`, `.body` (text), `.headers`. cohere 7.3: `.status_code`, `.body`, `.headers`.
- ollama 0.6: `.status_code` (-1 for none), `.error`. httpx2, httpx: `.response` on status errors; `TransportError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import (
    ConversationError,
    DecodeError,
    DumpError,
    EncodeError,
    LoadError,
    ModelError,
    ProjectionError,
    SegueError,
    SettingsError,
)
from segue.failures.failure import FailureKind
from segue.failures.symptoms import Symptoms, read_body, read_headers, read_text
from segue.protocols.kit.codec import WireError

OUR_ERRORS: Final[tuple[tuple[type[SegueError], FailureKind], ...]] = (
    (ModelError, FailureKind.NOT_FOUND),
    (SettingsError, FailureKind.INVALID_REQUEST),
    (DecodeError, FailureKind.SERVER),  # the provider's reply does not match its protocol
    (EncodeError, FailureKind.INVALID_HISTORY),
    (ProjectionError, FailureKind.INVALID_HISTORY),
    (ConversationError, FailureKind.INVALID_HISTORY),
    (LoadError, FailureKind.INVALID_HISTORY),
    (DumpError, FailureKind.INVALID_HISTORY),
)

UNREACHABLE: Final = frozenset({
    # httpx, httpx2, httpcore, requests, urllib3, aiohttp, botocore, the SDKs' own, Python's
    "TransportError", "TimeoutException", "NetworkError", "RemoteProtocolError", "APIConnectionError",
    "APITimeoutError", "ConnectionError", "TimeoutError", "Timeout", "ConnectTimeout", "ReadTimeout",
    "ChunkedEncodingError", "ProtocolError", "NewConnectionError", "MaxRetryError", "IncompleteRead",
    "RemoteDisconnected", "ClientConnectionError", "ClientPayloadError", "ServerDisconnectedError",
    "HTTPClientError", "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectionClosedError",
    "SSLError", "gaierror", "WebSocketConnectionClosedError", "IncompleteReadError",
})  # fmt: skip
"""Names of exception classes that mean that there was no response."""

_NAMED_AFTER_STATUS: Final = frozenset({
    "AuthenticationError", "PermissionDeniedError", "NotFoundError", "RateLimitError", "OverloadedError",
    "ServiceUnavailableError", "ContentTooLargeError", "UnauthorizedError", "ForbiddenError", "TooManyRequestsError",
})  # fmt: skip
"""Names of exception classes that clients choose by the status alone, so they are not further evidence."""

_CAUSES: Final = 5


def read_exception(error: BaseException, into: Symptoms) -> None:
    """Read an exception of an official client, of a transport, or any other."""
    _read_status(error, into)
    response = _attribute(error, "response")
    _read_response(response, into)
    for name in ("headers", "raw_response"):
        _read_headers_of(error, name, into)
    for name in ("body", "details", "error"):
        _read_message_text(_attribute(error, name), into)
    if into.status is None and not into.texts:
        _read_unanswered(error, into)
    if not into.texts:
        _read_message_text(_attribute(response, "text"), into)
        given = _attribute(error, "message")
        read_text(given if isinstance(given, str) and given else str(error), into)
    for name in ("code", "type", "status"):
        term = _attribute(error, name)
        if isinstance(term, str):
            into.codes.insert(0, term)
    names = (kind.__name__ for kind in type(error).__mro__ if kind.__module__ != "builtins")
    into.codes.extend(name for name in names if into.status is None or name not in _NAMED_AFTER_STATUS)


def read_message(message: AssistantMessage, into: Symptoms) -> None:
    """Read a finished or failed reply: its stop reason, then its error."""
    if not into.provider:
        into.provider = message.provider.lower()
    if message.raw_stop_reason:
        into.codes.append(message.raw_stop_reason)
    for diagnostic in message.diagnostics:
        if diagnostic.type == "provider_error":  # the other fields of an error in a stream
            read_body(diagnostic.details, into)
    if message.error_message:
        read_text(message.error_message, into)
    elif message.stop_reason == StopReason.ERROR and not message.raw_stop_reason:
        into.texts.append("the reply ended in an error")


def read_wire_error(error: WireError, into: Symptoms) -> None:
    """Read an error body that a codec decoded."""
    into.status = error.status if into.status is None else into.status
    into.codes.extend(term for term in (error.code, error.type) if term)
    read_text(error.message, into)


def _attribute(error: object, name: str) -> object:
    try:
        return cast("object", getattr(error, name, None))
    except (RuntimeError, ValueError):  # httpx raises for `.request` and `.text` before they are available
        return None


def _read_status(error: BaseException, into: Symptoms) -> None:
    for name in ("status_code", "code", "status"):
        value = _attribute(error, name)
        if into.status is None and isinstance(value, int) and 400 <= value < 600:
            into.status = value


def _read_aws(response: Mapping[str, object], into: Symptoms) -> None:
    about = response.get("ResponseMetadata")
    if isinstance(about, Mapping):
        metadata = cast("Mapping[str, object]", about)
        status = metadata.get("HTTPStatusCode")
        if into.status is None and isinstance(status, int) and status >= 400:
            into.status = status
        read_headers(metadata.get("HTTPHeaders"), into)
    read_body(response.get("Error", response), into)


def _read_response(response: object, into: Symptoms) -> None:
    if isinstance(response, Mapping):
        _read_aws(cast("Mapping[str, object]", response), into)
        return
    status = _attribute(response, "status_code")
    if into.status is None and isinstance(status, int) and status >= 400:
        into.status = status
    _read_headers_of(response, "headers", into)


def _read_headers_of(owner: object, name: str, into: Symptoms) -> None:
    value = _attribute(owner, name)
    if name == "raw_response":
        value = _attribute(value, "headers")
    if value is not None and not into.headers:
        read_headers(value, into)


def _read_message_text(given: object, into: Symptoms) -> None:
    if given and not into.texts and isinstance(given, str | bytes | Mapping | list | tuple):
        read_body(cast("object", given), into)


def _read_unanswered(error: BaseException, into: Symptoms) -> None:
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        names = [kind.__name__ for kind in type(cause).__mro__]
        if any(name in UNREACHABLE for name in names):
            into.unreachable = names[0]
            return
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
