"""Ollama's messages, both ways: one wire message for each neutral one.

Facts this file rests on:
- A message is {role, content, thinking, images, tool_calls, tool_name, tool_call_id}; content is one string. Roles are
  lower-cased and not checked, unknown keys ignored, null says nothing.      (ollama server source @fb30760, 2026-11-15)
- A result names its tool; newer servers also take the id of its call.                    (the same; ollama 0.6.3)
- A list as content answers 400: "cannot unmarshal array into Go struct field ChatRequest.messages.content".
                                                                                      (litellm #6808, #11273)

Texts of a turn are written one below the other, those of an assistant, which are pieces of one speech, end to end. The
keys of a block that only this wire knows stand in the message itself. A result without an id belongs to the first
unanswered call, of its tool if it names one, in the turn right before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    Extra,
    ImageContent,
    NativeContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import DecodeError, EncodeError, Path
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import expect_list, join_texts, native_block, reply_extra
from segue.protocols.ollama_chat.content import (
    decode_call,
    decode_images,
    encode_calls,
    encode_image,
    has_text_arguments,
    is_native_call,
    is_refused,
)
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.verbatim import Json, Wire, keep, own_part, put_back

_SYSTEM_ROLES: Final = ("system", "developer")
_BETWEEN_TEXTS: Final = "\n"
SYSTEM: Final = "system"
"""Where a context keeps what its system message said beyond its words."""

SystemPrompt: TypeAlias = str | tuple[SystemContent, ...] | None


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


class Reading:
    """Reads the messages of a body in order, remembering the calls that wait for an answer."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.system_prompt: SystemPrompt = None
        self.beside_prompt: Wire = {}
        self.messages: list[Message] = []
        self.refused: bool = False
        """Whether something was spelt as the server refuses it."""
        self._waiting: list[ToolCall] = []
        self._batch: list[ToolCall] = []

    def read(self, items: Sequence[Json]) -> None:
        """Read all messages.

        Raises:
            DecodeError: one of them is not what the protocol says; names the place.
        """
        for index, wire in enumerate(items):
            path = ("messages", index)
            received = wire.get("role")
            if not isinstance(received, str | None):
                raise DecodeError("a role has to be a string", path=(*path, "role"))
            role = (received or "").lower()
            if role == "assistant":
                self._read_assistant(wire, path)
            elif role == "tool":
                self._read_result(wire, path)
            elif role in _SYSTEM_ROLES:
                pieces, extra = self._read_system(wire, path)
                if index == 0:
                    self._take_prompt(pieces, extra)
                else:
                    self.messages.append(SystemMessage(content=pieces, extra=extra))
            else:
                pieces, default = self._read_message_content(wire, path, "user")
                extra = _extra(keep(wire, default, _filled(wire, "images")))
                self.messages.append(UserMessage(content=pieces, extra=extra))

    def _take_prompt(self, pieces: tuple[SystemContent, ...], extra: Extra | None) -> None:
        first = pieces[0] if len(pieces) == 1 else None
        self.system_prompt = first.text if first is not None and first.kind == "text" else pieces or ""
        self.beside_prompt = dict((extra or {}).get(PROTOCOL, {}))

    def _read_message_content(
        self, wire: Json, path: Path, role: str
    ) -> tuple[tuple[TextContent | ImageContent, ...], Wire]:
        """Read words and pictures; also give how we would write the words."""
        text_pieces = _text(wire, "content", path)
        images = decode_images(wire.get("images"), (*path, "images"))
        self.refused = self.refused or any(map(is_refused, images))
        return (*_texts(text_pieces), *images), {"role": role, "content": text_pieces}

    def _read_system(self, wire: Json, path: Path) -> tuple[tuple[SystemContent, ...], Extra | None]:
        pieces, default = self._read_message_content(wire, path, "system")
        extra = _extra(keep(wire, default, _filled(wire, "images")))
        texts = tuple(piece for piece in pieces if piece.kind == "text")
        images = tuple(piece for piece in pieces if piece.kind == "image")
        return ((*texts, _native_images(wire, images)) if images else texts), extra

    def _read_result(self, wire: Json, path: Path) -> None:
        pieces, default = self._read_message_content(wire, path, "tool")
        call_id, name = _text(wire, "tool_call_id", path), _text(wire, "tool_name", path)
        call = self._answered(call_id, name)
        if call is not None:
            call_id, name = call_id or call.id, name or call.name
        default["tool_name"] = name
        default["tool_call_id"] = call_id
        left = keep(wire, _written_ids(default, self.endpoint), _filled(wire, "images"))
        self.messages.append(
            ToolResultMessage(tool_call_id=call_id, tool_name=name, content=pieces, extra=_extra(left))
        )

    def _answered(self, call_id: str, name: str) -> ToolCall | None:
        """Find the call that a result belongs to, among those of the turn right before."""
        if call_id:
            call = next((call for call in self._batch if call.id == call_id), None)
        else:
            call = next((call for call in self._waiting if not name or call.name == name), None)
        if call is not None and call in self._waiting:
            self._waiting.remove(call)
        return call

    def _read_assistant(self, wire: Json, path: Path) -> None:
        notes: list[Diagnostic] = []
        pieces, left, parts = decode_assistant(wire, {}, path, notes)
        if parts:
            pieces = _restored_calls(pieces, parts)
            self.refused = self.refused or any(map(has_text_arguments, parts.values()))
        calls = [piece for piece in pieces if piece.kind == "toolCall"]
        self._batch, self._waiting = calls, list(calls)
        message = new_assistant_message(self.endpoint.model, content=pieces)
        self.messages.append(
            replace(
                message,
                protocol=PROTOCOL,
                model=self.model,
                stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
                diagnostics=tuple(notes),
                extra=_extra(left),
            )
        )


