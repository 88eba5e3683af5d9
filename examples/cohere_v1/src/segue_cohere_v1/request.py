"""Requests of Cohere's v1 chat endpoint, both ways.

Facts this file rests on:
- The last user message is `message`; everything before it is in `chat_history`.       (cohere 7.3.1, read 2026-11-15)
- Results of the last calls are `tool_results` beside an empty `message`; later they are a TOOL entry of the history.
                                                                                                            (the same)
- In its single-step form a request repeats the question in `message`, has `tool_results`, and leaves the calls out of
  the history: "Chat calls with `tool_results` should not be included in the Chat history".                  (the same)

Choices that are kept if they are not the default (`segue.protocols.choose`):
- `message` of an assistant message: "native" if its calls are only in `tool_results` (the single-step form).
- `field` of a user message: "tool_results" if the results before it are there and not in the history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    DecodeError,
    EncodeError,
    Message,
    NativeContent,
    Options,
    Prompt,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    new_assistant_message,
)
from segue.protocols import Endpoint, JsonObject, choose, chosen, keep, restore
from segue.protocols.kit.reading import expect_object, expect_objects, text_of
from segue_cohere_v1.rules import PROTOCOL
from segue_cohere_v1.tools import decode_tools, encode_tools

Wire = dict[str, object]

_ROLES: Final[Mapping[str, str]] = {"user": "USER", "assistant": "CHATBOT", "system": "SYSTEM"}
_ENTRY_KEYS: Final = frozenset({"role", "message", "tool_calls", "tool_results"})
_CALL_KEYS: Final = frozenset({"name", "parameters"})
_RESULT_KEYS: Final = frozenset({"call", "outputs"})
_OPTIONS: Final[Mapping[str, str]] = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "stop": "stop_sequences",
    "seed": "seed",
    "stream": "stream",
}
"""Fields of `Options` -> keys of the body."""
KEYS: Final = frozenset({"message", "model", "preamble", "chat_history", "tools", "tool_results", *_OPTIONS.values()})
"""The keys of a body that this module reads."""


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: something that the protocol does not support; projection removes it.
    """
    context, options = prompt.context, prompt.options
    for name in sorted(endpoint.rules.refused_options):
        if getattr(options, name) is not None:
            raise EncodeError(f"cohere-v1 does not support `{name}`; remove it", path=("options", name))
    body: Wire = {}
    if prompt.model is not None:
        body["model"] = prompt.model
    _encode_turns(body, context.messages)
    if context.system_prompt is not None and context.system_prompt != ():
        body["preamble"] = _encode_preamble(context)
    if context.tools:
        body["tools"] = encode_tools(context.tools)
    for name, key in _OPTIONS.items():
        value = cast("object", getattr(options, name))
        if value is not None:
            body[key] = list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
    return restore(body, options.extra, PROTOCOL, model=prompt.model)


def _encode_preamble(context: Context) -> str:
    if isinstance(context.system_prompt, str):
        return context.system_prompt
    return "\n".join(piece.text for piece in context.system_prompt or () if piece.kind == "text")


def _encode_turns(body: Wire, messages: Sequence[Message]) -> None:
    """Write `message`, `chat_history` and `tool_results`."""
    history: list[Wire] = []
    results: list[Wire] = []
    calls: dict[str, ToolCall] = {}
    message = ""
    for index, each in enumerate(messages):
        path = ("messages", index)
        if each.role == "toolResult":
            if each.tool_call_id not in calls:
                raise EncodeError(f"no call before it has the id {each.tool_call_id!r}", path=(*path, "tool_call_id"))
            results.append(_encode_result(each, calls[each.tool_call_id]))
            continue
        is_last = index == len(messages) - 1
        if results and not (is_last and chosen(each.extra, PROTOCOL, "field", "chat_history") == "tool_results"):
            history.append({"role": "TOOL", "tool_results": results})
            results = []
        if each.role == "assistant":
            calls = {piece.id: piece for piece in each.content if piece.kind == "toolCall"}
        entry = _encode_entry(each, path)
        if is_last and each.role == "user":
            message = cast("str", entry.pop("message"))
            body.update((key, value) for key, value in entry.items() if key not in _ENTRY_KEYS)
            continue
        history.append(entry)
    if results and not message and _is_single_step(messages):
        del history[-1]  # the calls are in the results
        message = cast("str", history.pop()["message"])
    body["message"] = message
    if history:
        body["chat_history"] = history
    if results:
        body["tool_results"] = results


def _is_single_step(messages: Sequence[Message]) -> bool:
    before = [each for each in messages if each.role != "toolResult"][-2:]
    roles = [each.role for each in before]
    if roles != ["user", "assistant"] or messages[-1].role != "toolResult":
        return False
    return chosen(before[-1].extra, PROTOCOL, "message", "default") == "native"


