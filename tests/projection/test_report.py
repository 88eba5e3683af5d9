"""The report: its texts, its JSON, and a history for every code."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from projection.histories import PDF, PNG
from segue.conversation.content import (
    CacheMark,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Options, Summary, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import ProjectionRefused, SettingsError
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.passes.extra import lost_fields
from segue.projection.policy import Fit, Policy, Texts
from segue.projection.projector import project
from segue.projection.report import (
    OPAQUE_MEANING,
    SENTENCES,
    Change,
    ChangeCode,
    Loss,
    Report,
    describe_loss,
)
from segue.protocols.registry import PROTOCOLS
from segue.requests.prepare import convert

CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=1000)
OLD_CLAUDE = Model("claude-3-5-haiku-latest", "anthropic", "anthropic-messages", input=("text",))
GPT = Model("gpt-4o", "openai", "openai-chat", input=("text", "image"), max_tokens=16_384)
GEMINI = Model("gemini-3-pro-preview", "google", "google-genai", reasoning=True)
MISTRAL = Model("mistral-large-latest", "mistral", "mistral-chat")
BEDROCK = Model("amazon.nova-pro-v1:0", "amazon-bedrock", "bedrock-converse", input=("text", "image", "document"))
VSCODE = Model("copilot-gpt", "vscode", "vscode-lm")
PLAIN = Model("anything", "plain-text", "plain-text")
OLLAMA = Model("qwen3", "ollama", "ollama-chat", reasoning=True)

SMALL = Model("gpt-4o", "openai", "openai-chat", context_window=1000)

HI = UserMessage.of("hi")
LONG = "word " * 400
IMAGE = ImageContent(data=PNG, mime_type="image/png")


def by(*content, model: Model = OLLAMA, **fields) -> AssistantMessage:
    made = AssistantMessage(content=content, protocol=model.protocol, provider=model.provider, model=model.id)
    return AssistantMessage(**{name: getattr(made, name) for name in made.__struct_fields__} | fields)


def call(call_id: str = "call1abcd", name: str = "read", **fields) -> ToolCall:
    return ToolCall(id=call_id, name=name, **fields)


def result(call_id: str = "call1abcd", *content, **fields) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id, tool_name="read", content=content or (TextContent(text="ok"),), **fields
    )


REPLY = TextContent(text="reply")
NATIVE = NativeContent(protocol="cohere-chat", block={"type": "odd"})
SPOKEN = NativeContent(protocol="cohere-chat", block={"type": "odd"}, fallback=(TextContent(text="in words"),))
SEARCH_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
MARK = CacheMark()
RESPONSES = Model("gpt-5.4", "openai", "openai-responses", reasoning=True)
NAMESPACE = NativeTool(
    protocol="openai-responses",
    definition={
        "type": "namespace",
        "name": "crm",
        "tools": [
            {
                "type": "function",
                "name": "find",
                "parameters": {"type": "object"},
                "strict": False,
                "defer_loading": True,
            }
        ],
    },
)
CITED = TextContent(
    text="reply", extra={"openai-responses": {"annotations": [{"type": "url_citation", "url": "https://e.org"}]}}
)


@dataclass(frozen=True)
class Needs:
    """A history that needs a change, the target that needs it, and where it is reported."""

    model: Model
    messages: tuple[Message, ...]
    path: tuple[str | int, ...]
    loss: Loss
    prompt: str | tuple[TextContent | NativeContent, ...] | None = None
    tools: tuple[ToolDefinition | NativeTool, ...] = ()
    options: Options | None = None
    policy: Policy = field(default_factory=Policy)
    summaries: tuple[Summary, ...] = ()


NONE, OPAQUE, CONTENT = Loss.NONE, Loss.OPAQUE, Loss.CONTENT
C = ChangeCode

HISTORY_CODES = frozenset(
    {
        ChangeCode.RECORD_LEFT_OUT,
        ChangeCode.BRANCH_LEFT_OUT,
        ChangeCode.CHILD_LEFT_OUT,
        ChangeCode.COMPACTED_AWAY,
        ChangeCode.LINE_UNREADABLE,
        ChangeCode.AGENT_TEXT_LEFT_OUT,
        ChangeCode.INSTRUCTIONS_LEFT_OUT,
        ChangeCode.ID_MADE,
        ChangeCode.TIME_MADE,
        ChangeCode.MODEL_UNKNOWN,
        ChangeCode.ORIGINAL_NOT_RESTORED,
        ChangeCode.FILE_MISSING,
    }
)
"""Codes of `read_history` and `write_history`; projection never uses them. Their paths refer to the session that was
read (`lines`, `records`, `branches`, ...) or, in `write_history`, to the given history."""
REQUEST_CODES = frozenset(
    {
        ChangeCode.REASONING_WITHHELD,
        ChangeCode.REASONING_ASKED,
        ChangeCode.REASONING_REJECTED,
        ChangeCode.INSTRUCTIONS_APPENDED,
        ChangeCode.SERVER_EDITED,
        ChangeCode.OUTPUT_ASKED,
    }
)
"""Codes of `prepare` and of the client, which know the encoded request and its reply; projection never uses them."""

CASES: dict[ChangeCode, Needs] = {
    C.UNFINISHED_TURN: Needs(GPT, (HI, by(REPLY, stop_reason=StopReason.ABORTED), HI), ("messages", 1), CONTENT),
    C.UNFINISHED_RESULT: Needs(
        GPT, (HI, by(call(), stop_reason=StopReason.ERROR), result(), HI), ("messages", 2), CONTENT
    ),
    C.SURROGATE_REPLACED: Needs(GPT, (UserMessage.of("half \ud800"),), ("messages", 0, "content", 0), CONTENT),
    C.SIGNED_BLOCK_UNUSABLE: Needs(
        CLAUDE,
        (HI, by(ThinkingContent(thinking="\ud800", thinking_signature="s"), REPLY, model=CLAUDE), HI),
        ("messages", 1, "content", 0),
        CONTENT,
    ),
    C.RESULT_MISSING: Needs(GPT, (HI, by(call()), HI), ("messages", 1), NONE),
    C.RESULT_MOVED: Needs(GPT, (HI, by(call()), HI, result()), ("messages", 3), NONE),
    C.RESULT_DUPLICATE: Needs(GPT, (HI, by(call()), result(), result()), ("messages", 3), CONTENT),
    C.RESULT_ORPHANED: Needs(GPT, (HI, result("nobody")), ("messages", 1), CONTENT),
    C.RESULT_AS_TEXT: Needs(GPT, (HI, result("nobody")), ("messages", 1), NONE, policy=Policy(orphan_results="text")),
    C.ARGUMENTS_UNPARSED: Needs(
        GPT, (HI, by(call(arguments_text='{"pa')), result()), ("messages", 1, "content", 0), CONTENT
    ),
    C.NATIVE_REPLACED: Needs(GPT, (UserMessage.of("hi", SPOKEN),), ("messages", 0, "content", 1), OPAQUE),
    C.NATIVE_DROPPED: Needs(GPT, (UserMessage.of("hi", NATIVE),), ("messages", 0, "content", 1), CONTENT),
    C.NATIVE_REFUSED: Needs(
        CLAUDE,
        (HI, by(REPLY, NativeContent(protocol=CLAUDE.protocol, block=SEARCH_CALL), model=CLAUDE), HI),
        ("messages", 1, "content", 1),
        CONTENT,
    ),
    C.MEDIA_OMITTED: Needs(OLD_CLAUDE, (UserMessage.of("hi", IMAGE),), ("messages", 0, "content", 1), CONTENT),
    C.MEDIA_FLATTENED: Needs(
        CLAUDE,
        (UserMessage.of("hi", ImageContent(data="SUkqAAgAAAA=", mime_type="image/tiff")),),
        ("messages", 0, "content", 1),
        CONTENT,
    ),
    C.MEDIA_TOO_LARGE: Needs(
        Model("m", "p", "openai-chat", rules={"media_bytes": {"most": 10}}),
        (UserMessage.of("hi", IMAGE),),
        ("messages", 0, "content", 1),
        CONTENT,
    ),
    C.MEDIA_EVICTED: Needs(
        Model("m", "p", "openai-chat", rules={"max_images": 1}),
        (UserMessage.of(IMAGE, ImageContent(data=PNG, mime_type="image/png")),),
        ("messages", 0, "content", 0),
        CONTENT,
    ),
    C.MEDIA_MOVED: Needs(GPT, (HI, by(call()), result("call1abcd", IMAGE)), ("messages", 2, "content", 0), NONE),
    C.MEDIA_RESOLVED: Needs(
        OLLAMA,
        (UserMessage.of("hi", ImageContent(url="https://example.org/i.png")),),
        ("messages", 0, "content", 1),
        NONE,
        policy=Policy(media={"https://example.org/i.png": IMAGE}),
    ),
    C.MEDIA_UNREACHABLE: Needs(
        OLLAMA,
        (UserMessage.of("hi", ImageContent(url="https://example.org/i.png")),),
        ("messages", 0, "content", 1),
        CONTENT,
    ),
    C.MEDIA_TYPE_NAMED: Needs(
        CLAUDE, (UserMessage.of("hi", ImageContent(data=PNG)),), ("messages", 0, "content", 1), NONE
    ),
    C.FILE_AS_TEXT: Needs(
        GPT,
        (UserMessage.of("hi", FileContent(data="aGVsbG8=", mime_type="text/plain")),),
        ("messages", 0, "content", 1),
        NONE,
    ),
    C.FILE_AS_IMAGE: Needs(
        GPT,
        (UserMessage.of("hi", FileContent(data=PNG, mime_type="image/png")),),
        ("messages", 0, "content", 1),
        NONE,
    ),
    C.IMAGE_AS_FILE: Needs(
        BEDROCK,
        (UserMessage.of("hi", ImageContent(data=PDF, mime_type="application/pdf")),),
        ("messages", 0, "content", 1),
        NONE,
    ),
    C.THINKING_DROPPED: Needs(
        GPT, (HI, by(ThinkingContent(thinking="hm"), REPLY), HI), ("messages", 1, "content", 0), CONTENT
    ),
    C.THINKING_AS_TEXT: Needs(
        CLAUDE, (HI, by(ThinkingContent(thinking="hm"), REPLY), HI), ("messages", 1, "content", 0), NONE
    ),
    C.THINKING_UNSIGNED: Needs(
        OLLAMA,
        (HI, by(ThinkingContent(thinking="hm", thinking_signature="s"), REPLY, model=CLAUDE), HI),
        ("messages", 1, "content", 0),
        OPAQUE,
    ),
    C.THINKING_BLANK: Needs(
        CLAUDE, (HI, by(ThinkingContent(thinking=" "), REPLY, model=CLAUDE), HI), ("messages", 1, "content", 0), NONE
    ),
    C.SIGNATURE_REMOVED: Needs(
        GPT, (HI, by(call(thought_signature="s")), result()), ("messages", 1, "content", 0), OPAQUE
    ),
    C.SIGNATURE_PLACEHOLDER: Needs(GEMINI, (HI, by(call()), result()), ("messages", 1, "content", 0), NONE),
    C.NAME_AS_TEXT: Needs(CLAUDE, (replace(HI, extra={"openai-chat": {"name": "Ada"}}),), ("messages", 0), NONE),
    C.EXTRA_REMOVED: Needs(GPT, (HI, by(REPLY, extra={"ollama-chat": {"odd": 1}}), HI), ("messages", 1), OPAQUE),
    C.PROVIDER_HISTORY: Needs(
        CLAUDE,
        (UserMessage.of(NativeContent(protocol="openai-responses", block={"type": "item_reference", "id": "i"})), HI),
        ("messages", 0, "content", 0),
        Loss.CONTENT,
    ),
    C.CALL_MOVED: Needs(CLAUDE, (HI, by(call(), REPLY), result()), ("messages", 1, "content"), NONE),
    C.ID_CHANGED: Needs(MISTRAL, (HI, by(call("no")), result("no")), ("messages", 1, "content", 0, "id"), NONE),
    C.NAME_CHANGED: Needs(GPT, (HI, by(call(name="mcp.read")), result()), ("messages", 1, "content", 0, "name"), NONE),
    C.CALL_AS_TEXT: Needs(PLAIN, (HI, by(call()), result()), ("messages", 1, "content", 0), NONE),
    C.ERROR_AS_TEXT: Needs(GPT, (HI, by(call()), result(is_error=True)), ("messages", 2), NONE),
    C.SYSTEM_AS_USER: Needs(MISTRAL, (HI, SystemMessage.of("be brief")), ("messages", 1), NONE),
    C.SYSTEM_AS_PROMPT: Needs(GPT, (SystemMessage.of("be brief"), HI), ("system_prompt",), NONE),
    C.TEXT_BLANK: Needs(CLAUDE, (UserMessage.of("hi", ""),), ("messages", 0, "content", 1), NONE),
    C.TURN_EMPTY: Needs(CLAUDE, (HI, UserMessage.of(" ")), ("messages", 1), NONE),
    C.TURN_FILLED: Needs(
        BEDROCK,
        (UserMessage.of(FileContent(data=PDF, mime_type="application/pdf", name="a")),),
        ("messages", 0, "content"),
        NONE,
    ),
    C.TURN_MERGED: Needs(BEDROCK, (HI, UserMessage.of("and")), ("messages", 1), NONE),
    C.TURN_INSERTED: Needs(MISTRAL, (by(REPLY), HI), ("messages",), NONE),
    C.RESULT_FILLED: Needs(
        BEDROCK,
        (HI, by(call()), ToolResultMessage(tool_call_id="call1abcd", tool_name="read", content=())),
        ("messages", 2, "content"),
        NONE,
    ),
    C.FINAL_SPACE: Needs(
        CLAUDE, (HI, by(TextContent(text="and so "), model=CLAUDE)), ("messages", 1, "content", 0), NONE
    ),
    C.RESULT_SHORTENED: Needs(
        SMALL,
        (HI, by(call()), result("call1abcd", TextContent(text=LONG * 3))),
        ("messages", 2, "content"),
        CONTENT,
    ),
    C.MEDIA_SHORTENED: Needs(
        SMALL,
        (HI, by(REPLY), UserMessage.of("see", IMAGE), by(REPLY), UserMessage.of(LONG), by(REPLY), HI),
        ("messages", 2, "content"),
        CONTENT,
        policy=Policy(fit=Fit(low=0.7, window=950)),
    ),
    C.TURNS_DROPPED: Needs(SMALL, (HI, *[by(TextContent(text=LONG)), HI] * 4), ("messages", 1), CONTENT),
    C.SUMMARY_USED: Needs(
        SMALL,
        (HI, *[by(TextContent(text=LONG)), HI] * 4),
        ("messages", 0, "content"),
        NONE,
        summaries=(Summary(covers=2, text="Nothing yet."),),
    ),
    C.OPTION_REMOVED: Needs(CLAUDE, (HI,), ("options", "seed"), CONTENT, options=Options(seed=1)),
    C.OPTION_CLAMPED: Needs(CLAUDE, (HI,), ("options", "max_tokens"), NONE, options=Options(max_tokens=9999)),
    C.THINKING_LEVEL: Needs(CLAUDE, (HI,), ("options", "thinking"), NONE, options=Options(thinking="max")),
    C.TOOL_REMOVED: Needs(
        GPT, (HI,), ("tools", 0), CONTENT, tools=(NativeTool(protocol="cohere-chat", definition={"type": "web"}),)
    ),
    C.SERVER_TOOL_MAPPED: Needs(
        CLAUDE,
        (HI,),
        ("tools", 0),
        NONE,
        tools=(NativeTool(protocol="google-genai", definition={"googleSearch": {}}),),
    ),
    C.TOOL_SEARCH_REMOVED: Needs(
        CLAUDE,
        (HI,),
        ("tools", 0),
        NONE,
        tools=(NativeTool(protocol="openai-responses", definition={"type": "tool_search"}),),
    ),
    C.NAMESPACE_FLATTENED: Needs(CLAUDE, (HI,), ("tools", 0), NONE, tools=(NAMESPACE,)),
    C.TOOL_LOADED: Needs(RESPONSES, (HI, by(call(name="find")), result()), ("tools", 0), NONE, tools=(NAMESPACE,)),
    C.SOURCES_AS_TEXT: Needs(CLAUDE, (HI, by(CITED, model=RESPONSES), HI), ("messages", 1, "content"), NONE),
    C.TOOL_ADDED: Needs(BEDROCK, (HI, by(call()), result()), ("tools",), NONE),
    C.TOOL_SCHEMA: Needs(GPT, (HI,), ("tools", 0, "parameters"), NONE, tools=(ToolDefinition(name="read"),)),
    C.PREFIX_REMOVED: Needs(
        CLAUDE, (HI, by(TextContent(text="and so"), model=CLAUDE, prefix=True)), ("messages", 1), NONE
    ),
    C.CACHE_MARK_REMOVED: Needs(
        CLAUDE,
        (UserMessage(content=tuple(TextContent(text=f"part {n}", cache_mark=MARK) for n in range(5))),),
        ("messages", 0, "content", 0),
        NONE,
    ),
    C.FILE_CONTEXT_AS_TEXT: Needs(
        GPT,
        (UserMessage.of("see", FileContent(data=PDF, mime_type="application/pdf", context="From the archive.")),),
        ("messages", 0, "content"),
        NONE,
    ),
    C.CACHE_MARK_MOVED: Needs(
        CLAUDE,
        (UserMessage.of("hi", TextContent(text=" ", cache_mark=MARK)),),
        ("messages", 0, "content", 1),
        NONE,
    ),
    C.CACHE_MARK_SHORTENED: Needs(
        CLAUDE,
        (UserMessage.of(*(TextContent(text="hi", cache_mark=CacheMark(ttl=ttl)) for ttl in ("5m", "1h"))),),
        ("messages", 0, "content", 1),
        NONE,
    ),
}


def project_case(case: Needs, policy: Policy | None = None):
    context = Context(system_prompt=case.prompt, messages=case.messages, tools=case.tools, summaries=case.summaries)
    return context, project(context, case.model, options=case.options, policy=policy or case.policy)


def test_every_code_has_a_case_and_a_sentence():
    assert set(CASES) == set(ChangeCode) - HISTORY_CODES - REQUEST_CODES
    assert set(ChangeCode) == set(SENTENCES)
    assert all(sentence.endswith(".") for sentence in SENTENCES.values())


@pytest.mark.parametrize("code", CASES, ids=[code.value for code in CASES])
def test_a_code_is_reported_with_its_path_and_loss(code):
    case = CASES[code]
    _, projection = project_case(case)
    found = [(change.path, change.loss) for change in projection.report.of(code)]
    assert (case.path, case.loss) in found
    assert projection.report.lossless == all(change.loss == NONE for change in projection.report.changes)


@pytest.mark.parametrize("code", CASES, ids=[code.value for code in CASES])
def test_a_path_is_valid_in_the_given_conversation(code):
    context, projection = project_case(CASES[code])
    options = CASES[code].options or Options()
    for change in projection.report.changes:
        node: object = options if change.path[0] == "options" else getattr(context, str(change.path[0]))
        for step in change.path[1:]:
            node = node[step] if isinstance(step, int) else getattr(node, step)  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("code", CASES, ids=[code.value for code in CASES])
def test_a_code_can_be_refused(code):
    case = CASES[code]
    policy = replace(case.policy, refuse=frozenset({code}))
    with pytest.raises(ProjectionRefused) as refused:
        project_case(case, policy)
    assert refused.value.report == project_case(case)[1].report
    assert SENTENCES[code] in str(refused.value)


def test_a_loss_can_be_refused_and_a_smaller_one_passes():
    case = CASES[C.THINKING_UNSIGNED]
    assert project_case(case, Policy(refuse=frozenset({Loss.CONTENT})))[1].report.changes
    with pytest.raises(ProjectionRefused):
        project_case(case, Policy(refuse=frozenset({Loss.OPAQUE})))


def test_refusing_everything_raises_nothing_if_nothing_changes():
    everything = Policy(refuse=frozenset(ChangeCode))
    assert project(Context(messages=(HI,)), GPT, policy=everything).report == Report()


# -- how it reads ------------------------------------------------------------------------------------------------------


def test_a_summary_lists_each_code_once_the_worst_loss_first():
    changes = (
        Change(code=C.ID_CHANGED, path=("messages", 1, "content", 0, "id"), loss=NONE, detail="x"),
        Change(code=C.ID_CHANGED, path=("messages", 3, "content", 0, "id"), loss=NONE, detail="y"),
        Change(code=C.RESULT_ORPHANED, path=("messages", 5), loss=CONTENT),
    )
    assert Report(changes).summary() == (
        "1 change drops content or provider data:\n"
        "     1 x result_orphaned [content dropped] "
        f"{SENTENCES[C.RESULT_ORPHANED]} First at messages[5].\n"
        "Changed without a loss: 2 x id_changed."
    )


def test_a_summary_says_how_much_is_lost_the_largest_loss_first():
    changes = (
        Change(code=C.RESULT_ORPHANED, path=("messages", 0), loss=CONTENT),
        Change(code=C.RESULT_ORPHANED, path=("messages", 2), loss=CONTENT),
        Change(
            code=C.TURNS_DROPPED, path=("messages", 3), loss=CONTENT, detail="d", last=2493, tokens=182_748, share=0.84
        ),
    )
    lines = Report(changes).summary().splitlines()
    assert lines[1].startswith("     1 x turns_dropped [content dropped: 2,491 messages, 182,748 tokens, 84%] ")
    assert lines[2].startswith("     2 x result_orphaned [content dropped] ")


def test_a_cut_says_how_many_tokens_it_left_out_and_which_share():
    turns = [UserMessage.of(f"{number}: " + "word " * 300) for number in range(30)]
    small = replace(GPT, context_window=6000, max_tokens=500)
    projection = project(Context(messages=tuple(turns)), small)
    (cut,) = projection.report.of(C.TURNS_DROPPED)
    assert projection.window is not None
    whole = cut.tokens + projection.window.estimate
    assert (cut.messages, cut.share) == ((cut.last or 0) - 0 + 1 - int(cut.path[1]), round(cut.tokens / whole, 3))
    assert cut.tokens > 300 * (cut.messages - 1)


def test_an_empty_turn_that_failed_is_no_loss_of_content():
    failed = replace(by(REPLY), content=(), stop_reason=StopReason.ERROR)
    report = project(Context(messages=(HI, failed, HI)), GPT).report
    assert [(change.code, change.loss) for change in report.changes if change.code == C.UNFINISHED_TURN] == [
        (C.UNFINISHED_TURN, NONE)
    ]


def chat(*messages: dict[str, object], **fields: object) -> dict[str, object]:
    return {"model": "gpt-5.4", "messages": list(messages), **fields}


SAYS_NOTHING: dict[str, dict[str, object]] = {
    "one text": chat({"role": "user", "content": "hi"}),
    "the dump of an SDK": chat(
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello", "annotations": [], "refusal": None, "audio": None},
        {"role": "user", "content": "and?"},
    ),
    "a string where the target has a list": chat({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    "defaults of the provider": chat(
        {"role": "user", "content": "hi"}, n=1, frequency_penalty=0, logprobs=False, service_tier="auto"
    ),
}


@pytest.mark.parametrize("body", SAYS_NOTHING.values(), ids=SAYS_NOTHING.keys())
def test_what_says_nothing_is_not_reported(body):
    for record in PROTOCOLS.values():
        report = convert(body, source="openai-chat", target=record.example).report
        assert not report.of(C.EXTRA_REMOVED), record.name
        assert report.lossless


SAYS_SOMETHING: dict[str, tuple[dict[str, object], str]] = {
    "a field of the request": (chat({"role": "user", "content": "hi"}, n=2), "n: 2"),
    "a flag that is not the default": (chat({"role": "user", "content": "hi"}, store=True), "store: true"),
    "a long value": (
        chat({"role": "user", "content": "hi"}, prediction={"type": "content", "content": "x" * 300}),
        'prediction: {"type": "content", "content": "' + "x" * 168 + "…",
    ),
    "a secret": (
        chat({"role": "user", "content": "hi"}, server={"url": "u", "headers": {"Authorization": "Bearer abc"}}),
        'server: {"url": "u", "headers": {"Authorization": "***"}}',
    ),
}


@pytest.mark.parametrize(("body", "detail"), SAYS_SOMETHING.values(), ids=SAYS_SOMETHING.keys())
def test_a_lost_field_is_named_with_the_start_of_its_value(body, detail):
    report = convert(body, source="openai-chat", target="anthropic/claude-opus-4-8").report
    assert [(change.loss, change.detail) for change in report.changes] == [(OPAQUE, detail)]


TWO_PEOPLE = chat(
    {"role": "user", "content": "I say yes.", "name": "Ada"},
    {"role": "user", "content": [{"type": "text", "text": "I say no."}], "name": "Bob"},
)


@pytest.mark.parametrize(
    "target", ["anthropic/claude-opus-4-8", "google/gemini-3.5-flash", "mistral/mistral-large-latest"]
)
def test_the_names_of_users_are_sent_with_their_texts(target):
    request = convert(TWO_PEOPLE, source="openai-chat", target=target)
    texts = [
        piece.text for each in request.projection.context.messages for piece in each.content if piece.kind == "text"
    ]
    assert texts == ["Ada: I say yes.", "Bob: I say no."]
    named = request.report.of(C.NAME_AS_TEXT)
    assert [(change.path, change.detail) for change in named] == [(("messages", 0), "Ada"), (("messages", 1), "Bob")]
    assert request.report.lossless


def test_turns_of_two_people_that_are_merged_keep_their_names():
    target = Model("m", "someone", "openai-chat", rules={"alternate": True})
    request = convert(TWO_PEOPLE, source="openai-chat", target=target)
    sent = request.projection.context
    assert request.report.lossless
    assert "name" not in request.body["messages"][0]
    assert [[piece.text for piece in each.content if piece.kind == "text"] for each in sent.messages] == [
        ["Ada: I say yes.", "Bob: I say no."]
    ]


def test_names_of_users_can_be_dropped_and_are_then_reported_as_lost():
    request = convert(
        TWO_PEOPLE, source="openai-chat", target="anthropic/claude-opus-4-8", policy=Policy(user_names="drop")
    )
    assert [change.detail for change in request.report.losses] == ['name: "Ada"', 'name: "Bob"']


def test_a_name_before_a_picture_is_a_text_of_its_own():
    given = replace(
        UserMessage.of(ImageContent(data=PNG, mime_type="image/png")), extra={"openai-chat": {"name": "Ada"}}
    )
    sent = project(Context(messages=(given,)), CLAUDE).context.messages[0]
    assert sent.content[0] == TextContent(text="Ada:")


def test_a_part_of_a_field_that_is_removed_is_named():
    extra = {"openai-chat": {"wide": {"kept": 1, "gone": 2}}}
    assert lost_fields(extra, {"openai-chat": {"wide": {"kept": 1}}}) == {"wide": {"gone": 2}}


def test_the_summary_of_an_empty_report():
    assert Report().summary() == "Nothing was changed."
    assert Report().lossless


def test_a_sentence_has_path_text_and_detail():
    change = Change(code=C.MEDIA_OMITTED, path=("messages", 0, "content", 1), loss=CONTENT, detail="image")
    assert change.sentence() == f"messages[0].content[1]: {SENTENCES[C.MEDIA_OMITTED]} (image)"


@pytest.mark.parametrize("code", CASES, ids=[code.value for code in CASES])
def test_a_report_survives_json(code):
    report = project_case(CASES[code])[1].report
    assert Report.from_json(report.to_json()) == report


def test_changes_are_in_the_order_of_the_request():
    messages = (SystemMessage.of("be"), UserMessage.of("half \ud800"), by(call("bad id!")), result("bad id!"), HI)
    report = project(Context(messages=messages), CLAUDE, options=Options(seed=1)).report
    assert [change.path[:2] for change in report.changes] == [
        ("system_prompt",),
        ("messages", 0),
        ("messages", 1),
        ("messages", 2),
        ("messages", 3),
        ("options", "seed"),
    ]


# -- values of a policy -----------------------------------------------------------------------------------------------

REFUSED_POLICIES = {
    "a misspelt way with reasoning": (Policy, {"reasoning": "txt"}),
    "a misspelt way with calls": (Policy, {"trailing_calls": "closed"}),
    "a misspelt way with orphans": (Policy, {"orphan_results": "keep"}),
    "a misspelt way with duplicates": (Policy, {"duplicate_results": "both"}),
    "a code that does not exist": (Policy, {"refuse": frozenset({"id_change"})}),
    "a blank text": (Texts, {"bridge": " "}),
    "a text that is not valid Unicode": (Texts, {"last_turn": "\ud800"}),
}


@pytest.mark.parametrize(("kind", "fields"), REFUSED_POLICIES.values(), ids=REFUSED_POLICIES.keys())
def test_a_policy_with_an_invalid_value_is_refused_at_once(kind, fields):
    with pytest.raises(SettingsError):
        kind(**fields)


def test_a_text_of_the_callers_own_is_used_and_its_braces_are_filled():
    policy = Policy(texts=Texts(file_omitted="<no {kind} {here}>"))
    file = FileContent(data=PDF, mime_type="application/pdf")
    sent = project(Context(messages=(UserMessage.of(file),)), GPT, policy=policy).context
    assert sent.messages[0].content == (TextContent(text="<no document {here}>"),)


DROPPED = {
    "a native block has no signature": (ChangeCode.NATIVE_REPLACED, Loss.OPAQUE, "provider data"),
    "fields of another provider": (ChangeCode.EXTRA_REMOVED, Loss.OPAQUE, "provider data"),
    "the signature of thinking": (ChangeCode.THINKING_AS_TEXT, Loss.OPAQUE, "signature"),
    "a native block without a fallback": (ChangeCode.NATIVE_DROPPED, Loss.CONTENT, "content"),
    "thinking itself": (ChangeCode.THINKING_DROPPED, Loss.CONTENT, "content"),
    "wire format": (ChangeCode.EXTRA_REMOVED, Loss.NONE, "nothing"),
}


@pytest.mark.parametrize(("code", "loss", "dropped"), DROPPED.values(), ids=DROPPED.keys())
def test_what_a_change_drops_is_named(code, loss, dropped):
    assert describe_loss(code, loss) == dropped


RESULTS_MOVED: dict[str, tuple[tuple[Message, ...], list[int]]] = {
    "a result that comes late stands before one that does not move": (
        (HI, by(call("a")), by(call("b")), result("b"), result("a")),
        [4],
    ),
    "the first result of a batch comes after a user turn": (
        (HI, by(call("a"), call("b")), result("b"), HI, result("a")),
        [4],
    ),
    "two results are swapped": ((HI, by(call("a"), call("b")), result("b"), result("a")), [3]),
    "the first result comes last": (
        (HI, by(call("a"), call("b"), call("c")), result("b"), result("c"), result("a")),
        [4],
    ),
    "the last result comes first": (
        (HI, by(call("a"), call("b"), call("c")), result("c"), result("a"), result("b")),
        [2],
    ),
    "two late results pass two others": (
        (HI, by(call("a")), by(call("b")), by(call("c"), call("d")), *map(result, "cdab")),
        [6, 7],
    ),
}


@pytest.mark.parametrize(("messages", "moved"), RESULTS_MOVED.values(), ids=RESULTS_MOVED.keys())
def test_only_results_that_moved_are_reported_as_moved(messages, moved):
    report = project(Context(messages=messages), GPT).report
    assert [change.path for change in report.of(C.RESULT_MOVED)] == [("messages", index) for index in moved]


def test_opaque_losses_are_explained_where_they_are_shown():
    lost = Change(code=C.SIGNATURE_REMOVED, path=("messages", 1, "content", 0), loss=Loss.OPAQUE)
    report = Report((lost, lost, Change(code=C.ID_CHANGED, path=("messages", 1), loss=NONE, detail="x")))
    meaning = "provider data: what a provider reads and no model does"
    assert meaning in report.summary()
    assert meaning in report._repr_html_()
    assert "<td>2</td><td>signature</td>" in report._repr_html_()
    for word in ("signature", "provider data"):  # what the column says is what the line below explains
        assert word in OPAQUE_MEANING
    assert meaning not in Report(report.changes[2:]).summary() + Report(report.changes[2:])._repr_html_()


@pytest.mark.parametrize("target", ["google/gemini-2.5-pro", "ollama/qwen3", "cohere/command-a-03-2025"])
def test_what_no_model_reads_is_not_content(target):
    options = Options(user_id="u-1", session_id="s-1")
    changes = project(Context(messages=(HI,)), get_model(target), options=options).report.changes
    assert {change.path[1] for change in changes} == {"user_id", "session_id"}
    assert {change.loss for change in changes} == {Loss.OPAQUE}


SCHEMA_CHANGES = {
    "a keyword that moves into the description": ({"type": "string", "format": "hostname"}, NONE),
    "an enumeration of numbers, which moves into the description": ({"type": "integer", "enum": [1, 2]}, NONE),
    "a keyword that is removed": ({"type": "string", "properties": {"a": {"type": "string"}}}, CONTENT),
}


@pytest.mark.parametrize("name", SCHEMA_CHANGES)
def test_a_schema_loses_only_what_is_nowhere_in_the_new_one(name):
    """The same rule for every target: strict tools of Claude, and all tools of Gemini."""
    one, loss = SCHEMA_CHANGES[name]
    schema = {"type": "object", "properties": {"x": one}, "required": ["x"], "additionalProperties": False}
    found: set[Loss] = set()
    for target, strict in (("google/gemini-2.5-pro", False), ("anthropic/claude-sonnet-4-5", True)):
        tool = ToolDefinition(name="f", description="F.", parameters=schema, strict=strict)
        report = project(Context(messages=(HI,), tools=(tool,)), get_model(target)).report
        found |= {change.loss for change in report.of(C.TOOL_SCHEMA) if change.path[-1] == "parameters"}
    assert (CONTENT in found) == (loss == CONTENT)
    assert found
