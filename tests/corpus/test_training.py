"""`--as training`: lines of a training set end with the assistant, and nothing in them was invented."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpus.building import chat, segue, write
from segue import Model, check, read_history, write_history
from segue.conversation.context import Tool
from segue.conversation.messages import Message
from segue.corpus import Converter
from segue.corpus.data_sets import FORMATS
from segue.corpus.rows import Reader
from segue.corpus.training import INVENTED
from segue.models.catalogue import get_model
from segue.projection.report import ChangeCode
from segue.protocols.registry import PROTOCOLS, all_protocols

LAST_TURN = {"last_turn_wrong"}
"""What `check` may say of a training line: a provider wants another turn last in a request."""
NO_PLACEHOLDER = {"signature_missing"}
"""Gemini 3 wants a signature on calls in a request; a training line must not have the placeholder for it."""
MODELS = {record.name: record.example for record in all_protocols() if record.training_forms}
MODELS |= {
    "Opus 4.8": get_model("anthropic/claude-opus-4-8"),
    "Mistral Large 4": get_model("mistral/mistral-large-4"),
    "Gemini 3": get_model("google/gemini-3.5-flash"),
    "GPT": get_model("openai/gpt-5.4"),
    "a model of Together": Model("m", "together", "openai-chat"),
}
KEYS = {
    "openai-chat": {"messages", "tools", "parallel_tool_calls"},
    "openai-responses": {"messages", "tools", "parallel_tool_calls"},
    "google-genai": {"systemInstruction", "contents", "tools"},
    "google-interactions": {"systemInstruction", "contents", "tools"},
    "anthropic-messages": {"system", "messages", "tools"},
    "mistral-chat": {"messages", "tools", "parallel_tool_calls"},
}
WRITTEN_BY_OTHERS = {"openai-responses", "google-interactions"}
"""Protocols whose models are trained with lines of another protocol."""


def answered(number: int, **more: object) -> dict[str, Any]:
    """Give a conversation that ends with an answer, with a call in it, and with options of a request."""
    body = chat(number)
    return {**body, "messages": body["messages"][:5], "temperature": 0.5, "max_tokens": 100, **more}


def simple(**more: object) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the tallest mountain?"},
        {"role": "assistant", "content": "Everest.", **more},
    ]
    return {"messages": messages}


def lines_for(model: Model, *bodies: dict[str, Any]) -> dict[str, list[Any]]:
    return Converter(to=model, purpose="training")({"text": [json.dumps(body) for body in bodies]})


def turns_of(line: dict[str, Any]) -> list[Any]:
    return line.get("messages") or line["contents"]


@pytest.mark.parametrize("name", MODELS)
def test_the_last_turn_is_the_assistants_and_nothing_is_invented(name):
    model = MODELS[name]
    out = lines_for(model, answered(1), simple())
    bodies = [json.loads(line) for line in out["request"] if line is not None]
    assert bodies, out["error"]
    for body in bodies:
        assert turns_of(body)[-1]["role"] in ("assistant", "model")
        assert "(continue" not in json.dumps(body)
        assert body.keys() <= KEYS.get(model.protocol, {"system", "messages", "tools", "toolConfig"})
    codes = {change["code"] for changes in out["changes"] if changes for change in json.loads(changes)}
    assert codes.isdisjoint(code.value for code in INVENTED)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].protocol not in WRITTEN_BY_OTHERS])
def test_check_names_nothing_but_the_last_turn(name):
    model = MODELS[name]
    for line in lines_for(model, answered(1), simple())["request"]:
        if line is None:
            continue
        body = json.loads(line)
        if model.protocol == "bedrock-converse" and "claude" in model.id:
            continue  # a line of Anthropic's format
        required = (
            {"model": model.id, "max_tokens": 100} if model.protocol == "anthropic-messages" else {"model": model.id}
        )
        found = check({**required, **body}, protocol=model.protocol, model=model)
        assert {each.code for each in found} <= LAST_TURN | NO_PLACEHOLDER, found


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].provider != "together"])
def test_the_program_checks_the_lines_as_training_lines(name, tmp_path):
    """Neither a limit of tokens nor a signature is missing in a training line, and weights are fields of it."""
    model = MODELS[name]
    write(tmp_path / "in.jsonl", [json.dumps(simple(weight=1)).encode(), json.dumps(answered(1)).encode()])
    to = ("--to", model.full_name(), "--to-protocol", model.protocol)
    segue("convert", tmp_path / "in.jsonl", *to, "--as", "training", "-o", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes()
    known = model.full_name() if name not in PROTOCOLS else model.protocol
    found = segue("check", tmp_path / "out.jsonl", "--for", known, "--format", "json")
    assert {each["code"] for each in json.loads(found.out)} <= LAST_TURN, found.out


def test_claude_on_bedrock_has_the_two_keys_of_anthropic_and_refuses_tools():
    model = get_model("amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
    out = lines_for(model, simple(), answered(1))
    assert list(json.loads(out["request"][0])) == ["system", "messages"] or set(json.loads(out["request"][0])) == {
        "system",
        "messages",
    }
    assert "have no 'tools'" in out["error"][1]


@pytest.mark.parametrize("name", ["GPT", "Mistral Large 4", "a model of Together"])
def test_the_weight_of_a_message_stays(name):
    out = lines_for(MODELS[name], simple(weight=0))
    assert [message.get("weight") for message in json.loads(out["request"][0])["messages"]] == [None, None, 0]
    assert "extra_removed" not in out["changes"][0]


CLAUDE_ON_BEDROCK = get_model("amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
WITHOUT_WEIGHTS = {"Claude": MODELS["Opus 4.8"], "Gemini": MODELS["Gemini 3"], "Claude on Bedrock": CLAUDE_ON_BEDROCK}


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_a_masked_turn_is_refused_where_lines_have_no_weights(name):
    out = lines_for(WITHOUT_WEIGHTS[name], simple(weight=0), simple(weight=1))
    assert out["request"][0] is None
    assert "messages[1]" in out["error"][0]
    assert "weight 0 would be trained; remove the turn, or choose another target" in out["error"][0]
    assert out["error"][1] is None, "a weight of 1 is the default"
    assert out["changes"][1] == "[]"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("weight", [0, 1])
def test_a_data_set_keeps_weights_which_are_read_from_it_again(form, weight, tmp_path):
    write(tmp_path / "in" / "a.jsonl", [json.dumps(simple(weight=weight)).encode()])
    segue("convert", tmp_path / "in", "--as", "training", "--format", form, "-o", tmp_path / "out")
    line = (tmp_path / "out" / "a.jsonl").read_text()
    row = json.loads(line)
    assert [turn.get("weight") for turn in row.get("messages") or row["conversations"]] == [None, None, weight]
    back = lines_for(MODELS["GPT"], row)
    assert [turn.get("weight") for turn in json.loads(back["request"][0])["messages"]] == [None, None, weight]
    again = write_history(read_history(row, format=form), format=form).files[0].data
    assert json.loads(again) == row


THOUGHTS = {
    "open": {"role": "assistant", "reasoning_content": "It is Everest.", "content": "Everest."},
    "signed by the target": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "It is Everest.", "signature": "c2ln"},
            {"type": "text", "text": "Everest."},
        ],
    },
}


@pytest.mark.parametrize("name", THOUGHTS)
@pytest.mark.parametrize("model", [CLAUDE_ON_BEDROCK, MODELS["GPT"]], ids=["Claude on Bedrock", "GPT"])
def test_thinking_is_not_learned_as_part_of_the_answer(model, name):
    out = lines_for(model, {"messages": [*simple()["messages"][:2], THOUGHTS[name]]})
    (answer,) = [turn for turn in turns_of(json.loads(out["request"][0])) if turn["role"] in ("assistant", "model")]
    assert "It is Everest." not in json.dumps(answer)
    assert "thinking_dropped" in out["changes"][0]


def test_turns_of_the_user_are_joined_for_claude_on_bedrock():
    body = {"messages": [{"role": "user", "content": "What is"}, *simple()["messages"][1:]]}
    out = lines_for(CLAUDE_ON_BEDROCK, body)
    assert [turn["role"] for turn in json.loads(out["request"][0])["messages"]] == ["user", "assistant"]


CALLS = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("a", "b", "c")]


def with_results(*order: str) -> list[Any]:
    results = [{"role": "tool", "tool_call_id": name, "content": f"of {name}"} for name in order]
    calls = {"role": "assistant", "content": None, "tool_calls": CALLS}
    return [{"role": "user", "content": "Go"}, calls, *results, {"role": "assistant", "content": "Done"}]


def results_in(row: dict[str, Any]) -> dict[str, object]:
    context = Reader().read_line(json.dumps(row)).document.prompt.context
    names = {call.id: call.name for turn in context.messages if turn.role == "assistant" for call in turn.tool_calls()}
    return {
        names[message.tool_call_id]: next((piece.text for piece in message.content if piece.kind == "text"), "")
        for message in context.messages
        if message.role == "toolResult"
    }


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a"), ("c", "b", "a")])
def test_parallel_results_of_sharegpt_stay_with_their_calls(order):
    context = Reader().read_line(json.dumps({"messages": with_results(*order)})).document.prompt.context
    written = write_history(context, format="sharegpt")
    assert results_in(json.loads(written.files[0].data)) == {name: f"of {name}" for name in "abc"}
    moved = [change for change in written.report.changes if change.code == "result_moved"]
    assert bool(moved) == (order != ("a", "b", "c"))


def test_results_of_sharegpt_stay_with_their_calls_if_one_comes_late_or_not_at_all():
    late = with_results("c")
    late[3:3] = [{"role": "user", "content": "And?"}, *with_results("b", "a")[2:4]]
    context = Reader().read_line(json.dumps({"messages": late})).document.prompt.context
    row = json.loads(write_history(context, format="sharegpt").files[0].data)
    assert results_in(row) == {name: f"of {name}" for name in "abc"}

    context = Reader().read_line(json.dumps({"messages": with_results("c")})).document.prompt.context
    written = write_history(context, format="sharegpt")
    assert results_in(json.loads(written.files[0].data)) == {"a": "", "b": "", "c": "of c"}
    assert [change.code for change in written.report.changes].count(ChangeCode.RESULT_MISSING) == 2


def test_an_empty_result_is_not_put_into_a_training_set(tmp_path):
    write(tmp_path / "a.jsonl", [json.dumps({"messages": with_results("c")}).encode()])
    made = segue(
        "convert", tmp_path / "a.jsonl", "--as", "training", "--format", "sharegpt", "-o", tmp_path / "b.jsonl"
    )
    assert made.status == 1
    assert "must not have invented content" in (tmp_path / "b.jsonl.bad.jsonl").read_text()


REFUSED = {
    "the user's turn is last": ({"messages": simple()["messages"][:2]}, "has to end with a turn of the assistant"),
    "a call has no result": (
        {"messages": [*chat(1)["messages"][:3], *chat(1)["messages"][4:5]], "tools": chat(1)["tools"]},
        "must not have invented content",
    ),
    "the first turn is not the user's": (
        {"messages": [{"role": "assistant", "content": "Hello."}]},
        "must not have invented content",
    ),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_conversation_that_would_need_an_invented_text_is_refused(body, reason):
    out = lines_for(MODELS["Mistral Large 4"], body)
    assert out["request"] == [None]
    assert reason in out["error"][0]


def test_a_call_may_be_the_last_thing_that_is_learned():
    body = answered(1)
    out = lines_for(MODELS["GPT"], {**body, "messages": body["messages"][:3]})
    assert json.loads(out["request"][0])["messages"][-1]["tool_calls"][0]["function"]["name"] == "read"


def test_the_program_writes_a_training_set_and_keeps_the_rest(tmp_path):
    source = write(
        tmp_path / "sft.jsonl",
        [json.dumps(simple()).encode(), json.dumps(REFUSED["the user's turn is last"][0]).encode()],
    )
    made = segue("convert", source, "--as", "training", "--to", "mistral/mistral-large-4", "-o", tmp_path / "x")
    assert made.status == 1
    assert "turn_inserted" not in made.err
    (line,) = (tmp_path / "x").read_bytes().splitlines()
    assert json.loads(line) == {"messages": simple()["messages"]}
    found = segue("check", tmp_path / "x", "--for", "mistral-chat", "--format", "json").out
    assert {each["code"] for each in json.loads(found)} <= LAST_TURN
    report = json.loads(segue("report", tmp_path / "x", "--format", "json").out)
    assert report["job"]["purpose"] == "training"
    assert all(
        change["code"] not in ("turn_inserted", "signature_placeholder")
        for change in report["summary"]["changes"].values()
    )


def _said(message: Message) -> list[object]:
    return [piece.text if piece.kind == "text" else getattr(piece, "arguments", None) for piece in message.content]


def _named(tool: Tool) -> tuple[str, object]:
    assert tool.kind == "function"
    return tool.name, tool.parameters


@pytest.mark.parametrize("form", FORMATS)
def test_a_data_set_keeps_the_turns_and_is_read_back(form, tmp_path):
    bodies = [simple(), answered(1), {"messages": simple()["messages"][:2]}]
    write(tmp_path / "in" / "a.jsonl", [json.dumps(body).encode() for body in bodies])
    made = segue("convert", tmp_path / "in", "--as", "training", "--format", form, "-o", tmp_path / "out")
    assert made.status == 1, made.err
    rows = [json.loads(line) for line in (tmp_path / "out" / "a.jsonl").read_bytes().splitlines()]
    assert len(rows) == 2
    for row, body in zip(rows, bodies, strict=False):
        again, before = (Reader().read_line(json.dumps(each)).document.prompt.context for each in (row, body))
        assert [message.role for message in again.messages] == [message.role for message in before.messages]
        assert [_said(message) for message in again.messages] == [_said(message) for message in before.messages]
        assert [_named(tool) for tool in again.tools] == [_named(tool) for tool in before.tools]
        assert again.system_prompt == before.system_prompt
    bad = json.loads((tmp_path / "out" / "a.jsonl.bad.jsonl").read_bytes())
    assert "has to end with a turn of the assistant" in bad["reason"]


def test_a_format_without_a_training_set_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", [json.dumps(simple()).encode()])
    made = segue("convert", tmp_path / "a.jsonl", "--format", "sharegpt", "-o", tmp_path / "b.jsonl")
    assert made.status == 2
    assert "add --as training" in made.err
