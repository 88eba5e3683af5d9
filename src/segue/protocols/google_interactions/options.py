"""The options of a request, both ways.

Format is kept for the model of the body.

Tools that Google runs, as the Interactions API writes them.

Definitions of tools.

Facts:
- Limits, sampling, thinking and the choice of tools are in `generation_config`; `temperature` and `top_p` are marked
  as deprecated.                              (google-genai 3.1.0: GenerationConfigParam, read 2026-11-17)
- `thinking_level` is minimal, low, medium or high; there is no budget, and no level that turns thinking off. Thoughts
  have summaries with `thinking_summaries: auto`.                                                          (the same)
- `tool_choice` is auto, any, none or validated, or `{"allowed_tools": {"mode", "tools"}}`.                (the same)
- `response_format` of the type text holds the MIME type and the schema of the answer; it may be a list.   (the same)
- Requests are stored without `store: false`.                            (the same; Google documentation: Interactions)
- `stream` is a key of the body.                                                                           (the same)
- A tool is an object with a `type`. The search has no domains and no place of the user.
                              (google-genai 3.1.0: GoogleSearchParam, URLContextParam, FileSearchParam; 2026-11-17)
- A function is flat: `name`, `description` and `parameters`, any JSON schema, are next to `type`. All other tools are
  run by Google, by an MCP server or, as `computer_use`, by the client.
                                       (google-genai 3.1.0: FunctionParam, ToolParam; read 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Options, ThinkingLevel, Tool, ToolDefinition
from segue.errors import Path
from segue.models.thinking import level_for_budget
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of, same
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import expect_objects, integer_of, native_definition, real_of, strings_of, text_of
from segue.protocols.kit.server_tools import ALLOWED, DefinitionForm, ServerTool, allowed_tools
from segue.protocols.kit.verbatim import data_of, keep, restore

_READ: Final = "2026-11-17"
_SOURCE: Final = "google-genai 3.1.0"


def _read_mcp(definition: Block, _: Block) -> Block:
    """Read the names of tools that the model may call; a mode other than `auto` is left as it is."""
    given = [object_of(one) for one in list_of(definition.get("allowed_tools"))]
    listed = [strings_of(one.get("tools")) for one in given if one.get("mode", "auto") == "auto"]
    names = [name for some in listed for name in some or ()]
    is_read = given and len(listed) == len(given) and None not in listed
    return {**definition, **allowed_tools(names)} if is_read else definition


def _write_mcp(definition: Wire) -> tuple[Wire, Wire]:
    names = object_of(definition.get("allowed_tools")).get("names")
    return ({**definition, "allowed_tools": [{"mode": "auto", "tools": names}]} if names else definition), {}


_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    _TOOL(
        name="google_search",
        kind="web_search",
        pattern="google_search",
        template={"type": "google_search"},
    ),
    _TOOL(name="url_context", kind="web_fetch", pattern="url_context", template={"type": "url_context"}),
    _TOOL(name="code_execution", kind="code_execution", pattern="code_execution", template={"type": "code_execution"}),
    _TOOL(
        name="file_search",
        kind="file_search",
        pattern="file_search",
        template={"type": "file_search"},
        options={"stores": ("file_search_store_names",), "max_results": ("top_k",), "filter": ("metadata_filter",)},
    ),
    _TOOL(
        name="google_maps",
        kind="maps",
        pattern="google_maps",
        template={"type": "google_maps"},
        options={"widget": ("enable_widget",)},
    ),
    _TOOL(name="retrieval", kind="other", pattern="retrieval"),
    _TOOL(
        name="mcp_server",
        kind="mcp",
        pattern="mcp_server",
        template={"type": "mcp_server"},
        options={"server_name": ("name",), "server_url": ("url",), "allowed_tools": ALLOWED},
        form=DefinitionForm(_read_mcp, _write_mcp),
    ),
    _TOOL(name="computer_use", kind="other", pattern="computer_use"),
)


def decode_tools(tools: object) -> tuple[Tool, ...]:
    """Read the list of tools.

    Raises:
        DecodeError: it is not a list of objects.
    """
    return tuple([_decode_tool(tool) for tool in expect_objects(tools, ("tools",))])


def _decode_tool(tool: Block) -> Tool:
    name, parameters = tool.get("name"), tool.get("parameters")
    if not isinstance(name, str) or tool.get("type") != "function":
        return NativeTool(protocol=PROTOCOL, definition=tool)
    read = ToolDefinition(
        name=name,
        description=text_of(tool.get("description")) or "",
        parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
    )
    known = [key for key, value in (("description", read.description), ("parameters", read.parameters)) if not value]
    extra = keep(PROTOCOL, tool, _default_tool(read), known)
    return read if extra is None else replace(read, extra=extra)


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the list of tools.

    Raises:
        EncodeError: a tool of another protocol.
    """
    return [_encode_tool(tool, ("tools", index)) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, path: Path) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, path))
    wire = _default_tool(tool)
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition) -> Wire:
    wire: Wire = {"type": "function", "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.parameters:
        wire["parameters"] = tool.parameters
    return wire


GENERATION: Final = "generation_config"
FORMAT: Final = "response_format"
_READ_ELSEWHERE: Final = frozenset({"model", "input", "tools", "system_instruction"})
_UNSUPPORTED: Final = ("parallel_tool_calls", "cache_retention", "session_id", "user_id")
_CHOICES: Final[Mapping[str, str]] = {"auto": "auto", "required": "any", "none": "none"}
_CHOICES_IN: Final[Mapping[str, str]] = {"auto": "auto", "validated": "auto", "any": "required", "none": "none"}
_LEVELS: Final[Mapping[str, str]] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
_SUMMARIES: Final = "thinking_summaries"


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_options(body: JsonObject, endpoint: Endpoint) -> Options:
    """Read everything of a body but its conversation."""
    received: Wire = {key: value for key, value in body.items() if key not in _READ_ELSEWHERE}
    generation = object_of(body.get(GENERATION))
    stream = body.get("stream")
    options = Options(
        max_tokens=integer_of(generation.get("max_output_tokens")),
        temperature=real_of(generation.get("temperature")),
        top_p=real_of(generation.get("top_p")),
        stop=strings_of(generation.get("stop_sequences")),
        seed=integer_of(generation.get("seed")),
        thinking=_decode_level(generation.get("thinking_level")),
        tool_choice=_decode_choice(generation.get("tool_choice")),
        output_schema=_decode_schema(body.get(FORMAT)),
        stream=stream if isinstance(stream, bool) else None,
    )
    default = _default_options(options, endpoint)
    # Another value than the one that segue adds by itself is data, and not a form of it. So are summaries that were
    # asked for: another protocol may have to be asked for them.
    _drop_replaced(default, received, "store")
    if _SUMMARIES in generation:
        cast("Wire", default.get(GENERATION, {})).pop(_SUMMARIES, None)
    known = [f"{GENERATION}.tool_choice"] if options.tool_choice is not None else []
    model = text_of(body.get("model")) or endpoint.model.id
    extra = keep(PROTOCOL, received, default, known, only_for=model)
    return options if extra is None else replace(options, extra=extra)


def _drop_replaced(default: Block, received: Block, key: str) -> None:
    value = received.get(key)
    if value is not None and key in default and not same(default[key], value):
        del cast("Wire", default)[key]


def _decode_level(level: object) -> ThinkingLevel | None:
    # `xhigh`: google-genai 3.3.0; which models take it is not known, so it is not written
    is_level = isinstance(level, str) and (_LEVELS.get(level) == level or level == "xhigh")
    return cast("ThinkingLevel", level) if is_level else None


def _decode_choice(choice: object) -> str | None:
    if isinstance(choice, str):
        return _CHOICES_IN.get(choice)
    allowed = object_of(object_of(choice).get("allowed_tools"))
    names = strings_of(allowed.get("tools"))
    if allowed.get("mode") != "any" or names is None or len(names) != 1 or names[0] in _CHOICES:
        return None
    return names[0]


def _decode_schema(given: object) -> Block | None:
    form = object_of(given)
    schema = form.get("schema")
    return cast("Block", schema) if form.get("type") == "text" and isinstance(schema, Mapping) else None


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, model: str | None) -> Wire:
    """Write the options as keys of a body that names `model`.

    Raises:
        EncodeError: an option that this protocol does not support.
    """
    refuse_options(PROTOCOL, options, _UNSUPPORTED)
    wire = _default_options(options, endpoint)
    return restore(wire, options.extra, PROTOCOL, model=model or endpoint.model.id)


