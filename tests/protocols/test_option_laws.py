"""An option is sent unchanged, or the report has its change.

The tests run on one model for each distinct combination of rules, dialect and thinking levels in the catalogue. So
every option is tested with a new row of a vendor without further work.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from projection.histories import ALL_TARGETS
from property_testing import tiers
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.models.catalogue import packaged_catalogue
from segue.models.model import Model
from segue.models.thinking import THINKING_LEVELS
from segue.protocols.api import encode_request, resolve_endpoint
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.prepare import Request, prepare

HELLO: Final = Context(messages=(UserMessage.of("hello"),))
WITH_TOOL: Final = Context(
    messages=HELLO.messages, tools=(ToolDefinition(name="read", parameters={"type": "object", "properties": {}}),)
)


@cache
def kinds() -> dict[str, list[Model]]:
    """Give one model for each combination of rules, dialect and thinking levels, by protocol."""
    found: dict[tuple[object, ...], Model] = {}
    for model in (*ALL_TARGETS, *packaged_catalogue().models):
        endpoint = resolve_endpoint(model)
        levels = tuple(sorted(model.thinking_levels.items()))
        key = (model.protocol, model.reasoning, repr(endpoint.rules), repr(endpoint.dialect), levels)
        found.setdefault(key, model)
    return {name: [model for model in found.values() if model.protocol == name] for name in PROTOCOLS}


def was_reported(request: Request, option: str) -> bool:
    return any(change.path == ("options", option) for change in request.report.changes)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_thinking_levels_give_two_requests_unless_a_change_is_reported(protocol):
    for model in kinds()[protocol]:
        unset = prepare(HELLO, model).content
        seen: dict[bytes, str] = {}
        for level in THINKING_LEVELS:
            request = prepare(HELLO, model, options=Options(thinking=level))
            if was_reported(request, "thinking") or (level == "off" and not model.reasoning):
                continue  # a model without reasoning needs no parameter to disable it
            assert request.content != unset, f"{model.full_name()}: {level} is not sent"
            other = seen.setdefault(request.content, level)
            assert other == level, f"{model.full_name()}: {level} is sent as {other}"


@pytest.mark.parametrize("budget", [1, 100, 600, 1024, 5000, 20_000, 30_000, 500_000])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_thinking_budget_is_sent_unchanged_unless_a_change_is_reported(protocol, budget):
    for model in kinds()[protocol]:
        request = prepare(HELLO, model, options=Options(thinking=budget))
        read = get_protocol(model.protocol).decode_request(request.body, resolve_endpoint(model)).options.thinking
        if not was_reported(request, "thinking"):
            assert read == budget, model.full_name()
        elif isinstance(kept := request.projection.options.thinking, int):
            assert read == kept, f"{model.full_name()}: the projection has {kept}"


IN_RANGE: Final = {
    "a limit": (HELLO, Options(max_tokens=2000)),
    "a small limit": (HELLO, Options(max_tokens=1)),
    "a huge limit": (HELLO, Options(max_tokens=10**8)),
    "a temperature": (HELLO, Options(temperature=0.5)),
    "a high temperature": (HELLO, Options(temperature=1.9)),
    "a top_p": (HELLO, Options(top_p=0.5)),
    "the highest top_p": (HELLO, Options(top_p=1.0)),
    "a stop": (HELLO, Options(stop=("a",))),
    "many stops": (HELLO, Options(stop=tuple("abcdefgh"))),
    "a seed": (HELLO, Options(seed=7)),
    "a tool by name": (WITH_TOOL, Options(tool_choice="read")),
    "any tool": (WITH_TOOL, Options(tool_choice="required")),
    "no tool": (WITH_TOOL, Options(tool_choice="none")),
    "one call at a time": (WITH_TOOL, Options(parallel_tool_calls=False)),
    "parallel calls": (WITH_TOOL, Options(parallel_tool_calls=True)),
    "a schema": (HELLO, Options(output_schema={"type": "object", "properties": {}, "additionalProperties": False})),
    "a user": (HELLO, Options(user_id="u")),
    "a session": (HELLO, Options(session_id="s" * 80)),
    "a stream": (HELLO, Options(stream=True)),
}


@pytest.mark.parametrize(("context", "options"), IN_RANGE.values(), ids=IN_RANGE.keys())
@pytest.mark.parametrize("step", tiers([8], [1]))
def test_an_option_is_sent_unchanged_unless_a_change_is_reported(context, options, step):
    (name,) = (field for field in options.__struct_fields__ if getattr(options, field) is not None)
    for protocol, models in kinds().items():
        codec = get_protocol(protocol)
        if name in codec.not_carried:
            continue  # the body does not hold it
        for model in models[::step]:
            endpoint = resolve_endpoint(model)
            if name == "session_id" and endpoint.dialect.session_header != "none":
                continue  # it is sent as a header
            request = prepare(context, model, options=options)
            given = getattr(codec.decode_request(request.body, endpoint).options, name)
            original, kept = getattr(options, name), getattr(request.projection.options, name)
            assert was_reported(request, name) == (kept != original), model.full_name()
            if kept is not None:
                assert given == kept, model.full_name()


OUT_OF_RANGE: Final = {
    "no tokens": Options(max_tokens=0),
    "a negative number of tokens": Options(max_tokens=-1),
    "more tokens than any model writes": Options(max_tokens=10**9),
    "a negative temperature": Options(temperature=-0.5),
    "a temperature that is too high": Options(temperature=9.0),
    "a top_p of zero": Options(top_p=0.0),
    "a negative top_p": Options(top_p=-1.0),
    "a top_p above one": Options(top_p=1.5),
    "an empty stop": Options(stop=("",)),
    "an empty stop among others": Options(stop=("", "end", "\n")),
    "more stops than any target accepts": Options(stop=tuple(f"stop {number}" for number in range(3000))),
    "a negative thinking budget": Options(thinking=-1),
    "a thinking budget that is too high": Options(thinking=10**9),
    "several at once": Options(max_tokens=-5, temperature=7.0, top_p=3.0, stop=("", " "), thinking=-9),
}


@pytest.mark.parametrize("options", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", tiers([8], [1]))
def test_a_value_out_of_range_is_clamped_or_removed_and_reported(protocol, options, step):
    models = kinds()[protocol]
    for model in models[list(OUT_OF_RANGE.values()).index(options) % step % len(models) :: step]:
        codec, endpoint = get_protocol(model.protocol), resolve_endpoint(model)
        request = prepare(HELLO, model, options=options)
        # Some models refuse every plain question, such as those that take only sound.
        assert codec.check(request.body, endpoint) == codec.check(prepare(HELLO, model).body, endpoint), (
            model.full_name()
        )
        kept = request.projection.options
        changed = {name for name in kept.__struct_fields__ if getattr(kept, name) != getattr(options, name)}
        assert changed == {change.path[1] for change in request.report.changes}, model.full_name()
        again = prepare(HELLO, model, options=kept)
        assert again.report.changes == (), model.full_name()
        assert kept.max_tokens is None or kept.max_tokens >= 0, model.full_name()
        assert kept.temperature is None or kept.temperature >= 0, model.full_name()
        assert kept.top_p is None or 0 <= kept.top_p <= 1, model.full_name()
        assert all(kept.stop or ()), model.full_name()


PLACED: Final = {
    "anthropic/claude-sonnet-4-5": {"top_k": 5},
    "google/gemini-2.5-flash": {"generationConfig": {"topK": 5}},
}


@pytest.mark.parametrize(("name", "fields"), PLACED.items())
def test_an_option_of_any_model_is_written_where_the_model_has_it(name, fields):
    model = packaged_catalogue().get(name)
    assert model is not None
    body = encode_request(Prompt(context=HELLO, options=Options(shared={"top_k": 5})), model=model)
    assert body == encode_request(HELLO, model=model) | fields
