"""Several released versions of each program: what segue reads of a session is what the program itself sends.

A version makes a session with parallel calls, one that fails, thinking and a continuation, and then continues it again.
What it sends is compared with what segue read before, and with what the program sends when it continues the session
that segue wrote of its reading. All versions in `.agents` are run; any of npm can be installed there:

    npm install --prefix .agents/anthropic-ai-claude-code-2.1.81 @anthropic-ai/claude-code@2.1.81 &&
        touch .agents/anthropic-ai-claude-code-2.1.81/done
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from histories.program_versions import AGAIN, GO_ON, TALK, Run, installed, running, version_of, without_additions
from histories.truth import Block, blocks_of
from segue import History, Model, Policy, prepare, read_history, save_history, write_history
from segue.histories.kit.entries import runs_of

pytestmark = pytest.mark.proof

KEYS = {"anthropic-messages": "messages", "openai-responses": "input", "google-genai": "contents"}
LOSES_CALLS = {"claude-code": ((2, 0), (2, 1, 80))}
"""Versions that lose parallel calls of their own sessions when they continue them, and their results."""
ANSWERED = frozenset({"No response requested.", "Continue from where you left off."})
"""What Claude Code adds where a session ends with the user."""
FAILED = "[tool error] "
"""How a failed result begins on a wire without a field for that."""
VERSIONS = installed()


def sent_blocks(run: Run, prompt: str) -> list[Block]:
    """Give what the program sent before a prompt, without what it adds to texts."""
    *blocks, last = _plain(run.program.wire, run.sent(prompt))
    assert last[-1].endswith(prompt)
    while blocks[-1][-1] in ANSWERED:
        del blocks[-1]
    return blocks


def read_blocks(run: Run, history: History) -> list[Block]:
    """Give what segue sends of what it read, to the same model."""
    # Chat Completions have no field for thinking: programs send it in fields of their own, or not at all.
    policy = Policy(reasoning="drop" if run.program.wire == "openai-chat" else "auto")
    return _plain(run.program.wire, prepare(history.context, model_of(run), policy=policy).body)


def model_of(run: Run) -> Model:
    """Give the model that a program asks."""
    program = run.program
    return Model(program.model, program.provider, program.wire, reasoning=True, max_tokens=8000)


def _plain(wire: str, body: Mapping[str, Any]) -> list[Block]:
    found: list[Block] = []
    for block in blocks_of(wire, body[KEYS.get(wire, "messages")]):
        last = without_additions(block[-1]) if block[1] == "text" else block[-1].removeprefix(FAILED)
        if last or block[1] != "text":
            found.append((*block[:-1], last))
    # Versions send the results of one answer in different orders.
    runs = runs_of(found, lambda before, block: before[1] == block[1] == "result")
    return [block for run in runs for block in sorted(run)]


@pytest.mark.parametrize(("agent", "folder"), VERSIONS, ids=[folder.name for _, folder in VERSIONS])
def test_what_is_read_is_what_this_version_sends(agent: str, folder: Path, tmp_path: Path, monkeypatch):
    with running(agent, folder, tmp_path) as run:
        run.ask("Read the files. do:parallel")
        session = read_history(run.session_file()).origin.id
        run.ask("And again. do:steps", session)
        before = read_history(run.session_file())
        run.ask(TALK, session)
        for prompt in run.program.compact:
            run.ask(prompt, session)
        after = read_history(run.session_file())
        run.ask(GO_ON, session)
        assert_same(agent, folder, read_blocks(run, before), sent_blocks(run, TALK))
        assert_same(agent, folder, read_blocks(run, after), sent_blocks(run, GO_ON))
        if run.program.continues_files:
            monkeypatch.setenv("HOME", str(run.home.path))
            run.session_file().unlink()
            written = write_history(before, format=agent, model=model_of(run), cwd=str(run.home.project))
            (file, *_) = save_history(written)
            run.ask(AGAIN, read_history(file).origin.id)
            assert_same(agent, folder, read_blocks(run, before), sent_blocks(run, AGAIN))
        assert not [request for request in run.model.emulator.requests if request.refusal == "signature"]


def assert_same(agent: str, folder: Path, found: list[Block], wanted: list[Block]) -> None:
    """Compare what was read with what was sent; some versions lose calls, which are read all the same."""
    first, last = LOSES_CALLS.get(agent, ((), ()))
    if first <= version_of(folder) < last:
        lost = [block for block in found if block not in wanted]
        assert {block[1] for block in lost} <= {"call", "result"}
        found = [block for block in found if block not in lost]
    assert found == wanted
