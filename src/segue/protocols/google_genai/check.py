"""Whether Google accepts a body: its contents first, then tools, the combinations of tools, and settings.

Every rule quotes the refusal and its source; the threads were read on 2026-11-15. No rule forbids what recorded traffic
shows to be accepted: keys under both names, contents of one role side by side, ids on calls of models that give
none, an empty response, missing signatures in finished turns.

Facts:
- The server reads contents of one role side by side as one turn.                         (recorded traffic, 2026-11)
- Signatures are required in the current turn only: after the last content of the user that holds more than results.
                                                 (Google documentation: thought signatures, read 2026-11-15)
- Gemini 1 and 2: "Tool use with function calling is unsupported".          (go-genai #323, 2025-05-25; celeste #197)
- Gemini 3 at the Gemini API: "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with
  Function calling."                                              (genkit #4970, 2026-03-20; sub2api #5725, 2026-08-17)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from segue.errors import Path
from segue.foundation.plurals import counted
from segue.models.model_ids import GEMINI_1_AND_2, GEMINI_2_0, GEMINI_3_ON, GEMINI_ALWAYS_THINKS
from segue.models.rules import Rules
from segue.protocols.families.tool_checks import Declared, check_tool_count, check_tools
from segue.protocols.google_genai.content import CALL, INLINE, RESULT, SIGNATURE, read_keys, texts_of
from segue.protocols.google_genai.limits import LIMITS
from segue.protocols.google_genai.options import SERVER_TOOLS, mode_of
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.media_checks import check_bytes
from segue.protocols.kit.ranges import check_range, check_seed, check_stop_sizes
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.kit.schemas import find_faults
from segue.protocols.kit.sources import objects_in

_ROLES: Final = frozenset({"user", "model", "function", None})
_NO_DATA: Final = frozenset({"thought", "partMetadata"})
"""Keys that are not data. A signature may come alone, without the empty text it belongs to, and `videoMetadata` in its
own part, after the video: both were accepted (recorded by pydantic-ai)."""
_REFUSES_EMPTY: Final = re.compile(GEMINI_2_0)


def objects_of(value: object) -> Iterator[tuple[int, Block]]:
    """Yield the objects of a list with their positions; one without a list is the first."""
    if isinstance(value, Mapping):
        yield 0, cast("Block", value)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(cast("Sequence[object]", value)):
            if isinstance(item, Mapping):
                yield index, cast("Block", item)


class _Turn:
    """Contents of one role side by side: their parts, with their paths."""

    def __init__(self, *, is_model: bool, index: int) -> None:
        self.is_model = is_model
        self.index = index
        self.parts: list[tuple[Path, Block]] = []

    def having(self, field: str) -> list[tuple[Path, Block]]:
        return [(path, object_of(part[field])) for path, part in self.parts if field in part]

    def has_user_input(self) -> bool:
        """Whether there is more than tool results."""
        return any(RESULT not in part for _, part in self.parts)


def check_turns(wire: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """List what the provider would refuse in the contents."""
    if not endpoint.rules.system_prompt and wire.get("systemInstruction"):
        # "Developer instruction is not enabled for models/gemma-3-27b-it" (Gemini API)
        message = "the model does not support a system instruction; move it into the first content"
        yield Violation(CheckCode.SYSTEM_UNSUPPORTED, ("systemInstruction",), message)
    contents = wire.get("contents")
    turns: list[_Turn] = []
    for index, content in objects_of(contents):
        role = content.get("role")
        if not (role is None or isinstance(role, str)) or role not in _ROLES:
            # "Please use a valid role: user, model." (openagent #1666, CLIProxyAPI #17)
            path: Path = ("contents", index, "role")
            yield Violation(CheckCode.ROLE_UNKNOWN, path, f"unknown role {role!r}; use user or model")
        parts: list[tuple[Path, Block]] = []
        for at, part in objects_of(content.get("parts")):
            parts.append((("contents", index, "parts", at), read_keys(part)))
        yield from _check_parts(index, parts, endpoint)
        is_model = role == "model"
        if not turns or turns[-1].is_model != is_model:
            turns.append(_Turn(is_model=is_model, index=index))
        turns[-1].parts += parts
    if not turns and not isinstance(contents, str):
        # "* GenerateContentRequest.contents: contents is not specified" (langchain-google #1393)
        yield Violation(CheckCode.MESSAGES_MISSING, ("contents",), "there are no contents; add one")
        return
    yield from _check_pairs(turns)
    yield from _check_signatures(turns, endpoint)
    if turns and turns[-1].is_model and not endpoint.rules.last_assistant:
        # "Requests ending with a model turn are not supported" (LibreChat agents #323, langchain-google #1897)
        message = "the last turn is the model's; add a user turn"
        yield Violation(CheckCode.LAST_TURN_WRONG, ("contents", turns[-1].index), message)


def _check_parts(index: int, parts: list[tuple[Path, Block]], endpoint: Endpoint) -> Iterator[Violation]:
    if not parts:
        # "contents.parts must not be empty." (vercel/ai #3775, langgraph #3939)
        yield Violation(CheckCode.CONTENT_MISSING, ("contents", index, "parts"), "a content has no parts; add one")
        return
    is_empty = all(part.get("text") == "" and SIGNATURE not in part for _, part in parts)
    if is_empty and endpoint.rules.refused_text != "none" and _REFUSES_EMPTY.search(endpoint.model.id):
        # "Unable to submit request because it has an empty text parameter" (Portkey gateway #462, chatbox #1846)
        yield Violation(CheckCode.TEXT_BLANK, parts[0][0], "a content has only empty texts; remove it")
    others = [path for path, part in parts if RESULT not in part]
    if endpoint.rules.has("mixed_results") and 0 < len(others) < len(parts):
        # "Requests ending with a model turn are not supported." although it ends with results and a text
        message = "a content has results and other parts; put each into a content of its own"
        yield Violation(CheckCode.RESULT_MISPLACED, others[0], message)
    for path, part in parts:
        if part.keys() <= _NO_DATA:
            # "required oneof field 'data' must have one initialized field" (FLIT #70)
            yield Violation(CheckCode.CONTENT_MISSING, path, "a part has no data; remove it")
        yield from _check_inline(part, path)
        for field in (CALL, RESULT):
            if field in part and not text_of(object_of(part[field]).get("name")):
                # "function_response.name: Name cannot be empty." (CLIProxyAPI #2104, aimux #127)
                yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, field, "name"), "the tool name is missing; set it")
        for field, inner in ((CALL, "args"), (RESULT, "response")):
            value = object_of(part.get(field)).get(inner)
            if value is not None and not isinstance(value, Mapping):
                # "Invalid value at 'contents[2].parts[0].function_response.response'
                # (type.googleapis.com/google.protobuf.Struct)" (Gemini API; google-genai 3.1.0: an object)
                message = f"`{inner}` has to be an object; put the value into one"
                yield Violation(CheckCode.TYPE_WRONG, (*path, field, inner), message)


def _check_inline(part: Block, path: Path) -> Iterator[Violation]:
    """Check the data of a part, and of the parts of a result: "Unable to process input image." (quoted by clients)."""
    inline = read_keys(object_of(part.get(INLINE)))
    yield from check_bytes(inline.get("data"), inline.get("mimeType"), (*path, INLINE))
    for at, inner in objects_of(read_keys(object_of(part.get(RESULT))).get("parts")):
        yield from _check_inline(read_keys(inner), (*path, RESULT, "parts", at))


def _check_pairs(turns: list[_Turn]) -> Iterator[Violation]:
    """Check that calls have results: by their number, not by `tool_checks.Pairs`, because Google counts them.

    Ids are optional (google-genai 3.1.0), older models and hosts refuse them in a request ("Unknown name "id" at
    'contents[1].parts[0].function_call'": kimi-cli #1582, 2026-03-25), and one host alone was seen to compare them
    ("functionResponse.id does not match functionCall.id": CLIProxyAPI #5199).
    """
    for at, turn in enumerate(turns):
        calls = turn.having(CALL) if turn.is_model else []
        results = [] if turn.is_model else turn.having(RESULT)
        if calls and at == 0:
            # "Please ensure that function call turn comes immediately after a user turn or after a function response
            # turn." (gemini-cli #11814 and #26956, lobehub #10049)
            message = "the first turn has a call; add a user turn before it"
            yield Violation(CheckCode.FIRST_TURN_WRONG, calls[0][0], message)
        if calls and at + 1 < len(turns):
            count = len(turns[at + 1].having(RESULT))
            if count != len(calls):
                # "Please ensure that the number of function response parts is equal to the number of function call
                # parts of the function call turn." (gemini-cli #4217)
                results_of = f"{counted(len(calls), 'call has', 'calls have')} {counted(count, 'result')}"
                message = f"{results_of}; send one result for each call"
                yield Violation(CheckCode.RESULT_COUNT_WRONG, ("contents", turns[at + 1].index), message)
        if results and not (at and turns[at - 1].having(CALL)):
            # "Please ensure that function response turn comes immediately after a function call turn."
            # (langchain #27799)
            message = "no call is before it; remove the result, or add the call"
            yield Violation(CheckCode.RESULT_ORPHANED, results[0][0], message)


def _check_signatures(turns: list[_Turn], endpoint: Endpoint) -> Iterator[Violation]:
    if endpoint.rules.call_signature != "required":
        return
    for turn in reversed(turns):
        if not turn.is_model:
            if turn.has_user_input():
                return
            continue
        first = next(((path, part) for path, part in turn.parts if CALL in part), None)
        if first is not None and not text_of(first[1].get(SIGNATURE)):
            # "Function call is missing a thought_signature in functionCall parts." (litellm #16893, strands #1764)
            message = "the first call of a step has no signature; send the one it was received with"
            yield Violation(CheckCode.SIGNATURE_MISSING, first[0], message)


def check_server_tools(wire: Block, rules: Rules) -> Iterator[Violation]:
    """Find Google's tools with functions that the model refuses, or that need a flag."""
    tools = [read_keys(tool) for tool in objects_in(wire.get("tools"))]
    if not any(tool.get("functionDeclarations") for tool in tools):
        return
    if not any(known.matches(tool) for tool in tools for known in SERVER_TOOLS):
        return
    config = read_keys(object_of(wire.get("toolConfig")))
    match rules.server_tools_with_functions:
        case "refused":
            message = "the model refuses Google's own tools beside functions; remove the ones or the others"
            yield Violation(CheckCode.TOOLS_NOT_COMBINABLE, ("tools",), message)
        case "flag" if config.get("includeServerSideToolInvocations") is not True:
            message = "Google's own tools beside functions need `includeServerSideToolInvocations`; set it to true"
            yield Violation(CheckCode.TOOLS_NOT_COMBINABLE, ("toolConfig",), message)
        case _:
            return


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
    functions = [
        Declared(("tools", at, "functionDeclarations", index), read_keys(raw))
        for at, tool in objects_of(wire.get("tools"))
        for index, raw in objects_of(read_keys(tool).get("functionDeclarations"))
    ]
    # "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores
    # (_), dots (.), colons (:), or dashes (-)" (ccs #25 and #219, gemini-cli #7869); "Duplicate function declaration
    # found: x" (rikkahub #1311, threads-mcp #1)
    yield from check_tools(functions, rules, is_unique=True)
    for path, function, *_ in functions:
        yield from _check_schema(function, path, rules)
    # "Maximum 512 function declarations can be provided." (google-genai 3.1.0)
    yield from check_tool_count(len(functions), rules)


def _check_schema(function: Block, path: Path, rules: Rules) -> Iterator[Violation]:
    keys = [key for key in ("parameters", "parametersJsonSchema") if function.get(key) is not None]
    if len(keys) > 1:
        # "This field is mutually exclusive with `parameters`." (google-genai 3.1.0)
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*path, keys[1]), "a tool has two schemas; remove one of them")
    for key in keys:
        root = object_of(function[key])
        kind = text_of(root.get("type")) or ("union" if "anyOf" in root else "object")
        if kind.lower() != "object":
            # "parameters schema should be of type OBJECT" (Vertex: OmniRoute #3360; litellm #41639 for a union)
            message = "the schema of a tool must have the type object; wrap it in one"
            yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*path, key, "type"), message)
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
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, path, message)
    tools = [read_keys(tool) for _, tool in objects_of(wire.get("tools"))]
    has_functions = any(tool.get("functionDeclarations") for tool in tools)
    if mode and not has_functions and not (tools and _COMBINES_TOOLS.search(endpoint.model.id)):
        # "Function calling config is set without function_declarations." (kelivo #317); Gemini 3 accepts it with
        # Google Search alone (recorded 200)
        message = "a function calling mode is set without functions; add functions, or remove it"
        yield Violation(CheckCode.TOOL_CHOICE_WITHOUT_TOOLS, ("toolConfig", "functionCallingConfig"), message)


