"""Requests: the system prompt, the turns, the tools.

Facts:
- `input` is a string or a list of items; messages come with and without `type`, their content as a string or as parts.
                                                                    (openai 3.49.0; recorded traffic, 2026-11)
- Instructions are the key `instructions`, or a message of the role `system` or `developer`. Every vendor of this
  protocol reads the latter, and it can hold parts; so segue writes that.    (pi-ai 1.5.0; recorded traffic, 2026-11)
- Outputs name their call by `call_id` alone; those of custom tools have their own type.       (openai 3.49.0)
- Adjacent items of the model do not show where one reply ended: they are read as one turn.

- codex sends its tools as the first item, `additional_tools`, and no `tools`, for models whose entry says so. They are
  the tools of the request: other protocols have to get them.                       (codex @343074d4; read 2026-11-16)
- The same item later in the input makes more tools available from there on.         (openai 3.49.0: AdditionalTools)

Choices kept in `extra`: `field`, the key that holds the system prompt ("instructions", default "input") or a native
block of a user or system turn ("input" for its own item, default "content"); `tools`, the item that holds the
tools (default "tools", the key of the body); of a tool `list`, "input" if an item among the turns defines it (default
"tools").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    SystemContent,
    TextContent,
    ToolCall,
    UserContent,
)
from segue.conversation.context import Context, Prompt, Tool
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
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.reading import expect_list, expect_object, text_of
from segue.protocols.kit.sources import objects_in
from segue.protocols.kit.verbatim import VERBATIM, choose, chosen, keep, restore
from segue.protocols.openai_responses.content import (
    decode_content,
    default_content,
    encode_content,
    encode_parts,
    is_item,
    native_item,
    side_of,
)
from segue.protocols.openai_responses.options import (
    decode_options,
    decode_tool,
    decode_tools,
    encode_options,
    encode_tools,
)
from segue.protocols.openai_responses.rules import PROTOCOL, PROVIDER
from segue.protocols.openai_responses.turns import TurnReader, is_custom, write_turn, write_turn_fast

_FUNCTION_OUTPUT: Final = "function_call_output"
_CUSTOM_OUTPUT: Final = "custom_tool_call_output"
_TOOLS_ITEM: Final = "additional_tools"
_STOP, _TOOL_USE = StopReason.STOP, StopReason.TOOL_USE  # with CPython 3.11, to look up a member takes 0.2 us
_SYSTEM: Final = "system"
"""In the `extra` of a context: the message item of the system prompt."""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of items.

    Raises:
        DecodeError: the body has another structure than this protocol's.
    """
    if not isinstance(body, Mapping):
        transcript = _Transcript(endpoint, endpoint.model.id)
        transcript.read(expect_list(body, ()))
        return Prompt(context=transcript.context(_with_added((), transcript.messages), None))
    model, instructions, given = text_of(body.get("model")), text_of(body.get("instructions")), body.get("input")
    transcript = _Transcript(endpoint, model or endpoint.model.id)
    transcript.system_prompt = instructions
    items = items_of(given)
    tools = decode_tools(body["tools"]) if isinstance(body.get("tools"), list) else ()
    if "tools" not in body and items and (found := _tools_item(items[0])) is not None:
        transcript.tools_item, tools = found
    transcript.read(items)
    tools = _with_added(tools, transcript.messages)
    context = transcript.context(tools, body)
    return Prompt(context=context, options=decode_options(body, endpoint, tools), model=model)


def items_of(given: object) -> list[object]:
    """Return the items of an `input`.

    Raises:
        DecodeError: it is neither a text nor a list.
    """
    if given is None:
        return []
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return expect_list(given, ("input",))


def _added(messages: Sequence[Message]) -> Iterator[Block]:
    """Yield the definitions of tools in items among the turns."""
    for message in messages:
        if type(message) is SystemMessage:
            for piece in message.content:
                if piece.kind == "native" and piece.protocol == PROTOCOL and piece.block.get("type") == _TOOLS_ITEM:
                    given = piece.block.get("tools")
                    entries = cast("list[object]", given) if isinstance(given, (list, tuple)) else []
                    yield from (cast("Block", entry) for entry in entries if isinstance(entry, Mapping))


def _with_added(tools: tuple[Tool, ...], messages: Sequence[Message]) -> tuple[Tool, ...]:
    """Add the tools that items among the turns define. Of several with one name, the first counts."""
    names = {_key(tool) for tool in tools}
    out = list(tools)
    for definition in _added(messages):
        tool = decode_tool(definition)
        if (key := _key(tool)) not in names:
            names.add(key)
            own = tool.extra[PROTOCOL] if tool.extra is not None else EMPTY
            choices = {**object_of(own.get(VERBATIM)), **choose("list", "tools", "input")}
            out.append(replace(tool, extra={PROTOCOL: {**own, VERBATIM: choices}}))
    return tuple(out) if len(out) > len(tools) else tools


