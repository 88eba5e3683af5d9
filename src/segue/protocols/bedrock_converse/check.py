"""Would Bedrock accept this body? Documented and observed refusals, each with its source beside it.

Messages are judged in `check_turns`; here are tools, settings, thinking, cache points and the body as a whole. Real
traffic outranks every document: what was answered is no violation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.protocols.bedrock_converse.cache import MARK
from segue.protocols.bedrock_converse.check_turns import Turns
from segue.protocols.bedrock_converse.thinking import LEAST_BUDGET
from segue.protocols.kit.checking import check_json, is_spelt, objects_of
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.verbatim import Block, object_of

_SAMPLING: Final[Mapping[str, str]] = {"temperature": "temperature", "topP": "top_p"}
"""Settings of the body -> the field of `Options` whose rule they follow."""
_HISTORY: Final = ("toolUse", "toolResult")


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    found = [*check_json(body), *_check_limits(body, endpoint), *_check_system(body, endpoint)]
    found += [*_check_tools(body, endpoint), *_check_history(body, endpoint), *_check_choice(body, endpoint)]
    found += [*_check_thinking(body, endpoint), *_check_sampling(body, endpoint), *_check_refused(body, endpoint)]
    found += Turns(body, endpoint).check()
    return [*found, *_check_marks(body, endpoint)]


def _check_limits(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = object_of(body.get("inferenceConfig"))
    most, limit = config.get("maxTokens"), endpoint.model.max_tokens
    path: Path = ("inferenceConfig", "maxTokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        # service model: a whole number from 1 on (botocore 1.44.0)
        yield Violation(code="max_tokens", path=path, message="maxTokens is a number of tokens")
    elif isinstance(most, int) and 0 < limit < most:
        # "The maximum tokens you requested exceeds the model limit of 4096" (langchain-aws #192; AWS documentation)
        yield Violation(
            code="max_tokens", path=path, message=f"{most} > {limit}, the most {endpoint.model.id} can write"
        )
    stops = config.get("stopSequences")
    if isinstance(stops, list) and (
        len(cast("list[object]", stops)) > (endpoint.rules.max_stop or 2500) or "" in stops
    ):
        # service model: up to 2500, none of them empty
        yield Violation(code="stop", path=("inferenceConfig", "stopSequences"), message="too many, or an empty one")


def _check_system(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if endpoint.rules.refused_text == "none":
        return
    for index, block in objects_of(body.get("system")):
        if "text" in block and not str(block["text"]).strip():
            # service model: at least one character; blank is refused alike (langchain-aws #192)
            yield Violation(code="blank_text", path=("system", index), message="a text has to be non-empty")


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config, rules = body.get("toolConfig"), endpoint.rules
    tools = object_of(config).get("tools")
    if isinstance(config, Mapping) and not tools:
        # service model: at least one tool
        yield Violation(code="no_tools", path=("toolConfig", "tools"), message="toolConfig needs at least one tool")
    seen: set[str] = set()
    for index, block in objects_of(tools):
        if "toolSpec" not in block:
            continue
        spec, path = object_of(block["toolSpec"]), ("toolConfig", "tools", index, "toolSpec")
        name = text_of(spec.get("name"))
        alphabet = rules.tool_name_alphabet
        if name in seen:
            # "tools: Tool names must be unique." (LibreChat #13162, 2026-05-17)
            yield Violation(code="tool_name_taken", path=(*path, "name"), message=f"two tools are called {name!r}")
        if name is None or (alphabet and not matches_alphabet(name, alphabet, most=rules.tool_name_max)):
            # service model: ToolName
            yield Violation(code="tool_name", path=(*path, "name"), message=f"{name!r} is no name for a tool")
        else:
            seen.add(name)
        if spec.get("description") == "":
            # service model: a description is not empty
            yield Violation(code="tool_description", path=(*path, "description"), message="a description is not empty")
        schema = object_of(spec.get("inputSchema")).get("json")
        if rules.schema_root_object and object_of(schema).get("type") != "object":
            # "inputSchema.json.type must be one of the following: object" (AWS documentation: tool use)
            place: Path = (*path, "inputSchema", "json")
            yield Violation(code="tool_schema", path=place, message="a tool's schema has to be of type object")


def _check_history(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if "toolConfig" in body or not endpoint.rules.tools_with_history:
        return
    for index, turn in objects_of(body.get("messages")):
        for at, block in objects_of(turn.get("content")):
            if any(kind in block for kind in _HISTORY):
                # "The toolConfig field must be defined when using toolUse and toolResult content blocks."
                # (vercel/ai #7537, strands #998)
                path: Path = ("messages", index, "content", at)
                yield Violation(
                    code="tools_missing", path=path, message="toolConfig must be defined beside tool blocks"
                )
                return


def _check_choice(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = object_of(body.get("toolConfig"))
    choice, path = object_of(config.get("toolChoice")), ("toolConfig", "toolChoice")
    forced = "any" in choice or "tool" in choice
    if forced and "required" not in endpoint.rules.tool_choices:
        # "This model doesn't support the toolConfig.toolChoice.any field" (langchain-aws #620)
        yield Violation(code="tool_choice", path=path, message=f"{endpoint.model.id} cannot be made to call")
    names = [
        object_of(tool.get("toolSpec", tool.get("systemTool"))).get("name")
        for _, tool in objects_of(config.get("tools"))
    ]
    name = object_of(choice.get("tool")).get("name")
    if "tool" in choice and name not in names:
        # "Tool 'get_weather' not found in provided tools" (of Claude; found 2026-11-15)
        yield Violation(code="tool_choice", path=(*path, "tool", "name"), message=f"there is no tool {name!r}")
    if forced and _thinks(body) == "enabled" and not endpoint.rules.forced_choice_with_thinking:
        # "Thinking may not be enabled when tool_choice forces tool use." (Anthropic documentation: extended thinking)
        yield Violation(code="tool_choice_thinking", path=path, message="no tool can be forced while the model thinks")


# -- thinking and sampling ---------------------------------------------------------------------------------------------


def _thinks(body: Block) -> str | None:
    thinking = object_of(object_of(body.get("additionalModelRequestFields")).get("thinking"))
    return text_of(thinking.get("type"))


def _check_thinking(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    kind = _thinks(body)
    if kind == "disabled" and "off" not in endpoint.rules.thinking_levels:
        # Refused by Fable, Mythos and the 5.5 generation (pydantic-ai 2.66.0, live)
        path: Path = ("additionalModelRequestFields", "thinking", "type")
        yield Violation(code="thinking_off", path=path, message=f"{endpoint.model.id} always thinks")
    if kind != "enabled":
        return
    thinking = object_of(object_of(body["additionalModelRequestFields"])["thinking"])
    budget, most = thinking.get("budget_tokens"), object_of(body.get("inferenceConfig")).get("maxTokens")
    path = ("additionalModelRequestFields", "thinking", "budget_tokens")
    if not isinstance(budget, int) or budget < LEAST_BUDGET:
        # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024" (anthropic 2.8.0)
        yield Violation(code="thinking_budget", path=path, message=f"a budget is at least {LEAST_BUDGET} tokens")
    elif isinstance(most, int) and budget >= most and "toolConfig" not in body:
        # "`max_tokens` must be greater than `thinking.budget_tokens`"; with tools it may span several rounds
        yield Violation(code="thinking_budget", path=path, message="maxTokens has to be greater than the budget")


def _check_sampling(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    given = {key: config[key] for key in _SAMPLING if config.get(key) is not None}
    thinks = _thinks(body) in ("enabled", "adaptive")
    for key, value in given.items():
        path: Path = ("inferenceConfig", key)
        if _SAMPLING[key] in rules.refused_options:
            # "`temperature` is deprecated for this model." (pi #7961)
            yield Violation(code="sampling", path=path, message=f"{endpoint.model.id} does not take {key}")
        elif thinks and _SAMPLING[key] in rules.refused_with_thinking and _conflicts_with_thinking(key, value):
            # "`temperature` may only be set to 1 when thinking is enabled"; top_p from 0.95 on
            # (Anthropic documentation: extended thinking, feature compatibility)
            yield Violation(code="sampling_thinking", path=path, message=f"{key} cannot be {value} while thinking")
        if isinstance(value, int | float) and not 0 <= value <= 1:
            # service model: from 0 to 1
            yield Violation(code="sampling_range", path=path, message=f"{key} is between 0 and 1")
    if len(given) > 1 and all(name in rules.exclusive_options for name in _SAMPLING.values()):
        # "`temperature` and `top_p` cannot both be specified for this model" (litellm #15097, opencode #28930)
        yield Violation(
            code="sampling_both", path=("inferenceConfig", "topP"), message="only one of temperature and topP"
        )


def _check_refused(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """What is set beside the sampling, where the model does not take it."""
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    if config.get("stopSequences") and "stop" in rules.refused_options:
        # "This model doesn't support the stopSequences field." (of GPT-5.6: vercel/ai 1a1e246)
        message = f"{endpoint.model.id} does not take stopSequences"
        yield Violation(code="stop", path=("inferenceConfig", "stopSequences"), message=message)
    asked = object_of(object_of(body.get("additionalModelRequestFields")).get("reasoningConfig"))
    if asked.get("type") == "enabled" and asked.get("maxReasoningEffort") == "high":
        for key in ("maxTokens", *_SAMPLING):
            if config.get(key) is not None:
                # "`maxTokens` must be unset when reasoningConfig type is 'enabled' and maxReasoningEffort is 'high'."
                # (Nova 2: vercel/ai 833e611; inspect_ai #3767)
                message = f"{key} may not be set beside the highest effort"
                yield Violation(code="effort_alone", path=("inferenceConfig", key), message=message)


def _conflicts_with_thinking(key: str, value: object) -> bool:
    if not isinstance(value, int | float):
        return False
    return value != 1 if key == "temperature" else not 0.95 <= value <= 1


# -- cache points ------------------------------------------------------------------------------------------------------


def _check_marks(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    marks = [(path, object_of(block[MARK])) for path, block in _blocks(body) if MARK in block]
    most = endpoint.rules.cache_marks
    if most and len(marks) > most:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5." (AWS documentation: four checkpoints)
        message = f"a maximum of {most} cache points may be provided, found {len(marks)}"
        yield Violation(code="cache_marks", path=marks[most][0], message=message)
    short = False
    for path, mark in marks:
        if path[-1] == 0:
            # There is nothing before it to cache (AWS documentation: prompt caching)
            yield Violation(code="cache_mark_first", path=path, message="a cache point follows what it caches")
        if mark.get("ttl") != "1h":
            short = True
        elif short:
            # A longer time must not come after a shorter one; tools, system, messages (headroom #2939)
            yield Violation(code="cache_mark_order", path=path, message="a longer ttl comes before a shorter one")


def _blocks(body: Block) -> Iterator[tuple[Path, Block]]:
    """Give every block that may be a cache point, in the order in which the prompt is read."""
    for index, block in objects_of(object_of(body.get("toolConfig")).get("tools")):
        yield ("toolConfig", "tools", index), block
    for index, block in objects_of(body.get("system")):
        yield ("system", index), block
    for turn_index, turn in objects_of(body.get("messages")):
        for index, block in objects_of(turn.get("content")):
            yield ("messages", turn_index, "content", index), block
