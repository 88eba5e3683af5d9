"""Fitting: histories that are larger than the window of their target.

The laws run over every protocol with small windows; the cases below them say what is cut, in which order, and how it is
reported.
"""

from __future__ import annotations

import random
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.compare import idle, unreported
from projection.histories import fresh, options, own_contexts, plain, targets, ugly_contexts
from projection.validity import find_faults
from property_testing import scaled_examples, tiers
from segue.conversation.content import (
    CacheMark,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, Options, Summary, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, Usage, UserMessage
from segue.counting.media import count_pages
from segue.errors import DoesNotFit, SettingsError
from segue.models.catalogue import get_model
from segue.models.model import Model, Price
from segue.projection.fitting.plan import FitPlan, _quotas  # pyright: ignore[reportPrivateUsage]
from segue.projection.fitting.shortening import _without_thinking  # pyright: ignore[reportPrivateUsage]
from segue.projection.policy import Fit, Policy
from segue.projection.projector import Projection, Projector, project
from segue.projection.report import ChangeCode, Loss
from segue.projection.requirements import SummaryWanted
from segue.protocols.api import check, resolve_endpoint
from segue.protocols.registry import PROTOCOLS
from segue.requests.outbox import Outbox
from segue.requests.prepare import prepare
from segue.testing.history_laws import check_fits

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
thorough = scaled_examples(0.4)
NO_RESERVE = Policy(fit=Fit(reserve=0))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@st.composite
def small_targets(draw: st.DrawFn, protocol: str) -> Model:
    model = draw(targets(protocol))
    return replace(model, context_window=draw(st.integers(20, 3000)), max_input=0)


@every_protocol
@thorough
@given(data=st.data())
def test_a_cut_history_obeys_every_law_of_projection(protocol, data):
    model = data.draw(small_targets(protocol))
    expect_laws(data.draw(ugly_contexts(model)), model)


def expect_laws(context: Context, model: Model) -> None:
    before = plain(context)
    projection = project(context, model, policy=NO_RESERVE)
    assert plain(context) == before
    assert find_faults(projection, model, NO_RESERVE) == []
    assert unreported(context, Options(), projection) == []
    assert idle(context, Options(), projection) == []
    assert projection.window is not None
    if not any(requirement.kind == "windowTooSmall" for requirement in projection.requirements):
        assert projection.window.estimate <= projection.window.limit
        again = project(projection.context, model, options=projection.options, policy=NO_RESERVE)
        # The `extra` of a user is taken to be for the provider of the turn before it, which may have been left out.
        reassigned = again.report.of(ChangeCode.EXTRA_REMOVED) if projection.window.gone else ()
        assert again.report.changes == reassigned
        assert again.context is projection.context or reassigned


def test_a_cut_may_leave_out_the_turn_that_said_for_whom_an_extra_is():
    gpt = Model("gpt-4o", "openai", "openai-chat", context_window=400)
    other = replace(_turn(gpt, TextContent(text="yes")), provider="openrouter")
    answer = _turn(gpt, TextContent(text=LONG), ToolCall(id="c1", name="look"))
    result = ToolResultMessage(tool_call_id="c1", tool_name="look", content=(TextContent(text=LONG),))
    last = replace(UserMessage.of("and now?"), extra={"openai-chat": {"odd": 1}})
    expect_laws(Context(messages=fresh((other, UserMessage.of("so"), answer, result, last))), gpt)


@every_protocol
@thorough
@given(data=st.data())
def test_a_growing_history_is_cut_as_the_whole_is(protocol, data):
    """At every step, also where a request ends with an assistant turn and projection adds a turn behind it."""
    model = data.draw(small_targets(protocol))
    context = data.draw(ugly_contexts(model, most=14))
    projector, size = Projector(model, NO_RESERVE), 0
    while size < len(context.messages):
        size += data.draw(st.integers(1, 3))
        part = replace(context, messages=context.messages[:size])
        assert projector.project(part) == project(part, model, policy=NO_RESERVE)


@every_protocol
@thorough
@given(data=st.data())
def test_what_fits_is_the_same_object(protocol, data):
    model = replace(data.draw(targets(protocol)), context_window=10_000_000, max_input=0)
    context = data.draw(ugly_contexts(model))
    fitted, whole = project(context, model), project(context, model, policy=Policy(fit=None))
    assert fitted.context == whole.context
    assert fitted.report == whole.report
    assert fitted.window is not None
    assert fitted.window.estimate - 0.5 <= fitted.window.most  # the estimate is rounded


@every_protocol
@thorough
@given(data=st.data())
def test_a_bound_is_never_below_the_estimate(protocol, data):
    """The bound decides whether tokens are counted at all; own histories are bounded by their characters alone."""
    model = replace(data.draw(targets(protocol)), context_window=10_000_000, max_input=0)
    context, asked = data.draw(own_contexts(model) | ugly_contexts(model)), data.draw(options())
    window = project(context, model, options=asked).window
    assert window is not None
    assert window.estimate - 0.5 <= window.most
    closer = project(context, model, options=asked).window
    assert closer is not None
    closer.left(closer.window)  # as no reply can be so long, the bound by kinds of characters is made
    assert window.estimate - 0.5 <= closer.most


def test_a_cut_goes_further_down_where_it_loses_reasoning():
    """Then cuts are rarer. The provider counted what is lost: its text is not always there."""
    found: dict[tuple[str, int], list[float]] = {}
    for name in ("claude-opus-5-5", "claude-opus-5"):
        model = Model(name, "anthropic", "anthropic-messages", context_window=20_000, reasoning=True)
        for reasoning in (0, 200, 100_000):
            messages = _agent(model, seed=7, steps=110)
            used = Usage(reasoning=reasoning)
            messages = [replace(each, usage=used) if each.role == "assistant" else each for each in messages]
            projector, shares, last = Projector(model), list[float](), 0.0
            for point in _points(messages):
                window = projector.project(Context(messages=tuple(messages[:point]))).window
                assert window is not None
                if window.share < last:
                    shares.append(window.share)
                last = window.share
            found[name, reasoning] = shares
    unbound = found["claude-opus-5", 0]
    assert found["claude-opus-5", 200] == found["claude-opus-5", 100_000] == unbound == found["claude-opus-5-5", 0]
    some, much = found["claude-opus-5-5", 200], found["claude-opus-5-5", 100_000]
    assert len(much) <= len(some) < len(unbound), "fewer cuts"
    assert max(some) < max(unbound)
    assert 0.15 < min(much) <= max(much) < 0.3, "not below the newest part that stays"


@every_protocol
@pytest.mark.parametrize("steps", tiers([20], [40]))
def test_between_two_cuts_a_request_is_a_prefix_of_the_next(protocol, steps):
    """An outbox and a projector give what `prepare` and `project` give for the whole conversation, at every point."""
    model = Model("m", PROTOCOLS[protocol].provider, protocol, context_window=6000, reasoning=True)
    messages = _agent(model, seed=7, steps=steps)
    projector, outbox = Projector(model), Outbox(model)
    last: Projection | None = None
    cuts = 0
    for point in [*_points(messages), len(messages)]:
        context = Context(system_prompt="Be brief.", messages=tuple(messages[:point]))
        whole = project(context, model)
        assert projector.project(context) == whole
        assert outbox.prepare(context).content == prepare(context, model).content
        if last is not None:
            before, after = last.context.messages, whole.context.messages
            is_prefix = after[: len(before)] == before
            assert last.window is not None
            assert whole.window is not None
            moved = (last.window.lean, last.window.gone) != (whole.window.lean, whole.window.gone)
            assert is_prefix or moved
            cuts += not is_prefix
        last = whole
    assert 2 <= cuts <= len(_points(messages)) / 3


def _points(messages: list[Message]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.role == "assistant" and index]


def _agent(model: Model, *, seed: int, steps: int) -> list[Message]:
    """Make the history of an agent: one task, then calls and results of all lengths, and now and then the user."""
    chance = random.Random(seed)

    def words(most: int) -> str:
        return " ".join(
            chance.choice(("alpha", "beta", "Gamma", "42", "x = 1;")) for _ in range(chance.randint(1, most))
        )

    messages: list[Message] = [UserMessage.of("Mend the roof.")]
    for step in range(steps):
        calls = [ToolCall(id=f"c{step}x{at}", name="look", arguments={"at": words(8)}) for at in range(1 + step % 2)]
        thinking = ThinkingContent(thinking=words(20), thinking_signature=f"sig{step}")
        messages.append(_turn(model, thinking, *calls, stop="toolUse"))
        messages += [
            ToolResultMessage(tool_call_id=call.id, tool_name="look", content=(TextContent(text=words(300)),))
            for call in calls
        ]
        if step % 9 == 8:
            messages += [_turn(model, TextContent(text=words(30))), UserMessage.of(words(10))]
    return messages


def _turn(model: Model, *content: TextContent | ThinkingContent | ToolCall, stop: str = "stop") -> AssistantMessage:
    return AssistantMessage(
        content=content,
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
        stop_reason=stop,  # pyright: ignore[reportArgumentType] - a plain string is allowed
    )


# -- what is cut -------------------------------------------------------------------------------------------------------

CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", context_window=2000, reasoning=True)
LONG = "word " * 400
TASK = UserMessage.of("The task.")


def step(number: int, text: str = LONG) -> tuple[Message, ...]:
    call = ToolCall(id=f"c{number}", name="look", arguments={})
    return (
        _turn(CLAUDE, call, stop="toolUse"),
        ToolResultMessage(tool_call_id=call.id, tool_name="look", content=(TextContent(text=text),)),
    )


def history(*messages: Message, summaries: tuple[Summary, ...] = ()) -> Context:
    return Context(messages=(TASK, *messages), summaries=summaries)


def codes(projection: Projection) -> list[ChangeCode]:
    return [change.code for change in projection.report.changes]


def test_long_results_are_shortened_first():
    model = replace(CLAUDE, context_window=2200)
    policy = Policy(fit=Fit(low=0.7))
    projection = project(history(*step(1), *step(2), *step(3), *step(4, "short")), model, policy=policy)
    assert set(codes(projection)) == {ChangeCode.RESULT_SHORTENED}
    change = projection.report.changes[0]
    assert (change.path, change.loss) == (("messages", 2, "content"), Loss.CONTENT)
    assert change.detail.endswith(" tokens")
    text = projection.context.messages[2].content[0]
    assert text.kind == "text"
    assert text.text.startswith(LONG[:600])
    assert text.text.endswith(LONG[-300:])
    assert "1100 characters omitted" in text.text


def test_the_oldest_steps_are_left_out_and_the_task_stays():
    projection = project(history(*(part for number in range(12) for part in step(number))), CLAUDE)
    dropped = projection.report.of(ChangeCode.TURNS_DROPPED)
    assert len(dropped) == 1
    assert dropped[0].path == ("messages", 1)
    assert dropped[0].last is not None
    first, second = projection.context.messages[:2]
    assert first.role == "user"
    assert first.content[0] == TextContent(text="The task.")
    assert first.content[1] == TextContent(
        text=f"(earlier messages omitted here to fit the context window: {dropped[0].last})"
    )
    assert second.role == "assistant"
    assert projection.window is not None
    assert projection.window.gone == dropped[0].last + 1
    assert projection.requirements == (
        SummaryWanted(first=1, last=dropped[0].last, tokens=projection.requirements[0].tokens),  # pyright: ignore[reportAttributeAccessIssue]
    )


def said(projection: Projection) -> str:
    """Give all texts of the user that are sent."""
    users = (message for message in projection.context.messages if message.role == "user")
    return "\n".join(piece.text for message in users for piece in message.content if piece.kind == "text")


def test_the_running_task_is_sent_at_every_point_although_its_message_is_left_out():
    model = replace(CLAUDE, context_window=4000)
    task = "TASK: rename Foo to Bar everywhere"
    begun = (_turn(model, TextContent(text="Yes.")), UserMessage.of(task))
    messages = (UserMessage.of("Hello"), *begun, *(part for number in range(60) for part in step(number)))
    projector = Projector(model)
    for point in [*_points(list(messages))[1:], len(messages)]:
        projection = projector.project(Context(messages=messages[:point]))
        assert task in said(projection)
    assert projection.window is not None
    assert projection.window.gone > 3


ROADS = " ".join(f"road{number}" for number in range(2000))
PATHS = " ".join(f"path{number}" for number in range(2000))


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        pytest.param((UserMessage.of(f"TASK. {ROADS} END"),), ("TASK.", "END"), id="a long first message"),
        pytest.param((TASK, UserMessage.of(f"NEWS. {ROADS} END")), ("The task.", "NEWS.", "END"), id="a long newest"),
        pytest.param(
            (UserMessage.of(f"TASK. {ROADS} DONE"), UserMessage.of(f"NEWS. {PATHS} END")),
            ("TASK.", "DONE", "NEWS.", "END"),
            id="both long",
        ),
        pytest.param(
            (
                UserMessage.of(f"TASK. {LONG}"),
                *(UserMessage.of(f"Wish {at}.") for at in range(9)),
                UserMessage.of("NEWS"),
            ),
            ("TASK.", "Wish 0.", "Wish 8.", "NEWS"),
            id="many short ones between",
        ),
    ],
)
def test_what_the_user_said_is_shortened_rather_than_left_out(messages, kept):
    spoken = [part for message in messages for part in (message, _turn(CLAUDE, TextContent(text="Yes.")))]
    steps = (part for number in range(30) for part in step(number))
    model = replace(CLAUDE, context_window=16_000)
    projection = project(Context(messages=(*spoken[:-1], *steps, *step(31, LONG * 22))), model)
    assert projection.window is not None
    assert projection.window.gone >= len(spoken) - 1
    assert [words for words in kept if words not in said(projection)] == []
    assert projection.window.estimate <= projection.window.limit
    assert len(said(projection)) < 0.2 * 16_000 * 5


