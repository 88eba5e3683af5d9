"""A row that ends every process that converts it: it alone goes to quarantine, and the run ends."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path

import pytest

from corpus.building import TO, lines, needs_arrow, poison, start_segue, write

SIZES = [1, 2, 31, pytest.param(400, marks=pytest.mark.proof)]


def check_isolated(folder: Path, name: str, count: int, position: int, log: Path) -> None:
    summary = json.loads((folder / f"{name}.done.json").read_text())["summary"]
    assert (summary["lines"], summary["conversations"], summary["bad"]) == (count, count - 1, 1)
    (entry,) = (json.loads(line) for line in (folder / f"{name}.bad.jsonl").read_bytes().splitlines())
    assert (entry["line"], entry["error"]) == (position + 1, "ProcessDied")
    assert "the process died" in entry["reason"]
    deaths = len(log.read_bytes())
    assert deaths <= 4 + math.log2(count), deaths


@pytest.mark.parametrize("count", SIZES)
def test_the_row_is_found_and_the_others_are_converted(count, tmp_path):
    position = count * 2 // 3
    content = lines(count)
    write(tmp_path / "in" / "a.jsonl", content)
    write(tmp_path / "in" / "b.jsonl", lines(3, 5000))
    env = poison(tmp_path / "site", f"Question {position}:", tmp_path / "log")
    made = start_segue("convert", tmp_path / "in", *TO, "--jobs", 2, "-o", tmp_path / "out", env=env)
    assert made.status == 1, made.err
    check_isolated(tmp_path / "out", "a.jsonl", count, position, tmp_path / "log")
    entry = json.loads((tmp_path / "out" / "a.jsonl.bad.jsonl").read_text())
    assert entry["raw"].encode() == content[position]
    assert entry["offset"] == sum(len(line) + 1 for line in content[:position])
    assert (tmp_path / "out" / "b.jsonl").read_bytes().count(b"\n") == 3


@needs_arrow
def test_the_row_of_a_parquet_file_is_found(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")

    (tmp_path / "in").mkdir()
    parquet.write_table(pa.table({"body": [line.decode() for line in lines(20)]}), tmp_path / "in" / "a.parquet")
    write(tmp_path / "in" / "b.jsonl", lines(3, 5000))
    env = poison(tmp_path / "site", "Question 7:", tmp_path / "log")
    made = start_segue("convert", tmp_path / "in", *TO, "--jobs", 2, "-o", tmp_path / "out", env=env)
    assert made.status == 1, made.err
    check_isolated(tmp_path / "out", "a.parquet", 20, 7, tmp_path / "log")


def test_several_rows_are_found(tmp_path):
    write(tmp_path / "in" / "a.jsonl", lines(40))
    write(tmp_path / "in" / "b.jsonl", lines(3, 5000))
    env = poison(tmp_path / "site", "9:", tmp_path / "log")
    made = start_segue("convert", tmp_path / "in", *TO, "--jobs", 2, "-o", tmp_path / "out", env=env)
    assert made.status == 1, made.err
    entries = [json.loads(line) for line in (tmp_path / "out" / "a.jsonl.bad.jsonl").read_bytes().splitlines()]
    assert [entry["line"] for entry in entries] == [10, 20, 30, 40]
    assert (tmp_path / "out" / "a.jsonl").read_bytes().count(b"\n") == 36
