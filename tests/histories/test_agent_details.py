"""Details of the formats of agents and of exports: what one field, one branch or one report says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue import (
    AssistantMessage,
    Context,
    History,
    ImageContent,
    LoadError,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    read_history,
    write_history,
)
from segue.conversation.messages import Usage
from segue.histories.kit.acp_updates import content_of
from segue.histories.kit.envelope import is_own_text, plain_text
from segue.histories.kit.source import Source
from segue.histories.kit.tables import MemoryDatabase
from segue.histories.opencode.turns import _thinking  # pyright: ignore[reportPrivateUsage]
from segue.histories.registry import get_format
from segue.projection.report import ChangeCode

ASKED = UserMessage.of("What is in the file?")


def lines(*entries: object) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def words(history: History) -> list[str]:
    return [plain_text(message) for message in history.context.messages]


def unreadable(history: History) -> list[str]:
    return [change.detail for change in history.report.of(ChangeCode.LINE_UNREADABLE)]


def written(format: str, *messages: Any) -> list[dict[str, Any]]:  # noqa: A002 - as `write_history` calls it
    (file, *_) = write_history(Context(messages=messages), format=format).files
    return [json.loads(line) for line in file.data.splitlines()]


def answer(*content: Any, usage: Usage | None = None) -> AssistantMessage:
    return AssistantMessage(
        content=content, protocol="openai-responses", provider="openai", model="gpt-5.4", usage=usage, response_id="r1"
    )


def test_what_an_eval_case_says_was_read_with_nothing_left_over():
    parts = [{"text": "I look at the file now."}, {"functionCall": {"id": "c", "name": "look", "args": {"a": "b c d"}}}]
    result = {"functionResponse": {"id": "c", "name": "look", "response": {"found": "a long line"}}}
    invocation = {
        "userContent": {"parts": [{"text": "Look at the file, please."}]},
        "intermediateData": {"invocationEvents": [{"content": {"parts": parts}}, {"content": {"parts": [result]}}]},
        "finalResponse": {"parts": [{"text": "It has one long line."}]},
    }
    cases = {"evalSetId": "s", "evalCases": [{"evalId": "e", "conversation": [invocation]}]}
    history = read_history(json.dumps(cases).encode(), format="adk-evalset")
    assert [message.role for message in history.context.messages] == ["user", "assistant", "toolResult", "assistant"]
    assert unreadable(history) == []


@pytest.mark.parametrize(
    ("block", "kinds", "records"),
    [
        ({"type": "thinking", "thinking": "So."}, ["thinking", "text"], []),
        ({"type": "thinking", "thinking": 5}, ["text"], ["thinking"]),
        ({"type": "plan", "thinking": "So."}, ["text"], ["plan"]),
        ({"type": "note", "text": "So."}, ["text"], ["note"]),
        ({"type": "text", "text": ["So."]}, ["text"], ["text"]),
    ],
    ids=["thinking", "no words", "another kind with thinking", "another kind with text", "text of another form"],
)
def test_a_block_of_an_answer_of_claude_ai_is_read_or_is_a_record(block, kinds, records):
    content = [block, {"type": "text", "text": "Yes."}]
    message = {"uuid": "m", "sender": "assistant", "text": "", "content": content, "attachments": [], "files": []}
    chat = {"uuid": "c", "name": "n", "updated_at": "2026-09-01T10:00:00Z", "chat_messages": [message]}
    history = read_history(json.dumps([chat]).encode(), format="claude-ai")
    assert [piece.kind for piece in history.context.messages[0].content] == kinds
    assert [record.kind for record in history.records] == records


@pytest.mark.parametrize(
    ("attachment", "own"),
    [
        ({"type": "date"}, True),
        ({"type": "queued_command"}, False),
        ({"type": "queued_command", "isMeta": True}, True),
        ({"type": "file"}, False),
        ({"type": "file", "isMeta": True}, False),
    ],
    ids=["a reminder", "a prompt that waited", "a prompt of the program", "a file", "a file with the mark"],
)
def test_an_attachment_of_claude_code_is_of_the_user_or_of_the_program(attachment, own):
    around = {"isSidechain": False, "sessionId": "s", "cwd": "/p", "version": "2.1.325"}
    asked = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "Hello."}}
    added = {"type": "attachment", "uuid": "a", "parentUuid": "u", "attachment": attachment}
    added["rendered"] = [{"content": "Also this."}]
    times = ({"timestamp": f"2026-11-15T10:00:0{at}.000Z"} for at in (1, 2))
    history = read_history(
        lines(*({**each, **around, **time} for each, time in zip((asked, added), times, strict=True))),
        format="claude-code",
    )
    assert [(plain_text(each), is_own_text(each)) for each in history.context.messages] == [
        ("Hello.", False),
        ("Also this.", own),
    ]


def test_the_screen_of_cline_is_a_list():
    with pytest.raises(LoadError, match="the file is not a list of what the screen of Cline showed"):
        read_history(b'{"say": "text"}', format="cline-ui")


def test_an_image_on_the_screen_of_cline_is_an_image():
    image = "data:image/png;base64,iVBORw0KGgo="
    shown = [{"ts": 1, "type": "say", "say": "task", "text": "Look.", "images": [image]}]
    (message,) = read_history(json.dumps(shown).encode(), format="cline-ui").context.messages
    assert message.content == (TextContent(text="Look."), ImageContent(data="iVBORw0KGgo=", mime_type="image/png"))


def test_the_usage_of_a_reply_is_a_line_of_codex():
    usage = Usage(input=5, output=7, cache_read=3, cache_write=2, reasoning=4, total_tokens=17)
    found = [
        line["payload"]
        for line in written("codex", ASKED, answer(TextContent(text="A list."), usage=usage), ASKED)
        if line["type"] == "token_usage_record"
    ]
    assert [(each["response_id"], each["thread_id"] == each["session_id"]) for each in found] == [("r1", True)]
    assert found[0]["usage"] == {
        "input_tokens": 10,
        "cached_input_tokens": 3,
        "cache_write_input_tokens": 2,
        "output_tokens": 7,
        "reasoning_output_tokens": 4,
        "total_tokens": 17,
    }


@pytest.mark.parametrize(
    ("replacement", "left"),
    [
        ([{"role": "user", "text": "It was kept."}], ["It was kept.", "Next."]),
        (None, ["First.", "The summary.", "Next."]),
    ],
    ids=["with the new messages", "with the summary alone"],
)
def test_a_compaction_of_codex_has_the_messages_that_follow_or_makes_them(replacement, left):
    def line(kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": "2026-11-15T10:00:00.000Z", "type": kind, "payload": payload}

    def said(role: str, text: str) -> dict[str, object]:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        return {"type": "message", "role": role, "content": content}

    compacted: dict[str, object] = {"message": "The summary."}
    if replacement is not None:
        compacted["replacement_history"] = [said(**each) for each in replacement]
    entries = [
        line("session_meta", id="a"),
        line("turn_context", model="gpt-5.4"),
        line("response_item", **said("user", "First.")),
        line("response_item", **said("assistant", "Yes.")),
        line("compacted", **compacted),
        line("response_item", **said("user", "Next.")),
    ]
    assert words(read_history(lines(*entries), format="codex")) == left


EXPORTED = "_Exported on 11/15/2026 at 10:00:00 GMT from Cursor (3.0.16)_\n\n---\n\n**User**\n\nHello there.\n"


@pytest.mark.parametrize(
    ("head", "title", "noted"),
    [
        ("# Both files\n", "Both files", []),
        ("# Both files\nSome words.\n", "Both files", [2]),
        ("Some words.\n", "Hello there.", [1]),
    ],
    ids=["a title", "a text behind the title", "a text in place of the title"],
)
def test_a_text_before_the_first_turn_of_an_export_of_cursor_is_noted(head, title, noted):
    history = read_history((head + EXPORTED).encode(), format="cursor")
    assert history.title == title
    assert [change.path[1] for change in history.report.of(ChangeCode.LINE_UNREADABLE)] == noted


def cursor(*blobs: bytes, root: bytes | None = None) -> History:
    """Read a database of Cursor's program with these blobs, whose root refers to all of them."""
    names = [f"{at:064x}" for at in range(1, len(blobs) + 1)]
    node = b"".join(b"\x0a\x20" + bytes.fromhex(name) for name in names) if root is None else root
    about = {"agentId": "a", "latestRootBlobId": "f" * 64, "name": "Lamps"}
    rows = [{"id": name, "data": data} for name, data in zip((*names, "f" * 64), (*blobs, node), strict=True)]
    tables = {"meta": [{"key": "0", "value": json.dumps(about).encode().hex()}], "blobs": rows}
    return read_history(Source(database=MemoryDatabase(tables), name="store.db"), format="cursor-cli")


