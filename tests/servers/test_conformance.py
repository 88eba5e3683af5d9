"""The conformance suite: its cases, what passes them, and what each planted fault of a proxy fails."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from cli.running import run
from segue.cli.conformance import own_gateway
from segue.cli.statuses import Status
from segue.requests.check import check
from segue.testing.conformance.card import Card, Outcome
from segue.testing.conformance.cases import FOLDER, load_wire, wire_names
from segue.testing.conformance.judging import leaves
from segue.testing.conformance.running import run_suite, run_upstream
from segue.testing.emulator import emulate
from servers.faulty_proxy import FAULTS, Fault, lose_words, proxy_with

ROOT = Path(__file__).parents[2]
CONTROLS = ("plain-turns", "call-and-result", "reply-with-call")
"""Cases that most faults leave alone."""
CHAT, RESPONSES, ANTHROPIC, GOOGLE = "openai-chat", "openai-responses", "anthropic-messages", "google-genai"
ALL = (CHAT, RESPONSES, ANTHROPIC, GOOGLE)
WITH_SYSTEM_TURNS = (CHAT, RESPONSES, ANTHROPIC)
SIGNED = ("signature-back", "signature-in-tool-loop", "signature-before-parallel-calls", "signatures-of-two-rounds")

NAMED: dict[str, dict[str, tuple[str, ...]]] = {
    "drops signatures": {
        CHAT: SIGNED,
        RESPONSES: (*SIGNED, "compacted-by-the-provider"),
        ANTHROPIC: (*SIGNED, "bound-reasoning", "bound-reasoning-of-two-rounds", "redacted-thinking"),
        GOOGLE: SIGNED,
    },
    "gives results to other calls": dict.fromkeys(
        ALL, ("parallel-calls", "parallel-results-out-of-order", "one-tool-twice", "aborted-call", "empty-result")
    ),
    "swallows system texts": dict.fromkeys(
        WITH_SYSTEM_TURNS, ("system-in-the-middle", "system-at-the-end", "two-system-texts", "system-after-results")
    ),
    "drops the system prompt": dict.fromkeys(ALL, ("system-prompt", "system-parts", "long-system-prompt")),
    "drops images": {
        **dict.fromkeys(ALL, ("image", "several-images", "image-by-address", "image-in-history")),
        ANTHROPIC: ("image", "image-in-result", "images-in-results"),
    },
    "reorders turns": dict.fromkeys(ALL, ("plain-turns", "long-history", "two-user-turns", "aborted-turn")),
    "sends the first 128 tools": dict.fromkeys((RESPONSES, ANTHROPIC, GOOGLE), ("tools-200",)),
    "forgets the reply before": {RESPONSES: ("continued-by-id", "result-continued-by-id")},
    "sends the newest turns": dict.fromkeys(ALL, ("long-history",)),
    "renames calls and not results": dict.fromkeys(
        WITH_SYSTEM_TURNS, ("call-and-result", "ids-of-openai", "failed-tool")
    ),
    "reads integers as doubles": dict.fromkeys(ALL, ("large-integer",)),
    "drops names": {CHAT: ("names",)},
    "drops the format of answers": {
        **dict.fromkeys((CHAT, RESPONSES, GOOGLE), ("output-schema", "json-mode")),
        ANTHROPIC: ("output-schema",),
    },
    "drops the choice of tools": dict.fromkeys(ALL, ("forced-tool", "required-tool", "no-tool")),
    "writes ASCII": dict.fromkeys(ALL, ("unicode-text", "nested-arguments")),
    "collapses whitespace": dict.fromkeys(ALL, ("whitespace-in-code",)),
    "shortens texts": dict.fromkeys(ALL, ("long-text", "long-system-prompt", "long-result")),
    "ends broken streams": {CHAT: ("stream-cut",)},
    "does not stream": {CHAT: ("stream-cut", "reply-in-many-pieces", *CONTROLS)},
    "loses pieces of streams": dict.fromkeys(ALL, ("reply-in-many-pieces",)),
    "hides that a reply is too long": dict.fromkeys((CHAT, ANTHROPIC, GOOGLE), ("reply-too-long",)),
    "keeps one call of a reply": {CHAT: ("reply-with-parallel-calls",)},
}
"""The cases that name each fault, by wire."""


def failing(card: Card) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for outcome in card.failed(strict=True):
        found.setdefault(outcome.wire, set()).add(outcome.case)
    return found


# -- the cases ---------------------------------------------------------------------------------------------------------


def test_the_files_are_those_that_the_script_writes():
    script = ROOT / "scripts" / "write_conformance.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_files_follow_their_schema():
    schema = json.loads((FOLDER / "schema.json").read_text("utf-8"))
    for wire in wire_names():
        jsonschema.validate(json.loads((FOLDER / f"{wire}.json").read_text("utf-8")), schema)


def test_there_are_cases_for_four_wires_and_each_has_words_of_its_own():
    assert set(wire_names()) == set(ALL)
    assert len({case.id for wire in ALL for case in load_wire(wire).cases}) >= 80
    for wire in ALL:
        cases = load_wire(wire).cases
        assert len(cases) >= 70
        assert len({case.id for case in cases}) == len(cases)
        owners: dict[str, str] = {}
        for case in cases:
            assert any(part.word.startswith("qz") for part in case.expect.kept), case.id
            for part in case.expect.kept:
                if part.word.startswith("qz"):
                    assert owners.setdefault(part.word, case.id) == case.id


@pytest.mark.parametrize("wire", ALL)
def test_the_provider_of_a_wire_accepts_the_bodies(wire: str):
    rows = load_wire(wire)
    checked = 0
    for case in rows.cases:
        for step in case.steps:
            if any(text.startswith("$") for text in leaves(step.body)):
                continue  # places for replies: the script checks these bodies with a turn in the place
            body = {**step.body, "model": case.model or rows.model}
            assert [finding.code for finding in check(body, protocol=wire)] == [], case.id
            checked += 1
    assert checked >= 70


# -- what passes, and what does not ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ALL)
def test_the_gateway_passes_every_case(wire: str):
    with run_upstream() as (upstream_url, upstream), own_gateway(upstream_url, None) as url:
        card = run_suite(url, upstream=upstream, wires=(wire,))
    assert [(outcome.case, outcome.faults) for outcome in card.failed(strict=True)] == []
    assert card.score == 100


@pytest.mark.proof
@pytest.mark.parametrize("model", ["anthropic/claude-opus-4-8", "google/gemini-3.1-pro-preview", "openai/gpt-5.4"])
def test_the_gateway_loses_only_settings_at_a_model_of_another_wire(model: str):
    with run_upstream() as (upstream_url, upstream), own_gateway(upstream_url, model) as url:
        card = run_suite(url, upstream=upstream, model=model)
    assert {outcome.case for outcome in card.failed(strict=True)} <= {"json-mode", "temperature", "stop-text"}


def test_every_case_fails_at_a_proxy_that_loses_one_of_its_parts():
    lost = {wire: _first_words(wire) for wire in ALL}
    words = {word for each in lost.values() for word in each.values()}
    for wire in ALL:
        with proxy_with(lose_words(words)) as (url, upstream):
            card = run_suite(url, upstream=upstream, wires=(wire,))
        assert failing(card)[wire] == {case.id for case in load_wire(wire).cases}


def _first_words(wire: str) -> dict[str, str]:
    return {
        case.id: next(part.word for part in case.expect.kept if part.word.startswith("qz"))
        for case in load_wire(wire).cases
    }


def test_a_proxy_without_a_fault_passes():
    cases = {case for wires in NAMED.values() for named in wires.values() for case in named}
    with proxy_with(Fault()) as (url, upstream):
        card = run_suite(url, upstream=upstream, cases=cases)
    assert failing(card) == {}


def test_every_fault_has_its_cases():
    assert set(NAMED) == set(FAULTS)


@pytest.mark.parametrize("fault", NAMED)
def test_a_fault_of_a_proxy_is_named_by_its_cases(fault: str):
    for wire, cases in NAMED[fault].items():
        with proxy_with(FAULTS[fault]) as (url, upstream):
            card = run_suite(url, upstream=upstream, wires=(wire,), cases={*cases, *CONTROLS, "unicode-text"})
        found = failing(card)[wire]
        assert found >= set(cases), wire
        if fault not in ("reorders turns", "does not stream", "renames calls and not results", "writes ASCII"):
            assert found == set(cases), wire


def test_a_loss_that_is_reported_is_not_a_silent_one():
    silent = FAULTS["drops names"]
    with proxy_with(silent._replace(headers=((b"x-gateway-dropped", b"name"),))) as (url, upstream):
        cards = [
            run_suite(url, upstream=upstream, wires=(CHAT,), cases={"names"}, report_headers=headers)
            for headers in ((), ("x-gateway-dropped",))
        ]
    assert [card.outcomes[0].verdict for card in cards] == ["failed", "reported"]
    assert [len(card.failed()) for card in cards] == [1, 0]
    assert cards[0].outcomes[0].faults == ("lost: name of a person",)


def test_a_server_without_a_scripted_provider_is_judged_by_what_it_accepts():
    with emulate() as server:
        card = run_suite(f"{server.url}/v1", wires=(CHAT,), cases={"plain-turns", "signature-back", "stream-cut"})
    assert {outcome.case: (outcome.accepted, outcome.kept, outcome.streamed) for outcome in card.outcomes} == {
        "plain-turns": (True, None, True),
        "signature-back": (True, None, True),
    }
    assert card.skipped == 1


# -- the card and the program ------------------------------------------------------------------------------------------

CARD = Card(
    target="http://127.0.0.1:1",
    outcomes=(
        Outcome(wire=CHAT, case="a", title="A <b>", accepted=True, kept=True, streamed=True),
        Outcome(
            wire=CHAT, case="b", title="B", accepted=True, kept=False, reported=True, streamed=True, faults=("lost: x",)
        ),
        Outcome(wire=CHAT, case="c", title="C", accepted=False, reported=False, faults=("status 500: <x>",)),
    ),
)


def test_the_card_counts_each_question():
    lines = CARD.render_text().splitlines()
    assert lines[2].split() == ["wire", "cases", "accepted", "kept", "reported", "streamed", "passed"]
    assert lines[3].split() == [CHAT, "3", "2/3", "1/2", "1/2", "2/2", "1"]
    assert "failed: c (openai-chat): C" in lines
    assert json.loads(CARD.render_json())["cases"][1]["verdict"] == "reported"


def test_junit_and_badge_can_be_read():
    suite = ET.fromstring(CARD.render_junit())
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["c"]
    assert ET.fromstring(CARD.render_junit(strict=True)).get("failures") == "2"
    badge = ET.fromstring(CARD.render_badge())
    assert "33% · v1" in "".join(badge.itertext())


def test_the_program_writes_the_files(tmp_path: Path):
    junit, badge = tmp_path / "junit.xml", tmp_path / "badge.svg"
    arguments = ["--wire", CHAT, "--case", "plain-turns", "--junit", str(junit), "--badge", str(badge), "--json"]
    result = run("conformance", "gateway", *arguments)
    assert result.status == Status.SUCCESS, result.err
    assert json.loads(result.out)["score"] == 100
    assert 'failures="0"' in junit.read_text("utf-8")
    assert "100%" in badge.read_text("utf-8")


def test_the_program_says_what_is_wrong():
    with proxy_with(FAULTS["drops names"]) as (url, _):
        pass
    assert run("conformance", url).status == Status.FAILED
    assert "begins with http" in run("conformance", "somewhere").err
    assert "no case 'nothing'" in run("conformance", "gateway", "--case", "nothing").err
    assert "late-result" in run("conformance", "--list").out
    assert run("conformance").status == Status.USAGE
    assert "is not NAME=VALUE" in run("conformance", "gateway", "--header", "x-provider").err


def test_headers_are_sent_with_every_request():
    with run_upstream() as (url, upstream):
        run_suite(url, upstream=upstream, wires=(CHAT,), cases={"plain-turns"}, headers={"x-provider": "one"})
    assert {each.headers.get("x-provider") for each in upstream.emulator.requests} == {"one"}


# -- the scoreboard ----------------------------------------------------------------------------------------------------


def test_the_scoreboard_is_of_these_cases():
    board = json.loads((ROOT / "docs" / "scoreboard.json").read_text("utf-8"))
    assert board["suite"] == CARD.version
    for program in board["programs"]:
        for lane in program["lanes"]:
            known = {case.id for case in load_wire(lane["wire"]).cases}
            assert set(lane["failed"]) <= known, program["name"]
            assert lane["passed"] + len(lane["failed"]) == lane["cases"], program["name"]
            if lane["provider"] is not None:
                assert lane["cases"] == len(known), f"{program['name']}: run scripts/scoreboard.py again"


def test_a_card_is_counted_and_ports_and_ids_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    board = importlib.import_module("scoreboard")
    case = {"case": "names", "verdict": "failed", "accepted": True, "kept": False, "reported": False, "streamed": None}
    fault = "status 500: 127.0.0.1:4711 refuses req 0123456789abcdef01"
    lane = board.Lane(CHAT, ANTHROPIC, "one")
    done = board.summarise({"cases": [{**case, "faults": [fault]}]}, lane, ["--upstream", "4711", "--model", "one"])
    assert done["command"] == "segue conformance URL --upstream PORT --model one"
    assert (done["passed"], done["accepted"], done["kept"], done["streamed"]) == (0, [1, 1], [0, 1], None)
    assert done["failed"]["names"]["fault"] == "status 500: 127.0.0.1 refuses req ID"
