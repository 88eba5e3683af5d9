"""The options of a request, both ways.

Each option is read from some keys and written to some keys. What a body holds for one option in another format is one
choice, under the name of the option: it is made again only for the same model, and while the option is unchanged. The
name and the description of a schema are their own choice, which holds for every model.

The parameters that turn thinking on and off at the vendors of this protocol, both ways.

Tools and the tool choice, both ways.

Choice that tools keep: `field`, "functions" for a tool of the older format, at the provider it was sent to.

Facts:
- Names and values of the parameters.                                                  (openai 3.49.0; read 2026-11-15)
- The token limit has two names; `user` became `safety_identifier`; `prompt_cache_key`, at most 64 characters, names a
  session, and `prompt_cache_retention` asks for a long cache.           (openai 3.49.0; pi-ai 1.5.0; read 2026-11-15)
- A stream reports usage only on request.                                                           (openai 3.49.0)
- The parameters for on and off, by the dialect's `thinking_format`. A level is sent as the model's own value for it; a
  vendor without an effort gets only on or off.                       (pi-ai 1.5.0, thinkingFormat; read 2026-11-15)
- `off` is sent where there is a switch, unless the model cannot be switched off. Where there is only an effort, it is
  the model's value for `off`, or nothing.                                                                (the same)
- A budget has its own field on some servers; elsewhere the nearest level is sent.
                       (vLLM thinking_token_budget, Qwen and SGLang thinking_budget, llama.cpp thinking_budget_tokens)
- Bodies for one vendor use the parameters of another, so every format is read at every vendor.
                                                                                        (recorded traffic, 2026-11)
- A tool is `function` {name, description, parameters, strict} or `custom`; an older format has bare `functions`.
                                                                                    (openai 3.49.0; read 2026-11-15)
- Gateways and hosts run tools of their own under other types.                         (recorded traffic, 2026-11)
- A choice is a string or an object that names a tool, with or without its type; `allowed_tools` narrows it and is kept
  as data.                                                             (openai 3.49.0; recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import Context, NativeTool, Options, ThinkingLevel, Tool, ToolDefinition
from segue.models.model import Model
from segue.models.thinking import DEFAULT_BUDGETS, THINKING_LEVELS, level_for_budget
from segue.protocols.families.functions import (
    TEXT_SCHEMA,
    known_keys,
    read_function,
    read_output_schema,
    write_function,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import ATOMS, MISSING, Block, Wire, object_of, same
from segue.protocols.kit.option_table import Setting, flag, listed, number, plain, text, texts
from segue.protocols.kit.reading import expect_objects, integer_of, native_definition, text_of
from segue.protocols.kit.schemas import can_be_strict, choose_form, chosen_form
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_chat.content import choice_extra, find_mark, finish, without_mark
from segue.protocols.openai_chat.rules import PROTOCOL

THINKING_KEYS: Final = (
    "reasoning_effort",
    "reasoning",
    "thinking",
    "enable_thinking",
    "thinking_budget",
    "thinking_token_budget",
    "thinking_budget_tokens",
    "chat_template_kwargs",
    "chat_template_args",
)
THINKING_FIELDS: Final = frozenset(
    {"effort", "enabled", "max_tokens", "type", "budget_tokens", "enable_thinking", "thinking", "preserve_thinking"}
)
"""The keys of objects among them that are read, or written with what is."""
_BUDGET_KEYS: Final = ("thinking_budget", "thinking_token_budget", "thinking_budget_tokens")
_SWITCHED_ON: Final[ThinkingLevel] = "medium"
"""The level of a bare switch, which names none: the default of most vendors."""


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_thinking(thinking: ThinkingLevel | int, endpoint: Endpoint) -> Wire:
    """Write a level or a budget in the provider's format."""
    model, dialect = endpoint.model, endpoint.dialect
    if isinstance(thinking, int) and thinking > 0:
        budget = _write_budget(thinking, endpoint)
        if budget is not None:
            return budget
    level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
    if level == "off":
        if dialect.off_value and "off" not in model.thinking_levels and dialect.thinking_format == "effort":
            return {"reasoning_effort": dialect.off_value}
        return _write_off(dialect.thinking_format, model) if model.reasoning else {}
    effort = model.thinking_levels.get(level) or level
    wire = _write_on(dialect.thinking_format, effort, model, level)
    if dialect.takes_effort():
        wire["reasoning_effort"] = effort
    return wire