def written(length: int) -> tuple[Message, ...]:
    call = ToolCall(id="w1", name="write", arguments={"text": "word " * length})
    done = ToolResultMessage(tool_call_id="w1", tool_name="write", content=(TextContent(text="Done."),))
    return (_turn(CLAUDE, call, stop="toolUse"), done)


def test_a_running_call_that_leaves_little_room_shortens_the_words_of_the_user():
    model = replace(CLAUDE, context_window=4000, max_tokens=400)
    task = UserMessage.of(f"TASK: mend it. {LONG}")
    sizes = {len(said(project(Context(messages=(task, *step(1), *written(words))), model))) for words in (1500, 2450)}
    projection = project(Context(messages=(task, *step(1), *written(2450))), model)
    assert "TASK: mend it." in said(projection)
    assert projection.window is not None
    assert projection.window.estimate <= projection.window.limit
    assert len(sizes) == 2, "with more room, more is kept"
    with pytest.raises(DoesNotFit, match=r"the largest part is messages\[3\]"):
        prepare(Context(messages=(task, *step(1), *written(4000))), model)


def test_a_summary_is_sent_in_the_place_of_what_is_left_out():
    steps = tuple(part for number in range(12) for part in step(number))
    wanted = project(history(*steps), CLAUDE).requirements[0]
    assert wanted.kind == "summaryWanted"
    summary = Summary(covers=wanted.last + 1, text="The roof has two holes.")
    projection = project(history(*steps, summaries=(summary,)), CLAUDE)
    text = projection.context.messages[0].content[1]
    assert text.kind == "text"
    assert text.text.endswith("The roof has two holes.")
    assert ChangeCode.SUMMARY_USED in codes(projection)
    assert projection.requirements == ()
    assert projection.context.summaries == ()