def _key(tool: Tool) -> str:
    return tool.name if tool.kind == "function" else encode_arguments(tool.definition)


def _listed(tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools that no item among the turns defines."""
    return [tool for tool in tools if chosen(tool.extra, PROTOCOL, "list", "tools") == "tools"]


def _tools_item(first: object) -> tuple[Block, tuple[Tool, ...]] | None:
    """Read the tools of the first item, if it is the one that holds them; and the item without them."""
    item = object_of(first)
    given = item.get("tools")
    tools = cast("list[object]", given) if item.get("type") == _TOOLS_ITEM and isinstance(given, list) else []
    if not tools or not all(isinstance(tool, Mapping) for tool in tools):
        return None
    return {key: None if key == "tools" else value for key, value in item.items()}, decode_tools(tools)


class _Transcript:
    """The turns of a body, being read."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.system_prompt: str | tuple[SystemContent, ...] | None = None
        self.prompt_item: Block | None = None
        self.tools_item: Block | None = None
        self.messages: list[Message] = []
        self.turn: list[AssistantContent] = []
        self.reader = TurnReader(checks_ids=endpoint.model.provider == PROVIDER)
        self.calls: dict[str, ToolCall] = {}

    def read(self, items: list[object]) -> None:
        """Read the items in order."""
        read = self.reader.read
        for index, entry in enumerate(cast("list[Block]", items)):
            if index == 0 and self.tools_item is not None:
                continue
            item = entry if isinstance(entry, dict) else expect_object(entry, ("input", index))
            kind = item.get("type")
            if kind == "function_call" or kind == "reasoning":
                self.turn += read(item)
            elif kind == _FUNCTION_OUTPUT:
                self.close_turn()
                self.messages.append(self.result(item))
            elif (side := side_of(item)) == "assistant":
                self.turn += read(item)
            elif side == "user":
                self.close_turn()
                self.messages.append(self.user(item))
            else:
                self.close_turn()
                message = self.system(item)
                if index == 0 and self.system_prompt is None and _is_prompt(item, message):
                    content = item.get("content")
                    self.system_prompt = content if isinstance(content, str) else message.content
                    self.prompt_item = item
                else:
                    self.messages.append(message)
        self.close_turn()

    def context(self, tools: tuple[Tool, ...], body: Block | None) -> Context:
        """Return what was read, with what the body differs in from the default."""
        received: Wire = {}
        default: Wire = {}
        if body is None:
            body = {"input": []}
        for key in ("model", "instructions"):
            if key in body and not isinstance(body[key], str):
                received[key] = body[key]
        if "tools" in body and not _listed(tools):
            received["tools"] = body["tools"]
        given = body.get("input")
        if not isinstance(given, (list, tuple)):
            default["input"] = [{"role": "user", "content": given}] if isinstance(given, str) else []
            if "input" in body:
                received["input"] = given
        if self.prompt_item is not None:
            received[_SYSTEM] = self.prompt_item
            default[_SYSTEM] = {"role": system_role(self.endpoint), "content": self.prompt_item.get("content")}
        known = (f"{_SYSTEM}.type", "tools") if isinstance(body.get("tools"), list) else (f"{_SYSTEM}.type",)
        choices = choose("field", "input", "instructions") if isinstance(body.get("instructions"), str) else EMPTY
        if self.tools_item is not None:
            choices = {**choices, **choose("tools", "tools", self.tools_item)}
        return Context(
            system_prompt=self.system_prompt,
            messages=tuple(self.messages),
            tools=tools,
            extra=keep(PROTOCOL, received, default, known, choices),
        )

    def close_turn(self) -> None:
        if not self.turn:
            return
        content = tuple(self.turn)
        stop_reason = _STOP
        for piece in content:
            if type(piece) is ToolCall:
                stop_reason = _TOOL_USE
                self.calls[piece.id] = piece
        self.messages.append(
            AssistantMessage(
                content=content,
                protocol=PROTOCOL,
                provider=self.endpoint.model.provider,
                model=self.model,
                stop_reason=stop_reason,
            )
        )
        self.turn = []
        self.reader.begin_turn()

    def user(self, item: Block) -> Message:
        """Read an item of the user or of the client."""
        kind, given = item.get("type"), item.get("content")
        if isinstance(given, str) and len(item) == 2 and item.get("role") == "user":
            return UserMessage(content=(TextContent(text=given),) if given else ())
        if kind == _CUSTOM_OUTPUT:
            return self.result(item)
        is_message = item.get("role") == "user" and kind in (None, "message")
        content = decode_content(given) if is_message else None
        if content is None or (NativeContent in map(type, content) and _has_items(given)):
            return UserMessage(content=(_item(item),))
        default: Wire = {"role": "user", "content": default_content(content, given)}
        if len(item) == 2 and default["content"] is given:
            return UserMessage(content=content)
        extra = _LISTED.get((kind, *item)) if default["content"] is not given and _is_bare(given) else None
        return UserMessage(content=content, extra=extra or keep(PROTOCOL, item, default, known=("type",)))

    def result(self, item: Block) -> Message:
        call_id, given = item.get("call_id"), item.get("output")
        content = (TextContent(text=given),) if isinstance(given, str) and given else decode_content(given)
        if not isinstance(call_id, str) or content is None:
            return UserMessage(content=(_item(item),))
        call = self.calls.get(call_id)
        name, is_custom_call = ("", False) if call is None else (call.name, is_custom(call))
        kind = _CUSTOM_OUTPUT if is_custom_call else _FUNCTION_OUTPUT
        extra: Extra | None = None
        if len(item) != 3 or not isinstance(given, str) or item["type"] != kind:
            output = default_content(content, given)
            extra = keep(PROTOCOL, item, {"type": kind, "call_id": call_id, "output": output})
        return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, extra=extra)

    def system(self, item: Block) -> SystemMessage:
        given = item.get("content")
        content = decode_content(given)
        if content is None or item.get("type") not in (None, "message") or _has_items(given):
            return SystemMessage(content=(_item(item),))
        default: Wire = {"role": system_role(self.endpoint), "content": default_content(content, given)}
        parts = cast("list[object]", given) if isinstance(given, list) else [given]
        return SystemMessage(
            content=tuple(_as_system(piece, part) for piece, part in zip(content, parts, strict=False)),
            extra=keep(PROTOCOL, item, default, known=("type",)),
        )


