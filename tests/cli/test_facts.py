"""`segue facts`: recorded exchanges become rows about one endpoint, and `check` reads them if it is asked to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import segue
from cli.running import run
from segue import Context, Model, Options, UserMessage
from segue.client.flow.attempts import Attempt
from segue.errors import DecodeError
from segue.failures.failure import Failure, FailureKind
from segue.protocols.api import check
from segue.testing.emulator import emulate
from segue.testing.evidence import (
    Fact,
    FactsFile,
    RecordedExchange,
    _pattern_of,  # pyright: ignore[reportPrivateUsage]
    as_catalogue,
    dump_facts,
    gather,
    judge,
    load_facts,
    read_exchanges,
)

DAY = "2026-11-18"
HOT = {"model": "o3", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.2}
MINE = Model("o3", "openai", "openai-chat")
SAID = "Unsupported value: 'verbosity' does not support 'low' with this model."


def exchange(status: int = 200, response: object = None, model: str = "o3", **rest: Any) -> RecordedExchange:
    return RecordedExchange(
        "openai-chat", "openai", model, status, {**HOT, "model": model, **rest}, response, "a.jsonl"
    )


def line(**rest: Any) -> str:
    known = {"protocol": "openai-chat", "provider": "openai", "model": "o3", "status": 200, "request": HOT}
    return json.dumps({**known, **rest}) + "\n"


@pytest.fixture
def cassettes(tmp_path: Path) -> Path:
    """A folder with one exchange in each form."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "a.jsonl").write_text(line() + line(status=400, request={**HOT, "temperature": 0.1}))
    request = {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "body": json.dumps(HOT)}
    reply = {"status": {"code": 200}, "body": {"string": "{}"}}
    (folder / "b.json").write_text(json.dumps({"interactions": [{"request": request, "response": reply}]}))
    entry = {
        "request": {"method": "POST", "url": request["uri"], "postData": {"text": json.dumps(HOT)}},
        "response": {"status": 200, "content": {"text": "{}"}},
    }
    (folder / "c.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    other = {"request": {"url": "https://example.com/other", "postData": {"text": "{}"}}, "response": {"status": 200}}
    (folder / "d.har").write_text(json.dumps({"log": {"entries": [other]}}))
    (folder / "notes.txt").write_text("not a recording")
    return folder


def test_each_form_of_recordings_is_read(cassettes):
    found = list(read_exchanges(cassettes))
    assert [(one.protocol, one.provider, one.model, one.status) for one in found] == [
        ("openai-chat", "openai", "o3", status) for status in (200, 400, 200, 200)
    ]


def test_a_cassette_in_yaml_is_read(tmp_path):
    pytest.importorskip("yaml")
    file = tmp_path / "a.yaml"
    file.write_text(
        "interactions:\n- request:\n    method: POST\n    uri: https://api.openai.com/v1/chat/completions\n"
        f"    body: '{json.dumps(HOT)}'\n  response:\n    status: {{code: 200}}\n    body: {{string: '{{}}'}}\n"
    )
    assert [one.model for one in read_exchanges(file)] == ["o3"]


def test_a_file_that_is_no_recording_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    ran = run("facts", tmp_path)
    assert ran.status == 2
    assert "a.json: no recording" in ran.err


# -- rows --------------------------------------------------------------------------------------------------------------


def test_a_reply_lowers_a_rule_for_its_endpoint_alone():
    [fact] = gather([exchange()], DAY)
    assert (fact.code, fact.grade, fact.replies, fact.refusals) == ("option_unsupported", "unsure", 1, 0)
    found = check(HOT, protocol="openai-chat", model=MINE)
    assert [one.grade for one in found] == ["refused"]
    assert [one.grade for one in judge(HOT, found, MINE, [fact])] == ["unsure"]
    for other in (Model("o4-mini", "openai", "openai-chat"), Model("o3", "azure", "openai-chat")):
        found = check(HOT, protocol="openai-chat", model=other)
        assert [one.grade for one in judge(HOT, found, other, [fact])] == ["refused"]
    # Without the row everything is as before.
    assert [one.grade for one in judge(HOT, check(HOT, protocol="openai-chat", model=MINE), MINE, [])] == ["refused"]


def test_a_key_that_is_overlooked_is_ignored_and_both_kinds_are_kept():
    facts = gather([exchange(temperature=1, no_such_field=1), exchange()], DAY)
    assert {(fact.code, fact.grade) for fact in facts} == {
        ("field_unknown", "ignored"),
        ("option_unsupported", "unsure"),
    }


def test_what_was_refused_as_well_is_not_lowered():
    facts = gather([exchange(), exchange(status=400, response={"error": {"message": "no"}})], DAY)
    assert [(fact.grade, fact.replies, fact.refusals) for fact in facts] == [("refused", 1, 1)]


REFUSALS: dict[str, tuple[object, dict[str, Any], tuple[str, object] | None]] = {
    "the field of the error": (
        {"error": {"message": "x", "param": "verbosity"}},
        {"verbosity": "low"},
        ("verbosity", "low"),
    ),
    "a name in its text": ({"error": {"message": SAID}}, {"verbosity": "low"}, ("verbosity", "low")),
    "an object": ({"error": {"message": SAID}}, {"verbosity": {"a": "secret"}}, ("verbosity", None)),
    "a long text": ({"error": {"message": SAID}}, {"verbosity": "what I wrote to the model"}, ("verbosity", None)),
    "the conversation": ({"error": {"message": "Invalid 'messages'"}}, {}, None),
    "a person": ({"error": {"message": "Invalid 'user'"}}, {"user": "ann"}, None),
    "nothing": ({"error": {"message": "server is busy"}}, {}, None),
}


@pytest.mark.parametrize(("response", "rest", "named"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_that_no_rule_explains_is_a_row_if_the_provider_names_a_setting(response, rest, named):
    body = {"temperature": None, **rest}
    facts = gather([exchange(400, response, "gpt-4o", **body)], DAY)
    if named is None or any(not fact.key for fact in facts):
        assert [fact.key for fact in facts if fact.key] == []
        return
    [fact] = facts
    assert (fact.key, fact.value, fact.grade) == (*named, "refused")
    model = Model("gpt-4o", "openai", "openai-chat")
    again = {**HOT, "model": "gpt-4o", **body}
    assert [one.path for one in judge(again, [], model, facts)] == [("verbosity",)]
    assert judge({**again, "verbosity": "high"}, [], model, facts) == [] or named[1] is None


def test_rows_hold_nothing_of_a_conversation():
    said = {
        "error": {"message": "Unsupported parameter: 'seed', key sk-abcdefghijklmnopqrstuvwxyz123456", "param": "seed"}
    }
    facts = gather([exchange(400, said, "llama", seed=7, messages=[{"role": "user", "content": "my secret"}])], DAY)
    text = dump_facts(facts).decode()
    assert "secret" not in text
    assert "sk-abcdefghijklmnopqrstuvwxyz123456" not in text
    assert load_facts(dump_facts(facts)) == facts


@pytest.mark.parametrize("key", ["a.b", "a b", "(x)", "\\d+", "é\n", "a-b[0]"])
def test_any_place_is_read_again(key: str):
    fact = replace(gather([exchange()], DAY)[0], path=_pattern_of(("messages", 3, key, "x")))
    assert load_facts(dump_facts([fact])) == [fact]


@pytest.mark.parametrize(
    "path", ["^(a+)+$", "(", ".*", "^a|b$", "^a.*$", "a", "^[^.]+$", "^(?:x{9}){9}$", "^a++$", "^\\w+$"]
)
def test_a_file_of_somebody_else_has_no_patterns_of_its_own(path: str):
    """They are searched in keys of bodies: one that backtracks would take for ever."""
    fact = replace(gather([exchange()], DAY)[0], path=path)
    with pytest.raises(DecodeError, match="is not a place"):
        load_facts(dump_facts([fact]), "facts.json")


# -- rules -------------------------------------------------------------------------------------------------------------


def test_rules_for_requests_follow_from_rows_only_if_they_are_passed():
    answered = gather([exchange()], DAY)
    asked = Context(messages=(UserMessage.of("hi"),))
    options = Options(temperature=0.2)
    model = as_catalogue(answered).models[0]
    assert segue.prepare(asked, model, options=options).body["temperature"] == 0.2
    assert "temperature" not in segue.prepare(asked, MINE, options=options).body
    refused = [
        Fact(
            protocol="openai-chat",
            provider="vllm",
            model="mine",
            code=answered[0].code,
            grade="refused",
            source="x",
            key="seed",
        )
    ]
    mine = as_catalogue(refused).models[0]
    assert segue.prepare(asked, Model("mine", "vllm", "openai-chat"), options=Options(seed=1)).body["seed"] == 1
    assert [one.path for one in check({**HOT, "seed": 1}, protocol="openai-chat", model=mine)] == [("seed",)]


def test_nothing_but_the_program_reads_rows():
    """The gateway serves many tenants, and the core has no files: neither knows of rows that somebody gathered."""
    root = Path(segue.__file__).parent
    readers = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "segue.testing.evidence" in path.read_text("utf-8")
    }
    assert readers == {"cli/facts.py", "cli/check.py"}


# -- the program -------------------------------------------------------------------------------------------------------


def test_rows_are_gathered_added_up_and_read_by_check(cassettes, tmp_path):
    body, facts = tmp_path / "body.json", tmp_path / "facts.json"
    body.write_text(json.dumps(HOT))
    (cassettes / "a.jsonl").write_text(line())
    ran = run("facts", cassettes, "--into", facts)
    assert ran.status == 0, ran.err
    assert ran.out.startswith(
        "unsure    openai/o3 over openai-chat  temperature  option_unsupported  (3 replies, 0 refusals)"
    )
    assert run("facts", facts).out == ran.out
    (cassettes / "e.jsonl").write_text(line() + line(model="o4-mini"))
    again = run("facts", cassettes, "--into", facts)
    assert again.status == 0, again.err
    assert [(fact.model, fact.replies) for fact in load_facts(facts.read_bytes())] == [("o3", 4), ("o4-mini", 1)]
    plain = ("--for", "openai-chat")
    assert run("check", body, *plain).status == 1
    assert run("check", body, *plain, "--facts", facts).status == 0
    assert run("check", body, *plain, env={"SEGUE_FACTS": str(facts)}).status == 0
    assert run("check", body, *plain, "--facts", facts, "--strict").status == 1


def test_the_rows_of_a_probe_and_rules_as_a_catalogue(tmp_path):
    card = {
        "providers": [
            {
                "name": "here",
                "protocol": "openai-chat",
                "source": "segue probe",
                "read": DAY,
                "rules": {"openai-chat": {"refused_options": ["seed"]}},
            }
        ],
        "models": [{"id": "mine", "provider": "here", "protocol": "openai-chat"}],
    }
    probed, rules = tmp_path / "card.json", tmp_path / "rules.json"
    probed.write_text(json.dumps(card))
    ran = run("facts", probed, "--rules", rules, "--json")
    assert ran.status == 0, ran.err
    [row] = json.loads(ran.out)["facts"]
    assert (row["key"], row["grade"], row["source"]) == ("seed", "refused", f"segue probe, {DAY}")
    [model] = segue.load_catalogue(rules).find("mine")
    assert model.rules == {"refused_extra": ["seed"]}
    again = run("facts", probed, "--rules", rules)
    assert again.status == 2
    assert "is there already" in again.err


# -- in use ------------------------------------------------------------------------------------------------------------


def test_a_client_fills_a_file_with_what_its_own_requests_show(tmp_path):
    file = FactsFile(tmp_path / "facts.json", DAY)
    asked = Context(messages=(UserMessage.of("hi"),))
    with emulate() as server:
        model = Model("gpt-4o", "mine", "openai-chat", base_url=f"{server.url}/v1")
        with segue.Client(api_key="x", on_request=file.on_request, on_attempt=file.on_attempt) as client:
            client.complete(asked, model)
    assert not file.path.exists(), "a request that is answered as expected is no news"
    body = {**HOT, "verbosity": "low"}
    request = segue.prepare(asked, Model("llama", "mine", "openai-chat"))
    request.body.update(body)
    file.on_request(request)
    failure = Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=SAID)
    for _ in range(2):
        file.on_attempt(Attempt(model=Model("llama", "mine", "openai-chat"), failure=failure))
    [fact] = load_facts(file.path.read_bytes())
    assert (fact.provider, fact.model, fact.key, fact.value, fact.refusals) == ("mine", "llama", "verbosity", "low", 2)
    assert file.path.stat().st_mode & 0o077 == 0
