"""The options of a generateContent request, both ways.

Format is written again for the same model only. Choice (`kit.verbatim`): `empty`, the objects that were received empty.

Schemas in Google's own dialect, read as JSON schema.

Tools that Google runs.

Tools of a request, both ways.

By default all functions in a row share one object, and every tool of Google's has its own. Choices (`kit.verbatim`):
`group` ("new" or "same"), whether a tool begins an object; `field`, the key that holds the functions of an object.

Facts:
- Sampling, limits, schema and thinking are in `generationConfig`, the choice of tools in `toolConfig`. The URL
  decides whether the reply is streamed.                                 (google-genai 3.1.0, read 2026-11-15)
- Up to 2.5 thinking has a budget (0: off, -1: the model decides), from 3 on a level: MINIMAL, LOW, MEDIUM, HIGH. Some
  models cannot turn it off. Thoughts are in the reply only with `includeThoughts`.
                             (Google documentation: thinking; google-genai 3.1.0; catalogue; read 2026-11-15)
- `ANY` forces a call, of the `allowedFunctionNames` if there are any; `VALIDATED` does not force one and follows the
  schemas; `AUTO` and `NONE`.                                                           (google-genai 3.1.0)
- A choice of functions is refused where none are declared.                                       (kelivo #317)
- A schema of the answer needs `responseMimeType` next to it.                            (google-genai 3.1.0)
- `parameters` and `responseSchema` hold a subset of OpenAPI 3.0: types in capitals, `nullable`, counts as strings (64
  bits); `parametersJsonSchema` and `responseJsonSchema` hold JSON schema. Only one of the two.
                                                                         (google-genai 3.1.0, read 2026-11-15)
- Vertex also writes a type as the number of its enum, and the SDKs of that time `type_` and `format_` for the keys.
                                              (google.cloud.aiplatform v1: Type; protobuf's JSON mapping; 2026-11-15)
- Types are read in any case, keys under both names.            (the same: enums without case; protobuf's JSON mapping)
- A tool is an object with one key. The place of the user has no equivalent: coordinates only.
                                                                                 (google-genai 3.1.0, read 2026-11-15)
- `excludeDomains` is accepted at Vertex only, `fileSearch` at the Gemini API only.                (google-genai 3.1.0)
- With functions Gemini 3 at the Gemini API needs `includeServerSideToolInvocations`: "Please enable
  tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
                                                                  (genkit #4970, 2026-03-20; sub2api #5725, 2026-08-17)
- A tool is an object with one kind of tool a key; `functionDeclarations` lists the application's, the others are
  Google's own (`googleSearch`, `codeExecution`, `urlContext`, ...) or a server's.
                                                                                   (google-genai 3.1.0, read 2026-11-15)
- One tool may come without its list.                                                 (recorded traffic, 2026-11)
- A tool without parameters has no schema.                  (google-genai 3.1.0: FunctionDeclaration, read 2026-11-15)
- `parametersJsonSchema` accepts any JSON schema, also at Vertex and also `$defs` and `additionalProperties`.
                                                                                         (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import NativeTool, Options, ThinkingLevel, Tool, ToolDefinition
from segue.errors import Path
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.google_genai.content import TO_CAMEL, keep_format, name_in, read_keys, texts_of
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.facts import SearchForm
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import (
    expect_list,
    expect_object,
    integer_of,
    native_definition,
    real_of,
    strings_of,
    text_of,
)
from segue.protocols.kit.server_tools import ServerTool
from segue.protocols.kit.verbatim import choose, chosen, data_of, restore

_SCHEMAS_BELOW: Final = frozenset({"properties", "$defs", "defs"})
_LISTS_BELOW: Final = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_COUNTS: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


_TYPES: Final = ("TYPE_UNSPECIFIED", "string", "number", "integer", "boolean", "array", "object", "null")
"""The types by their numbers."""
_RENAMED: Final[Mapping[str, str]] = {"type_": "type", "format_": "format"}
"""Names of keys that protobuf's Python classes use, because the plain ones are taken."""


def from_openapi(schema: Block) -> Block:
    """Read a schema of Google's dialect; one that is JSON schema already is given unchanged."""
    read = _read(schema)
    return schema if read == schema else read


