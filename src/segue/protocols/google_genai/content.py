"""Parts of a content, both ways.

A call without an id gets one made of its position, so that results can refer to it. That the wire had none is format,
also in a reply: a model without ids gets its calls back without ids.

Results of code that Google ran, as text that other models can read.

The two names of each key, and how objects are read whichever name they use.

Objects are read and written in camelCase. That an object used snake_case or nulls is format, kept by `kit.verbatim`
with `TO_CAMEL` as aliases.

Images and files, both ways.

Data are not parsed. A source in none of these forms makes the part a native one.

What other models can read of parts that only this protocol has.

So the output of a program, a transcript and an image have a fallback; calls and encrypted parts have none.

Fast path of a stream: frames that have one part, and nothing new next to it, which are most frames.

A frame with any other key does not fit and is decoded by `stream`, so this file decides nothing about meaning.

Pages that a reply of Gemini is grounded on.

Facts:
- A part has exactly one field of data; other keys (`thought`, `thoughtSignature`, `videoMetadata`, ...) are next to
  that field.                                                                  (google-genai 3.1.0, read 2026-11-15)
- A signature is sent back on the part it was received on: a text, a call, an empty text, a thought; next to
  `functionCall`, never inside.  (Google documentation: thought signatures, read 2026-11-15; claude-relay #967)
- Calls have ids from Gemini 3 on; older models give none and accept any.              (recorded traffic, 2026-11)
- `args` is an object, not text, and may be absent.                                          (google-genai 3.1.0)
- An unknown part, or one that has a `type` as the blocks of other APIs do, is kept and sent back unchanged.
- `codeExecutionResult` has an `outcome` and an `output`: what was printed, or the error.
                                                                               (google-genai 3.1.0, read 2026-11-15)
- The server accepts `inlineData` and `inline_data`, also mixed within one body; official clients have sent both.
                                     (protobuf's JSON mapping; recorded traffic, 2026-11: `parameters_json_schema`
                                      next to `functionDeclarations`, `function_call` at Vertex)
- A key that is null means the same as an absent key.                                     (the same mapping)
- `inlineData` holds base64 with its MIME type; `fileData` an address: of the Files API, of Cloud Storage (`gs://`), of
  a public page or a video.            (google-genai 3.1.0; Google documentation: file input methods; read 2026-11-15)
- Base64 comes in both alphabets: the official client writes the URL-safe one.       (recorded traffic, 2026-11)
- `displayName` is the name of a file; both endpoints accept it.                      (google-genai 3.1.0)
- An address has no type; where the caller gives none, the extension of its file name decides.
- Code that the model ran and server tools that it called are in its turn, next to their results: `executableCode` and
  `codeExecutionResult`, `toolCall` and `toolResponse`. The latter is encrypted or made for display.
                                                                    (google-genai 3.1.0; recorded traffic, 2026-11)
- Images and speech that the model made are `inlineData` in its turn.                       (google-genai 3.1.0)
- Calls written as text make other models write such text instead of calling.   (vscode copilot api #171)
- Such a frame has one candidate with one part. Next to it are the model and the id of the reply, which do not change,
  and the counts so far; the last ones are valid.                                  (recorded traffic, 2026-11)
- Decoding a frame into these structs takes half the time of decoding it into dicts. The counts are the larger part of a
  frame: they are checked, but not decoded.                                                     (measured 2026-11-16)
- `groundingMetadata.groundingChunks[].web` {uri, title} of a candidate; it is never sent back. The title is the domain
  and the address a redirect.                      (google-genai 3.1.0; recorded traffic, 2026-11; read 2026-11-15)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar, assert_never, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.arguments import read_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError
from segue.protocols.families.citations import find_in_reply, read_span
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, detached, list_of, object_of
from segue.protocols.kit.reading import native_block, standard_base64, text_of
from segue.protocols.kit.replay import Replay
from segue.protocols.kit.sources import CitedPage, labelled, objects_in
from segue.protocols.kit.streaming import ClosedForm
from segue.protocols.kit.verbatim import data_of, keep, restore

_FINISHED: Final = ("OUTCOME_OK", "OUTCOME_UNSPECIFIED")


def describe_output(result: Block) -> str | None:
    """Write what a program printed, or how it failed; None without output."""
    output, outcome = text_of(result.get("output")), text_of(result.get("outcome")) or _FINISHED[0]
    failed = outcome not in _FINISHED
    if not (output and output.strip()) and not failed:
        return None
    label = "output of executed code"
    if failed:
        label += f": {outcome.removeprefix('OUTCOME_').lower().replace('_', ' ')}"
    return labelled(label, [(output or "").rstrip("\n")])


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
    """Return an object with its known keys in camelCase and without nulls; nearly all are so already."""
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
    """Return the name that an object uses for a key; the camelCase one where it has none."""
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
    """Return the texts of a list; nothing when it is none."""
    if not isinstance(value, (list, tuple)):
        return ()
    return [item for item in cast("Sequence[object]", value) if isinstance(item, str)]


INLINE: Final = "inlineData"
FILE: Final = "fileData"
MEDIA_FIELDS: Final = (INLINE, FILE)

_OWN_FILES: Final = ("gs://", "files/", "https://generativelanguage.googleapis.com/")
"""How addresses begin that only Google itself can read."""

_ENDINGS: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}
"""Extensions -> MIME types that Gemini reads (Google documentation: file input methods, read 2026-11-15)."""


def type_of_name(url: str) -> str | None:
    """Guess the MIME type from the extension of an address."""
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return _ENDINGS.get(name.rpartition(".")[2].lower()) if "." in name else None


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_media(wire: Block, field: str | None) -> ImageContent | FileContent | None:
    """Read the media of a part; None when they have no known form."""
    inside = read_keys(object_of(wire.get(field or "")))
    mime, data, uri = inside.get("mimeType"), inside.get("data"), inside.get("fileUri")
    if not (mime is None or isinstance(mime, str)):
        return None
    name = text_of(inside.get("displayName"))
    if field == INLINE and isinstance(data, str):
        data = standard_base64(data)
        if (mime or "").startswith("image/"):
            return ImageContent(data=data, mime_type=mime)
        return FileContent(data=data, mime_type=mime, name=name)
    if field != FILE or not isinstance(uri, str):
        return None
    if uri.startswith(_OWN_FILES):
        return FileContent(file_id=uri, mime_type=mime, name=name)
    kind = mime or type_of_name(uri) or ""
    if kind.startswith("image/"):
        return ImageContent(url=uri, mime_type=mime)
    return FileContent(url=uri, mime_type=mime, name=name)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent) -> Wire:
    """Write an image, without what `extra` holds.

    Raises:
        EncodeError: it has neither data nor a URL, or data without a MIME type.
    """
    if image.data is not None:
        if image.mime_type is None:
            raise EncodeError("an image with data has no MIME type; set `mime_type`")
        return {INLINE: {"mimeType": image.mime_type, "data": image.data}}
    if image.url is not None:
        return {FILE: _address(image.url, image.mime_type)}
    raise EncodeError("an image has neither data nor a URL; set one of them")


def encode_file(file: FileContent) -> Wire:
    """Write a file, without what `extra` holds.

    Raises:
        EncodeError: it has no data, URL or file id.
    """
    address = file.url if file.url is not None else file.file_id
    if file.data is not None:
        field, inside = INLINE, Wire(data=file.data)
        if file.mime_type is not None:
            inside["mimeType"] = file.mime_type
    elif address is not None:
        field, inside = FILE, _address(address, file.mime_type)
    else:
        raise EncodeError("a file has no data, URL or file id; set one of them")
    if file.name is not None:
        inside["displayName"] = file.name
    return {field: inside}


def _address(uri: str, mime: str | None) -> Wire:
    if mime is None or mime.endswith("/*"):
        mime = type_of_name(uri)  # a class of types is not a type
    return {"fileUri": uri} if mime is None else {"mimeType": mime, "fileUri": uri}


def decode_native(part: Block) -> NativeContent:
    """Keep a part unchanged, with its fallback."""
    return NativeContent(protocol=PROTOCOL, block=part, fallback=fallback_of(part))


def fallback_of(part: Block) -> tuple[FallbackContent, ...]:
    """Return what can be read of a part; empty for a thought, or when there is nothing."""
    wire = read_keys(part)
    if wire.get("thought") is True:
        return ()
    for field in MEDIA_FIELDS:
        if field in wire:
            media = decode_media(wire, field)
            return () if media is None else (media,)
    if "functionCall" in wire or "toolCall" in wire:
        return ()
    text = wire.get("text")
    if text is None:
        text = describe_output(object_of(wire.get("codeExecutionResult")))
    if text is None:
        text = object_of(wire.get("audioTranscription")).get("text")
    return (TextContent(text=text),) if isinstance(text, str) and text.strip() else ()


_KINDS: Final = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def _read(part: Block) -> tuple[str, Block]:
    """Read the kind of a part: the key that holds its data."""
    wire = read_keys(part)
    kind = next((kind for kind in (*_KINDS, "functionCall", "functionResponse") if kind in wire), "")
    return kind, object_of(wire.get(kind))


REPLAY: Final = Replay(
    read=_read,
    # No refusal of a half is known: the API itself sends `executableCode` without a result, and several results for
    # one code.                                              (recorded traffic, 2026-11; vercel/ai #11485, 2026-07-16)
    whole=frozenset(_KINDS),
    malformed=frozenset({"functionCall", "functionResponse"}),
    forms=frozenset(  # recorded traffic, 2026-11: names in both styles, any form of base64
        {
            "fileData.file_uri:as",
            "fileData.mime_type:as",
            "functionResponse.response.return_value:as",
            "function_call:as",
            "function_response.response.return_value:as",
            "function_response:as",
            "inlineData.data:base64",
            "inline_data.data:base64",
            "inline_data.mime_type:as",
            "thought_signature:as",
        }
    ),
    stored=frozenset({"cachedContent"}),
)


CALL: Final = "functionCall"
RESULT: Final = "functionResponse"
SIGNATURE: Final = "thoughtSignature"

_DATA_FIELDS: Final = frozenset(
    {
        "text",
        *MEDIA_FIELDS,
        CALL,
        RESULT,
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "audioTranscription",
    }
)
_USER_TEXT_KEYS: Final = frozenset({"text", "thought"})
_TEXT_KEYS: Final = frozenset({"text", "thought", SIGNATURE})
_CALL_KEYS: Final = frozenset({SIGNATURE, f"{CALL}.id", f"{CALL}.args"})

_Written = TypeVar("_Written", TextContent, ThinkingContent, ToolCall)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def data_field(wire: Block) -> str | None:
    """Name the field of data of a part: `text` where there is only a signature, None where there is not exactly one."""
    if "type" in wire:
        return None
    found = [key for key in wire if key in _DATA_FIELDS]
    if len(found) == 1:
        return found[0]
    return "text" if not found and (SIGNATURE in wire or "thought" in wire) else None


def call_in(part: Block) -> Block:
    """Return the call of a part."""
    call = part.get(CALL)
    return read_keys(object_of(call if call is not None else part.get("function_call")))


def decode_user_part(part: Block) -> UserContent:
    """Read a part of a user's turn, or of instructions; results are messages, not content."""
    text = part.get("text")
    if len(part) == 1 and isinstance(text, str):
        return TextContent(text=text)
    wire = read_keys(part)
    field = data_field(wire)
    if field == "text" and wire.get("thought") is not True and isinstance(text, str):
        # A signature means nothing on a text that is not the model's: it is data.
        return TextContent(text=text, extra=keep_format(part, {"text": text}, _USER_TEXT_KEYS))
    media = decode_media(wire, field) if field in MEDIA_FIELDS else None
    if media is None:
        return decode_native(part)
    extra = keep_format(part, encode_user_content(media), ())
    return media if extra is None else replace(media, extra=extra)