def decode_assistant(
    wire: Json, tool_names: Mapping[str, str], path: Path, notes: list[Diagnostic]
) -> tuple[tuple[AssistantContent, ...], Wire, dict[str, Wire]]:
    """Read what an assistant said: its pieces, what it said besides, and how its calls were spelt, by their place.

    Raises:
        DecodeError: it is not what the protocol says; names the place.
    """
    text_pieces, thinking = _text(wire, "content", path), _text(wire, "thinking", path)
    pieces: list[AssistantContent] = [ThinkingContent(thinking=thinking)] if thinking else []
    pieces += _texts(text_pieces)
    images = decode_images(wire.get("images"), (*path, "images"))
    if images:
        pieces.append(_native_images(wire, images))
    parts: dict[str, Wire] = {}
    given = wire.get("tool_calls")
    for at, call in enumerate(expect_list(given, (*path, "tool_calls")) if given else ()):
        found, part = decode_call(call, at, tool_names, (*path, "tool_calls", at), notes)
        pieces.append(found)
        if part:
            parts[str(at)] = part
    default: Wire = {"role": "assistant", "content": text_pieces}
    if thinking:
        default["thinking"] = thinking
    return tuple(pieces), keep(wire, default, _filled(wire, "images", "tool_calls")), parts


def _restored_calls(pieces: Sequence[AssistantContent], parts: Mapping[str, Wire]) -> tuple[AssistantContent, ...]:
    """Put on each call how it was spelt, by its place among the calls."""
    out: list[AssistantContent] = []
    place = 0
    for piece in pieces:
        if piece.kind == "toolCall":
            part = parts.get(str(place))
            out.append(piece if part is None else replace(piece, extra={PROTOCOL: part}))
        else:
            out.append(piece)
        place += piece.kind == "toolCall" or (piece.kind == "native" and is_native_call(piece))
    return tuple(out)


def _filled(wire: Json, *keys: str) -> tuple[str, ...]:
    """Name the lists that were read piece by piece; empty ones are spelling."""
    return tuple(key for key in keys if wire.get(key))


def _extra(left: Wire) -> Extra | None:
    return {PROTOCOL: left} if left else None


def _text(wire: Json, key: str, path: Path) -> str:
    value = wire.get(key)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise DecodeError(f"{key} has to be a string", path=(*path, key))


def _texts(text_pieces: str) -> tuple[TextContent, ...]:
    return (TextContent(text=text_pieces),) if text_pieces else ()


