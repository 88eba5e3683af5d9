"""The conformance kit: tests for the authors of protocols and of formats of stored histories.

    from segue.testing import check_protocol
    from my_package import RECORD

    def test_conformance():
        check_protocol(RECORD)

The kit needs no other package. Histories are generated from seeds (`segue.testing.histories`), and a failure names the
seed that reproduces it. A test with Hypothesis can draw the seeds itself and call the functions of `HISTORY_LAWS`.
"""

from __future__ import annotations

from segue.testing.broken_law import BrokenLaw, Case
from segue.testing.format_laws import check_format, format_cases
from segue.testing.growing import assert_continues
from segue.testing.history_laws import HISTORY_LAWS, HistoryLaw
from segue.testing.protocol_laws import check_protocol, protocol_cases
from segue.testing.sample_laws import SAMPLE_LAWS, SampleLaw

__all__ = [
    "HISTORY_LAWS",
    "SAMPLE_LAWS",
    "BrokenLaw",
    "Case",
    "HistoryLaw",
    "SampleLaw",
    "assert_continues",
    "check_format",
    "check_protocol",
    "format_cases",
    "protocol_cases",
]
