"""The two names of each key, and how objects are read whichever name they use.

Facts this file rests on:
- The server accepts `inlineData` and `inline_data`, also mixed within one body; official clients have sent both.
                                     (protobuf's JSON mapping; recorded traffic, 2026-11: `parameters_json_schema`
                                      beside `functionDeclarations`, `function_call` at Vertex)
- A key that is null means the same as an absent key.                                     (the same mapping)

Objects are read and written in camelCase. That an object used snake_case or nulls is format, kept by `kit.verbatim`
with `TO_CAMEL` as aliases.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import Extra
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.json_values import EMPTY, Block
from segue.protocols.kit.verbatim import keep

# fmt: off
_KEYS: Final = (
    # a body
    "systemInstruction", "toolConfig", "safetySettings", "generationConfig", "cachedContent", "serviceTier",
    "continuationToken",
    # generationConfig, toolConfig
    "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType", "responseSchema",
    "responseJsonSchema", "responseModalities", "thinkingConfig", "includeThoughts", "thinkingBudget",
    "thinkingLevel", "presencePenalty", "frequencyPenalty", "functionCallingConfig", "allowedFunctionNames",
    "includeServerSideToolInvocations",
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
INSTEAD: Final[Mapping[str, str]] = {
    "parameters": "parametersJsonSchema",
    "responseSchema": "responseJsonSchema",
    "thinkingBudget": "thinkingLevel",
    "thinkingLevel": "thinkingBudget",
    "result": "output",
    "return_value": "output",
    "call_error": "error",
}
"""Keys that mean the same in another form -> the key that segue writes."""


def read_keys(raw: Block) -> Block:
    """Give an object with its known keys in camelCase and without nulls; nearly all are so already."""
    for key, value in raw.items():
        if value is None or "_" in key:
            break
    else:
        return raw
    wire: dict[str, object] = {}
    for key, value in raw.items():
        if value is not None:
            camel = TO_CAMEL.get(key, key)
            wire[key if camel in raw else camel] = value
    return wire


def name_in(wire: Block, camel: str) -> str:
    """Give the name that an object uses for a key; the camelCase one where it has none."""
    return TO_SNAKE[camel] if camel not in wire and TO_SNAKE[camel] in wire else camel


def keep_format(
    received: Block,
    default: Block,
    known: Collection[str],
    choices: Block = EMPTY,
    *,
    only_for: str | None = None,
) -> Extra | None:
    """Keep how a received object differs from the default one; see `kit.verbatim.keep`."""
    return keep(PROTOCOL, received, default, known, choices, only_for=only_for, aliases=TO_CAMEL, instead=INSTEAD)


def texts_of(value: object) -> Sequence[str]:
    """Give the texts of a list; nothing when it is none."""
    if not isinstance(value, (list, tuple)):
        return ()
    return [item for item in cast("Sequence[object]", value) if isinstance(item, str)]