def decode_assistant_part(
    part: Block, new_id: str, tool_names: Mapping[str, str], endpoint: Endpoint, *, is_reply: bool
) -> AssistantContent:
    """Read a part of the model's turn.

    `new_id` is for a call without one, `tool_names` maps names on the wire back. Content of a reply keeps data only.
    """
    text = part.get("text")
    if isinstance(text, str):  # fast path
        if len(part) == 1:
            return TextContent(text=text)
        if len(part) == 2:
            if part.get("thought") is True:
                return ThinkingContent(thinking=text)
            if isinstance(signature := part.get(SIGNATURE), str) and signature:
                return TextContent(text=text, text_signature=signature)
    call = decode_default_call(part, tool_names, endpoint)
    if call is not None:
        return call
    wire = read_keys(part)
    match data_field(wire):
        case "text":
            text = wire.get("text", "")
            if not isinstance(text, str):
                return decode_native(part)
            if wire.get("thought") is True:
                thought = ThinkingContent(thinking=text, thinking_signature=_signature(wire))
                return _with_extra(thought, part, _TEXT_KEYS, endpoint, is_reply=is_reply)
            content = TextContent(text=text, text_signature=_signature(wire))
            return _with_extra(content, part, _TEXT_KEYS, endpoint, is_reply=is_reply)
        case "functionCall":
            inside = call_in(wire)
            call = _decode_call(wire, inside, new_id, tool_names)
            if call is None:
                return decode_native(part)
            call = _with_extra(call, part, _CALL_KEYS, endpoint, is_reply=is_reply)
            return _without_id(call) if is_reply and inside.get("id") != call.id else call
        case _:
            return decode_native(part)


