"""Places that name objects at a provider: each one of the SDKs' types has a class, and no form of a body hides one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import segue.protocols
from protocols import traffic
from segue.gateway.object_places import ObjectPlaces, find_places, is_public, may_name, places_of

FOLDER = Path(segue.protocols.__file__).parent
PROTOCOLS = sorted(path.parent.name for path in FOLDER.glob("*/object_places.json"))
TYPED = [name for name in PROTOCOLS if (FOLDER / name / "request_fields.json").exists()]
NAME = "obj_0123456789abcdefV"


def read(name: str, file: str) -> dict[str, Any]:
    return json.loads((FOLDER / name / file).read_text("utf-8"))


def unclassified(places: ObjectPlaces, fields: dict[str, Any]) -> list[str]:
    return sorted(
        f"{parent}.{key}"
        for (parent, key), is_text in places_of(fields).items()
        if is_text and places.class_of(parent, key) is None
    )


@pytest.mark.parametrize("name", TYPED)
def test_each_text_of_the_types_has_a_class(name: str) -> None:
    fields = read(name, "request_fields.json")
    found = unclassified(ObjectPlaces(read(name, "object_places.json"), fields), fields)
    assert not found, f"{name}/object_places.json has no class for {found}: what does a value there name?"


@pytest.mark.parametrize("name", TYPED)
def test_every_protocol_with_request_fields_has_places(name: str) -> None:
    assert {path.parent.name for path in FOLDER.glob("*/request_fields.json")} == set(TYPED)
    plain = {row.rpartition(".")[2] for row in read(name, "object_places.json")["plain"]}
    assert plain <= {key for _, key in places_of(read(name, "request_fields.json"))}, "no SDK has these any more"


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("key", ["new_thing", "new_thing_id"])
def test_a_new_field_is_a_name_until_it_is_classified(name: str, key: str) -> None:
    fields = read(name, "request_fields.json")
    body = fields["objects"][fields["body"][1:]]["fields"]
    body[key] = "string"
    body["new_object"] = "#NewObject"
    fields["objects"]["NewObject"] = {"fields": {key: {"list": "string"}}}
    places = ObjectPlaces(read(name, "object_places.json"), fields)
    assert unclassified(places, fields) == [f".{key}", f"new_object.{key}"]
    found = [*places.find({key: NAME}), *places.find({"new_object": {key: [NAME]}})]
    assert [(each.kind, each.value) for each in found] == [("unknown", NAME)] * 2


def paths_to(fields: dict[str, Any], wanted: set[tuple[str, str]], table: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Give a path of keys from the body to each of the wanted places."""
    maps = {key: (key, "own_name") for key in table.get("maps", ())}
    places = places_of(fields)
    shortest: dict[str, tuple[str, ...]] = {"": ()}
    waiting = [""]
    while waiting:
        parent = waiting.pop(0)
        for around, key in places:
            if around == parent and key not in shortest:
                shortest[key] = (*shortest[parent], *maps.get(key, (key,)))
                waiting.append(key)
    yield from ((*shortest[parent], key) for parent, key in sorted(wanted))


def forms(path: tuple[str, ...], value: str) -> Iterator[tuple[str, Any]]:
    """Give bodies with a value at a path, in forms that hide what the object around it is."""

    def build(leaf: object, *, listed: bool, more: dict[str, object]) -> dict[str, Any]:
        made = leaf
        for key in reversed(path):
            held: dict[str, object] = {**more, key: made}
            made = [held] if listed else held
        return made[0] if isinstance(made, list) else made  # pyright: ignore[reportReturnType, reportUnknownVariableType]

    yield "alone", build(value, listed=False, more={})
    yield "in lists", build(value, listed=True, more={})
    yield "in a list of lists", build([[value]], listed=True, more={})
    yield "with a type of null", build(value, listed=True, more={"type": None})
    yield "with another type", build(value, listed=True, more={"type": "text", "text": "x"})
    yield "with more keys", build(value, listed=True, more={"role": "user", "status": "completed"})
    yield "as an object", build({"id": value}, listed=True, more={})
    yield "as an object with more keys", build({"type": None, "name": value}, listed=True, more={})
    *before, last = path
    for name, key in (("in capitals", last.upper()), ("with a blank", f" {last}"), ("with a dash", last + "-")):
        yield name, build(value, listed=True, more={})
        made: Any = {key: value}
        for each in reversed(before):
            made = {each: made}
        yield f"key {name}", made


