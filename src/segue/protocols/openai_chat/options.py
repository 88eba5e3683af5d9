"""The options of a request, both ways.

Facts this file rests on:
- Names and values of the parameters.                                                  (openai 3.49.0; read 2026-11-15)
- The token limit has two names; `user` became `safety_identifier`; `prompt_cache_key`, at most 64 characters, names a
  session, and `prompt_cache_retention` asks for a long cache.           (openai 3.49.0; pi-ai 1.5.0; read 2026-11-15)
- A stream reports usage only on request.                                                           (openai 3.49.0)

Each option is read from some keys and written to some keys. What a body holds for one option in another format is one
choice, under the name of the option: it is made again only for the same model, and while the option is unchanged. The
name and the description of a schema are a choice of their own, which holds for every model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias, cast

from segue.conversation.context import Context, Options
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of, same
from segue.protocols.kit.option_table import Reader, flag, number
from segue.protocols.kit.reading import integer_of
from segue.protocols.kit.schemas import can_be_strict, choose_form, chosen_form
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_chat.native import choice_extra
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.thinking import THINKING_FIELDS, THINKING_KEYS, decode_thinking, encode_thinking
from segue.protocols.openai_chat.tools import decode_tool_choice, encode_tool_choice

_Writer: TypeAlias = Callable[[object, Options, Endpoint], Wire]

_NO_OPTIONS: Final = Options()
_STREAM_USAGE: Final[Block] = {"include_usage": True}
_RETENTIONS: Final[Mapping[str, str]] = {"24h": "long", "in_memory": "short", "in-memory": "short"}


class _Setting(NamedTuple):
    """One option: its field, the keys that hold it, how it is read and written."""

    field: str
    keys: tuple[str, ...]
    read: Reader
    write: _Writer


def _plain(key: str) -> _Writer:
    return lambda value, _options, _endpoint: {key: value}


def _read_limit(body: Block, _: Endpoint) -> object:
    limit = integer_of(body.get("max_completion_tokens"))
    return integer_of(body.get("max_tokens")) if limit is None else limit


def _write_limit(value: object, _: Options, endpoint: Endpoint) -> Wire:
    field = endpoint.dialect.max_tokens_field
    return {} if field == "none" else {field: value}


def _read_stop(body: Block, _: Endpoint) -> object:
    stop = body.get("stop")
    if isinstance(stop, str):
        return (stop,)
    if isinstance(stop, list) and all(isinstance(text, str) for text in cast("list[object]", stop)):
        return tuple(cast("list[str]", stop))
    return None


def _write_stop(value: object, _: Options, __: Endpoint) -> Wire:
    return {"stop": list(cast("tuple[str, ...]", value))}


def _read_seed(body: Block, _: Endpoint) -> object:
    return integer_of(body.get("seed"))


def _write_parallel(value: object, _: Options, endpoint: Endpoint) -> Wire:
    return {"parallel_tool_calls": value} if endpoint.dialect.parallel_tool_calls else {}


def _schema_form(body: Block) -> Block:
    """Give the object that holds the schema of a body, its name and its description."""
    return object_of(object_of(body.get("response_format")).get("json_schema"))


def _read_schema(body: Block, _: Endpoint) -> object:
    if object_of(body.get("response_format")).get("type") != "json_schema":
        return None
    schema = _schema_form(body).get("schema")
    return cast("Block", schema) if isinstance(schema, Mapping) else None


def _write_schema(value: object, options: Options, endpoint: Endpoint) -> Wire:
    if not endpoint.dialect.json_schema:
        return {"response_format": {"type": "json_object"}}
    schema = cast("Block", value)
    form: Wire = {**chosen_form(options.extra, PROTOCOL, schema), "schema": schema}
    if endpoint.dialect.strict_schema and can_be_strict(schema, endpoint.rules):
        form["strict"] = True
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _read_retention(body: Block, endpoint: Endpoint) -> object:
    retention = body.get("prompt_cache_retention")
    # A provider with cache marks does not read this key, so it is data there.
    if not isinstance(retention, str) or endpoint.dialect.cache_format == "anthropic":
        return None
    return _RETENTIONS.get(retention)


def _write_retention(value: object, _: Options, endpoint: Endpoint) -> Wire:
    if value == "long" and endpoint.dialect.cache_format == "openai-key":
        if endpoint.dialect.cache_long == "24h":
            return {"prompt_cache_retention": "24h"}
        if endpoint.dialect.cache_long == "30m":
            return {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}
    return {}


def _read_text(*keys: str) -> Reader:
    def read(body: Block, _: Endpoint) -> object:
        return next((value for key in keys if isinstance(value := body.get(key), str)), None)

    return read


def _write_session(value: object, options: Options, endpoint: Endpoint) -> Wire:
    # Other providers get the session in a header.
    if endpoint.dialect.cache_format != "openai-key" or options.cache_retention == "none":
        return {}
    return {"prompt_cache_key": value}


def _write_stream(value: object, _: Options, endpoint: Endpoint) -> Wire:
    if value and endpoint.dialect.usage_in_stream:
        return {"stream": value, "stream_options": dict(_STREAM_USAGE)}
    return {"stream": value}


def _write_thinking(value: object, _: Options, endpoint: Endpoint) -> Wire:
    return encode_thinking(cast("int", value), endpoint)


def _write_choice(value: object, _: Options, __: Endpoint) -> Wire:
    return {"tool_choice": encode_tool_choice(str(value))}


_SETTINGS: Final[tuple[_Setting, ...]] = (
    _Setting("max_tokens", ("max_completion_tokens", "max_tokens"), _read_limit, _write_limit),
    _Setting("temperature", ("temperature",), number("temperature"), _plain("temperature")),
    _Setting("top_p", ("top_p",), number("top_p"), _plain("top_p")),
    _Setting("stop", ("stop",), _read_stop, _write_stop),
    _Setting("seed", ("seed",), _read_seed, _plain("seed")),
    _Setting("thinking", THINKING_KEYS, decode_thinking, _write_thinking),
    _Setting("tool_choice", ("tool_choice", "function_call"), decode_tool_choice, _write_choice),
    _Setting("parallel_tool_calls", ("parallel_tool_calls",), flag("parallel_tool_calls"), _write_parallel),
    _Setting("output_schema", ("response_format",), _read_schema, _write_schema),
    _Setting("cache_retention", ("prompt_cache_retention",), _read_retention, _write_retention),
    _Setting("session_id", ("prompt_cache_key",), _read_text("prompt_cache_key"), _write_session),
    _Setting("user_id", ("user", "safety_identifier"), _read_text("user", "safety_identifier"), _plain("user")),
    _Setting("stream", ("stream", "stream_options"), flag("stream"), _write_stream),
)


_INDEXES: Final = {key: index for index, setting in enumerate(_SETTINGS) for key in setting.keys}


def _additions(options: Options, context: Context, endpoint: Endpoint) -> Wire:
    """Give the parameters that segue adds: do not store the request; stream arguments of calls; keep reasoning."""
    additions: Wire = {}
    if endpoint.dialect.store:
        additions["store"] = False
    if endpoint.dialect.tool_stream and options.stream and context.tools:
        additions["tool_stream"] = True
    if endpoint.dialect.thinking_format == "zai" and options.thinking is None and _has_thinking(context):
        # Without it, the reasoning of earlier turns is cleared. (Z.ai documentation: preserved thinking)
        additions["thinking"] = {"type": "enabled", "clear_thinking": False}
    return additions


def _has_thinking(context: Context) -> bool:
    return any(
        piece.kind == "thinking"
        for message in context.messages
        if message.role == "assistant"
        for piece in message.content
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_options(received: Block, default: Wire, context: Context, endpoint: Endpoint, target: str) -> Options:
    """Read the options of a body, and keep its format for the model `target`.

    `received` is the body without messages and tools, `default` the default format of what is no option.
    """
    values: Wire = {}
    choices: Wire = {}
    rest = dict(received)
    found: list[tuple[_Setting, object]] = []
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
        given = {key: rest.pop(key) for key in setting.keys if key in rest and not _is_second_id(key, received)}
        if setting.field in _INNER_KEYS and any(isinstance(value, Mapping) for value in given.values()):
            _split_unread(given, rest, _INNER_KEYS[setting.field])
        written = setting.write(value, options, endpoint)
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
            if unread and len(unread) < len(inner):
                given[key], rest[key] = {name: inner[name] for name in inner if name not in unread}, unread


def _is_second_id(key: str, body: Block) -> bool:
    """Whether a key names another user than `user` does: it is no format of the option, so it is kept beside it."""
    return key == "safety_identifier" and body.get("user") not in (None, body[key])


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
        written = setting.write(value, options, endpoint)
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
