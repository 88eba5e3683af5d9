"""A request to Mistral's chat endpoint, both ways.

Facts this file rests on:
- Roles are system, user, assistant and tool. A tool message names its call by id and repeats the tool's name, both of
  them optional by the types.                                                   (mistralai 3.7.0, read 2026-11-15)
- Last stands the user, a tool, or an assistant with `prefix: true`, and nothing else may have a prefix.
                                                                                       (mistral-common 1.13.0)

The first message is the system prompt if it has that role; later ones are instructions in mid-conversation. A result
without an id or a name has those of the call it answers: the batch right before it is looked at, in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import Extra, NativeContent, SystemContent, TextContent, UserContent
from segue.conversation.context import Context, Prompt, Tool
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import Path
from segue.protocols.codec import Endpoint, JsonObject
from segue.protocols.functions import decode_tool, encode_tool
from segue.protocols.mistral_chat.assistant import decode_assistant, encode_assistant
from segue.protocols.mistral_chat.content import decode_content, decode_native, encode_content, native_block
from segue.protocols.mistral_chat.options import decode_options, encode_options
from segue.protocols.mistral_chat.rules import PROTOCOL
from segue.protocols.reading import ASKED_OF, SHAPE, expect_objects, left_over, shape_of
from segue.protocols.spelling import MISSING, Block, Wire, keep, object_of, put_back

_SPOKEN_KEYS: Final = frozenset({"role", "content"})
_RESULT_KEYS: Final = frozenset({"role", "content", "tool_call_id", "name"})
_SYSTEM: Final = "system"
"""Where a context keeps what its system message said beyond its content."""
_NO_NAMES: Final[Mapping[str, str]] = {}

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: content, a tool or arguments that this wire has no word for.
    """
    context, options = prompt.context, prompt.options
    frame, asked = shape_of(context.extra, PROTOCOL), shape_of(options.extra, PROTOCOL)
    messages: list[Wire] = []
    if context.system_prompt is not None and (context.system_prompt != () or _SYSTEM in frame):
        messages.append(_encode_system(context, frame))
    _encode_messages(context.messages, messages, endpoint, again=ASKED_OF in asked)
    body: Wire = {"messages": messages}
    if "model" in asked:
        if asked["model"] != "absent":
            body["model"] = object_of(asked["model"]).get("said")
    else:
        body["model"] = endpoint.model.id if prompt.model is None else prompt.model
    if context.tools:
        taken = endpoint.dialect.strict_tools
        body["tools"] = [
            encode_tool(PROTOCOL, tool, ("tools", index), strict_taken=taken)
            for index, tool in enumerate(context.tools)
        ]
    elif "tools" in frame:
        body["tools"] = frame["tools"]
    encode_options(body, options, endpoint)
    return body


def _encode_messages(given: Sequence[Message], messages: list[Wire], endpoint: Endpoint, *, again: bool) -> None:
    turn: AssistantMessage | None = None
    named = endpoint.dialect.result_name
    last = len(given) - 1
    for index, message in enumerate(given):
        path: Path = ("messages", index)
        if type(message) is ToolResultMessage:
            content = message.content
            piece = content[0] if len(content) == 1 else None
            if type(piece) is TextContent and piece.extra is message.extra is None and message.tool_name and named:
                # The short way, for these are most of an agent's messages.
                called = {"tool_call_id": message.tool_call_id, "name": message.tool_name}
                messages.append({"role": "tool", **called, "content": piece.text})
            else:
                messages.append(_encode_result(message, turn, endpoint, path))
        elif type(message) is AssistantMessage:
            turn, extra = message, message.extra
            written = encode_assistant(message.content, path, None if extra is None else _of_request(extra))
            if index == last or extra is not None:
                _encode_prefix(written[-1], extra, endpoint, last=index == last, again=again)
            messages += written
        else:
            messages.append(_encode_spoken(message.role, message.content, message.extra, path))


def _of_request(extra: Extra) -> Extra | None:
    """Leave out what only a reply said, which no request repeats: for most turns that is all there is."""
    if PROTOCOL not in extra:
        return None
    shape = shape_of(extra, PROTOCOL)
    return None if "response" in shape and len(shape) == len(extra[PROTOCOL]) == 1 else extra


