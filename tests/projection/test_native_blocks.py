"""Native calls and results: halves, references, malformed blocks. What is sent is accepted by `check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.compare import idle, unreported
from projection.histories import fresh
from property_testing import scaled_examples
from segue.conversation.content import (
    AssistantContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode, Loss
from segue.protocols.api import decode_request, encode_request, resolve_endpoint
from segue.protocols.kit.codec import Violation
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.outbox import Outbox
from segue.requests.prepare import prepare


def check(body: Mapping[str, object], *, protocol: str, model: Model) -> list[Violation]:
    """Check what projection relies on; the blocks here have only the keys that pair them, not all of the SDK's."""
    return get_protocol(protocol).check(body, resolve_endpoint(model))


Wire = Mapping[str, object]

CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=1000)
FABLE = Model("claude-fable-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=1000)
GPT = Model("gpt-5.4", "openai", "openai-responses", reasoning=True)
NOVA = Model("us.amazon.nova-2-lite-v1:0", "amazon-bedrock", "bedrock-converse")
CHAT = Model("gpt-5.4", "openai", "openai-chat", reasoning=True)

HI = UserMessage.of("hi")
MORE = UserMessage.of("and now?")
SIGNED = ThinkingContent(thinking="hm", thinking_signature="sealed")


def native(model: Model, block: Wire, fallback: str = "") -> NativeContent:
    spare = (TextContent(text=fallback),) if fallback else ()
    return NativeContent(protocol=model.protocol, block=block, fallback=spare)


def by(model: Model, *content: AssistantContent | str, stop: StopReason = StopReason.STOP) -> AssistantMessage:
    pieces = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content)
    return AssistantMessage(
        content=pieces, protocol=model.protocol, provider=model.provider, model=model.id, stop_reason=stop
    )


def own(*blocks: NativeContent) -> UserMessage:
    return UserMessage(content=cast("tuple[UserContent, ...]", blocks))


def result(call_id: str = "toolu_1") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="read", content=(TextContent(text="ok"),))


def sent_blocks(messages: Sequence[Message]) -> list[Wire]:
    return [piece.block for message in messages for piece in message.content if piece.kind == "native"]


@dataclass(frozen=True)
class Pair:
    """A native call and its result, each in a message: the result is in the model's turn or in the user's."""

    model: Model
    call: Wire
    result: Wire
    by_user: bool = False
    call_alone: bool = False
    """Whether the call alone is accepted."""

    def call_block(self) -> NativeContent:
        return native(self.model, self.call)

    def result_block(self) -> NativeContent:
        return native(self.model, self.result, "what it found")


def _claude(call: str, name: str, kind: str, **fields: object) -> Pair:
    call_id = "srvtoolu_1" if call == "server_tool_use" else "mcptoolu_1"
    return Pair(
        CLAUDE,
        {"type": call, "id": call_id, "name": name, "input": {}, **fields},
        {"type": kind, "tool_use_id": call_id, "content": []},
    )


def _gpt(call: str, output: str, **fields: object) -> Pair:
    return Pair(
        GPT,
        {"type": call, "id": f"{call}_1", "call_id": "call_1", **fields},
        {"type": output, "call_id": "call_1", "output": "done"},
        by_user=True,
    )