def _write_budget(tokens: int, endpoint: Endpoint) -> Wire | None:
    dialect = endpoint.dialect
    if dialect.thinking_format == "openrouter":
        return {"reasoning": {"max_tokens": tokens}}
    if dialect.thinking_format == "budget":
        return {"thinking": {"type": "enabled", "budget_tokens": tokens}}
    if dialect.thinking_budget_field is None:
        return None
    switch = _write_on(dialect.thinking_format, "", endpoint.model, _SWITCHED_ON)
    return {**switch, dialect.thinking_budget_field: tokens}


_ENABLED: Final[Block] = {"thinking": {"type": "enabled"}}
_DISABLED: Final[Block] = {"thinking": {"type": "disabled"}}
_KEPT: Final[Block] = {"thinking": {"type": "enabled", "clear_thinking": False}}
"""With it, the reasoning of earlier turns is kept.                         (Z.ai documentation: preserved thinking)"""
_SWITCHES: Final[Mapping[str, tuple[Block, Block]]] = {
    "deepseek": (_ENABLED, _DISABLED),
    "switch": (_ENABLED, _DISABLED),
    "zai": (_KEPT, _DISABLED),
    "adaptive": ({"thinking": {"type": "adaptive"}}, _DISABLED),
    "budget": ({}, _DISABLED),  # how much it thinks is written with the level
    "together": ({"reasoning": {"enabled": True}}, {"reasoning": {"enabled": False}}),
    "baseten": ({"chat_template_args": {"enable_thinking": True}}, {"chat_template_args": {"enable_thinking": False}}),
    "qwen": ({"enable_thinking": True}, {"enable_thinking": False}),
    "qwen-template": (
        {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}},
        {"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}},
    ),
    "chat-template": (
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ),
}
"""What turns thinking on, and what turns it off, without a level."""


def _write_on(form: str, effort: str, model: Model, level: ThinkingLevel) -> Wire:
    match form:
        case "nested" | "openrouter":
            return {"reasoning": {"effort": effort}}
        case "ling":
            # An effort is supported only for models whose values for it are known.                    (pi-ai 1.5.0)
            return {"reasoning": {"effort": effort}} if model.thinking_levels.get(level) else {}
        case "word":
            return {"thinking": effort}
        case "budget":
            return {"thinking": {"type": "enabled", "budget_tokens": DEFAULT_BUDGETS.get(level, 8192)}}
        case _:
            return dict(_SWITCHES[form][0]) if form in _SWITCHES else {}


def _write_off(form: str, model: Model) -> Wire:
    own = model.thinking_levels.get("off")
    effort = model.thinking_levels.get("off", "none")
    match form:
        case "effort" | "nested":
            # A model without a value of its own gets nothing: an unknown effort is refused.
            return {} if not own else {"reasoning_effort": own} if form == "effort" else {"reasoning": {"effort": own}}
        case "openrouter" | "word" if effort is not None:
            return {"reasoning": {"effort": effort}} if form == "openrouter" else {"thinking": effort}
        case _:
            return dict(_SWITCHES[form][1]) if form in _SWITCHES and effort is not None else {}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_thinking(body: Block, endpoint: Endpoint) -> ThinkingLevel | int | None:
    """Read the level or budget of a body; None when it has none, or in a format that segue does not know."""
    for key in _BUDGET_KEYS:
        if (tokens := _tokens(body.get(key))) is not None:
            return tokens
    for inner in (object_of(body.get("reasoning")), object_of(body.get("thinking"))):
        for key in ("max_tokens", "budget_tokens"):
            if (tokens := _tokens(inner.get(key))) is not None:
                return tokens
    reasoning, thinking = object_of(body.get("reasoning")), body.get("thinking")
    for effort in (body.get("reasoning_effort"), reasoning.get("effort"), thinking):
        if (level := _level(effort, endpoint.model)) is not None:
            return level
    return _read_switch(body, reasoning, object_of(thinking))


def _read_switch(body: Block, reasoning: Block, thinking: Block) -> ThinkingLevel | None:
    switches = (
        reasoning.get("enabled"),
        {"enabled": True, "adaptive": True, "auto": True, "disabled": False}.get(str(thinking.get("type"))),
        body.get("enable_thinking"),
        object_of(body.get("chat_template_kwargs")).get("enable_thinking"),
        object_of(body.get("chat_template_kwargs")).get("thinking"),
        object_of(body.get("chat_template_args")).get("enable_thinking"),
    )
    for switch in switches:
        if isinstance(switch, bool):
            return _SWITCHED_ON if switch else "off"
    return None


