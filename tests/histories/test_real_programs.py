"""All ordered pairs of agents: a session of one is written for another, and the real program continues it, offline.

Needs the sample sessions beside the repository, with `resume/resume.py`. Missing programs are installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from histories.agent_programs import PROGRAMS, need_program, record_resumed, resume, texts_in, used_package
from histories.test_chat_programs import AGENTS
from histories.test_samples import FILES, MODELS, texts_of
from histories.truth import SHARED, needs_samples
from segue import History, check, read_history, save_history, write_history
from segue.histories.kit.envelope import is_own_text
from segue.histories.registry import get_format

KEYS = {"messages": "anthropic-messages", "input": "openai-responses", "contents": "google-genai"}

pytestmark = [needs_samples, pytest.mark.proof]


@pytest.mark.parametrize("target", PROGRAMS)
@pytest.mark.parametrize(("agent", "name"), FILES)
def test_the_program_continues_a_session_of_any_agent(agent, name, target, tmp_path):
    continue_in(target, read_history(SHARED / FILES[agent, name]), tmp_path, is_own=agent == target)


@pytest.mark.parametrize("target", PROGRAMS)
@pytest.mark.parametrize("agent", AGENTS)
def test_the_program_continues_the_sample_of_every_agent(agent, target, tmp_path):
    # A program continues its own messages as they were stored, and the small samples lack fields that it needs.
    own = agent == target and (agent, "main") in FILES
    history = read_history(SHARED / FILES[agent, "main"] if own else get_format(agent).samples()[0].source)
    continue_in(target, history, tmp_path, is_own=own)
    record_resumed(agent, target, used_package(target))


def continue_in(target: str, history: History, tmp_path: Path, *, is_own: bool) -> None:
    """Write a session for a program and let it continue it: it sends everything that no report names.

    A program sends its own messages as they were stored, with fields that its provider may not know. It runs in a
    folder of this test: `resume.py` removes the folder that it made, and would remove it under a test beside it.
    """
    need_program(target)
    project = tmp_path / "project"
    project.mkdir()
    written = write_history(replace(history, cwd=str(project)), format=target, model=MODELS[target])
    (file,) = save_history(written, tmp_path / "written")
    request = resume(target, file, project)["sent"][0]
    key = next(key for key in KEYS if key in request)
    body = {key: request[key], "model": request.get("model") or "gemini-2.5-pro", "max_tokens": 1000}
    found = check(body, protocol=KEYS[key])
    assert is_own or [violation for violation in found if violation.path and violation.path[0] == key] == []
    sent = "\n".join(texts_in(request[key]))
    reported = {change.path[1] for change in written.report.changes if len(change.path) > 1}
    lost = [
        text
        for at, message in enumerate(history.context.messages)
        if at not in reported and not is_own_text(message)  # the program renews its own texts, such as the date
        for text in texts_of(message)
        if text.strip() not in sent
    ]
    assert lost == []
