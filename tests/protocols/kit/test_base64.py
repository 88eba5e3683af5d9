"""Base64 in other alphabets and without padding is normalised; what is not base64 stays as received."""

from __future__ import annotations

from typing import Final

import pytest

from segue.protocols.kit.reading import standard_base64

CASES: Final[dict[str, tuple[str, str]]] = {
    "standard": ("AAA=", "AAA="),
    "empty": ("", ""),
    "one padding character missing": ("AAA", "AAA="),
    "two padding characters missing": ("AA", "AA=="),
    "one of two padding characters missing": ("AA=", "AA=="),
    "the URL alphabet": ("A-_A", "A+/A"),
    "the URL alphabet without padding": ("-_8", "+/8="),
    "a length that base64 cannot have": ("x", "x"),
    "a length that base64 cannot have, with padding": ("AAAAA==", "AAAAA=="),
    "more padding than the length needs": ("AAA==", "AAA=="),
    "a character of no alphabet": ("x!", "x!"),
    "a character of no alphabet beside the URL alphabet": ("x-!_", "x-!_"),
    "a character outside ASCII": ("é", "é"),
    "padding in the middle": ("A=AAA", "A=AAA"),
}


@pytest.mark.parametrize(("received", "expected"), CASES.values(), ids=CASES.keys())
def test_base64_is_normalised_and_everything_else_is_kept(received: str, expected: str):
    assert standard_base64(received) == expected
