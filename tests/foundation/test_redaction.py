"""Secrets are taken out, whatever is around them, and nothing else is."""

from __future__ import annotations

import json

import pytest

from foundation.planted_secrets import BY_KIND, IN_TEXT, made
from segue.foundation.redaction import Redactor, hide_texts

KINDS = [(kind, secret) for kind, secrets in BY_KIND.items() for secret in secrets]
AROUND = ("{}", "It is {}, keep it.", "'{}'", '{{"a": "{}"}}', "export X={}\n", "(`{}`)", "a\n{}\nb", "key {}.")
CLEAN = {
    "a commit": "commit 3f786850e387550fdabca4a43a3f2b1c0e4d5f6a",
    "a UUID": "550e8400-e29b-41d4-a716-446655440000",
    "the id of a call": "toolu_01A09q90qw90lq917835lq9",
    "a longer id of a call": "call_" + made(40),
    "a digest of a package": '"integrity": "sha512-' + made(86) + '=="',
    "a path": "/usr/lib/python3.11/site-packages/pydantic_core/_pydantic_core.cpython-311-x86_64-linux-gnu.so",
    "an address": "https://github.com/owner/repository/blob/3f786850e387550fdabca4a43a3f2b1c0e4d5f6a/src/Main.tsx#L10-L20",
    "a name of a class": "AbstractSingletonProxyFactoryBean2Configuration11Test",
    "code about tokens": "max_tokens = 4096; token = tokens[position]; self.api_key = os.environ['OPENAI_API_KEY']",
    "a user and a group of a command": "curl -O https://x.test/a && docker run -u 1000:1000000 image",
    "an empty secret": 'api_key: str = ""',
    "a placeholder": "OPENAI_API_KEY=your-api-key-here  password=changeme",
    "a type": "password: string, token: Optional[str], secret: SecretStr",
    "a sentence": "The password is required; a bearer token authenticates each request.",
    "a picture": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q",
    "an address without a password": "git clone ssh://git@github.com:22/owner/repository",
    "a home folder of nobody": "/home/user/project and /Users/Shared/x and C:\\Users\\Public",
    "an address with the word home": "https://example.com/home/alice",
    "words": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt.",
}


@pytest.mark.parametrize(("kind", "secret"), KINDS)
def test_a_secret_is_taken_out_whatever_is_around_it(kind, secret):
    for around in AROUND:
        redactor = Redactor()
        found = redactor.text(around.format(secret))
        assert found == around.format(f"[redacted: {kind}]")
        assert redactor.counts == {kind: 1}
        assert secret not in redactor.summary()
        assert kind in redactor.summary()


@pytest.mark.parametrize(("around", "secret"), IN_TEXT.values(), ids=IN_TEXT.keys())
def test_a_secret_is_recognised_by_what_is_around_it(around, secret):
    redactor = Redactor()
    found = redactor.text(around.format(secret))
    before, _, after = around.partition("{}")
    assert found.startswith(before.format())
    assert found.endswith(after.format())
    assert secret not in found
    assert sum(redactor.counts.values()) == 1


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN.keys())
def test_everything_else_is_unchanged(text):
    redactor = Redactor()
    assert redactor.text(text) == text
    assert not redactor.counts
    assert redactor.summary() == "redacted: nothing was found"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("/home/alice/project/a.py", "/home/[redacted]/project/a.py"),
        ("cd /Users/alice.smith && ls", "cd /Users/[redacted] && ls"),
        ("C:\\Users\\Alice\\x", "C:\\Users\\[redacted]\\x"),
        ('"C:\\\\Users\\\\Alice\\\\x"', '"C:\\\\Users\\\\[redacted]\\\\x"'),
        ("file:///home/alice/x", "file:///home/[redacted]/x"),
        (".claude/projects/-home-alice-project/x", ".claude/projects/-home-[redacted]-project/x"),
        ("/srv/people/al/x and /srv/people/alx", "~/x and /srv/people/alx"),
    ],
)
def test_names_of_home_folders_are_taken_out(text, redacted):
    redactor = Redactor(homes=["/srv/people/al"])
    assert redactor.text(text) == redacted
    assert redactor.counts == {"home-folder": 1}
    assert "home folders" in redactor.summary()


def test_what_was_redacted_stays_as_it_is():
    texts = [around.format(secret) for around in AROUND for _, secret in KINDS]
    texts += [around.format(secret) for around, secret in IN_TEXT.values()]
    for text in texts:
        once = Redactor().text(text)
        again = Redactor()
        assert again.text(once) == once
        assert not again.counts


def test_a_field_is_secret_because_of_its_name():
    value = {"password": "hunter22", "user": "hunter22x", "nested": [{"api_key": made(32, "0123456789abcdef")}]}
    assert Redactor().value(value) == {
        "password": "[redacted: named-secret]",
        "user": "hunter22x",
        "nested": [{"api_key": "[redacted: named-secret]"}],
    }


def test_keys_of_an_object_are_redacted_and_a_clean_value_is_the_same_object():
    (secret,) = BY_KIND["npm-token"]
    assert Redactor().value({secret: 1}) == {"[redacted: npm-token]": 1}
    clean = {"a": [1, "b", {"c": None}]}
    assert Redactor().value(clean) is clean


def test_a_secret_that_is_known_is_taken_out_where_nothing_shows_it():
    redactor = Redactor()
    secret = made(24, "0123456789abcdef")
    redactor.text(f"api_key = '{secret}'")
    assert redactor.text(f"x/{secret}/y") == "x/[redacted: named-secret]/y"


PLACES = {("model",), ("messages", "*", "role"), ("messages", "*", "content", "*", "type"), ("tools", "*", "name")}


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ({"model": "m", "temperature": 1}, {"model": "m", "temperature": 1}),
        ({"messages": [{"role": "user", "name": "bob"}]}, {"messages": [{"role": "user", "name": "[3 characters]"}]}),
        ({"tools": [{"name": "f", "schema": {"name": "x"}}]}, {"tools": [{"name": "f", "schema": "[redacted]"}]}),
        ({"model": "my secret model"}, {"model": "[15 characters]"}),
        ({"tools": [{"name": BY_KIND["github-token"][0]}]}, {"tools": [{"name": "[40 characters]"}]}),
        ({"a b": 1}, {"[field 0]": 1}),
        ({"messages": "text"}, {"messages": "[4 characters]"}),
        ({"model": {"name": "x"}}, {"model": "[redacted]"}),
    ],
)  # fmt: skip
def test_hidden_texts_stay_by_their_place_and_not_by_their_name(value, hidden):
    assert hide_texts(value, PLACES) == hidden


def test_no_text_of_any_length_slows_the_search_down_out_of_proportion():
    for text in ("a" * 300_000, "-home" * 60_000, "key=" * 70_000, "eyJ" * 100_000, "://" * 100_000, "sk-" * 100_000):
        Redactor().text(text)
        json.dumps(hide_texts({"a": text}, PLACES))
