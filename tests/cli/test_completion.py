"""`segue completion`: the scripts, and what they complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import run

SEGUE = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell):
    shown = run("completion", shell)
    assert shown.status == 0
    assert f"_SEGUE_COMPLETE={shell}_complete" in shown.out


def test_an_unknown_shell_is_an_error():
    assert run("completion", "cmd").status == 2


WORDS = {
    "a command": (("segue", "comp"), {"completion"}),
    "an option": (("segue", "ask", "--sch"), {"--schema"}),
    "a model": (("segue", "ask", "-m", "claude-opus-4-8"), {"anthropic/claude-opus-4-8"}),
    "a protocol": (("segue", "show", "--from", "openai-"), {"openai-chat", "openai-responses"}),
    "a protocol or a model": (("segue", "check", "--for", "anthropic-m"), {"anthropic-messages"}),
    "a provider": (("segue", "models", "--provider", "anthr"), {"anthropic"}),
    "a shell": (("segue", "completion", "z"), {"zsh"}),
}


@pytest.mark.parametrize(("words", "expected"), WORDS.values(), ids=WORDS.keys())
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_completes(shell, words, expected):
    """What each script asks the program for."""
    line = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1) if shell != "fish" else words[-1]}
    shown = run(env={**line, "_SEGUE_COMPLETE": f"{shell}_complete"})
    assert shown.status == 0
    assert expected <= set(re.split(r"[,\n\t]", shown.out))


@pytest.mark.skipif(shutil.which("bash") is None, reason="completion in bash (no bash)")
def test_bash_completes_with_the_script():
    completes = 'COMP_WORDS=(segue conv); COMP_CWORD=1; _segue_completion segue; echo "$COMPREPLY"'
    script = f'eval "$(segue completion bash)"; {completes}'
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **SEGUE}
    )
    assert done.stdout == "convert\n", done.stderr
