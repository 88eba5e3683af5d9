"""A received object is written back while the default is unchanged; changed values get the default format."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.protocols.kit.json_patch import apply, difference
from segue.protocols.kit.json_values import same
from segue.protocols.kit.verbatim import choose, chosen, data_of, for_new_request, keep, restore

PROTOCOL = "some-wire"

CASES = {
    "nothing differs": ({"a": 1}, {"a": 1}),
    "a key that is null": ({"a": 1}, {"a": 1, "b": None}),
    "a key that is absent": ({"a": 1, "b": None}, {"a": 1}),
    "another value": ({"a": 1}, {"a": 2}),
    "true is not one": ({"a": 1}, {"a": True}),
    "true is not one inside equal lists": ({"a": [{"b": [0, 1]}, 2]}, {"a": [{"b": [0, True]}, 2.0]}),
    "a string for a list of one text": ({"content": [{"type": "text", "text": "hi"}]}, {"content": "hi"}),
    "a list of one text for a string": ({"content": "hi"}, {"content": [{"type": "text", "text": "hi"}]}),
    "an empty text that occurs twice": ({"content": ""}, {"content": [{"type": "", "text": ""}]}),
    "an object for its JSON text": ({"arguments": '{"a":1}'}, {"arguments": {"a": 1}}),
    "a nested key": ({"function": {"name": "f"}}, {"function": {"name": "f", "strict": None}}),
    "a nested list": ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3, "c": 4}]}),
    "a list of another length": ({"a": [1, 2]}, {"a": [1]}),
    "a longer list": ({"a": [{"b": 1}]}, {"a": [{"b": 2}, {"b": 3}]}),
    "one item without its list": ({"a": [{"b": 1}]}, {"a": {"b": 1}}),
    "a list without the object around it": ({"a": {"parts": [{"b": 1}], "role": "x"}}, {"a": [{"b": 1}]}),
    "an object without the object around it": ({"a": {"parts": [{"b": 1}], "role": "x"}}, {"a": {"b": 1}}),
    "an object for the JSON text inside an object": ({"a": {"output": '{"b":1}'}}, {"a": {"b": 1}}),
    "base64 in another alphabet": ({"a": "a+/b" * 20 + "YQ=="}, {"a": "a-_b" * 20 + "YQ"}),
    "a long value": ({"a": "x" * 500}, {"a": None}),
    "keys that begin like a choice": ({"@a": 1, "b": {"@c": 1}}, {"@a": 2, "@onlyFor": None, "b": {"@c": 3}}),
    "objects under a key that is named like ours": ({"a": None, "verbatim": {}}, {"verbatim": {"a": False}}),
    "keys with the names of format keys": ({"a": 1}, {"a": 1, "verbatim": {"a": 2}, "shape": "s"}),
}


@pytest.mark.parametrize(("default", "received"), CASES.values(), ids=CASES.keys())
def test_a_received_object_is_written_back(default, received):
    extra = keep(PROTOCOL, received, default, known=("a", "b"))
    assert same(restore(json.loads(json.dumps(default)), json.loads(json.dumps(extra)), PROTOCOL), received)
    assert (extra is None) == same(default, received)


def test_a_changed_default_is_written():
    extra = keep(PROTOCOL, {"temperature": "hot", "user": "me"}, {"temperature": 1}, known=("temperature",))
    assert restore({"temperature": 1}, extra, PROTOCOL) == {"temperature": "hot", "user": "me"}
    assert restore({"temperature": 2}, extra, PROTOCOL) == {"temperature": 2, "user": "me"}


def test_a_changed_text_keeps_its_received_format():
    extra = keep(PROTOCOL, {"content": [{"type": "text", "text": "hi"}]}, {"content": "hi"})
    assert restore({"content": "bye"}, extra, PROTOCOL) == {"content": [{"type": "text", "text": "bye"}]}
    extra = keep(PROTOCOL, {"content": "hi"}, {"content": [{"type": "text", "text": "hi"}]})
    assert restore({"content": [{"type": "text", "text": "bye"}]}, extra, PROTOCOL) == {"content": "bye"}
    two = [{"type": "text", "text": "bye"}, {"type": "text", "text": "now"}]
    assert restore({"content": list(two)}, extra, PROTOCOL) == {"content": two}


def test_an_absent_key_is_written_if_its_value_changed():
    extra = keep(PROTOCOL, {}, {"max_tokens": 4096})
    assert restore({"max_tokens": 4096}, extra, PROTOCOL) == {}
    assert restore({"max_tokens": 10}, extra, PROTOCOL) == {"max_tokens": 10}


def test_unknown_keys_with_a_value_are_data_and_the_rest_is_format():
    received = {"name": "f", "strict": False, "vendor": 1, "nothing": None, "in": {"x": 1, "new": 2}}
    extra = keep(PROTOCOL, received, {"name": "f", "in": {"x": 1}}, known=("strict",))
    assert extra is not None
    assert data_of(extra, PROTOCOL) == {"vendor": 1, "in": {"new": 2}}
    patch = extra[PROTOCOL]["verbatim"]
    assert isinstance(patch, dict)
    assert patch.keys() == {"strict", "nothing"}


def test_data_never_replaces_a_default_key():
    extra = {PROTOCOL: {"user": "old", "in": {"x": 9, "y": 2}}}
    assert restore({"user": "new", "in": {"x": 1}}, extra, PROTOCOL) == {"user": "new", "in": {"x": 1, "y": 2}}


def test_format_for_one_model_is_not_written_for_another():
    extra = keep(PROTOCOL, {"limit": None}, {"limit": 4096}, only_for="m1")
    assert restore({"limit": 4096}, extra, PROTOCOL, model="m1") == {"limit": None}
    assert restore({"limit": 4096}, extra, PROTOCOL, model="m2") == {"limit": 4096}


def test_a_choice_applies_while_its_default_is_unchanged():
    extra = keep(PROTOCOL, {}, {}, choices=choose("turn", "same", "new"))
    assert chosen(extra, PROTOCOL, "turn", "same") == "new"
    assert chosen(extra, PROTOCOL, "turn", "other") == "other"
    assert chosen(None, PROTOCOL, "turn", "same") == "same"
    assert choose("turn", "same", "same") == {}
    assert restore({"a": 1}, extra, PROTOCOL) == {"a": 1}


ALIASES = {"inline_data": "inlineData", "mime_type": "mimeType", "top_k": "topK"}
INSTEAD = {"schema": "jsonSchema", "result": "output"}
LONG = "x" * 500
RENAMED = {
    "a key": ({"inlineData": LONG}, {"inline_data": LONG}),
    "a key and one inside": (
        {"inlineData": {"mimeType": "a", "data": LONG}},
        {"inline_data": {"mime_type": "a", "data": LONG}},
    ),
    "a key whose object has more": (
        {"inlineData": {"data": LONG}},
        {"inline_data": {"data": LONG, "mime_type": "a", "more": 1}},
    ),
    "a key beside the default one": ({"inlineData": 1}, {"inlineData": 1, "inline_data": 2}),
    "a key of data": ({}, {"top_k": 3}),
    "another form": ({"jsonSchema": {"type": "a"}}, {"schema": {"type": "A"}}),
    "the same under another key": ({"jsonSchema": {"type": LONG}}, {"schema": {"type": LONG}}),
    "both forms": ({"jsonSchema": 1}, {"jsonSchema": 1, "schema": 2}),
    "a value for its JSON text": ({"output": f'["{LONG}"]'}, {"result": [LONG]}),
}


@pytest.mark.parametrize(("default", "received"), RENAMED.values(), ids=RENAMED.keys())
def test_a_renamed_key_is_written_back_and_its_value_is_not_stored_twice(default, received):
    extra = json.loads(json.dumps(keep(PROTOCOL, received, default, aliases=ALIASES, instead=INSTEAD)))
    assert same(restore(json.loads(json.dumps(default)), extra, PROTOCOL), received)
    assert LONG not in json.dumps(extra)


def test_an_alias_is_written_for_a_changed_value_and_another_form_is_not():
    extra = keep(
        PROTOCOL, {"top_k": 3, "schema": "A"}, {"topK": 3, "jsonSchema": "a"}, aliases=ALIASES, instead=INSTEAD
    )
    assert restore({"topK": 4, "jsonSchema": "a"}, extra, PROTOCOL) == {"top_k": 4, "schema": "A"}
    assert restore({"topK": 3, "jsonSchema": "b"}, extra, PROTOCOL) == {"top_k": 3, "jsonSchema": "b"}
    assert restore({}, extra, PROTOCOL) == {}


def test_data_are_stored_under_the_default_name():
    extra = keep(PROTOCOL, {"inline_data": {"top_k": 3, "new": 1}}, {"inlineData": {}}, aliases=ALIASES)
    assert data_of(extra, PROTOCOL) == {"inlineData": {"topK": 3, "new": 1}}


def test_a_value_inside_the_default_follows_a_change():
    extra = keep(PROTOCOL, {"a": {"b": 1}}, {"a": [{"b": 1}]})
    assert restore({"a": [{"b": 2}]}, extra, PROTOCOL) == {"a": {"b": 2}}
    assert restore({"a": [{"b": 1}, {"b": 2}]}, extra, PROTOCOL) == {"a": [{"b": 1}, {"b": 2}]}
    extra = keep(PROTOCOL, {"a": {"b": 1}}, {"a": {"output": '{"b":1}'}})
    assert restore({"a": {"output": '{"c":1}'}}, extra, PROTOCOL) == {"a": {"c": 1}}
    assert restore({"a": {"output": "text"}}, extra, PROTOCOL) == {"a": {"output": "text"}}


@pytest.mark.parametrize(
    "patch", [3, [], {"a": 3}, {"a": {}}, {"a": {"wrap": ["x"], "to": 3}}, {"a": {"at": {"9": 1}}}]
)
def test_an_invalid_patch_is_ignored(patch):
    assert restore({"a": "text"}, {PROTOCOL: {"verbatim": patch}}, PROTOCOL)["a"] in ("text", 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", '{"a": 1}', "x" * 80]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "@c"]), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_an_entry_turns_any_value_into_any_other(default, received):
    entry = difference(default, received)
    assert (entry is None) == same(default, received)
    if entry is not None:
        assert same(apply(json.loads(json.dumps(default)), json.loads(json.dumps(entry))), received)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", "@d", "verbatim"]), JSON),
    st.dictionaries(st.sampled_from(["a", "b", "c", "@d", "verbatim"]), JSON),
)
def test_any_object_leads_to_any_other(default, received):
    extra = keep(PROTOCOL, received, default, known="ab", aliases={"d": "a"}, instead={"b": "c", "a": "b"})
    assert same(restore(json.loads(json.dumps(default)), json.loads(json.dumps(extra)), PROTOCOL), received)
    assert (extra is None) == same(default, received)


def test_a_choice_for_one_model_is_not_made_for_another():
    extra = keep(PROTOCOL, {}, {}, choices=choose("limit", 9, {"max": 9}), only_for="m1")
    assert chosen(extra, PROTOCOL, "limit", 9, model="m1") == {"max": 9}
    assert chosen(extra, PROTOCOL, "limit", 9, model="m2") == 9
    assert chosen(extra, PROTOCOL, "limit", 9) == {"max": 9}


def test_a_new_request_gets_the_default_format():
    extra = keep(PROTOCOL, {"limit": None, "n": 2}, {"limit": 1}, choices=choose("x", 1, 2), only_for="m1")
    new = for_new_request(extra, PROTOCOL)
    assert restore({"limit": 1}, new, PROTOCOL, model="m1") == {"limit": 1, "n": 2}
    assert chosen(new, PROTOCOL, "x", 1, model="m1") == 1
    free = keep(PROTOCOL, {"limit": None}, {"limit": 1})
    assert for_new_request(free, PROTOCOL) is free
    assert for_new_request(None, PROTOCOL) is None


def test_a_list_of_another_length_gets_no_entries():
    entry = difference([{"a": 1}, {"a": 2}], [{"a": 1, "b": 3}, {"a": 2}])
    assert apply([{"a": 1}, {"a": 2}], entry) == [{"a": 1, "b": 3}, {"a": 2}]
    assert apply([{"a": 2}], entry) == [{"a": 2}]


@pytest.mark.parametrize(
    "entry",
    [
        {"in": {"b": {"from": 2, "to": 3}, "c": {"to": 4}, "a": {"to": 5}}},
        {"in": {"b": {"from": 2, "to": 3}}, "add": {"c": 4, "a": 5}},
    ],
    ids=["as earlier versions wrote them", "together"],
)
def test_keys_that_the_default_does_not_have_are_added(entry):
    assert apply({"a": 1, "b": 2}, entry) == {"a": 1, "b": 3, "c": 4}
    assert apply("another value", entry) == "another value"


def test_added_keys_are_stored_together():
    assert difference({"a": {}}, {"a": {"b": 1, "c": [2]}, "d": 3}) == {
        "in": {"a": {"add": {"b": 1, "c": [2]}}},
        "add": {"d": 3},
    }


DIGITS = "a+/b" * 20
URL_SAFE = "a-_b" * 20
FORMS = {
    "the URL alphabet without padding": (DIGITS + "YQ==", URL_SAFE + "YQ", ["url", "bare"]),
    "the URL alphabet": (DIGITS + "YQ==", URL_SAFE + "YQ==", ["url"]),
    "no padding": (DIGITS + "YQ==", DIGITS + "YQ", ["bare"]),
    "a data URL": ("data:image/png;base64," + DIGITS, "data:image/png;base64," + URL_SAFE, ["url"]),
    "half of the padding": (DIGITS + "YQ==", DIGITS + "YQ=", None),
    "a text that is not base64": ("x y" + DIGITS, "x y" + URL_SAFE, None),
    "other data": (DIGITS, "c" + DIGITS[1:], None),
    "more padding than the default": (DIGITS + "YQ", DIGITS + "YQ==", None),
    "a short text": ("a+/b", "a-_b", None),
}


@pytest.mark.parametrize(("default", "received", "form"), FORMS.values(), ids=FORMS.keys())
def test_base64_in_another_form_is_kept_as_its_form(default, received, form):
    entry = difference(default, received)
    assert entry is not None
    assert entry.get("base64") == form
    assert ("to" in entry) == (form is None)
    assert apply(default, entry) == received
