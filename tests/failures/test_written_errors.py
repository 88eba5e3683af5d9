"""`encode_error` writes a failure in the format of a protocol; `classify` reads it back as the same kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import segue
from protocols.every_protocol import all_codecs
from segue.failures.failure import Failure, FailureKind

NAMES = [codec.name for codec in all_codecs() if codec.encode_error is not None]
KINDS = [kind for kind in FailureKind if kind != FailureKind.UNKNOWN]
OBSERVED = [json.loads(line) for line in Path(__file__).with_name("observed_errors.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_read_back_whatever_the_message_says(name, kind):
    for message in ("", "boom", "429 Too Many Requests", "context_length_exceeded", "Invalid API key", "no funds"):
        status, headers, body = segue.encode_error(Failure(kind=kind, message=message), protocol=name)
        assert segue.classify(body, status=status, headers=headers).kind == kind, message
        assert json.loads(json.dumps(body)) == body


@pytest.mark.parametrize("name", NAMES)
def test_an_error_that_a_provider_sent_keeps_its_kind_on_every_protocol(name):
    for row in OBSERVED[::7]:
        failure = segue.classify(row["text"], provider=row.get("provider"), status=row.get("status"))
        if failure.kind != FailureKind.UNKNOWN:
            status, headers, body = segue.encode_error(failure, protocol=name)
            assert segue.classify(body, status=status, headers=headers).kind == failure.kind, row["text"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_status_that_asks_to_wait_says_how_long(name, kind):
    status, headers, _ = segue.encode_error(Failure(kind=kind, message="x"), protocol=name)
    is_final = kind == FailureKind.QUOTA
    assert ("retry-after" in headers) is (status in (429, 503, 529) and not is_final)
    assert headers.get("x-should-retry") == ("false" if is_final else None)
    status, headers, _ = segue.encode_error(Failure(kind=kind, message="x", retry_after=1.2), protocol=name)
    assert headers.get("retry-after", "2") == "2"


@pytest.mark.parametrize(("status", "text"), [(401, "Invalid API key."), (403, "Permission denied.")])
def test_a_key_is_called_invalid_only_where_it_is_known_to_be(status, text):
    written = segue.encode_error(Failure(kind=FailureKind.AUTH, status=status, message=""), protocol="openai-chat")
    assert (written.status, json.loads(json.dumps(written.body))["error"]["message"]) == (status, text)


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_of_no_known_kind_keeps_its_text(name):
    text = "the flux capacitor is empty; refill it"
    _, _, body = segue.encode_error(Failure(kind=FailureKind.UNKNOWN, message=text), protocol=name)
    assert text in json.dumps(body)
    codec = next(codec for codec in all_codecs() if codec.name == name)
    frames = segue.stream_encoder(protocol=name, model=codec.example).fail(
        Failure(kind=FailureKind.UNKNOWN, message=text)
    )
    assert text in str(frames)


@pytest.mark.parametrize("name", NAMES)
def test_an_overflow_has_its_numbers(name):
    failure = Failure(kind=FailureKind.OVERFLOW, message="too long", used=210_000, limit=200_000)
    status, headers, body = segue.encode_error(failure, protocol=name)
    found = segue.classify(body, status=status, headers=headers)
    assert (found.kind, found.used, found.limit) == (FailureKind.OVERFLOW, 210_000, 200_000)


WORDS: dict[str, Any] = {
    "anthropic-messages": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    },
    "openai-chat": {
        "error": {
            "message": "This model's maximum context length is 200000 tokens. However, your messages resulted in "
            "210000 tokens. Please reduce the length of the messages.",
            "type": "invalid_request_error",
            "param": None,
            "code": "context_length_exceeded",
        }
    },
    "google-genai": {
        "error": {
            "code": 400,
            "message": "The input token count (210000) exceeds the maximum number of tokens allowed (200000).",
            "status": "INVALID_ARGUMENT",
        }
    },
    "google-interactions": {
        "error": {
            "code": "invalid_argument",
            "message": "The input token count (210000) exceeds the maximum number of tokens allowed (200000).",
        }
    },
}


@pytest.mark.parametrize("name", WORDS)
def test_an_overflow_has_the_words_that_clients_recognise(name):
    failure = Failure(kind=FailureKind.OVERFLOW, message="x", used=210_000, limit=200_000)
    assert segue.encode_error(failure, protocol=name).body == WORDS[name]


def test_bedrock_names_the_type_in_a_header():
    failure = Failure(kind=FailureKind.RATE_LIMIT, message="slow")
    _, headers, body = segue.encode_error(failure, protocol="bedrock-converse")
    assert headers["x-amzn-errortype"] == "ThrottlingException"
    assert set(body) == {"message"}


def test_the_time_to_wait_is_in_the_text_of_a_responses_stream():
    encoder = segue.stream_encoder(protocol="openai-responses")
    failure = Failure(kind=FailureKind.RATE_LIMIT, message="Rate limit reached.", retry_after=1.5)
    frame: Any = encoder.fail(failure)[-1]
    assert frame["response"]["error"] == {
        "code": "rate_limit_exceeded",
        "message": "Rate limit reached. Please try again in 1.5s.",
    }


@pytest.mark.parametrize("kind", ["overloaded", "server", "network"])
def test_what_may_pass_is_a_server_error_in_a_responses_stream(kind):
    encoder = segue.stream_encoder(protocol="openai-responses")
    frame: Any = encoder.fail(Failure(kind=FailureKind(kind), message="x"))[-1]
    assert frame["response"]["error"]["code"] == "server_error"
