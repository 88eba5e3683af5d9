"""`segue convert FOLDER -o FOLDER`: the same bytes however the work is divided, and every line accounted for."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import re
import sys
from pathlib import Path

import pytest

from corpus.building import TARGET, TO, chat, folder_of, hidden, joined, lines, segue, start_segue, write, zipped
from segue import Policy, convert
from segue.cli import corpora, progress
from segue.corpus import Job, Shard, Summary, convert_shard, merge, plan, read_notes, workers
from segue.errors import CorpusError
from segue.models.catalogue import get_model

REQUESTS = [convert(chat(number), target=TARGET).content for number in range(100)]


@pytest.fixture
def source(tmp_path):
    return folder_of(tmp_path / "in", files=5)


@pytest.mark.parametrize("options", [[], ["--jobs", 2], ["--jobs", 3, "--resume"]], ids=str)
def test_a_folder_becomes_a_folder_with_the_requests_of_the_library(source, tmp_path, options):
    made = start_segue("convert", source, *TO, *options, "-o", tmp_path / "out")
    assert (made.status, made.err) == (0, "")
    assert joined(tmp_path / "out").splitlines() == REQUESTS
    assert hidden(tmp_path / "out") == []


def test_shares_of_a_folder_give_together_what_one_run_gives(source, tmp_path):
    for share in ("1/3", "2/3", "3/3"):
        assert segue("convert", source, *TO, "--shard", share, "-o", tmp_path / "out").status == 0
    assert joined(tmp_path / "out").splitlines() == REQUESTS
    whole = tmp_path / "whole"
    segue("convert", source, *TO, "-o", whole)
    assert segue("report", tmp_path / "out").out == segue("report", whole).out


def test_spans_of_a_large_file_give_together_the_whole(tmp_path):
    file = write(tmp_path / "in" / "big.jsonl", lines(100))
    job = Job(get_model(TARGET), span=10_000)
    shards = plan(str(tmp_path / "in"), span=job.span).shards
    assert len(shards) > 5
    for shard in shards:
        convert_shard(shard, str(tmp_path / "out"), job)
    assert joined(tmp_path / "out").splitlines() == REQUESTS
    total = merge(note.summary for note in read_notes(str(tmp_path / "out")))
    assert (total.lines, total.conversations, total.bytes_read) == (100, 100, file.stat().st_size)


@pytest.mark.parametrize("span", [1, 7, 100, 900, 5000])
def test_every_size_of_a_span_gives_every_line_once(tmp_path, span):
    content = [line[: 40 + 13 * number % 700] for number, line in enumerate(lines(30))]
    content[7] = b""
    write(tmp_path / "in" / "any.jsonl", content)
    shards = plan(str(tmp_path / "in"), span=span).shards
    notes = [convert_shard(shard, str(tmp_path / "out"), Job(get_model(TARGET))) for shard in shards[:100]]
    if len(shards) <= 100:
        total = merge(note.summary for note in notes)
        assert (total.lines, total.bad, total.blank) == (30, 29, 1)


def test_compressed_files_keep_their_form(tmp_path):
    source, data = tmp_path / "in", b"\n".join(lines(30)) + b"\n"
    source.mkdir()
    # Two members, as `cat a.gz b.gz` gives them.
    (source / "a.jsonl.gz").write_bytes(zipped(data[:1000]) + zipped(data[1000:]))
    made = segue("convert", source, *TO, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert gzip.decompress((tmp_path / "out" / "a.jsonl.gz").read_bytes()).splitlines() == REQUESTS[:30]
    again = segue("convert", source / "a.jsonl.gz", *TO, "-o", tmp_path / "plain.jsonl")
    assert again.status == 0, again.err
    assert (tmp_path / "plain.jsonl").read_bytes().splitlines() == REQUESTS[:30]


def test_zstd_files_keep_their_form(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="of zstd (no zstandard)")
    source, data = tmp_path / "in", b"\n".join(lines(30)) + b"\n"
    source.mkdir()
    pack = zstandard.ZstdCompressor().compress
    (source / "a.jsonl.zst").write_bytes(pack(data[:1000]) + pack(data[1000:]))
    assert segue("convert", source, *TO, "-o", tmp_path / "out").status == 0
    with (tmp_path / "out" / "a.jsonl.zst").open("rb") as file:
        made = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    assert made.splitlines() == REQUESTS[:30]


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_compressed_file_that_was_cut_is_named_and_not_taken_for_a_shorter_one(ending, tmp_path):
    if ending == "zst":
        compress = pytest.importorskip("zstandard", reason="of zstd (no zstandard)").ZstdCompressor().compress
    else:
        compress = gzip.compress
    # The first part ends with a line: only the end of the compressed data tells that something is missing.
    whole = compress(b"".join(line + b"\n" for line in lines(20)))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.jsonl.{ending}").write_bytes(whole + compress(lines(1)[0] + b"\n")[:-4])
    (tmp_path / "in" / f"b.jsonl.{ending}").write_bytes(whole + compress(b"") + whole)
    made = segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert made.status == 2
    assert f"a.jsonl.{ending}: cannot be read to its end" in made.err
    assert not (tmp_path / "out" / f"a.jsonl.{ending}").exists()
    note = json.loads((tmp_path / "out" / f"b.jsonl.{ending}.done.json").read_bytes())
    assert note["summary"]["lines"] == 40


def test_a_damaged_compressed_file_is_an_error_that_names_it(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.jsonl.gz").write_bytes(zipped(b"\n".join(lines(30)))[:-20])
    write(source / "b.jsonl", lines(3))
    made = segue("convert", source, *TO, "-o", tmp_path / "out")
    assert made.status == 2
    assert made.err.startswith("segue: a.jsonl.gz: cannot be read to its end")
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["b.jsonl", "b.jsonl.done.json"]
    alone = segue("convert", source / "a.jsonl.gz", *TO)
    assert (alone.status, "a.jsonl.gz" in alone.err) == (2, True)


def test_documents_and_sessions_of_a_folder_are_one_conversation_each(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    (source / "one.json").write_text(json.dumps(chat(1), indent=2))
    (source / "session.jsonl").write_text('{"role":"user","content":"hi"}\n{"role":"user","content":"there"}\n')
    (source / "README.md").write_text("nothing")
    made = segue("convert", source, "--to", TARGET, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert "README.md: left out" in made.err
    assert json.loads((tmp_path / "out" / "one.json").read_bytes()) == json.loads(REQUESTS[1])
    assert (tmp_path / "out" / "session.jsonl").read_bytes().count(b"\n") == 1


# -- resuming ----------------------------------------------------------------------------------------------------------


def test_a_finished_file_is_not_made_again(source, tmp_path):
    out = tmp_path / "out"
    segue("convert", source, *TO, "--shard", "1/2", "-o", out)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.jsonl")}
    assert len(before) == 3
    made = segue("convert", source, "--to", TARGET, "--resume", "-o", out)
    assert made.status == 0
    assert "5 files, 3 finished before" in made.err
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert joined(out).splitlines() == REQUESTS


def test_a_changed_input_is_made_again(source, tmp_path):
    out = tmp_path / "out"
    segue("convert", source, *TO, "-o", out)
    write(source / "part-002.jsonl", lines(3, 50))
    assert segue("convert", source, *TO, "--resume", "-o", out).status == 0
    assert (out / "part-002.jsonl").read_bytes().splitlines() == REQUESTS[50:53]
    assert (out / "part-001.jsonl").read_bytes().splitlines() == REQUESTS[20:40]


OTHER_JOBS = {
    "target": ["--to", "gemini-3.5-flash"],
    "policy": ["--to", TARGET, "--reasoning", "drop"],
    "strict": ["--to", TARGET, "--strict"],
    "source": ["--to", TARGET, "--from", "openai-chat"],
    "column": ["--to", TARGET, "--column", "messages"],
    "purpose": ["--to", TARGET, "--as", "training"],
}


@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["anew", "resumed"])
@pytest.mark.parametrize("options", OTHER_JOBS.values(), ids=OTHER_JOBS.keys())
def test_the_output_of_another_job_is_never_mixed_with(source, tmp_path, options, resume):
    out = tmp_path / "out"
    segue("convert", source, *TO, "--shard", "1/5", "-o", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    made = segue("convert", source, *options, *resume, "--report", "none", "-o", out)
    assert made.status == 2
    assert TARGET in made.err
    assert made.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_fingerprints_differ_by_everything_that_changes_the_output():
    model = get_model(TARGET)
    jobs = [Job(model), Job(get_model("gemini-3.5-flash")), Job(model, Policy(reasoning="drop")), Job(model, span=5)]
    assert len({job.description().fingerprint for job in jobs}) == len(jobs)
    assert Job(model).description() == Job(model, stop=True, reports=True, details=True).description()


def test_nothing_is_left_of_a_shard_that_could_not_be_finished(tmp_path):
    write(tmp_path / "in" / "a.jsonl", [*lines(3), b"{bad"])
    shard = plan(str(tmp_path / "in"), span=1 << 30).shards[0]
    with pytest.raises(CorpusError, match=r"a\.jsonl: line 4: not valid JSON"):
        convert_shard(shard, str(tmp_path / "out"), Job(get_model(TARGET), stop=True))
    assert list((tmp_path / "out").iterdir()) == []


def test_the_output_may_not_lie_in_the_input(source):
    assert segue("convert", source, *TO, "-o", source / "out").status == 2
    assert segue("convert", source, *TO, "-o", source).status == 2


MISTAKES = {
    "no output for a folder": ["IN"],
    "a share of nothing": ["IN", "-o", "OUT", "--shard", "4/3"],
    "a share that is no number": ["IN", "-o", "OUT", "--shard", "a/3"],
    "a cluster without an engine": ["IN", "-o", "OUT", "--address", "auto"],
    "no such folder": ["IN/none/", "-o", "OUT"],
    "an empty folder": ["EMPTY", "-o", "OUT"],
}


@pytest.mark.parametrize("arguments", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_one_sentence(source, tmp_path, arguments):
    (tmp_path / "empty").mkdir()
    names = {"IN": str(source), "OUT": str(tmp_path / "out"), "EMPTY": str(tmp_path / "empty")}
    filled = [next((each.replace(key, path) for key, path in names.items() if key in each), each) for each in arguments]
    made = segue("convert", *filled, *TO)
    assert made.status == 2
    assert made.err.strip()


# -- quarantine --------------------------------------------------------------------------------------------------------

BAD = [
    b'{"messages":[{"role":"user","content":"cut',
    b"{}",
    b"null",
    b'{"messages":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"messages":[{"role":"user","content":"\xff\xfe"}]}',
    b'{"model":"m","messages":[{"role":"user","content":42}]}',
    b'{"messages":[]}\r',
    b"\x00\x01",
    '"a text"'.encode("utf-16"),
]
UNUSUAL = [
    '{"messages":[{"role":"user","content":"a\u2028b\u2029c\u0085d"}]}'.encode(),
    rb'{"messages":[{"role":"user","content":"half \ud83d of a pair"}]}',
    b'{"messages":[{"role":"user","content":"carriage return at the end"}]}\r',
]
BLANK = [b"", b"  ", b"\t\r"]


def mixed(seed: int) -> list[bytes]:
    content = [*lines(10), *BAD, *UNUSUAL, *BLANK, *BAD]
    random.Random(seed).shuffle(content)
    return content


def raw_of(entry: dict[str, str]) -> bytes:
    return entry["raw"].encode() if "raw" in entry else base64.b64decode(entry["raw_base64"])


@pytest.mark.parametrize("output", ["out.jsonl", "out/"])
@pytest.mark.parametrize("options", [[], ["--jobs", 2]], ids=str)
def test_bad_lines_come_back_byte_for_byte_and_every_line_is_counted(tmp_path, options, output):
    content = mixed(3)
    source = write(tmp_path / "bad.jsonl", content)
    made = start_segue("convert", source, *TO, *options, "-o", f"{tmp_path}/{output}")
    assert made.status == 1
    name = tmp_path / (output if output != "out/" else "out/bad.jsonl")
    entries = [json.loads(line) for line in Path(f"{name}.bad.jsonl").read_bytes().splitlines()]
    expected = [(number, line) for number, line in enumerate(content, 1) if line in BAD]
    assert [(entry["line"], raw_of(entry)) for entry in entries] == expected
    starts = {number: sum(map(len, content[: number - 1])) + number - 1 for number, _ in expected}
    assert {entry["line"]: entry["offset"] for entry in entries} == starts
    for entry in entries:
        assert entry["file"] == "bad.jsonl"
        assert entry["error"].isidentifier()
        assert "\n" not in entry["reason"]
    summary = json.loads(Path(f"{name}.done.json").read_text())["summary"]
    assert summary["lines"] == len(content)
    assert summary["conversations"] + summary["bad"] + summary["blank"] == summary["lines"]
    assert summary["bad"] == len(expected)
    assert name.read_bytes().count(b"\n") == summary["conversations"] == 13


def test_a_second_run_without_bad_lines_removes_the_quarantine_of_the_first(tmp_path):
    source = write(tmp_path / "in" / "a.jsonl", [*lines(2), b"{bad"])
    assert segue("convert", source.parent, *TO, "-o", tmp_path / "out").status == 1
    write(source, lines(2))
    assert segue("convert", source.parent, *TO, "-o", tmp_path / "out").status == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.jsonl", "a.jsonl.done.json"]


def test_standard_output_can_have_a_quarantine_file(tmp_path):
    source = write(tmp_path / "a.jsonl", [*lines(2), b"{bad"])
    made = segue("convert", source, *TO, "--quarantine", tmp_path / "bad.jsonl")
    assert (made.status, made.out.count("\n")) == (1, 2)
    assert raw_of(json.loads((tmp_path / "bad.jsonl").read_text())) == b"{bad"


# -- notes and summaries -----------------------------------------------------------------------------------------------


def test_summaries_are_merged_in_any_order_to_the_same(tmp_path):
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    content = [json.dumps({"messages": [{"role": "user", "content": [image]}]}).encode()] * 40
    job = Job(get_model("deepseek/deepseek-v4-pro"))
    for number in range(6):
        write(tmp_path / "in" / f"{number}.jsonl", content[number * 3 :])
    shards = plan(str(tmp_path / "in"), span=1 << 30).shards
    notes = [convert_shard(shard, str(tmp_path / "out"), job).summary for shard in shards]
    expected = merge(notes)
    assert expected.changes["content media_omitted"].times == sum(range(25, 41, 3))
    assert len(expected.changes["content media_omitted"].samples) == 3
    for seed in range(5):
        shuffled = random.Random(seed).sample(notes, len(notes))
        assert merge([merge(shuffled[:2]), merge(shuffled[2:])]) == expected


def test_samples_name_the_place_and_the_content(tmp_path):
    write(tmp_path / "in" / "a.jsonl", [b"", *lines(1)])
    note = convert_shard(
        plan(str(tmp_path / "in"), span=1 << 30).shards[0], str(tmp_path / "out"), Job(get_model(TARGET))
    )
    for change in note.summary.changes.values():
        for sample in change.samples:
            assert (sample.file, sample.line, sample.offset) == ("a.jsonl", 2, 1)
    assert Summary() == Summary()
    assert isinstance(plan(str(tmp_path / "in"), span=1).shards[0], Shard)


ROWS = [json.dumps({"id": name, **chat(number)}).encode() for number, name in enumerate(("a/1", "7"))]


@pytest.mark.parametrize("output", ["out.jsonl", "out/"])
def test_the_lines_of_rows_have_the_ids_of_their_rows(tmp_path, output):
    write(tmp_path / "in.jsonl", [*ROWS, b"{bad", *lines(1)])
    segue("convert", tmp_path / "in.jsonl", *TO, "-o", f"{tmp_path}/{output}")
    file = tmp_path / output / "in.jsonl" if output.endswith("/") else tmp_path / output
    made = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [line.pop("id", None) for line in made] == ["a/1", "7", None]
    assert made == [json.loads(REQUESTS[number]) for number in (0, 1, 0)]
    assert "`id`" not in segue("check", file, "--for", "anthropic-messages").out


@pytest.mark.parametrize("options", [(), ("--as", "batch"), ("--report", "json")], ids=str)
def test_a_file_of_an_unknown_kind_is_named(tmp_path, options):
    write(tmp_path / "in" / "a.jsonl", lines(1))
    write(tmp_path / "in" / "e.jsonl.bz2", [b"x"])
    made = segue("convert", tmp_path / "in", *TO, *options, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert "segue: e.jsonl.bz2: left out, because its ending is not known" in made.err


@pytest.mark.parametrize("output", ["out.jsonl", "out/"])
def test_an_interrupted_run_names_how_it_goes_on(tmp_path, monkeypatch, output):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write(tmp_path / "in.jsonl", lines(2))
    monkeypatch.setattr(corpora, "_print_batch", interrupted)
    arguments = ("convert", tmp_path / "in.jsonl", *TO, "-o", f"{tmp_path}/{output}")
    made = segue(*arguments)
    assert made.status == 130
    assert made.err == "segue: interrupted; the same command with --resume goes on where it stopped\n"
    monkeypatch.undo()
    assert segue(*arguments, "--resume").status == 0


def test_a_line_about_a_row_stands_above_the_bar(monkeypatch):
    """A line that is written to the terminal beside the bar would stand behind it, on the same line."""
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with progress.show_progress(10) as advance:
        advance(1, 1, 1)
        progress.print_line("segue: line 1 is bad")
        progress.print_line(b'{"line": 1}')
    lines_shown = re.split(r"\r|\n", shown.getvalue())
    assert "\x1b[2Ksegue: line 1 is bad" in lines_shown
    assert '\x1b[2K{"line": 1}' in lines_shown
    progress.print_line("without a bar")
    assert shown.getvalue().endswith("without a bar\n")


def test_output_that_the_shared_memory_cannot_hold_is_sent(tmp_path, monkeypatch):
    source = folder_of(tmp_path / "in", 3)
    for name, size in (("held", workers._SLOT), ("sent", 1)):
        monkeypatch.setattr(workers, "_SLOT", size)
        made = segue("convert", source, *TO, "--jobs", 2, "-o", tmp_path / name)
        assert made.status == 0, made.err
    assert joined(tmp_path / "held")
    assert joined(tmp_path / "sent") == joined(tmp_path / "held")
