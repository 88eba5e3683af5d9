"""`segue report`: a table, JSON and a page of what a conversion did."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import msgspec
import pytest

from cli.running import SESSION
from corpus.building import TARGET, TO, lines, segue, write
from segue import dump, prepare, read_session
from segue.cli.report_page import render_page
from segue.corpus.files import LOCAL
from segue.corpus.jobs import Job
from segue.corpus.notes import ShardNote, read_notes, write_note
from segue.corpus.summary import ChangeCount, ChangeSample, Summary, merge
from segue.models.catalogue import get_model
from segue.projection.report import ChangeCode, Loss


@pytest.fixture
def converted(tmp_path):
    stored = dump(read_session(SESSION))
    write(tmp_path / "in" / "a.jsonl", [*lines(4), stored, b"{bad", b""])
    write(tmp_path / "in" / "b.jsonl", lines(3))
    assert segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out").status == 1
    return tmp_path / "out"


def test_the_table_counts_lines_changes_tokens_and_costs(converted):
    made = segue("report", converted)
    assert made.status == 0
    assert f"2 files for {TARGET}" in made.out
    assert "10 lines: 8 conversations" in made.out
    assert "1 bad, 1 blank" in made.out
    assert "1 bad line with LoadError" in made.out
    assert "as a batch" in made.out
    for change in prepare(read_session(SESSION), TARGET).report.changes:
        assert change.code.value in made.out
    assert "replies counted" in made.out


def test_what_is_new_in_stored_replies_is_counted(tmp_path):
    session = read_session(SESSION)
    messages = tuple(
        msgspec.structs.replace(message, raw_stop_reason="tired") if message.role == "assistant" else message
        for message in session.messages
    )
    write(tmp_path / "in" / "a.jsonl", [dump(msgspec.structs.replace(session, messages=messages))])
    segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert ": stop reason tired" in segue("report", tmp_path / "out").out
    assert "stop reason tired" in segue("report", tmp_path / "out", "--format", "html").out
    assert json.loads(segue("report", tmp_path / "out", "--format", "json").out)["summary"]["drift"]


def test_json_has_samples_with_their_places(converted):
    report = json.loads(segue("report", converted, "--format", "json").out)
    summary = report["summary"]
    assert summary["lines"] == summary["conversations"] + summary["bad"] + summary["blank"] == 10
    assert summary["batch_cost"] == pytest.approx(summary["cost"] / 2, abs=1.1e-6)
    for change in summary["changes"].values():
        assert 1 <= len(change["samples"]) <= 3
        assert change["conversations"] <= change["times"]
        for sample in change["samples"]:
            assert (converted.parent / "in" / sample["file"]).exists()
            assert len(sample.get("before", "")) <= 200


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 - the parser's own
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_the_same_and_escapes_what_it_quotes(converted, tmp_path):
    assert segue("report", converted, "--format", "html", "-o", tmp_path / "report.html").status == 0
    page = Page()
    page.feed((tmp_path / "report.html").read_text())
    assert TARGET in page.text
    assert "thinking_" in page.text
    evil = ChangeSample("k", "<script>", 1, 0, "p", "<img src=x onerror=y>")
    summary = Summary(changes={"x": ChangeCount(ChangeCode.TEXT_BLANK, Loss.NONE, 1, 1, [evil])})
    page = Page()
    page.feed(render_page(Job(get_model(TARGET)).description(), summary, 1))
    assert not {"script", "img"} & set(page.tags)
    assert "<script>" in page.text


def test_a_single_output_file_has_a_report_too(tmp_path):
    source = write(tmp_path / "a.jsonl", lines(3))
    segue("convert", source, *TO, "-o", tmp_path / "out.jsonl")
    assert "3 conversations" in segue("report", tmp_path / "out.jsonl").out


def test_mistakes_are_one_sentence(tmp_path):
    assert segue("report", tmp_path).status == 2
    (tmp_path / "x.done.json").write_text("{}")
    made = segue("report", tmp_path)
    assert (made.status, "is not a note" in made.err) == (2, True)


def test_the_notes_of_many_shards_are_merged(tmp_path):
    job = Job(get_model(TARGET)).description()
    for number in range(200):
        note = ShardNote(output=f"{number:05}.jsonl", file="a", job=job, summary=Summary(lines=3, conversations=3))
        write_note(LOCAL, str(tmp_path), note)
    assert merge(note.summary for note in read_notes(str(tmp_path))).lines == 600