def _check_cache(wire: Block) -> Iterator[Violation]:
    if not wire.get("cachedContent"):
        return
    for key in ("systemInstruction", "tools", "toolConfig"):
        if wire.get(key):
            # "CachedContent can not be used with GenerateContent request setting system_instruction, tools or
            # tool_config." (litellm #17304, langchain-google #978, vercel/ai #3333)
            message = f"{key} is refused beside `cachedContent`; move it into the cached content"
            yield Violation(CheckCode.OPTIONS_CONFLICT, (key,), message)


# -- settings ----------------------------------------------------------------------------------------------------------


def _check_thinking(generation: Block, endpoint: Endpoint) -> Iterator[Violation]:
    thinking = read_keys(object_of(generation.get("thinkingConfig")))
    budget, level = thinking.get("thinkingBudget"), thinking.get("thinkingLevel")
    path: Path = ("generationConfig", "thinkingConfig")
    if budget is not None and level is not None:
        # "You can only set only one of thinking budget and thinking level." (quoted by many clients, found 2026-11-15)
        message = "a thinking budget and a thinking level are set; remove one of them"
        yield Violation(CheckCode.OPTIONS_CONFLICT, (*path, "thinkingBudget"), message)
    if isinstance(level, str):
        # "Thinking level MINIMAL is not supported for this model." (vellum-assistant #32687)
        yield from check_effort(level.lower(), (*path, "thinkingLevel"), endpoint)
    if level is not None and _BUDGET_ONLY.search(endpoint.model.id):
        # "Thinking level is not supported for this model." (Roo-Code #10700)
        message = f"{endpoint.model.id} does not support thinking levels; set `thinkingBudget`"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, (*path, "thinkingLevel"), message)
    if budget == 0 and budget is not False and _ALWAYS_THINKS.search(endpoint.model.id):
        # "Budget 0 is invalid. This model only works in thinking mode." (gemini-balance #206, docker-agent #2051,
        # python-genai #2936)
        message = f"{endpoint.model.id} cannot turn thinking off; set a budget above 0"
        yield Violation(CheckCode.THINKING_BUDGET_INVALID, (*path, "thinkingBudget"), message)
    least, most = endpoint.rules.min_thinking_budget, endpoint.rules.max_thinking_budget
    if isinstance(budget, int) and budget > 0 and not least <= budget <= (most or budget):
        # "The thinking budget (52428) is invalid." (Roo-Code #4399)
        message = f"the thinking budget is not between {least} and {most} tokens; change it"
        yield Violation(CheckCode.THINKING_BUDGET_INVALID, (*path, "thinkingBudget"), message)