def _default_options(options: Options, endpoint: Endpoint) -> Wire:
    wire: Wire = {}
    data = data_of(options.extra, PROTOCOL)
    if endpoint.dialect.store and "store" not in data:
        wire["store"] = False
    if options.stream is not None:
        wire["stream"] = options.stream
    generation: Wire = {}
    for key, value in (
        ("max_output_tokens", options.max_tokens),
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("stop_sequences", None if options.stop is None else list(options.stop)),
        ("seed", options.seed),
    ):
        if value is not None:
            generation[key] = value
    level = _level_of(options)
    if level is not None:
        generation["thinking_level"] = level
        if _SUMMARIES not in object_of(data.get(GENERATION)):
            generation[_SUMMARIES] = "auto"
    choice = options.tool_choice
    if choice is not None:
        named = {"allowed_tools": {"mode": "any", "tools": [choice]}}
        generation["tool_choice"] = _CHOICES.get(choice, named)
    if generation:
        wire[GENERATION] = generation
    if options.output_schema is not None:
        wire[FORMAT] = {"type": "text", "mime_type": "application/json", "schema": options.output_schema}
    return wire


def _level_of(options: Options) -> str | None:
    thinking = options.thinking
    if thinking is None:
        return None
    return _LEVELS.get(level_for_budget(thinking) if isinstance(thinking, int) else thinking)
