"""Documented and observed refusals of Bedrock requests, each with its source beside it.

`check_turns` checks the messages; this file checks tools, settings, thinking, cache points and the body as a whole.
Real traffic outranks every document: what was answered is not a violation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, cast

from segue.errors import Path
from segue.models.model_ids import is_claude
from segue.protocols.bedrock_converse.cache import MARK
from segue.protocols.bedrock_converse.check_turns import Turns
from segue.protocols.bedrock_converse.limits import LIMITS
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.checking import check_base64, matches_alphabet, objects_of, run_checks
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.request_fields import RequestFields, check_part

_SAMPLING: Final[Mapping[str, str]] = {"temperature": "temperature", "topP": "top_p"}
"""Settings of the body -> the field of `Options` whose rule applies."""
_HISTORY: Final = ("toolUse", "toolResult")

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={"image": "image", "video": "video", "audio": "audio", "document": "document"},
        inner=(("content",), ("toolResult", "content")),
        tools=("toolConfig", "tools"),
        function=("toolSpec",),
        schema=("inputSchema", "json"),
    ),
    limits=LIMITS,
)


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    found = [*_check_system(body, endpoint), *_check_tools(body, endpoint)]
    found += [*_check_history(body, endpoint), *check_options(body, endpoint)]
    found += Turns(body, endpoint).check()
    found += check_base64(body.get("messages"), ("messages",), lambda block: ("bytes",) if "bytes" in block else ())
    found += _check_marks(body, endpoint)
    found += _check_passed_on(body, endpoint)
    return _FIELDS.add(found, body, endpoint)


def check_options(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Find the options that the model would refuse."""
    checks = (_check_limits, _check_choice, _check_thinking, _check_sampling, _check_refused)
    return run_checks(checks, body, endpoint)