def _encode_prefix(wire: Wire, extra: Extra | None, endpoint: Endpoint, *, last: bool, again: bool) -> None:
    """Say that the answer begins with this turn: where it was said and still may be, or where the turn has to say so.

    Elsewhere a prefix is refused, so a turn that others have followed since loses it, unless the very request that was
    read is written again.
    """
    shape = shape_of(extra, PROTOCOL)
    said = shape.get("prefix", MISSING)
    if said is True:
        if last or again:
            wire["prefix"] = True
    elif said is not MISSING:
        wire["prefix"] = said
    elif last and endpoint.rules.last_assistant and "tool_calls" not in wire and "no_prefix" not in shape:
        wire["prefix"] = True


def _encode_spoken(role: str, content: Sequence[UserContent], extra: Extra | None, path: Path) -> Wire:
    if extra is None:
        return {"role": role, "content": encode_content(content, None, (*path, "content"))}
    shape = shape_of(extra, PROTOCOL)
    if shape.get("message") == "native" and len(content) == 1 and content[0].kind == "native":
        return dict(native_block(content[0], path))
    wire: Wire = {"role": role}
    written = encode_content(content, shape.get("content"), (*path, "content"))
    if written is not MISSING:
        wire["content"] = written
    return put_back(wire, extra, PROTOCOL)


def _encode_result(message: ToolResultMessage, turn: AssistantMessage | None, endpoint: Endpoint, path: Path) -> Wire:
    wire: Wire = {"role": "tool", "tool_call_id": message.tool_call_id}
    name = message.tool_name or _called(message.tool_call_id, turn)
    if message.extra is None:
        if name and endpoint.dialect.result_name:
            wire["name"] = name
        wire["content"] = encode_content(message.content, None, (*path, "content"))
        return wire
    shape = shape_of(message.extra, PROTOCOL)
    if shape.get("no_id") and message.tool_call_id in ("", shape["no_id"]):
        del wire["tool_call_id"]  # null is put back
    if name and shape.get("name", endpoint.dialect.result_name) is True:
        wire["name"] = name
    elif shape.get("name") == "":
        wire["name"] = ""
    written = encode_content(message.content, shape.get("content"), (*path, "content"))
    if written is not MISSING:
        wire["content"] = written
    return put_back(wire, message.extra, PROTOCOL)


def _called(call_id: str, turn: AssistantMessage | None) -> str:
    """Name the tool of a call in the turn before, the last one of that id; an empty text when there is none."""
    calls = turn.tool_calls() if turn is not None else ()
    return next((call.name for call in reversed(calls) if call.id == call_id), "")


