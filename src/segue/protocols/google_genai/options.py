"""The options of a generateContent request, both ways.

Facts this file rests on:
- Sampling, limits, schema and thinking stand in `generationConfig`, the choice of tools in `toolConfig`. The URL
  decides whether the reply is streamed.                                 (google-genai 3.1.0, read 2026-11-15)
- Up to 2.5 thinking has a budget (0: off, -1: the model decides), from 3 on a level: MINIMAL, LOW, MEDIUM, HIGH. Some
  models cannot turn it off. Thoughts are in the reply only with `includeThoughts`.
                             (Google documentation: thinking; google-genai 3.1.0; catalogue; read 2026-11-15)
- `ANY` forces a call, of the `allowedFunctionNames` if there are any; `VALIDATED` does not force one and follows the
  schemas; `AUTO` and `NONE`.                                                           (google-genai 3.1.0)
- A choice of functions is refused where none are declared.                                       (kelivo #317)
- A schema of the answer needs `responseMimeType` beside it.                            (google-genai 3.1.0)

Format is written again for the same model only. Choice (`kit.verbatim`): `empty`, the objects that were received empty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Options, ThinkingLevel, Tool
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.google_genai.keys import keep_format, name_in, read_keys, texts_of
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.schemas import from_openapi
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import integer_of, real_of, strings_of, text_of
from segue.protocols.kit.verbatim import choose, chosen, data_of, restore

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
    if thinking.get(SHOWN) is False:
        cast("Wire", cast("Wire", default[GENERATION])[THINKING]).pop(SHOWN, None)
    model = _model_id(text_of(received.get("model")), endpoint)
    extra = keep_format(filled, default, known, choose("empty", [], empty), only_for=model)
    return options if extra is None else replace(options, extra=extra)


def _filled(received: Block, empty: list[str]) -> Wire:
    """Give a body that has the objects of options, as the default has them; the ones received empty are listed."""
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
    """Remove names that were received beside a choice of tools which has changed since."""
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
