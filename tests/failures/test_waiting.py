"""The time to wait: headers before fields before the message, compared only with the date of the response."""

from __future__ import annotations

import pytest

from segue.failures.classify import classify

DATE = "Sun, 15 Nov 2026 12:00:00 GMT"
HEADERS = {
    "seconds": ({"retry-after": "20"}, 20.0),
    "a fraction": ({"retry-after": "1.5"}, 1.5),
    "milliseconds first": ({"retry-after-ms": "629", "retry-after": "1"}, 0.629),
    "names in any case": ({"Retry-After": "3"}, 3.0),
    "a date, from the reply's own": ({"retry-after": "Sun, 15 Nov 2026 12:01:30 GMT", "date": DATE}, 90.0),
    "a date that is past": ({"retry-after": "Sun, 15 Nov 2026 11:00:00 GMT", "date": DATE}, 0.0),
    "a date without a clock": ({"retry-after": "Sun, 15 Nov 2026 12:01:30 GMT"}, None),
    "a span": ({"x-ratelimit-reset-tokens": "6m0s"}, 360.0),
    "the span of the resource that ran out": (
        {
            "x-ratelimit-reset-requests": "1h2m3s",
            "x-ratelimit-remaining-requests": "5",
            "x-ratelimit-reset-tokens": "20ms",
            "x-ratelimit-remaining-tokens": "0",
        },
        0.02,
    ),
    "two spans without a remainder": (
        {"x-ratelimit-reset-requests": "1h", "x-ratelimit-reset-tokens": "20ms"},
        None,
    ),
    "retry-after before any reset": ({"x-ratelimit-reset-tokens": "6m0s", "retry-after": "2"}, 2.0),
    "Unix seconds": ({"x-ratelimit-reset": "1794744060", "date": DATE}, 60.0),
    "Unix milliseconds": ({"X-RateLimit-Reset": "1794744005500", "date": DATE}, 5.5),
    "Unix time without a clock": ({"x-ratelimit-reset": "1794744060"}, None),
    "a small number is a span": ({"x-ratelimit-reset": "12"}, 12.0),
    "a moment in RFC 3339": (
        {
            "anthropic-ratelimit-tokens-reset": "2026-11-15T12:00:30Z",
            "anthropic-ratelimit-tokens-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-11-15T13:00:00Z",
            "anthropic-ratelimit-requests-remaining": "7",
            "date": DATE,
        },
        30.0,
    ),
    "nonsense": ({"retry-after": "soon", "retry-after-ms": "nan", "x-ratelimit-reset": "-1"}, None),
    "a month nobody knows": ({"retry-after": "Sun, 15 Foo 2026 12:00:00 GMT", "date": DATE}, None),
}
WORDS = {
    "Please try again in 6m0s.": 360.0,
    "Please try again in 1.4s. Visit the console to learn more.": 1.4,
    "Please try again in 629ms": 0.629,
    "Please retry in 34.074824224s.": 34.074824,
    "Rate limit reached for this model. Please wait 12 seconds before retrying.": 12.0,
    "Please retry after 26 seconds.": 26.0,
    "Try again in about 5 hours": 18000.0,
    "Try again in 1 hour and 2 minutes": 3720.0,
    "Your limit resets in 3 days": 259200.0,
    "'retryDelay': '34s'": 34.0,
    "retry-after: 7": 7.0,
    "rate limit of 5 requests per 10 seconds reached": None,
    "Please wait before trying again.": None,
    "please try again later": None,
}


@pytest.mark.parametrize(("headers", "seconds"), HEADERS.values(), ids=HEADERS.keys())
def test_the_wait_is_read_from_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert classify("", status=429, headers=headers).retry_after == seconds
    assert classify("", status=429, headers=list(headers.items())).retry_after == seconds  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("text", "seconds"), WORDS.items())
def test_the_wait_is_read_from_a_message(text: str, seconds: float | None) -> None:
    assert classify(text, status=429).retry_after == seconds


def test_google_sends_the_wait_in_its_details() -> None:
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    body = {"error": {"code": 429, "message": "Slow", "status": "RESOURCE_EXHAUSTED", "details": [retry]}}
    assert classify(body).retry_after == 34.0


def test_a_daily_quota_of_google_is_not_a_rate_limit() -> None:
    def body(quota: str) -> dict[str, object]:
        failed = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
        said = "You exceeded your current quota, please check your plan and billing details."
        error = {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED", "details": [failed]}
        return {"error": error}

    assert classify(body("GenerateRequestsPerDayPerProjectPerModel-FreeTier")).kind == "quota"
    assert classify(body("GenerateContentInputTokensPerModelPerMinute-FreeTier")).kind == "rate_limit"


def test_codex_sends_the_wait_in_a_field() -> None:
    failure = classify({"error": {"type": "usage_limit_reached", "message": "Reached", "resets_in_seconds": 1234}})
    assert (failure.kind, failure.retry_after) == ("quota", 1234.0)


def test_headers_come_before_the_message() -> None:
    assert classify("try again in 9s", status=429, headers={"retry-after": "2"}).retry_after == 2.0


def test_the_first_of_two_headers_with_one_name_counts():
    assert classify("slow down", status=429, headers=[("Retry-After", "5"), ("retry-after", "9")]).retry_after == 5  # pyright: ignore[reportArgumentType]