def said(text: str) -> bytes:
    return json.dumps({"role": "user", "content": [{"type": "text", "text": text}]}).encode()


def test_what_stands_around_the_words_of_the_user_is_of_the_program_of_cursor():
    history = cursor(said("<rules>\nBe kind.\n</rules>\n<user_query>\nWhy?\n</user_query>"), said("<info>x</info>"))
    assert [(plain_text(each), is_own_text(each)) for each in history.context.messages] == [
        ("<rules>\nBe kind.\n</rules>", True),
        ("Why?", False),
        ("<info>x</info>", True),
    ]


def test_a_node_of_cursor_is_a_record_and_a_broken_message_is_reported():
    history = cursor(said("<user_query>Why?</user_query>"), b"\x1a\x03abc", b'{"role": "user", ')
    assert words(history) == ["Why?"]
    assert [(record.kind, record.line) for record in history.records] == [("node", 2)]
    assert unreadable(history) == ["the message is not valid JSON"]


def gemini(*entries: dict[str, Any]) -> History:
    head = {"sessionId": "s", "projectHash": "0", "startTime": "2026-11-15T10:00:00.000Z", "kind": "main"}
    return read_history(lines(head, *entries), format="gemini-cli")


TIME = "2026-11-15T10:00:01.000Z"


def test_the_first_messages_of_gemini_that_were_one_line_are_one_line_again():
    response = {"functionResponse": {"id": "c", "name": "look", "response": {"output": "two lines"}}}
    first = {"id": "u1", "timestamp": TIME, "type": "user", "content": [response, {"text": "And now?"}]}
    said = {"id": "m1", "timestamp": TIME, "type": "gemini", "content": "Yes.", "model": "gemini-2.5-pro"}
    history = gemini(first, said)
    assert [message.role for message in history.context.messages] == ["toolResult", "user", "assistant"]
    (file,) = write_history(history, format="gemini-cli", model="google/gemini-2.5-pro").files
    assert [line.get("type") for line in map(json.loads, file.data.splitlines())] == [None, "user", "gemini"]


