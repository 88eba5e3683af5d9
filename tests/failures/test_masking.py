"""A key that a provider echoes is in no part of a failure."""

from __future__ import annotations

import pytest

from segue.failures.classify import classify
from segue.failures.masking import mask_keys

ECHOES = {
    "Incorrect API key provided: sk-proj-aB3dE6gH9jK2.": "sk-proj-aB3dE6gH9jK2",
    "Incorrect API key provided: sk-planted-secret-key": "sk-planted-secret-key",
    "Authentication Fails, Your api key: abcdef0123456789 is invalid": "abcdef0123456789",
    "invalid header Authorization: Bearer abcDEF123456": "abcDEF123456",
    '{"error": {"message": "Bearer eyJhbGciOiJI.eyJzdWIiOiIx.c2ln is expired"}}': "eyJhbGciOiJI",
    "API key AIzaSyA1234567890abcdefghijk not valid": "AIzaSyA1234567890abcdefghijk",
    "Post https://example.test/v1?key=a1b2c3d4e5f6&alt=sse failed": "a1b2c3d4e5f6",
    "The AWS Access Key Id AKIAIOSFODNN7EXAMPLE does not exist": "AKIAIOSFODNN7EXAMPLE",
    "bad key gsk_Ab12Cd34Ef56Gh78": "gsk_Ab12Cd34Ef56Gh78",
    "bad key xai-Ab12Cd34Ef56Gh78": "xai-Ab12Cd34Ef56Gh78",
    "bad token hf_Ab12Cd34Ef56Gh78": "hf_Ab12Cd34Ef56Gh78",
    "x-api-key: 'ZZZtopsecret99'": "ZZZtopsecret99",
    "{'api_key': 'ZZZtopsecret99'}": "ZZZtopsecret99",
}


@pytest.mark.parametrize(("text", "key"), ECHOES.items())
def test_a_key_is_masked_everywhere(text: str, key: str) -> None:
    failure = classify(text, status=401)
    assert key not in repr(failure)
    assert "***" in failure.message
    assert key not in repr(classify(ValueError(text)))


@pytest.mark.parametrize(
    "text",
    [
        "Your api key is missing",
        "API key: required",
        "Missing bearer authentication in header",
        "request reached the max_tokens limit of 1024 tokens",
        "rs_0679876543 not found",
        "Invalid 'input[3].call_id': string too long",
        "model: claude-opus-4-5-20251101",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert mask_keys(text) == text
