"""A request to an OpenAI chat endpoint, both ways.

Facts this file rests on:
- Roles are system, developer, user, assistant, tool, and of old function; the prompt of a reasoning model goes under
  developer where the provider knows that role.                    (openai 3.49.0; pi-ai 1.5.0; read 2026-11-15)
- A tool result names its call by id; some vendors want the tool's name as well.             (pi-ai 1.5.0)
- A history with calls and no tools needs an empty list of them behind LiteLLM.             (pi #149, opencode #8246)

The first message is the system prompt if it has such a role; later ones are instructions in mid-conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import NativeContent, SystemContent, TextContent, UserContent
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import Path
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.reading import (
    ASKED_OF,
    VERBATIM,
    expect_objects,
    extra_of,
    is_of_reply,
    left_over,
    verbatim_of,
)
from segue.protocols.openai_chat.assistant import decode_assistant, empty_content, encode_assistant
from segue.protocols.openai_chat.cache import place_marks
from segue.protocols.openai_chat.calls import OLD_ID
from segue.protocols.openai_chat.content import (
    decode_content,
    encode_content,
    encode_part,
    keep_native,
    native_block,
)
from segue.protocols.openai_chat.fast_encode import fast_encode
from segue.protocols.openai_chat.options import decode_options, encode_options, own_verbatim
from segue.protocols.openai_chat.reasoning import REASONING_KEYS, demand_reasoning, plain_field
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.tools import decode_tools, encode_tools
from segue.protocols.openai_chat.verbatim import MISSING, fill_in, object_of

_SYSTEM_ROLES: Final = ("system", "developer")
_SYSTEM_KEY: Final = "system"
"""Where a context keeps what its system message said beyond its content."""


def system_role(endpoint: Endpoint) -> str:
    """Give the role that instructions have at this endpoint."""
    return "developer" if endpoint.dialect.developer_role and endpoint.model.reasoning else "system"


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a request body.

    Raises:
        EncodeError: content, a tool or arguments that this wire has no word for.
    """
    context, options = prompt.context, prompt.options
    frame = own_verbatim(context.extra, endpoint)
    asked = own_verbatim(options.extra, endpoint)
    is_bare = "bare_reasoning" in asked and ASKED_OF in asked
    is_demanded = endpoint.rules.reasoning_replay == "required" and not is_bare
    demanded = plain_field(endpoint) if is_demanded else None
    messages: list[dict[str, object]] = []
    if context.system_prompt is not None and (context.system_prompt != () or "system" in frame):
        messages.append(_encode_system(context, frame, endpoint))
    _encode_messages(context.messages, messages, endpoint, demanded=demanded)
    body: dict[str, object] = {"messages": messages}
    if not asked.get("no_model"):
        body["model"] = endpoint.model.id if prompt.model is None else prompt.model
    encode_tools(body, context.tools, endpoint)
    if "tools" not in body:
        _restore_empty_tools(body, context, frame, endpoint)
    encode_options(body, options, context, endpoint)
    place_marks(body, options.cache_retention, endpoint)
    return body


def _encode_messages(
    given: Sequence[Message], messages: list[dict[str, object]], endpoint: Endpoint, *, demanded: str | None
) -> None:
    """Write the messages behind those that are there; `demanded` is the field that every assistant's has to have."""
    named = endpoint.dialect.result_name
    field = None if endpoint.dialect.think_tags else plain_field(endpoint)
    nothing = empty_content(endpoint)
    wire: dict[str, object]
    for index, message in enumerate(given):
        if type(message) is ToolResultMessage:
            content = message.content
            piece = content[0] if len(content) == 1 else None
            if type(piece) is TextContent and piece.extra is message.extra is None and not named:
                # The short way, for these are most of an agent's messages.
                wire = {"role": "tool", "tool_call_id": message.tool_call_id, "content": piece.text}
            else:
                wire = _encode_result(message, endpoint, ("messages", index))
        elif type(message) is AssistantMessage:
            is_bare = message.extra is None or is_of_reply(message.extra)
            default = fast_encode(message.content, field, nothing) if is_bare else None
            wire = _encode_turn(message, endpoint, ("messages", index)) if default is None else default
            if demanded is not None and demanded not in wire:
                demand_reasoning(wire, demanded)
        else:
            role = "user" if message.role == "user" else system_role(endpoint)
            wire = _encode_message_content(role, message.content, message.extra, ("messages", index))
        messages.append(wire)


def _encode_turn(message: AssistantMessage, endpoint: Endpoint, path: Path) -> dict[str, object]:
    """Write a turn with all it said in a request, as it was spelt there; what a reply said stays with the reply."""
    left, verbatim = left_over(message.extra, PROTOCOL), verbatim_of(message.extra, PROTOCOL)
    return encode_assistant(message.content, endpoint, path, left=left, verbatim=verbatim)