PAIRS: dict[str, Pair] = {
    "web search": _claude("server_tool_use", "web_search", "web_search_tool_result"),
    "web fetch": _claude("server_tool_use", "web_fetch", "web_fetch_tool_result"),
    "code": _claude("server_tool_use", "code_execution", "code_execution_tool_result"),
    "shell in code": _claude("server_tool_use", "bash_code_execution", "bash_code_execution_tool_result"),
    "editor in code": _claude(
        "server_tool_use", "text_editor_code_execution", "text_editor_code_execution_tool_result"
    ),
    "tool search": _claude("server_tool_use", "tool_search_tool_bm25", "tool_search_tool_result"),
    "advisor": _claude("server_tool_use", "advisor", "advisor_tool_result"),
    "a server tool of tomorrow": _claude("server_tool_use", "teleport", "teleport_tool_result"),
    "mcp": _claude("mcp_tool_use", "find", "mcp_tool_result", server_name="docs"),
    "local shell": _gpt("local_shell_call", "local_shell_call_output", action={"type": "exec"}, status="completed"),
    "local shell with the id of the SDK": Pair(
        GPT,
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": {}, "status": "completed"},
        {"type": "local_shell_call_output", "id": "call_1", "output": "done"},
        by_user=True,
    ),
    "shell": _gpt("shell_call", "shell_call_output", action={"commands": ["ls"]}),
    "patch": _gpt("apply_patch_call", "apply_patch_call_output", operation={"type": "delete_file", "path": "a"}),
    "computer": _gpt("computer_call", "computer_call_output", action={"type": "wait"}, pending_safety_checks=[]),
    "tool search of the client": Pair(
        GPT,
        {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {}},
        {"type": "tool_search_output", "call_id": "call_1", "execution": "client", "tools": []},
        by_user=True,
    ),
    "approval": Pair(
        GPT,
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "server_label": "s", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        by_user=True,
        call_alone=True,
    ),
    "program": Pair(
        GPT,
        {"type": "program", "id": "prog_1", "call_id": "call_1", "code": "f()", "fingerprint": "x"},
        {"type": "program_output", "id": "out_1", "call_id": "call_1", "result": "1", "status": "completed"},
    ),
    "nova": Pair(
        NOVA,
        {"toolUse": {"toolUseId": "t1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "r"}], "type": "nova_grounding_result"}},
    ),
}

every_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())


def expect_accepted(context: Context, model: Model) -> None:
    """What is sent is accepted, is the same incrementally, and is not changed by a second projection."""
    request = prepare(context, model)
    found = check(request.body, protocol=model.protocol, model=model)
    assert found == []
    once = project(context, model)
    assert project(once.context, model, options=once.options).report.changes == ()
    projector, outbox = Projector(model), Outbox(model)
    for count in range(1, len(context.messages) + 1):
        grown = replace(context, messages=context.messages[:count])
        whole = project(grown, model)
        assert projector.project(grown) == whole
        if whole.context.messages:
            assert outbox.prepare(grown).content == prepare(grown, model).content


def complete(pair: Pair) -> tuple[Message, ...]:
    call, answer = pair.call_block(), pair.result_block()
    if pair.by_user:
        return (HI, by(pair.model, call), own(answer), by(pair.model, "so"), MORE)
    return (HI, by(pair.model, call, answer, "so"), MORE)


@every_pair
def test_a_complete_pair_is_sent_without_a_change(pair):
    context = Context(messages=complete(pair))
    projection = project(context, pair.model)
    assert [change for change in projection.report.changes if change.code != ChangeCode.TOOL_ADDED] == []
    expect_accepted(context, pair.model)


@every_pair
def test_a_call_without_its_result_is_not_sent(pair):
    context = Context(messages=(HI, by(pair.model, "look:", pair.call_block()), MORE, by(pair.model, "so"), MORE))
    projection = project(context, pair.model)
    if pair.call_alone:
        assert projection.report.changes == ()
        return
    assert sent_blocks(projection.context.messages) == []
    [change] = projection.report.of(ChangeCode.NATIVE_REFUSED)
    assert change.path == ("messages", 1, "content", 1)
    assert change.loss == Loss.CONTENT
    expect_accepted(context, pair.model)


@every_pair
def test_a_result_without_its_call_is_sent_as_its_fallback(pair):
    block = pair.result_block()
    turn = own(block) if pair.by_user else by(pair.model, block, "so")
    context = Context(messages=(HI, by(pair.model, "well"), MORE, turn, MORE))
    projection = project(context, pair.model)
    assert sent_blocks(projection.context.messages) == []
    [change] = projection.report.of(ChangeCode.NATIVE_REFUSED)
    assert change.path == ("messages", 3, "content", 0)
    assert change.loss == Loss.OPAQUE
    assert projection.context.messages[3].content[0] == TextContent(text="what it found")
    expect_accepted(context, pair.model)


@every_pair
def test_check_names_halves(pair):
    def violations(*messages: Message) -> list[str]:
        record = PROTOCOLS[pair.model.protocol]
        body = encode_request(Context(messages=messages), protocol=record.name, model=pair.model)
        found = check(body, protocol=record.name, model=pair.model)
        return [violation.code for violation in found if violation.code != "tools_missing"]

    block = pair.result_block()
    assert violations(*complete(pair)) == []
    alone = violations(HI, by(pair.model, "look:", pair.call_block()), MORE)
    assert bool(alone) is not pair.call_alone
    assert violations(HI, own(block), MORE) if pair.by_user else violations(HI, by(pair.model, block, "so"), MORE)


@every_pair
def test_a_result_is_not_sent_behind_a_call_that_another_model_made(pair):
    """The call becomes its fallback, because another model made it; a result alone would be refused."""
    messages = [
        replace(message, model="another-model") if message.role == "assistant" else message
        for message in complete(pair)
    ]
    context = Context(messages=tuple(messages))
    assert sent_blocks(project(context, pair.model).context.messages) == []
    expect_accepted(context, pair.model)


@every_pair
def test_a_second_result_is_not_sent(pair):
    messages = list(complete(pair))
    at = 2 if pair.by_user else 1
    turn = messages[at]
    messages[at] = replace(turn, content=(*turn.content, pair.result_block()))
    projection = project(Context(messages=tuple(messages)), pair.model)
    assert len(sent_blocks(projection.context.messages)) == 2
    expect_accepted(Context(messages=tuple(messages)), pair.model)


@every_pair
def test_thinking_that_was_signed_with_a_removed_half_is_not_replayed(pair):
    if pair.call_alone or pair.model is NOVA:
        return
    context = Context(messages=(HI, by(pair.model, SIGNED, pair.call_block()), MORE))
    projection = project(context, pair.model)
    assert "sealed" not in repr(projection.context)
    expect_accepted(context, pair.model)


# -- calls that the provider finishes later ----------------------------------------------------------------------------

SEARCH = PAIRS["web search"]
CALL = ToolCall(id="toolu_1", name="read")
WAITING: dict[str, tuple[Message, ...]] = {
    "its turn is the last": (HI, by(CLAUDE, SEARCH.call_block())),
    "only results follow": (HI, by(CLAUDE, SEARCH.call_block(), CALL, stop=StopReason.TOOL_USE), result()),
    "the next reply finishes it": (
        HI,
        by(CLAUDE, SEARCH.call_block(), CALL, stop=StopReason.TOOL_USE),
        result(),
        by(CLAUDE, SEARCH.result_block(), "so"),
        MORE,
    ),
    "the resumed turn finishes it": (
        HI,
        by(CLAUDE, SEARCH.call_block()),
        by(CLAUDE, SEARCH.result_block(), "so"),
        MORE,
    ),
    "the resumed turn pauses again": (HI, by(CLAUDE, SEARCH.call_block()), by(CLAUDE, "still looking")),
}


@pytest.mark.parametrize("messages", WAITING.values(), ids=WAITING.keys())
@pytest.mark.parametrize("model", [CLAUDE, FABLE], ids=["prefill", "no prefill"])
def test_a_call_that_the_provider_will_finish_is_kept(messages, model):
    messages = tuple(map(_by_fable, messages)) if model is FABLE else messages
    context = Context(messages=messages)
    projection = project(context, model)
    assert projection.report.changes == ()
    assert projection.context is context
    expect_accepted(context, model)


INTERRUPTED: dict[str, tuple[Message, ...]] = {
    "the user goes on": (HI, by(CLAUDE, SEARCH.call_block()), MORE),
    "the user adds a text to the results": (
        HI,
        by(CLAUDE, SEARCH.call_block(), CALL, stop=StopReason.TOOL_USE),
        result(),
        MORE,
    ),
    "the next reply does not finish it": (
        HI,
        by(CLAUDE, SEARCH.call_block(), CALL, stop=StopReason.TOOL_USE),
        result(),
        by(CLAUDE, "never mind"),
        MORE,
    ),
    "the result comes behind a turn of the user": (
        HI,
        by(CLAUDE, SEARCH.call_block()),
        MORE,
        by(CLAUDE, SEARCH.result_block(), "so"),
        MORE,
    ),
    "the reply ended in the call": (HI, by(CLAUDE, "look:", SEARCH.call_block(), stop=StopReason.LENGTH)),
    "another model goes on": (HI, by(CLAUDE, SEARCH.call_block()), by(GPT, "so"), MORE),
}


@pytest.mark.parametrize("messages", INTERRUPTED.values(), ids=INTERRUPTED.keys())
@pytest.mark.parametrize("model", [CLAUDE, FABLE], ids=["prefill", "no prefill"])
def test_a_call_that_cannot_be_finished_is_not_sent(messages, model):
    messages = tuple(map(_by_fable, messages)) if model is FABLE else messages
    context = Context(messages=messages)
    projection = project(context, model)
    assert sent_blocks(projection.context.messages) == []
    assert projection.report.of(ChangeCode.NATIVE_REFUSED)
    expect_accepted(context, model)


def test_a_target_may_refuse_unfinished_calls():
    model = replace(CLAUDE, rules={"pending_calls": {}})
    projection = project(Context(messages=WAITING["only results follow"]), model)
    assert sent_blocks(projection.context.messages) == []


def test_a_failed_turn_between_a_call_and_its_result_changes_nothing_else():
    failed = by(FABLE, "oh", stop=StopReason.ERROR)
    messages = (HI, by(FABLE, SEARCH.call_block()), failed, by(FABLE, SEARCH.result_block(), "so"), MORE)
    projection = project(Context(messages=messages), FABLE)
    assert [change.code for change in projection.report.changes] == [ChangeCode.UNFINISHED_TURN]
    expect_accepted(Context(messages=messages), FABLE)


def test_an_output_that_comes_late_is_sent_with_its_call():
    pair = PAIRS["computer"]
    messages = (HI, by(GPT, pair.call_block()), MORE, by(GPT, "so"), own(pair.result_block()), by(GPT, "done"), MORE)
    projection = project(Context(messages=messages), GPT)
    assert projection.report.changes == ()
    expect_accepted(Context(messages=messages), GPT)


def test_the_policy_can_leave_the_last_calls_open():
    pair = PAIRS["shell"]
    context = Context(messages=(HI, by(GPT, pair.call_block())))
    assert project(context, GPT, policy=Policy(trailing_calls="open")).report.changes == ()
    assert project(context, GPT).report.of(ChangeCode.NATIVE_REFUSED)


def test_a_tool_search_may_be_answered_by_the_output_of_a_function():
    call = PAIRS["tool search of the client"].call_block()
    context = Context(messages=(HI, by(GPT, call), result("call_1"), by(GPT, "so"), MORE))
    assert project(context, GPT).report.changes == ()
    expect_accepted(context, GPT)


@pytest.mark.parametrize("call_id", [None, "tsc_1"])
def test_a_tool_search_of_the_server_needs_no_pair(call_id):
    block: Wire = {"type": "tool_search_call", "call_id": call_id, "execution": "server", "arguments": {}}
    context = Context(messages=(HI, by(GPT, native(GPT, block), "so"), MORE))
    assert project(context, GPT).report.changes == ()
    expect_accepted(context, GPT)


@pytest.mark.parametrize("protocol", ["openai-chat", "mistral-chat", "cohere-chat", "ollama-chat"])
def test_a_call_of_an_unknown_type_is_paired_like_a_function_call(protocol):
    model = PROTOCOLS[protocol].example
    call = native(model, {"tool_calls": [{"id": "abcdef123", "type": "browser", "browser": {"url": "x"}}]})
    answered = Context(messages=(HI, by(model, call), result("abcdef123"), by(model, "so"), MORE))
    assert project(answered, model).report.changes == ()
    expect_accepted(answered, model)
    alone = Context(messages=(HI, by(model, call), MORE))
    assert [change.code for change in project(alone, model).report.changes][:1] == [ChangeCode.RESULT_MISSING]
    expect_accepted(alone, model)
    late = Context(messages=(HI, by(model, call), MORE, by(model, "so"), result("abcdef123"), MORE))
    assert project(late, model).report.of(ChangeCode.RESULT_MOVED)
    expect_accepted(late, model)


# -- blocks that point to others ---------------------------------------------------------------------------------------

CODE = PAIRS["code"]
CALLER: Wire = {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}


def called_by_code(model: Model = CLAUDE) -> ToolCall:
    return replace(CALL, extra={model.protocol: CALLER})


def test_a_call_that_code_made_keeps_its_caller_while_the_code_is_sent():
    messages = (
        HI,
        by(CLAUDE, CODE.call_block(), called_by_code(), stop=StopReason.TOOL_USE),
        result(),
        by(CLAUDE, replace(called_by_code(), id="toolu_2"), stop=StopReason.TOOL_USE),
        result("toolu_2"),
    )
    context = Context(messages=messages)
    assert project(context, CLAUDE).context is context
    expect_accepted(context, CLAUDE)
    finished = context.add(by(CLAUDE, CODE.result_block(), "so"), MORE)
    assert project(finished, CLAUDE).context is finished
    expect_accepted(finished, CLAUDE)


DANGLING: dict[str, tuple[Model, tuple[Message, ...]]] = {
    "the code was interrupted": (
        CLAUDE,
        (HI, by(CLAUDE, CODE.call_block(), called_by_code(), stop=StopReason.TOOL_USE), result(), MORE),
    ),
    "another model of the provider wrote the code": (
        FABLE,
        (
            HI,
            by(CLAUDE, CODE.call_block(), called_by_code(), stop=StopReason.TOOL_USE),
            result(),
            by(CLAUDE, CODE.result_block(), "so"),
            MORE,
        ),
    ),
    "the history was cut before the call": (
        CLAUDE,
        (HI, by(CLAUDE, called_by_code(), stop=StopReason.TOOL_USE), result(), by(CLAUDE, "so"), MORE),
    ),
    "a search that code made": (
        CLAUDE,
        (
            HI,
            by(
                CLAUDE,
                native(CLAUDE, {**SEARCH.call, "id": "srvtoolu_2", **CALLER}),
                native(CLAUDE, {**SEARCH.result, "tool_use_id": "srvtoolu_2", **CALLER}, "found"),
                "so",
            ),
            MORE,
        ),
    ),
}


@pytest.mark.parametrize(("model", "messages"), DANGLING.values(), ids=DANGLING.keys())
def test_nothing_points_to_a_call_that_is_not_sent(model, messages):
    context = Context(messages=messages)
    projection = project(context, model)
    assert "code_execution_20250825" not in repr(projection.context.messages)
    assert projection.report.changes
    expect_accepted(context, model)


def test_check_names_a_caller_that_is_not_there():
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}, **CALLER}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }
    found = check(body, protocol="anthropic-messages", model=CLAUDE)
    assert [violation.code for violation in found] == ["caller_unknown"]