def _signature(wire: Block) -> str | None:
    signature = wire.get(SIGNATURE)
    return signature if isinstance(signature, str) and signature else None


def _decode_call(wire: Block, inside: Block, new_id: str, tool_names: Mapping[str, str]) -> ToolCall | None:
    """Read a call; arguments that are not an object are parsed as far as possible."""
    name, call_id, given = inside.get("name"), inside.get("id"), inside.get("args")
    if not isinstance(name, str):
        return None
    parsed = read_arguments(given)
    return ToolCall(
        id=call_id if isinstance(call_id, str) and call_id else new_id,
        name=tool_names.get(name, name),
        arguments=parsed.arguments,
        arguments_text=parsed.text,
        thought_signature=_signature(wire),
    )


def decode_default_call(part: Block, tool_names: Mapping[str, str], endpoint: Endpoint) -> ToolCall | None:
    """Read a call in the default format, as nearly all are; None for every other part. This is a fast path."""
    inside = part.get(CALL)
    if not isinstance(inside, dict) or len(call := cast("Wire", inside)) != 3 or not endpoint.dialect.call_ids:
        return None
    name, call_id, arguments, signature = call.get("name"), call.get("id"), call.get("args"), part.get(SIGNATURE)
    is_default = isinstance(name, str) and isinstance(call_id, str) and call_id and isinstance(arguments, dict)
    if not is_default or len(part) != (1 if signature is None else 2):
        return None
    if signature is not None and not (isinstance(signature, str) and signature):
        return None
    return ToolCall(
        id=cast("str", call_id),
        name=tool_names.get(cast("str", name), cast("str", name)),
        arguments=cast("Wire", arguments),
        thought_signature=signature,
    )