def _encode_message_content(
    role: str, content: Sequence[UserContent], extra: Mapping[str, Mapping[str, object]] | None, path: Path
) -> dict[str, object]:
    only = content[0] if len(content) == 1 else None
    if type(only) is TextContent and only.extra is extra is None:
        return {"role": role, "content": only.text}
    verbatim = verbatim_of(extra, PROTOCOL)
    if verbatim.get("message") == "native" and len(content) == 1 and content[0].kind == "native":
        return dict(native_block(content[0], path))
    wire: dict[str, object] = {"role": verbatim.get("role", role)}
    written = encode_content(content, verbatim.get("content"), (*path, "content"))
    if written is not MISSING:
        wire["content"] = written
    return fill_in(wire, left_over(extra, PROTOCOL))


def _encode_result(message: ToolResultMessage, endpoint: Endpoint, path: Path) -> dict[str, object]:
    verbatim = verbatim_of(message.extra, PROTOCOL)
    wire: dict[str, object]
    old = verbatim.get("role") == "function"
    if old or (verbatim.get("tool_call_id") == "absent" and not message.tool_call_id):
        wire = {"role": "function" if old else "tool"}
    else:
        wire = {"role": "tool", "tool_call_id": message.tool_call_id}
    if message.tool_name and verbatim.get("name", old or endpoint.dialect.result_name):
        wire["name"] = message.tool_name
    written = encode_content(message.content, verbatim.get("content"), (*path, "content"), joined=True)
    if written is not MISSING:
        wire["content"] = written
    return fill_in(wire, left_over(message.extra, PROTOCOL))


def _encode_system(context: Context, frame: Mapping[str, object], endpoint: Endpoint) -> dict[str, object]:
    received = cast("Mapping[str, object]", frame.get("system", {}))
    wire: dict[str, object] = {"role": received.get("role", system_role(endpoint))}
    prompt = context.system_prompt
    if isinstance(prompt, str):
        wire["content"] = prompt
    else:
        written = encode_content(prompt or (), received.get("content", "list" if prompt else None), ("system_prompt",))
        if written is not MISSING:
            wire["content"] = written
    return fill_in(wire, object_of(left_over(context.extra, PROTOCOL).get(_SYSTEM_KEY)))