def test_a_summary_of_messages_that_are_sent_is_not_used():
    steps = tuple(part for number in range(12) for part in step(number))
    summary = Summary(covers=24, text="The roof has two holes.")
    assert ChangeCode.SUMMARY_USED not in codes(project(history(*steps, summaries=(summary,)), CLAUDE))


STEPS = tuple(part for number in range(12) for part in step(number))


@pytest.mark.parametrize(
    ("summaries", "sent", "covered"),
    [
        ((Summary(covers=9, text=f"BEGIN {LONG * 20} END"),), "BEGIN", 9),
        ((Summary(covers=5, text="Two holes."), Summary(covers=9, text=LONG * 20)), "Two holes.", 5),
        ((Summary(covers=5, text="Two holes."), Summary(covers=9, text=" \n")), "Two holes.", 5),
        ((Summary(covers=9, text="One hole."), Summary(covers=9, text="Two holes.")), "Two holes.", 9),
        ((Summary(covers=9, text=" \n"),), "", 0),
    ],
    ids=[
        "a long one is shortened",
        "an older one that is not too long goes before",
        "a blank one is not used",
        "the later one of two for the same messages",
        "without a usable one the note is sent",
    ],
)
def test_no_summary_makes_a_history_unsendable(summaries, sent, covered):
    context = history(*STEPS, summaries=summaries)
    projection = project(context, CLAUDE)
    assert prepare(context, CLAUDE).projection == projection
    text = projection.context.messages[0].content[1]
    assert text.kind == "text"
    assert sent in text.text
    assert ("their summary follows" in text.text) == bool(sent)
    assert len(text.text) < 3000
    assert bool(projection.report.of(ChangeCode.SUMMARY_USED)) == bool(sent)
    wanted = projection.requirements[0]
    assert wanted.kind == "summaryWanted"
    assert wanted.first == max(covered, 1)


