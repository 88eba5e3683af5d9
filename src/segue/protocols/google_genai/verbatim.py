"""Both spellings of a key, and what a wire object says beyond segue's words.

Facts this file rests on:
- The server reads `inlineData` and `inline_data` alike, also mixed within one body; official clients have sent both.
                                     (protobuf's JSON mapping; recorded traffic, 2026-11: `parameters_json_schema`
                                      beside `functionDeclarations`, `function_call` at Vertex)
- A key that is null says what its absence says.                                          (the same mapping)

Objects are opened in one spelling, camelCase, which is also what is written. The shape remembers who was spelt the
other way (`snake`) and which keys were null (`null`), so that a body comes out as it came in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.conversation.content import Extra
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.reading import VERBATIM

Wire: TypeAlias = dict[str, object]
Block: TypeAlias = Mapping[str, object]

SNAKE: Final = "snake"
NULL: Final = "null"
INNER: Final = "inner"
"""The key of a part's shape under which the shape of the object inside stands."""

# fmt: off
_KEYS: Final = (
    # a body
    "systemInstruction", "toolConfig", "safetySettings", "generationConfig", "cachedContent", "serviceTier",
    "continuationToken",
    # generationConfig, toolConfig
    "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType", "responseSchema",
    "responseJsonSchema", "responseModalities", "thinkingConfig", "includeThoughts", "thinkingBudget",
    "thinkingLevel", "functionCallingConfig", "allowedFunctionNames",
    # parts and what is inside
    "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
    "toolCall", "toolResponse", "audioTranscription", "thoughtSignature", "mimeType", "fileUri", "displayName",
    "partialArgs", "willContinue", "jsonPath", "stringValue", "numberValue", "boolValue", "nullValue",
    # tools
    "functionDeclarations", "parametersJsonSchema",
    # replies
    "usageMetadata", "modelVersion", "responseId", "promptFeedback", "blockReason", "blockReasonMessage",
    "finishReason", "finishMessage", "promptTokenCount", "candidatesTokenCount", "totalTokenCount",
    "thoughtsTokenCount", "cachedContentTokenCount", "toolUsePromptTokenCount",
    # schemas
    "anyOf", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "propertyOrdering",
    "additionalProperties", "prefixItems",
)
# fmt: on

TO_SNAKE: Final[Mapping[str, str]] = {key: re.sub("[A-Z]", lambda found: "_" + found[0].lower(), key) for key in _KEYS}
TO_CAMEL: Final[Mapping[str, str]] = {snake: camel for camel, snake in TO_SNAKE.items()}


def open_object(raw: Block) -> tuple[Block, Wire]:
    """Give an object with the keys segue knows in camelCase and without nulls, and the shape that tells the way back.

    Nearly all objects are spelt so already, and are given as they are.
    """
    for key, value in raw.items():
        if value is None or "_" in key:
            break
    else:
        return raw, {}
    wire: Wire = {}
    verbatim: Wire = {}
    snake: list[str] = []
    nulls: list[str] = []
    for key, value in raw.items():
        camel = TO_CAMEL.get(key)
        if value is None:
            nulls.append(key)
        elif camel is None or camel in raw:
            wire[key] = value
        else:
            wire[camel] = value
            snake.append(camel)
    if snake:
        verbatim[SNAKE] = snake
    if nulls:
        verbatim[NULL] = nulls
    return wire, verbatim


def close_object(wire: Wire, verbatim: Block) -> Wire:
    """Spell an object the way it was opened."""
    for camel in texts_of(verbatim.get(SNAKE)):
        if camel in wire and camel in TO_SNAKE:
            wire[TO_SNAKE[camel]] = wire.pop(camel)
    for key in texts_of(verbatim.get(NULL)):
        wire.setdefault(key, None)
    return wire


def keep(wire: Block, known: Collection[str], verbatim: Block, inner: Wire | None = None) -> Extra | None:
    """Keep what an opened object says beyond the known keys, and how it was spelt; None when there is nothing.

    `inner` holds what the objects inside said beyond theirs, by the key they stand under.
    """
    left = {key: value for key, value in wire.items() if key not in known}
    if inner:
        left.update(inner)
    if verbatim:
        left[VERBATIM] = dict(verbatim)
    return {PROTOCOL: left} if left else None


def put_back(wire: Wire, extra: Extra, field: str | None = None) -> Wire:
    """Write what `keep` kept: beside the words of an object, and inside of the object under `field`."""
    part = extra.get(PROTOCOL)
    if part is None:
        return wire
    verbatim = verbatim_in(part)
    inside = wire.get(field) if field is not None else None
    for key, value in part.items():
        if key == VERBATIM:
            continue
        if key == field and isinstance(inside, dict) and isinstance(value, Mapping):
            held = cast("Wire", inside)
            for name, given in cast("Block", value).items():
                held.setdefault(name, given)
        else:
            wire.setdefault(key, value)
    if verbatim:
        inner_verbatim = verbatim.get(INNER)
        if isinstance(inside, dict) and isinstance(inner_verbatim, Mapping):
            close_object(cast("Wire", inside), cast("Block", inner_verbatim))
        close_object(wire, verbatim)
    return wire


def verbatim_in(part: Block) -> Block:
    """Give the shape that stands in one protocol's share of `extra`."""
    verbatim = part.get(VERBATIM)
    return cast("Block", verbatim) if isinstance(verbatim, (dict, Mapping)) else {}


def texts_of(value: object) -> Sequence[str]:
    """Give the texts of a list; nothing when it is none."""
    if not isinstance(value, (list, tuple)):
        return ()
    return [item for item in cast("Sequence[object]", value) if isinstance(item, str)]


def object_of(value: object) -> Block:
    """Give a JSON object; an empty one for anything else."""
    return cast("Block", value) if isinstance(value, (dict, Mapping)) else {}