PROGRAM = PAIRS["program"]
PROGRAM_CALLER: Wire = {"type": "program", "caller_id": "call_1"}


def program_items(*, with_program: bool, finished: bool) -> list[Wire]:
    items: list[Wire] = [{"role": "user", "content": "hi"}]
    if with_program:
        items.append(PROGRAM.call)
    items += [
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}", "caller": PROGRAM_CALLER},
        {"type": "function_call_output", "call_id": "c2", "output": "1", "caller": PROGRAM_CALLER},
    ]
    if finished:
        items.append(PROGRAM.result)
    return items


def test_a_program_waits_for_the_outputs_of_its_calls():
    for finished in (False, True):
        body = {"model": GPT.id, "input": program_items(with_program=True, finished=finished)}
        prompt = decode_request(body, protocol=GPT.protocol, model=GPT)
        request = prepare(prompt.context, GPT)
        assert request.report.changes == ()
        assert request.body["input"] == body["input"]
        assert check(request.body, protocol=GPT.protocol, model=GPT) == []


@pytest.mark.parametrize("with_program", [False, True], ids=["no program", "an interrupted program"])
def test_a_call_of_a_program_that_is_not_sent_is_an_ordinary_call(with_program):
    items = [*program_items(with_program=with_program, finished=False), {"role": "user", "content": "stop"}]
    body = {"model": GPT.id, "input": items}
    assert check(body, protocol=GPT.protocol, model=GPT)
    prompt = decode_request(body, protocol=GPT.protocol, model=GPT)
    request = prepare(prompt.context, GPT)
    assert "caller" not in repr(request.body)
    assert request.report.changes
    assert check(request.body, protocol=GPT.protocol, model=GPT) == []
    assert encode_request(prompt, protocol=GPT.protocol, model=GPT)["input"] == items