def test_results_that_gemini_has_only_with_the_call_follow_it():
    def result(name: str) -> dict[str, Any]:
        return {"functionResponse": {"id": name, "name": "look", "response": {"output": f"found {name}"}}}

    calls = [{"id": name, "name": "look", "args": {}, "result": [result(name)]} for name in ("c1", "c2")]
    asked = {"id": "u1", "timestamp": TIME, "type": "user", "content": [{"text": "Look."}]}
    called = {"id": "m1", "timestamp": TIME, "type": "gemini", "content": "I look.", "toolCalls": calls}
    repeated = {"id": "u2", "timestamp": TIME, "type": "user", "content": [result("c2")]}
    for entries, order in (((asked, called), ["c1", "c2"]), ((asked, called, repeated), ["c1", "c2"])):
        history = gemini(*entries)
        results = [each for each in history.context.messages if each.role == "toolResult"]
        assert [each.tool_call_id for each in results] == order
        assert ["found c1" in str(each.content) for each in results] == [True, False]


THOUGHT = ThinkingContent(thinking="One.", thinking_signature="c2ln")


@pytest.mark.parametrize(
    ("content", "merged"),
    [
        ([TextContent(text="One.")], 0),
        ([TextContent(text="One."), TextContent(text="Two.")], 1),
        ([THOUGHT, THOUGHT, TextContent(text="Yes.")], 1),
        ([THOUGHT, TextContent(text="Two.")], 0),
        ([ToolCall(id="a", name="f", arguments={}), ToolCall(id="b", name="f", arguments={})], 0),
    ],
    ids=["one text", "two texts", "two thoughts", "a thought and a text", "two calls"],
)
def test_grok_build_says_where_it_joins_texts(content, merged):
    said = AssistantMessage(
        content=tuple(content), protocol="anthropic-messages", provider="anthropic", model="claude-sonnet-4-5"
    )
    context = Context(messages=(ASKED, said, ASKED))
    report = write_history(context, format="grok-build", model="anthropic/claude-sonnet-4-5").report
    joined = [change for change in report.of(ChangeCode.TURN_MERGED) if "joins texts" in change.detail]
    assert len(joined) == merged