def _check_generation(generation: Block, rules: Rules) -> Iterator[Violation]:
    root = "generationConfig"
    most = generation.get("maxOutputTokens")
    # "temperature must be in the range [0.0, 2.0]." (google-genai 3.1.0)
    yield from check_range("temperature", generation.get("temperature"), (root, "temperature"), rules)
    yield from check_range("top_p", generation.get("topP"), (root, "topP"), rules)  # Google documentation
    yield from check_seed(generation.get("seed"), (root, "seed"), rules)
    if _is_number(most) and cast("float", most) < 1:
        # "the supported range is from 1 (inclusive)" (Vertex; google-genai 3.1.0: the maximum number of tokens)
        message = "the limit has to be at least 1; raise it"
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, (root, "maxOutputTokens"), message)
    # "up to 5" (Google documentation: GenerationConfig)
    yield from check_stop_sizes(generation.get("stopSequences"), (root, "stopSequences"), rules)
    for key in ("presencePenalty", "frequencyPenalty"):
        if generation.get(key) is not None and f"{root}.{key}" in rules.refused_extra:
            # "Penalty is not enabled for models/gemini-2.5-pro" (vercel/ai #8943)
            yield Violation(CheckCode.OPTION_UNSUPPORTED, (root, key), f"the model does not support `{key}`; remove it")
    schema = generation.get("responseSchema") or generation.get("responseJsonSchema")
    if isinstance(schema, Mapping) and generation.get("responseMimeType") not in ("application/json", "text/x.enum"):
        # "If set, a compatible response_mime_type must also be set." (google-genai 3.1.0)
        message = "a schema is set without `responseMimeType`; set it to application/json"
        yield Violation(CheckCode.OUTPUT_TYPE_MISSING, (root, "responseMimeType"), message)


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
        yield Violation(CheckCode.JSON_WITH_TOOLS, path, message)
    elif forces and not rules.schema_with_forced_choice:
        # Newer models refuse "Forced function calling (ANY mode)" only (vercel/ai 43318a3)
        message = (
            "the model does not support JSON answers beside a forced call; remove the MIME type or change the mode"
        )
        yield Violation(CheckCode.JSON_WITH_TOOLS, path, message)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
