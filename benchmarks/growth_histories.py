"""Conversations in which one thing is repeated: messages, calls, blocks, marks, tools. Each is made in any size.

A quadratic function can be linear in one of these and not in another: a pass that looks at the message before is linear
in messages and quadratic in results of one turn. So the guard of growth runs every function on every history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from segue import (
    AssistantContent,
    AssistantMessage,
    CacheMark,
    Context,
    FileContent,
    ImageContent,
    Message,
    Model,
    NativeContent,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserContent,
    UserMessage,
)

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOL: Final = ToolDefinition(name="read", description="Read a file.", parameters={"type": "object", "properties": {}})
MARK: Final = CacheMark()
_LINE: Final = "of a text of some length. " * 16
"""Blocks are long enough to show when they are joined one by one, each time copying what is before."""

History = Callable[[int, Model], Context]


def _turn(model: Model, *content: AssistantContent, stop: StopReason = StopReason.STOP) -> AssistantMessage:
    return AssistantMessage(
        content=content, protocol=model.protocol, provider=model.provider, model=model.id, stop_reason=stop
    )


def _call(number: int, name: str = "read") -> ToolCall:
    return ToolCall(id=f"call_{number:09}", name=name, arguments={"path": f"file{number}"})


def _result(number: int, *content: UserContent, is_error: bool = False, mark: CacheMark | None = None) -> Message:
    return ToolResultMessage(
        tool_call_id=f"call_{number:09}",
        tool_name="read",
        content=content or (TextContent(text="done"),),
        is_error=is_error,
        cache_mark=mark,
    )


def _ask(text: str = "Go on.") -> UserMessage:
    return UserMessage.of(text)


def _between_questions(messages: Sequence[Message]) -> Context:
    """Give a conversation that begins and ends with a user turn."""
    return Context(system_prompt="Be brief.", messages=(_ask(), *messages, _ask()), tools=(TOOL,))


# -- messages ----------------------------------------------------------------------------------------------------------


def _texts(count: int, model: Model) -> Context:
    answer = _turn(model, TextContent(text="Fine."))
    return _between_questions([message for _ in range(count // 2) for message in (answer, _ask())])


def _steps(count: int, model: Model) -> Context:
    steps = range(count // 2)
    return _between_questions(
        [message for number in steps for message in (_turn(model, _call(number)), _result(number))]
    )


def _users(count: int, _: Model) -> Context:
    return _between_questions([_ask()] * count)


def _assistants(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, TextContent(text="Fine."))] * count)


def _empty_turns(count: int, model: Model) -> Context:
    return _between_questions(
        [message for _ in range(count // 2) for message in (_turn(model), UserMessage(content=()))]
    )


def _blank_turns(count: int, model: Model) -> Context:
    blank = TextContent(text=" ")
    return _between_questions([message for _ in range(count // 2) for message in (_turn(model, blank), _ask(" "))])


def _first_instructions(count: int, model: Model) -> Context:
    system = [SystemMessage(content=(TextContent(text="Be brief."),)) for _ in range(count)]
    return Context(messages=(*system, _ask(), _turn(model, TextContent(text="Fine.")), _ask()))


def _later_instructions(count: int, model: Model) -> Context:
    answer = _turn(model, TextContent(text="Fine."))
    system = SystemMessage(content=(TextContent(text="Be brief."),))
    return _between_questions([message for _ in range(count // 3) for message in (answer, system, _ask())])


def _unfinished(count: int, model: Model) -> Context:
    steps = range(count // 2)
    failed = StopReason.ERROR
    return _between_questions(
        [message for number in steps for message in (_turn(model, _call(number), stop=failed), _result(number))]
    )


def _extras(count: int, model: Model) -> Context:
    extra = {model.protocol: {"custom": {"a": [1]}}, "openai-chat": {"name": "x"}}
    text = TextContent(text="Fine.", extra=extra)
    turn = AssistantMessage(
        content=(text,), protocol=model.protocol, provider=model.provider, model=model.id, extra=extra
    )
    return _between_questions(
        [message for _ in range(count // 2) for message in (turn, UserMessage(content=(text,), extra=extra))]
    )


# -- calls and results -------------------------------------------------------------------------------------------------


def _one_batch(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, *map(_call, range(count))), *map(_result, range(count))])


def _missing_in_one_turn(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, *map(_call, range(count)))])


def _missing_in_every_turn(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, _call(number)) for number in range(count)])


def _reversed_results(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, *map(_call, range(count))), *map(_result, reversed(range(count)))])


def _late_results(count: int, model: Model) -> Context:
    half = range(count // 2)
    return _between_questions([*(_turn(model, _call(number)) for number in half), *map(_result, half)])


def _duplicate_results(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, _call(0)), *(_result(0) for _ in range(count))])


def _orphans(count: int, _: Model) -> Context:
    return _between_questions([_result(number) for number in range(count)])


def _error_results(count: int, model: Model) -> Context:
    results = [_result(number, is_error=True) for number in range(count)]
    return _between_questions([_turn(model, *map(_call, range(count))), *results])


def _same_ids(count: int, model: Model) -> Context:
    return _between_questions([message for _ in range(count // 2) for message in (_turn(model, _call(0)), _result(0))])


def _same_ids_in_one_turn(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, *(_call(0) for _ in range(count))), *(_result(0) for _ in range(count))])


def _illegal_ids(count: int, model: Model) -> Context:
    def call(number: int) -> ToolCall:
        return ToolCall(id=f"call {number} {'x' * 60}", name="read", arguments={})

    def result(number: int) -> Message:
        return ToolResultMessage(tool_call_id=call(number).id, tool_name="read", content=(TextContent(text="done"),))

    return _between_questions([_turn(model, *map(call, range(count))), *map(result, range(count))])


def _many_names(count: int, model: Model) -> Context:
    calls = [_call(number, f"tool.number {number}") for number in range(count)]
    return _between_questions([_turn(model, *calls), *map(_result, range(count))])


def _unparsed_arguments(count: int, model: Model) -> Context:
    calls = [
        ToolCall(id=f"call_{number:09}", name="read", arguments={"path": "a"}, arguments_text='{"path": "a')
        for number in range(count)
    ]
    return _between_questions([_turn(model, *calls), *map(_result, range(count))])


def _wide_arguments(count: int, model: Model) -> Context:
    call = ToolCall(id="call_000000000", name="read", arguments={f"key{n}": [n] for n in range(count)})
    return _between_questions([_turn(model, call), _result(0)])


# -- blocks of one message ---------------------------------------------------------------------------------------------


def _blocks(count: int, model: Model) -> Context:
    texts = [TextContent(text=f"Part {number} {_LINE}") for number in range(count)]
    return _between_questions([UserMessage(content=tuple(texts)), _turn(model, *texts)])


def _blank_blocks(count: int, model: Model) -> Context:
    texts = [TextContent(text=" " if number % 2 else "x") for number in range(count)]
    return _between_questions([UserMessage(content=tuple(texts)), _turn(model, *texts)])


def _signed_thinking(count: int, model: Model) -> Context:
    pieces = [ThinkingContent(thinking=f"Step {number} {_LINE}", thinking_signature="c2ln") for number in range(count)]
    return _between_questions([_turn(model, *pieces, TextContent(text="Fine."))])


def _mixed_thinking(count: int, model: Model) -> Context:
    """Thinking that is dropped, between calls and texts that move."""
    pieces: list[AssistantContent] = []
    for number in range(count // 3):
        pieces += [
            ThinkingContent(thinking=" " if number % 2 else f"Step {number} {_LINE}", thinking_signature=None),
            _call(number),
            TextContent(text="Next.", text_signature="c2ln"),
        ]
    return _between_questions([_turn(model, *pieces), *map(_result, range(count // 3))])


def _final_thinking(count: int, model: Model) -> Context:
    pieces = [ThinkingContent(thinking=f"Step {number} {_LINE}", thinking_signature="c2ln") for number in range(count)]
    return _between_questions([_turn(model, TextContent(text="Fine."), *pieces)])


def _redacted(count: int, model: Model) -> Context:
    pieces = [ThinkingContent(thinking="", thinking_signature=f"c2ln{n:04}", redacted=True) for n in range(count)]
    return _between_questions([_turn(model, *pieces, TextContent(text="Fine."))])


def _surrogates(count: int, model: Model) -> Context:
    texts = [TextContent(text=f"half \ud800 of {number}") for number in range(count)]
    return _between_questions([UserMessage(content=tuple(texts)), _turn(model, *texts)])


def _long_text(count: int, model: Model) -> Context:
    text = "naïve 🚀 text, \ud800 and more of it. " * count
    return _between_questions([_ask(text), _turn(model, TextContent(text=text))])


# -- media and native blocks -------------------------------------------------------------------------------------------


def _images(count: int, _: Model) -> Context:
    return _between_questions(
        [UserMessage(content=tuple(ImageContent(data=PNG, mime_type="image/png") for _ in range(count)))]
    )


def _images_in_turns(count: int, model: Model) -> Context:
    answer = _turn(model, TextContent(text="Fine."))
    images = [UserMessage(content=(ImageContent(data=PNG, mime_type="image/png"),)) for _ in range(count // 2)]
    return _between_questions([message for image in images for message in (answer, image)])


def _images_in_results(count: int, model: Model) -> Context:
    steps = range(count // 2)
    image = ImageContent(data=PNG, mime_type="image/png")
    return _between_questions(
        [message for number in steps for message in (_turn(model, _call(number)), _result(number, image))]
    )


def _unreachable_files(count: int, _: Model) -> Context:
    files = [FileContent(file_id=f"file_{number}", mime_type="application/pdf") for number in range(count)]
    return _between_questions([UserMessage(content=tuple(files))])


def _text_files(count: int, _: Model) -> Context:
    files = [FileContent(data="aGVsbG8=", mime_type="text/plain", name=f"{number}.txt") for number in range(count)]
    return _between_questions([UserMessage(content=tuple(files))])


def _natives(count: int, model: Model) -> Context:
    spare = TextContent(text="A result.")
    blocks = [
        NativeContent(
            protocol=model.protocol, block={"type": "custom", "id": f"b{number}", "parts": [1]}, fallback=(spare,)
        )
        for number in range(count)
    ]
    return _between_questions([_turn(model, *blocks)])


def _natives_in_turns(count: int, model: Model) -> Context:
    image = ImageContent(data=PNG, mime_type="image/png")
    turns = [
        _turn(model, NativeContent(protocol=model.protocol, block={"type": "custom", "id": f"b{n}"}, fallback=(image,)))
        for n in range(count // 2)
    ]
    return _between_questions([message for turn in turns for message in (turn, _ask())])


def _native_call(model: Model) -> NativeContent:
    """Give a call of a tool of the provider's own, as the first two targets have it."""
    calls: dict[str, dict[str, object]] = {
        "anthropic-messages": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        "openai-responses": {"type": "custom_tool_call", "call_id": "call_1", "name": "find", "input": "it"},
    }
    return NativeContent(protocol=model.protocol, block=calls.get(model.protocol, {"type": "custom", "id": "b1"}))


