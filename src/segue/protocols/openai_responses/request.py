"""A request, both ways: the system prompt, the turns, the tools.

Facts this file rests on:
- `input` is a string or a list of items; messages come with and without `type`, their content as a string or as parts.
                                                                    (openai 3.49.0; recorded traffic, 2026-11)
- Instructions are the key `instructions`, or a message of the role `system` or `developer`. Every vendor of this wire
  reads the latter, and it can carry parts; so that is what segue writes.    (pi-ai 1.5.0; recorded traffic, 2026-11)
- Outputs name their call by `call_id` alone; a custom tool's have a type of their own.             (openai 3.49.0)
- Neighbouring items of the model's say nothing of where one reply ended: they are read as one turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    SystemContent,
    TextContent,
    UserContent,
)
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import EncodeError
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, extra_of, left_over, verbatim_of
from segue.protocols.openai_responses.content import Wire, decode_content, encode_content, original
from segue.protocols.openai_responses.fast_encode import fast_encode
from segue.protocols.openai_responses.items import TurnReader, is_custom, write_turn
from segue.protocols.openai_responses.native import Item, is_item, native_item, side_of
from segue.protocols.openai_responses.options import decode_options, encode_options
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.tools import decode_tools, encode_tools

_MESSAGE_KEYS: Final = frozenset({"type", "role", "content"})
_OUTPUT_KEYS: Final = frozenset({"type", "call_id", "output"})
_OUTPUTS: Final[Mapping[str, bool]] = {"function_call_output": False, "custom_tool_call_output": True}
"""The outputs that are tool results -> whether their call is expected to be a custom one."""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of items.

    Raises:
        DecodeError: the body is not what this wire says.
    """
    if not isinstance(body, Mapping):
        context = _Transcript(endpoint, endpoint.model.id).read(expect_list(body, ()), {})
        return Prompt(context=context)
    wire = body
    named = wire.get("model")
    model = named if isinstance(named, str) else None
    verbatim: Wire = {}
    given = wire.get("input")
    if given is None:
        verbatim["input"] = "absent"
        items: list[object] = []
    elif isinstance(given, str):
        verbatim["input"] = "string"
        items = [{"role": "user", "content": given}]
    else:
        items = expect_list(given, ("input",))
    transcript = _Transcript(endpoint, model or endpoint.model.id)
    instructions = wire.get("instructions")
    if isinstance(instructions, str):
        verbatim["system"] = "instructions"
        transcript.system_prompt = instructions
    context = transcript.read(items, verbatim)
    tools = decode_tools(wire["tools"]) if isinstance(wire.get("tools"), list) else ()
    if isinstance(wire.get("tools"), list) and not tools:
        verbatim["tools"] = "empty"
    context = Context(
        system_prompt=context.system_prompt,
        messages=context.messages,
        tools=tools,
        extra={PROTOCOL: {VERBATIM: verbatim}} if verbatim else None,
    )
    return Prompt(context=context, options=decode_options(wire, endpoint, tools), model=model)