def _restore_empty_tools(
    body: dict[str, object], context: Context, frame: Mapping[str, object], endpoint: Endpoint
) -> None:
    """Write a list of no tools where it was written so, or where calls in the history ask for it."""
    received = frame.get("tools")
    if received == "null":
        body["tools"] = None
    elif received == "empty" or (
        received is None and not context.tools and endpoint.dialect.empty_tools and _has_calls(context.messages)
    ):
        body["tools"] = []


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(
        message.role == "toolResult" or (message.role == "assistant" and bool(message.tool_calls()))
        for message in messages
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are not what the protocol says; names the place.
    """
    whole = body if isinstance(body, Mapping) else {"messages": list(body)}
    named = whole.get("model")
    model = named if isinstance(named, str) else None
    frame: dict[str, object] = {}
    asked: dict[str, object] = {}
    reading = _Reading(endpoint, model or endpoint.model.id, frame)
    reading.read(expect_objects(whole.get("messages"), ("messages",)), asked)
    tools = decode_tools(whole, frame, endpoint)
    if not tools and "tools" not in frame and endpoint.dialect.empty_tools and _has_calls(reading.messages):
        frame["tools"] = "absent"
    beyond: dict[str, object] = {_SYSTEM_KEY: reading.beyond} if reading.beyond else {}
    if frame:
        beyond[VERBATIM] = {"provider": endpoint.model.provider, **frame}
    context = Context(
        system_prompt=reading.system_prompt,
        messages=tuple(reading.messages),
        tools=tools,
        extra={PROTOCOL: beyond} if beyond else None,
    )
    known = {"messages", "tools"}
    if isinstance(whole.get("functions"), list) and whole["functions"]:
        known.add("functions")
    if model is not None:
        known.add("model")
    elif isinstance(body, Mapping):
        asked["no_model"] = True
    return Prompt(context=context, options=decode_options(whole, context, known, asked, endpoint), model=model)


class _Reading:
    """Reads the messages of a body in order, remembering which call has which name."""

    def __init__(self, endpoint: Endpoint, model: str, frame: dict[str, object]) -> None:
        self.endpoint = endpoint
        self.model = model
        self.frame = frame
        self.system_prompt: str | tuple[SystemContent, ...] | None = None
        self.beyond: Mapping[str, object] | None = None
        self.messages: list[Message] = []
        self.calls: dict[str, str] = {}
        self.demanded = False
        self.named = endpoint.dialect.result_name

    def read(self, wires: Sequence[Mapping[str, object]], asked: dict[str, object]) -> None:
        """Read all messages."""
        if self.endpoint.rules.reasoning_replay == "required":
            turns = [wire for wire in wires if wire.get("role") == "assistant"]
            self.demanded = not any(REASONING_KEYS.isdisjoint(wire) for wire in turns)
            if not self.demanded:
                asked["bare_reasoning"] = True
                asked[ASKED_OF] = self.model
        for index, wire in enumerate(wires):
            path = ("messages", index)
            role = wire.get("role")
            if index == 0 and role in _SYSTEM_ROLES:
                self._read_prompt(wire, (*path, "content"))
                continue
            match role:
                case "user":
                    content, extra = self._read_message_content(wire, path, "user")
                    self.messages.append(UserMessage(content=content, extra=extra))
                case "assistant":
                    self.messages.append(self._read_assistant(wire, path))
                case "tool" | "function":
                    self.messages.append(self._read_result(wire, path, old=role == "function"))
                case "system" | "developer":
                    content, extra = self._read_message_content(wire, path, system_role(self.endpoint))
                    pieces = tuple(_as_system(piece) for piece in content)
                    self.messages.append(SystemMessage(content=pieces, extra=extra))
                case _:
                    verbatim = {PROTOCOL: {VERBATIM: {"message": "native"}}}
                    self.messages.append(UserMessage(content=(keep_native(wire),), extra=verbatim))

    def _read_prompt(self, wire: Mapping[str, object], path: Path) -> None:
        value = wire.get("content", MISSING)
        content, verbatim = decode_content(value, path)
        received: dict[str, object] = {}
        if wire["role"] != system_role(self.endpoint):
            received["role"] = wire["role"]
        if not content:
            received["content"] = verbatim
        if received:
            self.frame["system"] = received
        is_text = isinstance(value, str)
        self.system_prompt = value if is_text else tuple(_as_system(piece) for piece in content)
        self.beyond = {key: value for key, value in wire.items() if key not in ("role", "content")}

    def _read_message_content(
        self, wire: Mapping[str, object], path: Path, default_role: str
    ) -> tuple[tuple[UserContent, ...], Mapping[str, Mapping[str, object]] | None]:
        content, received = decode_content(wire.get("content", MISSING), (*path, "content"))
        if received is None and len(wire) == 2 and wire["role"] == default_role:
            return content, None
        verbatim: dict[str, object] = {} if received is None else {"content": received}
        if wire["role"] != default_role:
            verbatim["role"] = wire["role"]
        return content, extra_of(PROTOCOL, wire, ("role", "content"), verbatim)

    def _read_assistant(self, wire: Mapping[str, object], path: Path) -> AssistantMessage:
        turn = decode_assistant(wire, self.endpoint, path, reply=False, tool_names={})
        left = turn.left
        default = plain_field(self.endpoint)
        if self.demanded and left.get(default) == "" and len(REASONING_KEYS & wire.keys()) == 1:
            del left[default]
        if turn.verbatim:
            left[VERBATIM] = turn.verbatim
        has_calls = False
        for piece in turn.content:
            if piece.kind == "toolCall":
                has_calls = True
                self.calls[piece.id] = piece.name
        return AssistantMessage(
            content=turn.content,
            protocol=PROTOCOL,
            provider=self.endpoint.model.provider,
            model=self.model,
            stop_reason=StopReason.TOOL_USE if has_calls else StopReason.STOP,
            extra={PROTOCOL: left} if left else None,
        )

    def _read_result(self, wire: Mapping[str, object], path: Path, *, old: bool) -> ToolResultMessage:
        text, wire_id = wire.get("content"), wire.get("tool_call_id")
        if isinstance(text, str) and isinstance(wire_id, str) and len(wire) == 3 and not (old or self.named):
            # An id, a text and nothing else: so are most of an agent's messages.
            tool_name = self.calls.get(wire_id, "")
            return ToolResultMessage(tool_call_id=wire_id, tool_name=tool_name, content=(TextContent(text=text),))
        content, received = decode_content(wire.get("content", MISSING), (*path, "content"), joined=True)
        verbatim: dict[str, object] = {} if received is None else {"content": received}
        known = {"role", "content"}
        call_id, name = wire.get("tool_call_id"), wire.get("name")
        named = isinstance(name, str) and bool(name)
        if named:
            known.add("name")
        if old:
            verbatim["role"] = "function"
            call_id = OLD_ID
        elif isinstance(call_id, str):
            known.add("tool_call_id")
        else:
            verbatim["tool_call_id"] = "absent"  # or null, which is left over
        tool_name = str(name) if named else self.calls.get(str(call_id), "")
        if tool_name and named != (old or self.named):
            verbatim["name"] = named
        return ToolResultMessage(
            tool_call_id=call_id if isinstance(call_id, str) else "",
            tool_name=tool_name,
            content=content,
            extra=extra_of(PROTOCOL, wire, known, verbatim),
        )


def _as_system(piece: UserContent) -> SystemContent:
    """Instructions are words; anything else in them only this wire can have meant."""
    if piece.kind == "text" or piece.kind == "native":
        return piece
    return NativeContent(protocol=PROTOCOL, block=encode_part(piece, ()), fallback=(replace(piece, extra=None),))
