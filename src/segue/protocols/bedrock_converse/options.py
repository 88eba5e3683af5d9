"""What a Bedrock request asks besides the conversation, both ways.

Facts this file rests on:
- Limits and sampling stand in `inferenceConfig`, the choice of a tool in `toolConfig`, a schema for the answer (a text)
  in `outputConfig`; what only one model knows stands in `additionalModelRequestFields`. Without a limit the model's own
  holds.                                                             (botocore 1.44.0 service model, read 2026-11-15)
- Claude is asked to think there as on its own wire: `thinking` with a budget, or adaptive with `output_config.effort`
  beside it; without an effort an adaptive model does not show its thinking.
                                                   (litellm #36507, higress #4154; 2026-08; recorded traffic, 2026-11)
- `outputConfig.effort` is the service's newer word for the same; it is read.                        (service model)
- GPT has `reasoning: {effort}`, gpt-oss a flat `reasoning_effort`, Nova 2 `reasoningConfig` with
  `maxReasoningEffort`.                         (pi-ai 1.5.0; AWS Nova 2 guide: extended thinking; 2026-11-15)

Reading keeps as it was whatever writing would spell differently, in `extra` of the options, in the same nesting. When
writing, what was kept counts only as long as it still says what the options say: who changes an option changes the
request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.errors import DecodeError, EncodeError
from segue.protocols.bedrock_converse.native import json_text
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.thinking import decode_thinking, encode_thinking, fits
from segue.protocols.bedrock_converse.verbatim import Wire, object_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import ASKED_OF, VERBATIM, left_over, verbatim_of
from segue.protocols.kit.streaming import parse_frame

Place: TypeAlias = tuple[str, ...]

INFERENCE: Final = "inferenceConfig"
TOOLS: Final = "toolConfig"
OUTPUT: Final = "outputConfig"
FIELDS: Final = "additionalModelRequestFields"

_CONTAINERS: Final = frozenset({INFERENCE, TOOLS, OUTPUT, FIELDS})
_CONTEXT_KEYS: Final = frozenset({"messages", "system", "modelId"})
_WITHOUT_VALUE: Final = ("seed", "parallel_tool_calls", "session_id", "user_id")
_THINKING_OF: Final = "thinking_of"
"""The key of the shape that names the model which was asked for a kind of thinking that is not known to be its own."""

_FIELDS_OF: Final[Mapping[Place, str]] = {
    (INFERENCE, "maxTokens"): "max_tokens",
    (INFERENCE, "temperature"): "temperature",
    (INFERENCE, "topP"): "top_p",
    (INFERENCE, "stopSequences"): "stop",
    (TOOLS, "toolChoice"): "tool_choice",
    (OUTPUT, "textFormat"): "output_schema",
    (OUTPUT, "effort"): "thinking",
    (FIELDS, "thinking"): "thinking",
    (FIELDS, "output_config"): "thinking",
    (FIELDS, "reasoning_effort"): "thinking",
    (FIELDS, "reasoning"): "thinking",
    (FIELDS, "reasoningConfig"): "thinking",
}
"""Which field of `Options` a place in the body speaks of."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Mapping[str, object], endpoint: Endpoint) -> Options:
    """Read everything that is not the conversation itself."""
    options = Options(**_meaning(body, endpoint))  # pyright: ignore[reportArgumentType] - the fields have their types
    written = _write(options, endpoint)
    kept: Wire = {}
    for key, value in body.items():
        if key in _CONTEXT_KEYS:
            continue
        left = _difference(value, written.get(key), {"tools"} if key == TOOLS else frozenset())
        if key not in written or left is not None:
            kept[key] = value if left is None else left
    verbatim: Wire = {}
    absent = [list(place) for place in _places(written) if not _has(body, place)]
    if absent:
        verbatim["absent"] = absent
    if not fits(body, endpoint):
        verbatim[_THINKING_OF] = endpoint.model.id
    if "modelId" in body:
        verbatim[ASKED_OF] = body["modelId"]
    if TOOLS in kept and kept[TOOLS] == {} and body[TOOLS] != {}:
        del kept[TOOLS]  # all that stands there are tools
    if verbatim:
        kept[VERBATIM] = verbatim
    return replace(options, extra={PROTOCOL: kept}) if kept else options


def _difference(value: object, written: object, skip: frozenset[str] | set[str]) -> object:
    """Give what an object says that is not written by itself; None where all is."""
    if isinstance(value, Mapping) and (written is None or isinstance(written, dict)):
        default = object_of(cast("object", written))
        given = cast("Mapping[str, object]", value)
        left = {k: v for k, v in given.items() if k not in skip and not (k in default and default[k] == v)}
        return left if left or written is None or not given else None
    return None if value == written else cast("object", value)


def _places(written: Wire) -> list[Place]:
    """List the places of a body that were written."""
    places: list[Place] = []
    for key, value in written.items():
        if key in _CONTAINERS:
            places += [(key, inner) for inner in object_of(value)]
        else:
            places.append((key,))
    return places


def _has(body: Mapping[str, object], place: Place) -> bool:
    return place[0] in body and (len(place) == 1 or place[1] in object_of(body[place[0]]))


def _meaning(body: Mapping[str, object], endpoint: Endpoint) -> Wire:
    """Say what a body asks for, in the fields of `Options`; what has another form than it should have says nothing."""
    config = object_of(body.get(INFERENCE))
    return {
        "max_tokens": _number(config.get("maxTokens"), int),
        "temperature": _number(config.get("temperature"), int | float),
        "top_p": _number(config.get("topP"), int | float),
        "stop": _texts(config.get("stopSequences")),
        "tool_choice": _choice(object_of(object_of(body.get(TOOLS)).get("toolChoice"))),
        "output_schema": _schema(object_of(object_of(body.get(OUTPUT)).get("textFormat"))),
        "thinking": decode_thinking(body, endpoint),
    }