def _level(effort: object, model: Model) -> ThinkingLevel | None:
    if not isinstance(effort, str):
        return None
    for level, own in model.thinking_levels.items():
        if own == effort and level in THINKING_LEVELS:
            return level
    if effort in THINKING_LEVELS:
        return effort
    return "off" if effort in ("none", "disabled") else None


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_COMMON_TOOL: Final = frozenset({"type", "function"})
_CUSTOM_KEYS: Final = ("name", "description")
_COMMON_FUNCTION: Final = frozenset({"name", "description", "parameters"})
"""The keys of most tools."""
_MODES: Final = frozenset({"auto", "none", "required"})
_OTHER_MODES: Final[Mapping[str, str]] = {"any": "required"}
"""What Mistral and servers that follow it accept in addition.          (mistralai 3.7.0; vLLM; read 2026-11-15)"""
_NAMED: Final = frozenset({"function", "tool"})
"""Types of a choice that names its tool directly, as the protocols of Anthropic and of OpenAI's Responses do."""


# -- tools -------------------------------------------------------------------------------------------------------------


def decode_tools(body: Block, endpoint: Endpoint) -> tuple[Tool, ...]:
    """Read the tools of a body, also those of the older format.

    Raises:
        DecodeError: they are not a list of objects.
    """
    given, old = body.get("tools"), body.get("functions")
    tools = [_decode_tool(tool, endpoint) for tool in expect_objects(given, ("tools",))] if given is not None else []
    if isinstance(old, list):
        tools += [_decode_old(function, endpoint) for function in expect_objects(cast("object", old), ("functions",))]
    return tuple(tools)


def _decode_tool(tool: Block, endpoint: Endpoint) -> Tool:
    if tool.get("type") == "custom" and isinstance(object_of(tool.get("custom")).get("name"), str):
        return _decode_custom(tool, object_of(tool["custom"]), endpoint)
    function = object_of(tool.get("function"))
    if tool.get("type", "function") != "function" or not isinstance(function.get("name"), str):
        mark = find_mark(tool)
        definition = without_mark(tool, mark)
        return NativeTool(protocol=PROTOCOL, definition=definition, cache_mark=mark)
    return _decode_function(tool, function, {}, endpoint)


def _decode_custom(tool: Block, custom: Block, endpoint: Endpoint) -> ToolDefinition:
    """Read a tool that takes one text; other protocols have it as a function with the argument `input`."""
    choices = choose("field", "function", "custom")
    read = ToolDefinition(
        name=str(custom["name"]),
        description=text_of(custom.get("description")) or "",
        parameters=TEXT_SCHEMA,
        cache_mark=find_mark(tool),
        extra=choice_extra(choices),
    )
    known = [f"custom.{key}" for key in ("description",) if isinstance(custom.get(key), str)]
    return replace(read, extra=keep(PROTOCOL, tool, _encode_function(read, endpoint), known, choices))


def is_custom(tool: ToolDefinition) -> bool:
    """Whether a tool is written as `custom`."""
    return tool.extra is not None and chosen(tool.extra, PROTOCOL, "field", "function") == "custom"


def _decode_old(function: Block, endpoint: Endpoint) -> Tool:
    choices = choose("field", _tools_field(endpoint), "functions")
    return _decode_function({"type": "function", "function": function}, function, choices, endpoint)


def _decode_function(tool: Block, function: Block, choices: Wire, endpoint: Endpoint) -> ToolDefinition:
    name, description = function.get("name"), function.get("description")
    if not choices and _is_common(tool, function):
        return ToolDefinition(
            name=cast("str", name),
            description=cast("str", description or ""),
            parameters=cast("Block", function["parameters"]),
        )
    read = replace(read_function(function), cache_mark=find_mark(tool), extra=choice_extra(choices))
    extra = keep(PROTOCOL, tool, _encode_function(read, endpoint), known_keys(function), choices)
    return replace(read, extra=extra)