def _check_limits(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = object_of(body.get("inferenceConfig"))
    most, limit = config.get("maxTokens"), endpoint.model.max_tokens
    path: Path = ("inferenceConfig", "maxTokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        # service model: a whole number from 1 on (botocore 1.44.0)
        yield Violation("max_tokens", path, "maxTokens has to be a whole number from 1 on; change it")
    elif isinstance(most, int) and 0 < limit < most:
        # "The maximum tokens you requested exceeds the model limit of 4096" (langchain-aws #192; AWS documentation)
        yield Violation(
            "max_tokens", path, f"{endpoint.model.id} writes at most {limit} tokens, not {most}; lower maxTokens"
        )
    stops = config.get("stopSequences")
    if isinstance(stops, list) and (
        len(cast("list[object]", stops)) > (endpoint.rules.max_stop or 2500) or "" in stops
    ):
        # service model: up to 2500, none of them empty
        yield Violation(
            "stop", ("inferenceConfig", "stopSequences"), "too many stop sequences, or an empty one; remove it"
        )


def _check_system(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if endpoint.rules.refused_text == "none":
        return
    for index, block in objects_of(body.get("system")):
        if "text" in block and not str(block["text"]).strip():
            # service model: at least one character; a blank text is refused as well (langchain-aws #192)
            yield Violation("blank_text", ("system", index), "the text is blank; remove it")


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config, rules = body.get("toolConfig"), endpoint.rules
    tools = object_of(config).get("tools")
    if isinstance(config, Mapping) and not tools:
        # service model: at least one tool
        yield Violation("no_tools", ("toolConfig", "tools"), "toolConfig has no tools; add one or remove it")
    seen: set[str] = set()
    for index, block in objects_of(tools):
        if "cachePoint" in block and not rules.tool_cache_marks:
            # "#/toolConfig/tools/0: extraneous key [cachePoint] is not permitted" (LibreChat #13838, 2026-06-18)
            where: Path = ("toolConfig", "tools", index, "cachePoint")
            yield Violation("cache_marks", where, "a cache point is refused among the tools; put it into the messages")
        if "toolSpec" not in block:
            continue
        spec, path = object_of(block["toolSpec"]), ("toolConfig", "tools", index, "toolSpec")
        name = text_of(spec.get("name"))
        alphabet = rules.tool_name_alphabet
        if name in seen:
            # "tools: Tool names must be unique." (LibreChat #13162, 2026-05-17)
            yield Violation("tool_name_taken", (*path, "name"), f"a second tool has the name {name!r}; rename it")
        if name is None or (alphabet and not matches_alphabet(name, alphabet, most=rules.tool_name_max)):
            # service model: ToolName
            yield Violation("tool_name", (*path, "name"), f"{name!r} is not a valid tool name; rename it")
        else:
            seen.add(name)
        if spec.get("description") == "":
            # service model: a description is not empty
            yield Violation("tool_description", (*path, "description"), "the description is empty; remove it")
        schema = object_of(spec.get("inputSchema")).get("json")
        if rules.schema_root_object and object_of(schema).get("type") != "object":
            # "inputSchema.json.type must be one of the following: object" (AWS documentation: tool use)
            place: Path = (*path, "inputSchema", "json")
            yield Violation("tool_schema", place, "the schema of a tool needs type object; add it")


def _check_history(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if "toolConfig" in body or not endpoint.rules.tools_with_history:
        return
    for index, turn in objects_of(body.get("messages")):
        for at, block in objects_of(turn.get("content")):
            if any(kind in block for kind in _HISTORY):
                # "The toolConfig field must be defined when using toolUse and toolResult content blocks."
                # (vercel/ai #7537, strands #998)
                path: Path = ("messages", index, "content", at)
                yield Violation("tools_missing", path, "tool blocks need a toolConfig; declare the tools")
                return


def _check_choice(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = object_of(body.get("toolConfig"))
    choice, path = object_of(config.get("toolChoice")), ("toolConfig", "toolChoice")
    forced = "any" in choice or "tool" in choice
    if forced and "required" not in endpoint.rules.tool_choices:
        # "This model doesn't support the toolConfig.toolChoice.any field" (langchain-aws #620)
        yield Violation("tool_choice", path, f"{endpoint.model.id} does not support a forced tool choice; use auto")
    names = [
        object_of(tool.get("toolSpec", tool.get("systemTool"))).get("name")
        for _, tool in objects_of(config.get("tools"))
    ]
    name = object_of(choice.get("tool")).get("name")
    if "tool" in choice and name not in names:
        # "Tool 'get_weather' not found in provided tools" (of Claude; found 2026-11-15)
        yield Violation(
            "tool_choice", (*path, "tool", "name"), f"there is no tool {name!r}; declare it or choose another"
        )
    if forced and _thinking_type(body) == "enabled" and not endpoint.rules.forced_choice_with_thinking:
        # "Thinking may not be enabled when tool_choice forces tool use." (Anthropic documentation: extended thinking)
        yield Violation("tool_choice_thinking", path, "a forced tool choice needs thinking off; change one of them")


# -- thinking and sampling ---------------------------------------------------------------------------------------------


def _thinking_type(body: Block) -> str | None:
    thinking = object_of(object_of(body.get("additionalModelRequestFields")).get("thinking"))
    return text_of(thinking.get("type"))


def _check_thinking(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    kind = _thinking_type(body)
    types = endpoint.rules.thinking_types
    if kind in ("adaptive", "enabled") and types is not None and kind not in types:
        # '"thinking.type.enabled" is not supported for this model.' (vscode #322706, 2026-06-24)
        where: Path = ("additionalModelRequestFields", "thinking", "type")
        yield Violation("thinking_type", where, f"{endpoint.model.id} does not support {kind!r}; use another type")
    if kind == "disabled" and "off" not in endpoint.rules.thinking_levels:
        # Refused by Fable, Mythos and the 5.5 generation (pydantic-ai 2.66.0, live)
        place: Path = ("additionalModelRequestFields", "thinking", "type")
        yield Violation("thinking_off", place, f"{endpoint.model.id} does not support thinking off; remove it")
    effort = object_of(object_of(body.get("additionalModelRequestFields")).get("output_config")).get("effort")
    # "This model does not support effort level 'xhigh'." (of Anthropic's own API: recorded traffic, 2026-11)
    path: Path = ("additionalModelRequestFields", "output_config", "effort")
    yield from check_effort(effort, path, endpoint, "effort")
    if kind != "enabled":
        return
    thinking = object_of(object_of(body["additionalModelRequestFields"])["thinking"])
    budget, most = thinking.get("budget_tokens"), object_of(body.get("inferenceConfig")).get("maxTokens")
    path = ("additionalModelRequestFields", "thinking", "budget_tokens")
    least = endpoint.rules.min_thinking_budget
    if not isinstance(budget, int) or budget < least:
        # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024" (anthropic 2.8.0)
        yield Violation("thinking_budget", path, f"the budget has to be at least {least}; raise it")
    elif isinstance(most, int) and budget >= most and "toolConfig" not in body:
        # "`max_tokens` must be greater than `thinking.budget_tokens`"; with tools it may span several rounds
        yield Violation("thinking_budget", path, "maxTokens has to exceed the budget; raise it")


def _check_sampling(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    given = {key: config[key] for key in _SAMPLING if config.get(key) is not None}
    is_thinking = _thinking_type(body) in ("enabled", "adaptive")
    for key, value in given.items():
        path: Path = ("inferenceConfig", key)
        if _SAMPLING[key] in rules.refused_options:
            # "`temperature` is deprecated for this model." (pi #7961)
            yield Violation("sampling", path, f"{endpoint.model.id} does not support {key}; remove it")
        elif is_thinking and _SAMPLING[key] in rules.refused_with_thinking and _conflicts_with_thinking(key, value):
            # "`temperature` may only be set to 1 when thinking is enabled"; top_p from 0.95 on
            # (Anthropic documentation: extended thinking, feature compatibility)
            yield Violation("sampling_thinking", path, f"{key} cannot be {value} with thinking; remove it")
        if isinstance(value, int | float) and not 0 <= value <= 1:
            # service model: from 0 to 1
            yield Violation("sampling_range", path, f"{key} has to be from 0 to 1; change it")
    if len(given) > 1 and all(name in rules.exclusive_options for name in _SAMPLING.values()):
        # "`temperature` and `top_p` cannot both be specified for this model" (litellm #15097, opencode #28930)
        yield Violation("sampling_both", ("inferenceConfig", "topP"), "temperature excludes topP; remove one of them")


def _check_refused(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """Find settings besides sampling that the model refuses."""
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    if config.get("stopSequences") and "stop" in rules.refused_options:
        # "This model doesn't support the stopSequences field." (of GPT-5.6: vercel/ai 1a1e246)
        message = f"{endpoint.model.id} does not support stopSequences; remove them"
        yield Violation("stop", ("inferenceConfig", "stopSequences"), message)
    nova = object_of(object_of(body.get("additionalModelRequestFields")).get("reasoningConfig"))
    if nova.get("type") == "enabled" and nova.get("maxReasoningEffort") == "high":
        for key in ("maxTokens", *_SAMPLING):
            if config.get(key) is not None:
                # "`maxTokens` must be unset when reasoningConfig type is 'enabled' and maxReasoningEffort is 'high'."
                # (Nova 2: vercel/ai 833e611; inspect_ai #3767)
                message = f"{key} may not be set with the highest effort; remove it"
                yield Violation("effort_alone", ("inferenceConfig", key), message)


def _check_passed_on(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """Compare what is passed on to a model with the fields of its own API, of which the rest is in the body.

    "The model returned the following errors: reasoning: Extra inputs are not permitted" (litellm #13609 of 2025-08-14;
    `guardrails`: #13825); "thinking: unknown field thinking, expected one of messages, model, ..." (gpt-oss: litellm
    #13959, 2025-08-26).
    """
    key = "additionalModelRequestFields"
    of_claude, fields = is_claude(endpoint.model.id), object_of(body.get(key))
    if of_claude or "openai.gpt-oss" in endpoint.model.id:
        wire = "anthropic-messages" if of_claude else "openai-chat"
        for one in check_part(fields, wire, endpoint, (key,)):
            if one.code != "field_missing" or len(one.path) > len((key, "messages")):
                yield one
    if of_claude and fields.get("top_k") is not None and "temperature" in endpoint.rules.refused_options:
        # "`top_k` is deprecated for this model." (as `temperature`: pi #7961)
        yield Violation("sampling", (key, "top_k"), f"{endpoint.model.id} does not support top_k; remove it")


def _conflicts_with_thinking(key: str, value: object) -> bool:
    if not isinstance(value, int | float):
        return False
    return value != 1 if key == "temperature" else not 0.95 <= value <= 1


# -- cache points ------------------------------------------------------------------------------------------------------


def _check_marks(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    marks = [(path, object_of(block[MARK])) for path, block in _blocks(body) if MARK in block]
    most = endpoint.rules.cache_marks
    if marks and not most:
        # "You invoked an unsupported model or your request did not allow prompt caching." (of Kimi, GLM, Nemotron and
        # the first Claude 3: reported 403s and 400s, 2026)
        message = f"{endpoint.model.id} does not support cache points; remove them"
        yield Violation("cache_marks", marks[0][0], message)
    elif len(marks) > most:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5." (AWS documentation: four checkpoints)
        message = f"{len(marks)} cache points are more than {most}; remove the oldest"
        yield Violation("cache_marks", marks[most][0], message)
    for path in _behind_reasoning(body):
        # "Cache point cannot be inserted after reasoning block" (opencode #36517, strands #1820, langchain-aws #1290)
        yield Violation(
            "cache_mark_thinking", path, "a cache point cannot follow reasoning; put it behind other content"
        )
    short = False
    for path, mark in marks:
        if path[-1] == 0:
            # Nothing stands before it that could be cached (AWS documentation: prompt caching)
            yield Violation("cache_mark_first", path, "a cache point has to follow what it caches; move it")
        if mark.get("ttl") != "1h":
            short = True
        elif short and endpoint.rules.cache_marks_longest_first:
            # A longer ttl may not follow a shorter one; order: tools, system, messages (headroom #2939)
            yield Violation("cache_mark_order", path, "a ttl of 1h follows a shorter one; reorder them")


def _behind_reasoning(body: Block) -> Iterator[Path]:
    """Give the cache points that directly follow reasoning."""
    for turn_index, turn in objects_of(body.get("messages")):
        for (_, before), (index, block) in pairwise(objects_of(turn.get("content"))):
            if MARK in block and "reasoningContent" in before:
                yield ("messages", turn_index, "content", index)


def _blocks(body: Block) -> Iterator[tuple[Path, Block]]:
    """Give every block that may be a cache point, in prompt order."""
    for index, block in objects_of(object_of(body.get("toolConfig")).get("tools")):
        yield ("toolConfig", "tools", index), block
    for index, block in objects_of(body.get("system")):
        yield ("system", index), block
    for turn_index, turn in objects_of(body.get("messages")):
        for index, block in objects_of(turn.get("content")):
            yield ("messages", turn_index, "content", index), block