def test_a_summary_gives_way_to_a_running_call():
    """It is shortened, and left out where no part of it has room."""
    model, sizes = replace(CLAUDE, context_window=4000, max_tokens=400), list[int]()
    for words in (2000, 2300, 2420):
        context = history(*step(1), *written(words), summaries=(Summary(covers=3, text="So far. " * 250),))
        sizes.append(prepare(context, model).content.count(b"So far."))
    assert sizes[0] == 250 > sizes[1] > sizes[2] == 0


@pytest.mark.parametrize("summaries", [(), (Summary(covers=9, text="Two holes."),)], ids=["a note", "a summary"])
def test_the_report_of_a_cut_says_how_much_is_left_out(summaries):
    projection = project(history(*STEPS, summaries=summaries), CLAUDE)
    (change,) = projection.report.of(ChangeCode.TURNS_DROPPED)
    assert change.last is not None
    assert change.detail.startswith(f"{change.last} messages, ")
    assert change.detail.endswith(" tokens")
    assert "or a Summary if there is one" in change.sentence()


def test_a_larger_window_gets_everything_back():
    steps = tuple(part for number in range(12) for part in step(number))
    context = history(*steps, summaries=(Summary(covers=9, text="So far."),))
    projection = project(context, replace(CLAUDE, context_window=200_000))
    assert projection.context is context
    assert projection.report.changes == ()


