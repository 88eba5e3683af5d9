"""For other people's tests: the conformance kit for protocols.

    from segue.testing import check_protocol
    from my_package import RECORD

    def test_conformance():
        check_protocol(RECORD)

Needs no package but segue: histories are made from seeds (`segue.testing.histories`), so a failure names the seed that
repeats it. Hypothesis is not needed, and a test that has it can draw the seeds itself (`HISTORY_LAWS`).
"""

from __future__ import annotations

from segue.testing.protocol_laws import (
    HISTORY_LAWS,
    SAMPLE_LAWS,
    BrokenLaw,
    Case,
    HistoryLaw,
    SampleLaw,
    check_protocol,
    protocol_cases,
)

__all__ = [
    "HISTORY_LAWS",
    "SAMPLE_LAWS",
    "BrokenLaw",
    "Case",
    "HistoryLaw",
    "SampleLaw",
    "check_protocol",
    "protocol_cases",
]
