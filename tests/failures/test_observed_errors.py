"""Observed error messages of providers, besides the samples of the rows.

`observed_errors.jsonl` holds wordings as users of public projects reported them (numbers and names changed) and
paraphrases of our own. The rows were widened until all of them passed, so this guards what is known; it does not
measure new texts.
`used` and `limit` are looked at where a line names a provider; a paraphrase only has to be of the right kind.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from protocols.traffic import exchanges, read
from segue import AssistantMessage, StopReason
from segue.failures.classify import classify, is_context_overflow
from segue.failures.failure import FailureKind

HERE = Path(__file__).parent
OBSERVED = [json.loads(line) for line in (HERE / "observed_errors.jsonl").read_text("utf-8").splitlines()]


def test_every_wording_is_understood() -> None:
    wrong = []
    for line in OBSERVED:
        failure = classify(line["text"], provider=line.get("provider"), status=line.get("status"))
        given = [failure.kind, failure.used, failure.limit]
        expected = [line["kind"], line.get("used"), line.get("limit")]
        if given != expected if "provider" in line else failure.kind != line["kind"]:
            wrong.append((line["text"], given, expected, failure.evidence))
    assert wrong == []


SAID_BY_WORDS = [line for line in OBSERVED if line.get("status") not in {413, 429} or line["kind"] == "overflow"]
"""A message has only the text, so errors that are recognised by their status are excluded."""


def test_a_failed_message_with_such_a_text_answers_the_overflow_question() -> None:
    wrong = []
    for line in SAID_BY_WORDS:
        message = AssistantMessage(
            content=(), provider=line.get("provider") or "", stop_reason=StopReason.ERROR, error_message=line["text"]
        )
        if is_context_overflow(message) != (line["kind"] == "overflow"):
            wrong.append((line["text"], line["kind"]))
    assert wrong == []


def test_every_kind_was_observed() -> None:
    assert {line["kind"] for line in OBSERVED} == set(FailureKind)


# -- labelled texts and recordings, where they are at hand -------------------------------------------------------------

LABELLED = HERE.parents[2] / "shared" / "facts" / "error_messages.json"
KINDS = {
    "context_overflow": {"overflow"},
    "model_not_found": {"not_found"},
    "rate_limit": {"rate_limit", "quota"},
    "invalid_history": {"invalid_history", "opaque_rejected"},
    "invalid_request": {"invalid_request"},
    "unsupported_parameter": {"invalid_request"},
    "output_limit": {"invalid_request"},
    "overloaded": {"overloaded"},
}
"""The categories of the labels. They do not distinguish a rate limit from a quota, nor a signature from a structure."""
RELABELLED = {
    "tool call validation failed": "server",
    "model did not call a tool": "server",
}
"""Labelled as errors of the history. They are about the reply that Groq's model generated: the next attempt may succeed
(pydantic-ai #2774 and #4354)."""


@pytest.mark.skipif(not LABELLED.exists(), reason="on labelled error messages (no ../shared/facts)")
@pytest.mark.parametrize("with_provider", [True, False], ids=["its provider known", "its provider unknown"])
def test_every_labelled_text_is_right(*, with_provider: bool) -> None:
    wrong = []
    for row in json.loads(LABELLED.read_text("utf-8")):
        failure = classify(row["message"], provider=row["provider"] if with_provider else None, status=row["status"])
        is_overflow = failure.kind == FailureKind.OVERFLOW
        relabelled = {kind for text, kind in RELABELLED.items() if text in row["message"]}
        if failure.kind not in (relabelled or KINDS[row["category"]]) or is_overflow != row["context_overflow"]:
            wrong.append((row["message"], row["category"], failure.kind, failure.evidence))
    assert wrong == []


REFUSED = [row for row in exchanges() if row["status"] >= 400]


@pytest.mark.traffic
@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["file"])
def test_a_recorded_error_is_classified(row: dict[str, Any]) -> None:
    body = read(row["file"])["response"]
    failure = classify(body, provider=row["provider"], status=row["status"])
    caller_can_act = {"invalid_request", "invalid_history", "not_found", "quota"}
    assert failure.kind in caller_can_act, failure.evidence
    assert failure.message == row["error"]