_BARE: Final = {"role": "user", "content": [{"type": "input_text", "text": "a"}]}
_LISTED: Final[Mapping[tuple[object, ...], Extra | None]] = {
    (item.get("type"), *item): keep(PROTOCOL, item, {"role": "user", "content": "a"}, known=("type",))
    for item in (_BARE, {"type": "message", **_BARE})
}
"""The extra of a message with one text in a list, by its type and its keys."""


def _is_bare(content: object) -> bool:
    """Whether content is a list of one part that has only its text."""
    parts = list_of(content)
    part = object_of(parts[0]) if len(parts) == 1 else EMPTY
    return tuple(part) == ("type", "text") and part["text"] != part["type"]


def _has_items(content: object) -> bool:
    """Whether content has a part that is an item: it would be written next to its message."""
    return any(is_item(part) for part in objects_in(content))


def _is_prompt(item: Block, message: SystemMessage) -> bool:
    if not message.content and not isinstance(item.get("content"), str):
        return False  # a prompt without content would not be written
    return not any(piece.kind == "native" and _is_own_item(piece) for piece in message.content)


def _as_system(piece: UserContent, part: object) -> SystemContent:
    """Instructions hold text; a part of another kind is kept unchanged."""
    if piece.kind == "text" or piece.kind == "native":
        return piece
    return NativeContent(protocol=PROTOCOL, block=cast("Block", part))


def _item(item: Block) -> NativeContent:
    native = native_item(item)
    if is_item(item):
        return native
    extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose("field", "content", "input"))
    return NativeContent(protocol=PROTOCOL, block=item, fallback=native.fallback, extra=extra)