def _read(schema: Block) -> Wire:
    out: Wire = {}
    for raw, value in schema.items():
        camel = _RENAMED.get(raw) or TO_CAMEL.get(raw, raw)
        key = raw if camel in schema else camel
        if key == "type" and isinstance(value, int) and 0 <= value < len(_TYPES):
            value = _TYPES[value]  # noqa: PLW2901 - the number of a type represents its name
        if key == "type" and isinstance(value, str):
            if value.upper() != "TYPE_UNSPECIFIED":
                out[key] = value.lower()
        elif key in _COUNTS and isinstance(value, str) and value.isdecimal():
            out[key] = int(value)
        elif key in _SCHEMAS_BELOW and isinstance(value, Mapping):
            below = cast("Block", value)
            out[key] = {name: _below(inner) for name, inner in below.items()}
        elif key in _LISTS_BELOW and isinstance(value, list):
            out[key] = [_below(inner) for inner in cast("list[object]", value)]
        elif key in ("items", "additionalProperties"):
            out[key] = _below(value)
        else:
            out[key] = value
    if out.get("nullable") is True:
        _allow_null(out)
    return out


def _below(value: object) -> object:
    return _read(cast("Block", value)) if isinstance(value, Mapping) else value


def _allow_null(schema: Wire) -> None:
    """Allow null in the way of JSON schema."""
    kind, choices = schema.get("type"), schema.get("anyOf")
    if isinstance(kind, str):
        del schema["nullable"]
        schema["type"] = [kind, "null"]
    elif isinstance(choices, list):
        del schema["nullable"]
        schema["anyOf"] = [*cast("list[object]", choices), {"type": "null"}]


_READ: Final = "2026-11-15"
_SOURCE: Final = "google-genai 3.1.0"
_FLAG: Final[dict[str, object]] = {"toolConfig": {"includeServerSideToolInvocations": True}}

_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    _TOOL(
        name="googleSearch",
        kind="web_search",
        key=("googleSearch",),
        template={"googleSearch": {}},
        beside_functions=_FLAG,
    ),
    _TOOL(
        name="vertex_googleSearch",
        kind="web_search",
        key=("googleSearch",),
        template={"googleSearch": {}},
        options={"blocked_domains": ("googleSearch", "excludeDomains")},
    ),
    _TOOL(
        name="googleSearchRetrieval",
        kind="web_search",
        key=("googleSearchRetrieval",),
        ignored=frozenset({"dynamicRetrievalConfig", "dynamic_retrieval_config"}),
    ),
    _TOOL(
        name="enterpriseWebSearch",
        kind="web_search",
        key=("enterpriseWebSearch",),
        options={"blocked_domains": ("enterpriseWebSearch", "excludeDomains")},
    ),
    _TOOL(
        name="urlContext", kind="web_fetch", key=("urlContext",), template={"urlContext": {}}, beside_functions=_FLAG
    ),
    _TOOL(
        name="codeExecution",
        kind="code_execution",
        key=("codeExecution",),
        template={"codeExecution": {}},
        beside_functions=_FLAG,
    ),
    _TOOL(
        name="fileSearch",
        kind="file_search",
        key=("fileSearch",),
        template={"fileSearch": {}},
        options={
            "stores": ("fileSearch", "fileSearchStoreNames"),
            "max_results": ("fileSearch", "topK"),
            "filter": ("fileSearch", "metadataFilter"),
        },
        beside_functions=_FLAG,
    ),
    _TOOL(
        name="googleMaps",
        kind="maps",
        key=("googleMaps",),
        template={"googleMaps": {}},
        options={"widget": ("googleMaps", "enableWidget")},
        beside_functions=_FLAG,
    ),
)


def _count(fields: dict[str, object], searches: int) -> None:
    for candidate in cast("list[dict[str, object]]", fields.get("candidates") or []):
        if "finishReason" in candidate:
            candidate["groundingMetadata"] = {"webSearchQueries": [f"weather {at}" for at in range(searches)]}


SEARCHES: Final = SearchForm(count=_count)


