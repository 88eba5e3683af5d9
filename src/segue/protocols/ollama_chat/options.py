"""What an Ollama request asks besides the conversation, both ways.

Facts this file rests on:
- Sampling settings stand in `options`, among many that only Ollama has (`num_ctx`, `min_p`, ...); `stop` is a list.
                                                       (ollama server source @fb30760; ollama 0.6.3; read 2026-11-15)
- `num_predict` of -1 is no limit.                                                         (ollama-python #560)
- `stream` is true when nothing is said; `format` is a JSON schema, or "json".           (server source @fb30760)
- `think` is true, false, or low, medium, high, max; gpt-oss takes words only.
                                                           (server source @fb30760; Ollama documentation: thinking)

A caller who says nothing about streaming gets a whole reply, as on every other wire, so we say `stream: false`; a body
that says nothing about it asks for a stream. Each option is read from one key; where a body says it otherwise than we
would, `spelling` keeps both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

from segue.conversation.context import Options, ThinkingLevel
from segue.models.thinking import level_for_budget
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import ASKED_OF, VERBATIM, verbatim_of
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.verbatim import Json, Wire, keep, object_of, own_part, put_back

_SWITCHED_ON: Final[ThinkingLevel] = "medium"
"""What a bare switch is read as: it names no level, and gpt-oss thinks so when nothing is said."""
_LEVEL_VALUES: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",  # the word exists, but only models that list it know more than high
}
_LEVELS: Final[Mapping[object, ThinkingLevel]] = {"low": "low", "medium": "medium", "high": "high", "max": "max"}
_NO_MODEL: Final = "no_model"


class _Setting(NamedTuple):
    """One option: its field, its key, how it is read and written."""

    field: str
    key: str
    read: Callable[[object], object]
    write: Callable[[object, Endpoint], object]


def _same(value: object, _: Endpoint) -> object:
    return value


def _number(value: object) -> object:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: object) -> object:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _limit(value: object) -> object:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _stops(value: object) -> object:
    if isinstance(value, list) and all(isinstance(literal, str) for literal in cast("list[object]", value)):
        return tuple(cast("list[str]", value))
    return None


def _write_stops(value: object, _: Endpoint) -> object:
    return list(cast("tuple[str, ...]", value))


def _schema(value: object) -> object:
    return cast("object", value) if isinstance(value, Mapping) else None


def _think(value: object) -> object:
    if isinstance(value, bool):
        return _SWITCHED_ON if value else "off"
    return _LEVELS.get(value) if isinstance(value, str) else None


def _write_think(value: object, endpoint: Endpoint) -> object:
    asked = cast("ThinkingLevel | int", value)
    level = level_for_budget(asked) if isinstance(asked, int) else asked
    if level == "off":
        return False
    if endpoint.dialect.thinking_format != "word":
        return True
    return endpoint.model.thinking_levels.get(level) or _LEVEL_VALUES[level]


_BODY: Final = (
    _Setting("thinking", "think", _think, _write_think),
    _Setting("output_schema", "format", _schema, _same),
)
_INNER: Final = (
    _Setting("max_tokens", "num_predict", _limit, _same),
    _Setting("temperature", "temperature", _number, _same),
    _Setting("top_p", "top_p", _number, _same),
    _Setting("seed", "seed", _whole, _same),
    _Setting("stop", "stop", _stops, _write_stops),
)
_CONTEXT_KEYS: Final = frozenset({"model", "messages", "tools"})


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Json, endpoint: Endpoint, *, refused: bool) -> Options:
    """Read everything that is not the conversation itself.

    `refused` says that the conversation is spelt as the server refuses it: only that very body is written so again.
    """
    values: Wire = {}
    default = _read(body, _BODY, values, endpoint)
    stream = body.get("stream")
    values["stream"] = default["stream"] = stream if isinstance(stream, bool) else True
    given = body.get("options")
    inner: Wire = {}
    skip = set(_CONTEXT_KEYS)
    if isinstance(given, Mapping) and given:
        skip.add("options")
        asked = cast("Json", given)
        inner = keep(asked, _read(asked, _INNER, values, endpoint))
    part = keep(body, default, skip)
    if inner:
        part["options"] = inner
    verbatim: Wire = {}
    named = body.get("model")
    if not isinstance(named, str):
        verbatim[_NO_MODEL] = {"said": named} if "model" in body else {}
    if refused:
        verbatim[ASKED_OF] = named if isinstance(named, str) else endpoint.model.id
    if verbatim:
        part[VERBATIM] = {**object_of(part.get(VERBATIM)), **verbatim}
    extra = {PROTOCOL: part} if part else None
    return Options(**values, extra=extra)  # pyright: ignore[reportArgumentType]  # the tables say which is which


def _read(wire: Json, settings: tuple[_Setting, ...], values: Wire, endpoint: Endpoint) -> Wire:
    """Read some settings into `values`, and give how we would write them."""
    default: Wire = {}
    for setting in settings:
        value = setting.read(wire.get(setting.key))
        if value is not None:
            values[setting.field] = value
            default[setting.key] = setting.write(value, endpoint)
    return default


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint) -> Wire:
    """Write the options."""
    body = _write(options, _BODY, endpoint)
    body["stream"] = bool(options.stream)
    inner = _write(options, _INNER, endpoint)
    part = own_part(options.extra)
    if part is None:
        if inner:
            body["options"] = inner
        return body
    kept = part.get("options")
    if isinstance(kept, Mapping):
        put_back(inner, cast("Json", kept))
        part = {key: value for key, value in part.items() if key != "options"}
    if inner:
        body["options"] = inner
    return put_back(body, part)


def _write(options: Options, settings: tuple[_Setting, ...], endpoint: Endpoint) -> Wire:
    wire: Wire = {}
    for setting in settings:
        value = cast("object", getattr(options, setting.field))
        if value is not None:
            wire[setting.key] = setting.write(value, endpoint)
    return wire


def encode_model(named: str | None, options: Options, endpoint: Endpoint) -> Wire:
    """Write which model is asked; a body that was read may have had something else than a name, or nothing."""
    if named is not None:
        return {"model": named}
    absent = verbatim_of(options.extra, PROTOCOL).get(_NO_MODEL)
    if absent is None:
        return {"model": endpoint.model.id}
    received = object_of(absent)
    return {"model": received["said"]} if "said" in received else {}


def is_verbatim(options: Options, named: str | None, endpoint: Endpoint) -> bool:
    """Whether the very body that was read is written, also what the server refuses in it."""
    asked_of = verbatim_of(options.extra, PROTOCOL).get(ASKED_OF)
    return asked_of is not None and asked_of == (endpoint.model.id if named is None else named)