def _encode_entry(message: UserMessage | AssistantMessage | SystemMessage, path: tuple[str | int, ...]) -> Wire:
    texts: list[str] = []
    calls: list[Wire] = []
    native: Wire = {}
    for position, piece in enumerate(message.content):
        if piece.kind == "text":
            texts.append(piece.text)
        elif piece.kind == "toolCall":
            wire: Wire = {"name": piece.name, "parameters": dict(piece.arguments)}
            calls.append(restore(wire, piece.extra, PROTOCOL))
        elif piece.kind == "native" and piece.protocol == PROTOCOL:
            native.update(piece.block)
        else:
            raise EncodeError(
                f"cohere-v1 does not support content of type {piece.kind}; project the conversation first",
                path=(*path, "content", position),
            )
    entry: Wire = {"role": _ROLES[message.role], "message": "\n".join(texts)}
    if calls:
        entry["tool_calls"] = calls
    entry.update((key, value) for key, value in native.items() if key not in _ENTRY_KEYS)
    return restore(entry, message.extra, PROTOCOL)


def _encode_result(message: ToolResultMessage, call: ToolCall) -> Wire:
    text = "\n".join(piece.text for piece in message.content if piece.kind == "text")
    native = [dict(piece.block) for piece in message.content if piece.kind == "native" and piece.protocol == PROTOCOL]
    outputs: list[Wire] = [{"output": text}, *native] if text or not native else native
    wire: Wire = {"call": {"name": call.name, "parameters": dict(call.arguments)}, "outputs": outputs}
    return restore(wire, message.extra, PROTOCOL)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare `chat_history`.

    Raises:
        DecodeError: a part of it has another type than the protocol defines; has the path.
    """
    is_history = not isinstance(body, Mapping)
    whole: JsonObject = {"chat_history": list(body)} if is_history else body
    message, model = "" if is_history else whole.get("message"), whole.get("model")
    if not isinstance(message, str):
        raise DecodeError("`message` has to be a string", path=("message",))
    reader = _Reader(endpoint, model if isinstance(model, str) else None)
    if whole.get("chat_history") is not None:
        for index, entry in enumerate(expect_objects(whole["chat_history"], ("chat_history",))):
            reader.read_entry(entry, ("chat_history", index))
    results = whole.get("tool_results")
    if not is_history:
        reader.read_last(message, None if results is None else expect_objects(results, ("tool_results",)))
    preamble = text_of(whole.get("preamble"))
    tools = whole.get("tools")
    context = Context(
        system_prompt=preamble,
        messages=tuple(reader.messages),
        tools=() if tools is None else decode_tools(tools),
    )
    options, model_id = _decode_options(whole), model if isinstance(model, str) else None
    prompt = Prompt(context=context, options=options, model=model_id)
    extra = keep(PROTOCOL, whole, encode_request(prompt, endpoint), KEYS, only_for=model_id)
    return replace(prompt, options=replace(options, extra=extra))


def _decode_options(body: JsonObject) -> Options:
    limit, stop, seed = body.get("max_tokens"), body.get("stop_sequences"), body.get("seed")
    temperature, share, stream = body.get("temperature"), body.get("p"), body.get("stream")
    texts = cast("list[object]", stop) if isinstance(stop, list) else []
    return Options(
        max_tokens=limit if type(limit) is int else None,
        temperature=temperature if type(temperature) in (int, float) else None,  # pyright: ignore[reportArgumentType]
        top_p=share if type(share) in (int, float) else None,  # pyright: ignore[reportArgumentType]
        stop=tuple(map(str, texts)) if texts and all(isinstance(text, str) for text in texts) else None,
        seed=seed if type(seed) is int else None,
        stream=stream if isinstance(stream, bool) else None,
    )


class _Reader:
    """Reads the entries of a history in order, and gives each call an id, because the wire has none."""

    def __init__(self, endpoint: Endpoint, model: str | None) -> None:
        self.messages: list[Message] = []
        self._origin = replace(new_assistant_message(endpoint.model), protocol=PROTOCOL)
        if model is not None:
            self._origin = replace(self._origin, model=model)
        self._open: list[ToolCall] = []
        self._made = 0

    def read_entry(self, entry: JsonObject, path: tuple[str | int, ...]) -> None:
        role = entry.get("role")
        if role == "TOOL":
            self._read_results(expect_objects(entry.get("tool_results"), (*path, "tool_results")), path)
            return
        text = entry.get("message")
        if not isinstance(text, str):
            raise DecodeError("`message` of an entry has to be a string", path=(*path, "message"))
        content = (TextContent(text=text),) if text else ()
        if role == "CHATBOT":
            given = entry.get("tool_calls")
            calls = () if given is None else self._read_calls(expect_objects(given, (*path, "tool_calls")), path)
            self._open = list(calls)
            message: Message = replace(self._origin, content=(*content, *calls))
        elif role == "USER":
            message = UserMessage(content=content)
        elif role == "SYSTEM":
            message = SystemMessage(content=content)
        else:
            raise DecodeError(f"there is no role {role!r}; use USER, CHATBOT, SYSTEM or TOOL", path=(*path, "role"))
        extra = keep(PROTOCOL, entry, _encode_entry(message, path), _ENTRY_KEYS)
        self.messages.append(replace(message, extra=extra))

    def _read_calls(self, calls: Sequence[JsonObject], path: tuple[str | int, ...]) -> tuple[ToolCall, ...]:
        return tuple(self._read_call(call, (*path, "tool_calls", at)) for at, call in enumerate(calls))

    def _read_call(self, wire: JsonObject, path: tuple[str | int, ...]) -> ToolCall:
        self._made += 1
        return decode_call(wire, f"call_{self._made}", {}, path)

    def _read_results(self, results: Sequence[JsonObject], path: tuple[str | int, ...]) -> None:
        for at, wire in enumerate(results):
            self.messages.append(self._read_result(wire, (*path, "tool_results", at)))

    def _read_result(self, wire: JsonObject, path: tuple[str | int, ...]) -> ToolResultMessage:
        call = wire.get("call")
        if not isinstance(call, Mapping):
            raise DecodeError("`call` of a result has to be the call as an object", path=(*path, "call"))
        named = decode_call(cast("JsonObject", call), "", {}, (*path, "call"))
        found = next((it for it in self._open if (it.name, it.arguments) == (named.name, named.arguments)), None)
        if found is None:
            raise DecodeError("no unanswered call before this result matches it", path=(*path, "call"))
        self._open.remove(found)
        content = _decode_outputs(expect_objects(wire.get("outputs"), (*path, "outputs")))
        message = ToolResultMessage(tool_call_id=found.id, tool_name=found.name, content=content)
        return replace(message, extra=keep(PROTOCOL, wire, _encode_result(message, found), _RESULT_KEYS))

    def read_last(self, message: str, results: Sequence[JsonObject] | None) -> None:
        """Read `message` and `tool_results` of the body."""
        user = UserMessage(content=(TextContent(text=message),) if message else ())
        if not results:
            self.messages.append(user)
            return
        if message and not self._open:
            self.messages.append(user)
            wires = [expect_object(it.get("call"), ("tool_results", at, "call")) for at, it in enumerate(results)]
            calls = self._read_calls(wires, ())
            self._open = list(calls)
            extra = keep(PROTOCOL, {}, {}, choices=choose("message", "default", "native"))
            self.messages.append(replace(self._origin, content=calls, extra=extra))
            self._read_results(results, ())
            return
        self._read_results(results, ())
        if message:
            extra = keep(PROTOCOL, {}, {}, choices=choose("field", "chat_history", "tool_results"))
            self.messages.append(replace(user, extra=extra))


def decode_call(wire: JsonObject, call_id: str, tool_names: Mapping[str, str], path: tuple[str | int, ...]) -> ToolCall:
    """Read a call, of a request or of a reply. Parameters that are not an object are kept as they are in `extra`.

    Raises:
        DecodeError: it has no name.
    """
    name, parameters = wire.get("name"), wire.get("parameters")
    if not isinstance(name, str):
        raise DecodeError("the name of a call has to be a string", path=(*path, "name"))
    arguments = dict(cast("Mapping[str, object]", parameters)) if isinstance(parameters, Mapping) else {}
    extra = keep(PROTOCOL, wire, {"name": name, "parameters": arguments}, _CALL_KEYS)
    return ToolCall(id=call_id, name=tool_names.get(name, name), arguments=arguments, extra=extra)


def _decode_outputs(outputs: Sequence[JsonObject]) -> tuple[TextContent | NativeContent, ...]:
    """Read the outputs of a result: a first object with only a string `output` is a text, others are native content."""
    content: list[TextContent | NativeContent] = []
    for output in outputs:
        text = output.get("output") if len(output) == 1 and not content else None
        if isinstance(text, str):
            content.append(TextContent(text=text))
        else:
            fallback = TextContent(text=json.dumps(output, ensure_ascii=False, separators=(",", ":")))
            content.append(NativeContent(protocol=PROTOCOL, block=dict(output), fallback=(fallback,)))
    return tuple(content)