def _repeated_natives(count: int, model: Model) -> Context:
    """Calls with one id, of which each is signed together with the thinking before it."""
    thinking = ThinkingContent(thinking="Step.", thinking_signature="c2ln")
    return _between_questions([_turn(model, thinking, _native_call(model)) for _ in range(count)])


def _results_beside_a_native(count: int, model: Model) -> Context:
    return _between_questions([_turn(model, _native_call(model)), *(_result(number) for number in range(count))])


def _natives_of_users(count: int, _: Model) -> Context:
    spare = TextContent(text="A result.")
    blocks = [
        NativeContent(
            protocol="openai-chat", block={"type": "custom", "id": f"b{number}", "parts": [1]}, fallback=(spare,)
        )
        for number in range(count)
    ]
    return _between_questions([UserMessage(content=tuple(blocks))])


# -- cache marks, tools, instructions ----------------------------------------------------------------------------------


def _marks(count: int, _: Model) -> Context:
    return _between_questions(
        [UserMessage(content=tuple(TextContent(text="Part.", cache_mark=MARK) for _ in range(count)))]
    )


def _marks_in_turns(count: int, model: Model) -> Context:
    steps = range(count // 2)
    return _between_questions(
        [message for number in steps for message in (_turn(model, _call(number)), _result(number, mark=MARK))]
    )


def _tools(count: int, model: Model) -> Context:
    tools = [
        ToolDefinition(
            name=f"tool_{number}",
            description="Read.",
            parameters={"type": "object", "properties": {"path": {"type": "string", "pattern": "^a"}}},
            cache_mark=MARK,
        )
        for number in range(count)
    ]
    return Context(messages=(_ask(), _turn(model, _call(0)), _result(0), _ask()), tools=tuple(tools))


def _dotted_tools(count: int, model: Model) -> Context:
    tools = [
        ToolDefinition(name=f"server.tool {number}", description="", parameters={"type": "object"})
        for number in range(count)
    ]
    return Context(messages=(_ask(), _turn(model, _call(0)), _result(0), _ask()), tools=tuple(tools))


def _wide_schema(count: int, _: Model) -> Context:
    properties = {f"field{number}": {"type": ["string", "null"], "default": None} for number in range(count)}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    tool = ToolDefinition(name="write", description="", parameters=schema, strict=True)
    return Context(messages=(_ask(),), tools=(tool,))


def _long_prompt(count: int, _: Model) -> Context:
    prompt = tuple(TextContent(text=f"Rule {number}.", cache_mark=MARK) for number in range(count))
    return Context(system_prompt=prompt, messages=(_ask(),))


HISTORIES: Final[Mapping[str, History]] = {
    "texts": _texts,
    "steps": _steps,
    "user turns": _users,
    "assistant turns": _assistants,
    "empty turns": _empty_turns,
    "blank turns": _blank_turns,
    "leading instructions": _first_instructions,
    "later instructions": _later_instructions,
    "unfinished turns": _unfinished,
    "extras": _extras,
    "calls of one turn": _one_batch,
    "missing results of one turn": _missing_in_one_turn,
    "missing results of every turn": _missing_in_every_turn,
    "reversed results": _reversed_results,
    "late results": _late_results,
    "duplicate results": _duplicate_results,
    "orphans": _orphans,
    "error results": _error_results,
    "equal ids": _same_ids,
    "equal ids in one turn": _same_ids_in_one_turn,
    "illegal ids": _illegal_ids,
    "illegal names": _many_names,
    "unparsed arguments": _unparsed_arguments,
    "wide arguments": _wide_arguments,
    "texts of one message": _blocks,
    "blank texts of one message": _blank_blocks,
    "signed thinking": _signed_thinking,
    "thinking between calls": _mixed_thinking,
    "thinking at the end": _final_thinking,
    "redacted thinking": _redacted,
    "half surrogates": _surrogates,
    "a long text": _long_text,
    "images of one message": _images,
    "images of every turn": _images_in_turns,
    "images of results": _images_in_results,
    "files by id": _unreachable_files,
    "text files": _text_files,
    "native blocks of one message": _natives,
    "native blocks of every turn": _natives_in_turns,
    "native blocks of a user turn": _natives_of_users,
    "native calls with one id": _repeated_natives,
    "results beside a native call": _results_beside_a_native,
    "marks of one message": _marks,
    "marks of every turn": _marks_in_turns,
    "tools": _tools,
    "tools with illegal names": _dotted_tools,
    "a wide schema": _wide_schema,
    "a prompt of parts": _long_prompt,
}