def _is_common(tool: Block, function: Block) -> bool:
    """Whether a tool with a name has the default format: nothing has to be kept of it."""
    if len(tool) != len(_COMMON_TOOL) or not (tool.keys() <= _COMMON_TOOL and function.keys() <= _COMMON_FUNCTION):
        return False
    description = function.get("description", MISSING)
    is_plain = description is MISSING or (isinstance(description, str) and bool(description))
    return is_plain and tool["type"] == "function" and type(function.get("parameters")) is dict and "name" in function


def _tools_field(endpoint: Endpoint) -> str:
    """Name the default field. A tool does not name its provider, so the choice does: it holds for no other."""
    return f"tools of {endpoint.model.provider}"


def encode_tools(tools: Sequence[Tool], endpoint: Endpoint) -> Wire:
    """Write the tools: `tools`, and `functions` for those of the older format.

    Raises:
        EncodeError: a tool that another protocol's provider runs.
    """
    fields: dict[str, list[object]] = {}
    for index, tool in enumerate(tools):
        if tool.kind == "native":
            wire = finish(dict(native_definition(PROTOCOL, tool, ("tools", index))), tool)
            fields.setdefault("tools", []).append(wire)
            continue
        wire = _encode_function(tool, endpoint)
        if tool.extra is not None and chosen(tool.extra, PROTOCOL, "field", _tools_field(endpoint)) == "functions":
            fields.setdefault("functions", []).append(wire["function"])
        else:
            fields.setdefault("tools", []).append(wire)
    return dict(fields)


def _encode_function(tool: ToolDefinition, endpoint: Endpoint) -> Wire:
    function = write_function(tool, strict_taken=endpoint.dialect.strict_tools)
    if not is_custom(tool):
        return finish({"type": "function", "function": function}, tool)
    return finish({"type": "custom", "custom": {key: function[key] for key in _CUSTOM_KEYS if key in function}}, tool)


# -- the tool choice ---------------------------------------------------------------------------------------------------


def decode_tool_choice(body: Block, _: Endpoint) -> str | None:
    """Read a tool choice of either format; None when it is more than a mode or the name of a tool."""
    given = body.get("tool_choice")
    if isinstance(given, Mapping):
        choice = cast("Block", given)
        for key in ("function", "custom"):
            if choice.get("type", key) == key and isinstance(inner := choice.get(key), Mapping):
                return _name(cast("Block", inner))
        if text_of(choice.get("type")) in _NAMED and set(choice) == {"type", "name"}:
            return _name(choice)
        return _mode(choice.get("type")) if set(choice) == {"type"} else None
    if given is None:
        given = body.get("function_call")
        if isinstance(given, Mapping):
            return _name(cast("Block", given))
    return _mode(given)


def _mode(given: object) -> str | None:
    mode = _OTHER_MODES.get(given, given) if isinstance(given, str) else None
    return mode if mode in _MODES else None


def _name(inner: Block) -> str | None:
    name = inner.get("name")
    # The name of a tool that is also a mode would be read as the mode.
    return name if isinstance(name, str) and name not in _MODES else None


def encode_tool_choice(choice: str) -> object:
    """Write a tool choice: a mode, or the name of a tool."""
    return choice if choice in _MODES else {"type": "function", "function": {"name": choice}}


_NO_OPTIONS: Final = Options()
_STREAM_USAGE: Final[Block] = {"include_usage": True}
_RETENTIONS: Final[Mapping[str, str]] = {"24h": "long", "in_memory": "short", "in-memory": "short"}


def _read_limit(body: Block, _: Endpoint) -> object:
    limit = integer_of(body.get("max_completion_tokens"))
    return integer_of(body.get("max_tokens")) if limit is None else limit


def _write_limit(value: object, endpoint: Endpoint) -> Wire:
    field = endpoint.dialect.max_tokens_field
    return {} if field == "none" else {field: value}


def _write_parallel(value: object, endpoint: Endpoint) -> Wire:
    return {"parallel_tool_calls": value} if endpoint.dialect.parallel_tool_calls else {}


def _schema_form(body: Block) -> Block:
    """Return the object that holds the schema of a body, its name and its description."""
    return object_of(object_of(body.get("response_format")).get("json_schema"))


