"""Every row matches its own sample, and `classify` gives the kind of the row."""

from __future__ import annotations

import re

import pytest

from segue.failures.classify import classify
from segue.failures.codes import CODES, DECISIVE_STATUSES, NUMBERED_CODES, STATUSES, VAGUE_CODES
from segue.failures.failure import FailureKind
from segue.failures.history import HISTORY_FORMS, SIGNATURES
from segue.failures.numbers import FORMS, read_numbers
from segue.failures.overflow import CERTAIN, LOOSE, STRICT
from segue.failures.overflow_false_positives import OVERFLOW_FALSE_POSITIVES
from segue.failures.row import Row, find_row
from segue.failures.wordings import GENERATIONS, QUOTAS, WORDINGS

TABLES = {
    "certain": CERTAIN,
    "strict": STRICT,
    "loose": LOOSE,
    "false positives": OVERFLOW_FALSE_POSITIVES,
    "signatures": SIGNATURES,
    "generations": GENERATIONS,
    "structures": HISTORY_FORMS,
    "quotas": QUOTAS,
    "wordings": WORDINGS,
}
ROWS = [pytest.param(row, id=f"{name}: {row.sample[:60]}") for name, rows in TABLES.items() for row in rows]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_finds_its_own_sample(row: Row) -> None:
    found = find_row((row,), row.sample.lower(), row.scope[0] if row.scope else "")
    assert found is not None
    assert row.source


@pytest.mark.parametrize("row", ROWS)
def test_a_sample_is_classified_as_in_its_row(row: Row) -> None:
    failure = classify(row.sample, provider=row.scope[0] if row.scope else None)
    assert failure.kind == row.kind, failure.evidence
    assert failure.message == row.sample


@pytest.mark.parametrize(
    "row", [row for rows in TABLES.values() for row in rows if row.scope], ids=lambda row: row.sample
)
def test_a_row_of_one_provider_does_not_apply_to_others(row: Row) -> None:
    assert classify(row.sample, provider="somebody-else").kind != row.kind
    assert classify(row.sample).kind != row.kind


@pytest.mark.parametrize(("form", "sample", "numbers"), [(form, text, given) for _, form, _, text, given in FORMS])
def test_a_form_of_numbers_reads_its_sample(
    form: re.Pattern[str], sample: str, numbers: tuple[int | None, int | None]
) -> None:
    assert form.search(sample)
    assert read_numbers(sample) == numbers


@pytest.mark.parametrize("key", ["code", "type", "status"])
def test_a_code_decides_wherever_it_stands(key: str) -> None:
    for code, kind in CODES.items():
        failure = classify({"error": {"message": "an unknown text", key: code}}, status=400)
        assert (failure.kind, failure.evidence) == (kind, f"code {code}")


def test_evidence_quotes_the_deciding_part_of_the_message() -> None:
    assert classify("prompt is too long: 9 tokens > 8").evidence.startswith("message: ")


@pytest.mark.parametrize(("code", "kind"), VAGUE_CODES.items())
def test_a_vague_code_decides_only_if_the_message_does_not(code: str, kind: FailureKind) -> None:
    assert classify({"error": {"message": "an unknown text", "code": code}}).kind == kind
    assert (
        classify({"error": {"message": "prompt is too long: 9 tokens > 8", "code": code}}).kind == FailureKind.OVERFLOW
    )


@pytest.mark.parametrize(
    ("provider", "number", "kind"),
    [(scope[0], number, kind) for scope, kind, numbers in NUMBERED_CODES for number in numbers.split()],
)
def test_a_number_has_a_meaning_only_at_its_provider(provider: str, number: str, kind: FailureKind) -> None:
    body = {"error": {"code": number, "message": "an unknown text"}}
    assert classify(body, provider=provider).kind == kind
    assert classify({**body, "error": {**body["error"], "code": int(number)}}, provider=provider).kind == kind
    assert classify(body, provider="somebody-else", status=400).evidence == "status 400"


@pytest.mark.parametrize(("status", "kind"), {**DECISIVE_STATUSES, **STATUSES}.items())
def test_a_status_without_a_message_is_classified(status: int, kind: FailureKind) -> None:
    for body in ("", b"", None, {}, f"{status} status code (no body)", f"Error code: {status}"):
        failure = classify(body, status=status)
        assert (failure.kind, failure.status) == (kind, status)


@pytest.mark.parametrize(
    "word", ["contextLengthExceeded", "CONTEXT_WINDOW_OVERFLOW", "prompt-too-long", "InputTooLongError"]
)
def test_an_unknown_code_of_an_overflow_is_recognised(word: str) -> None:
    assert classify({"error": {"code": word, "message": "no"}}).kind == FailureKind.OVERFLOW


UNCLEAR = (FailureKind.INVALID_REQUEST, FailureKind.SERVER)


@pytest.mark.parametrize("status", [status for status, kind in STATUSES.items() if kind not in UNCLEAR])
def test_a_status_with_a_meaning_of_its_own_comes_before_a_vague_code(status: int) -> None:
    kinds = {code: classify({"error": {"type": code}}, status=status).kind for code in VAGUE_CODES}
    assert kinds == dict.fromkeys(VAGUE_CODES, STATUSES[status])


def test_a_body_of_too_many_bytes_is_no_overflow_unless_the_message_is_about_the_context() -> None:
    assert classify("Please reduce the length of the messages.", status=400).kind == FailureKind.OVERFLOW
    assert classify("Please reduce the length of the messages.", status=413).kind == STATUSES[413]
    assert classify("prompt is too long: 213462 tokens > 200000 maximum", status=413).kind == FailureKind.OVERFLOW


# -- errors of a provider behind a gateway, lists of models, media -----------------------------------------------------

OPENROUTER = "Provider returned error"
SCHEMA = '{"error": {"message": "Invalid schema for response_format", "type": "invalid_request_error"}}'
KINDS: dict[str, tuple[object, FailureKind]] = {
    "OpenRouter with the error of its provider": (
        {"error": {"message": OPENROUTER, "code": 400, "metadata": {"raw": SCHEMA}}},
        FailureKind.INVALID_REQUEST,
    ),
    "OpenRouter with a status alone": ({"error": {"message": OPENROUTER, "code": 400}}, FailureKind.INVALID_REQUEST),
    "OpenRouter when its provider failed": ({"error": {"message": OPENROUTER, "code": 502}}, FailureKind.SERVER),
    "OpenRouter without a status": ({"error": {"message": OPENROUTER}}, FailureKind.SERVER),
    "DeepSeek's list of models": (
        {
            "error": {
                "message": "The supported API model names are deepseek-v4-pro, but you passed gpt-4o.",
                "type": "invalid_request_error",
                "code": "invalid_request_error",
            }
        },
        FailureKind.NOT_FOUND,
    ),
    **{
        f"media: {text}": ({"error": {"message": text, "code": 400}}, FailureKind.INVALID_HISTORY)
        for text in (
            "Invalid content type. image_url is only supported by certain models.",
            "No endpoints found that support input audio",
            "No endpoints found that support image input",
            "Image input is not enabled for this model",
            "messages[0]: unknown variant `input_audio`, expected `text`",
            "it has a mimeType parameter with value audio/mp3, which is not supported.",
            "Content blocks are expected to be either text or image_url type.",
            "This model doesn't support the video content block that you provided.",
            "messages[0].content must be a string",
            "this model does not support images",
        )
    },
}


@pytest.mark.parametrize(("error", "kind"), KINDS.values(), ids=KINDS.keys())
def test_the_inner_error_decides_and_media_are_one_kind(error, kind):
    assert classify(error).kind == kind
