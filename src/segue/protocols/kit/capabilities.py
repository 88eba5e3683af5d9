"""Checks of what a model and a wire can do, the same for every protocol: media, types of tools, schemas, refused keys.

What a target can do is in its rules and in the entry of its model, each with source and date; this file only compares a
body with them. `Places` says where the bodies of one protocol have their media, tools and schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from segue.errors import Path
from segue.foundation.json_text import encode_json
from segue.models.model import Modality, Model
from segue.models.rules import Rules
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found, as_checked, may_have, objects_of
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.schemas import find_faults, refused_properties

_CLASSES: Final[Mapping[Modality, tuple[str, ...]]] = {
    "image": ("image",),
    "audio": ("audio",),
    "video": ("video",),
    "document": ("application", "text"),
}
"""Modalities -> the first part of their MIME types."""


class Places(NamedTuple):
    """Where the bodies of a protocol have what capabilities are about.

    `turns` is the key of the messages, `media` the modality of a block, by its type, `inner` the paths of the blocks
    inside a message or a result. `tools` is the path of the tools, `function` that of a function inside a tool,
    `schema` that of its schema, `strict` that of the flag, both inside the function. `output` are the paths of an
    output schema, `output_strict` that of its flag. `judged` are refused keys that the check of the protocol judges by
    their values. `json_mode` is the path of the type of the output, `limits` are those of the limit of output tokens.
    """

    turns: str = "messages"
    media: Mapping[str, Modality] = {}
    inner: tuple[Path, ...] = (("content",),)
    tools: Path = ("tools",)
    function: Path = ()
    schema: Path = ("parameters",)
    strict: Path = ("strict",)
    output: tuple[Path, ...] = ()
    output_strict: Path = ()
    judged: frozenset[str] = frozenset()
    json_mode: Path = ()
    limits: tuple[Path, ...] = ()


def check_capabilities(body: JsonObject, places: Places, endpoint: Endpoint) -> Iterator[Violation]:
    """Find what the model or the wire cannot do."""
    checked = as_checked(body)
    if isinstance(checked.encoded, Exception):
        encode_json(body)  # raises an error unless a text is all that is wrong
    if not may_have(checked, places.media):
        places = places._replace(media={})  # so that no block is visited
    for check in _CHECKS:
        yield from check(body, places, endpoint)


# -- media -------------------------------------------------------------------------------------------------------------


def is_listed(endpoint: Endpoint) -> bool:
    """Whether the abilities of a model are known: an id alone has the default ones."""
    return _has_abilities(endpoint.model)


def _has_abilities(model: Model) -> bool:
    return bool(model.context_window or model.max_tokens) or model.input != ("text", "image")


def is_described(model: Model) -> bool:
    """Whether a model has abilities, rules or its own dialect."""
    return _has_abilities(model) or bool(model.rules or model.dialect)


def refused_input(model: Model, rules: Rules) -> frozenset[Modality]:
    """Return the kinds of media that a target refuses.

    A model of a user's own, or of a file, refuses what its `input` does not list. The packaged catalogue follows other
    people's lists, so of its models only `Rules.refused_input` is known.
    """
    if "refused_input" in model.flags:
        return rules.refused_input
    return rules.refused_input.union(kind for kind in _CLASSES if kind not in model.input)


def _check_media(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find media that the model does not read.

    "Content blocks are expected to be either text or image_url type." (OpenAI); "unknown variant `image_url`, expected
    `text`" (DeepSeek: kimi-code #2669).
    """
    if not places.media:
        return
    refused = refused_input(endpoint.model, endpoint.rules) if is_listed(endpoint) else frozenset[Modality]()
    for path, kind in _find_media(body.get(places.turns), (places.turns,), places):
        unread = kind in refused and kind != "document"
        # Without a provider, the rules are those of the protocol's own, and nothing is known about this model.
        if unread or (endpoint.model.provider and not takes(kind, endpoint.rules)):
            message = f"{endpoint.model.id or 'the model'} does not support {kind} input; remove it or choose another"
            yield Violation(CheckCode.MEDIA_UNSUPPORTED, path, message)


def takes(kind: Modality, rules: Rules) -> bool:
    """Whether the rules of a target allow media of a modality in user content."""
    wanted = _CLASSES.get(kind)
    if wanted is None:
        return True
    return any(pattern == "*" or pattern.partition("/")[0] in wanted for pattern in rules.user_media)


