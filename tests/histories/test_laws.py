"""The nine laws of formats, on every registered format."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from property_testing import scaled_examples, tiers
from segue import read_history
from segue.histories.registry import FORMATS
from segue.projection.report import ChangeCode
from segue.testing import format_cases
from segue.testing.damaged_files import DamagedFiles

CASES = [
    pytest.param(case, id=f"{name}: {case}", marks=marks)
    for mutations, histories, marks in ((8, 4, ()), (60, 21, pytest.mark.proof))
    for name in FORMATS
    for case in format_cases(FORMATS[name], mutations=mutations, histories=histories)
]
DAMAGED = {
    f"{name}: {sample.name}": (name, at) for name in FORMATS for at, sample in enumerate(FORMATS[name].samples())
}
FILES = 100_000
"""How many damaged files the heavy test reads, of all samples together."""


@pytest.mark.parametrize("case", CASES)
def test_law(case):
    case()


@pytest.mark.parametrize("which", DAMAGED)
def test_a_whole_file_has_no_line_that_cannot_be_read(which):
    name, at = DAMAGED[which]
    history = read_history(FORMATS[name].samples()[at].source, format=name)
    assert history.report.of(ChangeCode.LINE_UNREADABLE) == ()


def damaged_files(which: str) -> DamagedFiles:
    name, at = DAMAGED[which]
    return DamagedFiles(FORMATS[name], FORMATS[name].samples()[at])


@pytest.mark.parametrize("which", DAMAGED)
@scaled_examples(0.5)
@example(seed=100_700)  # a conversation of an export without its list of messages
@example(seed=1283)  # a log of changes that begins again
@example(seed=500_251)  # a file of Continue's context without its content
@example(seed=1_136_551)  # a message of Droid that is no object
@example(seed=195_102)  # a condensation of OpenHands whose list of events is no list
@example(seed=2_754_295)  # a text in the place of the title of Cursor's export
@example(seed=2_084_317_295)  # a message of Gemini CLI in the place of another one that was removed
@example(seed=94_489)  # a header of SpecStory in the middle of a text
@example(seed=26_636_174)  # a word that stands in another text, too
@given(seed=st.integers(1000, 2**31))
def test_a_damaged_file_loses_nothing_in_silence(which, seed):
    damaged_files(which).check(seed)


@pytest.mark.parametrize("which", DAMAGED)
@pytest.mark.parametrize("step", tiers([97], [1]))
def test_a_value_at_another_place_or_in_another_form_is_read_or_reported(which, step):
    damaged_files(which).check_other_forms(step)


@pytest.mark.proof
@pytest.mark.parametrize("which", DAMAGED)
def test_a_hundred_thousand_damaged_files(which):
    damaged = damaged_files(which)
    for seed in range(FILES // len(DAMAGED) + 1):
        damaged.check(seed)
