"""The protocol keeps every law of segue's conformance kit."""

from __future__ import annotations

import pytest
from segue_cohere_v1.protocol import PROTOCOL

from segue.testing import protocol_cases


@pytest.mark.parametrize("case", protocol_cases(PROTOCOL), ids=str)
def test_conformance(case):
    case()
