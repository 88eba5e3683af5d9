"""The options of a Bedrock request, both ways.

What was received stays with the options as long as the option that it belongs to is unchanged. The choices are named
like the fields of `Options`; each holds the value that was read. That of `thinking` holds the model as well, because
another model has other fields. The choice `empty` lists the containers that were received without any member.

The thinking settings of models on Bedrock, both ways.

The facts are in `options`. Each family of models has its own fields among the additional ones; the dialect's
`thinking_format` names those of a model.

Tools that Amazon runs for its Nova models: without options.

Tools of a Bedrock request, both ways.

Facts:
- Limits and sampling are in `inferenceConfig`, the tool choice in `toolConfig`, a schema for the answer (a text)
  in `outputConfig`; fields of one model are in `additionalModelRequestFields`. Without a limit the model's own
  applies.                                                           (botocore 1.44.0 service model, read 2026-11-15)
- Claude has the thinking fields of its own wire there: `thinking` with a budget, or adaptive with
  `output_config.effort` next to it; without an effort an adaptive model does not show its thinking.
                                                   (litellm #36507, higress #4154; 2026-08; recorded traffic, 2026-11)
- `outputConfig.effort` is the service's newer field for the same; it is read.                       (service model)
- GPT has `reasoning: {effort}`, gpt-oss a flat `reasoning_effort`, Nova 2 `reasoningConfig` with
  `maxReasoningEffort`.                         (pi-ai 1.5.0; AWS Nova 2 guide: extended thinking; 2026-11-15)
- `systemTool` has a name only.                                        (botocore 1.44.0 service model, read 2026-11-15)
- Nova Premier has grounding, Nova 2 grounding and the code interpreter; the caller needs the permission
  `bedrock:InvokeTool` in a region of the US.                 (AWS documentation: Nova system tools; langchain-aws)
- A tool is the application's (`toolSpec`), the provider's (`systemTool`) or a cache point after the tools before it; a
  description is never empty.                                        (botocore 1.44.0 service model, read 2026-11-15)
- `strict` is accepted by the models that list it.                                    (pi-ai 1.5.0 catalogue)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Options, ThinkingLevel, Tool, ToolDefinition
from segue.conversation.fast_checks import is_plain
from segue.errors import DecodeError, EncodeError
from segue.models.thinking import LEVELS_BY_EFFORT, level_for_budget
from segue.protocols.bedrock_converse.native import MARK, add_mark, encode_mark, json_text, restore_block
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.families.claude_thinking import (
    EFFORTS,
    Thinking,
    decode_thinking_object,
    effort_of,
    encode_thinking_object,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, MISSING, Block, Wire, object_of, same
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import integer_of, native_definition, real_of, strings_of, text_of
from segue.protocols.kit.schemas import choose_form, received_form
from segue.protocols.kit.server_tools import ServerTool
from segue.protocols.kit.streaming import parse_frame
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore

_NOVA_DEFAULT: Final[ThinkingLevel] = "high"
_NOVA_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {**EFFORTS, "xhigh": "high", "max": "high"}


def decode_thinking(body: Mapping[str, object], endpoint: Endpoint) -> Thinking:
    """Read how much thinking a body requests; None when it does not mention thinking."""
    fields = object_of(body.get("additionalModelRequestFields"))
    effort = object_of(fields.get("output_config")).get("effort")
    effort = text_of(effort) or text_of(object_of(body.get("outputConfig")).get("effort"))
    if "thinking" in fields:
        return decode_thinking_object(object_of(fields["thinking"]), LEVELS_BY_EFFORT.get(effort or ""), endpoint)
    if effort is not None and (endpoint.dialect.thinking_format == "adaptive" or not endpoint.model.id):
        # A body does not name its model: the URL does.
        return LEVELS_BY_EFFORT.get(effort)
    if "reasoning_effort" in fields:
        return LEVELS_BY_EFFORT.get(text_of(fields["reasoning_effort"]) or "")
    if "reasoning" in fields:
        return LEVELS_BY_EFFORT.get(text_of(object_of(fields["reasoning"]).get("effort")) or "")
    if "reasoningConfig" in fields:
        return _decode_nova(object_of(fields["reasoningConfig"]))
    return None


def _decode_nova(config: Mapping[str, object]) -> Thinking:
    match config.get("type"):
        case "disabled":
            return "off"
        case "enabled":
            return LEVELS_BY_EFFORT.get(text_of(config.get("maxReasoningEffort")) or "") or _NOVA_DEFAULT
        case _:
            return None


def encode_thinking(options: Options, endpoint: Endpoint) -> Wire:
    """Write how much thinking is requested, as additional fields; empty where the model has no field for it."""
    requested, model = options.thinking, endpoint.model
    wire_format = endpoint.dialect.thinking_format
    if requested is None:
        return {}
    if wire_format in ("budget", "adaptive"):
        thinking, effort = encode_thinking_object(requested, endpoint)
        return {"thinking": thinking} if effort is None else {"thinking": thinking, "output_config": {"effort": effort}}
    level = level_for_budget(requested) if isinstance(requested, int) else requested
    match wire_format:
        case "effort" | "nested":
            effort = model.thinking_levels.get(level) if level == "off" else effort_of(level, endpoint)
            if effort is None:
                return {}  # thinking cannot be disabled
            return {"reasoning_effort": effort} if wire_format == "effort" else {"reasoning": {"effort": effort}}
        case "level":
            if level == "off":
                return {"reasoningConfig": {"type": "disabled"}}
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": _NOVA_EFFORTS[level]}}
        case _:
            return {}


_READ: Final = "2026-11-15"
_SOURCE: Final = "botocore 1.44.0; AWS documentation: Nova system tools"

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="nova_grounding",
        kind="web_search",
        key=("systemTool", "name"),
        pattern="nova_grounding",
        template={"systemTool": {"name": "nova_grounding"}},
        source=_SOURCE,
        read=_READ,
    ),
    ServerTool(
        name="nova_code_interpreter",
        kind="code_execution",
        key=("systemTool", "name"),
        pattern="nova_code_interpreter",
        template={"systemTool": {"name": "nova_code_interpreter"}},
        source=_SOURCE,
        read=_READ,
    ),
)


def decode_tools(blocks: Sequence[Block], endpoint: Endpoint) -> tuple[Tool, ...]:
    """Read the tools, and the cache points after them."""
    tools: list[Tool] = []
    for block in blocks:
        if MARK in block and tools and (marked := add_mark(tools[-1], block)):
            tools[-1] = marked
        else:
            tools.append(_decode_tool(block, endpoint) or NativeTool(protocol=PROTOCOL, definition=block))
    return tuple(tools)


def _decode_tool(block: Block, endpoint: Endpoint) -> ToolDefinition | None:
    spec = object_of(block.get("toolSpec")) if len(block) == 1 else EMPTY
    schema = object_of(spec.get("inputSchema"))
    name, parameters = spec.get("name"), schema.get("json")
    description, strict = spec.get("description"), spec.get("strict")
    if not isinstance(name, str) or len(schema) != 1 or not isinstance(parameters, Mapping):
        return None
    known: set[str] = set()
    if isinstance(description, str):
        known.add("description")
    if isinstance(strict, bool):
        known.add("strict")
    tool = ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=cast("Mapping[str, object]", parameters),
        strict=strict if isinstance(strict, bool) else None,
    )
    extra = keep(PROTOCOL, spec, _default_spec(tool, endpoint), known=known)
    return tool if extra is None else replace(tool, extra=extra)


def encode_tools(tools: Sequence[Tool], endpoint: Endpoint) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: one is a native tool of another protocol.
    """
    blocks: list[Wire] = []
    for index, tool in enumerate(tools):
        if tool.kind == "native":
            definition = native_definition(PROTOCOL, tool, ("tools", index))
            blocks.append(definition if isinstance(definition, dict) else dict(definition))
        else:
            spec = _default_spec(tool, endpoint)
            blocks.append({"toolSpec": spec if tool.extra is None else restore_block(spec, tool.extra)})
        if tool.cache_mark is not None:
            blocks.append(encode_mark(tool.cache_mark))
    return blocks