def test_images_of_one_prompt_are_not_joined_by_grok_build():
    images = [ImageContent(data="iVBORw0KGgo=", mime_type="image/png")] * 2
    context = Context(messages=(UserMessage(content=(TextContent(text="See."), *images)),))
    report = write_history(context, format="grok-build", model="openai/gpt-5.4").report
    assert not [change for change in report.of(ChangeCode.TURN_MERGED) if "joins texts" in change.detail]


def test_a_message_of_hermes_belongs_to_a_session_of_its_database():
    sample = get_format("hermes").samples()[0].source.database
    assert isinstance(sample, MemoryDatabase)
    tables = sample.content
    own, message = tables["sessions"][0], tables["messages"][0]
    other = {**own, "id": "other", "started_at": 1.0}
    given = {
        **tables,
        "sessions": [own, other],
        "messages": [*tables["messages"], {**message, "id": 90, "session_id": "other"}],
    }

    def noted(tables: dict[str, Any], session: str | None = None) -> list[str]:
        source = Source(database=MemoryDatabase(tables), name="state.db", session=session)
        return unreadable(read_history(source, format="hermes"))

    lost = {**given, "messages": [*given["messages"], {**message, "id": 91, "session_id": "lost"}]}
    assert noted(given) == []
    assert noted(lost) == ["the message is of a session that the database does not have"]
    assert noted(lost, str(own["id"])) == []


def test_a_prompt_of_kimi_code_is_undone_with_all_that_follows_it():
    def line(kind: str, **fields: object) -> dict[str, object]:
        return {"type": kind, "time": 1794736800000, **fields}

    def said(text: str, kind: str = "user") -> dict[str, object]:
        message = {"role": "user", "content": [{"type": "text", "text": text}], "origin": {"kind": kind}}
        return line("context.append_message", message=message)

    begin = line("metadata", protocol_version="1.4", created_at=1794736800000)
    prompts = [said("First."), said("Second."), said("A reminder.", "injection")]
    undone = [*prompts, line("context.undo", count=1)]
    assert words(read_history(lines(begin, *prompts), format="kimi-code")) == ["First.", "Second.", "A reminder."]
    assert words(read_history(lines(begin, *undone), format="kimi-code")) == ["First."]
    compacted = line("context.apply_compaction", summary="It went on.", compactedCount=3, keptUserMessageCount=1)
    assert words(read_history(lines(begin, *prompts, compacted), format="kimi-code")) == ["Second.", "It went on."]


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"}, "[a.txt](file:///a.txt)"),
        ({"type": "resource_link", "uri": "file:///a.txt"}, "[file](file:///a.txt)"),
        ({"type": "resource", "resource": {"uri": "file:///a.txt", "text": "alpha"}}, "alpha"),
        ({"type": "diff", "path": "a", "newText": "b", "other": 1}, '{"path":"a","newText":"b"}'),
        ({"type": "content", "content": {"type": "text", "text": "inside"}}, "inside"),
    ],
    ids=["a link", "a link without a name", "a file", "a change", "content"],
)
def test_a_block_of_the_agent_client_protocol_is_a_text(block, text):
    assert content_of([block]) == [TextContent(text=text)]


