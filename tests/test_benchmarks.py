"""The benchmarks run and say what they say they say; what they measure is for people to judge, not for a test."""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
VERDICTS = {
    "aim met",
    "must met",
    "MISSED",
    "the same thing twice",
    "for comparison",
    "the floor: without our checks",
    "",
}


@pytest.fixture
def module_of(monkeypatch):
    """Import files of the benchmarks for one test: their bare names are gone afterwards."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == BENCHMARKS:
            del sys.modules[name]


def run_python(*arguments, **environment):
    """Run an interpreter that finds segue and the benchmarks; give what it printed."""
    paths = os.pathsep.join([str(ROOT / "src"), str(BENCHMARKS)])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        timeout=300,
    )
    return done.stdout


def test_a_quick_run_writes_a_page_of_tables(tmp_path):
    page = tmp_path / "page.md"
    run_python(BENCHMARKS / "run.py", "--quick", "--no-peers", "--groups", "stored", "projection", "--output", page)
    text = page.read_text(encoding="utf-8")
    for heading in ("# What segue costs", "## stored", "## projection", "## How to read this"):
        assert f"{heading}\n" in text
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    figures = [row for row in rows if len(row) == 6 and row[0] != "what" and not row[0].startswith("-")]
    assert len(figures) >= 12
    for what, value, _, must, _, verdict in figures:
        assert verdict in VERDICTS or verdict.startswith("not measured: "), what
        assert (value == "not measured") == verdict.startswith("not measured: "), what
        assert verdict or not must, what


@pytest.mark.parametrize("length", [3, 4, 5, 50, 333])
def test_a_transcript_has_its_length_and_answers_every_call_at_once(module_of, length):
    messages = module_of("transcripts").make_transcript(length).messages
    assert len(messages) == length
    assert messages[-1].role == "toolResult"
    waiting: list[str] = []
    for message in messages:
        if message.role == "toolResult":
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call.id for call in message.tool_calls()] if message.role == "assistant" else []
    assert not waiting


def test_a_transcript_has_the_proportions_of_an_agents_work(module_of):
    transcripts = module_of("transcripts")
    messages = transcripts.make_transcript(2000).messages
    share = {
        role: sum(message.role == role for message in messages) / 2000 for role in ("user", "assistant", "toolResult")
    }
    assert share == pytest.approx({"user": 0.06, "assistant": 0.38, "toolResult": 0.55}, abs=0.02)
    texts = [content.text for message in messages for content in message.content if content.kind == "text"]
    assert sum(not text.isascii() for text in texts) / len(texts) == pytest.approx(0.15, abs=0.03)
    with_images = transcripts.make_transcript(2000, images=True).messages
    images = [content for message in with_images for content in message.content if content.kind == "image"]
    assert len(images) == pytest.approx(20, abs=1)
    assert {len(image.data) for image in images} == {100_000}


def test_a_transcript_is_the_same_in_every_process(module_of):
    script = "import sys, segue, transcripts; sys.stdout.buffer.write(segue.dump(transcripts.make_transcript(40)))"
    assert run_python("-c", script, PYTHONHASHSEED="1") == run_python("-c", script, PYTHONHASHSEED="2")


def test_ratios_are_best_over_best_with_a_control(module_of, monkeypatch):
    measure = module_of("measure")
    clock = itertools.count()  # every look at it, and every piece of work, is one tick
    monkeypatch.setattr(measure.time, "process_time_ns", lambda: next(clock))

    def work(ticks):
        return lambda: [next(clock) for _ in range(ticks - 1)]

    compared = measure.compare("floor", {"floor": work(100), "slow": work(250)}, measure.Effort(rounds=5, sample_ns=1))
    assert {len(samples) for samples in compared.samples.values()} == {5}
    assert compared.ratio("slow").best == pytest.approx(2.5)
    assert compared.control() == measure.Ratio(1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.7, "aim met"), (0.9, "must met"), (1.1, "MISSED"), (None, "no such thing")]
)
def test_a_figure_is_judged_by_its_goal(module_of, value, verdict):
    figures = module_of("figures")
    figure = figures.Figure("key", "what", "times", value, note="no such thing")
    assert figure.verdict(figures.Goal(must=1.0, aim=0.8)) == verdict


def test_a_goal_that_nothing_is_held_against_is_refused(module_of):
    with pytest.raises(AssertionError, match=r"stored\.dump"):
        module_of("run").check_goals("stored", [])


def test_a_peer_that_cannot_be_installed_is_a_reason_and_no_error(module_of, tmp_path):
    peers = module_of("peers")
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    environment = peers.make_environment(peers.PEERS[0], in_the_way)
    assert environment.python is None
    assert environment.reason
