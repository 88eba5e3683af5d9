"""A projector that grows with its history gives what `project` gives of the whole, at every step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import ALL_TARGETS, PNG, TARGETS, WIDE_PNG, options, policies, targets, ugly_contexts
from property_testing import scaled_examples
from segue.conversation.content import ImageContent, TextContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.models.rule import Rule
from segue.projection import engine
from segue.projection.policy import Policy
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode
from segue.projection.workspace.workspace import Workspace
from segue.protocols.registry import PROTOCOLS

CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True)
FEW_IMAGES = replace(CLAUDE, rules={"max_images": 3})
MISTRAL = Model("mistral-large-latest", "mistral", "mistral-chat")


def turn(*calls: str, text: str = "on it") -> AssistantMessage:
    content = (TextContent(text=text), *(ToolCall(id=call, name="read") for call in calls))
    return AssistantMessage(content=content, protocol="openai-chat", provider="openai", model="gpt-4o")


def result(call: str, *media: ImageContent, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call, tool_name="read", content=(TextContent(text=text), *media))


def long_history(steps: int) -> list[Message]:
    messages: list[Message] = []
    for step in range(steps):
        messages += [UserMessage.of(f"do {step}"), turn(f"call {step}"), result(f"call {step}"), turn(text="there")]
    return messages


def agrees(projector: Projector, messages: list[Message], model: Model, policy: Policy | None = None) -> None:
    context = Context(messages=tuple(messages))
    assert projector.project(context) == project(context, model, policy=policy)


# -- the law -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@scaled_examples(0.3)
@given(data=st.data())
def test_a_growing_history_gives_what_the_whole_gives_at_every_step(protocol, data):
    model = data.draw(targets(protocol))
    context, asked, policy = data.draw(ugly_contexts(model, most=12)), data.draw(options()), data.draw(policies())
    projector = Projector(model, policy)
    size = 0
    while size < len(context.messages):
        size += data.draw(st.integers(1, 3))
        part = replace(context, messages=context.messages[:size])
        assert projector.project(part, options=asked) == project(part, model, options=asked, policy=policy)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@scaled_examples(0.3)
@given(data=st.data())
def test_what_a_conversation_remembers_of_earlier_requests_changes_no_projection(protocol, data):
    model, policy = data.draw(targets(protocol)), data.draw(policies())
    context, others = (
        data.draw(ugly_contexts(model, most=12)),
        data.draw(st.lists(st.sampled_from(ALL_TARGETS), max_size=2)),
    )
    grown = replace(context, messages=())
    while len(grown.messages) < len(context.messages):
        size = len(grown.messages)
        grown = grown.add(*context.messages[size : size + data.draw(st.integers(1, 3))])
        for other in others:  # what its passes find must not become part of what is remembered
            project(grown, other)
        assert project(grown, model, policy=policy) == project(replace(grown), model, policy=policy)
    assert grown == context


@pytest.mark.parametrize("protocol", PROTOCOLS)
@scaled_examples(0.2)
@given(data=st.data())
def test_an_edited_history_is_projected_anew(protocol, data):
    model = data.draw(targets(protocol))
    context = data.draw(ugly_contexts(model, most=12).filter(lambda context: len(context.messages) > 2))
    projector = Projector(model)
    projector.project(context)
    place = data.draw(st.integers(0, len(context.messages) - 1))
    edited = list(context.messages)
    if data.draw(st.booleans()):
        edited[place] = UserMessage.of("something else")
    else:
        del edited[place]
    changed = replace(context, messages=tuple(edited))
    assert projector.project(changed) == project(changed, model)
    assert projector.project(context) == project(context, model)


# -- what reaches back over a settled prefix ---------------------------------------------------------------------------


def test_a_late_result_for_a_settled_call_is_moved_up_to_it():
    messages = [UserMessage.of("go"), turn("a", "b"), result("a"), turn(text="waiting"), UserMessage.of("well?")]
    messages += [turn(text="still")]
    projector = Projector(CLAUDE)
    agrees(projector, messages, CLAUDE)
    messages += [UserMessage.of("ah"), result("b", text="late")]
    agrees(projector, messages, CLAUDE)
    sent = projector.project(Context(messages=tuple(messages))).context.messages
    assert isinstance(sent[3], ToolResultMessage)
    assert sent[3].content == (TextContent(text="late"),)
    messages += [turn(text="go on"), UserMessage.of("yes")]
    agrees(projector, messages, CLAUDE)


def test_a_second_result_for_a_settled_call_is_left_out():
    messages = [UserMessage.of("go"), turn("a"), result("a"), turn(text="x"), UserMessage.of("?"), turn(text="y")]
    projector = Projector(CLAUDE)
    agrees(projector, messages, CLAUDE)
    messages += [result("a", text="again"), UserMessage.of("!")]
    agrees(projector, messages, CLAUDE)


def test_images_that_are_too_many_evict_the_oldest_from_the_settled_prefix():
    image = ImageContent(data=PNG, mime_type="image/png")
    projector = Projector(FEW_IMAGES)
    messages: list[Message] = []
    for step in range(6):
        messages += [UserMessage.of("look"), turn(f"c{step}"), result(f"c{step}", replace(image)), turn(text="seen")]
        agrees(projector, messages, FEW_IMAGES)
    sent = projector.project(Context(messages=tuple(messages))).context.messages
    assert sum(piece.kind == "image" for message in sent for piece in message.content) == 3


def test_the_prefix_changes_once_a_step_and_not_once_a_turn():
    model = replace(CLAUDE, rules={"max_images": 4})
    evicted: list[int] = []
    messages: list[Message] = []
    for _ in range(9):
        messages += [UserMessage.of("look", ImageContent(data=PNG, mime_type="image/png")), turn(text="seen")]
        evicted.append(len(project(Context(messages=tuple(messages)), model).report.changes))
    assert evicted == [0, 0, 0, 0, 4, 4, 4, 4, 8]


def test_a_large_image_limits_the_images_beside_it_as_long_as_it_is_sent():
    """Claude: more than 20 images are refused where one has more than 2,000 pixels on an edge."""
    small, large = ImageContent(data=PNG, mime_type="image/png"), ImageContent(data=WIDE_PNG, mime_type="image/png")
    projector = Projector(CLAUDE)
    messages: list[Message] = [UserMessage.of("look", *[replace(small)] * 25), turn(text="seen")]
    sent: list[tuple[int, bool]] = []
    for images in ((large,), (), (small,) * 12, (small,) * 30):
        messages += [UserMessage.of("look", *map(replace, images)), turn(text="seen")]
        agrees(projector, messages, CLAUDE)
        shown = projector.project(Context(messages=tuple(messages))).context.messages
        found = [piece.data for message in shown for piece in message.content if isinstance(piece, ImageContent)]
        sent.append((len(found), WIDE_PNG in found))
    assert sent[0][0] <= 20
    assert sent[0][1]  # the oldest go, and the large one is the newest
    assert sent[1] == sent[0]
    assert sent[2][0] <= 20
    assert sent[2][1]
    assert sent[3] == (42, False)  # it is replaced itself, and then any number may be there


def test_an_image_with_a_longer_edge_than_the_target_takes_is_replaced():
    model = replace(CLAUDE, rules={"image_edge": Rule(most=2999)})
    context = Context(messages=(UserMessage.of("look", ImageContent(data=WIDE_PNG, mime_type="image/png")),))
    assert [change.code for change in project(context, model).report.changes] == [ChangeCode.MEDIA_TOO_LARGE]
    assert not project(context, CLAUDE).report.changes


def test_calls_that_are_left_open_are_answered_later():
    policy = Policy(trailing_calls="open")
    projector = Projector(MISTRAL, policy)
    messages: list[Message] = [UserMessage.of("go"), turn("call one", "call two")]
    agrees(projector, messages, MISTRAL, policy)
    messages.append(result("call two"))
    agrees(projector, messages, MISTRAL, policy)
    messages.append(result("call one"))
    agrees(projector, messages, MISTRAL, policy)
    messages += [turn(text="well"), UserMessage.of("go on")]
    agrees(projector, messages, MISTRAL, policy)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_without_a_result_are_closed_when_the_model_goes_on(protocol):
    model, policy = TARGETS[protocol][0], Policy(trailing_calls="open")
    projector = Projector(model, policy)
    messages: list[Message] = [UserMessage.of("go"), turn("call one", "call two"), result("call one")]
    agrees(projector, messages, model, policy)
    messages += [turn(text="well"), UserMessage.of("go on")]
    agrees(projector, messages, model, policy)


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_what_is_settled_comes_out_as_the_same_objects_turn_after_turn():
    projector = Projector(MISTRAL)
    messages = long_history(5)
    first = projector.project(Context(messages=tuple(messages))).context.messages
    messages += long_history(1)
    second = projector.project(Context(messages=tuple(messages))).context.messages
    assert all(one is other for one, other in zip(first[:-1], second, strict=False))


@pytest.mark.parametrize("model", [CLAUDE, MISTRAL], ids=["claude", "mistral"])
def test_a_new_turn_is_projected_once(model, monkeypatch):
    projected: list[int] = []

    def make_workspace(messages, *rest, **named):
        projected.append(len(messages))
        return Workspace(messages, *rest, **named)

    monkeypatch.setattr(engine, "Workspace", make_workspace)
    projector = Projector(model)
    messages = long_history(3)[:-1]
    projector.project(Context(messages=tuple(messages)))
    for step in range(4):
        messages += [turn(f"more {step}"), result(f"more {step}")]
        projected.clear()
        context = Context(messages=tuple(messages))
        projection = projector.project(context)
        assert projected == [2]
        assert projection == project(context, model)


def test_the_names_of_tools_that_are_gone_are_forgotten():
    projector, messages = Projector(CLAUDE), long_history(2)[:-1]
    named = ToolDefinition(name="files.read", description="", parameters={"type": "object"})
    assert projector.project(Context(messages=tuple(messages), tools=(named,))).tool_names
    messages += [turn("more"), result("more")]
    agrees(projector, messages, CLAUDE)
    assert not projector.project(Context(messages=tuple(messages))).tool_names


def test_another_prompt_or_other_tools_are_seen():
    projector = Projector(MISTRAL)
    messages = tuple(long_history(3))
    for prompt in ("be brief", "be long", None, (TextContent(text="be"),), (TextContent(text="be"),)):
        context = Context(system_prompt=prompt, messages=messages)
        assert projector.project(context) == project(context, MISTRAL)


def test_a_history_that_became_shorter_is_seen():
    projector = Projector(MISTRAL)
    messages = long_history(4)
    agrees(projector, messages, MISTRAL)
    agrees(projector, messages[:5], MISTRAL)
    agrees(projector, messages, MISTRAL)


def test_reset_drops_the_cached_prefix():
    projector = Projector(MISTRAL)
    agrees(projector, long_history(2), MISTRAL)
    projector.reset()
    agrees(projector, long_history(3), MISTRAL)


@pytest.mark.parametrize("model", [CLAUDE, MISTRAL, Model("deepseek-reasoner", "deepseek", "openai-chat")])
def test_thousands_of_messages_grow_in_jumps(model):
    messages = long_history(700)
    projector = Projector(model)
    for size in (1, 1000, 2000, len(messages)):
        agrees(projector, messages[:size], model)
