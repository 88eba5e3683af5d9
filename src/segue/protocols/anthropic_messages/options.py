"""The options of an Anthropic request, both ways; `thinking` has a file of its own.

Facts this file relies on:
- `max_tokens` is required. Without one the model's own limit is sent; without streaming at most what the SDK expects to
  be written in ten minutes (at 128,000 tokens an hour), because it refuses to wait longer.
                                                                                 (anthropic 2.8.0, read 2026-11-15)
- `output_format` is the name that `output_config.format` had during its beta; both are answered.
                                    (Anthropic documentation: structured outputs; anthropic 2.8.0, read 2026-11-15)
- There is no parameter for a seed; a session is sent in headers, where a provider has some.      (anthropic 2.8.0)

Keys that have no field in `Options` are data, at the top and inside of `thinking`, `tool_choice` and `output_config`.
The format of the rest is written again for the model that the body named, as long as the default is unchanged.

Choices kept in `extra`: `output_format`, if the format had its older name; `thinking`, `tool_choice`, `format`. Each of
the last three holds the keys by which a body set one option; they are written again as a whole, while the option is the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.thinking import (
    decode_thinking,
    default_max_tokens,
    encode_thinking,
    is_effort_read,
)
from segue.protocols.anthropic_messages.versions import VERSIONS
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of, same
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import integer_of, real_of, strings_of, text_of
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore

_OFF: Final = "disabled"
_CONTEXT_KEYS: Final = frozenset({"messages", "system", "tools"})
_CONFIG: Final = "output_config"
_EFFORT: Final = "output_config.effort"
_FORMAT: Final = "output_config.format"
"""While they are compared, the keys of `output_config` that were read are taken out of it."""
_OLD_FORMAT: Final = "output_format"


class _Choice(NamedTuple):
    """An option that a body sets by an object: its key, the keys in it that are read, and a key beside it."""

    name: str
    key: str
    read: frozenset[str]
    beside: str | None = None


_ADAPTIVE: Final = "adaptive"
_CHOICES: Final = (
    _Choice("thinking", "thinking", frozenset({"type", "budget_tokens"}), beside=_EFFORT),
    _Choice("tool_choice", "tool_choice", frozenset({"type", "name", "disable_parallel_tool_use"})),
    _Choice("format", _FORMAT, frozenset({"type", "schema"})),
)
_TOOL_CHOICES: Final[Mapping[str, str]] = {"auto": "auto", "required": "any", "none": "none"}
_TOOL_CHOICES_BACK: Final[Mapping[str, str]] = {"auto": "auto", "any": "required", "none": "none"}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Block, endpoint: Endpoint) -> Options:
    """Read everything that is not the conversation itself."""
    options = _decode_fields(body, endpoint)
    named = body.get("model")
    model = named if isinstance(named, str) else endpoint.model.id
    default = {"model": model, **_encode_fields(options, endpoint)}
    received = {key: value for key, value in body.items() if key not in _CONTEXT_KEYS}
    _split_config(received, options)
    choices: Wire = {}
    if _is_old_format(body):
        received[_FORMAT] = received.pop(_OLD_FORMAT)
        choices = choose(_OLD_FORMAT, _CONFIG, _OLD_FORMAT)
    known = [VERSIONS.body_key]  # of the transport, which chooses it for each request: format, not data
    for choice in _CHOICES:
        asked, value = _asked(options, choice.name), received.get(choice.key)
        if not isinstance(value, Mapping):
            continue
        wire = cast("Block", value)
        if asked is None:
            if "type" not in wire:
                known.append(choice.key)  # as data it would look like data inside of an object that was read
            continue
        has_data = wire.get("type") not in (None, _OFF)
        given: Wire = {choice.key: {key: item for key, item in wire.items() if key in choice.read or not has_data}}
        if choice.beside is not None and choice.beside in received:
            given[choice.beside] = received[choice.beside]
        if not same(given, {key: default[key] for key in (choice.key, choice.beside) if key in default}):
            choices.update(choose(choice.name, asked, given))
            _put(default, choice, given)
    return replace(options, extra=keep(PROTOCOL, received, default, known, choices, only_for=model))


def _put(wire: Wire, choice: _Choice, given: Block) -> None:
    """Put the keys of a choice in the place of the default ones."""
    wire.pop(choice.key, None)
    if choice.beside is not None:
        wire.pop(choice.beside, None)
    wire.update(given)


def _decode_fields(body: Block, endpoint: Endpoint) -> Options:
    """Read the fields of `Options`; a value of another type than the protocol defines is not read."""
    config, thinking = object_of(body.get(_CONFIG)), body.get("thinking")
    effort, user_id, stream = config.get("effort"), object_of(body.get("metadata")).get("user_id"), body.get("stream")
    choice, parallel = _decode_choice(object_of(body.get("tool_choice")))
    return Options(
        max_tokens=integer_of(body.get("max_tokens")),
        temperature=real_of(body.get("temperature")),
        top_p=real_of(body.get("top_p")),
        stop=strings_of(body.get("stop_sequences")),
        thinking=decode_thinking(None if thinking is None else object_of(thinking), text_of(effort) or "", endpoint),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        output_schema=_schema(object_of(body.get(_OLD_FORMAT) if _is_old_format(body) else config.get("format"))),
        user_id=text_of(user_id),
        stream=stream if isinstance(stream, bool) else None,
    )


def _is_old_format(body: Block) -> bool:
    """Whether a body has the older name of the format, and not the newer."""
    is_new = object_of(body.get(_CONFIG)).get("format") is not None
    return not is_new and _schema(object_of(body.get(_OLD_FORMAT))) is not None


def _schema(form: Block) -> Block | None:
    schema = form.get("schema")
    return cast("Block", schema) if form.get("type") == "json_schema" and isinstance(schema, Mapping) else None


def _decode_choice(choice: Block) -> tuple[str | None, bool | None]:
    off, name = choice.get("disable_parallel_tool_use"), choice.get("name")
    parallel = not off if isinstance(off, bool) else None
    if choice.get("type") == "tool" and isinstance(name, str):
        return name, parallel
    return _TOOL_CHOICES_BACK.get(text_of(choice.get("type")) or ""), parallel


def _asked(options: Options, name: str) -> object:
    """Give the options that a choice belongs to; None when they are not set."""
    match name:
        case "thinking":
            return options.thinking
        case "tool_choice":
            asked = [options.tool_choice, options.parallel_tool_calls]
            return None if asked == [None, None] else asked
        case _:
            return options.output_schema


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, named: str | None) -> Wire:
    """Write the options, and the model: the one that the prompt names, else the endpoint's.

    Raises:
        EncodeError: an option is set that the protocol does not support.
    """
    refused = endpoint.rules.refused_options
    refuse_options(PROTOCOL, options, (name for name in ("seed", "session_id") if name in refused))
    model = endpoint.model.id if named is None else named
    wire: Wire = {"model": model, **_encode_fields(options, endpoint)}
    if options.extra is not None:
        for choice in _CHOICES:
            asked = _asked(options, choice.name)
            given = chosen(options.extra, PROTOCOL, choice.name, asked, model=model)
            if given is not asked:
                _put(wire, choice, object_of(given))
        before = {choice.key: object_of(wire.get(choice.key)) for choice in _CHOICES}
        restore(wire, options.extra, PROTOCOL, model=model)
        for key, value in data_of(options.extra, PROTOCOL).items():
            is_inner = key in before and isinstance(value, Mapping) and "type" not in value
            if is_inner and before[key].get("type") in (None, _OFF):
                # Data inside of an object is not written if the object was removed, or turns thinking off.
                wire.pop(key, None)
                if before[key]:
                    wire[key] = before[key]
    if _EFFORT in wire and object_of(wire.get("thinking")).get("type") == _ADAPTIVE and _has_no_effort(options):
        del wire[_EFFORT]
    if _FORMAT in wire and chosen(options.extra, PROTOCOL, _OLD_FORMAT, _CONFIG, model=model) == _OLD_FORMAT:
        wire[_OLD_FORMAT] = wire.pop(_FORMAT)
    _join_config(wire)
    if named is not None:
        wire["model"] = named  # a body is written without a model again only if the caller passes none
    return wire


def _has_no_effort(options: Options) -> bool:
    """Whether a request asked for adaptive thinking and for no effort: then the model's default applies."""
    given = object_of(chosen(options.extra, PROTOCOL, "thinking", options.thinking))
    return _EFFORT not in given and object_of(given.get("thinking")).get("type") == _ADAPTIVE


