"""The options of a Bedrock request, both ways.

Facts this file rests on:
- Limits and sampling stand in `inferenceConfig`, the tool choice in `toolConfig`, a schema for the answer (a text)
  in `outputConfig`; fields of one model stand in `additionalModelRequestFields`. Without a limit the model's own
  applies.                                                           (botocore 1.44.0 service model, read 2026-11-15)
- Claude has the thinking fields of its own wire there: `thinking` with a budget, or adaptive with
  `output_config.effort` beside it; without an effort an adaptive model does not show its thinking.
                                                   (litellm #36507, higress #4154; 2026-08; recorded traffic, 2026-11)
- `outputConfig.effort` is the service's newer field for the same; it is read.                       (service model)
- GPT has `reasoning: {effort}`, gpt-oss a flat `reasoning_effort`, Nova 2 `reasoningConfig` with
  `maxReasoningEffort`.                         (pi-ai 1.5.0; AWS Nova 2 guide: extended thinking; 2026-11-15)

What was received stays with the options as long as the option that it belongs to is unchanged. The choices are named
like the fields of `Options`; each holds the value that was read. That of `thinking` holds the model as well, because
another model has other fields. The choice `empty` lists the containers that were received without any member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.conversation.fast_checks import is_plain
from segue.errors import DecodeError, EncodeError
from segue.protocols.bedrock_converse.native import json_text
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.thinking import decode_thinking, encode_thinking
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import MISSING, Block, Wire, object_of, same
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import integer_of, real_of, strings_of
from segue.protocols.kit.schemas import choose_form, received_form
from segue.protocols.kit.streaming import parse_frame
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore

Place: TypeAlias = tuple[str, str]
"""A container of the body, and a key in it."""

INFERENCE: Final = "inferenceConfig"
TOOLS: Final = "toolConfig"
OUTPUT: Final = "outputConfig"
FIELDS: Final = "additionalModelRequestFields"

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
            del default[key]  # it is no format of an option, so that leaving it out is reported
    extra = keep(PROTOCOL, received, default, known=known, choices=choices, only_for=named)
    return options if extra is None else replace(options, extra=extra)


def _received(body: Block) -> Wire:
    """Give the options of a body; every container is there, and tools are not in theirs."""
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
    """Give what has to be unchanged for the received format of an option to be written."""
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
