"""Ollama's messages, both ways: one wire message for each neutral one.

Facts:
- A message is {role, content, thinking, images, tool_calls, tool_name, tool_call_id}; content is one string. Roles are
  lower-cased and not checked, unknown keys are ignored, null is the same as absent.
                                                                         (ollama server source @fb30760, 2026-11-15)
- A result names its tool; newer servers also accept the id of its call.                  (the same; ollama 0.6.3)
- A list as content answers 400: "cannot unmarshal array into Go struct field ChatRequest.messages.content".
                                                                                      (litellm #6808, #11273)

The texts of a message are joined by newlines; those of an assistant are joined as pieces of one text. The keys of a
native block are in the message itself. A result without an id belongs to the first unanswered call of the turn right
before, and of its tool if it names one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    Extra,
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
from segue.protocols.families.chat_content import join_texts
from segue.protocols.families.waiting_calls import WaitingCalls
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import expect_list, is_of_reply, native_block
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.ollama_chat.content import (
    decode_call,
    decode_images,
    encode_calls,
    encode_image,
    has_text_arguments,
    is_native_call,
    is_refused,
    native_images,
)
from segue.protocols.ollama_chat.rules import PROTOCOL

SystemPrompt: TypeAlias = str | tuple[SystemContent, ...]

_SYSTEM_ROLES: Final = ("system", "developer")
BETWEEN_TEXTS: Final = "\n"
_CONTENT_KEYS: Final = frozenset({"role", "content", "images"})
_ASSISTANT_KEYS: Final = _CONTENT_KEYS | {"thinking", "tool_calls"}
_RESULT_KEYS: Final = _CONTENT_KEYS | {"tool_name", "tool_call_id"}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


class _Calls:
    """The calls of one turn, and which of them have no result yet."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._of_id: dict[str, ToolCall] = {call.id: call for call in reversed(calls)}
        self._waiting = WaitingCalls((call.id, call.name, call) for call in calls)

    def find(self, call_id: str, name: str) -> ToolCall | None:
        """Find the call that a result belongs to: the one of its id, else the first unanswered one of its name."""
        waiting = self._waiting.answer(call_id, name)
        return self._of_id.get(call_id) if call_id else waiting


