"""What a generateContent request asks besides the conversation, both ways.

Facts this file rests on:
- Sampling, limits, schema and thinking stand in `generationConfig`, the choice of tools in `toolConfig`; whether the
  reply is streamed is said by the address.                              (google-genai 3.1.0, read 2026-11-15)
- Up to 2.5 thinking has a budget (0: off, -1: as the model likes), from 3 on a level: MINIMAL, LOW, MEDIUM, HIGH. Some
  models cannot leave it off. Thoughts are told only when `includeThoughts` asks for them.
                             (Google documentation: thinking; google-genai 3.1.0; catalogue; read 2026-11-15)
- `ANY` forces a call, of the `allowedFunctionNames` where there are some; `VALIDATED` leaves it open and keeps to the
  schemas; `AUTO` and `NONE`.                                                           (google-genai 3.1.0)
- A choice of functions is refused where none are declared.                                       (kelivo #317)
- A schema of the answer needs `responseMimeType` beside it.                            (google-genai 3.1.0)

A request is looked at as leaves by their path. Reading keeps the leaves that writing would spell differently, in
`extra` of the options. When writing, what was kept counts only as long as it still says what the options say, and
thinking only where the model takes that kind: who changes an option, or the model, changes the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.context import Options, ThinkingLevel
from segue.errors import EncodeError
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.schemas import from_openapi
from segue.protocols.google_genai.verbatim import TO_CAMEL, TO_SNAKE, Block, Wire, texts_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, left_over, text_of, verbatim_of

Leaf: TypeAlias = tuple[str, ...]
Leaves: TypeAlias = dict[Leaf, object]
Thinking: TypeAlias = ThinkingLevel | int | None

GENERATION: Final = "generationConfig"
_THINKING: Final = (GENERATION, "thinkingConfig")
_CALLING: Final = ("toolConfig", "functionCallingConfig")
_BRANCHES: Final = frozenset({(GENERATION,), _THINKING, ("toolConfig",), _CALLING})
"""Objects that are looked into; what stands anywhere else is a leaf."""

BUDGET: Final = (*_THINKING, "thinkingBudget")
LEVEL: Final = (*_THINKING, "thinkingLevel")
_THOUGHTS: Final = (*_THINKING, "includeThoughts")
MODE: Final = (*_CALLING, "mode")
NAMES: Final = (*_CALLING, "allowedFunctionNames")
_MIME: Final = (GENERATION, "responseMimeType")
_JSON_SCHEMA: Final = (GENERATION, "responseJsonSchema")
_OPEN_SCHEMA: Final = (GENERATION, "responseSchema")
_PLAIN: Final[Mapping[str, Leaf]] = {
    "max_tokens": (GENERATION, "maxOutputTokens"),
    "temperature": (GENERATION, "temperature"),
    "top_p": (GENERATION, "topP"),
    "stop": (GENERATION, "stopSequences"),
    "seed": (GENERATION, "seed"),
}
_LEAVES: Final[Mapping[str, tuple[Leaf, ...]]] = {
    **{field: (leaf,) for field, leaf in _PLAIN.items()},
    "thinking": (BUDGET, LEVEL),
    "tool_choice": (MODE, NAMES),
    "output_schema": (_MIME, _JSON_SCHEMA, _OPEN_SCHEMA),
}
"""Which leaves of the body speak of a field of `Options`."""
_UNSAYABLE: Final = ("parallel_tool_calls", "cache_retention", "session_id", "user_id")

_IDLE: Final = frozenset({"auto", "none"})
"""Choices that say nothing where there are no functions; said all the same, they are refused."""

_JSON: Final = "application/json"
_MODES: Final[Mapping[str, str]] = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_CHOICES: Final[Mapping[str, str]] = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
_LEVEL_VALUES: Final[Mapping[ThinkingLevel, str]] = {
    "off": "LOW",  # the least that every model with levels has
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_LEVELS: Final[Mapping[str, ThinkingLevel]] = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
_AUTOMATIC: Final = -1

_THINKING_OF: Final = "thinking_of"
"""The key of the shape that names the model which was asked for a kind of thinking that is not known to be its own."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Block, endpoint: Endpoint, *, has_functions: bool = True) -> Options:
    """Read everything that is not the conversation itself."""
    snake: list[str] = []
    leaves: Leaves = {}
    _pluck({key: value for key, value in body.items() if not _is_conversation(key, body)}, (), leaves, snake)
    options = Options(**_meaning(leaves))  # pyright: ignore[reportArgumentType] - the fields have their types by _meaning
    written = _write(options, endpoint, has_functions=has_functions)
    odd = {leaf for leaf, value in leaves.items() if not _is_same(written, leaf, value)}
    absent = [leaf for leaf in written if leaf not in leaves]
    for group in _LEAVES.values():
        if not odd.isdisjoint(group) or any(leaf in group for leaf in absent):
            odd.update(leaf for leaf in group if leaf in leaves)  # what says one thing is kept together
    kept = _grow({leaf: value for leaf, value in leaves.items() if leaf in odd})
    verbatim: Wire = {}
    if absent:
        verbatim["absent"] = [".".join(leaf) for leaf in absent]
    if snake:
        verbatim["snake"] = snake
    if "model" in body:
        verbatim["model"] = body["model"]
    if not _fits(leaves, endpoint):
        verbatim[_THINKING_OF] = endpoint.model.id
    if verbatim:
        kept[VERBATIM] = verbatim
    return replace(options, extra={PROTOCOL: kept}) if kept else options


