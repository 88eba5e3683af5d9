"""Rows of data sets that are no requests become the request of the same conversation."""

from __future__ import annotations

import base64
import json
from importlib import import_module
from typing import Any

import pytest

from corpus.building import TARGET, TO, lines, needs_arrow, segue, write
from segue import convert
from segue.corpus import Converter

U, A = {"role": "user", "content": "What is 1 + 2?"}, {"role": "assistant", "content": "3"}
S = {"role": "system", "content": "Be brief."}
V = {"role": "user", "content": "Sure?"}
FUNCTION = {"name": "add", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}

ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "conversation": ({"conversation": [U, A, V]}, {"messages": [U, A, V]}),
    "conversations-of-messages": ({"conversations": [U, A, V]}, {"messages": [U, A, V]}),
    "conversations-as-json": ({"conversations": json.dumps([U, A, V])}, {"messages": [U, A, V]}),
    "conversation-of-json-texts": ({"conversation": [json.dumps(U)]}, {"messages": [U]}),
    "dialog": ({"dialog": [U, A, V]}, {"messages": [U, A, V]}),
    "sharegpt-as-json": (
        {"conversations": json.dumps([{"from": "human", "value": U["content"]}, {"from": "gpt", "value": "3"}])},
        {"messages": [U, A]},
    ),
    "alpaca": ({"instruction": "Add", "input": "1 2", "output": "3"}, {"messages": [{**U, "content": "Add\n1 2"}, A]}),
    "alpaca-without-input": (
        {"instruction": "Add", "input": "", "output": "3"},
        {"messages": [{**U, "content": "Add"}, A]},
    ),
    "alpaca-null-input": (
        {"instruction": "Add", "input": None, "output": "3"},
        {"messages": [{**U, "content": "Add"}, A]},
    ),
    "alpaca-with-history": (
        {
            "instruction": V["content"],
            "input": "",
            "output": "Yes",
            "system": S["content"],
            "history": [[U["content"], A["content"]]],
        },
        {"messages": [S, U, A, V, {**A, "content": "Yes"}]},
    ),
    "dolly": (
        {"instruction": "Add", "context": "1 2", "response": "3"},
        {"messages": [{**U, "content": "Add\n1 2"}, A]},
    ),
    "prompt-response": ({"prompt": U["content"], "response": "3"}, {"messages": [U, A]}),
    "question-answer": ({"question": U["content"], "answer": "3"}, {"messages": [U, A]}),
    "prompt-completion": ({"prompt": [U], "completion": [A]}, {"messages": [U, A]}),
    "prompt-alone": ({"prompt": U["content"]}, {"messages": [U]}),
    "prompt-of-messages": ({"prompt": [S, U]}, {"messages": [S, U]}),
    "functions-as-json": ({"messages": [U], "functions": json.dumps([FUNCTION])}, {"messages": [U], "tools": [TOOL]}),
    "capital-roles": (
        {"messages": [{**S, "role": "System"}, {**U, "role": "USER"}, {**A, "role": "Assistant"}, V]},
        {"messages": [S, U, A, V]},
    ),
    "human-and-gpt": (
        {"messages": [{**U, "role": "human"}, {**A, "role": "gpt"}, {**V, "role": "human"}]},
        {"messages": [U, A, V]},
    ),
    "roles-change-late": (
        {"messages": [S, {**U, "role": "human"}, {**A, "role": "gpt"}, V]},
        {"messages": [S, U, A, V]},
    ),
}


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()
URL = "https://example.org/dot.png"
MARKED = [{**U, "content": [{"type": "image"}, {"type": "text", "text": "What?"}]}, A]
PICTURES: dict[str, tuple[dict[str, Any], str]] = {
    "a URL in a list": ({"messages": MARKED, "images": [URL]}, URL),
    "base64": ({"messages": MARKED, "images": [PNG]}, f"data:image/png;base64,{PNG}"),
    "a column of one picture": ({"messages": MARKED, "image": URL}, URL),
    "bytes, as datasets keeps them": (
        {"messages": MARKED, "images": [{"bytes": base64.b64decode(PNG), "path": None}]},
        f"data:image/png;base64,{PNG}",
    ),
    "a mark with nulls": (
        {
            "messages": [{**U, "content": [{"type": "image", "text": None}, MARKED[0]["content"][1]]}, A],
            "images": [URL],
        },
        URL,
    ),
    "marks of ShareGPT, and bytes": (
        {
            "conversations": [{"from": "human", "value": "<image>What?"}, {"from": "gpt", "value": "3"}],
            "images": [{"bytes": base64.b64decode(PNG), "path": None}],
        },
        f"data:image/png;base64,{PNG}",
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_another_column_stands_in_the_place_of_its_mark(name):
    row, url = PICTURES[name]
    picture = {"type": "image_url", "image_url": {"url": url}}
    body = {"messages": [{**U, "content": [picture, {"type": "text", "text": "What?"}]}, A]}
    out = Converter(to=TARGET)({key: [value] for key, value in row.items()})
    assert out["error"] == [None]
    assert body_of(out["request"][0]) == convert(body, target=TARGET).body


def test_a_folder_with_pictures_in_another_column_is_converted(tmp_path):
    write(tmp_path / "in" / "a.jsonl", [json.dumps({"messages": MARKED, "images": [PNG]}).encode()])
    made = segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert PNG in (tmp_path / "out" / "a.jsonl").read_text()


@pytest.mark.parametrize(
    ("images", "reason"),
    [
        (["dot.png"], "images[0]: expected a picture as a URL, base64 or bytes, not 'dot.png'"),
        ([URL, URL], "the messages have 1 places for pictures, and this column has 2"),
        ([], "the messages have 1 places for pictures, and this column has 0"),
    ],
)
def test_a_row_whose_pictures_are_not_those_of_its_marks_is_refused(images, reason):
    out = Converter(to=TARGET)({"messages": [MARKED], "images": [images]})
    assert reason in out["error"][0]


def body_of(content: str | bytes) -> Any:
    return json.loads(content)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_on_a_line_gives_the_request_of_its_conversation(name, tmp_path):
    row, body = ROWS[name]
    write(tmp_path / "in" / "a.jsonl", [json.dumps(row).encode()])
    made = segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert body_of((tmp_path / "out" / "a.jsonl").read_bytes()) == convert(body, target=TARGET).body


@needs_arrow
@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_columns_gives_the_same(name):
    arrow: Any = import_module("pyarrow")
    row, body = ROWS[name]
    out = Converter(to=TARGET)(arrow.table({key: [value] for key, value in row.items()})).to_pylist()[0]
    assert out["error"] is None
    assert body_of(out["request"]) == convert(body, target=TARGET).body


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"prompt": U["content"], "chosen": "3", "rejected": "4"}, [U, A]),
        ({"prompt": [U], "chosen": [A], "rejected": [A]}, [U, A]),
        ({"prompt": [U], "chosen": [U, A], "rejected": [U, A]}, [U, A]),
        ({"chosen": [U, A], "rejected": [U, A]}, [U, A]),
        ({"chosen": json.dumps([U, A]), "rejected": "[]"}, [U, A]),
    ],
)
def test_an_answer_of_a_preference_row_stands_behind_its_prompt(row, messages):
    out = Converter(to=TARGET, column="chosen")({key: [value] for key, value in row.items()})
    assert out["error"] == [None]
    assert body_of(out["request"][0]) == convert({"messages": messages}, target=TARGET).body


