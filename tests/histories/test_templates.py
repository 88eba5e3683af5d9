"""Templates of frameworks' messages: what is read is what was written."""

from __future__ import annotations

import json

import pytest

from segue import AssistantMessage, FileContent, ImageContent, TextContent, ThinkingContent, read_history
from segue.conversation.content import NativeContent
from segue.conversation.messages import Usage
from segue.errors import SettingsError
from segue.histories.kit.entries import Writing
from segue.histories.kit.evidence import Form
from segue.histories.kit.notes import Notes
from segue.histories.kit.templates import ContentForms, Template

THOUGHT = {"is": "thought", "words": "$thinking", "more?": {"signature": "$thinking_signature?", "cut": "$redacted?"}}
MEDIA = (
    {"is": "bytes", "data": "$base64!", "type": "$mime_type"},
    {"is": "link", "url": "$url!", "type?": "$mime_type"},
)
WRITTEN = {
    "a value that is missing is left out": (
        Template("thinking", THOUGHT),
        ThinkingContent(thinking="so"),
        {"is": "thought", "words": "so"},
    ),
    "an empty signature is a value": (
        Template("thinking", THOUGHT),
        ThinkingContent(thinking="so", thinking_signature=""),
        {"is": "thought", "words": "so", "more": {"signature": ""}},
    ),
    "an object without values is null": (
        Template("text", {"text": "$text", "extra|": {"signature": "$text_signature?"}}),
        TextContent(text="so"),
        {"text": "so", "extra": None},
    ),
    "a count of 0 is left out only where it may be": (
        Template("usage", {"in": "$whole_input", "out": "$output", "read": "$cache_read?", "all": "$total_tokens"}),
        Usage(input=3, output=0, total_tokens=3),
        {"in": 3, "out": 0, "all": 3},
    ),
}


@pytest.mark.parametrize(("template", "value", "written"), WRITTEN.values(), ids=WRITTEN)
def test_a_template_reads_what_it_writes(template, value, written):
    assert template.write(value) == written
    assert template.read(written) == value


FORMS = ContentForms("acme", "Acme", tag="is", text={"is": "words", "words": "$text"}, thinking=THOUGHT, media=MEDIA)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (ImageContent(data="iVBORw0KGgo=", mime_type="image/png"), ["bytes"]),
        (FileContent(url="https://example.org/a.pdf", mime_type="application/pdf"), ["link"]),
        (ImageContent(data="not base64", url="https://example.org/a.png"), ["link"]),
        (FileContent(file_id="file-1"), []),
    ],
    ids=["data", "an address", "an address beside broken data", "neither is reported"],
)
def test_the_first_form_that_has_its_values_is_written(content, parts):
    message, notes = AssistantMessage(content=(NativeContent(protocol="x", block={}, fallback=(content,)),)), Notes()
    assert [part["is"] for part in FORMS.write(message, Writing([message], notes))] == parts
    assert ("media_omitted" in {change.code for change in notes.report().changes}) is (not parts)


MISTAKES = {
    "a hole that its kind does not have": (lambda: Template("text", {"words": "$txt"}), r"no hole \$txt; use some of"),
    "no hole": (lambda: Template("text", {"words": "text"}), "has no hole; use some of"),
    "a kind of content that there is not": (lambda: ContentForms("acme", "Acme", call={"is": "$id"}), "toolCall"),
    "no tag": (lambda: ContentForms("acme", "Acme", tag="is", text={"words": "$text"}), "no key 'is'"),
    "a type of a sign": (lambda: Form(where="object", needs=("parts:array",)), "list, object, text, number"),
    "a place": (lambda: Form(where="list", needs=("parts",)), "object, items, lines"),  # type: ignore[arg-type]
    "a form without signs": (lambda: Form(where="items"), "add `needs`"),
}


@pytest.mark.parametrize(("make", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_of_an_author_is_named_where_it_is_made(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_an_image_of_a_reply_is_kept_with_the_image_as_fallback():
    """A reply has no images of its own, and two formats left them out."""
    image = {"type": "data", "uri": "data:image/png;base64,iVBORw0KGgo=", "media_type": "image/png"}
    entries = [{"type": "message", "role": "assistant", "contents": [{"type": "text", "text": "Here:"}, image]}]
    (message,) = read_history(json.loads(json.dumps(entries)), format="agent-framework").context.messages
    kept = message.content[1]
    assert kept.kind == "native"
    assert kept.block == image
    assert kept.fallback == (ImageContent(data="iVBORw0KGgo=", mime_type="image/png"),)
