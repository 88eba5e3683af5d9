"""Cache marks that a target refuses in their place: on thinking, on blank texts, on tools that are loaded later."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from projection.building import PNG
from segue.conversation.content import CacheMark, ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.projection.passes.cache_marks import last_mark, moved_mark
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode
from segue.protocols.api import check, decode_request, encode_request
from segue.requests.prepare import convert, prepare

SONNET = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True)
OPUS = Model("claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True)
BEDROCK = Model("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock", "bedrock-converse", reasoning=True)
ROUTER = Model("anthropic/claude-sonnet-4.5", "openrouter", "openai-chat", reasoning=True)
GPT = Model("gpt-5.2", "openai", "openai-responses", reasoning=True)
TARGETS = (SONNET, OPUS, BEDROCK, ROUTER, GPT)

MARK = CacheMark()
HOUR = CacheMark(ttl="1h")
HI = UserMessage.of("hi")
SIGNED = ThinkingContent(thinking="hm", thinking_signature="sig0")
CALL = ToolCall(id="c1", name="read")
RESULT = ToolResultMessage(tool_call_id="c1", tool_name="read", content=(TextContent(text="ok"),))
READ = ToolDefinition(name="read", parameters={"type": "object", "properties": {}})
SAY = TextContent(text="so")
BLANK = TextContent(text="\n")


def own(*content: TextContent | ThinkingContent | ToolCall, model: Model = SONNET) -> AssistantMessage:
    return AssistantMessage(content=content, protocol=model.protocol, provider=model.provider, model=model.id)


PLACES = {
    "thinking before a call": (
        (replace(SIGNED, cache_mark=MARK), CALL),
        (SIGNED, replace(CALL, cache_mark=MARK)),
        ("messages[1].content[0]", "messages[1].content[1]"),
    ),
    "thinking between a text and a call": (
        (SAY, replace(SIGNED, cache_mark=HOUR), CALL),
        (SAY, SIGNED, replace(CALL, cache_mark=HOUR)),
        ("messages[1].content[1]", "messages[1].content[2]"),
    ),
    "thinking behind a text": (
        (SAY, SIGNED, replace(SIGNED, cache_mark=MARK), BLANK, CALL),
        (SAY, SIGNED, SIGNED, BLANK, replace(CALL, cache_mark=MARK)),
        ("messages[1].content[2]", "messages[1].content[4]"),
    ),
    "beside a mark": (
        (replace(SIGNED, cache_mark=HOUR), replace(CALL, cache_mark=MARK)),
        (SIGNED, replace(CALL, cache_mark=MARK)),
        ("messages[1].content[0]",),
    ),
    "a blank text beside signed thinking": (
        (SIGNED, SAY, replace(BLANK, cache_mark=MARK), CALL),
        (SIGNED, SAY, BLANK, replace(CALL, cache_mark=MARK)),
        ("messages[1].content[2]", "messages[1].content[3]"),
    ),
}


@pytest.mark.parametrize(("given", "sent", "paths"), PLACES.values(), ids=PLACES.keys())
def test_a_mark_moves_to_the_nearest_content_that_may_have_one(given, sent, paths):
    context = Context(messages=(HI, own(*given), RESULT), tools=(READ,))
    projection = project(context, SONNET)
    assert projection.context.messages[1].content == sent
    changes = projection.report.changes
    assert {change.code for change in changes} == {"cache_mark_moved"}
    assert tuple(change.sentence().partition(": ")[0] for change in changes) == paths
    again = project(projection.context, SONNET)
    assert again.context is projection.context
    assert not again.report


@pytest.mark.parametrize("model", [SONNET, BEDROCK], ids=["anthropic", "bedrock"])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_mark_behind_a_shorter_one_is_as_short(model, place):
    marks = [HOUR] * place + [MARK] + [HOUR] * (3 - place)
    context = Context(
        tools=(replace(READ, cache_mark=marks[0]),),
        system_prompt=(TextContent(text="Be brief.", cache_mark=marks[1]),),
        messages=(
            UserMessage(content=(replace(SAY, cache_mark=marks[2]),)),
            own(CALL, model=model),
            replace(RESULT, cache_mark=marks[3]),
        ),
    )
    request = prepare(context, model)
    assert check(request.body, protocol=model.protocol, model=model) == []
    places = ["tools[0]", "system_prompt[0]", "messages[0].content[0]", "messages[2].cache_mark"]
    changes = request.report.of(ChangeCode.CACHE_MARK_SHORTENED)
    assert [change.sentence().partition(": ")[0] for change in changes] == places[place + 1 :]


HISTORIES: dict[str, tuple[Message, ...]] = {
    "thinking": (HI, own(replace(SIGNED, cache_mark=MARK), CALL), RESULT),
    "thinking alone": (HI, own(replace(SIGNED, cache_mark=MARK)), UserMessage.of("and")),
    "redacted": (HI, own(replace(SIGNED, thinking="", redacted=True, cache_mark=MARK), SAY), UserMessage.of("and")),
    "thinking of another": (HI, own(replace(SIGNED, cache_mark=MARK), CALL, model=GPT), RESULT),
    "blank of the user": (UserMessage.of(TextContent(text="hi"), replace(BLANK, cache_mark=MARK)),),
    "blank beside thinking": (HI, own(SIGNED, replace(BLANK, cache_mark=MARK)), UserMessage.of("and")),
    "blank beside thinking and a call": (HI, own(SIGNED, replace(BLANK, cache_mark=MARK), CALL), RESULT),
    "blank of a result": (HI, own(CALL), replace(RESULT, content=(replace(BLANK, cache_mark=MARK),))),
}


@pytest.mark.parametrize("model", TARGETS, ids=lambda model: model.full_name())
@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES.keys())
def test_every_target_accepts_a_conversation_with_marks_anywhere(messages, model):
    system = (TextContent(text="Be kind."), replace(BLANK, cache_mark=MARK))
    later = replace(READ, name="find", cache_mark=MARK, extra={"anthropic-messages": {"defer_loading": True}})
    context = Context(system_prompt=system, messages=messages, tools=(READ, later))
    request = prepare(context, model, options=Options(thinking="off" if model is SONNET else None))
    assert check(request.body, protocol=model.protocol, model=model) == []
    options = Options(cache_retention="long")
    assert check(prepare(context, model, options=options).body, protocol=model.protocol, model=model) == []
    assert Projector(model).project(context) == project(context, model)


def test_a_mark_of_a_blank_result_moves_to_the_result():
    messages = HISTORIES["blank of a result"]
    sent = project(Context(messages=messages, tools=(READ,)), SONNET).context.messages[2]
    assert isinstance(sent, ToolResultMessage)
    assert sent.cache_mark == MARK


def test_a_mark_of_a_deferred_tool_moves_to_one_that_is_loaded():
    later = ToolDefinition(
        name="find", parameters=READ.parameters, cache_mark=MARK, extra={"anthropic-messages": {"defer_loading": True}}
    )
    native = NativeTool(
        protocol="anthropic-messages",
        definition={"type": "x_20260101", "name": "x", "defer_loading": True},
        cache_mark=HOUR,
    )
    projection = project(Context(messages=(HI,), tools=(READ, later, native)), OPUS)
    tools = projection.context.tools
    assert [tool.cache_mark for tool in tools] == [MARK, None, None]
    assert [change.path for change in projection.report.changes] == [("tools", 1), ("tools", 0), ("tools", 2)]
    alone = project(Context(messages=(HI,), tools=(later,)), OPUS)
    assert alone.context.tools[0].cache_mark is None
    assert [change.code for change in alone.report.changes] == ["cache_mark_removed"]


def test_a_blank_text_beside_signed_thinking_stays_where_the_target_accepts_it():
    content = (SIGNED, BLANK, CALL)
    context = Context(messages=(HI, own(*content), RESULT), tools=(READ,))
    assert project(context, SONNET).context.messages[1].content == (SIGNED, CALL)
    bedrock = Context(messages=(HI, own(*content, model=BEDROCK), RESULT), tools=(READ,))
    assert project(bedrock, BEDROCK).context is bedrock
    beside = Context(messages=(HI, own(SIGNED, SAY, BLANK, CALL), RESULT), tools=(READ,))
    assert project(beside, SONNET).context is beside


BODIES = {
    "anthropic-messages": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "thinking",
                        "thinking": "hm",
                        "signature": "s",
                        "cache_control": {"type": "ephemeral", "ttl": "1h"},
                    },
                    {"type": "redacted_thinking", "data": "x", "cache_control": {"type": "ephemeral"}},
                    {"type": "text", "text": "so"},
                ],
            },
            {"role": "user", "content": "and"},
        ],
    },
    "bedrock-converse": {
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                    {"cachePoint": {"type": "default"}},
                    {"text": "so"},
                ],
            },
            {"role": "user", "content": [{"text": "and"}]},
        ],
    },
}


@pytest.mark.parametrize("model", [SONNET, BEDROCK], ids=lambda model: model.protocol)
def test_a_body_with_a_mark_on_thinking_is_read_and_written_unchanged_but_sent_repaired(model):
    body = BODIES[model.protocol]
    prompt = decode_request(body, protocol=model.protocol, model=model)
    assert encode_request(prompt, protocol=model.protocol, model=model) == body
    assert {violation.code for violation in check(body, protocol=model.protocol, model=model)} == {
        "cache_mark_misplaced"
    }
    for target in TARGETS:
        request = convert(body, source=model.protocol, target=target, source_model=model)
        assert check(request.body, protocol=target.protocol, model=target) == []


def test_a_removed_mark_of_a_changed_prompt_is_reported_at_the_prompt():
    """The places of its pieces differ from the given ones."""
    given = (BLANK, TextContent(text="Be kind."), TextContent(text="Be brief.", cache_mark=MARK))
    projection = project(Context(system_prompt=given, messages=(HI,)), replace(GPT, rules={"refused_text": "blank"}))
    removed = [change.path for change in projection.report.changes if change.code == "cache_mark_removed"]
    assert removed == [("system_prompt",)]


# -- breakpoints of OpenAI ---------------------------------------------------------------------------------------------

MARKED = {
    "model": "claude-opus-5-5",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so", "cache_control": {"type": "ephemeral"}},
                {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    ],
}


MARKED_RESULT = {
    "type": "tool_result",
    "tool_use_id": "t",
    "content": "ok",
    "cache_control": {"type": "ephemeral"},
}


def test_marks_become_breakpoints_and_marks_again():
    there = convert(MARKED, source="anthropic-messages", target="openai/gpt-5.6-sol")
    system, user, *_ = there.body["input"]
    assert system["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit", "ttl": "12h"}
    assert user["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    removed = {change.path for change in there.report.of(ChangeCode.CACHE_MARK_REMOVED)}
    assert removed == {("tools", 0), ("messages", 1, "content", 0)}  # only input has breakpoints
    back = convert(there.body, source="openai-responses", target="anthropic/claude-opus-5-5")
    assert back.body["system"] == MARKED["system"]
    assert back.body["messages"][0] == MARKED["messages"][0]


def test_marks_become_breakpoints_of_chat_and_marks_again():
    chat = Model("gpt-5.6-sol", "openai", "openai-chat", reasoning=True)
    body = {**MARKED, "messages": [*MARKED["messages"][:2], {"role": "user", "content": [MARKED_RESULT]}]}
    there = convert(body, source="anthropic-messages", target=chat)
    system, user, *_, result = there.body["messages"]
    assert system["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit", "ttl": "12h"}
    assert user["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    part = {"type": "text", "text": "ok", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert result["content"] == [part]
    assert "cache_control" not in str(there.body)
    assert not check(there.body, protocol="openai-chat", model=chat)
    assert convert(there.body, source="openai-chat", target=chat).body["messages"] == there.body["messages"]
    back = convert(there.body, source="openai-chat", target="anthropic/claude-opus-5-5")
    assert back.body["system"] == MARKED["system"]
    assert back.body["messages"][0] == MARKED["messages"][0]
    claude = Model("anthropic/claude-opus-4.5", "openrouter", "openai-chat", reasoning=True)
    gateway = convert(there.body, source="openai-chat", target=claude)
    assert gateway.body["messages"][1]["content"][0]["cache_control"] == {"type": "ephemeral"}
    older = convert(there.body, source="openai-chat", target=Model("gpt-5.4", "openai", "openai-chat", reasoning=True))
    assert "prompt_cache_breakpoint" not in str(older.body)


def test_a_result_has_its_breakpoint_on_its_last_part():
    body = {**MARKED, "messages": [*MARKED["messages"][:2], {"role": "user", "content": [MARKED_RESULT]}]}
    request = convert(body, source="anthropic-messages", target="openai/gpt-6-sol")
    part = {"type": "input_text", "text": "ok", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert request.body["input"][-1]["output"] == [part]


def test_a_model_before_breakpoints_gets_none():
    request = convert(MARKED, source="anthropic-messages", target="openai/gpt-5.4")
    assert "prompt_cache_breakpoint" not in str(request.body)
    assert len(request.report.of(ChangeCode.CACHE_MARK_REMOVED)) == 4


@pytest.mark.parametrize(
    "breakpoint_", [{"mode": "explicit"}, {"mode": "explicit", "ttl": "30m"}, {"mode": "new", "ttl": "1y"}]
)
def test_a_breakpoint_is_written_back(breakpoint_):
    part = {"type": "input_text", "text": "x", "prompt_cache_breakpoint": breakpoint_}
    body = {"model": "gpt-5.6-sol", "input": [{"role": "user", "content": [part]}]}
    request = convert(body, source="openai-responses", target="openai/gpt-5.6-sol")
    assert request.body["input"] == body["input"]


def test_the_last_mark_of_joined_texts_stays():
    short, long = CacheMark(), CacheMark(ttl="1h")
    texts = [TextContent(text="a", cache_mark=long), TextContent(text="b", cache_mark=short), TextContent(text="c")]
    assert last_mark(texts) == short
    assert last_mark(texts[:1]) == long
    assert last_mark(texts[2:]) is None
    assert last_mark([ImageContent(data=PNG, mime_type="image/png", cache_mark=long), texts[2]]) is None
    assert moved_mark(texts[2], short) == replace(texts[2], cache_mark=short)
    assert moved_mark(texts[0], short) == texts[0], "its own stays"