def _encode_system(context: Context, frame: Block) -> Wire:
    said = object_of(frame.get(_SYSTEM))
    prompt = context.system_prompt
    wire: Wire = {"role": "system"}
    if isinstance(prompt, str):
        wire["content"] = prompt
    else:
        written = encode_content(prompt or (), said.get("content", "list"), ("system_prompt",))
        if written is not MISSING:
            wire["content"] = written
    for key, value in object_of(left_over(context.extra, PROTOCOL).get(_SYSTEM)).items():
        wire.setdefault(key, value)
    return wire


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are not what the protocol says; names the place.
    """
    whole: Block = body if isinstance(body, Mapping) else {"messages": list(body)}
    named = whole.get("model")
    model = named if isinstance(named, str) else None
    frame: Wire = {}
    asked: Wire = {}
    reading = _Reading(endpoint, model or endpoint.model.id, frame)
    reading.read(expect_objects(whole.get("messages"), ("messages",)))
    if reading.prefixed_before_last:
        asked[ASKED_OF] = model or endpoint.model.id
    if model is None and isinstance(body, Mapping):
        asked["model"] = {"said": named} if "model" in body else "absent"
    beyond: Wire = {_SYSTEM: reading.beyond} if reading.beyond else {}
    tools = _decode_tools(whole, frame, endpoint)
    if frame:
        beyond[SHAPE] = frame
    context = Context(
        system_prompt=reading.system_prompt,
        messages=tuple(reading.messages),
        tools=tools,
        extra={PROTOCOL: beyond} if beyond else None,
    )
    return Prompt(context=context, options=decode_options(whole, asked, endpoint), model=model)


def _decode_tools(body: Block, frame: Wire, endpoint: Endpoint) -> tuple[Tool, ...]:
    given = body.get("tools")
    if not given:
        if "tools" in body:
            frame["tools"] = given
        return ()
    taken = endpoint.dialect.strict_tools
    return tuple(decode_tool(PROTOCOL, tool, strict_taken=taken) for tool in expect_objects(given, ("tools",)))


class _Reading:
    """Reads the messages of a body in order, remembering the calls that wait for their results."""

    def __init__(self, endpoint: Endpoint, model: str, frame: Wire) -> None:
        self.endpoint = endpoint
        self.model = model
        self.frame = frame
        self.system_prompt: str | tuple[SystemContent, ...] | None = None
        self.beyond: Wire = {}
        self.messages: list[Message] = []
        self.prefixed_before_last = False
        self._waiting: dict[str, str] = {}  # calls of the last batch that have no result yet -> their names
        self._names: dict[str, str] = {}

    def read(self, wires: Sequence[Block]) -> None:
        """Read all messages."""
        last = len(wires) - 1
        for index, wire in enumerate(wires):
            path: Path = ("messages", index)
            match wire.get("role"):
                case "system" if index == 0:
                    self._read_prompt(wire, (*path, "content"))
                case "user":
                    content, extra = _read_spoken(wire, path)
                    self.messages.append(UserMessage(content=content, extra=extra))
                case "assistant":
                    self.messages.append(self._read_assistant(wire, path, last=index == last))
                case "tool":
                    self.messages.append(self._read_result(wire, path))
                case "system":
                    content, extra = _read_spoken(wire, path)
                    pieces = tuple(_as_system(piece) for piece in content)
                    self.messages.append(SystemMessage(content=pieces, extra=extra))
                case _:
                    native: Extra = {PROTOCOL: {SHAPE: {"message": "native"}}}
                    self.messages.append(UserMessage(content=(decode_native(wire),), extra=native))

    def _read_prompt(self, wire: Block, path: Path) -> None:
        value = wire.get("content", MISSING)
        content, shape = decode_content(value, path)
        if not content and not isinstance(value, str):
            self.frame[_SYSTEM] = {"content": shape}
        self.system_prompt = value if isinstance(value, str) else tuple(_as_system(piece) for piece in content)
        self.beyond = {key: value for key, value in wire.items() if key not in _SPOKEN_KEYS}

    def _read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:
        turn = decode_assistant(wire, path, _NO_NAMES, reply=False)
        extra = turn.extra
        if wire.get("prefix") is True and not last:
            self.prefixed_before_last = True
        self._names = {piece.id: piece.name for piece in turn.content if piece.kind == "toolCall"}
        self._waiting = dict(self._names)
        if last and self.endpoint.rules.last_assistant and "prefix" not in wire and not wire.get("tool_calls"):
            part = (extra or {}).get(PROTOCOL, {})
            extra = {PROTOCOL: {**part, SHAPE: {**shape_of(extra, PROTOCOL), "no_prefix": True}}}
        return AssistantMessage(
            content=turn.content,
            protocol=PROTOCOL,
            provider=self.endpoint.model.provider,
            model=self.model,
            stop_reason=StopReason.TOOL_USE if self._names else StopReason.STOP,
            extra=extra,
        )

    def _read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        content, spelling = decode_content(wire.get("content", MISSING), (*path, "content"))
        shape: Wire = {} if spelling is None else {"content": spelling}
        said_id, said_name = wire.get("tool_call_id"), wire.get("name")
        known = set(_RESULT_KEYS)
        call_id = said_id if isinstance(said_id, str) else next(iter(self._waiting), "")
        if not isinstance(said_id, str):
            shape["no_id"] = call_id or True
            if said_id is not None or "tool_call_id" in wire:
                known.discard("tool_call_id")
        if not isinstance(said_name, str):
            known.discard("name")
        name = said_name if isinstance(said_name, str) and said_name else self._names.get(call_id, "")
        usual = bool(name) and self.endpoint.dialect.result_name
        if said_name == "":
            shape["name"] = ""
        elif isinstance(said_name, str) != usual:
            shape["name"] = isinstance(said_name, str)
        self._waiting.pop(call_id, None)
        extra = keep(PROTOCOL, wire, known, shape) if shape or not wire.keys() <= known else None
        return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, extra=extra)


def _read_spoken(wire: Block, path: Path) -> tuple[tuple[UserContent, ...], Extra | None]:
    content, spelling = decode_content(wire.get("content", MISSING), (*path, "content"))
    if spelling is None and len(wire) == 2:
        return content, None
    return content, keep(PROTOCOL, wire, _SPOKEN_KEYS, {} if spelling is None else {"content": spelling})


def _as_system(piece: UserContent) -> SystemContent:
    """Give a piece that instructions can hold; media in them are kept as they were."""
    if isinstance(piece, (TextContent, NativeContent)):
        return piece
    wire = cast("list[Block]", encode_content((piece,), "list", ()))[0]
    return NativeContent(protocol=PROTOCOL, block=wire, fallback=(piece,))