def _is_conversation(key: str, body: Block) -> bool:
    if key == "system_instruction":
        return TO_CAMEL[key] not in body
    return key in ("contents", "tools", "systemInstruction", "model")


def _is_same(written: Leaves, leaf: Leaf, value: object) -> bool:
    return leaf in written and written[leaf] == value


def _pluck(branch: Block, path: Leaf, leaves: Leaves, snake: list[str] | None = None) -> None:
    """Collect the leaves of a body; with `snake` in camelCase, and it is told which keys were spelt the other way."""
    for raw, value in branch.items():
        camel = TO_CAMEL.get(raw, raw)
        key = raw if snake is None or camel in branch else camel
        leaf = (*path, key)
        if snake is not None and key != raw:
            snake.append(".".join(leaf))
        if leaf in _BRANCHES and isinstance(value, dict) and value:
            _pluck(cast("Wire", value), leaf, leaves, snake)
        else:
            leaves[leaf] = value


def _grow(leaves: Leaves) -> Wire:
    """Give leaves their branches back."""
    tree: Wire = {}
    for leaf, value in leaves.items():
        branch = tree
        for key in leaf[:-1]:
            below = branch.get(key)
            # An empty object that was kept makes room for what is said now.
            held: Wire = dict(cast("Wire", below)) if isinstance(below, dict) else {}
            branch[key] = held
            branch = held
        branch.setdefault(leaf[-1], value)
    return tree


def _meaning(leaves: Leaves) -> Wire:
    """Say what a body asks for, in the fields of `Options`; what has another form than it should have says nothing."""
    return {
        "max_tokens": _number(leaves.get(_PLAIN["max_tokens"]), int),
        "temperature": _number(leaves.get(_PLAIN["temperature"]), int | float),
        "top_p": _number(leaves.get(_PLAIN["top_p"]), int | float),
        "seed": _number(leaves.get(_PLAIN["seed"]), int),
        "stop": _texts(leaves.get(_PLAIN["stop"])),
        "thinking": _thinking(leaves.get(BUDGET), leaves.get(LEVEL)),
        "tool_choice": _choice(leaves.get(MODE), texts_of(leaves.get(NAMES))),
        "output_schema": _schema(leaves.get(_JSON_SCHEMA), leaves.get(_OPEN_SCHEMA)),
    }


def _number(value: object, kind: object) -> object:
    return value if isinstance(value, cast("type[int]", kind)) and not isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    texts = texts_of(cast("list[object]", value))
    return tuple(texts) if len(texts) == len(cast("list[object]", value)) else None


def _thinking(budget: object, level: object) -> Thinking:
    if isinstance(level, str):
        return _LEVELS.get(level.upper())
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:
        return None
    return budget or "off"


def _choice(mode: object, names: object) -> str | None:
    wanted = texts_of(names)
    literal = (text_of(mode) or "").upper()
    return wanted[0] if literal == "ANY" and len(wanted) == 1 else _CHOICES.get(literal)


