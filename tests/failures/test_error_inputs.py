"""Exceptions of the official clients, of transports and of ours; bodies, events, and whatever else may come."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue import AssistantMessage, Diagnostic, ErrorEvent, StopReason, UnknownModel
from segue.errors import DecodeError, EmptyConversation, EncodeError, SettingsError
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.protocols.kit.codec import WireError

HEADERS = {"retry-after": "20", "content-type": "application/json"}
TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def reply(status: int, body: object) -> object:
    httpx2 = pytest.importorskip("httpx2")
    return httpx2.Response(
        status, headers=HEADERS, json=body, request=httpx2.Request("POST", "https://example.test/v1")
    )


def openai_error() -> Exception:
    openai = pytest.importorskip("openai")
    inner = {"message": "Slow down", "type": "tokens", "code": "rate_limit_exceeded", "param": None}
    return openai.RateLimitError("Error code: 429", response=reply(429, {"error": inner}), body=inner)


def openai_quota() -> Exception:
    openai = pytest.importorskip("openai")
    inner = {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
    return openai.RateLimitError("Error code: 429", response=reply(429, {"error": inner}), body=inner)


def openai_missing_item() -> Exception:
    openai = pytest.importorskip("openai")
    inner = {"message": "Item with id 'rs_1' not found.", "type": "invalid_request_error", "code": None}
    return openai.NotFoundError("Error code: 404", response=reply(404, {"error": inner}), body=inner)


def openai_in_stream() -> Exception:
    openai = pytest.importorskip("openai")
    httpx2 = pytest.importorskip("httpx2")
    body = {"message": "Overloaded", "type": "server_error", "code": "server_is_overloaded"}
    return openai.APIError("Overloaded", httpx2.Request("POST", "https://example.test"), body=body)


def openai_unreachable() -> Exception:
    openai = pytest.importorskip("openai")
    httpx2 = pytest.importorskip("httpx2")
    return openai.APIConnectionError(request=httpx2.Request("POST", "https://example.test"))


def openai_late() -> Exception:
    openai = pytest.importorskip("openai")
    httpx2 = pytest.importorskip("httpx2")
    return openai.APITimeoutError(request=httpx2.Request("POST", "https://example.test"))


def anthropic_error() -> Exception:
    anthropic = pytest.importorskip("anthropic")
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}
    return anthropic.BadRequestError("Error code: 400", response=reply(400, body), body=body)


def anthropic_overloaded() -> Exception:
    anthropic = pytest.importorskip("anthropic")
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    return anthropic.APIStatusError("Overloaded", response=reply(529, body), body=body)


def google_error() -> Exception:
    errors = pytest.importorskip("google.genai.errors")
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    body = {"error": {"code": 429, "message": "Slow", "status": "RESOURCE_EXHAUSTED", "details": details}}
    return errors.ClientError(429, body)


def aws_throttled() -> Exception:
    exceptions = pytest.importorskip("botocore.exceptions")
    response = {
        "Error": {"Code": "ThrottlingException", "Message": "Too many tokens, please wait before trying again."},
        "ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"retry-after": "20"}},
    }
    return exceptions.ClientError(response, "Converse")


def aws_too_long() -> Exception:
    exceptions = pytest.importorskip("botocore.exceptions")
    response = {
        "Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return exceptions.ClientError(response, "Converse")


def aws_unreachable() -> Exception:
    return pytest.importorskip("botocore.exceptions").EndpointConnectionError(endpoint_url="https://example.test")


def aws_without_credentials() -> Exception:
    return pytest.importorskip("botocore.exceptions").NoCredentialsError()


def mistral_error() -> Exception:
    errors = pytest.importorskip("mistralai.client.errors")
    httpx = pytest.importorskip("httpx2")
    body = {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "code": "3230", "type": "x"}
    raw = httpx.Response(400, headers=HEADERS, json=body, request=httpx.Request("POST", "https://example.test"))
    return errors.SDKError("API error occurred", raw)


def cohere_error() -> Exception:
    core = pytest.importorskip("cohere.core.api_error")
    return core.ApiError(status_code=404, headers=HEADERS, body={"message": "model 'x' not found"})


def ollama_error() -> Exception:
    return pytest.importorskip("ollama").ResponseError(
        '{"error": "model \\"x\\" not found, try pulling it first"}', 404
    )


def ollama_too_long() -> Exception:
    return pytest.importorskip("ollama").ResponseError("the input length exceeds the context length", -1)


def httpx_status() -> Exception:
    httpx2 = pytest.importorskip("httpx2")
    answer = reply(400, {"error": {"message": TOO_LONG}})
    return httpx2.HTTPStatusError("400 Bad Request", request=answer.request, response=answer)  # pyright: ignore[reportAttributeAccessIssue]


def httpx_unread() -> Exception:
    httpx2 = pytest.importorskip("httpx2")
    request = httpx2.Request("POST", "https://example.test")
    answer = httpx2.Response(503, request=request, stream=httpx2.ByteStream(b"..."))
    return httpx2.HTTPStatusError("503 Service Unavailable", request=request, response=answer)


def httpx_stalled() -> Exception:
    return pytest.importorskip("httpx2").ReadTimeout("")


def httpx_broken() -> Exception:
    return pytest.importorskip("httpx2").RemoteProtocolError("peer closed connection")


def caused_by_the_network() -> Exception:
    error = RuntimeError("could not complete")
    error.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    return error


EXCEPTIONS: dict[Callable[[], Exception], tuple[str, int | None, float | None]] = {
    openai_error: ("rate_limit", 429, 20.0),
    openai_quota: ("quota", 429, 20.0),
    openai_missing_item: ("invalid_history", 404, 20.0),
    openai_in_stream: ("overloaded", None, None),
    openai_unreachable: ("network", None, None),
    openai_late: ("network", None, None),
    anthropic_error: ("overflow", 400, 20.0),
    anthropic_overloaded: ("overloaded", 529, 20.0),
    google_error: ("rate_limit", 429, 34.0),
    aws_throttled: ("rate_limit", 429, 20.0),
    aws_too_long: ("overflow", 400, None),
    aws_unreachable: ("network", None, None),
    aws_without_credentials: ("auth", None, None),
    mistral_error: ("invalid_history", 400, 20.0),
    cohere_error: ("not_found", 404, 20.0),
    ollama_error: ("not_found", 404, None),
    ollama_too_long: ("overflow", None, None),
    httpx_status: ("overflow", 400, 20.0),
    httpx_unread: ("overloaded", 503, None),
    httpx_stalled: ("network", None, None),
    httpx_broken: ("network", None, None),
    caused_by_the_network: ("network", None, None),
    lambda: TimeoutError("timed out"): ("network", None, None),
    lambda: ConnectionRefusedError(111, "Connection refused"): ("network", None, None),
    lambda: ValueError("nothing known"): ("unknown", None, None),
    lambda: UnknownModel("no such model", name="x"): ("not_found", None, None),
    lambda: SettingsError("no such rule", key="x"): ("invalid_request", None, None),
    lambda: DecodeError("no reply"): ("server", None, None),
    lambda: EncodeError("not supported"): ("invalid_history", None, None),
    lambda: EmptyConversation("nothing to send"): ("invalid_history", None, None),
}


@pytest.mark.parametrize(
    ("make", "expected"),
    EXCEPTIONS.items(),
    ids=[f"{make.__name__} {number}" for number, make in enumerate(EXCEPTIONS)],
)
def test_an_exception_is_read_by_its_attributes(
    make: Callable[[], Exception], expected: tuple[str, int | None, float | None]
) -> None:
    failure = classify(make())
    assert (failure.kind, failure.status, failure.retry_after) == expected, failure.evidence
    assert failure.message or failure.kind == FailureKind.NETWORK


def test_numbers_are_read_from_an_exception() -> None:
    failure = classify(anthropic_error())
    assert (failure.used, failure.limit, failure.message) == (213462, 200000, TOO_LONG)


def test_an_exception_with_a_failure_is_not_classified_again() -> None:
    known = Failure(kind=FailureKind.QUOTA, message="as it was")

    class RequestFailed(Exception):
        failure = known

    assert classify(RequestFailed("x")) is known
    assert classify(known) is known


BODY = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    "error",
    [
        BODY,
        json.dumps(BODY),
        json.dumps(BODY).encode(),
        bytearray(json.dumps(BODY).encode()),
        f"data: {json.dumps(BODY)}",
        [BODY],
        f"Error code: 529 - {BODY}",
        WireError(status=529, type="overloaded_error", message="Overloaded"),
        "overloaded_error: Overloaded",
    ],
    ids=["mapping", "text", "bytes", "bytearray", "SSE line", "list", "repr in a text", "wire error", "our own text"],
)
def test_a_body_may_have_any_type(error: object) -> None:
    failure = classify(error)
    assert failure.kind == FailureKind.OVERLOADED
    assert "Overloaded" in failure.message


CODED = {
    "a picture that could not be fetched": ("invalid_image_url", "Error while downloading https://a.test/b.png.", 400),
    "a picture that is none": ("invalid_image_format", "The server had an error with this picture.", 400),
    "a picture of too many bytes": ("image_file_too_large", "It failed.", None),
}


@pytest.mark.parametrize(("code", "words", "status"), CODED.values(), ids=CODED.keys())
def test_a_code_about_an_image_comes_before_the_message(code: str, words: str, status: int | None) -> None:
    failure = classify({"error": {"message": words, "type": "invalid_request_error", "code": code}}, status=status)
    expected = FailureKind.PAYLOAD_TOO_LARGE if "large" in code else FailureKind.INVALID_REQUEST
    assert (failure.kind, failure.evidence) == (expected, f"code {code}")


def test_every_code_that_openai_fails_a_reply_with_is_known() -> None:
    types = pytest.importorskip("openai.types.responses.response_error")
    codes = get_args(types.ResponseError.model_fields["code"].annotation)
    failed = {code: classify({"error": {"code": code, "message": "It failed."}}) for code in codes}
    assert len(codes) > 20
    assert [code for code, failure in failed.items() if failure.kind == FailureKind.UNKNOWN] == []


def test_an_error_event_is_read_with_the_other_fields_of_its_error() -> None:
    details = {"code": "context_length_exceeded", "status": 400}
    message = AssistantMessage(
        content=(),
        provider="openrouter",
        stop_reason=StopReason.ERROR,
        error_message="Provider returned error",
        diagnostics=(Diagnostic(type="provider_error", details=details),),
    )
    failure = classify(ErrorEvent(reason=StopReason.ERROR, message=message))
    assert (failure.kind, failure.provider, failure.status) == (FailureKind.OVERFLOW, "openrouter", 400)


@pytest.mark.parametrize(
    ("raw", "kind"),
    {
        "refusal": "refused",
        "content_filter": "refused",
        "SAFETY": "refused",
        "model_context_window_exceeded": "overflow",
        "insufficient_system_resource": "overloaded",
        "network_error": "network",
        "MALFORMED_FUNCTION_CALL": "server",
    }.items(),
)
def test_a_stop_reason_is_evidence(raw: str, kind: str) -> None:
    message = AssistantMessage(content=(), stop_reason=StopReason.ERROR, raw_stop_reason=raw)
    assert classify(message).kind == kind


def test_arguments_override_the_body() -> None:
    failure = classify({"error": {"code": 500, "message": "no"}}, provider="Groq", status=429)
    assert (failure.kind, failure.provider, failure.status) == (FailureKind.RATE_LIMIT, "groq", 429)


@example({"code": "²"})  # a digit, and no number
@example({"code": "1" * 5000})
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["error", "code", "message", "raw", "x"]), inner)
        ),
    )
)
def test_nothing_makes_it_raise(error: object) -> None:
    first = classify(error, provider="groq", headers={"retry-after": str(error)})
    assert first == classify(error, provider="groq", headers={"retry-after": str(error)})


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"code": float("inf"), "status": float("nan"), "retry_after": float("inf")}},
        {"error": {"code": 10**400, "n_ctx": 10**400, "retry_after": -1}},
        f"prompt is too long: {'9' * 400} tokens > {'8' * 400} maximum, try again in {'7' * 400}s",
    ],
    ids=["no numbers", "huge numbers", "huge numbers in words"],
)
def test_a_number_beyond_belief_is_no_wait(error: object) -> None:
    assert classify(error).retry_after is None


def test_a_body_that_holds_itself_ends() -> None:
    body: dict[str, object] = {"message": "x"}
    body["error"] = body
    assert classify(body).kind == FailureKind.UNKNOWN


def test_a_page_is_reduced_to_its_title() -> None:
    page = f"<html><head><title>502 Bad Gateway</title></head><body>{'x' * 100_000}</body></html>"
    assert classify(page).message == "502 Bad Gateway"
    assert len(classify("word " * 100_000).message) < 9000