def test_a_long_result_of_the_running_step_is_shortened_as_little_as_possible():
    projection = project(history(*step(1, LONG * 10)), CLAUDE)
    assert codes(projection) == [ChangeCode.RESULT_SHORTENED]
    text = projection.context.messages[2].content[0]
    assert text.kind == "text"
    assert 2000 < len(text.text) < 8000
    assert projection.window is not None
    assert projection.window.estimate <= projection.window.limit


def test_old_images_become_a_placeholder():
    image = ImageContent(data=PNG, mime_type="image/png")
    shown = (UserMessage.of("Look.", image), _turn(CLAUDE, TextContent(text="A dot.")))
    projection = project(history(*step(0, "x"), *shown, *step(1), *step(2), *step(3)), CLAUDE)
    assert any(code in codes(projection) for code in (ChangeCode.MEDIA_SHORTENED, ChangeCode.TURNS_DROPPED))


def test_media_that_projection_moved_behind_a_result_are_reported_when_they_go():
    """Mistral reads no image in a result: it stands in a user message of its own, which the stored history has not."""
    mistral = Model("mistral-large-latest", "mistral", "mistral-chat")
    shown = tuple(
        message
        for number in range(12)
        for message in (
            _turn(mistral, ToolCall(id=f"call{number:05}", name="look", arguments={}), stop="toolUse"),
            ToolResultMessage(
                tool_call_id=f"call{number:05}",
                tool_name="look",
                content=(TextContent(text="Seen."), ImageContent(data=PNG, mime_type="image/png")),
            ),
        )
    )
    context = history(*shown)
    changes = project(context, mistral).report.of(ChangeCode.MEDIA_EVICTED)
    assert changes
    assert {change.loss for change in changes} == {Loss.CONTENT}
    assert all(context.messages[int(change.path[1])].role == "toolResult" for change in changes)


def test_a_cut_at_the_end_is_made_anew_when_the_user_goes_on():
    """The thinking of a running cycle stays in the first request; in the second, the cycle is finished."""
    model = Model("glm-4.7", "ollama", "ollama-chat", reasoning=True, input=("text", "image"), context_window=1000)
    looked = _turn(CLAUDE, ThinkingContent(thinking="Look."), ToolCall(id="c", name="look"), stop="toolUse")
    shown = ImageContent(data="AAAA", mime_type="image/png")  # of an image, nothing but all is removed
    result = ToolResultMessage(tool_call_id="c", tool_name="look", content=(shown,))
    messages = (TASK, looked, result, _turn(CLAUDE, TextContent(text="Done.")), UserMessage.of("More."))
    projector, dropped = Projector(model), list[bool]()
    for end in (4, 5):
        context = Context(messages=messages[:end])
        assert projector.project(context) == project(context, model)
        dropped.append(ChangeCode.THINKING_DROPPED in codes(project(context, model)))
    assert dropped == [False, True]