def test_results_for_calls_that_the_provider_holds_are_sent():
    items: list[Wire] = [
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "computer_call_output", "call_id": "c2", "output": {"type": "computer_screenshot"}},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ]
    body = {"model": GPT.id, "previous_response_id": "resp_1", "input": items}
    prompt = decode_request(body, protocol=GPT.protocol, model=GPT)
    request = prepare(prompt.context, GPT, options=prompt.options)
    assert request.body["input"] == items
    assert request.report.of(ChangeCode.RESULT_ORPHANED, ChangeCode.NATIVE_REFUSED) == ()


# -- any order of halves -----------------------------------------------------------------------------------------------


def _numbered(value: object, number: int) -> object:
    """Give a block with other ids: every id of the table ends in _1 or in t1."""
    if isinstance(value, Mapping):
        return {key: _numbered(inner, number) for key, inner in cast("Wire", value).items()}
    is_id = isinstance(value, str) and (value.endswith("_1") or value == "t1")
    return f"{str(value)[:-1]}{number}" if is_id else value


def _draw_natives(data: st.DataObject, model: Model, *, results: bool) -> NativeContent:
    """Draw half of a pair. Outputs of the client are never in a turn of the model: every reader puts them elsewhere."""
    pairs = [pair for pair in PAIRS.values() if pair.model is model and (not results or pair.by_user)]
    pair, number = data.draw(st.sampled_from(pairs)), data.draw(st.integers(1, 2))
    is_call = not results and (pair.by_user or data.draw(st.booleans()))
    piece = pair.call_block() if is_call else pair.result_block()
    return replace(piece, block=cast("Wire", _numbered(piece.block, number)))


