"""Exchanges written for these tests, checked by an independent validator; `test_exchanges` tests every protocol."""

from __future__ import annotations

import pytest

from protocols.exchanges import VSCODE
from protocols.vscode_lm.endpoints import EDITOR
from protocols.vscode_lm.referee import complaints
from segue.protocols.vscode_lm.protocol import PROTOCOL as CODEC


@pytest.mark.parametrize("case", ["text", "calls-and-results"])
def test_a_request_is_of_the_form(case):
    body = VSCODE.part(case, "request")
    assert CODEC.check(body, EDITOR) == []
    assert complaints({key: value for key, value in body.items() if key != "options"}) == []