def _native_images(wire: Json, images: tuple[ImageContent, ...]) -> NativeContent:
    """Keep pictures where segue has no place for them: those a model drew, those of instructions."""
    fallback = tuple(replace(image, extra=None) for image in images)
    return NativeContent(protocol=PROTOCOL, block={"images": wire["images"]}, fallback=fallback)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(
    prompt: SystemPrompt, beside: Json | None, messages: Sequence[Message], endpoint: Endpoint, *, verbatim: bool
) -> list[Wire]:
    """Write the system prompt and the messages.

    Raises:
        EncodeError: something has no word on this wire; `path` leads to it.
    """
    out: list[Wire] = []
    if prompt is not None and prompt != ():
        pieces = (TextContent(text=prompt),) if isinstance(prompt, str) else prompt
        wire = _encode_message_content("system", pieces, ("system_prompt",), verbatim=verbatim)
        out.append(put_back(wire, beside))
    settings: AssistantMessage | None = None
    for index, message in enumerate(messages):
        path = ("messages", index, "content")
        match message.role:
            case "assistant":
                wire = encode_assistant(message.content, endpoint, path, verbatim=verbatim)
                settings = message
            case "toolResult":
                wire = _encode_message_content("tool", message.content, path, verbatim=verbatim)
                wire["tool_name"] = message.tool_name or _name_of(message.tool_call_id, settings)
                wire["tool_call_id"] = message.tool_call_id
                wire = _written_ids(wire, endpoint)
            case "user":
                wire = _encode_message_content("user", message.content, path, verbatim=verbatim)
            case "system":
                wire = _encode_message_content("system", message.content, path, verbatim=verbatim)
            case _:
                assert_never(message)
        if message.extra is not None and (part := own_part(message.extra)) is not None:
            wire = put_back(wire, part)
        out.append(wire)
    return out


def _name_of(call_id: str, settings: AssistantMessage | None) -> str:
    """Give the name that the turn right before has for a call."""
    calls = () if settings is None else settings.tool_calls()
    return next((call.name for call in calls if call.id == call_id), "")


def _written_ids(result: Wire, endpoint: Endpoint) -> Wire:
    """Leave out what a result cannot or need not say of its call."""
    if not result["tool_name"] or not endpoint.dialect.result_name:
        del result["tool_name"]
    if not result["tool_call_id"] or not endpoint.dialect.call_ids:
        del result["tool_call_id"]
    return result


def _encode_message_content(role: str, pieces: Sequence[UserContent], path: Path, *, verbatim: bool) -> Wire:
    first = pieces[0] if len(pieces) == 1 else None
    if first is not None and first.kind == "text":
        return {"role": role, "content": first.text}  # the short way, for these are most
    texts: list[str] = []
    images: list[object] = []
    beside: Wire = {}
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                texts.append(piece.text)
            case "image":
                images.append(encode_image(piece, (*path, at), verbatim=verbatim))
            case "native":
                _merge(beside, native_block(PROTOCOL, piece, (*path, at)))
            case "file":
                raise EncodeError("this wire carries pictures and no other files", path=(*path, at))
            case _:
                assert_never(piece)
    wire: Wire = {"role": role, "content": _BETWEEN_TEXTS.join(texts)}
    if images:
        wire["images"] = images
    _merge(wire, beside)
    return wire


def encode_assistant(
    pieces: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    *,
    verbatim: bool = False,
    parts: Mapping[str, Json] | None = None,
) -> Wire:
    """Write what an assistant said; `parts` says how the calls of a reply were spelt.

    Raises:
        EncodeError: a block of another wire.
    """
    text_pieces, thinking = "", ""
    calls: list[ToolCall | NativeContent] = []
    beside: Wire | None = None
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                text_pieces = join_texts(text_pieces, piece.text) if text_pieces else piece.text
            case "thinking":
                thinking = _BETWEEN_TEXTS.join((thinking, piece.thinking)) if thinking else piece.thinking
            case "toolCall":
                calls.append(piece)
            case "native":
                block = native_block(PROTOCOL, piece, (*path, at))
                if is_native_call(piece):
                    calls.append(piece)
                    block = {key: value for key, value in block.items() if key != "tool_calls"}
                beside = {} if beside is None else beside
                _merge(beside, block)
            case _:
                assert_never(piece)
    wire: Wire = {"role": "assistant", "content": text_pieces}
    if thinking:
        wire["thinking"] = thinking
    if calls:
        wire["tool_calls"] = encode_calls(calls, parts, ids=endpoint.dialect.call_ids, verbatim=verbatim)
    if beside:
        _merge(wire, beside)
    return wire


def _merge(wire: Wire, block: Json) -> None:
    """Put the keys of a block into a message; lists of the same name are joined, our own words stay."""
    for key, value in block.items():
        known = wire.get(key)
        if isinstance(known, list) and isinstance(value, list):
            wire[key] = [*cast("list[object]", known), *cast("list[object]", value)]
        else:
            wire.setdefault(key, value)


def reply_parts(message: AssistantMessage) -> Json | None:
    """Give what only the reply said; None when the message came from elsewhere."""
    return reply_extra(message.extra, PROTOCOL)
