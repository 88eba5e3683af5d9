"""Exchanges written for these tests, checked by an independent validator; `test_exchanges` tests every protocol."""

from __future__ import annotations

import pytest

from protocols.exchanges import PLAIN_TEXT
from protocols.plain_text.endpoints import ANYTHING
from protocols.plain_text.referee import complaints
from segue.protocols.plain_text.protocol import PROTOCOL as CODEC


@pytest.mark.parametrize("case", ["text"])
def test_a_request_is_of_the_form(case):
    body = PLAIN_TEXT.part(case, "request")
    assert CODEC.check(body, ANYTHING) == []
    assert complaints({key: value for key, value in body.items() if key != "options"}) == []
