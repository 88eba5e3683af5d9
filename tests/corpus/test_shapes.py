"""Rows in the formats of data sets: each gives the request and the changes of the same conversation as JSON."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from corpus.building import TARGET, TO, TOOLS, chat, lines, needs_arrow, segue, write
from segue import Model, Policy, convert
from segue.corpus import Converter, Job, convert_shard, plan
from segue.corpus.rows import Reader
from segue.errors import SegueError
from segue.histories.opening import BadLine, How, open_line
from segue.models.catalogue import get_model

CHATS = [chat(number) for number in range(12)]
WRITER = Converter(to=TARGET)


def expected(body: Any) -> tuple[str, str]:
    """Give the request, and the changes as the converter writes them."""
    request = convert(body, target=TARGET)
    counts: dict[tuple[str, str], int] = {}
    for change in request.report.changes:
        kind = change.code.value, change.loss.value
        counts[kind] = counts.get(kind, 0) + 1
    changes = [{"code": code, "loss": loss, "times": times} for (code, loss), times in counts.items()]
    return request.content.decode(), json.dumps(changes, separators=(",", ":"))


def filled(body: dict) -> dict:
    """Fill missing fields with nulls, as Arrow does with structs."""
    body = copy.deepcopy(body)
    names = {key for message in body["messages"] for key in message}
    for message in body["messages"]:
        for key in names - message.keys():
            message[key] = None
        for call in message["tool_calls"] or ():
            call["index"] = None
    properties = {key for tool in body["tools"] for key in tool["function"]["parameters"]["properties"]}
    for tool in body["tools"]:
        schema = tool["function"]["parameters"]
        schema["properties"] = {key: schema["properties"].get(key) for key in sorted(properties)}
        schema["title"] = None
    return body


def sharegpt(body: dict) -> dict:
    names = {"user": "human", "assistant": "gpt"}
    turns = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        if message["role"] == "tool":
            turns.append({"from": "observation", "value": message["content"]})
        elif message.get("tool_calls"):
            function = message["tool_calls"][0]["function"]
            call = {"name": function["name"], "arguments": json.loads(function["arguments"])}
            turns.append({"from": "function_call", "value": json.dumps(call)})
        else:
            turns.append({"from": names[message["role"]], "value": message["content"]})
    return {"conversations": turns, "system": "Be brief.", "tools": json.dumps(body["tools"])}


def renamed(body: dict) -> dict:
    """Give the conversation with the ids that a reader of ShareGPT makes."""
    body = copy.deepcopy(body)
    del body["model"]
    for message in body["messages"]:
        if "tool_call_id" in message:
            message["tool_call_id"] = "call_2_0"
        for call in message.get("tool_calls", ()):
            call["id"] = "call_2_0"
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), separators=(",", ":"))
    return body


def without_model(body: dict) -> dict:
    return {key: value for key, value in body.items() if key != "model"}


LINE_SHAPES = {
    "a request": (lambda body: body, lambda body: body),
    "tools as a JSON text": (lambda body: {**body, "tools": json.dumps(body["tools"])}, lambda body: body),
    "tools as a list of JSON texts": (
        lambda body: {**body, "tools": list(map(json.dumps, body["tools"]))},
        lambda body: body,
    ),
    "messages as JSON texts": (
        lambda body: {**body, "messages": list(map(json.dumps, body["messages"]))},
        lambda body: body,
    ),
    "messages as one JSON text": (lambda body: {**body, "messages": json.dumps(body["messages"])}, lambda body: body),
    "missing fields are null": (filled, lambda body: body),
    "an id beside the messages": (lambda body: {"id": "row-7", **body}, lambda body: body),
    "ShareGPT": (sharegpt, renamed),
    "empty tools": (lambda body: {**body, "tools": ""}, lambda body: {k: v for k, v in body.items() if k != "tools"}),
    "prompt and completion": (
        lambda body: {"prompt": body["messages"][:4], "completion": body["messages"][4:], "tools": body["tools"]},
        without_model,
    ),
}


@pytest.mark.parametrize("shape", LINE_SHAPES.values(), ids=LINE_SHAPES.keys())
def test_a_line_in_any_format_gives_the_request_of_the_plain_one(shape):
    given, meant = shape
    out = WRITER({"body": [json.dumps(given(body)) for body in CHATS]})
    assert out["error"] == [None] * len(CHATS)
    # A row of ShareGPT has no fields of a request that would have to be removed.
    made = list(zip(out["request"], [NOTHING] * len(CHATS) if meant is renamed else out["changes"], strict=True))
    assert made == [
        (content.encode(), NOTHING if meant is renamed else changes)
        for content, changes in map(expected, map(meant, CHATS))
    ]


@pytest.mark.parametrize("shape", LINE_SHAPES.values(), ids=LINE_SHAPES.keys())
def test_a_file_of_lines_in_any_format_is_converted_by_the_program(shape, tmp_path):
    given, meant = shape
    source = write(tmp_path / "in" / "a.jsonl", [json.dumps(given(body)).encode() for body in CHATS])
    made = segue("convert", source.parent, *TO, "-o", tmp_path / "out")
    assert (made.status, made.err) == (0, "")
    requests = (tmp_path / "out" / "a.jsonl").read_text().replace('{"id":"row-7",', "{").split("\n")[:-1]
    assert requests == [expected(meant(body))[0] for body in CHATS]


HELLO = [{"role": "user", "content": "Hello"}]
KINDS = [
    {},
    {"model": "gpt-5.4"},
    {"model": "claude-sonnet-4-5"},
    {"model": "anthropic.claude-3-haiku-20240307-v1:0"},
    {"model": 3},
    {"model": "gpt-5.4", "temperature": 0.5},
    {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Be brief."},
    {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}]},
    {"model": "llama3.2", "options": 3},
    {"model": "llama3.2", "options": {"num_ctx": 4096}},
    {"model": "llama3.2", "options": {"toolMode": 1}},
    {"model": "llama3.2", "keep_alive": "5m"},
    {"model": "command-r", "k": 3, "p": 0.5},
    {"model": "gpt-5.4", "input": None},
    {"model": "gpt-5.4", "input": "Hello"},
    {"model": "gpt-5.4", "tools": None},
    {"model": "gpt-5.4", "tools": []},
    {"model": "gpt-5.4", "tools": "[]"},
    {"model": "gpt-5.4", "tools": [{"type": "function", "function": {"name": "f"}}]},
    {"model": "gpt-5.4", "tools": [{"name": "f", "input_schema": {}}]},
    {"model": "gpt-5.4", "prompt": 3},
    {"model": "gpt-5.4", "prompt": "Hello"},
]
TURNS = [
    HELLO,
    [{"role": "developer", "content": "Be brief."}, *HELLO],
    [{"role": "user", "content": ""}, *HELLO],
    [{"role": "user", "content": None}, *HELLO],
    [{"role": "user", "content": [{"text": "Hello"}]}],
    [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}],
    [{"role": "human", "content": "Hello"}],
    [{"role": ["user"], "content": "Hello"}],
    [{"role": "user", "parts": [{"text": "Hello"}]}],
    [{"role": "user", "content": "Hello", "name": None}],
    [{"type": "message", "content": "Hello"}],
    ["Hello"],
    [],
]


def read(line: bytes) -> object:
    try:
        document = Reader().read_line(line).document
    except SegueError:
        return "not read"
    return document.protocol, document.prompt


@pytest.mark.parametrize("turns", TURNS, ids=json.dumps)
def test_a_row_is_read_alike_whatever_rows_were_read_before(turns):
    for fields in (*KINDS, *KINDS):
        row = json.dumps({**fields, "messages": turns}).encode()
        opened = open_line(row, How(), 1)
        alone = "not read" if isinstance(opened, BadLine) else (opened.protocol, opened.prompt)
        assert read(row) == alone, row


def test_ids_are_those_of_the_id_column_or_of_the_column_id():
    rows = [json.dumps({"id": number, "key": f"k{number}", **CHATS[number]}) for number in range(3)]
    assert WRITER({"text": rows})["id"] == ["0", "1", "2"]
    named = Converter(to=TARGET, id_column="key", column="body")
    assert named({"body": [json.dumps(CHATS[0])], "key": ["k"]})["id"] == ["k"]
    assert WRITER({"text": [json.dumps(CHATS[0])], "id": ["beside"]})["id"] == ["beside"]


def test_a_column_selects_the_conversation_with_its_tools():
    row = {"chosen": CHATS[0]["messages"], "rejected": [], "tools": TOOLS, "score": 3}
    chosen = Converter(to=TARGET, column="chosen")({name: [value] for name, value in row.items()})
    assert chosen["request"][0].decode() == expected(without_model(CHATS[0]))[0]
    both = WRITER({name: [value] for name, value in row.items()})
    assert "--column chosen" in both["error"][0]


def test_nulls_in_the_arguments_of_calls_stay_and_are_counted():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1, "y": None}}}
    messages = [
        {"role": "user", "content": "hi", "tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    row = Reader(protocol="openai-chat").read_fields({"messages": messages}, structs=True)
    assert row.filled
    answer: Any = row.document.prompt.context.messages[1]
    assert answer.tool_calls()[0].arguments == {"x": 1, "y": None}


NOTHING = "[]"
BAD_ROWS = ["{bad", "null", "[]", "3", "", json.dumps({"conversations": [{"from": "x", "value": "y"}]})]
BAD_ROWS += [
    json.dumps({"conversations": [{"from": "observation", "value": "y"}]}),
    json.dumps({"tools": "{", "messages": []}),
]


def test_a_row_never_raises_and_there_is_one_row_out_for_each_row_in():
    given = [json.dumps(CHATS[0]), *BAD_ROWS, json.dumps(CHATS[1])]
    out = WRITER({"text": given})
    assert [error is None for error in out["error"]] == [True, *[False] * len(BAD_ROWS), True]
    assert [request is None for request in out["request"]] == [False, *[True] * len(BAD_ROWS), False]
    assert all("unexpected" not in error for error in out["error"] if error)


def test_an_error_of_a_library_costs_one_row(monkeypatch):
    from segue.corpus.conversion import RowConverter

    convert_row = RowConverter.convert

    def fails(self, row):
        if "Question 1:" in str(row.document.prompt.context.messages[0]):
            raise ZeroDivisionError("no reason")
        return convert_row(self, row)

    monkeypatch.setattr(RowConverter, "convert", fails)
    out = Converter(to=TARGET)({"text": [json.dumps(body) for body in CHATS[:3]]})
    assert [error is None for error in out["error"]] == [True, False, True]
    assert "ZeroDivisionError" in out["error"][1]


def test_a_converter_can_be_pickled_with_its_settings():
    own = Converter(
        to=Model("m", "p", "openai-chat"), policy=Policy(reasoning="drop"), column="text", purpose="training"
    )
    again = pickle.loads(pickle.dumps(own))
    assert again.job == own.job
    assert pickle.loads(pickle.dumps(WRITER))({"text": [json.dumps(CHATS[0])]}) == WRITER(
        {"text": [json.dumps(CHATS[0])]}
    )


def test_estimated_tokens_are_near_those_of_the_precise_count():
    from segue import estimate_tokens
    from segue.histories.opening import BadLine, How, open_line

    for line in lines(5):
        (tokens,) = WRITER({"text": [line]})["tokens"]
        opened = open_line(line, How(), 1)
        assert not isinstance(opened, BadLine)
        assert tokens == pytest.approx(estimate_tokens(opened.prompt, TARGET), rel=0.1)


# -- Arrow -------------------------------------------------------------------------------------------------------------


def arrow_shapes() -> dict[str, Any]:
    pa = import_module("pyarrow")

    texts = [json.dumps(body, ensure_ascii=False) for body in CHATS]
    messages = [body["messages"] for body in CHATS]
    parts = [[json.dumps(message) for message in each] for each in messages]
    models, tools = ["gpt-5.4"] * len(CHATS), [json.dumps(TOOLS)] * len(CHATS)
    shapes = {
        "string": {"body": pa.array(texts)},
        "large_string": {"body": pa.array(texts, pa.large_string())},
        "binary": {"body": pa.array([text.encode() for text in texts], pa.binary())},
        "large_binary": {"body": pa.array([text.encode() for text in texts], pa.large_binary())},
        "dictionary": {"body": pa.array(texts).dictionary_encode()},
        "list of structs": {
            "model": pa.array(models),
            "messages": pa.array(messages),
            "tools": pa.array([TOOLS] * len(CHATS)),
        },
        "list of structs, tools as text": {
            "model": pa.array(models),
            "messages": pa.array(messages),
            "tools": pa.array(tools),
        },
        "list of JSON texts": {"model": pa.array(models), "messages": pa.array(parts), "tools": pa.array(tools)},
        "ids beside the text": {"id": pa.array(range(len(CHATS))), "body": pa.array(texts)},
    }
    if hasattr(pa, "json_"):
        parts_type = pa.list_(pa.json_())
        storage = pa.array(parts)
        column = pa.ListArray.from_arrays(storage.offsets, pa.ExtensionArray.from_storage(pa.json_(), storage.values))
        assert column.type == parts_type
        shapes["list of arrow.json"] = {"model": pa.array(models), "messages": column, "tools": pa.array(tools)}
        shapes["arrow.json"] = {"body": pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))}
    return {name: pa.table(columns) for name, columns in shapes.items()}


ARROW_SHAPES = [
    "string",
    "large_string",
    "binary",
    "large_binary",
    "dictionary",
    "list of structs",
    "list of structs, tools as text",
    "list of JSON texts",
    "ids beside the text",
    "list of arrow.json",
    "arrow.json",
]


@needs_arrow
@pytest.mark.parametrize("kind", ["table", "batch", "chunked", "sliced", "dict"])
@pytest.mark.parametrize("name", ARROW_SHAPES)
def test_columns_of_any_type_give_the_request_of_the_plain_one(name, kind):
    pa = import_module("pyarrow")

    table = arrow_shapes().get(name)
    if table is None:
        pytest.skip("of arrow.json (an older pyarrow)")
    bodies: list[Any] = CHATS
    given: Any = table
    if kind == "batch":
        given = table.combine_chunks().to_batches()[0]
    elif kind == "chunked":
        given = pa.concat_tables([table.slice(0, 5), table.slice(5)])
    elif kind == "sliced":
        given, bodies = table.slice(3, 4), CHATS[3:7]
    elif kind == "dict":
        given = {column: table.column(column) for column in table.schema.names}
    out: Any = WRITER(given)
    assert type(out) is type(given)
    rows = (
        [dict(zip(out, values, strict=True)) for values in zip(*out.values(), strict=True)]
        if kind == "dict"
        else out.to_pylist()
    )
    found = [
        (row["request"] if isinstance(row["request"], str) else row["request"].decode(), row["changes"]) for row in rows
    ]
    assert found == [expected(body) for body in bodies]
    if kind != "dict":
        assert out.schema == Converter.SCHEMA


@needs_arrow
def test_null_rows_and_unknown_columns_are_errors_of_rows():
    pa = import_module("pyarrow")

    out = WRITER(pa.table({"text": [json.dumps(CHATS[0]), None]}))
    assert out.column("error").to_pylist()[1] == "DecodeError: the row is null; a JSON text is expected"
    unknown = Converter(to=TARGET, column="none")(pa.table({"text": ["a", "b"]}))
    assert unknown.num_rows == 2
    assert "there is no column 'none'" in unknown.column("error").to_pylist()[1]
    assert WRITER(pa.table({"text": pa.array([], pa.string())})).num_rows == 0
    assert WRITER(pa.table({"text": pa.array([], pa.string())})).schema == Converter.SCHEMA


@needs_arrow
def test_other_arguments_are_refused():
    with pytest.raises(TypeError, match="got list"):
        WRITER([1])


@needs_arrow
@pytest.mark.parametrize("name", ["string", "list of structs", "list of JSON texts"])
def test_parquet_files_give_the_requests_and_count_every_row(name, tmp_path):
    parquet = import_module("pyarrow.parquet")

    source = tmp_path / "in"
    source.mkdir()
    parquet.write_table(arrow_shapes()[name], source / "a.parquet", row_group_size=5)
    made = segue("convert", source, *TO, "-o", tmp_path / "out")
    assert (made.status, made.err) == (0, "")
    table = parquet.read_table(tmp_path / "out" / "a.parquet")
    assert table.schema == Converter.SCHEMA
    assert table.column("request").to_pylist() == [expected(body)[0] for body in CHATS]
    assert table.column("id").to_pylist()[:2] == ["a.parquet:1", "a.parquet:2"]
    summary = json.loads((tmp_path / "out" / "a.parquet.done.json").read_text())["summary"]
    assert (summary["lines"], summary["conversations"]) == (12, 12)


@needs_arrow
def test_ids_of_parquet_rows_stand_in_the_lines_or_in_the_column_of_the_output(tmp_path):
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    turns = [[{"role": "user", "content": text}] for text in "qr"]
    parquet.write_table(arrow.table({"id": ["p1", "p2"], "messages": turns}), tmp_path / "a.parquet")
    for output in ("a.jsonl", "b.parquet", "c.jsonl.gz"):
        assert segue("convert", tmp_path / "a.parquet", *TO, "-o", tmp_path / output).status == 0
    made = [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()]
    assert gzip.decompress((tmp_path / "c.jsonl.gz").read_bytes()) == (tmp_path / "a.jsonl").read_bytes()
    table = parquet.read_table(tmp_path / "b.parquet")
    assert [line.pop("id") for line in made] == table.column("id").to_pylist() == ["p1", "p2"]
    assert made == [json.loads(request) for request in table.column("request").to_pylist()]


@needs_arrow
def test_a_parquet_file_is_divided_between_its_row_groups(tmp_path):
    parquet = import_module("pyarrow.parquet")

    from segue.corpus import Job, convert_shard, plan
    from segue.models.catalogue import get_model

    parquet.write_table(arrow_shapes()["string"], tmp_path / "a.parquet", row_group_size=5)
    shards = plan(str(tmp_path / "a.parquet"), span=10).shards
    assert [shard.name for shard in shards] == [f"a.{number:05}-of-00003.parquet" for number in range(3)]
    for shard in shards:
        convert_shard(shard, str(tmp_path / "out"), Job(get_model(TARGET), details=True, span=10))
    made = [
        parquet.read_table(path).column("request").to_pylist() for path in sorted((tmp_path / "out").glob("*.parquet"))
    ]
    assert [request for requests in made for request in requests] == [expected(body)[0] for body in CHATS]


@needs_arrow
def test_bad_rows_of_a_parquet_file_are_kept(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")

    texts = [json.dumps(CHATS[0]), "{bad", json.dumps(CHATS[1]), None]
    parquet.write_table(pa.table({"body": texts}), tmp_path / "a.parquet")
    made = segue("convert", tmp_path / "a.parquet", *TO, "-o", tmp_path / "b.parquet")
    assert made.status == 1
    assert parquet.read_table(tmp_path / "b.parquet").num_rows == 2
    entries = [json.loads(line) for line in (tmp_path / "b.parquet.bad.jsonl").read_bytes().splitlines()]
    assert [(entry["line"], entry["raw"]) for entry in entries] == [(2, "{bad"), (4, "")]
    (tmp_path / "no.parquet").write_text("no")
    assert "not a Parquet file" in segue("convert", tmp_path / "no.parquet", *TO, "-o", tmp_path / "c.parquet").err


def test_addresses_of_fsspec_are_read_and_written(tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="of object stores (no fsspec)")
    system = fsspec.filesystem("memory")
    system.pipe("/corpus/in/a.jsonl", b"\n".join(lines(3)) + b"\n{bad\n")
    system.pipe("/corpus/in/sub/b.jsonl", b"\n".join(lines(2)))
    made = segue("convert", "memory://corpus/in", *TO, "-o", "memory://corpus/out")
    assert made.status == 1, made.err
    assert system.cat("/corpus/out/a.jsonl").decode().split("\n")[:-1] == [expected(body)[0] for body in CHATS[:3]]
    assert json.loads(system.cat("/corpus/out/a.jsonl.bad.jsonl"))["raw"] == "{bad"
    assert system.cat("/corpus/out/sub/b.jsonl").count(b"\n") == 2
    again = segue("convert", "memory://corpus/in", "--to", TARGET, "--resume", "-o", "memory://corpus/out")
    assert "2 files, 2 finished before" in again.err
    assert "5 conversations" in segue("report", "memory://corpus/out").out
    system.rm("/corpus", recursive=True)


@pytest.mark.parametrize("write_tools", [list, json.dumps, lambda tools: list(map(json.dumps, tools))])
def test_bare_functions_of_data_sets_are_tools(write_tools):
    body = chat(1)
    bare = [tool["function"] for tool in body["tools"]]
    made: Any = Converter(to=TARGET)({"row": [json.dumps({**body, "tools": write_tools(bare)})]})
    assert made["error"] == [None]
    assert made["request"][0].decode() == expected(body)[0]


@pytest.mark.parametrize("span", [300, 900, 2000])
def test_spans_of_a_remote_file_give_every_line_once(tmp_path, span):
    fsspec = pytest.importorskip("fsspec", reason="of object stores (no fsspec)")
    system = fsspec.filesystem("memory")
    content = b"\n".join([*lines(4), b"", b"{bad", *lines(3, 4)])
    system.pipe(f"/spans-{span}/in/a.jsonl", content)
    write(tmp_path / "in" / "a.jsonl", content.split(b"\n")[:-1])
    with (tmp_path / "in" / "a.jsonl").open("ab") as file:
        file.write(content.split(b"\n")[-1])
    found: list[list[Any]] = []
    for place in (f"memory://spans-{span}", str(tmp_path)):
        source, target = f"{place}/in", f"{place}/out"
        job = Job(get_model(TARGET), span=span)
        shards = plan(source, span=span).shards
        assert len(shards) > 1
        notes = [convert_shard(shard, target, job) for shard in shards]
        found.append([(note.output, note.file, note.span, note.summary.lines, note.summary.bad) for note in notes])
    assert found[0] == found[1]
    for path in (tmp_path / "out").glob("*.jsonl"):
        assert system.cat(f"/spans-{span}/out/{path.name}") == path.read_bytes()
    system.rm(f"/spans-{span}", recursive=True)


@pytest.mark.parametrize(
    "address", ["nosuch://bucket/logs", "http://127.0.0.1:1/logs/a.jsonl", "memory://nothing-here"]
)
def test_an_address_that_cannot_be_opened_is_named_in_one_sentence(address, tmp_path):
    pytest.importorskip("fsspec", reason="of object stores (no fsspec)")
    made = segue("convert", address, *TO, "-o", tmp_path / "out")
    assert made.status == 2
    assert made.err.startswith("segue: ")
    assert address in made.err
    assert made.err.count("\n") == 1


def test_an_address_that_cannot_be_written_is_named_in_one_sentence(tmp_path):
    pytest.importorskip("fsspec", reason="of object stores (no fsspec)")
    write(tmp_path / "in" / "a.jsonl", lines(2))
    made = segue("convert", tmp_path / "in", *TO, "-o", "nosuch://bucket/out")
    assert (made.status, made.err.count("\n")) == (2, 1)
    assert "nosuch://bucket/out" in made.err


def test_nothing_of_an_engine_or_of_arrow_is_imported_before_it_is_needed(tmp_path):
    import subprocess
    import sys

    from corpus.building import environment

    program = "import sys, segue, segue.cli.entry, segue.corpus, segue.corpus.converter, segue.cli.convert"
    program += "; print([name for name in ('pyarrow', 'ray', 'fsspec', 'zstandard') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment(), check=True)
    assert done.stdout.decode().strip() == "[]"
    assert Path(tmp_path).exists()
