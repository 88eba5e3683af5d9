"""`segue check`, `segue show` and `segue models`."""

from __future__ import annotations

import datetime as dt
import json
import re

import pytest

from cli.running import SESSION, run
from cli.terminal import Terminal
from property_testing import tiers
from segue.cli.inputs import EXAMPLE
from segue.cli.models import describe_date
from segue.models.catalogue import Catalogue, CatalogueSource, packaged_catalogue

BROKEN = {
    "model": "claude-opus-4-8",
    "max_tokens": 10,
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
        {"role": "user", "content": "never mind"},
    ],
}
FINE = {**BROKEN, "messages": BROKEN["messages"][:1]}


@pytest.mark.parametrize("target", ["anthropic/claude-opus-4-8", "anthropic-messages"])
def test_an_invalid_request_is_a_finding(target):
    found = run("check", "-", "--for", target, stdin=json.dumps(BROKEN))
    assert found.status == 1
    assert "messages[1]" in found.out
    assert "error" in found.out


def test_a_valid_request_has_no_findings():
    assert run("check", "-", "--for", "anthropic-messages", stdin=json.dumps(FINE)) == (0, "", "no problems found\n")


def test_findings_as_json_have_code_path_and_line():
    lines = f"{json.dumps(FINE)}\n{json.dumps(BROKEN)}\n"
    found = json.loads(run("check", "-", "--for", "anthropic-messages", "--format", "json", stdin=lines).out)
    assert {row["line"] for row in found} == {2}
    assert all(row["code"] and row["path"][0] == "messages" and row["level"] == "error" for row in found)


def test_findings_for_github_are_workflow_commands():
    out = run("check", "-", "--for", "anthropic-messages", "--format", "github", stdin=json.dumps(BROKEN)).out
    assert all(line.startswith("::error file=<stdin>,line=1,title=") for line in out.splitlines())


def test_a_stored_history_is_checked_by_its_projection():
    lossy = run("check", SESSION, "--for", "openai/gpt-5.4")
    assert lossy.status == 1
    assert "messages[1].content[0]: warning" in lossy.out
    assert "error_as_text" not in lossy.out
    assert "error_as_text" in run("check", SESSION, "--for", "openai/gpt-5.4", "--all").out


def test_an_unreadable_line_is_a_finding():
    found = run("check", "-", "--for", "anthropic-messages", stdin=f"{json.dumps(FINE)}\n{{oops\n")
    assert found.status == 1
    assert "<stdin>:2: whole conversation: error: not valid JSON: column 2:" in found.out


def test_what_only_the_provider_can_know_has_its_place():
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    body = {**FINE, "messages": [{"role": "user", "content": [picture]}]}
    shown = run("check", "-", "--for", "anthropic/claude-opus-4-8", "--explain", stdin=json.dumps(body))
    lines = [line for line in shown.out.splitlines() if line.startswith("cannot know: ")]
    place = "messages[0].content[0].source.url"
    assert f"cannot know: {place}: whether the provider can fetch this address" in lines
    assert "cannot know: whether anthropic still serves claude-opus-4-8" in lines


def test_show_prints_turns_models_calls_media_and_costs():
    out = run("show", SESSION).out
    for given in (
        "1 assistant  anthropic/claude-sonnet-4-5 over anthropic-messages as claude-sonnet-4-5-20250929",
        '-> read_file({"path":"shop/export.py"})',
        "[image: image/png, 0.1 KB]",
        "[aborted: Request was aborted]",
        "5 result  run toolu_01Nh2WcYx9rMq4sTz7kLvPbE failed",
        "openai/gpt-5.4: 2 turns, ",
        "$0.0110",
    ):
        assert given in out


def test_the_example_in_the_package_is_that_of_the_repository():
    assert EXAMPLE.read_bytes() == SESSION.read_bytes()
    shown = run("show", "--example")
    assert (shown.status, shown.out) == (0, run("show", SESSION).out)


EXAMPLE_COMMANDS = {
    "show": ("show",),
    "convert": ("convert", "--to", "openai/gpt-5.4"),
    "check": ("check", "--for", "openai-chat"),
}


@pytest.mark.parametrize("command", [*EXAMPLE_COMMANDS.values(), ("ui",)], ids=" ".join)
def test_an_example_and_a_file_are_refused(command: tuple[str, ...]):
    refused = run(*command, "--example", SESSION)
    assert refused.status == 2
    assert "leave out" in refused.err


@pytest.mark.parametrize("command", EXAMPLE_COMMANDS.values(), ids=EXAMPLE_COMMANDS.keys())
def test_the_example_is_read_in_place_of_a_file(command: tuple[str, ...]):
    assert run(*command, "--example").out == run(*command, SESSION).out.replace(str(SESSION), EXAMPLE.name)


@pytest.mark.parametrize("command", EXAMPLE_COMMANDS.values(), ids=EXAMPLE_COMMANDS.keys())
def test_a_command_without_a_file_names_the_example(command: tuple[str, ...]):
    refused = run(*command)
    assert refused.status == 2
    assert "name a FILE to read, or use --example" in refused.err


def test_show_counts_a_single_turn():
    text = {"type": "text", "text": "Hello."}
    answer = {"role": "assistant", "content": [text], "provider": "p", "model": "m", "usage": {"input": 1, "output": 1}}
    stored = {"format": "segue/1", "messages": [answer]}
    assert "p/m: 1 turn, 1 input" in run("show", "-", stdin=json.dumps(stored)).out