_FUNCTIONS: Final = "functionDeclarations"
_JSON_SCHEMA: Final = "parametersJsonSchema"
_OPEN_SCHEMA: Final = "parameters"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_tools(given: object) -> tuple[Tool, ...]:
    """Read the tools of a body.

    Raises:
        DecodeError: they are not a list of objects.
    """
    out: list[Tool] = []
    for index, item in enumerate(expect_list(given, ("tools",))):
        _decode_tool(expect_object(item, ("tools", index)), ("tools", index), out)
    return tuple(out)


def _decode_tool(tool: Block, path: Path, out: list[Tool]) -> None:
    field = name_in(tool, _FUNCTIONS)
    declared = tool.get(field)
    functions = list_of(declared)
    if not functions or not all(_is_readable(function) for function in functions):
        out.append(NativeTool(protocol=PROTOCOL, definition=tool))
        return
    group = "same" if out and out[-1].kind == "function" else "new"
    choices: Block = {**choose("group", group, "new"), **choose("field", _FUNCTIONS, field)}
    for at, function in enumerate(functions):
        declaration = expect_object(function, (*path, field, at))
        out.append(_decode_function(declaration, choices if at == 0 else EMPTY))
    native = {key: value for key, value in tool.items() if key != field}
    if native:
        extra = keep_format(EMPTY, EMPTY, (), choose("group", "new", "same"))
        out.append(NativeTool(protocol=PROTOCOL, definition=native, extra=extra))


def _is_readable(function: object) -> bool:
    return isinstance(function, dict) and isinstance(cast("Wire", function).get("name"), str)


