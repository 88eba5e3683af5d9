"""Requests: the system prompt, the turns, the tools.

Facts:
- `input` is a text, one content, a list of contents, or a list of steps; the last holds a whole conversation.
                                          (google-genai 3.1.0: InteractionsInputParam, read 2026-11-17)
- `system_instruction` is a text.                                          (google-genai 3.1.0: CreateModelInteraction)
- A `function_result` has the id of its call, an optional flag of errors, and a result: a text, an object, or a list of
  contents. The server refuses one without the name of the tool.
                                       (google-genai 3.1.0; live calls of a public adapter, read 2026-11-16)
- Adjacent steps of the model do not show where one reply ended: they are read as one turn.

Choice kept in `extra`: `field`, "input" for a native content of a user's turn that was next to the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AssistantContent, NativeContent, SystemContent, TextContent, UserContent
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.errors import EncodeError
from segue.protocols.google_interactions.content import CONTENTS, decode_contents, encode_contents, native_step
from segue.protocols.google_interactions.options import decode_options, decode_tools, encode_options, encode_tools
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.google_interactions.turns import TurnReader, write_turn
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_list, is_object, kind_of
from segue.protocols.kit.reading import expect_list, expect_object, native_block, text_of
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

USER: Final = "user_input"
RESULT: Final = "function_result"
_SYSTEM: Final = "system_instruction"
_BETWEEN_TEXTS: Final = "\n\n"
"""Between the texts of instructions, which this wire has in one."""
_STEPS: Final = frozenset({USER, RESULT})
_RESULT_KEYS: Final = frozenset({"is_error", "name", "result"})


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of steps.

    Raises:
        DecodeError: the body has another structure than this protocol's.
    """
    if not isinstance(body, Mapping):
        transcript = _Transcript(endpoint, endpoint.model.id)
        transcript.read(expect_list(body, ()))
        return Prompt(context=Context(messages=tuple(transcript.messages)))
    model, given = text_of(body.get("model")), body.get("input")
    transcript = _Transcript(endpoint, model or endpoint.model.id)
    received, default = Wire(), Wire()
    steps = steps_of(given)
    if steps is not given:
        # one turn of the user, without its step
        default["input"] = steps
        if "input" in body:
            received["input"] = given
    transcript.read(steps)
    system = text_of(body.get(_SYSTEM))
    tools = decode_tools(body["tools"]) if body.get("tools") else ()
    for key, is_read in ((_SYSTEM, system is not None), ("tools", bool(tools)), ("model", model is not None)):
        if key in body and not is_read:
            received[key] = body[key]
    extra = keep(PROTOCOL, received, default, ("tools", "input"))
    context = Context(system_prompt=system, messages=tuple(transcript.messages), tools=tools, extra=extra)
    return Prompt(context=context, options=decode_options(body, endpoint), model=model)


def _is_contents(given: list[object]) -> bool:
    return bool(given) and all(isinstance(entry, dict) and kind_of(cast("Wire", entry)) in CONTENTS for entry in given)


def steps_of(given: object) -> list[object]:
    """Return the steps of an input; a list of steps is returned as it is.

    Raises:
        DecodeError: it is neither a text nor an object nor a list.
    """
    if is_list(given) and not _is_contents(given):
        return given
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": USER, "content": [{"type": "text", "text": given}]}]
    if is_list(given):
        return [{"type": USER, "content": given}]
    one = expect_object(given, ("input",))
    return [{"type": USER, "content": [one]}] if kind_of(one) in CONTENTS else [one]


class _Transcript:
    """The turns of a body, being read."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.messages: list[Message] = []
        self.turn: list[AssistantContent] = []
        self.reader = TurnReader()
        self.names: dict[str, str] = {}

    def read(self, steps: list[object]) -> None:
        """Read the steps in order."""
        for index, entry in enumerate(steps):
            step = cast("Block", entry) if isinstance(entry, dict) else expect_object(entry, ("input", index))
            kind = kind_of(step)
            if kind == USER:
                self.close_turn()
                self.messages.append(_read_user(step))
            elif kind == RESULT:
                self.close_turn()
                self.messages.append(_read_result(step, self.names))
            elif kind in CONTENTS:
                self.close_turn()
                extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose("field", "content", "input"))
                self.messages.append(UserMessage(content=(replace(native_step(step), extra=extra),)))
            else:
                self.turn.extend(self.reader.read(step))
        self.close_turn()

    def close_turn(self) -> None:
        """Add the model's turn that was read."""
        if not self.turn:
            return
        calls = {piece.id: piece.name for piece in self.turn if piece.kind == "toolCall"}
        self.names |= calls
        self.messages.append(
            AssistantMessage(
                content=tuple(self.turn),
                protocol=PROTOCOL,
                provider=self.endpoint.model.provider,
                model=self.model,
                stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
            )
        )
        self.turn = []


def _objects(given: object) -> list[Block] | None:
    """Return the objects of a list; None for any other value, or if one of its entries is none."""
    if not is_list(given) or not all(isinstance(entry, dict) for entry in given):
        return None
    return cast("list[Block]", given)


