"""What a request asks besides the conversation, both ways.

Facts this file rests on:
- Names and values of the parameters.                                                  (openai 3.49.0; read 2026-11-15)
- The limit of tokens has two names; `user` became `safety_identifier`; a session is told by `prompt_cache_key` of at
  most 64 characters, a long cache by `prompt_cache_retention`.          (openai 3.49.0; pi-ai 1.5.0; read 2026-11-15)
- Usage comes in a stream only when asked for.                                                      (openai 3.49.0)

Each option is read from some keys and written to some keys. Where a body says it otherwise than we would, its shape
keeps both: as long as we would still write the one, the other is written. What is not understood is kept as it is.
Options do not say whom they were meant for, so their shape names the provider, and holds for that one alone. A key that
the model refuses is written only where the very request that had it is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

from segue.conversation.context import Context, Options
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import ASKED_OF, VERBATIM, left_over, verbatim_of
from segue.protocols.kit.schemas import FORM, form_of, is_closed, schema_name
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.thinking import THINKING_KEYS, decode_thinking, encode_thinking
from segue.protocols.openai_chat.tools import decode_tool_choice, encode_tool_choice
from segue.protocols.openai_chat.verbatim import fill_in, object_of

Fragment = dict[str, object]
Body = Mapping[str, object]

_STREAM_USAGE: Final[Mapping[str, object]] = {"include_usage": True}


class _Setting(NamedTuple):
    """One option: its field, the keys it stands in, how it is read and written."""

    field: str
    keys: tuple[str, ...]
    read: Callable[[Body, Endpoint], object]
    write: Callable[[object, Options, Endpoint], Fragment]


def _number(key: str) -> Callable[[Body, Endpoint], object]:
    def read(body: Body, _: Endpoint) -> object:
        value = body.get(key)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    return read


def _plain(key: str) -> Callable[[object, Options, Endpoint], Fragment]:
    return lambda value, _options, _endpoint: {key: value}


def _flag(key: str) -> Callable[[Body, Endpoint], object]:
    def read(body: Body, _: Endpoint) -> object:
        value = body.get(key)
        return value if isinstance(value, bool) else None

    return read


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _read_limit(body: Body, _: Endpoint) -> object:
    limit = _whole(body.get("max_completion_tokens"))
    return _whole(body.get("max_tokens")) if limit is None else limit


def _write_limit(value: object, _: Options, endpoint: Endpoint) -> Fragment:
    field = endpoint.dialect.max_tokens_field
    return {} if field == "none" else {field: value}


def _read_stop(body: Body, _: Endpoint) -> object:
    given = body.get("stop")
    if isinstance(given, str):
        return (given,)
    if isinstance(given, list) and all(isinstance(literal, str) for literal in cast("list[object]", given)):
        return tuple(cast("list[str]", given))
    return None


def _write_stop(value: object, _: Options, __: Endpoint) -> Fragment:
    return {"stop": list(cast("tuple[str, ...]", value))}


def _read_seed(body: Body, _: Endpoint) -> object:
    return _whole(body.get("seed"))


def _write_parallel(value: object, _: Options, endpoint: Endpoint) -> Fragment:
    return {"parallel_tool_calls": value} if endpoint.dialect.parallel_tool_calls else {}


def _form_in(body: Body) -> Body:
    """Give what a body says of its schema, the schema included."""
    return object_of(object_of(body.get("response_format")).get("json_schema"))


def _read_schema(body: Body, _: Endpoint) -> object:
    given = object_of(body.get("response_format"))
    if given.get("type") != "json_schema":
        return None
    schema = _form_in(body).get("schema")
    return cast("Body", schema) if isinstance(schema, Mapping) else None


def _write_schema(value: object, _: Options, endpoint: Endpoint) -> Fragment:
    if not endpoint.dialect.json_schema:
        return {"response_format": {"type": "json_object"}}
    schema = cast("Body", value)
    form: Fragment = {"name": schema_name(schema), "schema": schema}
    if endpoint.dialect.strict_schema and is_closed(schema):
        form["strict"] = True
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _read_retention(body: Body, endpoint: Endpoint) -> object:
    given = body.get("prompt_cache_retention")
    # Where marks are the way to ask for it, these words are only passed on.
    if isinstance(given, str) and endpoint.dialect.cache_format != "anthropic":
        return {"24h": "long", "in_memory": "short", "in-memory": "short"}.get(given)
    return None


def _write_retention(value: object, _: Options, endpoint: Endpoint) -> Fragment:
    if value == "long" and endpoint.dialect.cache_format == "openai-key":
        if endpoint.dialect.cache_long == "24h":
            return {"prompt_cache_retention": "24h"}
        if endpoint.dialect.cache_long == "30m":
            return {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}
    return {}


def _read_text(*keys: str) -> Callable[[Body, Endpoint], object]:
    def read(body: Body, _: Endpoint) -> object:
        return next((value for key in keys if isinstance(value := body.get(key), str)), None)

    return read


def _write_session(value: object, options: Options, endpoint: Endpoint) -> Fragment:
    # Elsewhere a session travels in a header.
    if endpoint.dialect.cache_format != "openai-key" or options.cache_retention == "none":
        return {}
    return {"prompt_cache_key": value}


def _write_stream(value: object, _: Options, endpoint: Endpoint) -> Fragment:
    if value and endpoint.dialect.usage_in_stream:
        return {"stream": value, "stream_options": dict(_STREAM_USAGE)}
    return {"stream": value}


def _write_thinking(value: object, _: Options, endpoint: Endpoint) -> Fragment:
    return encode_thinking(cast("int", value), endpoint)


def _write_choice(value: object, _: Options, __: Endpoint) -> Fragment:
    return {"tool_choice": encode_tool_choice(str(value))}


_SETTINGS: Final[tuple[_Setting, ...]] = (
    _Setting("max_tokens", ("max_completion_tokens", "max_tokens"), _read_limit, _write_limit),
    _Setting("temperature", ("temperature",), _number("temperature"), _plain("temperature")),
    _Setting("top_p", ("top_p",), _number("top_p"), _plain("top_p")),
    _Setting("stop", ("stop",), _read_stop, _write_stop),
    _Setting("seed", ("seed",), _read_seed, _plain("seed")),
    _Setting("thinking", THINKING_KEYS, decode_thinking, _write_thinking),
    _Setting("tool_choice", ("tool_choice", "function_call"), decode_tool_choice, _write_choice),
    _Setting("parallel_tool_calls", ("parallel_tool_calls",), _flag("parallel_tool_calls"), _write_parallel),
    _Setting("output_schema", ("response_format",), _read_schema, _write_schema),
    _Setting("cache_retention", ("prompt_cache_retention",), _read_retention, _write_retention),
    _Setting("session_id", ("prompt_cache_key",), _read_text("prompt_cache_key"), _write_session),
    _Setting("user_id", ("user", "safety_identifier"), _read_text("user", "safety_identifier"), _plain("user")),
    _Setting("stream", ("stream", "stream_options"), _flag("stream"), _write_stream),
)


def _customs(options: Options, context: Context, endpoint: Endpoint) -> Fragment:
    """What we say although nobody asked: do not keep this; send arguments of calls as they come."""
    given: Fragment = {}
    if endpoint.dialect.store:
        given["store"] = False
    if endpoint.dialect.tool_stream and options.stream and context.tools:
        given["tool_stream"] = True
    return given


def decode_options(body: Body, context: Context, known: set[str], verbatim: Fragment, endpoint: Endpoint) -> Options:
    """Read the options of a body; `known` are the keys that others have read, `verbatim` what they noted."""
    values: Fragment = {}
    original: Fragment = {}
    found: list[tuple[_Setting, object]] = []
    for setting in _SETTINGS:
        value = setting.read(body, endpoint)
        if value is not None:
            values[setting.field] = value
            found.append((setting, value))
            known.update(setting.keys)
    options = Options(**values)  # pyright: ignore[reportArgumentType]  # the table above says which is which
    for setting, value in found:
        given = {key: body[key] for key in setting.keys if key in body}
        default = setting.write(value, options, endpoint)
        if given != default:
            original[setting.field] = {"usual": default, "said": given}
            if not endpoint.rules.refused_extra.isdisjoint(given):
                verbatim[ASKED_OF] = endpoint.model.id
    if "output_schema" in original and (form := form_of(_form_in(body))):
        verbatim[FORM] = form
    if original:
        verbatim["spelt"] = original
    absent: list[str] = []
    for key, value in _customs(options, context, endpoint).items():
        if key not in body:
            absent.append(key)
        elif body[key] == value:
            known.add(key)
    if absent:
        verbatim["unsaid"] = absent
    left = {key: value for key, value in body.items() if key not in known}
    if verbatim:
        left[VERBATIM] = {"provider": endpoint.model.provider, **verbatim}
    return Options(**values, extra={PROTOCOL: left}) if left else options  # pyright: ignore[reportArgumentType]


def own_verbatim(extra: Mapping[str, Mapping[str, object]] | None, endpoint: Endpoint) -> Mapping[str, object]:
    """Give the shape of a context or of options, if it was this provider's."""
    verbatim = verbatim_of(extra, PROTOCOL)
    return verbatim if verbatim.get("provider") == endpoint.model.provider else {}