def _decode_function(received: Block, choices: Block) -> ToolDefinition:
    wire = read_keys(received)
    description, schema, other = wire.get("description"), wire.get(_JSON_SCHEMA), wire.get(_OPEN_SCHEMA)
    known: set[str] = {"description"} if isinstance(description, str) else set()
    parameters: Block = {}
    if isinstance(schema, dict):
        parameters = cast("Block", schema)
        # A second schema is not data of the tool, but a form of it, and one that is refused.
        known |= {_JSON_SCHEMA, _OPEN_SCHEMA}
    elif isinstance(other, dict):
        parameters = from_openapi(cast("Block", other))
        known.add(_OPEN_SCHEMA)
    tool = ToolDefinition(
        name=cast("str", wire["name"]),
        description=description if isinstance(description, str) else "",
        parameters=parameters,
    )
    extra = keep_format(received, _encode_function(tool), known, choices)
    return tool if extra is None else replace(tool, extra=extra)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_tools(tools: tuple[Tool, ...]) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: one of them is another protocol's.
    """
    out: list[Wire] = []
    functions: list[Wire] | None = None
    for index, tool in enumerate(tools):
        if tool.kind == "function":
            group = "new" if functions is None else "same"
            if functions is None or chosen(tool.extra, PROTOCOL, "group", group) == "new":
                functions = []
                out.append({cast("str", chosen(tool.extra, PROTOCOL, "field", _FUNCTIONS)): functions})
            functions.append(_encode_function(tool))
            continue
        definition = native_definition(PROTOCOL, tool, ("tools", index))
        if functions is not None and chosen(tool.extra, PROTOCOL, "group", "new") == "same":
            for key, value in definition.items():
                out[-1].setdefault(key, value)
        else:
            out.append(dict(definition))
        functions = None
    return out


def _encode_function(tool: ToolDefinition) -> Wire:
    wire: Wire = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.parameters:
        wire[_JSON_SCHEMA] = tool.parameters
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)


Thinking: TypeAlias = ThinkingLevel | int | None

GENERATION: Final = "generationConfig"
THINKING: Final = "thinkingConfig"
TOOL_CONFIG: Final = "toolConfig"
CALLING: Final = "functionCallingConfig"
_OBJECTS: Final[Mapping[str, str]] = {GENERATION: THINKING, TOOL_CONFIG: CALLING}
"""The objects that hold options, and the object inside each."""

BUDGET: Final = "thinkingBudget"
LEVEL: Final = "thinkingLevel"
SHOWN: Final = "includeThoughts"
_NAMES: Final = "allowedFunctionNames"
_PLAIN: Final[Mapping[str, str]] = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "seed": "seed",
}
_UNSUPPORTED: Final = ("parallel_tool_calls", "cache_retention", "session_id", "user_id")

_IDLE: Final = frozenset({"auto", "none"})
"""Choices that have no effect without functions, and are refused there."""
_MODE_NAMES: Final = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
"""The modes by their numbers.                     (google.cloud.aiplatform v1: FunctionCallingConfig, 2026-11-15)"""
NAMING_MODES: Final = frozenset({"ANY", "VALIDATED"})
"""Modes that may name functions."""

_MODES: Final[Mapping[str, str]] = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_CHOICES: Final[Mapping[str, str]] = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
"""`VALIDATED` is data: as `auto`, calls would follow no schema, and every function could be called."""
_LEVELS_OUT: Final[Mapping[ThinkingLevel, str]] = {
    "off": "LOW",  # the least that every model with levels has
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_LEVELS_IN: Final[Mapping[str, ThinkingLevel]] = {
    "MINIMAL": "minimal",
    "LOW": "low",
    "MEDIUM": "medium",
    "HIGH": "high",
    "XHIGH": "xhigh",  # google-genai 3.3.0, read 2026-11-18; which models take it is not known, so it is not written
}
_AUTOMATIC: Final = -1


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def mode_of(value: object) -> str:
    """Read the mode of the tool choice, by name or, from Vertex, by its number."""
    number = integer_of(value)
    if number is not None and 0 <= number < len(_MODE_NAMES):
        return _MODE_NAMES[number]
    return (text_of(value) or "").upper()


def decode_options(body: Block, endpoint: Endpoint, read: Collection[str], tools: Sequence[Tool]) -> Options:
    """Read everything but the keys that were `read` already."""
    received = {key: value for key, value in body.items() if key not in read}
    if not received:
        return Options()
    wire = read_keys(received)
    generation = read_keys(object_of(wire.get(GENERATION)))
    thinking = read_keys(object_of(generation.get(THINKING)))
    calling = read_keys(object_of(read_keys(object_of(wire.get(TOOL_CONFIG))).get(CALLING)))
    budget, level = thinking.get(BUDGET), thinking.get(LEVEL)
    mode, names = mode_of(calling.get("mode")), texts_of(calling.get(_NAMES))
    options = Options(
        max_tokens=integer_of(generation.get("maxOutputTokens")),
        temperature=real_of(generation.get("temperature")),
        top_p=real_of(generation.get("topP")),
        seed=integer_of(generation.get("seed")),
        stop=strings_of(generation.get("stopSequences")),
        thinking=_thinking(budget, level),
        tool_choice=names[0] if mode == "ANY" and len(names) == 1 else _CHOICES.get(mode),
        output_schema=_schema(generation.get("responseJsonSchema"), generation.get("responseSchema")),
    )
    known = {"model"}
    if options.thinking is not None or budget == _AUTOMATIC:
        known.add(f"{GENERATION}.{THINKING}.{LEVEL if isinstance(level, str) else BUDGET}")
    if options.tool_choice is not None:
        known.add(f"{TOOL_CONFIG}.{CALLING}.mode")
    empty: list[str] = []
    filled = _filled(received, empty)
    default = _encode_default(options, endpoint, tools)
    if SHOWN in thinking:  # data, also if segue would add it: another protocol may have to be asked for it
        cast("Wire", cast("Wire", default[GENERATION])[THINKING]).pop(SHOWN, None)
    model = _model_id(text_of(received.get("model")), endpoint)
    extra = keep_format(filled, default, known, choose("empty", [], empty), only_for=model)
    return options if extra is None else replace(options, extra=extra)


def _filled(received: Block, empty: list[str]) -> Wire:
    """Return a body that has the objects of options, as the default has them; the ones received empty are listed."""
    filled = dict(received)
    for outer, inner in _OBJECTS.items():
        key = name_in(filled, outer)
        held = filled.get(key, {})
        if isinstance(held, dict):
            objects = filled[key] = dict(cast("Wire", held))
            inner_key = name_in(objects, inner)
            values = ((outer, received.get(key)), (inner, objects.get(inner_key)))
            empty += [name for name, value in values if value == {}]
            objects.setdefault(inner_key, {})
    return filled


def _pruned(body: Wire, empty: Collection[str]) -> Wire:
    """Remove objects without options, but for those that were received so."""
    for outer, inner in _OBJECTS.items():
        key = name_in(body, outer)
        objects = body.get(key)
        if isinstance(objects, dict):
            held = cast("Wire", objects)
            name = name_in(held, inner)
            if held.get(name) == {} and inner not in empty:
                del held[name]
            if not held and outer not in empty:
                del body[key]
    return body


def _model_id(named: str | None, endpoint: Endpoint) -> str:
    return (named or endpoint.model.id).removeprefix("models/")


def _thinking(budget: object, level: object) -> Thinking:
    if isinstance(level, str):
        return _LEVELS_IN.get(level.upper())
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:
        return None
    return budget or "off"


def _schema(json_schema: object, open_schema: object) -> Block | None:
    if isinstance(json_schema, dict):
        return cast("Block", json_schema)
    return from_openapi(cast("Block", open_schema)) if isinstance(open_schema, dict) else None


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, named: str | None, tools: Sequence[Tool]) -> Wire:
    """Write the options, and the model where the body named one.

    Raises:
        EncodeError: an option is set that the protocol does not support.
    """
    refuse_options(PROTOCOL, options, _UNSUPPORTED)
    body = _encode_default(options, endpoint, tools)
    extra = options.extra
    if extra is None or PROTOCOL not in extra:
        return _pruned(body, ())
    _hide_thoughts(body, extra)
    restore(body, extra, PROTOCOL, model=_model_id(named, endpoint))
    _drop_stale_names(body, extra)
    return _pruned(body, texts_of(chosen(extra, PROTOCOL, "empty", [])))


def _hide_thoughts(body: Wire, extra: Extra) -> None:
    """Ask for no thoughts if the caller did not want them; a request for thinking asks for them otherwise."""
    data = object_of(object_of(data_of(extra, PROTOCOL).get(GENERATION)).get(THINKING))
    if SHOWN in data:
        thinking = object_of(object_of(body.get(GENERATION)).get(THINKING))
        if isinstance(thinking, dict):
            thinking.pop(SHOWN, None)


def _drop_stale_names(body: Wire, extra: Extra) -> None:
    """Remove names that were received next to a choice of tools which has changed since."""
    data = object_of(object_of(data_of(extra, PROTOCOL).get(TOOL_CONFIG)).get(CALLING))
    config = object_of(body.get(name_in(body, TOOL_CONFIG)))
    calling = config.get(name_in(config, CALLING))
    if _NAMES in data and isinstance(calling, dict):
        held = cast("Wire", calling)
        if mode_of(held.get("mode")) not in NAMING_MODES:
            held.pop(name_in(held, _NAMES), None)


def _encode_default(options: Options, endpoint: Endpoint, tools: Sequence[Tool]) -> Wire:
    """Write the options in the default format, with every object that may hold some."""
    thinking: Wire = {}
    calling: Wire = {}
    generation: Wire = {THINKING: thinking}
    for field, key in _PLAIN.items():
        value: object = getattr(options, field)
        if value is not None:
            generation[key] = value
    if options.stop is not None:
        generation["stopSequences"] = list(options.stop)
    if options.output_schema is not None:
        generation["responseMimeType"] = "application/json"
        generation["responseJsonSchema"] = options.output_schema
    if options.thinking is not None:
        _encode_thinking(options.thinking, endpoint, thinking)
    choice = options.tool_choice
    if choice is not None and (choice not in _IDLE or any(tool.kind == "function" for tool in tools)):
        calling["mode"] = _MODES.get(choice, "ANY")
        if choice not in _MODES:
            calling[_NAMES] = [choice]
    return {GENERATION: generation, TOOL_CONFIG: {CALLING: calling}}


def _encode_thinking(wanted: ThinkingLevel | int, endpoint: Endpoint, thinking: Wire) -> None:
    model, form = endpoint.model, endpoint.dialect.thinking_format
    if form == "level":
        level = level_for_budget(wanted) if isinstance(wanted, int) else wanted
        thinking[LEVEL] = (model.thinking_levels.get(level) or _LEVELS_OUT[level]).upper()
    elif form == "budget":
        level = wanted or "off"
        thinking[BUDGET] = level if isinstance(level, int) else budget_for_level(level, endpoint.dialect)
    else:
        return
    if level != "off":
        thinking[SHOWN] = True