def _draw_turn(data: st.DataObject, model: Model) -> list[Message]:
    match data.draw(st.sampled_from(("user", "outputs", "stray", "turn", "turn", "turn"))):
        case "user":
            return [MORE]
        case "stray":
            return [result(f"toolu_{data.draw(st.integers(1, 9))}")]
        case "outputs" if any(pair.by_user for pair in PAIRS.values() if pair.model is model):
            return [own(_draw_natives(data, model, results=True))]
        case _:
            pass
    content: list[AssistantContent | str] = []
    calls: list[ToolCall] = []
    for kind in data.draw(st.lists(st.sampled_from(("text", "native", "native", "call", "signed")), max_size=4)):
        match kind:
            case "text":
                content.append("so")
            case "native":
                content.append(_draw_natives(data, model, results=False))
            case "call":
                extra = {model.protocol: CALLER} if model is CLAUDE and data.draw(st.booleans()) else None
                calls.append(ToolCall(id=f"toolu_{data.draw(st.integers(1, 9))}", name="read", extra=extra))
                content.append(calls[-1])
            case _:
                content.append(SIGNED)
    stop = data.draw(st.sampled_from((StopReason.STOP, StopReason.STOP, StopReason.LENGTH, StopReason.ERROR)))
    writer = model if data.draw(st.integers(0, 4)) else CHAT
    return [by(writer, *content, stop=stop), *(result(call.id) for call in calls)]