@pytest.mark.parametrize(
    ("status", "failed"),
    [("completed", False), ("failed", True), ("error", True), (None, False)],
)
def test_a_result_of_open_webui_failed_by_its_status(status, failed):
    output = [
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "what it found", "status": status},
    ]
    messages = {
        "u": {"id": "u", "parentId": None, "childrenIds": ["a"], "role": "user", "content": "Look."},
        "a": {"id": "a", "parentId": "u", "childrenIds": [], "role": "assistant", "content": "", "output": output},
    }
    chat = {"id": "c", "title": "t", "chat": {"history": {"messages": messages, "currentId": "a"}}}
    history = read_history(json.dumps([chat]).encode(), format="open-webui")
    results = [each for each in history.context.messages if each.role == "toolResult"]
    assert [each.is_error for each in results] == [failed]


def test_a_block_that_opencode_cannot_store_is_reported():
    block = NativeContent(protocol="anthropic-messages", block={"type": "search_result", "source": "x"})

    def dropped(*content: Any) -> list[str]:
        context = Context(messages=(UserMessage(content=content),))
        report = write_history(context, format="opencode", model="anthropic/claude-sonnet-4-5").report
        return [change.detail for change in report.of(ChangeCode.NATIVE_DROPPED)]

    assert dropped(TextContent(text="See."), block) == ["opencode stores texts, images and files only"]
    assert dropped(TextContent(text="See.")) == []


@pytest.mark.parametrize(
    ("metadata", "thinking", "signature", "redacted"),
    [
        ({"anthropic": {"redactedData": "hidden"}}, "", "hidden", True),
        ({"anthropic": {"signature": "signed"}}, "Hm.", "signed", False),
        ({}, "Hm.", None, False),
    ],
    ids=["hidden", "signed", "plain"],
)
def test_a_thought_of_opencode_is_hidden_signed_or_plain(metadata, thinking, signature, redacted):
    found = _thinking("Hm.", metadata)
    assert (found.thinking, found.thinking_signature, found.redacted) == (thinking, signature, redacted)