def system_role(endpoint: Endpoint) -> str:
    """Name the role of instructions: `developer` for models that reason, where the provider has that role."""
    return "developer" if endpoint.dialect.developer_role and endpoint.model.reasoning else "system"


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write the body; the body that `decode_request` read is written unchanged.

    Raises:
        EncodeError: content or an option that this protocol does not support.
    """
    context, extra = prompt.context, prompt.context.extra
    body: Wire = {} if prompt.model is None else {"model": prompt.model}
    items: list[Wire] = []
    system_prompt = context.system_prompt
    if endpoint.dialect.instructions:
        body["instructions"] = ""
    if isinstance(system_prompt, str) and (
        endpoint.dialect.instructions or chosen(extra, PROTOCOL, "field", "input") == "instructions"
    ):
        body["instructions"] = system_prompt
    elif isinstance(system_prompt, tuple) and any(p.kind == "native" and _is_own_item(p) for p in system_prompt):
        _encode_parts(system_prompt, None, system_role(endpoint), items)
    elif system_prompt is not None and system_prompt != ():
        items.append(_encode_prompt(system_prompt, extra, endpoint))
    _encode_messages(context.messages, items, endpoint)
    body["input"] = items
    given: Sequence[Tool] = context.tools
    if len(listed := _listed(given)) < len(given) and any(entry.get("type") == _TOOLS_ITEM for entry in items):
        if endpoint.rules.tool_namespaces:
            given = listed
        else:
            items[:] = [entry for entry in items if entry.get("type") != _TOOLS_ITEM]
    if given:
        tools = encode_tools(given)
        item = object_of(chosen(extra, PROTOCOL, "tools", "tools")) if endpoint.rules.tool_namespaces else EMPTY
        if item:
            items.insert(0, {**item, "tools": tools})
        else:
            body["tools"] = tools
    if extra is not None:
        restore(body, extra, PROTOCOL).pop(_SYSTEM, None)
    for key, value in encode_options(prompt.options, endpoint, context.tools, prompt.model).items():
        body.setdefault(key, value)
    return body


def _encode_prompt(prompt: str | tuple[SystemContent, ...], extra: Extra | None, endpoint: Endpoint) -> Wire:
    content = prompt if isinstance(prompt, str) else encode_parts(prompt, ("system_prompt",))
    item: Wire = {"role": system_role(endpoint), "content": content}
    if extra is None:
        return item
    return dict(object_of(restore({_SYSTEM: item}, extra, PROTOCOL).get(_SYSTEM, item)))


def _encode_messages(messages: Sequence[Message], items: list[Wire], endpoint: Endpoint) -> None:
    custom: set[str] = set()
    open_reasoning = endpoint.rules.reasoning_replay in ("open", "required")
    role = system_role(endpoint)
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            if type(message) is ToolResultMessage:
                content, call_id = message.content, message.tool_call_id
                kind = _CUSTOM_OUTPUT if call_id in custom else _FUNCTION_OUTPUT
                only = content[0] if len(content) == 1 else None
                if message.cache_mark is not None and content:
                    # A result has no breakpoint itself: its last part has it.
                    content = (*content[:-1], replace(content[-1], cache_mark=message.cache_mark))
                    only = None
                if type(only) is TextContent and only.extra is only.cache_mark is message.extra is None and only.text:
                    # Fast path: most messages of an agent are such results.
                    items.append({"type": kind, "call_id": call_id, "output": only.text})
                else:
                    item: Wire = {"type": kind, "call_id": call_id, "output": encode_content(content, ())}
                    items.append(restore(item, message.extra, PROTOCOL))
            elif type(message) is AssistantMessage:
                has_extra = False
                if not write_turn_fast(items, message.content):
                    has_extra = write_turn(items, message.content, open_reasoning=open_reasoning)
                if has_extra or custom:
                    _note_custom(message.content, custom)
            else:
                _encode_parts(message.content, message.extra, "user" if message.role == "user" else role, items)
    except EncodeError as error:
        raise EncodeError(error.reason, path=("messages", index, "content", *error.path)) from error


def _note_custom(content: Sequence[AssistantContent], custom: set[str]) -> None:
    """Note which calls are custom: a later call of the other kind may have the same id."""
    for piece in content:
        if piece.kind == "toolCall":
            (custom.add if is_custom(piece) else custom.discard)(piece.id)


def _encode_parts(content: Sequence[UserContent], extra: Extra | None, role: str, items: list[Wire]) -> None:
    """Write a user or system turn: one message, or several items where native blocks in it are their own items."""
    only = content[0] if len(content) == 1 else None
    if type(only) is TextContent and only.text and only.extra is only.cache_mark is extra is None:
        items.append({"role": role, "content": only.text})
        return
    run: list[UserContent] = []
    wrote_item = False
    for piece in content:
        if piece.kind == "native" and piece.protocol == PROTOCOL and _is_own_item(piece):
            if run:
                items.append(_encode_message(run, extra, role))
                run = []
            items.append(dict(piece.block))
            wrote_item = True
        else:
            run.append(piece)
    if run or not wrote_item:
        items.append(_encode_message(run, extra, role))


def _is_own_item(piece: NativeContent) -> bool:
    return is_item(piece.block) or chosen(piece.extra, PROTOCOL, "field", "content") == "input"


def _encode_message(content: Sequence[UserContent], extra: Extra | None, role: str) -> Wire:
    return restore({"role": role, "content": encode_content(content, ())}, extra, PROTOCOL)
