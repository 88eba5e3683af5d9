"""The length of a conversation for a target: tokens, share of the window and cost, and that it does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from cli.running import SESSION, run
from segue.histories.opening import open_source
from segue.inspector.inspection import Inspection
from segue.models.model import Model, Price
from segue.projection.policy import Policy
from segue.requests.tokens import Length

CATALOGUE = """
[[providers]]
name = "acme"
protocol = "openai-chat"
base_url = "https://llm.acme.example/v1"

[[models]]
id = "small"
provider = "acme"
protocol = "openai-chat"
context_window = 1200
cost = { input = 2.0, output = 4.0 }

[[models]]
id = "tiny"
provider = "acme"
protocol = "openai-chat"
context_window = 60

[[models]]
id = "unknown"
provider = "acme"
protocol = "openai-chat"
"""
TASK = {"role": "user", "content": "Mend the roof."}


@pytest.fixture
def catalogue(tmp_path):
    path = tmp_path / "models.toml"
    path.write_text(CATALOGUE)
    return path


def request(words: int) -> str:
    turns = [TASK, *({"role": role, "content": "word " * (words // 10)} for role in ("assistant", "user") * 5)]
    return json.dumps({"model": "small", "messages": turns})


def test_show_prints_the_length_for_each_model_that_wrote():
    out = run("show", SESSION).out
    end = out[out.index("next request") :]
    for name in ("anthropic/claude-sonnet-4-5", "openai/gpt-5.4", "google/gemini-3.5-flash"):
        line = next(line for line in end.splitlines() if name in line)
        assert "tokens" in line
        assert "% of the " in line
        assert "input costs about $0." in line


def test_show_says_what_does_not_fit(catalogue):
    arguments = ("show", SESSION, "--catalogue", catalogue, "--for", "acme/small", "--for", "acme/tiny")
    out = run(*arguments, "--for", "acme/unknown").out
    lines = {line.split(":")[0].strip(): line for line in out.splitlines() if "acme/" in line}
    assert "does not fit: about" in lines["acme/small"]
    assert "cut to about" in lines["acme/small"]
    assert "what has to be sent alone has about" in lines["acme/tiny"]
    assert "tokens" in lines["acme/unknown"]
    assert "%" not in lines["acme/unknown"]


def test_convert_prints_the_length_beside_the_report(catalogue):
    assert "Length: about" in run("convert", SESSION, "--to", "openai/gpt-5.4").err
    cut = run("convert", SESSION, "--to", "acme/small", "--catalogue", catalogue)
    assert cut.status == 0
    assert "Length: does not fit: about" in cut.err
    assert "turns_dropped" in cut.err


def test_convert_reports_the_length_as_json(catalogue):
    ran = run("convert", SESSION, "--to", "acme/small", "--catalogue", catalogue, "--report", "json")
    length = json.loads(ran.err)["length"]
    assert length["fits"] is False
    assert length["sentTokens"] <= length["limit"] < length["tokens"]
    assert 0 < length["share"] <= 1
    assert length["cost"] == pytest.approx(length["sentTokens"] * 2e-6)


def test_convert_refuses_what_cannot_fit(catalogue):
    ran = run("convert", SESSION, "--to", "acme/tiny", "--catalogue", catalogue)
    assert ran.status == 1
    assert ran.out == ""
    assert "does not fit" in ran.err or "fit" in ran.err


def test_check_finds_a_request_that_is_certainly_too_long(catalogue):
    ran = run("check", "-", "--for", "acme/small", "--catalogue", catalogue, stdin=request(3000))
    assert ran.status == 1
    assert "error: 3,003 words are at least as many tokens, and the window has 1,200" in ran.out
    assert "[window_exceeded]" in ran.out


def test_check_warns_of_a_request_that_is_too_long_by_the_estimate(catalogue):
    ran = run("check", "-", "--for", "acme/small", "--catalogue", catalogue, stdin=request(1150))
    assert "warning: the request has about" in ran.out
    assert "[window_exceeded_by_estimate]" in ran.out
    assert run("check", "-", "--for", "acme/small", "--catalogue", catalogue, stdin=request(300)).status == 0


def test_check_finds_a_history_that_cannot_be_cut_to_the_window(catalogue):
    ran = run("check", SESSION, "--for", "acme/tiny", "--catalogue", catalogue)
    assert ran.status == 1
    assert "[does_not_fit]" in ran.out


def test_the_inspector_shows_what_is_cut_and_what_it_costs():
    small = Model("small", "acme", "openai-chat", context_window=1200, cost=Price(input=2.0))
    large, tiny = (Model("m", "acme", "openai-chat", context_window=window) for window in (400_000, 60))
    with SESSION.open("rb") as file:
        document = open_source(file, name="session").document
    assert document is not None
    cut, whole, unsent = (
        cast("Mapping[str, Any]", Inspection(document, model, Policy()).summary()) for model in (small, large, tiny)
    )
    assert cut["length"]["fits"] is False
    assert cut["length"]["sent"] <= cut["length"]["limit"] < cut["length"]["whole"]
    assert cut["length"]["cost"] == pytest.approx(cut["length"]["sent"] * 2e-6)
    assert whole["length"]["fits"] is True
    assert "cost" not in whole["length"]
    assert "problem" in unsent


def test_the_share_is_that_of_the_number_before_it():
    length = Length(whole=174_755, sent=99_152, limit=183_616, window=200_000, cost=None)
    text = "about 174,755 tokens, 95% of the 183,616 that the input may have; cut to about 99,152"
    assert length.describe() == text
    assert length._replace(whole=200_000).describe().endswith("cut to about 99,152 (54%)")