class _Transcript:
    """The turns of a body, being read."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.system_prompt: str | tuple[SystemContent, ...] | None = None
        self.messages: list[Message] = []
        self.turn: list[AssistantContent] = []
        self.reader = TurnReader()
        self.calls: dict[str, tuple[str, bool]] = {}

    def read(self, items: list[object], verbatim: Wire) -> Context:
        """Read the items in order; what is found out about the prompt goes into `verbatim`."""
        for index, entry in enumerate(items):
            item = cast("Item", entry) if isinstance(entry, dict) else expect_object(entry, ("input", index))
            match side_of(item):
                case "assistant":
                    self.turn.extend(self.reader.read(item))
                case "user":
                    self.close_turn()
                    self.messages.append(self.answer(item))
                case "system":
                    self.close_turn()
                    message = self.system(item)
                    if index == 0 and self.system_prompt is None and _is_prompt(item, message):
                        self.adopt_prompt(item, message, verbatim)
                    else:
                        self.messages.append(message)
        self.close_turn()
        return Context(system_prompt=self.system_prompt, messages=tuple(self.messages))

    def close_turn(self) -> None:
        if not self.turn:
            return
        content = tuple(self.turn)
        calls = [piece for piece in content if piece.kind == "toolCall"]
        for call in calls:
            self.calls[call.id] = (call.name, is_custom(call))
        self.messages.append(
            AssistantMessage(
                content=content,
                protocol=PROTOCOL,
                provider=self.endpoint.model.provider,
                model=self.model,
                stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
            )
        )
        self.turn = []
        self.reader = TurnReader()

    def answer(self, item: Item) -> Message:
        """Read what the user or the client said."""
        kind = item.get("type")
        if isinstance(kind, str) and kind in _OUTPUTS:
            return self.result(item, custom=_OUTPUTS[kind])
        read = decode_content(item.get("content")) if item.get("role") == "user" else None
        if read is None or kind not in (None, "message"):
            return UserMessage(content=(_item(item),))
        content, was_list = read
        if len(item) == 2 and not was_list:
            return UserMessage(content=content)
        return UserMessage(
            content=content, extra=extra_of(PROTOCOL, item, _MESSAGE_KEYS, _message_verbatim(item, was_list))
        )

    def result(self, item: Item, *, custom: bool) -> Message:
        call_id, read = item.get("call_id"), decode_content(item.get("output"))
        if not isinstance(call_id, str) or read is None:
            return UserMessage(content=(_item(item),))
        name, expected = self.calls.get(call_id, ("", False))
        content, was_list = read
        verbatim: Wire = {"list": True} if was_list else {}
        if custom != expected:
            verbatim["custom"] = custom
        return ToolResultMessage(
            tool_call_id=call_id,
            tool_name=name,
            content=content,
            extra=extra_of(PROTOCOL, item, _OUTPUT_KEYS, verbatim) if len(item) > 3 or verbatim else None,
        )

    def system(self, item: Item) -> SystemMessage:
        read = decode_content(item.get("content"))
        if read is None or item.get("type") not in (None, "message"):
            return SystemMessage(content=(_item(item),))
        content, was_list = read
        verbatim = _message_verbatim(item, was_list)
        if item.get("role") != system_role(self.endpoint):
            verbatim["role"] = item.get("role")
        return SystemMessage(
            content=tuple(_as_system(piece, part) for piece, part in zip(content, _parts(item), strict=False)),
            extra=extra_of(PROTOCOL, item, _MESSAGE_KEYS, verbatim),
        )

    def adopt_prompt(self, item: Item, message: SystemMessage, verbatim: Wire) -> None:
        """Take the first message for the system prompt: a string for a string, pieces for parts."""
        content = item.get("content")
        self.system_prompt = content if isinstance(content, str) else message.content
        wire_format = {**verbatim_of(message.extra, PROTOCOL), **left_over(message.extra, PROTOCOL)}
        wire_format.pop("list", None)
        if wire_format:
            verbatim["system"] = wire_format


def _is_prompt(item: Item, message: SystemMessage) -> bool:
    if not message.content and not isinstance(item.get("content"), str):
        return False  # a prompt of no pieces would not be written
    return not any(piece.kind == "native" and _stands_alone(piece) for piece in message.content)


def _parts(item: Item) -> list[object]:
    content = item.get("content")
    return cast("list[object]", content) if isinstance(content, list) else [content]


def _as_system(piece: UserContent, part: object) -> SystemContent:
    """Instructions hold text; a part of another kind is kept as it came."""
    if piece.kind == "text" or piece.kind == "native":
        return piece
    return NativeContent(protocol=PROTOCOL, block=cast("Item", part))


def _item(item: Item) -> NativeContent:
    native = native_item(item)
    if is_item(item):
        return native
    return NativeContent(
        protocol=PROTOCOL, block=item, fallback=native.fallback, extra={PROTOCOL: {VERBATIM: {"item": True}}}
    )


def _message_verbatim(item: Item, was_list: bool) -> Wire:
    verbatim: Wire = {}
    if "type" in item:
        verbatim["type"] = item["type"]
    if was_list:
        verbatim["list"] = True
    return verbatim


def system_role(endpoint: Endpoint) -> str:
    """Name the role that instructions have: the developer's for models that reason, where the provider knows it."""
    return "developer" if endpoint.dialect.developer_role and endpoint.model.reasoning else "system"


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write the body; what `decode_request` read comes out as it was.

    Raises:
        EncodeError: something that this wire has no word for.
    """
    context = prompt.context
    verbatim = verbatim_of(context.extra, PROTOCOL)
    body: Wire = {} if prompt.model is None else {"model": prompt.model}
    items: list[Wire] = []
    if context.system_prompt is not None:
        if verbatim.get("system") == "instructions" and isinstance(context.system_prompt, str):
            body["instructions"] = context.system_prompt
        else:
            items.extend(_encode_prompt(context.system_prompt, verbatim.get("system"), endpoint))
    _encode_messages(context.messages, items, endpoint)
    whole = _as_string(items) if verbatim.get("input") == "string" else None
    if items or verbatim.get("input") != "absent":
        body["input"] = items if whole is None else whole
    if context.tools or verbatim.get("tools") == "empty":
        body["tools"] = encode_tools(context.tools)
    encode_options(prompt.options, body, endpoint, context.tools)
    return body


def _as_string(items: list[Wire]) -> str | None:
    """Give the only words of a request that was a string; None once it has grown."""
    if len(items) == 1 and items[0].keys() == {"role", "content"} and items[0]["role"] == "user":
        content = items[0]["content"]
        return content if isinstance(content, str) else None
    return None


def _encode_prompt(prompt: str | tuple[SystemContent, ...], wire_format: object, endpoint: Endpoint) -> list[Wire]:
    if not isinstance(prompt, str) and not prompt:
        return []
    item: Wire = {}
    if isinstance(wire_format, Mapping):
        item.update(cast("Mapping[str, object]", wire_format))
    item.setdefault("role", system_role(endpoint))
    item["content"] = prompt if isinstance(prompt, str) else encode_content(prompt, ("system_prompt",), as_list=True)
    return [item]


def _encode_messages(messages: Sequence[Message], items: list[Wire], endpoint: Endpoint) -> None:
    custom: set[str] = set()
    open_reasoning = endpoint.rules.reasoning_replay in ("open", "required")
    role = system_role(endpoint)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            if type(message) is ToolResultMessage:
                content, call_id = message.content, message.tool_call_id
                only = content[0] if len(content) == 1 else None
                if (
                    type(only) is not TextContent
                    or only.extra is not None
                    or message.extra is not None
                    or not only.text
                ):
                    items.append(_encode_result(message, expected=call_id in custom))
                else:
                    # The short way, for these are most of an agent's messages.
                    kind = "custom_tool_call_output" if call_id in custom else "function_call_output"
                    items.append({"type": kind, "call_id": call_id, "output": only.text})
            elif type(message) is AssistantMessage:
                if fast_encode(items, message.content):
                    has_custom = False
                else:
                    has_custom = write_turn(items, message.content, open_reasoning=open_reasoning)
                if has_custom or custom:
                    _note_custom(message.content, custom)
            else:
                _encode_parts(message.content, message.extra, "user" if message.role == "user" else role, items)
    except EncodeError as error:
        raise EncodeError(error.reason, path=("messages", index, "content", *error.path)) from error


def _note_custom(content: Sequence[AssistantContent], custom: set[str]) -> None:
    """Remember which calls take a text: an id may be used again, for a call of the other kind."""
    for piece in content:
        if piece.kind == "toolCall":
            (custom.add if is_custom(piece) else custom.discard)(piece.id)


def _encode_parts(content: Sequence[UserContent], extra: Extra | None, role: str, items: list[Wire]) -> None:
    """Write a user's or a system turn: one message, or several items where blocks in it are items of their own."""
    only = content[0] if len(content) == 1 else None
    if type(only) is TextContent and only.text and only.extra is extra is None:
        items.append({"role": role, "content": only.text})
        return
    run: list[UserContent] = []
    wrote_item = False
    for piece in content:
        if piece.kind == "native" and piece.protocol == PROTOCOL and _stands_alone(piece):
            if run:
                items.append(_encode_message(run, extra, role))
                run = []
            items.append(dict(piece.block))
            wrote_item = True
        else:
            run.append(piece)
    if run or not wrote_item:
        items.append(_encode_message(run, extra, role))


def _stands_alone(piece: NativeContent) -> bool:
    return is_item(piece.block) or verbatim_of(piece.extra, PROTOCOL).get("item") is True


def _encode_message(content: Sequence[UserContent], extra: Extra | None, role: str) -> Wire:
    verbatim = verbatim_of(extra, PROTOCOL)
    item: Wire = {**left_over(extra, PROTOCOL)} if original(extra) else {}
    if "type" in verbatim:
        item["type"] = verbatim["type"]
    item["role"] = verbatim.get("role", role)
    item["content"] = encode_content(content, (), as_list=verbatim.get("list") is True)
    return item


def _encode_result(message: ToolResultMessage, *, expected: bool) -> Wire:
    content, extra = message.content, message.extra
    verbatim = verbatim_of(extra, PROTOCOL)
    kind = "custom_tool_call_output" if verbatim.get("custom", expected) else "function_call_output"
    output = encode_content(content, (), as_list=verbatim.get("list") is True)
    item: Wire = {"type": kind, "call_id": message.tool_call_id, "output": output}
    return {**left_over(extra, PROTOCOL), **item} if original(extra) else item