def test_a_tool_of_vercel_that_is_not_known_before_has_its_name_in_a_field():
    def call(name: str) -> str:
        part = {"toolCallId": "c", "state": "output-available", "input": {}, "output": "found", "toolName": "look"}
        turns = [
            {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Look."}]},
            {"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, {"type": name, **part}]},
        ]
        (_, said, result) = read_history(json.dumps(turns).encode(), format="vercel-ui").context.messages
        assert said.role == "assistant"
        assert result.role == "toolResult"
        assert result.tool_name == said.tool_calls()[0].name
        return result.tool_name

    assert call("dynamic-tool") == "look"
    assert call("tool-search") == "search"


def test_the_rounds_of_an_answer_of_vscode_have_thoughts_texts_and_calls():
    call = {"id": "c1", "name": "read_file", "arguments": '{"path": "a.txt"}'}
    rounds = [
        {"thinking": {"text": "So."}, "response": "I look.", "toolCalls": [call]},
        {"response": "It is long.", "toolCalls": []},
    ]
    results = {"c1": {"content": [{"value": "alpha"}]}, "c9": {"content": [{"value": "lost"}]}}
    metadata = {"toolCallRounds": rounds, "toolCallResults": results}
    request = {"requestId": "r", "message": {"text": "Look."}, "response": [], "result": {"metadata": metadata}}
    begin = {"kind": 0, "v": {"version": 3, "sessionId": "s", "requests": []}}
    added = {"kind": 2, "k": ["requests"], "v": [request]}
    for data in (lines(begin, added), json.dumps({"version": 3, "sessionId": "s", "requests": [request]}).encode()):
        history = read_history(data, format="vscode-copilot-chat")
        assert [[piece.kind for piece in each.content] for each in history.context.messages] == [
            ["text"],
            ["thinking", "text", "toolCall"],
            ["text"],
            ["text"],
        ]
        assert [record.kind for record in history.records] == ["result without its call"]


def test_a_log_of_vscode_that_begins_again_keeps_its_requests():
    request = {"requestId": "r", "message": {"text": "Look."}, "response": [{"value": "Yes."}]}
    begin = {"kind": 0, "v": {"version": 3, "sessionId": "s", "requests": [request]}}
    again = {"kind": 0, "v": {"version": 3, "sessionId": "s"}}
    history = read_history(lines(begin, again), format="vscode-copilot-chat")
    assert words(history) == ["Look.", "Yes."]
    assert len(unreadable(history)) == 1


def test_the_answer_of_smolagents_is_the_argument_of_its_last_call():
    call = {"id": "c", "type": "function", "function": {"name": "final_answer", "arguments": {"answer": "Five."}}}
    step = {"step_number": 1, "tool_calls": [call], "timing": {"start_time": 1.0}, "model_output": "I count them."}
    history = read_history(json.dumps({"steps": [{"task": "Count."}, step]}).encode(), format="smolagents")
    assert words(history)[0] == "Count."
    assert "Five." in words(history)[-1]


def test_images_and_texts_of_the_user_of_mistral_vibe():
    image = {"type": "image_url", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    history = read_history(
        lines({"role": "user", "content": "Look.", "images": [image]}, {"role": "assistant", "content": "Yes."}),
        format="mistral-vibe",
    )
    assert [[piece.kind for piece in each.content] for each in history.context.messages] == [
        ["text", "image"],
        ["text"],
    ]


@pytest.mark.parametrize(
    ("content", "texts"), [("Look.", ["Look."]), ("", []), ([{"type": "text", "text": "a"}], ["a"])]
)
def test_the_content_of_a_message_of_inspect_is_a_text_or_blocks(content, texts):
    turns = [{"role": "user", "content": content}, {"role": "assistant", "content": "Yes.", "source": "generate"}]
    history = read_history(json.dumps(turns).encode(), format="inspect-ai")
    assert [piece.text for piece in history.context.messages[0].content if piece.kind == "text"] == texts


def test_a_result_for_inspect_names_its_tool_and_its_error():
    def result(**fields: Any) -> dict[str, Any]:
        made = ToolResultMessage(tool_call_id="c", content=(TextContent(text="It broke."),), **fields)
        call = ToolCall(id="c", name="look", arguments={})
        (file, *_) = write_history(Context(messages=(ASKED, answer(call), made)), format="inspect-ai").files
        return next(each for each in json.loads(file.data) if each["role"] == "tool")

    assert result(tool_name="look")["function"] == "look"
    assert result(tool_name="look")["content"] == "It broke."
    failed = result(tool_name="look", is_error=True)
    assert (failed["content"], failed["error"]["message"]) == ("", "It broke.")


def test_a_block_of_mcp_sampling_is_a_text_or_stays_as_it_is():
    other = {"type": "text", "text": 5}
    turns = [{"role": "user", "content": [{"type": "text", "text": "Look."}, other]}]
    (message,) = read_history(
        json.dumps({"messages": turns, "maxTokens": 5}).encode(), format="mcp-sampling"
    ).context.messages
    assert message.content == (TextContent(text="Look."), NativeContent(protocol="mcp-sampling", block=other))