def test_thinking_of_finished_steps_goes_where_it_counts():
    opus = replace(CLAUDE, id="claude-opus-4-5", context_window=2600)
    thinking = ThinkingContent(thinking=LONG, thinking_signature="sig")
    answer = AssistantMessage(
        content=(thinking, TextContent(text="Done.")), protocol=opus.protocol, provider=opus.provider, model=opus.id
    )
    context = history(answer, UserMessage.of("More."), *(answer, UserMessage.of("On.")) * 4)
    projection = project(context, opus)
    assert ChangeCode.THINKING_DROPPED in codes(projection)
    first = projection.report.of(ChangeCode.THINKING_DROPPED)[0]
    assert first.path == ("messages", 1, "content")


def test_nothing_is_cut_without_a_window_or_without_fit():
    steps = tuple(part for number in range(12) for part in step(number))
    unknown = replace(CLAUDE, context_window=0)
    assert project(history(*steps), unknown).window is None
    assert project(history(*steps), unknown).report.changes == ()
    assert project(history(*steps), CLAUDE, policy=Policy(fit=None)).report.changes == ()


def test_what_cannot_fit_raises_and_names_the_largest_part():
    tool = ToolDefinition(name="look", description=LONG * 20, parameters={"type": "object"})
    context = replace(history(*step(1)), tools=(tool,))
    with pytest.raises(DoesNotFit, match="the largest part is tools") as caught:
        prepare(context, CLAUDE)
    assert caught.value.path == ("tools",)
    assert caught.value.needed > caught.value.limit
    with pytest.raises(DoesNotFit, match=r"messages\[0\]"):
        prepare(Context(messages=(UserMessage.of(LONG * 20),)), CLAUDE)


def test_the_usage_of_messages_that_were_deleted_since_is_no_reason_to_refuse():
    counted = replace(_turn(CLAUDE, TextContent(text="Done.")), usage=Usage(input=3000))
    request = prepare(history(counted, UserMessage.of("And now?"), *step(1, LONG * 4)), CLAUDE)
    assert ChangeCode.RESULT_SHORTENED in codes(request.projection)


@pytest.mark.parametrize(
    ("price", "least", "most"),
    [
        (Price(input=4, cache_read=0.2, cache_write=5), 0.33, 0.36),
        (Price(input=1, cache_read=0.1, cache_write=1.25), 0.36, 0.43),
        (Price(input=1, cache_read=0.1), 0.41, 0.47),
        (Price(input=1, cache_read=0.5), 0.6, 0.6),
        (Price(input=1), 0.6, 0.6),
        (Price(), 0.36, 0.43),
    ],
    ids=["very cheap reads", "Claude", "no price of writing", "half price", "no cache", "unknown prices"],
)
def test_the_price_of_the_cache_chooses_how_far_a_cut_goes(price, least, most):
    model = Model("m", "anthropic", "openai-chat", context_window=20_000, cost=price)
    messages, found = _agent(model, seed=7, steps=160), list[float]()
    projector, last = Projector(model), 0
    for point in _points(messages):
        window = projector.project(Context(messages=tuple(messages[:point]))).window
        assert window is not None
        if window.gone > last:
            found.append(window.share)
        last = window.gone
    assert len(found) > 2
    # The note takes what whole units leave, and does not depend on a user message behind them.
    assert least - 0.01 < min(found) <= max(found) <= most + 0.01


def test_a_cut_goes_further_down_where_turns_are_long():
    """Else the next cut would follow soon. A mark that the caller sets stays, and where nothing is cached all do."""
    plans = {
        (cost, low): FitPlan(replace(CLAUDE, cost=cost), resolve_endpoint(CLAUDE).rules, Policy(fit=Fit(low=low)))
        for cost, low in ((Price(input=1, cache_read=0.1), None), (Price(input=1), None), (Price(), 0.5))
    }
    lows = {
        key: [round(plan.low_after(plan.limit / turns, 0) / plan.limit, 2) for turns in (400, 56, 48, 40, 10)]
        for key, plan in plans.items()
    }
    dear, uncached, fixed = lows.values()
    assert dear[0] == dear[1] > dear[2] > dear[3] == dear[4] >= 0.33
    assert len(set(uncached)) == len(set(fixed)) == 1


def test_old_results_are_shortened_before_steps_are_left_out():
    """While shortening reaches the low mark, every step is still there, and every call."""
    model = replace(CLAUDE, context_window=12_000)
    steps = tuple(part for number in range(8) for part in step(number, LONG * 3))
    projection = project(history(*steps), model)
    assert {change.code for change in projection.report.changes} == {ChangeCode.RESULT_SHORTENED}
    assert len(projection.context.messages) == 17
    more = tuple(part for number in range(60) for part in step(number, LONG * 3))
    assert ChangeCode.TURNS_DROPPED in codes(project(history(*more), model))


