"""Errors that do not look like errors: status 200 with an error body, a web page, a redirect, an unreadable body.

Facts:
- Gateways answer 200 and put the error into the body, in any provider's format.   (MiniMax `base_resp`; issues, 2026)
- A base URL without its `/v1` answers 200 with the web page of the server.           (LM Studio, Open WebUI)
- Following a redirect would send the conversation and the key to another server.                      (our choice)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.client.flow.reading import is_page, parse_body
from segue.client.flow.steps import Head
from segue.errors import DecodeError
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind

_SHOWN: Final = 200
"""Characters of a web page's text that the message quotes."""


def explain_error(body: str, head: Head, provider: str) -> Failure:
    """Describe a reply with a status of 300 or more."""
    if head.status < 400:
        location = head.headers.get("location") or "an address that it does not name"
        text = f"the server redirects to {location}; redirects are not followed. If that address is right, set base_url"
        return Failure(
            kind=FailureKind.NOT_FOUND,
            provider=provider,
            status=head.status,
            evidence=f"status {head.status}",
            message=text,
        )
    return classify(parse_body(body.encode()), provider=provider, status=head.status, headers=head.headers)


def explain_document(body: str, head: Head, provider: str, error: DecodeError) -> Failure:
    """Describe a reply with a good status that cannot be decoded because of `error`."""
    parsed = parse_body(body.encode())
    if isinstance(parsed, Mapping):
        fields = cast("Mapping[str, object]", parsed)
        verdict = classify(fields, provider=provider, headers=head.headers)
        if "error" in fields or verdict.kind != FailureKind.UNKNOWN:
            return verdict
    kind, evidence, text = FailureKind.SERVER, "the body of the reply", f"the reply cannot be read: {error}"
    if is_page(head.headers):
        page = classify(body).message[:_SHOWN]
        text = f"the server sent a web page instead of a reply; check base_url. Text of the page: {page}"
        kind, evidence = FailureKind.NOT_FOUND, "the content type of the reply"
    return Failure(kind=kind, provider=provider, status=head.status, evidence=evidence, message=text)