def _schema(json_schema: object, open_schema: object) -> Block | None:
    if isinstance(json_schema, dict):
        return cast("Block", json_schema)
    return from_openapi(cast("Block", open_schema)) if isinstance(open_schema, dict) else None


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(
    options: Options, endpoint: Endpoint, named: str | None = None, *, has_functions: bool = True
) -> Wire:
    """Write the options, and the name of the model where the body had one.

    Raises:
        EncodeError: an option is set that the wire has no word for.
    """
    for name in _UNSAYABLE:
        if getattr(options, name) is not None:
            raise EncodeError("this wire has no word for it", path=("options", name))
    written = _write(options, endpoint, has_functions=has_functions)
    if options.extra is None or PROTOCOL not in options.extra:
        return _grow(written)
    verbatim = verbatim_of(options.extra, PROTOCOL)
    kept: Leaves = {}
    _pluck(left_over(options.extra, PROTOCOL), (), kept)
    absent = {tuple(path.split(".")) for path in texts_of(verbatim.get("absent"))}
    merged = {leaf: value for leaf, value in {**written, **kept}.items() if leaf not in absent}
    for leaf in _stale(options, merged, {*kept, *absent}, verbatim, endpoint):
        merged.pop(leaf, None)
        if leaf in written:
            merged[leaf] = written[leaf]
    body = _grow(merged)
    for path in sorted(texts_of(verbatim.get("snake")), key=len, reverse=True):
        _to_snake_case(body, path.split("."))
    if "model" in verbatim:
        body["model"] = named if named is not None and isinstance(verbatim["model"], str) else verbatim["model"]
    return body


def _stale(options: Options, merged: Leaves, touched: set[Leaf], verbatim: Block, endpoint: Endpoint) -> set[Leaf]:
    """Find the leaves that were kept and no longer say what the options say, or say it to another model."""
    meaning = _meaning(merged)
    stale: set[Leaf] = set()
    for field, leaves in _LEAVES.items():
        if not touched.isdisjoint(leaves) and meaning[field] != getattr(options, field):
            stale.update(leaves)
    if verbatim.get(_THINKING_OF) != endpoint.model.id and not _fits(merged, endpoint):
        stale.update((BUDGET, LEVEL))
    return stale


def _to_snake_case(body: Wire, path: list[str]) -> None:
    branch = body
    for key in path[:-1]:
        below = branch.get(key)
        if not isinstance(below, dict):
            return
        branch = cast("Wire", below)
    if path[-1] in branch and path[-1] in TO_SNAKE:
        branch[TO_SNAKE[path[-1]]] = branch.pop(path[-1])


def _fits(leaves: Leaves, endpoint: Endpoint) -> bool:
    """Whether the model is known to take this kind of thinking."""
    content = endpoint.dialect.thinking_format
    return (LEVEL not in leaves or content == "level") and (BUDGET not in leaves or content == "budget")


def _write(options: Options, endpoint: Endpoint, *, has_functions: bool) -> Leaves:
    leaves: Leaves = {}
    for field, leaf in _PLAIN.items():
        value: object = getattr(options, field)
        if value is not None:
            leaves[leaf] = list(options.stop or ()) if field == "stop" else value
    if options.output_schema is not None:
        leaves[_MIME] = _JSON
        leaves[_JSON_SCHEMA] = options.output_schema
    _write_thinking(options.thinking, endpoint, leaves)
    choice = options.tool_choice
    if choice is not None and (has_functions or choice not in _IDLE):
        leaves[MODE] = _MODES.get(choice, "ANY")
        if choice not in _MODES:
            leaves[NAMES] = [choice]
    return leaves


def _write_thinking(asked: Thinking, endpoint: Endpoint, leaves: Leaves) -> None:
    model, content = endpoint.model, endpoint.dialect.thinking_format
    if asked is None or content not in ("level", "budget"):
        return
    if content == "level":
        level = level_for_budget(asked) if isinstance(asked, int) else asked
        leaves[LEVEL] = (model.thinking_levels.get(level) or _LEVEL_VALUES[level]).upper()
    else:
        level = asked or "off"
        leaves[BUDGET] = level if isinstance(level, int) else budget_for_level(level, endpoint.dialect)
    if level != "off":
        leaves[_THOUGHTS] = True