def test_the_reply_is_limited_to_what_the_window_has_left():
    model = replace(CLAUDE, context_window=2000, max_tokens=1900)
    projection = project(history(UserMessage.of(LONG)), model, options=Options(max_tokens=1900))
    assert projection.window is not None
    assert projection.options.max_tokens == 2000 - projection.window.estimate
    assert [change.path for change in projection.report.of(ChangeCode.OPTION_CLAMPED)] == [("options", "max_tokens")]
    assert prepare(history(UserMessage.of(LONG)), model).body["max_tokens"] == projection.options.max_tokens


def test_a_server_that_cuts_in_silence_is_told_how_much_to_read():
    ollama = Model("qwen3", "ollama", "ollama-chat", context_window=40_000)
    assert prepare(history(), ollama).body["options"] == {"num_ctx": 8192}
    assert prepare(history(UserMessage.of(LONG * 30)), ollama).body["options"]["num_ctx"] > 8192
    own = Options(extra={"ollama-chat": {"options": {"num_ctx": 4096}}})
    projection = project(history(), ollama, options=own)
    assert projection.window is not None
    assert projection.window.window == 4096
    assert prepare(history(), ollama, options=own).body["options"] == {"num_ctx": 4096}


def test_a_counter_of_the_callers_own_is_used():
    context = history(*(part for number in range(12) for part in step(number)))
    assert project(context, CLAUDE, policy=Policy(counter=lambda _: 0)).report.changes == ()
    many = project(context, replace(CLAUDE, context_window=200_000), policy=Policy(counter=lambda text: len(text) * 10))
    assert ChangeCode.TURNS_DROPPED in codes(many)


@pytest.mark.parametrize("values", [{"high": 1.5}, {"low": 0.9}, {"keep": 0.0}, {"reserve": -1}, {"window": 0}])
def test_a_fit_that_makes_no_sense_is_refused(values):
    with pytest.raises(SettingsError):
        Fit(**values)


@pytest.mark.parametrize(
    "model",
    [
        replace(CLAUDE, context_window=3000),
        Model(
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock", "bedrock-converse", context_window=3000
        ),
        Model("anthropic/claude-sonnet-4.5", "openrouter", "openai-chat", context_window=3000),
    ],
    ids=lambda model: model.protocol,
)
def test_a_cache_mark_stays_at_the_end_of_the_shortened_part(model):
    """Anthropic reads a cache where a mark stood before; the mark of the end moves with every request."""
    messages, options = _agent(model, seed=7, steps=30), Options(cache_retention="short")
    outbox, anchors = Outbox(model), 0
    for point in [*_points(messages), len(messages)]:
        context = Context(system_prompt="Be brief.", messages=tuple(messages[:point]))
        request = prepare(context, model, options=options)
        assert outbox.prepare(context, options=options).content == request.content
        assert check(request.body, protocol=model.protocol, model=model) == []
        window = request.projection.window
        assert window is not None
        if window.anchor is not None:
            anchors += 1
            unmarked = prepare(context, model).content
            marks = request.content.count(b"cachePoint") + request.content.count(b"cache_control")
            assert b"cachePoint" not in unmarked
            assert marks == (
                4 if model.protocol == "bedrock-converse" else 3
            )  # Bedrock declares the tools of the history
        else:
            assert window.lean == 0
    assert anchors > 10


def test_each_of_two_cache_marks_in_one_message_is_reported_after_a_cut():
    marked = [TextContent(text=text, cache_mark=CacheMark()) for text in ("one", "two")]
    context = history(*step(1), *step(2), *step(3), *step(4), UserMessage.of(*marked))
    projection = project(context, Model("mistral-large-latest", "mistral", "mistral-chat", context_window=2000))
    assert projection.window is not None
    assert projection.window.lean
    paths = [change.path for change in projection.report.of(ChangeCode.CACHE_MARK_REMOVED)]
    assert paths == [("messages", 9, "content", 0), ("messages", 9, "content", 1)]


