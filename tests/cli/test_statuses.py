"""The exit statuses: distinct, documented, and what an error of segue itself gives."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from cli.running import ROOT, SESSION, run
from cli.terminal import Terminal
from segue.cli.statuses import MEANINGS, Status


def test_every_status_has_one_meaning_and_is_documented():
    assert set(MEANINGS) == set(Status)
    assert len({int(status) for status in Status}) == len(Status)
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for status, meaning in MEANINGS.items():
        assert f"| {int(status)} | {meaning} |" in page


def test_an_error_of_segue_itself_is_no_finding():
    """Python's own status for an exception is that of a finding."""
    program = (
        "import sys\n"
        "from segue.cli import check\n"
        "def fails(*_, **__): raise ValueError('broken')\n"
        "check.open_input = fails\n"
        f"sys.argv = ['segue', 'check', {str(SESSION)!r}, '--for', 'openai-chat']\n"
        "from segue.cli.entry import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == Status.INTERNAL
    assert "ValueError: broken" in done.stderr
    assert "an error of segue itself" in done.stderr


def test_ctrl_c_at_a_question_of_the_program_is_an_interruption(tmp_path):
    # A signal before Python itself has started ends it with another status.
    program = "print('started', flush=True); from segue.cli.entry import main; main()"
    terminal = Terminal("show", "-", program=(sys.executable, "-c", program))
    try:
        terminal.wait_for("started")
        time.sleep(0.5)
        while terminal.process.poll() is None:  # it may not have begun to read
            terminal.process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert terminal.process.returncode in (Status.INTERRUPTED, -signal.SIGINT)
    finally:
        terminal.close()


def test_statuses_of_one_command():
    assert run("check", SESSION, "--for", "anthropic-messages", "--all").status == Status.FOUND
    assert run("check", SESSION, "--for", "zzzz").status == Status.USAGE
    assert run("check", Path("nowhere"), "--for", "openai-chat").status == Status.USAGE