@pytest.mark.parametrize("name", TYPED)
def test_no_form_hides_a_name(name: str) -> None:
    fields, table = read(name, "request_fields.json"), read(name, "object_places.json")
    places = ObjectPlaces(table, fields)
    wanted = {
        (parent, key)
        for (parent, key), is_text in places_of(fields).items()
        if is_text
        and (f"{parent}.{key}" in table["references"] or (key in table["references"] and key != "id"))
        and not any(parent == row.rpartition(".")[2] for row in table.get("data", ()))
    }
    for path in paths_to(fields, wanted, table):
        if any(key in table.get("data", ()) for key in path[:-1]):
            continue
        for form, body in forms(path, NAME):
            assert any(found.value in ("", NAME) for found in places.find(body)), (path, form, body)


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize(
    "address",
    [
        *(
            "gs://b/a",
            "GS://b/a",
            " gs://b/a",
            "\tgs://b/a",
            "s3://b/a",
            "S3://b/a",
            "files/abc",
            "file-abc",
            "abfs://x/y",
        ),
        "HTTPS://GENERATIVELANGUAGE.GOOGLEAPIS.com/v1beta/files/1",
        "https://storage.googleapis.com./b/a",
        "https://storage.googleapis.com:443/b/a",
        "https://u:p@storage.googleapis.com/b/a",
        f"https://{'u' * 3_000}@storage.googleapis.com/b/a",
        f"https://{'u' * 390}@storage.googleapis.com/b/a",
        "https://storage.googleapis%2ecom/b/a",
        "https://storage\uff0egoogleapis.com/b/a",
        "https://sto\nrage.googleapis.com/b/a",
        "http:///b/a",
    ],
)
def test_no_form_hides_an_address(name: str, address: str) -> None:
    fields, table = read(name, "request_fields.json"), read(name, "object_places.json")
    places = ObjectPlaces(table, fields)
    assert not is_public(address)
    wanted = {
        (parent, key)
        for (parent, key), is_text in places_of(fields).items()
        if is_text and key in table["addresses"] and f"{parent}.{key}" not in table["plain"]
    }
    assert wanted
    for path in paths_to(fields, wanted, table):
        if not any(key in table.get("data", ()) for key in path[:-1]):
            for form, body in list(forms(path, address))[:6]:
                assert any(places.find(body)), (path, form)


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/files/1",
        "http://example.com",
        "data:image/png;base64,AAAA",
        "A" * 600,
        "",
        "https://googleapis.com.example.org/a",
    ],
)
def test_the_web_and_content_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (word, False)
            for word in ("low", "middle-out", "5m", "two words and 3", "", "x" * 600, "data:image/png;base64,AA")
        ),
        *(
            (name, True)
            for name in ("conv_VICTIM", "cachedContents/x", "arn:aws:x", "7f3a9c", "gs://b", " conv_V ", "a.b.c")
        ),
    ],
)
def test_an_unknown_value_that_may_be_a_name(text: str, expected: bool) -> None:
    assert may_name(text) is expected


@pytest.mark.parametrize("name", PROTOCOLS)
def test_samples_name_nothing(name: str) -> None:
    places = find_places(name.replace("_", "-"))
    assert places is not None
    for sample in json.loads((FOLDER / name / "samples.json").read_text("utf-8")):
        found = [each for each in places.find(sample["request"]) if each.kind in ("unknown", "variant")]
        assert not found, (sample["name"], found)