def _write_schema(value: object, endpoint: Endpoint, options: Options = _NO_OPTIONS) -> Wire:
    if not endpoint.dialect.json_schema:
        return {"response_format": {"type": "json_object"}}
    schema = cast("Block", value)
    form: Wire = {**chosen_form(options.extra, PROTOCOL, schema), "schema": schema}
    is_strict = form.pop("strict", True)
    if endpoint.dialect.strict_schema and (not is_strict or can_be_strict(schema, endpoint.rules)):
        form["strict"] = is_strict
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _read_retention(body: Block, endpoint: Endpoint) -> object:
    retention = body.get("prompt_cache_retention")
    # A provider with cache marks does not read this key, so it is data there.
    if not isinstance(retention, str) or endpoint.dialect.cache_format == "anthropic":
        return None
    return _RETENTIONS.get(retention)


def _write_retention(value: object, endpoint: Endpoint) -> Wire:
    if value == "long" and endpoint.dialect.cache_format == "openai-key":
        if endpoint.dialect.cache_long == "24h":
            return {"prompt_cache_retention": "24h"}
        if endpoint.dialect.cache_long == "30m":
            return {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}
    return {}


def _write_session(value: object, endpoint: Endpoint) -> Wire:
    # Other providers get the session in a header.
    return {"prompt_cache_key": value} if endpoint.dialect.cache_format == "openai-key" else {}


def _read_user(body: Block, endpoint: Endpoint) -> object:
    keys = dict.fromkeys((endpoint.dialect.user_field, "user", "safety_identifier"))
    return next((value for key in keys if isinstance(value := body.get(key), str)), None)


def _write_user(value: object, endpoint: Endpoint) -> Wire:
    return {endpoint.dialect.user_field: value}


def _write_stream(value: object, endpoint: Endpoint) -> Wire:
    if value and endpoint.dialect.usage_in_stream:
        return {"stream": value, "stream_options": dict(_STREAM_USAGE)}
    return {"stream": value}


def _write_thinking(value: object, endpoint: Endpoint) -> Wire:
    return encode_thinking(cast("int", value), endpoint)


def _write_choice(value: object, _: Endpoint) -> Wire:
    return {"tool_choice": encode_tool_choice(str(value))}


def _write_setting(setting: Setting, value: object, options: Options, context: Context, endpoint: Endpoint) -> Wire:
    match setting.field:
        case "tool_choice" if any(
            tool.kind == "function" and tool.name == value and is_custom(tool) for tool in context.tools
        ):
            return {"tool_choice": {"type": "custom", "custom": {"name": value}}}
        case "output_schema":
            return _write_schema(value, endpoint, options)
        case "session_id" if options.cache_retention == "none":
            return {}
        case _:
            return setting.write(value, endpoint)


_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("max_tokens", ("max_completion_tokens", "max_tokens"), _read_limit, _write_limit),
    Setting("temperature", ("temperature",), number("temperature"), plain("temperature")),
    Setting("top_p", ("top_p",), number("top_p"), plain("top_p")),
    Setting("stop", ("stop",), texts("stop"), listed("stop")),
    Setting("seed", ("seed",), number("seed", whole=True), plain("seed")),
    Setting("thinking", THINKING_KEYS, decode_thinking, _write_thinking),
    Setting("tool_choice", ("tool_choice", "function_call"), decode_tool_choice, _write_choice),
    Setting("parallel_tool_calls", ("parallel_tool_calls",), flag("parallel_tool_calls"), _write_parallel),
    Setting("output_schema", ("response_format",), read_output_schema, _write_schema),
    Setting("cache_retention", ("prompt_cache_retention",), _read_retention, _write_retention),
    Setting("session_id", ("prompt_cache_key",), text("prompt_cache_key"), _write_session),
    Setting("user_id", ("user", "safety_identifier", "user_id"), _read_user, _write_user),
    Setting("stream", ("stream", "stream_options"), flag("stream"), _write_stream),
)


_USER_KEYS: Final = frozenset({"user", "safety_identifier", "user_id"})
_INDEXES: Final = {key: index for index, setting in enumerate(_SETTINGS) for key in setting.keys}


def _additions(options: Options, context: Context, endpoint: Endpoint) -> Wire:
    """Return the parameters that segue adds: do not store the request; stream arguments of calls; keep reasoning."""
    additions: Wire = {}
    if endpoint.dialect.store:
        additions["store"] = False
    if endpoint.dialect.tool_stream and options.stream and context.tools:
        additions["tool_stream"] = True
    if endpoint.dialect.thinking_format == "zai" and options.thinking is None and _has_thinking(context):
        additions.update(_KEPT)
    return additions