def _by_fable(message: Message) -> Message:
    is_claude = message.role == "assistant" and message.model == CLAUDE.id
    return replace(message, model=FABLE.id) if is_claude else message


@pytest.mark.parametrize("model", [CLAUDE, FABLE, GPT, NOVA], ids=["claude", "fable", "gpt", "nova"])
@scaled_examples(1)
@given(data=st.data())
def test_what_is_sent_to_the_model_that_wrote_it_is_accepted(model, data):
    source = CLAUDE if model is FABLE else model
    messages: list[Message] = [HI]
    for _ in range(data.draw(st.integers(1, 5))):
        messages += _draw_turn(data, source)
    if model is FABLE:
        messages = [
            replace(m, model=FABLE.id) if m.role == "assistant" and m.model == CLAUDE.id else m for m in messages
        ]
    context = Context(messages=fresh(messages))
    projection = project(context, model)
    assert unreported(context, Options(), projection) == []
    assert idle(context, Options(), projection) == []
    expect_accepted(context, model)


def test_a_call_with_the_id_of_one_that_is_not_sent_is_sent():
    """The first turn loses its signature with the result before its call, and so both of its blocks."""
    pair = PAIRS["web search"]
    call, answer = pair.call_block(), pair.result_block()
    first = by(CLAUDE, answer, ToolCall(id="toolu_1", name="read"), SIGNED, call)
    read = ToolResultMessage(tool_call_id="toolu_1", tool_name="read", content=(TextContent(text="ok"),))
    context = Context(messages=fresh([HI, first, read, by(CLAUDE), by(CLAUDE), by(CLAUDE, call)]))
    assert call in project(context, CLAUDE).context.messages[-1].content
    expect_accepted(context, CLAUDE)


LOOKUP, PAGES = PAIRS["web search"].call_block(), PAIRS["web search"].result_block()
STRAY = result("toolu_9")
CALLS_LOOKUP = {"type": "code_execution_20250825", "tool_id": LOOKUP.block["id"]}
WAITS = by(CLAUDE, SIGNED, LOOKUP)
UNSENT: dict[str, tuple[Message, ...]] = {
    "a result without a call": (WAITS, STRAY),
    "a second result": (by(CLAUDE, ToolCall(id="toolu_1", name="read")), result(), WAITS, result()),
    "the result of an earlier turn": (by(CLAUDE, ToolCall(id="toolu_1", name="read")), WAITS, result()),
    "a turn that failed": (WAITS, by(CLAUDE, stop=StopReason.ERROR)),
    "a turn that failed, and its result": (
        WAITS,
        by(CLAUDE, ToolCall(id="toolu_9", name="read"), stop=StopReason.ERROR),
        STRAY,
    ),
}