def bodies_of(name: str) -> Iterator[Any]:
    """Give samples, also with a value at a place of theirs, and bodies with a value at each place of the types."""
    fields, table = read(name, "request_fields.json"), read(name, "object_places.json")
    values = (
        NAME,
        "a FileID://x",
        "a text",
        "https://example.org/a",
        1.5,
        None,
        (NAME,),
        {"id": NAME},
        [["fileid://"]],
    )
    for sample in json.loads((FOLDER / name / "samples.json").read_text("utf-8")):
        yield sample["request"]
        for value in values:
            yield {"own_name": value, **sample["request"]}
            yield {**sample["request"], "messages": [{"content": [{"text": value}]}]}
    for path in paths_to(fields, set(places_of(fields)), table):
        for value in values:
            yield from (body for _, body in forms(path, value))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", TYPED)
def test_a_body_that_is_clear_names_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided at once is what the whole search finds."""
    places = find_places(name.replace("_", "-"))
    assert places is not None
    bodies = list(bodies_of(name))
    found = [list(places.find(body)) for body in bodies]
    monkeypatch.setattr(ObjectPlaces, "_is_clear", lambda *_: False)
    assert found == [list(places.find(body)) for body in bodies]
    assert sum(not each for each in found) > 20
    assert sum(bool(each) for each in found) > 20


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ({"id": "msg_1"}, ["msg_1"]),
        ({"own": {"container_id": "cntr_1"}}, ["cntr_1"]),
        ({"own": [MappingProxyType({"container_id": "cntr_1"})]}, ["cntr_1"]),
        ({"vector_store_ids": [["vs_1", None, 3], "vs_2"]}, ["vs_1", "vs_2"]),
        ({"container_id": {"text": "t", "file_id": "file_1"}}, ["file_1"]),
        ({"own": "cntr_1", "status": "done", "number": 1, "nothing": None}, []),
        ({"arguments": {"container_id": "cntr_1"}}, []),
        ({"tools": [{"container_id": "cntr_1"}]}, []),
        ({"metadata": {"container_id": "cntr_1"}}, []),
        ({"type": "mcp_call", "id": "mcp_1", "container_id": "cntr_1"}, ["mcp_1"]),
        ({"type": "message", "own": {"container_id": "cntr_1"}}, []),
        ({"type": "message", "content": [{"container_id": "cntr_1"}]}, ["cntr_1"]),
    ],
)
def test_the_names_that_a_reply_gives(reply: Any, names: list[str]) -> None:
    places = find_places("openai-responses")
    assert places is not None
    assert sorted(places.names_in([None, reply])) == names


@pytest.mark.traffic
def test_recorded_requests_have_no_unknown_names() -> None:
    """What providers answered is known: refused are only names of objects and addresses of accounts."""
    count = 0
    for row in traffic.exchanges():
        places = find_places(row["protocol"])
        body = traffic.read(row["file"]).get("request")
        if places is None or row["status"] != 200 or not isinstance(body, dict):
            continue
        count += 1
        found = [each for each in places.find(body) if each.kind in ("unknown", "variant")]
        assert not found, (row["file"], found[:3])
    assert count > 100


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("piece", ["\u0315\u0300", "\ufdfa", "aA", "_a", "\u0130"], ids=ascii)
def test_long_keys_and_names_take_no_time(name: str, piece: str) -> None:
    """Their letters are compared with others, and some forms take quadratic time with the interpreter's lock."""
    places = ObjectPlaces(read(name, "object_places.json"), read(name, "request_fields.json"))
    long = "a" + piece * 40_000
    urls = [{"url": long[:5_000], "uri": long[:5_000], "fileUri": long[:5_000]} for _ in range(20)]
    body = {long: long, "thing_id": long, "tools": [{long: "x"}], "messages": urls, "contents": urls, "input": urls}
    began = time.thread_time()
    list(places.find(body))
    assert time.thread_time() - began < 0.5