def _with_extra(
    content: _Written, part: Block, known: frozenset[str], endpoint: Endpoint, *, is_reply: bool
) -> _Written:
    extra = keep_format(part, encode_assistant_content(content, endpoint), known)
    if extra is not None and is_reply:
        data = data_of(extra, PROTOCOL)
        extra = {PROTOCOL: data} if data else None
    return content if extra is None else replace(content, extra=extra)


def _without_id(call: ToolCall) -> ToolCall:
    """Keep that a call had no id itself."""
    made = cast("Extra", keep(PROTOCOL, {CALL: {}}, {CALL: {"id": call.id}}))
    return replace(call, extra={PROTOCOL: {**data_of(call.extra, PROTOCOL), **made[PROTOCOL]}})


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_user_parts(pieces: Sequence[UserContent]) -> list[Wire]:
    """Write the content of a user's turn or of instructions.

    Raises:
        EncodeError: the protocol does not support a piece.
    """
    parts: list[Wire] = []
    for piece in pieces:
        if piece.kind == "text" and piece.extra is None:
            parts.append({"text": piece.text})
        else:
            parts.append(encode_user_content(piece))
    return parts


def encode_assistant_parts(
    pieces: Sequence[AssistantContent], endpoint: Endpoint, calls: dict[str, Block]
) -> list[Wire]:
    """Write the content of the model's turn; `calls` gets its calls as they are written, by their ids.

    Raises:
        EncodeError: the protocol does not support a piece.
    """
    parts: list[Wire] = []
    with_ids, owned = endpoint.dialect.call_ids, endpoint.owned
    for piece in pieces:
        if type(piece) is ToolCall:
            if piece.extra is not None or not with_ids:
                part = encode_assistant_content(piece, endpoint)
                calls[piece.id] = call_in(part)
                parts.append(part)
                continue
            arguments = piece.arguments if isinstance(piece.arguments, dict) else dict(piece.arguments)
            if owned:
                arguments = detached(arguments)
            calls[piece.id] = call = {"id": piece.id, "name": piece.name, "args": arguments}
            part: Wire = {CALL: call}
            signature = piece.thought_signature
        elif type(piece) is TextContent and piece.extra is None:
            part = {"text": piece.text}
            signature = piece.text_signature
        elif type(piece) is ThinkingContent and piece.extra is None:
            part = {"text": piece.thinking, "thought": True}
            signature = piece.thinking_signature
        else:
            parts.append(encode_assistant_content(piece, endpoint))
            continue
        if signature is not None:
            part[SIGNATURE] = signature
        parts.append(part)
    return parts