@pytest.mark.parametrize("thinking", [None, "off"])
@pytest.mark.parametrize("turns", UNSENT.values(), ids=UNSENT.keys())
def test_what_is_not_sent_behind_a_paused_call_does_not_separate_it_from_its_result(turns, thinking):
    options = Options(thinking=thinking)
    context = Context(messages=fresh((HI, *turns, by(CLAUDE, PAGES, "so"), MORE)))
    projector = Projector(CLAUDE)
    for count in range(2, len(context.messages) + 1):
        grown = replace(context, messages=context.messages[:count])
        projection = project(grown, CLAUDE, options=options)
        assert projector.project(grown, options=options) == projection
        body = prepare(grown, CLAUDE, options=options).body
        assert check(body, protocol=CLAUDE.protocol, model=CLAUDE) == []
        assert project(projection.context, CLAUDE, options=options).report.changes == ()
    blocks = sent_blocks(projection.context.messages)
    assert [LOOKUP.block, PAGES.block] == blocks


def test_a_result_as_text_behind_a_paused_call_ends_its_wait():
    policy = Policy(orphan_results="text")
    context = Context(messages=fresh((HI, by(CLAUDE, LOOKUP), STRAY, by(CLAUDE, PAGES, "so"), MORE)))
    request = prepare(context, CLAUDE, policy=policy)
    assert check(request.body, protocol=CLAUDE.protocol, model=CLAUDE) == []
    assert sent_blocks(project(context, CLAUDE, policy=policy).context.messages) == []


def test_a_call_that_an_answered_request_gave_up_stays_out():
    """The stray result ends a request: the turn before it neither finished the call of the turn before nor had one."""
    first = by(CLAUDE, ToolCall(id="toolu_1", name="read"), LOOKUP)
    context = Context(messages=fresh((HI, first, by(CLAUDE, "hm"), STRAY, by(CLAUDE, PAGES), MORE)))
    assert sent_blocks(project(context, CLAUDE).context.messages) == []
    expect_accepted(context, CLAUDE)


def test_a_turn_behind_a_gap_is_not_joined_to_the_one_before_because_its_own_call_waits():
    called = by(CLAUDE, ToolCall(id="toolu_1", name="read"), LOOKUP)
    goes_on = by(CLAUDE, ToolCall(id="toolu_2", name="read", extra={CLAUDE.protocol: {"caller": CALLS_LOOKUP}}))
    failed = by(CLAUDE, stop=StopReason.ERROR)
    expect_accepted(Context(messages=fresh((HI, by(CLAUDE, "hm"), failed, called, result(), goes_on))), CLAUDE)


def test_a_call_is_sent_whose_id_only_a_turn_without_its_signature_had():
    """The second call of the first turn is refused, and with it the signature and so the first call."""
    context = Context(messages=fresh((HI, by(FABLE, LOOKUP, LOOKUP, SIGNED), STRAY, by(FABLE, LOOKUP))))
    assert sent_blocks(project(context, FABLE).context.messages) == [LOOKUP.block]
    expect_accepted(context, FABLE)


def test_a_result_is_sent_with_a_call_whose_id_an_abandoned_one_had():
    abandoned = by(CLAUDE, LOOKUP, ToolCall(id="toolu_1", name="read"))
    context = Context(messages=fresh((HI, abandoned, by(CLAUDE, LOOKUP), STRAY, by(CLAUDE, PAGES), MORE)))
    assert sent_blocks(project(context, CLAUDE).context.messages) == [LOOKUP.block, PAGES.block]
    expect_accepted(context, CLAUDE)


SEARCHES, PATCHES = PAIRS["tool search of the client"].call_block(), PAIRS["patch"].call_block()
SHELL = PAIRS["local shell"].call_block()
CALLS_1 = ToolCall(id="call_1", name="read")
OPEN: dict[str, tuple[Policy, tuple[Message, ...], list[Wire]]] = {
    "two tools with one id": (
        Policy(trailing_calls="open"),
        (by(GPT, SEARCHES), MORE, by(GPT, SHELL)),
        [SHELL.block],
    ),
    "a function call with the id of a native one": (
        Policy(),
        (by(GPT, SEARCHES, "so"), MORE, by(GPT, CALLS_1), result("call_1")),
        [],
    ),
    "behind a result as text": (
        Policy(trailing_calls="open", orphan_results="text"),
        (STRAY, by(GPT, PATCHES, CALLS_1), result("call_1")),
        [PATCHES.block],
    ),
}


