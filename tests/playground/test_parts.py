"""The playground is the page of the inspector with another transport: that it stays so, without a browser."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN, PAGE = ROOT / "docs" / "playground", ROOT / "src" / "segue" / "inspector" / "page"
EXPORTED = re.compile(r"^export (?:async )?(?:const|function) (\w+)", re.MULTILINE)
HIDE = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "segue" and name.partition(".")[2].partition(".")[0] in {left_out}:
            raise AssertionError("the playground does not have " + name)

sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture
def build_playground(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("build_playground")


def test_both_transports_offer_the_same():
    own, other = (sorted(EXPORTED.findall((folder / "transport.js").read_text())) for folder in (OWN, PAGE))
    assert own == other
    assert "send" in own


def test_the_page_of_the_inspector_has_what_the_playground_changes(build_playground):
    page = build_playground.make_page()
    assert build_playground.POLICY in page
    assert page.index("content-security-policy") < page.index("<link"), "what is loaded before it is not under it"
    assert "api/start" not in page
    assert 'id="loading"' in page


def test_nothing_is_asked_of_another_server(build_playground):
    assert "connect-src 'self';" in build_playground.POLICY
    for path in (*OWN.iterdir(), *PAGE.iterdir()):
        assert not re.search(r"https?://(?!www\.w3\.org)", path.read_text()), path.name


def test_what_is_left_out_of_the_playground_is_not_imported(build_playground):
    """The start of worker.js, and every question, without the parts that the playground does not have."""
    (start,) = re.findall(r"const START = `(.*?)`;", (OWN / "worker.js").read_text(), re.DOTALL)
    left_out = {name.removesuffix(".py") for name in build_playground.LEFT_OUT}
    example = ROOT / "src" / "segue" / "cli" / "example.jsonl"
    ask = f"""
import json
example = open({str(example)!r}, "rb").read()
for path, body in (("start", b""), ("models", b""), ("open", b"rate limit reached"), ("open", example)):
    found = _answers.answer(path, {{}}, body)
key = json.loads(found.data)["document"]
for path in ("given", "inspect", "facts", "rows", "find", "before", "wire"):
    question = {{"document": key, "target": "openai/gpt-5.4", "rows": [1], "other": key}}
    assert _answers.answer(path, {{}}, json.dumps(question).encode()).status == 200, path
"""
    code = HIDE.replace("{left_out}", repr(left_out)) + start.replace("\nanswer\n", "\n") + ask
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["npm", "node"])
def test_without_npm_there_is_no_playground_and_a_sentence(build_playground, tmp_path, monkeypatch, missing):
    monkeypatch.setattr(build_playground.shutil, "which", lambda name: None if name == missing else "/bin/true")
    monkeypatch.setattr(build_playground, "fetch_msgspec", lambda *_: OWN / "worker.js")
    if missing == "node":
        monkeypatch.setattr(build_playground, "fetch_runtime", lambda *_: None)
    with pytest.raises(build_playground.NotBuiltError, match=f"there is no {missing}"):
        build_playground.build(tmp_path / "made", tmp_path / "kept")
    assert not (tmp_path / "made").exists()