def encode_user_content(content: UserContent) -> Wire:
    """Write content of a user's turn or of instructions.

    Raises:
        EncodeError: the protocol does not support it.
    """
    match content.kind:
        case "text":
            part: Wire = {"text": content.text}  # a signature on it is another protocol's
        case "image":
            part = encode_image(content)
        case "file":
            part = encode_file(content)
        case "native":
            return _encode_native(content)
        case _:
            assert_never(content)
    return part if content.extra is None else restore(part, content.extra, PROTOCOL)


def encode_assistant_content(content: AssistantContent, endpoint: Endpoint) -> Wire:
    """Write content of the model's turn.

    Raises:
        EncodeError: the protocol does not support it.
    """
    match content.kind:
        case "text":
            part: Wire = {"text": content.text}
            signature = content.text_signature
        case "thinking":
            part = {"text": content.thinking, "thought": True}
            signature = content.thinking_signature
        case "toolCall":
            arguments = content.arguments if isinstance(content.arguments, dict) else dict(content.arguments)
            if endpoint.owned:
                arguments = detached(arguments)
            call: Wire = {"name": content.name, "args": arguments}
            if endpoint.dialect.call_ids and content.id:
                call["id"] = content.id
            part = {CALL: call}
            signature = content.thought_signature
        case "native":
            return _encode_native(content)
        case _:
            assert_never(content)
    if signature is not None:
        part[SIGNATURE] = signature
    return part if content.extra is None else restore(part, content.extra, PROTOCOL)


def _encode_native(content: NativeContent) -> Wire:
    block = native_block(PROTOCOL, content)
    return block if isinstance(block, dict) else dict(block)


class _Content(ClosedForm, frozen=True, gc=False):
    parts: tuple[dict[str, Any]]
    role: str = ""


class _Candidate(ClosedForm, frozen=True, gc=False):
    content: _Content
    index: int | msgspec.UnsetType = msgspec.UNSET


class PartFrame(ClosedForm, frozen=True, gc=False, rename="camel"):
    """One candidate with one part, and what every frame repeats."""

    candidates: tuple[_Candidate]
    usage_metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    model_version: str | msgspec.UnsetType = msgspec.UNSET
    response_id: str | msgspec.UnsetType = msgspec.UNSET
    create_time: str | msgspec.UnsetType = msgspec.UNSET


decode_part_frame: Final = msgspec.json.Decoder(PartFrame).decode


def cited_sources(message: AssistantMessage) -> Sequence[CitedPage]:
    """Return the pages that a message is grounded on."""
    grounding = object_of(find_in_reply(message.extra, PROTOCOL, "candidates", "0", "groundingMetadata"))
    chunks = [object_of(chunk.get("web")) for chunk in objects_in(grounding.get("groundingChunks"))]
    pages = [CitedPage(text_of(page.get("uri")) or "", text_of(page.get("title")) or "") for page in chunks]
    text = message.text()
    cited = [
        replace(pages[at], span=span)
        for support in objects_in(grounding.get("groundingSupports"))
        if (span := _span_of(text, object_of(support.get("segment")))) is not None
        for at in list_of(support.get("groundingChunkIndices"))
        if isinstance(at, int) and 0 <= at < len(pages)
    ]
    return [page for page in (*cited, *pages) if page.url]


def _span_of(text: str, segment: Block) -> tuple[int, int] | None:
    """Read a segment: bytes of a part."""
    if segment.get("partIndex"):
        return None
    return read_span(text, segment.get("startIndex"), segment.get("endIndex"), in_bytes=True)