@pytest.mark.parametrize(("policy", "turns", "sent"), OPEN.values(), ids=OPEN.keys())
def test_an_open_native_call_is_sent_only_while_a_result_may_come(policy, turns, sent):
    context = Context(messages=fresh((HI, *turns)))
    projector = Projector(GPT, policy)
    for count in range(1, len(context.messages) + 1):
        grown = replace(context, messages=context.messages[:count])
        assert projector.project(grown) == project(grown, GPT, policy=policy)
    assert sent_blocks(project(context, GPT, policy=policy).context.messages) == sent


def test_white_space_at_the_end_is_removed_also_while_a_call_waits():
    context = Context(messages=fresh((HI, by(CLAUDE, LOOKUP), by(CLAUDE, "so "))))
    expect_accepted(context, CLAUDE)
    assert project(context, CLAUDE).context.messages[-1].content == (TextContent(text="so"),)


def test_a_part_of_a_result_without_a_call_is_judged_as_a_part_of_a_user_turn():
    """The result becomes a user turn, where its parts have other positions and other rules."""
    odd = NativeContent(
        protocol="bedrock-converse", block={"type": "odd", "text": "x", "id": 1}, fallback=(TextContent(text="spare"),)
    )
    texts = (TextContent(text="one"), TextContent(text="two"))
    result = ToolResultMessage(tool_call_id="gone", tool_name="read", content=(*texts, odd))
    policy = Policy(orphan_results="text")
    once = project(Context(messages=(HI, result)), NOVA, policy=policy)
    twice = project(once.context, NOVA, policy=policy)
    assert ChangeCode.NATIVE_REFUSED in {change.code for change in once.report.changes}
    assert twice.context is once.context
    assert twice.report.changes == ()


@pytest.mark.parametrize("kind", ["image", "document"])
@pytest.mark.parametrize("rest", [{}, {"source": None}, {"source": {}}], ids=str)
def test_the_mark_of_a_picture_that_is_not_there_is_not_sent(kind, rest):
    """Rows of data sets mark the place of a picture with its type alone; the picture may be in a column not read."""
    content = [{"type": kind, **rest}, {"type": "text", "text": "What?"}]
    context = decode_request(
        {"messages": [{"role": "user", "content": content}]}, protocol="anthropic-messages"
    ).context
    (change,) = project(context, CLAUDE).report.changes
    assert (change.code, change.loss, change.path) == (
        ChangeCode.NATIVE_REFUSED,
        Loss.CONTENT,
        ("messages", 0, "content", 0),
    )
    expect_accepted(context, CLAUDE)


def test_a_turn_behind_one_that_is_left_out_continues_the_call_before_it():
    """The settled prefix ends with a turn of the model if what follows that turn was never finished."""
    call = native(CLAUDE, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}})
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    failed = by(CLAUDE, ToolCall(id="toolu_1", name="read"), stop=StopReason.ERROR)
    answer = by(CLAUDE, native(CLAUDE, found, "what it found"))
    messages = (HI, by(CLAUDE, call), failed, result("toolu_1"), by(CLAUDE), answer)
    expect_accepted(Context(messages=fresh(messages)), CLAUDE)


def test_a_second_call_with_the_id_of_an_open_one_is_refused_in_a_later_segment_too():
    request = native(GPT, {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "server_label": "s"})
    request = replace(request, block={**request.block, "arguments": "{}"})
    calls = by(GPT, ToolCall(id="c1", name="read"), request)
    expect_accepted(Context(messages=fresh((HI, calls, result("c1"), by(GPT, request)))), GPT)


def test_a_result_without_its_call_ends_the_run_of_an_open_call_at_once():
    """It becomes a text of the user, so that a later call may have the id of the call before it."""
    program, output = PAIRS["program"], PAIRS["local shell"]
    made, orphan = native(GPT, program.call), UserMessage(content=(native(GPT, output.result),))
    expect_accepted(Context(messages=fresh((HI, by(GPT, made), orphan, by(GPT, made)))), GPT)