def _encode_fields(options: Options, endpoint: Endpoint) -> Wire:
    """Write the fields of `Options`, the keys of `output_config` beside it."""
    thinking, effort = encode_thinking(options, endpoint)
    limit = options.max_tokens
    wire: Wire = {"max_tokens": default_max_tokens(options, endpoint, thinking) if limit is None else limit}
    if options.temperature is not None:
        wire["temperature"] = options.temperature
    if options.top_p is not None:
        wire["top_p"] = options.top_p
    if options.stop is not None:
        wire["stop_sequences"] = list(options.stop)
    if thinking is not None:
        wire["thinking"] = thinking
    if options.output_schema is not None:
        wire[_FORMAT] = {"type": "json_schema", "schema": options.output_schema}
    if effort is not None:
        wire[_EFFORT] = effort
    choice = _encode_choice(options)
    if choice is not None:
        wire["tool_choice"] = choice
    if options.user_id is not None:
        wire["metadata"] = {"user_id": options.user_id}
    if options.stream is not None:
        wire["stream"] = options.stream
    return wire


def _encode_choice(options: Options) -> Wire | None:
    choice, parallel = options.tool_choice, options.parallel_tool_calls
    if choice is None and parallel is None:
        return None
    wire: Wire = {"type": _TOOL_CHOICES.get(choice or "auto", "tool")}
    if wire["type"] == "tool":
        wire["name"] = choice
    if parallel is not None and choice != "none":  # where no tool may be called, nothing runs in parallel
        wire["disable_parallel_tool_use"] = not parallel
    return wire


# -- output_config -----------------------------------------------------------------------------------------------------


def _split_config(received: Wire, options: Options) -> None:
    """Move the effort and the format out of `output_config`, each if it was read."""
    config = received.get(_CONFIG)
    if not isinstance(config, Mapping):
        return
    rest = dict(cast("Block", config))
    if "effort" in rest and is_effort_read(options.thinking, received.get("thinking"), rest["effort"]):
        received[_EFFORT] = rest.pop("effort")
    if rest.get("format") is not None and options.output_schema is not None:
        received[_FORMAT] = rest.pop("format")
    if rest or not config:
        received[_CONFIG] = rest
    else:
        del received[_CONFIG]


def _join_config(wire: Wire) -> None:
    """Move the effort and the format into `output_config`."""
    inner = {key: wire.pop(name) for key, name in (("effort", _EFFORT), ("format", _FORMAT)) if name in wire}
    if inner:
        wire[_CONFIG] = {**object_of(wire.pop(_CONFIG, None)), **inner}