def _find_media(value: object, path: Path, places: Places) -> Iterator[tuple[Path, Modality]]:
    """Find the blocks of media in messages and in tool results; not inside the JSON of calls."""
    for index, block in objects_of(value):
        place = (*path, index)
        named = block.get("type")
        names = [named] if isinstance(named, str) else list(block)
        kind: Modality | None = next((places.media[name] for name in names if name in places.media), None)
        if kind is not None and "role" not in block:
            yield place, kind
        for inner in places.inner:
            yield from _find_media(_at(block, inner), (*place, *inner), places)


# -- tools and schemas -------------------------------------------------------------------------------------------------


def _at(value: object, path: Iterable[object]) -> object:
    for key in path:
        value = object_of(value).get(cast("str", key))
    return value


def _check_tools(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find tools of a model without them, types of tools that the endpoint does not have, and schemas that it refuses.

    "... does not support tools" (Ollama), "This model doesn't support tool use." (Bedrock); DeepSeek, Groq and others
    take functions alone in Chat Completions. (their API references)
    """
    rules, strict_tools = endpoint.rules, 0
    if not rules.tools and _at(body, places.tools):
        message = f"{endpoint.model.id or 'the model'} does not support tools; remove them or choose another"
        yield Violation(CheckCode.TOOLS_UNSUPPORTED, places.tools, message)
        return
    for index, tool in objects_of(_at(body, places.tools)):
        path: Path = (*places.tools, index)
        kind = tool.get("type")
        if rules.tool_types is not None and isinstance(kind, str) and kind not in rules.tool_types:
            message = f"there is no tool of the type {kind!r} here; use {', '.join(sorted(rules.tool_types))}"
            yield Violation(CheckCode.TOOL_TYPE_UNSUPPORTED, (*path, "type"), message)
            continue
        if isinstance(kind, str) and kind in rules.refused_tool_types:
            # "The requested tool image_generation is not supported." (Copilot: copilot-api #220, 2026-04-27)
            message = f"{endpoint.model.id} does not support {kind}; remove it, or use another tool"
            yield Violation(CheckCode.TOOL_TYPE_UNSUPPORTED, (*path, "type"), message)
            continue
        function = _at(tool, places.function)
        schema = _at(function, places.schema)
        if not isinstance(schema, Mapping):
            continue
        strict = _at(function, places.strict) is True
        strict_tools += strict
        place = (*path, *places.function, *places.schema)
        yield from _faults(cast("Block", schema), place, rules, strict=strict)
        for name in refused_properties(cast("Block", schema), rules):
            pattern = rules.rows["property_names"].pattern
            message = f"the name {name!r} does not match {pattern}; rename the property"
            yield Violation(CheckCode.SCHEMA_PROPERTY_INVALID, (*place, "properties", name), message)
    if 0 < (most := rules.most("strict_tools")) < strict_tools:
        message = f"{strict_tools} tools are strict, and at most {most} may be; remove `strict`"
        yield Violation(CheckCode.TOOLS_TOO_MANY, places.tools, message)


def _check_output(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find an output schema that the endpoint refuses."""
    for path in places.output:
        schema = _at(body, path)
        if isinstance(schema, Mapping):
            strict = endpoint.rules.has("lenient_output") or _at(body, places.output_strict or ("",)) is True
            yield from _faults(cast("Block", schema), path, endpoint.rules, strict=strict, output=True)


def _faults(schema: Block, path: Path, rules: Rules, *, strict: bool, output: bool = False) -> Found:
    for fault in find_faults(schema, rules, strict=strict, output=output):
        yield Violation(fault.code, (*path, *fault.path), fault.message)


# -- keys --------------------------------------------------------------------------------------------------------------


def _check_refused(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find keys that this endpoint refuses; the rows of the rules have the sources."""
    model = endpoint.model.id or "the endpoint"
    for name in sorted(endpoint.rules.refused_extra - places.judged):
        key, _, value = name.partition("=")
        path: Path = tuple(key.split("."))
        given = _at(body, path)
        if given is not None and (not value or given == value):
            message = f"{model} does not support `{name}`; remove it or choose another model"
            yield Violation(CheckCode.OPTION_UNSUPPORTED, path, message)


def _check_json_word(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find JSON mode without the word in the messages.

    OpenAI refuses it; Groq and DeepSeek ask for the word too. (documentation: JSON mode)
    """
    if not (places.json_mode and endpoint.rules.json_word) or _at(body, places.json_mode) != "json_object":
        return
    if b"json" not in encode_json([body.get(places.turns), body.get("instructions")]).lower():
        message = "JSON mode needs the word JSON in a message; add it, or send a schema"
        yield Violation(CheckCode.JSON_WORD_MISSING, places.json_mode, message)


def _check_json_beside_tools(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find JSON output with tools, where it is refused.

    "json mode cannot be combined with tool/function calling" (Groq: agno #1065; documentation: structured outputs).
    """
    if not places.json_mode or endpoint.rules.schema_with_tools or not _at(body, places.tools):
        return
    if _at(body, places.json_mode) in ("json_object", "json_schema"):
        message = "JSON output cannot be combined with tools here; remove one of them"
        yield Violation(CheckCode.JSON_WITH_TOOLS, places.json_mode, message)


def _check_marks(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find more cache marks than a target accepts.

    "A maximum of 4 blocks with cache_control may be provided. Found 5." (Claude through OpenRouter: aider-desk #513)
    """
    key, most = endpoint.rules.cache_mark_key, endpoint.rules.cache_marks
    if not key or not most or not may_have(body, (key,)):
        return
    marks = [path for root in ("tools", "system", places.turns) for path in _find_key(body.get(root), (root,), key)]
    if len(marks) > most:
        message = f"{len(marks)} blocks have `{key}`; keep at most {most}"
        yield Violation(CheckCode.CACHE_MARKS_TOO_MANY, marks[most], message)


def _find_key(value: object, path: Path, key: str) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for name, inner in cast("Block", value).items():
            if name == key and isinstance(inner, Mapping):
                yield (*path, name)
            elif name not in ("input", "arguments", "parameters", "input_schema", "json"):
                yield from _find_key(inner, (*path, name), key)
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            yield from _find_key(inner, (*path, index), key)


def _check_counts(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find more images than a target accepts: five at Groq (dsh-vision-toolkit #69, 2026-08-16)."""
    most = endpoint.rules.max_images
    if not most or not places.media:
        return
    images = [path for path, kind in _find_media(body.get(places.turns), (places.turns,), places) if kind == "image"]
    if len(images) > most:
        message = f"{len(images)} images, and at most {most} are supported; remove some"
        yield Violation(CheckCode.MEDIA_TOO_MANY, images[most], message)


def _check_limit(body: JsonObject, places: Places, endpoint: Endpoint) -> Found:
    """Find a limit of output tokens above that of the model.

    "max_tokens is too large: 32000. This model supports at most 16384 completion tokens" (OpenAI: ExtractThinker #346,
    2025-06-24).
    """
    most = endpoint.model.max_tokens
    for path in places.limits if most and endpoint.rules.max_tokens_refused else ():
        given = _at(body, path)
        if isinstance(given, int) and given > most:
            message = f"{endpoint.model.id} writes at most {most:,} tokens, not {given:,}; lower `{path[-1]}`"
            yield Violation(CheckCode.MAX_TOKENS_TOO_LARGE, path, message)


def _check_needed(body: JsonObject, _: Places, endpoint: Endpoint) -> Found:
    """Find a body without a list that it has to have; Google accepts keys in either case."""
    for key, value in sorted(needed.partition("=")[::2] for needed in endpoint.rules.values("needed_fields")):
        path: Path = tuple(key.split("."))
        given: object = body
        for name in path:
            inner = {_plain(other): held for other, held in object_of(given).items()}
            given = inner.get(_plain(str(name)))
        if not isinstance(given, list) or value not in {*map(str, cast("list[object]", given))}:
            message = f"{endpoint.model.id or 'the endpoint'} needs `{key}` with {value}; set it"
            yield Violation(CheckCode.OPTION_NEEDS_OTHER, path, message)


def _plain(key: str) -> str:
    return key.replace("_", "").lower()


def _check_stream(body: JsonObject, _: Places, endpoint: Endpoint) -> Found:
    """Find a request for a whole reply where the target has none."""
    if not endpoint.rules.unstreamed and body.get("stream") is not True:
        message = f"{endpoint.model.id or 'the endpoint'} answers only in a stream; set `stream` to true"
        yield Violation(CheckCode.STREAM_REQUIRED, ("stream",), message)


_CHECKS: Final = (
    _check_stream,
    _check_needed,
    _check_media,
    _check_tools,
    _check_output,
    _check_refused,
    _check_json_word,
    _check_json_beside_tools,
    _check_limit,
    _check_marks,
    _check_counts,
)


def merge(found: Iterable[Violation], more: Iterable[Violation]) -> list[Violation]:
    """Add violations in places that have none yet."""
    violations = list(found)
    places = {violation.path for violation in violations if violation.path}
    above = {place[:size] for place in places for size in range(len(place) + 1)}
    for violation in more:
        path = violation.path
        if path not in above and not any(path[:size] in places for size in range(1, len(path))):
            violations.append(violation)
    return violations