def test_a_mark_of_thinking_is_removed_also_where_something_was_cut():
    """A target without cache marks: the marks are searched again after the cut, those of thinking too."""
    model = Model("gemini-2.5-pro", "google", "google-genai", reasoning=True, context_window=120)
    thinking = ThinkingContent(thinking="so", cache_mark=CacheMark())
    turn = AssistantMessage(content=(thinking,), protocol="google-genai", provider="google", model=model.id)
    image = UserMessage(content=(ImageContent(data=PNG),))
    projection = project(Context(messages=(image, turn, UserMessage.of("go on"))), model, policy=NO_RESERVE)
    assert ChangeCode.MEDIA_SHORTENED in {change.code for change in projection.report.changes}
    assert not any(piece.cache_mark for message in projection.context.messages for piece in message.content)


def test_a_result_that_projection_inserted_is_not_sent_without_its_call():
    """Where calls and results are sent as text, both belong to one unit all the same."""
    model = Model("m", "plain-text", "plain-text", context_window=200)
    calls = AssistantMessage(
        content=(TextContent(text="word " * 200), ToolCall(id="c1", name="read")),
        protocol="plain-text",
        provider="plain-text",
        model="m",
    )
    context = Context(messages=(UserMessage.of("Read it."), calls, UserMessage.of("Go on.")))
    projection = project(context, model, policy=NO_RESERVE)
    assert [message.role for message in projection.context.messages] == ["user", "user"]
    assert "Tool Result" not in str(projection.context)
    assert projection.window is not None
    assert projection.window.gone == 2


@pytest.mark.parametrize("window", [500, 700, 900])
def test_the_result_of_a_server_tool_is_not_sent_without_the_call_in_which_the_reply_paused(window):
    """The call is the end of one reply, its result the beginning of the next."""
    model = Model("claude-opus-5-5", "anthropic", "anthropic-messages", context_window=window)
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

    def reply(*content):
        return AssistantMessage(content=content, protocol=model.protocol, provider=model.provider, model=model.id)

    searched = (
        reply(TextContent(text="word " * 100), NativeContent(protocol=model.protocol, block=search)),
        reply(NativeContent(protocol=model.protocol, block=found), ToolCall(id="toolu_1", name="look")),
        ToolResultMessage(tool_call_id="toolu_1", tool_name="look", content=(TextContent(text="seen " * 200),)),
    )
    looked = ToolResultMessage(tool_call_id="toolu_2", tool_name="look", content=(TextContent(text="seen"),))
    last = reply(ToolCall(id="toolu_2", name="look"))
    context = Context(messages=(UserMessage.of("Look."), *searched, last, looked))
    request = prepare(context, model, policy=NO_RESERVE)
    assert check(request.body, protocol=model.protocol) == []


def test_a_history_in_which_nothing_can_be_shortened_stays_the_same_object():
    """It is above the mark at which a cut is made, and its turns may not be left out because of their thinking."""
    model = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True)
    check_fits(PROTOCOLS["anthropic-messages"], model, 4_294_967_295)


def test_a_result_as_text_belongs_to_its_call_when_it_is_projected_again():
    check_fits(PROTOCOLS["plain-text"], Model("anything", "plain-text", "plain-text"), 3_700_042)


@pytest.mark.parametrize(
    ("rest", "is_shorter"),
    [
        (TextContent(text="Yes."), True),
        (TextContent(text="Yes.", text_signature="s"), False),
        (ToolCall(id="c", name="f", arguments={}), True),
        (ToolCall(id="c", name="f", arguments={}, thought_signature="s"), False),
        (NativeContent(protocol="anthropic-messages", block={"type": "server_tool_use"}), False),
    ],
)
def test_thinking_is_left_out_unless_what_follows_is_bound_to_it(rest: Any, is_shorter: bool):
    message = AssistantMessage(content=(ThinkingContent(thinking="Hm."), rest))
    assert _without_thinking(message) == (replace(message, content=(rest,)) if is_shorter else message)


def test_quotas_count_pages_of_pdf_files_alone():
    data = b64encode(b"%PDF-1.4\n<< /Type /Page >>\n<< /Type /Page >>\n").decode()
    pages = next(
        quota.amount
        for quota in _quotas(resolve_endpoint(get_model("claude-sonnet-4-5")).rules)
        if quota.name == "pages"
    )
    assert pages(FileContent(data=data, mime_type="application/pdf")) == count_pages(data) > 0
    assert pages(FileContent(data=data, mime_type="text/plain")) == 0
    assert pages(FileContent(file_id="f", mime_type="application/pdf")) == 0
    assert pages(ImageContent(data=data, mime_type="image/png")) == 0
