"""Check whether Ollama accepts a body.

Facts: the server decodes the body into typed structures, so a wrong type answers 400; null is the
same as absent, unknown keys and options are ignored, roles and their order are not checked. Checks beyond types name
their source.                                                       (ollama server source @fb30760, read 2026-11-15)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

from segue.errors import Path
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.limits import Limit, Limits
from segue.protocols.kit.media_checks import ANY_IMAGE, check_bytes
from segue.protocols.kit.request_fields import RequestFields
from segue.protocols.ollama_chat.rules import WITHOUT_TOOLS

_Found = Iterator[Violation]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in cast("Sequence[object]", value))


_DURATION: Final = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+|[+-]?0")
_TYPES: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "string": (lambda value: isinstance(value, str), "a string"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "number": (_is_number, "a number"),
    "integer": (_is_whole, "a whole number"),
    "object": (lambda value: isinstance(value, Mapping), "an object"),
    "list": (lambda value: isinstance(value, list | tuple), "a list"),
    "strings": (_is_texts, "a list of strings"),
    "duration": (
        # "time: unknown unit \" minutes\" in duration" (Go's time.ParseDuration)
        lambda value: _is_number(value) or (isinstance(value, str) and _DURATION.fullmatch(value) is not None),
        "seconds, or a duration such as 5m",
    ),
    "think": (
        lambda value: isinstance(value, bool) or value in ("low", "medium", "high", "max"),
        "true, false, low, medium, high or max",  # "invalid think value"
    ),
    "format": (
        # "invalid format: expected \"json\" or a JSON schema" (ollama #8126)
        lambda value: isinstance(value, Mapping) or value in ("json", ""),
        'a JSON schema or "json"',
    ),
}
_BODY: Final[Mapping[str, str]] = {
    "model": "string",
    "messages": "list",
    "tools": "list",
    "stream": "boolean",
    "think": "think",
    "format": "format",
    "keep_alive": "duration",
    "options": "object",
    "logprobs": "boolean",
    "top_logprobs": "integer",
    "truncate": "boolean",
    "shift": "boolean",
}
_MESSAGE: Final[Mapping[str, str]] = {
    "role": "string",
    "content": "string",  # litellm #6808, #11273
    "thinking": "string",
    "images": "strings",
    "tool_calls": "list",
    "tool_name": "string",
    "tool_call_id": "string",
}
_FUNCTION: Final[Mapping[str, str]] = {"name": "string", "arguments": "object"}  # ollama #12794, langchain #34790
_TOOL: Final[Mapping[str, str]] = {"type": "string", "function": "object"}
_TOOL_FUNCTION: Final[Mapping[str, str]] = {"name": "string", "description": "string", "parameters": "object"}
_PARAMETERS: Final[Mapping[str, str]] = {"type": "string", "required": "strings", "properties": "object"}
_OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep"), "number"),
    **dict.fromkeys(("seed", "num_predict", "top_k", "repeat_last_n", "mirostat"), "number"),
    **dict.fromkeys(("top_p", "min_p", "typical_p", "temperature", "repeat_penalty", "presence_penalty"), "number"),
    **dict.fromkeys(("frequency_penalty", "mirostat_tau", "mirostat_eta", "tfs_z"), "number"),
    "use_mmap": "boolean",
    "stop": "strings",  # "option \"stop\" must be of type array"
}
_MOST_LOGPROBS: Final = 20
_WITHOUT_THINKING: Final = (
    rf"{WITHOUT_TOOLS}|(?:^|/)(?:llama3\.[123]|llama4|mistral(?:-(?:nemo|small[\d.]*|large))?|mixtral|ministral-3|codestral"
    r"|qwen2(?:\.5)?(?:-coder)?|qwen2\.5vl|command-r(?:-plus)?|phi4-mini|smollm2?"
    r"|qwen3-coder(?:-next)?|gemma3n?|cogito|granite3\.[0-3]|devstral)(?=:|$)"
)
"""Models of the library without thinking. (ollama.com/library, read 2026-11-17; crush #2623, llm-ollama #54 and ollama
#10983 for the last row)"""
_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(function=("function",)),
    limits=Limits(
        (
            Limit(
                "messages",
                '"\\"nomic-embed-text\\" does not support chat" (server source: capabilities)',
                refused="choose a model that writes",
                models=r"embed|minilm|(?:^|/)bge-",
                providers=("ollama",),
            ),
            *(
                Limit(
                    "think",
                    '"\\"llama3.2\\" does not support thinking" (server source: capabilities; reported 400s)',
                    refused="remove it",
                    equals=level,
                    models=_WITHOUT_THINKING,
                    providers=("ollama",),
                )
                for level in (True, "low", "medium", "high", "max")
            ),
        ),
        read="2026-11-18",
    ),
)


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the server refuses."""
    found = [*_typed(body, _BODY, ())]
    if not body.get("model"):
        # "model is required"; the client does not send the request (ollama 0.6.3)
        found.append(Violation(CheckCode.MODEL_MISSING, ("model",), "the request names no model; set `model`"))
    found += _typed(object_of(body.get("options")), _OPTIONS, ("options",))
    logprobs = body.get("top_logprobs")
    if _is_whole(logprobs) and not 0 <= cast("int", logprobs) <= _MOST_LOGPROBS:
        message = f"top_logprobs has to be between 0 and {_MOST_LOGPROBS}; change it"
        found.append(Violation(CheckCode.VALUE_OUT_OF_RANGE, ("top_logprobs",), message))
    for path, wire in _objects(body.get("messages"), ("messages",)):
        found += _check_message(wire, path)
    for path, wire in _objects(body.get("tools"), ("tools",)):
        found += _check_tool(wire, path, endpoint)
    return _FIELDS.add(found, body, endpoint)


def _typed(wire: Block, types: Mapping[str, str], path: Path) -> _Found:
    """Find values of a wrong type; null is the same as absent."""
    for key, value in wire.items():
        kind = types.get(key)
        if kind is None or value is None:
            continue
        fits, expected = _TYPES[kind]
        if not fits(value):
            yield Violation(CheckCode.TYPE_WRONG, (*path, key), f"`{key}` has to be {expected}; change it")


def _objects(received: object, path: Path) -> Iterator[tuple[Path, Block]]:
    """Yield the objects of a list; another item becomes an object whose fields have its type, which is reported."""
    if isinstance(received, list | tuple):
        for index, item in enumerate(cast("Sequence[object]", received)):
            yield (*path, index), cast("Block", item) if isinstance(item, Mapping) else {"role": item, "function": item}


def _check_message(wire: Block, path: Path) -> _Found:
    yield from _typed(wire, _MESSAGE, path)
    images = wire.get("images")
    for at, image in enumerate(cast("Sequence[object]", images) if isinstance(images, list | tuple) else ()):
        if isinstance(image, str) and not _is_base64(image):
            # "illegal base64 data at input byte 4": a URL or a data URL (litellm convert_to_ollama_image)
            yield Violation(
                CheckCode.MEDIA_BASE64_INVALID, (*path, "images", at), "an image must be bare base64; send its data"
            )
        else:
            yield from check_bytes(image, ANY_IMAGE, (*path, "images", at))
    for place, call in _objects(wire.get("tool_calls"), (*path, "tool_calls")):
        yield from _typed(call, {"id": "string", "function": "object"}, place)
        yield from _typed(object_of(call.get("function")), _FUNCTION, (*place, "function"))


def _is_base64(text: str) -> bool:
    """Whether a text can be base64, by its length, its beginning and its end."""
    if len(text) % 4:
        return False
    try:
        base64.b64decode(text[:64] + text[64:][-4:], validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _check_tool(wire: Block, path: Path, endpoint: Endpoint) -> _Found:
    yield from _typed(wire, _TOOL, path)
    function, place = object_of(wire.get("function")), (*path, "function")
    yield from _typed(function, _TOOL_FUNCTION, place)
    parameters = function.get("parameters")
    schema = object_of(parameters)
    yield from _typed(schema, _PARAMETERS, (*place, "parameters"))
    if endpoint.rules.schema_root_object and parameters is not None and schema.get("type") not in (None, "object"):
        # ollama 0.6.3: "parameters.type: Input should be 'object'"
        yield Violation(
            CheckCode.SCHEMA_ROOT_INVALID,
            (*place, "parameters", "type"),
            "the schema of a tool must have the type object; wrap it in one",
        )
