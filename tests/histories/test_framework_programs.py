"""The programs of `examples/frameworks` run, each where its framework is installed."""

from __future__ import annotations

import pytest

from histories.framework_programs import ROOT, run

PROGRAMS = {
    "keep_langchain": ("langchain_core", "7 messages, the last one: Blue, like before."),
    "keep_pydantic_ai": ("pydantic_ai", "4 messages, the last one: Blue, like before."),
    "keep_openai_agents": ("agents", "4 items, the last one: "),
    "keep_litellm": (None, "5 messages, the last one: Blue, like before."),
    "keep_google_adk": ("google.adk", "4 events, the last one of helper: Blue, like before."),
    "keep_strands": ("strands", "4 messages, the last one: Blue, like before."),
    "keep_inspect_ai": ("inspect_ai", "5 messages, the last one: Blue, like before."),
    "keep_vercel_ui": (None, "4 messages, the last one: Blue, like before."),
}


def test_every_program_is_run():
    assert {path.stem for path in (ROOT / "examples" / "frameworks").glob("*.py")} == set(PROGRAMS)


@pytest.mark.parametrize(("name", "package", "last"), [(name, *row) for name, row in PROGRAMS.items()], ids=PROGRAMS)
def test_a_program_continues_a_conversation_of_its_framework(name, package, last):
    lines = run(package, str(ROOT / "examples" / "frameworks" / f"{name}.py")).splitlines()
    assert lines[-1].startswith(last)
