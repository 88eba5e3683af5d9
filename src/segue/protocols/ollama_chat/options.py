"""The options of an Ollama request, both ways.

Options without `stream` ask for a whole reply, as on every other wire, so they are written with `stream: false`. A body
without `stream` asks for a stream.

The choice `thinking` holds a `think` that is not the default one for the level that was read; several values have the
same level. The choice `refused` is "received" for a body with content in a format that the server refuses: such content
is written as it was received when that body is written again, and in the default format in a new request.

Tools on Ollama's wire, both ways: {type: function, function: {name, description, parameters}}.

Fact this file relies on: the server reads those keys and no others.     (ollama server source @fb30760, 2026-11-15)

Facts:
- Sampling options are in `options`, among many that only Ollama has (`num_ctx`, `min_p`, ...); `stop` is a list.
                                                       (ollama server source @fb30760; ollama 0.6.3; read 2026-11-15)
- `num_predict` of -1 means no limit.                                                         (ollama-python #560)
- `stream` is true by default; `format` is a JSON schema, or "json".                     (server source @fb30760)
- `think` is true, false, or low, medium, high, max; gpt-oss accepts only the levels.
                                                           (server source @fb30760; Ollama documentation: thinking)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Options, ThinkingLevel, Tool, ToolDefinition
from segue.models.thinking import level_for_budget
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of, same
from segue.protocols.kit.reading import expect_objects, integer_of, native_definition, real_of, strings_of
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.ollama_chat.rules import PROTOCOL

_KNOWN: Final = frozenset({"function.description"})


def decode_tools(received: object) -> tuple[Tool, ...]:
    """Read the tools of a body.

    Raises:
        DecodeError: it is not a list of objects.
    """
    return tuple(_decode_tool(tool) for tool in expect_objects(received, ("tools",))) if received else ()


def _decode_tool(wire: Block) -> Tool:
    function = object_of(wire.get("function"))
    name, description, parameters = function.get("name"), function.get("description"), function.get("parameters")
    is_ours = isinstance(name, str) and isinstance(description, str | None) and isinstance(parameters, Mapping | None)
    if not is_ours or wire.get("type") not in (None, "function"):
        return NativeTool(protocol=PROTOCOL, definition=dict(wire))
    tool = ToolDefinition(
        name=cast("str", name),
        description=description if isinstance(description, str) else "",
        parameters=cast("Block", parameters or EMPTY),
    )
    extra = keep(PROTOCOL, wire, _default_tool(tool), known=_KNOWN)
    return tool if extra is None else replace(tool, extra=extra)


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: a native tool of another protocol.
    """
    return [_encode_tool(tool, index) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, index: int) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, ("tools", index)))
    return restore(_default_tool(tool), tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition) -> Wire:
    function: Wire = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


_SWITCHED_ON: Final[ThinkingLevel] = "medium"
"""The level of `think: true`, which names none; it is the default of gpt-oss."""
_LEVEL_VALUES: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",  # the wire has "max", but only models that list it have a level above high
}
_LEVELS: Final[Mapping[object, ThinkingLevel]] = {"low": "low", "medium": "medium", "high": "high", "max": "max"}

_THINK: Final = "think"
_THINKING: Final = "thinking"
_REFUSED: Final = "refused"
_RECEIVED: Final = "received"
_CONTEXT_KEYS: Final = frozenset({"messages", "tools"})


class _Setting(NamedTuple):
    """One option: its field, its key, its reader and its writer."""

    field: str
    key: str
    read: Callable[[object], object]
    write: Callable[[object, Endpoint], object]


def _unchanged(value: object, _: Endpoint) -> object:
    return value


def _read_limit(value: object) -> object:
    limit = integer_of(value)
    return limit if limit is not None and limit > 0 else None


def _write_stops(value: object, _: Endpoint) -> object:
    return list(cast("tuple[str, ...]", value))


def _read_schema(value: object) -> object:
    return cast("object", value) if isinstance(value, Mapping) else None


def _read_think(value: object) -> object:
    if isinstance(value, bool):
        return _SWITCHED_ON if value else "off"
    return _LEVELS.get(value) if isinstance(value, str) else None


def _write_think(value: object, endpoint: Endpoint) -> object:
    thinking = cast("ThinkingLevel | int", value)
    level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
    if level == "off":
        return False
    if endpoint.dialect.thinking_format != "word":
        return True
    return endpoint.model.thinking_levels.get(level) or _LEVEL_VALUES[level]


_BODY: Final = (
    _Setting(_THINKING, _THINK, _read_think, _write_think),
    _Setting("output_schema", "format", _read_schema, _unchanged),
)
_INNER: Final = (
    _Setting("max_tokens", "num_predict", _read_limit, _unchanged),
    _Setting("temperature", "temperature", real_of, _unchanged),
    _Setting("top_p", "top_p", real_of, _unchanged),
    _Setting("seed", "seed", integer_of, _unchanged),
    _Setting("stop", "stop", strings_of, _write_stops),
)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Block, endpoint: Endpoint, model: str | None, *, has_refused_format: bool) -> Options:
    """Read everything that is not the conversation itself; `model` is the id that the body names."""
    stream, inner = body.get("stream"), body.get("options")
    values: Wire = {"stream": stream if isinstance(stream, bool) else True}
    values.update((setting.field, setting.read(body.get(setting.key))) for setting in _BODY)
    values.update((setting.field, setting.read(object_of(inner).get(setting.key))) for setting in _INNER)
    options = Options(**values)  # pyright: ignore[reportArgumentType] - the fields have their types
    named = endpoint.model.id if model is None else model
    received = {key: value for key, value in body.items() if key not in _CONTEXT_KEYS}
    default = _default_options(options, endpoint, named)
    choices = choose(_REFUSED, "default", _RECEIVED) if has_refused_format else Wire()
    if _THINK in default and not same(default[_THINK], received[_THINK]):
        choices.update(choose(_THINKING, options.thinking, {_THINK: received[_THINK]}))
        received[_THINK] = default[_THINK]
    known = () if inner else ("options",)
    extra = keep(PROTOCOL, received, default, known=known, choices=choices, only_for=named)
    return options if extra is None else replace(options, extra=extra)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, model: str | None) -> Wire:
    """Write the options, and the id of the model that the body names."""
    named = endpoint.model.id if model is None else model
    body = _default_options(options, endpoint, named)
    if options.extra is not None:
        restore(body, options.extra, PROTOCOL, model=named)
        think = chosen(options.extra, PROTOCOL, _THINKING, options.thinking, model=named)
        body.update(object_of(think))
    return body


def _default_options(options: Options, endpoint: Endpoint, model: str) -> Wire:
    body: Wire = {"model": model, **_write(options, _BODY, endpoint), "stream": bool(options.stream)}
    inner = _write(options, _INNER, endpoint)
    if inner:
        body["options"] = inner
    return body


def _write(options: Options, settings: tuple[_Setting, ...], endpoint: Endpoint) -> Wire:
    wire: Wire = {}
    for setting in settings:
        value = cast("object", getattr(options, setting.field))
        if value is not None:
            wire[setting.key] = setting.write(value, endpoint)
    return wire


def is_verbatim(options: Options, endpoint: Endpoint, model: str | None) -> bool:
    """Whether the received body is written again, with content in a format that the server refuses."""
    named = endpoint.model.id if model is None else model
    return chosen(options.extra, PROTOCOL, _REFUSED, "default", model=named) == _RECEIVED
