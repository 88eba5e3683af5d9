"""The real programs: a session with a fault is refused, and goes on after `segue repair`."""

from __future__ import annotations

import pytest

from histories.repaired_programs import FAULTS, PROGRAMS, Provider, Session
from segue.histories.kit.repairing import FaultKind
from segue.histories.repair_files import find_repairable, store_in_place
from segue.histories.repairs import repair
from segue.testing.emulator import serve_in_thread

pytestmark = pytest.mark.proof

REFUSED: dict[str, set[str]] = {
    "claude-code": {"signature", "result", "image", "line"},
    "codex": {"signature"},
    "gemini-cli": {"image"},
    "pi": {"signature", "result", "size", "image", "line"},
    "opencode": {"signature"},
    "qwen-code": {"size", "image"},
    "copilot-cli": set(),
}
"""Faults that the emulated provider refuses when the program sends them. The others were not refused: the program sends
something else, or the emulator does not look for it. Gemini CLI sends a placeholder for every signature, Qwen Code and
Copilot CLI send none, and Copilot CLI leaves out what has no counterpart."""
GOES_ON = {("claude-code", "size"), ("opencode", "size")}
"""Faults that are refused, and the program compacts the session."""
LACKING = {
    "gemini-cli": set(FAULTS) - {"image"},
    "opencode": {"result", "line"},  # a call and its result are one row
    "copilot-cli": {"signature", "image"},  # it stores none
}
TRIED = {name: set(FAULTS) - LACKING.get(name, set()) for name in PROGRAMS}
NAMED: dict[str, FaultKind] = {"signature": "signature", "image": "image", "size": "size"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_session_with_a_fault_goes_on_after_its_repair(name, tmp_path):
    provider = Provider()
    with serve_in_thread(provider) as url:
        session = Session(name, tmp_path, provider, url)
        assert set(session.go_on()[1]) == {200}
        for fault in sorted(TRIED[name]):
            session.plant(fault)
            status, answers, _ = session.go_on()
            assert (400 in answers) is (fault in REFUSED[name] or (name, fault) in GOES_ON), (fault, answers)
            source, record = find_repairable(str(session.path), name=name)
            repaired = repair(source, record)
            if not repaired.is_changed and fault in NAMED:  # the program stored no error
                repaired = repair(source, record, kinds=[NAMED[fault]])
            assert repaired.is_changed or fault not in REFUSED[name], (fault, status)
            if repaired.is_changed:
                store_in_place(repaired)
            status, answers, _ = session.go_on()
            assert (status, set(answers)) == (0, {200}), (fault, answers, repaired.report.summary())
