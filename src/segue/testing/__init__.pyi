from segue.testing.broken_law import BrokenLaw as BrokenLaw
from segue.testing.broken_law import Case as Case
from segue.testing.format_laws import check_format as check_format
from segue.testing.format_laws import format_cases as format_cases
from segue.testing.growing import assert_continues as assert_continues
from segue.testing.history_laws import HISTORY_LAWS as HISTORY_LAWS
from segue.testing.history_laws import HistoryLaw as HistoryLaw
from segue.testing.protocol_laws import check_protocol as check_protocol
from segue.testing.protocol_laws import protocol_cases as protocol_cases
from segue.testing.sample_laws import SAMPLE_LAWS as SAMPLE_LAWS
from segue.testing.sample_laws import SampleLaw as SampleLaw

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