def _default_spec(tool: ToolDefinition, endpoint: Endpoint) -> Wire:
    spec: Wire = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": tool.parameters}
    if tool.strict is not None and endpoint.dialect.strict_tools:
        spec["strict"] = tool.strict
    return spec


Place: TypeAlias = tuple[str, str]
"""A container of the body, and a key in it."""

INFERENCE: Final = "inferenceConfig"
TOOLS: Final = "toolConfig"
OUTPUT: Final = "outputConfig"
FIELDS: Final = "additionalModelRequestFields"
REPLY_FIELDS: Final = "additionalModelResponseFields"

_CONTAINERS: Final = (INFERENCE, TOOLS, OUTPUT, FIELDS)
_CONTEXT_KEYS: Final = frozenset({"messages", "system"})
_MODEL: Final = "modelId"
_EMPTY: Final = "empty"
_RECEIVED: Final = "received"
_UNSUPPORTED: Final = ("seed", "parallel_tool_calls", "session_id", "user_id")

_PLACES: Final[Mapping[str, tuple[Place, ...]]] = {
    "max_tokens": ((INFERENCE, "maxTokens"),),
    "temperature": ((INFERENCE, "temperature"),),
    "top_p": ((INFERENCE, "topP"),),
    "stop": ((INFERENCE, "stopSequences"),),
    "tool_choice": ((TOOLS, "toolChoice"),),
    "output_schema": ((OUTPUT, "textFormat"),),
    "thinking": (
        (OUTPUT, "effort"),
        (FIELDS, "thinking"),
        (FIELDS, "output_config"),
        (FIELDS, "reasoning_effort"),
        (FIELDS, "reasoning"),
        (FIELDS, "reasoningConfig"),
    ),
}
"""A field of `Options` -> the places of a body that it is read from."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Block, endpoint: Endpoint, model: str | None) -> Options:
    """Read everything that is not the conversation itself; `model` is the id that the body names."""
    values = _read_values(body, endpoint)
    options = Options(**values)  # pyright: ignore[reportArgumentType] - the fields have their types
    received = _received(body)
    default = _with_containers(_default_options(options, endpoint))
    named = model or endpoint.model.id
    known: set[str] = set() if model is None else {_MODEL}
    choices: Wire = {}
    for field, places in _PLACES.items():
        if any(not same(_at(received, place), _at(default, place)) for place in places):
            choices.update(choose(field, _condition(field, values[field], named), _RECEIVED))
            if values[field] is not None:
                known.update(".".join(place) for place in places)
    schema = options.output_schema
    if schema is not None:
        form = choose_form(schema, _schema_form(received))
        choices.update(form)
        known.update(f"{OUTPUT}.textFormat.structure.jsonSchema.{name}" for name in ("name", "description") if form)
    choices.update(choose(_EMPTY, [], [key for key in _CONTAINERS if body.get(key) == {}]))
    for key in _CONTAINERS:
        if received[key] is not None and not isinstance(received[key], Mapping):
            del default[key]  # it is not a format of an option, so that leaving it out is reported
    extra = keep(PROTOCOL, received, default, known=known, choices=choices, only_for=named)
    return options if extra is None else replace(options, extra=extra)


def _received(body: Block) -> Wire:
    """Return the options of a body; every container is there, and tools are not in theirs."""
    wire = _with_containers({key: value for key, value in body.items() if key not in _CONTEXT_KEYS})
    config = wire[TOOLS]
    if isinstance(config, dict) and "tools" in config:
        wire[TOOLS] = {key: value for key, value in cast("Wire", config).items() if key != "tools"}
    return wire


def _with_containers(wire: Wire) -> Wire:
    for key in _CONTAINERS:
        wire.setdefault(key, {})
    return wire


def _at(wire: Block, place: Place) -> object:
    return object_of(wire[place[0]]).get(place[1], MISSING)


def _condition(field: str, value: object, model: str) -> object:
    """Return what has to be unchanged for the received format of an option to be written."""
    return [value, model] if field == "thinking" else value


def _read_values(body: Block, endpoint: Endpoint) -> Wire:
    """Read the fields of `Options`; a value of an unexpected type counts as none."""
    config = object_of(body.get(INFERENCE))
    return {
        "max_tokens": integer_of(config.get("maxTokens")),
        "temperature": real_of(config.get("temperature")),
        "top_p": real_of(config.get("topP")),
        "stop": strings_of(config.get("stopSequences")),
        "tool_choice": _decode_choice(object_of(object_of(body.get(TOOLS)).get("toolChoice"))),
        "output_schema": _decode_schema(object_of(object_of(body.get(OUTPUT)).get("textFormat"))),
        "thinking": decode_thinking(body, endpoint),
    }


def _decode_choice(choice: Block) -> str | None:
    if "auto" in choice:
        return "auto"
    if "any" in choice:
        return "required"
    name = object_of(choice.get("tool")).get("name")
    return name if isinstance(name, str) and name not in ("auto", "none", "required") else None


def _decode_schema(wire: Block) -> Block | None:
    text = object_of(object_of(wire.get("structure")).get("jsonSchema")).get("schema")
    if wire.get("type") != "json_schema" or not isinstance(text, str):
        return None
    try:
        schema = parse_frame(text)
    except DecodeError:
        return None
    return schema if is_plain([schema]) else None  # NaN in the text, or a schema that is too deep


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, model: str | None) -> Wire:
    """Write the options; `model` is the id that the body names.

    Raises:
        EncodeError: an option is set that the wire does not support.
    """
    refuse_options(PROTOCOL, options, _UNSUPPORTED)
    wire = _default_options(options, endpoint)
    if options.extra is not None and PROTOCOL in options.extra:
        wire = _restore_options(wire, options, model or endpoint.model.id)
    if options.extra is not None:
        _name_schema(wire, options)
    if options.thinking not in (None, "off", 0) and decode_thinking(wire, endpoint) is None:
        reason = f"{endpoint.model.id} has no thinking settings; remove `thinking` or choose another model"
        raise EncodeError(reason, path=("options", "thinking"))
    return wire


def _schema_form(wire: Block) -> Block:
    """Return the object that holds the schema of a body, its name and its description."""
    form = object_of(object_of(wire.get(OUTPUT)).get("textFormat"))
    return object_of(object_of(form.get("structure")).get("jsonSchema"))


def _name_schema(wire: Wire, options: Options) -> None:
    """Write the name and the description that were received with the schema, which hold for every model."""
    schema, form = options.output_schema, _schema_form(wire)
    if schema is None or not form or "name" in form:
        return
    given = received_form(options.extra, PROTOCOL, schema)
    if given:
        structure = {"jsonSchema": {**given, **form}}
        wire[OUTPUT] = {**object_of(wire[OUTPUT]), "textFormat": {"type": "json_schema", "structure": structure}}


def _restore_options(default: Wire, options: Options, model: str) -> Wire:
    """Write what was received, except for options that have changed since."""
    extra = options.extra
    wire = restore(_with_containers(dict(default)), extra, PROTOCOL, model=model)
    held = data_of(extra, PROTOCOL)
    changed = [
        place
        for field, places in _PLACES.items()
        if chosen(extra, PROTOCOL, field, _condition(field, getattr(options, field), model)) != _RECEIVED
        for place in places
    ]
    needed = {place[0] for place in changed if place[1] in object_of(default.get(place[0]))}
    for key in _CONTAINERS:
        if key in held and not isinstance(held[key], Mapping) and key not in needed:
            wire[key] = held[key]
    for place in changed:
        _set_default(wire, default, place)
    empty = cast("Sequence[object]", chosen(extra, PROTOCOL, _EMPTY, [], model=model))
    return {key: value for key, value in wire.items() if value != {} or key not in _CONTAINERS or key in empty}


def _set_default(wire: Wire, default: Wire, place: Place) -> None:
    container, key = place
    value = object_of(default.get(container)).get(key, MISSING)
    held = wire[container]
    if isinstance(held, dict) and not same(cast("Wire", held).get(key, MISSING), value):
        rest = {name: inner for name, inner in cast("Wire", held).items() if name != key}
        wire[container] = rest if value is MISSING else {**rest, key: value}


def _default_options(options: Options, endpoint: Endpoint) -> Wire:
    config: Wire = {}
    for key, value in (
        ("maxTokens", options.max_tokens),
        ("temperature", options.temperature),
        ("topP", options.top_p),
        ("stopSequences", None if options.stop is None else list(options.stop)),
    ):
        if value is not None:
            config[key] = value
    wire: Wire = {INFERENCE: config} if config else {}
    if options.tool_choice is not None:
        wire[TOOLS] = {"toolChoice": _encode_choice(options.tool_choice)}
    if options.output_schema is not None:
        structure = {"jsonSchema": {"schema": json_text(options.output_schema)}}
        wire[OUTPUT] = {"textFormat": {"type": "json_schema", "structure": structure}}
    fields = encode_thinking(options, endpoint)
    if fields:
        wire[FIELDS] = fields
    return wire


def _encode_choice(choice: str) -> Wire:
    match choice:
        case "auto":
            return {"auto": {}}
        case "required":
            return {"any": {}}
        case "none":
            reason = f"{PROTOCOL} does not support `tool_choice` none; remove the tools"
            raise EncodeError(reason, path=("options", "tool_choice"))
        case name:
            return {"tool": {"name": name}}
