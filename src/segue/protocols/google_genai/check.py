"""Checks whether Google would accept a body: options and tools. `check_turns` checks the contents.

Every rule quotes the refusal and its source; the threads were read on 2026-11-15. No rule forbids what recorded traffic
shows to be accepted: keys under both names, contents of one role side by side, ids on calls of models that give
none, an empty response, missing signatures in finished turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.foundation.plurals import counted
from segue.models.model_ids import GEMINI_1_AND_2, GEMINI_3_ON, GEMINI_ALWAYS_THINKS
from segue.models.rules import Rules
from segue.protocols.google_genai.check_server_tools import check_server_tools
from segue.protocols.google_genai.check_turns import check_turns, objects_of
from segue.protocols.google_genai.keys import read_keys, texts_of
from segue.protocols.google_genai.limits import LIMITS
from segue.protocols.google_genai.options import mode_of
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.checking import name_pattern
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.ranges import check_range, check_seed
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.kit.schemas import find_faults

_BUDGET_ONLY: Final = re.compile(GEMINI_1_AND_2)
_ALWAYS_THINKS: Final = re.compile(GEMINI_ALWAYS_THINKS)
_COMBINES_TOOLS: Final = re.compile(GEMINI_3_ON)
_NAMING_MODES: Final = frozenset({"ANY", "VALIDATED"})


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        turns="contents",
        output=(("generationConfig", "responseSchema"),),
        limits=(("generationConfig", "maxOutputTokens"),),
    ),
    limits=LIMITS,
    rename=_camel,
    loose=True,
)


def check(body: Block, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    wire = read_keys(body)
    generation = read_keys(object_of(wire.get("generationConfig")))
    found = [*check_turns(wire, endpoint), *_check_tools(wire, endpoint.rules)]
    found += [*_check_choice(wire, endpoint), *_check_cache(wire), *_check_thinking(generation, endpoint)]
    found += _check_json_beside_tools(wire, generation, endpoint.rules)
    found += check_server_tools(wire, endpoint.rules)
    found += _check_generation(generation, endpoint.rules)
    return _FIELDS.add(found, body, endpoint)


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(wire: Block, rules: Rules) -> Iterator[Violation]:
    seen: set[str] = set()
    name_of_tool = name_pattern(rules.tool_name_first, rules.tool_name_alphabet, rules.tool_name_max)
    count = 0
    for at, tool in objects_of(wire.get("tools")):
        for index, raw in objects_of(read_keys(tool).get("functionDeclarations")):
            count += 1
            path: Path = ("tools", at, "functionDeclarations", index)
            function = read_keys(raw)
            name = function.get("name")
            if not isinstance(name, str) or not name_of_tool.fullmatch(name):
                # "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain
                # underscores (_), dots (.), colons (:), or dashes (-)" (ccs #25 and #219, gemini-cli #7869)
                yield Violation("tool_name", (*path, "name"), f"{name!r} is not a valid tool name; rename it")
            elif name in seen:
                # "Duplicate function declaration found: x" (rikkahub #1311, threads-mcp #1)
                yield Violation("tool_name_taken", (*path, "name"), f"two tools have the name {name!r}; rename one")
            else:
                seen.add(name)
            yield from _check_schema(function, path, rules)
    if rules.max_tools and count > rules.max_tools:
        # "Maximum 512 function declarations can be provided." (google-genai 3.1.0)
        message = f"{counted(count, 'tool is', 'tools are')} declared, the limit is {rules.max_tools}; remove some"
        yield Violation("too_many_tools", ("tools",), message)


def _check_schema(function: Block, path: Path, rules: Rules) -> Iterator[Violation]:
    keys = [key for key in ("parameters", "parametersJsonSchema") if function.get(key) is not None]
    if len(keys) > 1:
        # "This field is mutually exclusive with `parameters`." (google-genai 3.1.0)
        yield Violation("tool_schema", (*path, keys[1]), "a tool has two schemas; remove one of them")
    for key in keys:
        root = object_of(function[key])
        kind = text_of(root.get("type")) or ("union" if "anyOf" in root else "object")
        if kind.lower() != "object":
            # "parameters schema should be of type OBJECT" (Vertex: OmniRoute #3360; litellm #41639 for a union)
            message = "the schema of a tool is not of type object; put it into an object"
            yield Violation("tool_schema", (*path, key, "type"), message)
    for fault in find_faults(object_of(function.get("parameters")), rules, strict=False):
        yield Violation(fault.code, (*path, "parameters", *fault.path), fault.message)


def _check_choice(wire: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = read_keys(object_of(wire.get("toolConfig")))
    calling = read_keys(object_of(config.get("functionCallingConfig")))
    mode = mode_of(calling.get("mode"))
    if texts_of(calling.get("allowedFunctionNames")) and mode not in _NAMING_MODES:
        # "Only set when the Mode is ANY."; VALIDATED accepts them too (google-genai 3.1.0)
        path: Path = ("toolConfig", "functionCallingConfig", "allowedFunctionNames")
        message = "function names need the mode ANY or VALIDATED; change the mode or remove the names"
        yield Violation("tool_choice", path, message)
    tools = [read_keys(tool) for _, tool in objects_of(wire.get("tools"))]
    has_functions = any(tool.get("functionDeclarations") for tool in tools)
    if mode and not has_functions and not (tools and _COMBINES_TOOLS.search(endpoint.model.id)):
        # "Function calling config is set without function_declarations." (kelivo #317); Gemini 3 accepts it beside
        # Google Search alone (recorded 200)
        message = "a function calling mode is set without functions; remove it or declare functions"
        yield Violation("tool_choice", ("toolConfig", "functionCallingConfig"), message)


def _check_cache(wire: Block) -> Iterator[Violation]:
    if not wire.get("cachedContent"):
        return
    for key in ("systemInstruction", "tools", "toolConfig"):
        if wire.get(key):
            # "CachedContent can not be used with GenerateContent request setting system_instruction, tools or
            # tool_config." (litellm #17304, langchain-google #978, vercel/ai #3333)
            message = f"{key} is refused beside `cachedContent`; move it into the cached content"
            yield Violation("cached_content", (key,), message)


# -- settings ----------------------------------------------------------------------------------------------------------


def _check_thinking(generation: Block, endpoint: Endpoint) -> Iterator[Violation]:
    thinking = read_keys(object_of(generation.get("thinkingConfig")))
    budget, level = thinking.get("thinkingBudget"), thinking.get("thinkingLevel")
    path: Path = ("generationConfig", "thinkingConfig")
    if budget is not None and level is not None:
        # "You can only set only one of thinking budget and thinking level." (quoted by many clients, found 2026-11-15)
        message = "a thinking budget and a thinking level are set; remove one of them"
        yield Violation("thinking_both", (*path, "thinkingBudget"), message)
    if isinstance(level, str) and endpoint.model.thinking_levels.get(level.lower(), "") is None:
        # "Thinking level MINIMAL is not supported for this model." (vellum-assistant #32687)
        message = f"{endpoint.model.id} does not support the thinking level {level}; choose another level"
        yield Violation("thinking_level", (*path, "thinkingLevel"), message)
    elif isinstance(level, str):
        yield from check_effort(level.lower(), (*path, "thinkingLevel"), endpoint, "thinking_level")
    if level is not None and _BUDGET_ONLY.search(endpoint.model.id):
        # "Thinking level is not supported for this model." (Roo-Code #10700)
        message = f"{endpoint.model.id} does not support thinking levels; set `thinkingBudget`"
        yield Violation("thinking_level", (*path, "thinkingLevel"), message)
    if budget == 0 and budget is not False and _ALWAYS_THINKS.search(endpoint.model.id):
        # "Budget 0 is invalid. This model only works in thinking mode." (gemini-balance #206, docker-agent #2051,
        # python-genai #2936)
        message = f"{endpoint.model.id} cannot turn thinking off; set a budget above 0"
        yield Violation("thinking_budget", (*path, "thinkingBudget"), message)
    least, most = endpoint.rules.min_thinking_budget, endpoint.rules.max_thinking_budget
    if isinstance(budget, int) and budget > 0 and not least <= budget <= (most or budget):
        # "The thinking budget (52428) is invalid." (Roo-Code #4399)
        message = f"the thinking budget is not between {least} and {most} tokens; change it"
        yield Violation("thinking_budget", (*path, "thinkingBudget"), message)


def _check_generation(generation: Block, rules: Rules) -> Iterator[Violation]:
    root = "generationConfig"
    temperature, most, stops = (generation.get(key) for key in ("temperature", "maxOutputTokens", "stopSequences"))
    if (
        _is_number(temperature)
        and rules.max_temperature
        and not 0 <= cast("float", temperature) <= rules.max_temperature
    ):
        # "temperature must be in the range [0.0, 2.0]." (google-genai 3.1.0)
        message = f"temperature is not between 0 and {rules.max_temperature:g}; change it"
        yield Violation("temperature", (root, "temperature"), message)
    yield from check_range("top_p", generation.get("topP"), (root, "topP"), rules)  # Google documentation
    yield from check_seed(generation.get("seed"), (root, "seed"), rules)
    if _is_number(most) and cast("float", most) < 1:
        # "the supported range is from 1 (inclusive)" (Vertex; google-genai 3.1.0: the maximum number of tokens)
        yield Violation("max_tokens", (root, "maxOutputTokens"), "the limit is below 1; raise it")
    if isinstance(stops, list) and 0 < rules.max_stop < len(cast("list[object]", stops)):
        # "up to 5" (Google documentation: GenerationConfig)
        message = f"there are more than {rules.max_stop} stop sequences; remove some"
        yield Violation("stop", (root, "stopSequences"), message)
    for key in ("presencePenalty", "frequencyPenalty"):
        if generation.get(key) is not None and f"{root}.{key}" in rules.refused_extra:
            # "Penalty is not enabled for models/gemini-2.5-pro" (vercel/ai #8943)
            yield Violation("penalty", (root, key), f"the model does not support `{key}`; remove it")
    schema = generation.get("responseSchema") or generation.get("responseJsonSchema")
    if isinstance(schema, Mapping) and generation.get("responseMimeType") not in ("application/json", "text/x.enum"):
        # "If set, a compatible response_mime_type must also be set." (google-genai 3.1.0)
        message = "a schema is set without `responseMimeType`; set it to application/json"
        yield Violation("output_schema", (root, "responseMimeType"), message)


def _check_json_beside_tools(wire: Block, generation: Block, rules: Rules) -> Iterator[Violation]:
    tools = [read_keys(tool) for _, tool in objects_of(wire.get("tools"))]
    if not tools or generation.get("responseMimeType") != "application/json":
        return
    path: Path = ("generationConfig", "responseMimeType")
    calling = read_keys(object_of(read_keys(object_of(wire.get("toolConfig"))).get("functionCallingConfig")))
    forces = mode_of(calling.get("mode")) == "ANY"
    if not rules.schema_with_tools:
        # "Function calling with a response mime type: 'application/json' is unsupported" (symfony/ai #803 and #1777);
        # "Tool use with ..." of Google's own tools (gemini-balance #264)
        message = "the model does not support JSON answers beside tools; remove the MIME type or the tools"
        yield Violation("json_beside_tools", path, message)
    elif forces and not rules.schema_with_forced_choice:
        # Newer models refuse "Forced function calling (ANY mode)" only (vercel/ai 43318a3)
        message = (
            "the model does not support JSON answers beside a forced call; remove the MIME type or change the mode"
        )
        yield Violation("json_beside_tools", path, message)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