def _number(value: object, kind: object) -> object:
    return value if isinstance(value, cast("type[int]", kind)) and not isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    items = cast("Sequence[object]", value)
    return tuple(item for item in items if isinstance(item, str)) if all(isinstance(i, str) for i in items) else None


def _choice(choice: Mapping[str, object]) -> str | None:
    if "auto" in choice:
        return "auto"
    if "any" in choice:
        return "required"
    name = object_of(choice.get("tool")).get("name")
    return name if isinstance(name, str) and name not in ("auto", "none", "required") else None


def _schema(form: Mapping[str, object]) -> Mapping[str, object] | None:
    text = object_of(object_of(form.get("structure")).get("jsonSchema")).get("schema")
    if form.get("type") != "json_schema" or not isinstance(text, str):
        return None
    try:
        return parse_frame(text)
    except DecodeError:
        return None


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, model: str | None) -> Wire:
    """Write the options; what was read and still says the same, as it was.

    Raises:
        EncodeError: an option is set that the wire has no word for.
    """
    for name in _WITHOUT_VALUE:
        if getattr(options, name) is not None:
            raise EncodeError("this wire has no word for it", path=("options", name))
    written = _write(options, endpoint)
    if options.extra is not None and PROTOCOL in options.extra:
        written = _as_it_was(written, options, endpoint, model)
    if options.thinking not in (None, "off", 0) and decode_thinking(written, endpoint) is None:
        raise EncodeError(f"{endpoint.model.id} has no word for thinking", path=("options", "thinking"))
    return written


def _as_it_was(written: Wire, options: Options, endpoint: Endpoint, model: str | None) -> Wire:
    """Put in what was read, as far as it still says what the options say."""
    kept, verbatim = left_over(options.extra, PROTOCOL), verbatim_of(options.extra, PROTOCOL)
    absent = [tuple(place) for place in cast("Sequence[Sequence[str]]", verbatim.get("absent", ()))]
    merged = _merged(written, kept, absent)
    touched = {place for place in _FIELDS_OF if _has(kept, place) or place in absent or _is_replaced(kept, place)}
    for place in _stale(options, merged, touched, endpoint, is_same=verbatim.get(_THINKING_OF) == endpoint.model.id):
        _restore(merged, written, place)
    if ASKED_OF in verbatim:
        merged["modelId"] = model if isinstance(verbatim[ASKED_OF], str) and model is not None else verbatim[ASKED_OF]
    return merged


def _merged(written: Wire, kept: Mapping[str, object], absent: Sequence[Place]) -> Wire:
    merged: Wire = {key: dict(object_of(value)) if key in _CONTAINERS else value for key, value in written.items()}
    for key, value in kept.items():
        if key in _CONTAINERS and isinstance(value, Mapping):
            merged[key] = {**object_of(merged.get(key)), **cast("Mapping[str, object]", value)}
        else:
            merged[key] = value
    for place in absent:
        if len(place) == 1:
            merged.pop(place[0], None)
        elif place[0] in merged:
            inner = {key: value for key, value in object_of(merged[place[0]]).items() if key != place[1]}
            if isinstance(merged[place[0]], Mapping):
                merged[place[0]] = inner
    return {key: value for key, value in merged.items() if value != {} or kept.get(key) == {}}


def _is_replaced(kept: Mapping[str, object], place: Place) -> bool:
    """Whether something that is no object stands where the place would be."""
    return place[0] in kept and not isinstance(kept[place[0]], Mapping)


def _stale(options: Options, merged: Wire, touched: set[Place], endpoint: Endpoint, *, is_same: bool) -> list[Place]:
    """Find the places that were kept and no longer say what the options say, or say it in another model's way."""
    meaning = _meaning(merged, endpoint)
    foreign = not is_same and not fits(merged, endpoint)
    return [
        place
        for place, field in _FIELDS_OF.items()
        if (place in touched and meaning[field] != getattr(options, field)) or (foreign and field == "thinking")
    ]


def _restore(merged: Wire, written: Wire, place: Place) -> None:
    """Put in what is written by itself, or nothing."""
    root, key = place
    default = object_of(written.get(root))
    inner = {name: value for name, value in object_of(merged.get(root)).items() if name != key}
    if key in default:
        inner[key] = default[key]
    elif not isinstance(merged.get(root), Mapping):
        return
    if inner:
        merged[root] = inner
    else:
        merged.pop(root, None)


def _write(options: Options, endpoint: Endpoint) -> Wire:
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
        wire[TOOLS] = {"toolChoice": _write_choice(options.tool_choice)}
    if options.output_schema is not None:
        structure = {"jsonSchema": {"schema": json_text(options.output_schema)}}
        wire[OUTPUT] = {"textFormat": {"type": "json_schema", "structure": structure}}
    fields = encode_thinking(options, endpoint)
    if fields:
        wire[FIELDS] = fields
    return wire


def _write_choice(choice: str) -> Wire:
    match choice:
        case "auto":
            return {"auto": {}}
        case "required":
            return {"any": {}}
        case "none":
            raise EncodeError("this wire cannot forbid tools; leave them out", path=("options", "tool_choice"))
        case name:
            return {"tool": {"name": name}}