@needs_arrow
def test_texts_of_a_preference_table_stand_behind_their_prompts():
    arrow: Any = import_module("pyarrow")
    table = arrow.table({"prompt": [U["content"]], "chosen": ["3"], "rejected": ["4"]})
    out = Converter(to=TARGET, column="chosen")(table).to_pylist()[0]
    assert body_of(out["request"]) == convert({"messages": [U, A]}, target=TARGET).body


@pytest.mark.parametrize(
    "body",
    [
        {"model": "gpt-5.4", "instructions": "Be brief.", "input": "Hello"},
        {"model": "gpt-5.4", "input": [{"role": "user", "content": "Hello"}]},
        {"model": "gpt-5.4", "prompt": {"id": "pmpt_1"}, "input": "Hello"},
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
        {"messages": [{"role": "user", "content": "Hello"}], "prompt": "an unknown key"},
    ],
)
def test_a_request_is_not_taken_for_a_row_of_a_data_set(body, tmp_path):
    write(tmp_path / "in" / "a.jsonl", [json.dumps(body).encode()])
    made = segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == convert(body, target=TARGET).content + b"\n"


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ({"prompt": 5, "completion": "3"}, "prompt: expected a text"),
        ({"instruction": "Add", "input": "", "output": 5}, "output: expected a text"),
        ({"instruction": "Add", "output": "3", "history": [["alone"]]}, "history[0]: expected a question"),
        ({"chosen": [U], "rejected": [U]}, "--column chosen"),
    ],
)
def test_what_is_wrong_with_a_row_is_one_sentence(row, word):
    (error,) = Converter(to=TARGET)({key: [value] for key, value in row.items()})["error"]
    assert word in error


def test_endings_may_have_capital_letters(tmp_path):
    write(tmp_path / "in" / "A B & (1).JSONL", lines(2))
    made = segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert made.status == 0, made.err
    assert (tmp_path / "out" / "A B & (1).JSONL").read_bytes().count(b"\n") == 2


def test_a_link_to_a_missing_file_is_not_left_out_silently(tmp_path):
    write(tmp_path / "in" / "a.jsonl", lines(2))
    (tmp_path / "in" / "b.jsonl").symlink_to(tmp_path / "gone.jsonl")
    made = segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert made.status == 2
    assert "b.jsonl" in made.err
    assert "Traceback" not in made.err
    assert (tmp_path / "out" / "a.jsonl").read_bytes().count(b"\n") == 2
