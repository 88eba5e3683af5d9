"""Replies that are none, told in our words: an error under a good status, a web page, a redirection, nonsense.

Facts this file rests on:
- Gateways answer 200 and put the error into the body, in any provider's form.     (MiniMax `base_resp`; issues, 2026)
- An address without its `/v1` answers 200 with the web page of whatever is served there.    (LM Studio, Open WebUI)
- Who follows a redirection gives what was said, and the key, to whoever is named there.                 (our choice)
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
"""Characters of a page's words."""


def explain_error(body: str, head: Head, provider: str) -> Failure:
    """Say what a reply means whose status is not a good one."""
    if head.status < 400:
        there = head.headers.get("location") or "an address that it does not tell"
        text = f"the server sends us on to {there}, which is not followed: give that `base_url`, if it is right"
        return Failure(
            kind=FailureKind.NOT_FOUND,
            provider=provider,
            status=head.status,
            evidence=f"status {head.status}",
            message=text,
        )
    return classify(parse_body(body.encode()), provider=provider, status=head.status, headers=head.headers)


def explain_document(body: str, head: Head, provider: str, error: DecodeError) -> Failure:
    """Say what a reply with a good status means that cannot be read: `error` says why."""
    parsed = parse_body(body.encode())
    if isinstance(parsed, Mapping):
        fields = cast("Mapping[str, object]", parsed)
        verdict = classify(fields, provider=provider, headers=head.headers)
        if "error" in fields or verdict.kind != FailureKind.UNKNOWN:
            return verdict
    kind, evidence, text = FailureKind.SERVER, "the body of the reply", f"the reply cannot be read: {error}"
    if is_page(head.headers):
        page = classify(body).message[:_SHOWN]
        text = f"a web page came and no reply, is `base_url` right? It says: {page}"
        kind, evidence = FailureKind.NOT_FOUND, "the type of the reply"
    return Failure(kind=kind, provider=provider, status=head.status, evidence=evidence, message=text)
