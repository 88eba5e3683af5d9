"""Would Anthropic accept this body? The settings and tools; `check_turns` looks at the messages.

Every rule quotes the refusal and says where it was seen; the threads were read on 2026-11-15. What recorded traffic
contradicts is not here: a first turn of the assistant's, an id used again in a later turn, several turns of one role, a
forced tool beside adaptive thinking, instructions in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.protocols.anthropic_messages.check_turns import Turns, kind_of
from segue.protocols.anthropic_messages.options import LEAST_BUDGET, NOT_EVERYWHERE
from segue.protocols.kit.checking import check_json, matches_alphabet, objects_of
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.ranges import check_range, check_stops
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.retired_format import object_of

_EFFORTS: Final = frozenset({"low", "medium", "high", "xhigh", "max"})  # anthropic 2.8.0
_FORCED: Final = frozenset({"any", "tool"})
_SAMPLING: Final[Mapping[str, str]] = {"temperature": "temperature", "top_p": "top_p", "top_k": "temperature"}
"""Settings of the body -> the field of `Options` whose rule they follow; `top_k` went when `temperature` did."""


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    found = [*check_json(body), *_check_limits(body, endpoint), *_check_tools(body, endpoint)]
    found += [*_check_choice(body, endpoint), *_check_thinking(body, endpoint), *_check_sampling(body, endpoint)]
    found += _check_system(body, endpoint)
    found += Turns(body, endpoint).check()
    return [*found, *_check_marks(body, endpoint)]


def _check_limits(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    # "max_tokens: Field required" (anthropic 2.8.0); 0 only warms the cache
    most = body.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        yield Violation(code="max_tokens", path=("max_tokens",), message="max_tokens is required: a number of tokens")
    elif 0 < endpoint.model.max_tokens < most:
        # "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens" (SDK users' tests of many
        # projects quote it; Anthropic documentation: models overview)
        message = f"max_tokens: {most} > {endpoint.model.max_tokens}, the most that {endpoint.model.id} can write"
        yield Violation(code="max_tokens", path=("max_tokens",), message=message)


def _check_system(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    # Refused with "system: text content blocks must be non-empty" (litellm, read 2026-11)
    if endpoint.rules.refused_text == "none":
        return
    for index, block in objects_of(body.get("system")):
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            yield Violation(code="blank_text", path=("system", index), message="a text block has to be non-empty")


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    rules = endpoint.rules
    seen: set[str] = set()
    for index, tool in objects_of(body.get("tools")):
        path: Path = ("tools", index)
        name = tool.get("name")
        if isinstance(name, str) and name in seen:
            # "tools: Tool names must be unique." (LibreChat #13162, 2026-05-17)
            yield Violation(code="tool_name_taken", path=(*path, "name"), message=f"two tools are called {name!r}")
        if isinstance(name, str):
            seen.add(name)
        if tool.get("type") not in (None, "custom") or not ("name" in tool or "input_schema" in tool):
            continue
        # "tools.7.custom.name: String should match pattern" (tester-mcp-client #11)
        if not isinstance(name, str) or (
            rules.tool_name_alphabet and not matches_alphabet(name, rules.tool_name_alphabet, most=rules.tool_name_max)
        ):
            yield Violation(code="tool_name", path=(*path, "name"), message=f"{name!r} is no name for a tool")
        yield from _check_schema(tool, path, endpoint)


def _check_schema(tool: Mapping[str, object], path: Path, endpoint: Endpoint) -> Iterator[Violation]:
    schema, place = tool.get("input_schema"), (*path, "input_schema")
    if not isinstance(schema, Mapping):
        # "tools.0.custom.input_schema: Field required" (anthropic 2.8.0)
        yield Violation(code="tool_schema", path=place, message="a tool has to have a schema")
        return
    given = cast("Mapping[str, object]", schema)
    if endpoint.rules.schema_root_object and given.get("type") != "object":
        # "tools.0.custom.input_schema.type: Field required" / "Input should be 'object'" (anthropic 2.8.0)
        yield Violation(code="tool_schema", path=(*place, "type"), message="a tool's schema has to be of type object")
    for key in sorted(endpoint.rules.schema_root_refused & given.keys()):
        # "input_schema does not support oneOf, allOf, or anyOf at the top level" (Codewhale #4329)
        yield Violation(code="tool_schema", path=(*place, key), message=f"{key} may not stand at the top of a schema")


def _check_choice(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    choice = object_of(body.get("tool_choice"))
    if not choice:
        return
    names = [tool.get("name") for _, tool in objects_of(body.get("tools"))]
    path: Path = ("tool_choice",)
    if choice.get("type") == "any" and not body.get("tools") and not body.get("mcp_servers"):
        # Refused: "tool_choice.any may only be specified while providing tools"; `auto` and `none` without tools are
        # answered (a probe published by an agent's author; found 2026-11-15)
        yield Violation(code="tool_choice", path=path, message="a choice of tools needs tools to choose from")
    elif choice.get("type") == "tool" and choice.get("name") not in names and not body.get("mcp_servers"):
        # Refused: "Tool 'get_weather' not found in provided tools" (the same)
        yield Violation(code="tool_choice", path=(*path, "name"), message=f"there is no tool {choice.get('name')!r}")
    if kind_of(choice) in _FORCED and "required" not in endpoint.rules.tool_choices:
        # 'tool_choice: type "tool" and "any" are not supported for this model.' (vercel/ai #21364, oh-my-pi #12939)
        yield Violation(code="tool_choice", path=path, message=f"{endpoint.model.id} cannot be made to call")
    thinks = object_of(body.get("thinking")).get("type") == "enabled"
    if thinks and kind_of(choice) in _FORCED and not endpoint.rules.forced_choice_with_thinking:
        # "Thinking may not be enabled when tool_choice forces tool use." (documentation: extended thinking)
        yield Violation(code="tool_choice_thinking", path=path, message="no tool can be forced while the model thinks")


# -- thinking and sampling ---------------------------------------------------------------------------------------------


def _check_thinking(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    thinking = object_of(body.get("thinking"))
    if thinking.get("type") == "enabled":
        budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
        path: Path = ("thinking", "budget_tokens")
        # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024" (anthropic 2.8.0)
        if not isinstance(budget, int) or budget < LEAST_BUDGET:
            if endpoint.rules.reasoning_replay == "signed":  # other vendors of the wire take it without
                yield Violation(
                    code="thinking_budget", path=path, message=f"a budget is at least {LEAST_BUDGET} tokens"
                )
        elif isinstance(most, int) and budget >= most and not body.get("tools"):
            # "`max_tokens` must be greater than `thinking.budget_tokens`"; with tools the budget may span several
            # rounds of interleaved thinking (documentation: extended thinking)
            yield Violation(code="thinking_budget", path=path, message="max_tokens has to be greater than the budget")
    elif thinking.get("type") == "disabled" and "off" not in endpoint.rules.thinking_levels:
        # Refused by Fable, Mythos and the 5.5 generation (pydantic-ai 2.66.0, live)
        yield Violation(code="thinking_off", path=("thinking", "type"), message=f"{endpoint.model.id} always thinks")
    given = object_of(body.get("output_config")).get("effort")
    effort, levels = text_of(given), endpoint.model.thinking_levels.values()
    refused = effort in NOT_EVERYWHERE and endpoint.model.reasoning and effort not in levels
    if given is not None and (effort not in _EFFORTS or refused):
        # "This model does not support effort level 'xhigh'. Supported levels: ..." (recorded traffic, 2026-11)
        message = f"{endpoint.model.id} does not support effort level {given!r}"
        yield Violation(code="effort", path=("output_config", "effort"), message=message)


def _check_sampling(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    rules = endpoint.rules
    thinks = object_of(body.get("thinking")).get("type") in ("enabled", "adaptive")
    given = {key: body[key] for key in _SAMPLING if body.get(key) is not None}
    for key, value in given.items():
        if _SAMPLING[key] in rules.refused_options:
            # "`temperature` is deprecated for this model." (pi #7961)
            yield Violation(code="sampling", path=(key,), message=f"{endpoint.model.id} does not take {key}")
        elif thinks and "temperature" in rules.refused_with_thinking and _conflicts_with_thinking(key, value):
            # "`temperature` may only be set to 1 when thinking is enabled"; top_p from 0.95 on; no top_k
            # (documentation: extended thinking, feature compatibility)
            yield Violation(code="sampling_thinking", path=(key,), message=f"{key} cannot be {value} while thinking")
    exclusive = [key for key in given if key in rules.exclusive_options]
    if len(exclusive) > 1:
        # "`temperature` and `top_p` cannot both be specified for this model" (litellm #15097, opencode #28930)
        yield Violation(code="sampling_both", path=(exclusive[1],), message=f"only one of {' and '.join(exclusive)}")
    heat = given.get("temperature")
    if isinstance(heat, int | float) and rules.max_temperature and not 0 <= heat <= rules.max_temperature:
        # "temperature: Input should be less than or equal to 1" (documentation: messages)
        message = f"temperature is between 0 and {rules.max_temperature:g}"
        yield Violation(code="temperature", path=("temperature",), message=message)
    yield from check_range("top_p", given.get("top_p"), ("top_p",), rules)  # documentation: messages
    # "stop_sequences: each stop sequence must contain non-whitespace" (litellm #3286)
    yield from check_stops(body.get("stop_sequences"), ("stop_sequences",), rules)


def _conflicts_with_thinking(key: str, value: object) -> bool:
    if not isinstance(value, int | float):
        return False
    return {"temperature": value != 1, "top_p": not 0.95 <= value <= 1, "top_k": True}[key]


# -- cache marks -------------------------------------------------------------------------------------------------------


def _check_marks(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    key, most = endpoint.rules.cache_mark_key, endpoint.rules.cache_marks
    if key is None:
        return
    marks = [
        (path, block, object_of(block[key])) for path, block in _blocks(body) if isinstance(block.get(key), Mapping)
    ]
    if most and len(marks) > most:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5." (sub2api #176)
        message = f"a maximum of {most} blocks with {key} may be provided, found {len(marks)}"
        yield Violation(code="cache_marks", path=(*marks[most][0], key), message=message)
    short = False
    for path, block, mark in marks:
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            # "cache_control cannot be set for empty text blocks" (claude-code #55302, vercel/eve #2753)
            yield Violation(code="cache_mark_blank", path=(*path, key), message="an empty text cannot be cached")
        if mark.get("ttl") != "1h":
            short = True
        elif short:
            # A mark for an hour must not come after one for five minutes; tools, system, messages (headroom #2939)
            yield Violation(
                code="cache_mark_order", path=(*path, key), message="a longer ttl comes before a shorter one"
            )


def _blocks(body: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Give every block that may carry a mark, in the order in which the prompt is read."""
    for root in ("tools", "system"):
        for index, block in objects_of(body.get(root)):
            yield (root, index), block
    for turn_index, turn in objects_of(body.get("messages")):
        for index, block in objects_of(turn.get("content")):
            path: Path = ("messages", turn_index, "content", index)
            for inner_index, inner in objects_of(block.get("content")):
                yield (*path, "content", inner_index), inner
            yield path, block