def test_show_shortens_thinking_without_full():
    folded, full = run("show", SESSION).out, run("show", SESSION, "--full").out
    assert re.search(r"\.\.\. \(\d{3} characters\)", folded)
    assert not re.search(r"\.\.\. \(\d{3} characters\)", full)
    assert len(full) > len(folded)


MANY = "\n".join(json.dumps({"messages": [{"role": "user", "content": f"number {n}"}]}) for n in (1, 2, 3)) + "\n"
CHOSEN = {
    "the first": ((), "number 1", "conversation 1 of 3, line 1; --nth N shows another"),
    "by its number": (("--nth", 2), "number 2", "conversation 2 of 3, line 3"),
    "by its line": (("--line", 3), "number 2", "conversation 2 of 3, line 3"),
}


@pytest.mark.parametrize(("arguments", "text", "position"), CHOSEN.values(), ids=CHOSEN.keys())
def test_show_selects_one_conversation_and_says_how_many_there_are(arguments, text, position):
    shown = run("show", "-", *arguments, stdin=MANY.replace("\n", "\n\n", 1))
    assert (shown.status, text in shown.out, position in shown.err) == (0, True, True)


@pytest.mark.parametrize("arguments", [("--nth", 4), ("--line", 2), ("--nth", 1, "--line", 1)])
def test_a_conversation_that_is_not_there_is_an_error(arguments):
    shown = run("show", "-", *arguments, stdin=MANY.replace("\n", "\n\n", 1))
    assert (shown.status, shown.out) == (2, "")
    assert "--nth" in shown.err


def test_a_file_with_one_conversation_has_no_second():
    shown = run("show", SESSION, "--nth", 2)
    assert (shown.status, "has 1 conversation" in shown.err) == (2, True)
    assert run("show", SESSION, "--nth", 1).err == ""


FILTERS = {
    "words": (("claude sonnet",), lambda model: "claude" in model["id"] + model.get("name", "").lower()),
    "a provider": (("--provider", "mistral"), lambda model: model["provider"] == "mistral"),
    "its inputs": (
        ("--input", "audio", "--input", "video"),
        lambda model: {"audio", "video"} <= set(model["input"]),
    ),
    "reasoning": (("--reasoning",), lambda model: model["reasoning"]),
    "a window": (("--window", "900000"), lambda model: model["contextWindow"] >= 900_000),
    "a price": (("--max-price", "0.5"), lambda model: model.get("cost", {}).get("input", 0) <= 0.5),
    "a protocol": (("--protocol", "google-genai"), lambda model: model["protocol"] == "google-genai"),
}


@pytest.mark.parametrize(("arguments", "fits"), FILTERS.values(), ids=FILTERS.keys())
def test_models_are_found_by(arguments, fits):
    found = json.loads(run("models", *arguments, "--json").out)
    assert found
    assert all(map(fits, found))


def test_one_model_is_shown_with_its_rules():
    shown = run("models", "anthropic/claude-sonnet-4-5").out
    assert "call_id_alphabet" in shown
    whole = json.loads(run("models", "anthropic/claude-sonnet-4-5", "--json").out)
    assert whole["rules"]["reasoning_replay"] == "signed"


def test_a_model_names_the_options_that_it_takes_with_their_places():
    shown = run("models", "google/gemini-2.0-flash").out
    assert re.search(r"top_k +generationConfig\.topK", shown)
    assert "verbosity" not in shown
    whole = json.loads(run("models", "google/gemini-2.0-flash", "--json").out)
    assert whole["options"]["top_k"] == "generationConfig.topK"


def test_the_table_of_models_has_a_row_each():
    table = run("models", "--provider", "anthropic")
    rows = json.loads(run("models", "--provider", "anthropic", "--json").out)
    assert len(table.out.splitlines()) == len(rows) + 1
    assert f"{len(rows)} models" in table.err


@pytest.mark.parametrize("columns", tiers([80], [100, 200]))
@pytest.mark.parametrize("arguments", [("--provider", "amazon-bedrock"), ("--input", "audio"), ("mistral-large-4",)])
def test_every_line_fits_the_terminal(arguments, columns, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal = Terminal("models", *arguments, term="xterm", columns=columns)
    try:
        seen = terminal.wait_for("the catalogue was updated on [-0-9]+")
    finally:
        terminal.close()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", seen).split("\r\n")
    assert max(map(len, lines)) <= columns
    assert "…" not in seen
    names = [model.full_name() for model in packaged_catalogue().find(provider="amazon-bedrock")]
    if "amazon-bedrock" in arguments:
        assert set(names) <= {line.split(" ")[0] for line in lines}


@pytest.mark.parametrize("arguments", [("--provider", "anthropic"), ("anthropic/claude-sonnet-4-5",), ("--json",)])
def test_the_date_of_the_catalogue_is_shown(arguments):
    assert f"the catalogue was updated on {packaged_catalogue().date}" in run("models", *arguments).err


AGES = {"180 days": (180, False), "181 days": (181, True)}


@pytest.mark.parametrize(("days", "warns"), AGES.values(), ids=AGES.keys())
def test_a_catalogue_older_than_180_days_is_a_warning(days: int, warns: bool):
    catalogue = Catalogue(models=(), sources=(CatalogueSource(name="a", version="1", read="2026-01-01"),))
    text = describe_date(catalogue, dt.date(2026, 1, 1) + dt.timedelta(days=days))
    assert "2026-01-01" in text
    assert text.startswith("warning: ") is warns
    assert ("pip install -U segue-llm" in text) is warns


def test_a_catalogue_without_a_date_is_described_as_such():
    assert describe_date(Catalogue(models=()), dt.date(2026, 1, 1)) == "the date of the catalogue is unknown"
