"""Names of documents are valid, unique and stable; where documents stand."""

from __future__ import annotations

import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.bedrock_converse.endpoints import NOVA, SONNET
from segue.conversation.content import FileContent, TextContent, ToolCall
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.protocols.bedrock_converse.native import DocumentNames, legal_name
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC
from segue.requests.outbox import Outbox
from segue.requests.prepare import prepare

NAMES = {
    "the extension goes": ("report.pdf", "pdf", "report"),
    "only the one of the format": ("report.v2.pdf", "pdf", "report v2"),
    "another one does not": ("report.docx", "pdf", "report docx"),
    "another extension of the format does": ("page.HTM", "html", "page"),
    "an underscore becomes a space": ("my_report.pdf", "pdf", "my report"),
    "signs become a space": ("John's #1 & only.pdf", "pdf", "John s 1 only"),
    "brackets and hyphens stay": ("a-b (1) [x].md", "md", "a-b (1) [x]"),
    "white space is one space": (" a \t\n b ", "pdf", "a b"),
    "letters of other alphabets go": ("Grüße.txt", "txt", "Gr e"),
    "a name of other letters alone": ("分期报告.pdf", "pdf", "document"),
    "an extension and nothing else": (".pdf", "pdf", "pdf"),
    "no name": (None, "pdf", "document"),
    "an empty name": ("", "pdf", "document"),
    "a long name": ("x" * 300, "pdf", "x" * 200),
}
LEGAL = re.compile(r"[a-zA-Z0-9\-()\[\]]+(?: [a-zA-Z0-9\-()\[\]]+)*")


@pytest.mark.parametrize(("name", "form", "expected"), NAMES.values(), ids=NAMES.keys())
def test_a_name_becomes_a_legal_one(name, form, expected):
    assert legal_name(name, form) == expected


@given(
    st.lists(st.none() | st.text(max_size=12) | st.sampled_from(["a", "A", "a.pdf", "a (2)", "x" * 210]), max_size=12)
)
def test_any_names_become_legal_and_different_and_what_comes_later_changes_nothing(given_names):
    def named(names):
        taken, out = DocumentNames(), []
        for name in names:
            out.append(taken.fitting(name, "pdf"))
            taken.take(out[-1])
        return out

    written = named(given_names)
    assert all(LEGAL.fullmatch(name) and len(name) <= 200 for name in written)
    assert len({name.lower() for name in written}) == len(written)
    for at in range(len(given_names)):
        assert named(given_names[:at]) == written[:at]
    assert named(written) == written


def pdf(name):
    return FileContent(data="AAAA", mime_type="application/pdf", name=name)


def names_in(body):
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    inner = [deep for block in blocks for deep in block.get("toolResult", {}).get("content", ())]
    return [block["document"]["name"] for block in blocks + inner if "document" in block]


def history(*names):
    messages = []
    for name in names:
        messages += [UserMessage.of("Look.", pdf(name)), AssistantMessage(content=(TextContent(text="Yes."),))]
    return Context(messages=(*messages, UserMessage.of("So?")))


def test_the_same_file_in_two_turns_has_two_names():
    prompt = Prompt(context=history("report.pdf", "report.pdf", None, "Report"))
    body = CODEC.encode_request(prompt, SONNET)
    assert names_in(body) == ["report", "report (2)", "document", "Report (3)"]
    assert CODEC.check(body, SONNET) == []


def test_names_in_results_count_too():
    result = ToolResultMessage(tool_call_id="t", content=(pdf("report"),))
    context = Context(messages=(UserMessage.of("Look.", pdf("report")), result))
    body = CODEC.encode_request(Prompt(context=context), NOVA)
    assert sorted(names_in(body)) == ["report", "report (2)"]


def test_an_outbox_names_documents_as_a_whole_request_does():
    model = SONNET.model
    outbox, grown = Outbox(model), Context()
    for message in history("a.pdf", "b.pdf", "a.pdf", None, "a.pdf").messages:
        grown = grown.add(message)
        if message.role == "user":
            for options in (None, Options(cache_retention="short")):
                whole = prepare(grown, model, options=options)
                assert outbox.prepare(grown, options=options).content == whole.content


IN_RESULTS = {
    "Llama 4 reads it there": ("us.meta.llama4-maverick-17b-instruct-v1:0", True),
    "Pixtral reads it there": ("us.mistral.pixtral-large-2502-v1:0", True),
    "an older Llama is shown it by the user": ("meta.llama3-3-70b-instruct-v1:0", False),
}


@pytest.mark.parametrize(("model_id", "stays"), IN_RESULTS.values(), ids=IN_RESULTS.keys())
def test_a_file_that_a_tool_gave_stays_in_its_result_where_that_is_read(model_id, stays):
    model = Model(model_id, "amazon-bedrock", "bedrock-converse", input=("text", "image", "document"))
    pdf = FileContent(data="JVBERi0xLjQ=", mime_type="application/pdf", name="a")
    call = ToolCall(id="t1", name="f", arguments={})
    context = Context(tools=(ToolDefinition(name="f", parameters={"type": "object"}),)).add(
        UserMessage.of("hi"),
        AssistantMessage(content=(call,), stop_reason=StopReason.TOOL_USE),
        ToolResultMessage(tool_call_id="t1", tool_name="f", content=(pdf,)),
    )
    request = prepare(context, model)
    answer = cast("list[object]", request.body["messages"])[2]
    assert ("document" in str(answer)) is stays
    assert (not request.report.changes) is stays