def _has_thinking(context: Context) -> bool:
    turns = (message for message in context.messages if message.role == "assistant")
    return any(piece.kind == "thinking" for message in turns for piece in message.content)


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_options(received: Block, default: Wire, context: Context, endpoint: Endpoint, target: str) -> Options:
    """Read the options of a body, and keep its format for the model `target`.

    `received` is the body without messages and tools, `default` the default format of what is not an option.
    """
    values: Wire = {}
    choices: Wire = {}
    rest = dict(received)
    found: list[tuple[Setting, object]] = []
    # Most bodies have few of the keys, and a reader looks at its own keys alone.
    for index in sorted({_INDEXES[key] for key in received if key in _INDEXES}):
        setting = _SETTINGS[index]
        value = setting.read(received, endpoint)
        if value is not None:
            values[setting.field] = value
            found.append((setting, value))
    if "output_schema" in values:
        choices = choose_form(cast("Block", values["output_schema"]), _schema_form(received))
    options = _options(values, choices) if values else _NO_OPTIONS
    for setting, value in found:
        given = {key: rest.pop(key) for key in setting.keys if key in rest and not _is_second_id(key, received, value)}
        if setting.field in _INNER_KEYS and not ATOMS.issuperset(map(type, given.values())):
            _split_unread(given, rest, _INNER_KEYS[setting.field])
        written = _write_setting(setting, value, options, context, endpoint)
        if not same(given, written):
            choices = {**choices, **choose(setting.field, [value, written], given)}
    for key, value in _additions(options, context, endpoint).items():
        if rest.get(key) is None or same(rest[key], value):
            default[key] = value
    extra = keep(PROTOCOL, rest, default, choices=choices, only_for=target)
    return Options(**values, extra=extra)  # pyright: ignore[reportArgumentType]  # the table names the fields


_INNER_KEYS: Final[Mapping[str, frozenset[str]]] = {"thinking": THINKING_FIELDS, "stream": frozenset(_STREAM_USAGE)}
"""Options that are objects on the wire -> the keys of the objects that are read; others are data."""


def _split_unread(given: Wire, rest: Wire, read: frozenset[str]) -> None:
    """Move the keys of objects that no reader knows to the data, so that leaving them out is reported."""
    for key, value in given.items():
        if isinstance(value, Mapping):
            inner = cast("Block", value)
            unread = {name: item for name, item in inner.items() if name not in read and item is not None}
            if unread:
                rest[key] = unread
                given[key] = {name: inner[name] for name in inner if name not in unread}
    for key in [key for key, value in given.items() if value == {} and key in rest]:
        del given[key]


def _is_second_id(key: str, body: Block, value: object) -> bool:
    """Whether a key names another user than the option does: it is not a format of it, so it is kept next to it."""
    return key in _USER_KEYS and value not in (None, body[key])


def _options(values: Wire, choices: Wire) -> Options:
    return Options(**values, extra=choice_extra(choices))  # pyright: ignore[reportArgumentType]  # as above


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_options(body: Wire, options: Options, context: Context, endpoint: Endpoint, target: str) -> None:
    """Write the options into a body for the model `target`."""
    extra = options.extra
    for setting in _SETTINGS:
        value: object = getattr(options, setting.field)
        if value is None:
            continue
        written = _write_setting(setting, value, options, context, endpoint)
        if extra is not None:
            default = [value, written]
            given = chosen(extra, PROTOCOL, setting.field, default, model=target)
            written = written if given is default else cast("Wire", given)
        body.update(written)
    data = data_of(extra, PROTOCOL)
    for key, value in _additions(options, context, endpoint).items():
        if key not in data:
            body[key] = value
    restore(body, extra, PROTOCOL, model=target)


# -- what a client asked for -------------------------------------------------------------------------------------------


def asks_usage(options: Options | None, endpoint: Endpoint) -> bool:
    """Whether a client wants token counts in its stream; also if its options are unknown."""
    if options is None or not options.stream:
        return True
    for default in ({"stream": True, "stream_options": dict(_STREAM_USAGE)}, {"stream": True}):
        standard: list[object] = [True, default]
        given = chosen(options.extra, PROTOCOL, "stream", standard)
        if given is not standard:
            return object_of(object_of(given).get("stream_options")).get("include_usage") is True
    return endpoint.dialect.usage_in_stream