def _read_user(step: Block) -> UserMessage:
    given = step.get("content")
    if isinstance(given, str):
        content: tuple[UserContent, ...] = (TextContent(text=given),)
        written: object = [{"type": "text", "text": given}]
    else:
        listed = _objects(given if given is not None else [])
        if listed is None or any(kind_of(content) in _STEPS for content in listed):
            return UserMessage(content=(native_step(step),))  # a step among the contents would be written as its own
        content, written = decode_contents(listed), listed
    if len(step) == 2 and written is given:
        return UserMessage(content=content)
    return UserMessage(content=content, extra=keep(PROTOCOL, step, {"type": USER, "content": written}, ("content",)))


def _read_result(step: Block, names: Mapping[str, str]) -> Message:
    call_id, given = step.get("call_id"), step.get("result")
    if not isinstance(call_id, str):
        return UserMessage(content=(native_step(step),))
    if isinstance(given, str):
        content: tuple[UserContent, ...] = (TextContent(text=given),) if given else ()
    elif is_object(given):
        content = (TextContent(text=encode_arguments(given)),)
    else:
        listed = _objects(given)
        if listed is None:
            return UserMessage(content=(native_step(step),))
        content = decode_contents(listed)
    name, is_error = text_of(step.get("name")), step.get("is_error") is True
    message = ToolResultMessage(
        tool_call_id=call_id, tool_name=name or names.get(call_id, ""), content=content, is_error=is_error
    )
    default = _default_result(message, names, given if _is_listed(content) else _text_result(content))
    extra = keep(PROTOCOL, step, default, _RESULT_KEYS)
    return message if extra is None else replace(message, extra=extra)


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write the body; the body that `decode_request` read is written unchanged.

    Raises:
        EncodeError: content or an option that this protocol does not support.
    """
    context, extra = prompt.context, prompt.context.extra
    body: Wire = {} if prompt.model is None else {"model": prompt.model}
    if context.system_prompt is not None and context.system_prompt != ():
        body[_SYSTEM] = _encode_system(context.system_prompt)
    body["input"] = _encode_messages(context.messages, endpoint)
    if context.tools:
        body["tools"] = encode_tools(context.tools)
    if extra is not None:
        restore(body, extra, PROTOCOL)
    for key, value in encode_options(prompt.options, endpoint, prompt.model).items():
        body.setdefault(key, value)
    return body


def _encode_system(prompt: str | tuple[SystemContent, ...]) -> str:
    if isinstance(prompt, str):
        return prompt
    texts: list[str] = []
    for index, piece in enumerate(prompt):
        if piece.kind == "native":
            reason = f"{PROTOCOL} does not support native content in instructions; use text"
            raise EncodeError(reason, path=("system_prompt", index))
        texts.append(piece.text)
    return _BETWEEN_TEXTS.join(text for text in texts if text)


def _encode_messages(messages: Sequence[Message], endpoint: Endpoint) -> list[Wire]:
    steps: list[Wire] = []
    names: dict[str, str] = {}
    index = 0
    try:
        for index, message in enumerate(messages):  # noqa: B007 - the place of a failure
            match message.role:
                case "assistant":
                    write_turn(steps, message.content, endpoint)
                    names |= {piece.id: piece.name for piece in message.content if piece.kind == "toolCall"}
                case "toolResult":
                    listed = _is_listed(message.content)
                    result = encode_contents(message.content) if listed else _text_result(message.content)
                    steps.append(restore(_default_result(message, names, result), message.extra, PROTOCOL))
                case "user":
                    _write_user(message, steps)
                case "system":
                    _refuse_instructions()
    except EncodeError as error:
        raise EncodeError(error.reason, path=("messages", index, "content", *error.path)) from error
    return steps


def _refuse_instructions() -> NoReturn:
    """No step holds instructions; projection should have moved them into a user's turn."""
    raise EncodeError(f"{PROTOCOL} does not support instructions between messages; move them to a user message")


def _write_user(message: UserMessage, steps: list[Wire]) -> None:
    """Write a user's turn: one step, or several where native blocks in it are their own steps."""
    run: list[UserContent] = []
    wrote_step = False
    for piece in message.content:
        if piece.kind == "native" and piece.protocol == PROTOCOL and _is_own_step(piece):
            if run:
                steps.append(_encode_user(run, message))
                run = []
            steps.append(dict(native_block(PROTOCOL, piece)))
            wrote_step = True
        else:
            run.append(piece)
    if run or not wrote_step:
        steps.append(_encode_user(run, message))


def _is_own_step(piece: NativeContent) -> bool:
    kind = kind_of(piece.block)
    return kind in _STEPS or chosen(piece.extra, PROTOCOL, "field", "content") == "input"


def _encode_user(content: Sequence[UserContent], message: UserMessage) -> Wire:
    return restore({"type": USER, "content": encode_contents(content)}, message.extra, PROTOCOL)


def _is_listed(content: Sequence[UserContent]) -> bool:
    """Whether a result is written as a list of contents: all but one plain text are."""
    return bool(content) and not (len(content) == 1 and content[0].kind == "text" and content[0].extra is None)


def _text_result(content: Sequence[UserContent]) -> str:
    return "".join(piece.text for piece in content if piece.kind == "text")


def _default_result(message: ToolResultMessage, names: Mapping[str, str], result: object) -> Wire:
    wire: Wire = {"type": RESULT, "call_id": message.tool_call_id}
    name = names.get(message.tool_call_id) or message.tool_name
    if name:
        wire["name"] = name
    wire["result"] = result
    if message.is_error:
        wire["is_error"] = True
    return wire