def _name_schema(body: Fragment, verbatim: Mapping[str, object]) -> None:
    """Call a schema what it was called before, whoever was asked then."""
    form = _form_in(body)
    if FORM in verbatim and "schema" in form:
        named = {**form, **cast("Body", verbatim[FORM])}
        body["response_format"] = {**cast("Body", body["response_format"]), "json_schema": named}


def encode_options(body: Fragment, options: Options, context: Context, endpoint: Endpoint) -> None:
    """Write the options into a body."""
    verbatim = own_verbatim(options.extra, endpoint)
    original = cast("Mapping[str, Mapping[str, Fragment]]", verbatim.get("spelt", {}))
    refused, again = endpoint.rules.refused_extra, ASKED_OF in verbatim
    for setting in _SETTINGS:
        value = cast("object", getattr(options, setting.field))
        if value is None:
            continue
        default = setting.write(value, options, endpoint)
        other = original.get(setting.field)
        is_other = other is not None and other["usual"] == default and (again or refused.isdisjoint(other["said"]))
        body.update(other["said"] if other is not None and is_other else default)
    _name_schema(body, verbatim_of(options.extra, PROTOCOL))
    fill_in(body, left_over(options.extra, PROTOCOL))
    absent = cast("list[str]", verbatim.get("unsaid", ()))
    for key, value in _customs(options, context, endpoint).items():
        if key not in absent:
            body.setdefault(key, value)
