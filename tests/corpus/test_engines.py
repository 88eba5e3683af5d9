"""The recipes of `examples/engines`, each run with its engine: the requests of one process, byte for byte."""

from __future__ import annotations

import os
import subprocess
from importlib import import_module
from typing import Any

import pytest

from cli.running import ROOT
from corpus.building import TARGET, environment, lines, needs_arrow
from corpus.environments import python_with
from segue.corpus import Converter

pytestmark = [pytest.mark.proof, needs_arrow]

RECIPES = {
    "ray_data": "ray",
    "spark": "pyspark",
    "daft_frames": "daft",
    "hugging_face": "datasets",
    "polars_frames": "polars",
    "duckdb_query": "duckdb",
}
BAD = b"{bad"


def test_every_recipe_is_tried():
    assert {path.stem for path in (ROOT / "examples" / "engines").glob("*.py")} == RECIPES.keys()


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_engine_gives_the_requests_of_one_process_and_a_bad_row_costs_one_row(recipe, tmp_path):
    python = python_with(RECIPES[recipe])
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    texts = [line.decode() for line in [*lines(70), BAD, *lines(60, 70)]]
    for number in range(2):
        part = texts[number * 65 : (number + 1) * 65 + (number == 1)]
        parquet.write_table(pa.table({"body": part}), tmp_path / "in" / f"{number}.parquet")
    out = tmp_path / "out"
    if recipe != "spark":
        out.mkdir()
    command = [python, str(ROOT / "examples" / "engines" / f"{recipe}.py"), str(tmp_path / "in"), str(out)]
    env = environment({"RAY_DEDUP_LOGS": "0", "HF_HOME": str(tmp_path / "hf"), "PYSPARK_PYTHON": python})
    done = subprocess.run(command, capture_output=True, env=env, cwd=tmp_path, timeout=600, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    files = sorted(out.glob("*.parquet"), key=os.path.basename)
    rows = [row for path in files for row in parquet.read_table(path).to_pylist()]
    made: Any = Converter(to=TARGET)({"body": texts})
    assert sorted(str(row["request"]) for row in rows) == sorted(
        "None" if request is None else request.decode() for request in made["request"]
    )
    assert [row["error"] for row in rows if row["error"]] == [error for error in made["error"] if error]
    assert len(rows) == len(texts)
