"""Collect status, codes, texts and headers of an error from a body, parsed or not.

`classify` does not know the protocol of a body, and gateways embed one provider's body in another one. So the whole
body is searched: codes and texts are found by the names of their keys, and JSON inside a text is parsed.

Facts (recorded error bodies and documentation, 2026-11):
- `{"error": {message, type, param, code}}` (OpenAI, most), `{"type": "error", "error": {type, message}}` (Anthropic),
  `{"error": {code: 400, message, status, details: [{reason} | {retryDelay} | {violations}]}}` (Google),
  `{"message"}` or `{"__type"}` (AWS), `{"error": "text"}` (Ollama), `{"detail": [{loc, msg, type}]}` (FastAPI),
  `{"base_resp": {status_code, status_msg}}` (MiniMax), `{"errors": [{code, message}]}` (Cloudflare).
- OpenRouter keeps the error of its provider, often JSON in a text, under `metadata.raw`.
- llama.cpp sends counts in separate fields: `n_prompt_tokens`, `n_ctx`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from segue.failures.waiting import read_span

_CODE_KEYS: Final = frozenset({
    "code", "type", "status", "reason", "__type", "error_type", "error_code", "errortype", "errorcode", "innererror",
    "finish_reason", "quotaid",
})  # fmt: skip
_TEXT_KEYS: Final = ("message", "msg", "detail", "error_description", "status_msg", "error_message", "errormessage",
                     "description", "title", "raw", "error", "body", "explanation")  # fmt: skip
_WAIT_KEYS: Final = frozenset({
    "retrydelay", "retry_after", "retryafter", "retry_after_seconds", "resets_in_seconds", "retry-after"
})  # fmt: skip
_STATUS_KEYS: Final = frozenset({"code", "status", "status_code", "statuscode", "http_status", "httpstatuscode"})
_NOT_CODES: Final = frozenset({"error", "object", "response.failed", "response.incomplete", "failed", "incomplete"})
"""Values of `type` and `status` that name the frame, not the failure."""
_DEPTH: Final = 8
_LARGE: Final = 1e12
_LENGTH: Final = 8000
"""Longer texts are HTML pages or repeat the request; only their ends are read."""

_SNAKE: Final = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)+")
_CAMEL: Final = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+|\b[a-z]+(?:[A-Z][a-z]+)*(?:Exception|Error)\b")
"""Names of exceptions in AWS events begin in lower case; other such words are not codes."""
_LABELLED: Final = re.compile(r"[\"'](?:code|type|status|reason|__type|quotaId)[\"']\s*:\s*[\"']([\w.#-]+)[\"']")
_MAYBE_STATUS: Final = re.compile(r"(?<!\d)[45]\d\d(?!\d)")
_STATUS_IN_TEXT: Final = re.compile(
    r"^\W*(?:\w+ )?([45]\d\d)\b(?! tokens?| characters?| ?bytes|[,.]\d)"
    r"|(?:error code|status code|status_code|status|http(?:/[\d.]+)?|error)[\"']?\s*[:=]?\s*[(\[]?([45]\d\d)\b"
    r"|\(([45]\d\d)\)[: ]|[\"'](?:code|status_code)[\"']\s*:\s*[\"']?([45]\d\d)\b",
    re.IGNORECASE,
)
_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,200})</title>", re.IGNORECASE)


@dataclass(slots=True)
class Symptoms:
    """The evidence collected from one error."""

    provider: str = ""
    status: int | None = None
    codes: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    retry_after: float | None = None
    used: int | None = None
    limit: int | None = None
    unreachable: str = ""
    """The name of the exception if there was no response at all."""

    def message(self) -> str:
        """Join the texts, without repetition."""
        given: list[str] = []
        for text in self.texts:
            if text and not any(text in other for other in given):
                given.append(text)
        return ": ".join(given)


def read_text(text: str, into: Symptoms) -> None:
    """Read a message, JSON, or an SSE line with JSON."""
    text = text.strip()
    if len(text) > _LENGTH:
        text = f"{text[: _LENGTH * 3 // 4]} ... {text[-_LENGTH // 4 :]}"
    start = text.removeprefix("data:").lstrip() if text.startswith("data:") else text
    if start.startswith(("{", "[")):
        body = _parsed(start)
        if body is not None:
            read_body(body, into)
            return
    if start.startswith("<"):
        title = _TITLE.search(text)
        text = title.group(1).strip() if title is not None else text
    if not text:
        return
    into.texts.append(text)
    if "'" in text or '"' in text:
        into.codes.extend(term for term in _LABELLED.findall(text) if term not in _NOT_CODES)
    if "_" in text:
        into.codes.extend(_SNAKE.findall(text))
    into.codes.extend(_CAMEL.findall(text))
    if into.status is None and _MAYBE_STATUS.search(text) is not None:
        found = _STATUS_IN_TEXT.search(text)
        if found is not None:
            into.status = int(next(group for group in found.groups() if group))


def read_body(body: object, into: Symptoms, depth: int = 0) -> None:
    """Read a body; texts and the codes inside them come before the codes of other fields."""
    if isinstance(body, bytes | bytearray):
        body = bytes(body).decode("utf-8", "replace")
    if isinstance(body, str):
        read_text(body, into)
    elif isinstance(body, Mapping):
        if depth < _DEPTH:
            _read_mapping(cast("Mapping[object, object]", body), into, depth)
    elif isinstance(body, list | tuple) and depth < _DEPTH:
        for piece in cast("Iterable[object]", body):
            read_body(piece, into, depth + 1)


def _read_mapping(body: Mapping[object, object], into: Symptoms, depth: int) -> None:
    fields = {str(key).lower(): value for key, value in body.items()}
    for key in _TEXT_KEYS:
        value = fields.get(key)
        if isinstance(value, str):
            read_text(value, into)
    for key, value in fields.items():
        if isinstance(value, Mapping | list | tuple):
            read_body(cast("object", value), into, depth + 1)
        elif isinstance(value, str):
            _read_text_field(key, value, into)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _read_number(key, value, into)


def _read_text_field(key: str, value: str, into: Symptoms) -> None:
    if key in _WAIT_KEYS:
        into.retry_after = read_span(value) if into.retry_after is None else into.retry_after
    elif key in _CODE_KEYS and value and value not in _NOT_CODES:
        if value.isdecimal() and len(value) < 16 and key in _STATUS_KEYS:
            _read_number(key, int(value), into)
        else:
            into.codes.append(value)


def _read_number(key: str, value: float, into: Symptoms) -> None:
    if not 0 <= value < _LARGE:  # no status and no count; also excludes NaN
        return
    if key in _WAIT_KEYS:
        into.retry_after = float(value) if into.retry_after is None else into.retry_after
    elif key == "n_prompt_tokens":
        into.used = int(value)
    elif key == "n_ctx":
        into.limit = int(value)
    elif key in _STATUS_KEYS or key in _CODE_KEYS:
        if into.status is None and 400 <= value < 600:
            into.status = int(value)
        into.codes.append(str(int(value)))


def read_headers(headers: object, into: Symptoms) -> None:
    """Read headers from a mapping (as client libraries have) or from pairs; the first of equal names is kept."""
    if isinstance(headers, Mapping):
        pairs: Iterable[object] = cast("Mapping[object, object]", headers).items()
    else:
        pairs = cast("list[object]", headers) if isinstance(headers, list | tuple) else ()
    for pair in pairs:
        if isinstance(pair, tuple | list) and len(cast("list[object]", pair)) == 2:
            name, value = cast("tuple[object, object]", pair)
            into.headers.setdefault(_header_text(name).lower(), _header_text(value))


def _header_text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _parsed(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None