class TurnReader:
    """The messages read so far, and the calls of the last assistant turn."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.system_prompt: SystemPrompt | None = None
        self.messages: list[Message] = []
        self.has_refused_format: bool = False
        """Whether some content has a format that the server refuses."""
        self._calls = _Calls(())

    def read(self, turns: Sequence[Block]) -> None:
        """Read all messages.

        Raises:
            DecodeError: a message has a value of an unexpected type.
        """
        for index, wire in enumerate(turns):
            path = ("messages", index)
            received = wire.get("role")
            if not isinstance(received, str | None):
                raise DecodeError("`role` must be a string", path=(*path, "role"))
            role = (received or "").lower()
            if role == "assistant":
                self._read_assistant(wire, path)
            elif role == "tool":
                self._read_result(wire, path)
            elif role in _SYSTEM_ROLES:
                self._read_system(wire, path)
            else:
                pieces = self._read_content(wire, path)
                self.messages.append(UserMessage(content=pieces, extra=_keep_content(wire, "user", pieces)))

    def _read_content(self, wire: Block, path: Path) -> tuple[UserContent, ...]:
        texts = _texts(_read_text(wire, "content", path))
        images = decode_images(wire.get("images"), (*path, "images"))
        if not images:
            return texts
        self.has_refused_format = self.has_refused_format or any(map(is_refused, images))
        return (*texts, *images)

    def _read_system(self, wire: Block, path: Path) -> None:
        content = self._read_content(wire, path)
        pieces: tuple[SystemContent, ...] = tuple(piece for piece in content if piece.kind == "text")
        images = tuple(piece for piece in content if piece.kind == "image")
        if images:
            pieces = (*pieces, native_images(wire["images"], images))
        if path[1] != 0:
            self.messages.append(SystemMessage(content=pieces, extra=_keep_content(wire, "system", pieces)))
        else:
            first = pieces[0] if len(pieces) == 1 else None
            self.system_prompt = first.text if first is not None and first.kind == "text" else pieces or ""

    def _read_result(self, wire: Block, path: Path) -> None:
        pieces = self._read_content(wire, path)
        call_id, name = _read_text(wire, "tool_call_id", path), _read_text(wire, "tool_name", path)
        call = self._calls.find(call_id, name)
        if call is not None:
            call_id, name = call_id or call.id, name or call.name
        result = ToolResultMessage(tool_call_id=call_id, tool_name=name, content=pieces)
        default = _default_result(result, name, self.endpoint, path, verbatim=True)
        extra = keep(PROTOCOL, wire, default, known=_RESULT_KEYS)
        self.messages.append(result if extra is None else replace(result, extra=extra))

    def _read_assistant(self, wire: Block, path: Path) -> None:
        notes: list[Diagnostic] = []
        pieces = decode_assistant(wire, path, notes)
        calls = [piece for piece in pieces if piece.kind == "toolCall"]
        self.has_refused_format = self.has_refused_format or any(map(has_text_arguments, calls))
        self._calls = _Calls(calls)
        extra = None
        if not _is_default(wire, "assistant", _ASSISTANT_KEYS):
            default = encode_assistant(pieces, path, ids=True, verbatim=True)
            extra = keep(PROTOCOL, wire, default, known=_ASSISTANT_KEYS)
        self.messages.append(
            replace(
                new_assistant_message(self.endpoint.model, content=pieces),
                protocol=PROTOCOL,
                model=self.model,
                stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
                diagnostics=tuple(notes),
                extra=extra,
            )
        )


def decode_assistant(
    wire: Block, path: Path, notes: list[Diagnostic], *, reply: bool = False
) -> tuple[AssistantContent, ...]:
    """Read the content of an assistant message; content of a reply keeps no format.

    Raises:
        DecodeError: a value has an unexpected type.
    """
    text, thinking = _read_text(wire, "content", path), _read_text(wire, "thinking", path)
    pieces: list[AssistantContent] = [ThinkingContent(thinking=thinking)] if thinking else []
    pieces += _texts(text)
    images = decode_images(wire.get("images"), (*path, "images"))
    if images:
        pieces.append(native_images(wire["images"], images))
    received = wire.get("tool_calls")
    for at, call in enumerate(expect_list(received, (*path, "tool_calls")) if received else ()):
        pieces.append(decode_call(call, at, (*path, "tool_calls", at), notes, reply=reply))
    return tuple(pieces)


def _is_default(wire: Block, role: str, keys: Collection[str]) -> bool:
    """Whether a message has the default format, apart from the format of its content."""
    if wire.get("role") != role or not isinstance(wire.get("content"), str):
        return False
    return all(key in keys and (value or key == "content") for key, value in wire.items())


def _keep_content(wire: Block, role: str, pieces: Sequence[UserContent]) -> Extra | None:
    if _is_default(wire, role, _CONTENT_KEYS):
        return None
    return keep(PROTOCOL, wire, _encode_content(role, pieces, (), verbatim=True), known=_CONTENT_KEYS)


def _read_text(wire: Block, key: str, path: Path) -> str:
    value = wire.get(key)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise DecodeError(f"`{key}` must be a string", path=(*path, key))


def _texts(text: str) -> tuple[TextContent, ...]:
    return (TextContent(text=text),) if text else ()


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_system(prompt: SystemPrompt, *, verbatim: bool) -> Wire:
    """Write the system prompt as a message, in the default format.

    Raises:
        EncodeError: a native block of another protocol.
    """
    pieces = (TextContent(text=prompt),) if isinstance(prompt, str) else prompt
    return _encode_content("system", pieces, ("system_prompt",), verbatim=verbatim)


def encode_turns(messages: Sequence[Message], endpoint: Endpoint, *, verbatim: bool) -> list[Wire]:
    """Write the messages; with `verbatim` also content in a format that the server refuses.

    Raises:
        EncodeError: the wire does not support some content; `path` leads to it.
    """
    out: list[Wire] = []
    last: AssistantMessage | None = None
    for index, message in enumerate(messages):
        path = ("messages", index, "content")
        match message.role:
            case "assistant":
                wire = encode_assistant(message.content, path, ids=endpoint.dialect.call_ids, verbatim=verbatim)
                last = message
            case "toolResult":
                name = message.tool_name or _find_name(message.tool_call_id, last)
                wire = _default_result(message, name, endpoint, path, verbatim=verbatim)
            case "user":
                wire = _encode_content("user", message.content, path, verbatim=verbatim)
            case "system":
                wire = _encode_content("system", message.content, path, verbatim=verbatim)
            case _:
                assert_never(message)
        if message.extra is not None and not is_of_reply(message.extra):
            restore(wire, message.extra, PROTOCOL)
        out.append(wire)
    return out


def _find_name(call_id: str, last: AssistantMessage | None) -> str:
    """Find the tool name of a call in the last assistant turn."""
    calls = () if last is None else last.tool_calls()
    return next((call.name for call in calls if call.id == call_id), "")


def _default_result(result: ToolResultMessage, name: str, endpoint: Endpoint, path: Path, *, verbatim: bool) -> Wire:
    wire = _encode_content("tool", result.content, path, verbatim=verbatim)
    if name and endpoint.dialect.result_name:
        wire["tool_name"] = name
    if result.tool_call_id and endpoint.dialect.call_ids:
        wire["tool_call_id"] = result.tool_call_id
    return wire


def _encode_content(role: str, pieces: Sequence[UserContent], path: Path, *, verbatim: bool) -> Wire:
    first = pieces[0] if len(pieces) == 1 else None
    if first is not None and first.kind == "text":
        return {"role": role, "content": first.text}  # fast path: most messages
    texts: list[str] = []
    images: list[object] = []
    native: Wire = {}
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                texts.append(piece.text)
            case "image":
                images.append(encode_image(piece, (*path, at), verbatim=verbatim))
            case "native":
                _merge(native, native_block(PROTOCOL, piece, (*path, at)))
            case "file":
                reason = f"{PROTOCOL} does not support files; remove it or choose another model"
                raise EncodeError(reason, path=(*path, at))
            case _:
                assert_never(piece)
    wire: Wire = {"role": role, "content": BETWEEN_TEXTS.join(texts)}
    if images:
        wire["images"] = images
    _merge(wire, native)
    return wire


def encode_assistant(pieces: Sequence[AssistantContent], path: Path, *, ids: bool, verbatim: bool = False) -> Wire:
    """Write the content of an assistant message, in the default format; `ids` writes the ids of its calls.

    Raises:
        EncodeError: a native block of another protocol.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall | NativeContent] = []
    native: Wire | None = None
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                texts.append(piece.text)
            case "thinking":
                if thoughts or piece.thinking:
                    thoughts.append(piece.thinking)
            case "toolCall":
                calls.append(piece)
            case "native":
                block = native_block(PROTOCOL, piece, (*path, at))
                if is_native_call(piece):
                    calls.append(piece)
                    block = {key: value for key, value in block.items() if key != "tool_calls"}
                native = {} if native is None else native
                _merge(native, block)
            case _:
                assert_never(piece)
    wire: Wire = {"role": "assistant", "content": join_texts(texts)}
    if thoughts:
        wire["thinking"] = BETWEEN_TEXTS.join(thoughts)
    if calls:
        wire["tool_calls"] = encode_calls(calls, ids=ids, verbatim=verbatim)
    if native:
        _merge(wire, native)
    return wire


def _merge(wire: Wire, block: Block) -> None:
    """Add the keys of a native block to a message; lists under one key are joined, other keys are not replaced.

    A list of the message is extended in place, so it is never the list of a block.
    """
    for key, value in block.items():
        held = wire.get(key)
        if isinstance(held, list) and isinstance(value, list):
            cast("list[object]", held).extend(cast("list[object]", value))
        elif key not in wire:
            wire[key] = list(cast("list[object]", value)) if isinstance(value, list) else value
