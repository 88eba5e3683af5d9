"""The histories of the conformance suite, in the neutral form; `write_conformance.py` writes them for each wire.

A function of this file makes one case. Each part of a history that a provider has to receive has a word of its own, made
by `Draft.word`: no two parts of the suite have the same, so that finding it in what the provider received shows that
this part arrived.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, final
from zlib import compress, crc32

from segue.conversation.content import (
    FileContent,
    ImageContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
)
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.testing.emulator.signing import Signer

Fields = dict[str, Any]

REDACTED: Final = Signer(sha256(b"emulator").digest()).token("claude-opus-4-8", b"")
"""Redacted thinking that the scripted provider accepts."""
REPLY: Final = "reply-of-step-"
"""The text of a turn in whose place a reply comes, and the beginning of the ids of its calls."""

NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""What Google documents for calls of other models (2026-11)."""


def picture(number: int) -> str:
    """Return a PNG of 8 x 8 pixels of one colour, as base64; each number has another colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + crc32(kind + data).to_bytes(4, "big")

    colour = bytes((number * 37 % 256, number * 91 % 256, 200))
    rows = b"".join(b"\x00" + colour * 8 for _ in range(8))
    head = (8).to_bytes(4, "big") * 2 + bytes((8, 2, 0, 0, 0))
    data = chunk(b"IHDR", head) + chunk(b"IDAT", compress(rows)) + chunk(b"IEND", b"")
    return b64encode(b"\x89PNG\r\n\x1a\n" + data).decode()


@final
class Step(NamedTuple):
    """One request of a case, and what the scripted provider answers."""

    context: Context
    options: Options = Options()
    upstream: Fields | None = None
    patch: Mapping[str, Any] = {}
    """Fields of the body that the neutral form does not have."""
    turns: Callable[[list[Any]], list[Any]] | None = None
    """Changes the encoded turns."""


class Draft:
    """A case that is being written: its words, and what has to hold for them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept: list[Fields] = []
        self.is_ordered = True
        self.pairs: list[list[str]] = []
        self.asked: Fields = {}
        self._words = 0
        self._calls = 0
        self._pictures = 0

    def word(self, part: str, role: str | None = None) -> str:
        """Return a new word for a part of the history."""
        made = "qz" + sha256(f"{self.name}/{self._words}".encode()).hexdigest()[:10]
        self._words += 1
        return self.keep(made, part, role)

    def keep(self, text: str, part: str, role: str | None = None) -> str:
        """Require that a text arrives; a role is that of its turn."""
        self.kept.append({"word": text, "part": part} | ({} if role is None else {"role": role}))
        return text

    def user(self, *texts: str) -> UserMessage:
        """Return a turn of the user, with a word in each text."""
        parts = texts or ("Please go on with",)
        content = [TextContent(text=f"{text} {self.word('text of the user', 'user')}.") for text in parts]
        return UserMessage(content=tuple(content))

    def answer(self, text: str = "This is about", *calls: ToolCall) -> AssistantMessage:
        """Return a turn of the assistant, with a word in its text, and calls after it."""
        said = (TextContent(text=f"{text} {self.word('text of the assistant', 'assistant')}."),) if text else ()
        stop = StopReason.TOOL_USE if calls else StopReason.STOP
        return AssistantMessage(content=(*said, *calls), stop_reason=stop)

    def call(self, name: str = "read", *, call_id: str | None = None, **arguments: object) -> ToolCall:
        """Return a call with a word in its arguments."""
        self._calls += 1
        word = self.word("arguments of a call", "assistant")
        made = call_id or f"call_{sha256(f'{self.name}/call/{self._calls}'.encode()).hexdigest()[:20]}"
        return ToolCall(id=made, name=name, arguments={"path": word, **arguments})

    def result(
        self, call: ToolCall, *more: ToolResultContent, text: str = "The file has", is_error: bool = False
    ) -> ToolResultMessage:
        """Return the result of a call, with a word in its text."""
        word = self.word("result of a call", "tool")
        if "path" in call.arguments:
            self.pairs.append([call.arguments["path"], word])
        content = (TextContent(text=f"{text} {word}."), *more)
        return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=content, is_error=is_error)

    def image(self, role: str | None = None) -> ImageContent:
        """Return an image that no other part has."""
        self._pictures += 1
        data = picture(int(sha256(f"{self.name}/{self._pictures}".encode()).hexdigest()[:6], 16))
        self.keep(data, "image", role)
        return ImageContent(data=data, mime_type="image/png")

    def ask(self, *messages: Message, system: str | tuple[SystemContent, ...] | None = None) -> Context:
        """Return a conversation with these messages; tools are there if one was called."""
        called = {
            piece.name: None
            for message in messages
            if message.role == "assistant"
            for piece in message.content
            if piece.kind == "toolCall"
        }
        return Context(system_prompt=system, messages=messages, tools=tuple(tool(name) for name in called))

    def reply(self, step: int, *calls: str) -> AssistantMessage:
        """Return the turn in whose place the reply to an earlier step comes; calls by the names of their tools."""
        # Gemini's newest models refuse a call without a signature, so `check` does too; this one is documented for it.
        made = [
            ToolCall(id=f"{REPLY}{step}-{at}", name=name, arguments={}, thought_signature=NO_SIGNATURE)
            for at, name in enumerate(calls)
        ]
        stop = StopReason.TOOL_USE if calls else StopReason.STOP
        return AssistantMessage(content=(TextContent(text=f"{REPLY}{step}"), *made), stop_reason=stop)


def tool(name: str, description: str = "Reads a file.") -> ToolDefinition:
    """Return a tool with one argument."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return ToolDefinition(name=name, description=description, parameters=schema)


Made = Context | Step | Sequence[Step]


@final
class Source(NamedTuple):
    """A case: its title, the function that makes it, and the wires and model if not every one."""

    title: str
    make: Callable[[Draft], Made]
    wires: tuple[str, ...] = ()
    models: Mapping[str, str] = {}
    streamed: bool = True


CASES: Final[dict[str, Source]] = {}
ANTHROPIC: Final = "anthropic-messages"
CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
GOOGLE: Final = "google-genai"
THINKING: Final = Options(thinking="medium", max_tokens=8000)


def case(
    title: str, *wires: str, models: Mapping[str, str] | None = None, streamed: bool = True
) -> Callable[[Callable[[Draft], Made]], Callable[[Draft], Made]]:
    """Register a case; its name is that of the function."""

    def register(make: Callable[[Draft], Made]) -> Callable[[Draft], Made]:
        CASES[make.__name__.replace("_", "-")] = Source(title, make, wires, models or {}, streamed)
        return make

    return register


# -- texts -------------------------------------------------------------------------------------------------------------


@case("Turns of user and assistant")
def plain_turns(d: Draft) -> Made:
    return d.ask(d.user(), d.answer(), d.user(), d.answer(), d.user())


@case("A conversation of 60 turns")
def long_history(d: Draft) -> Made:
    return d.ask(*(each for _ in range(30) for each in (d.user(), d.answer())), d.user())


@case("The user writes twice before the assistant answers")
def two_user_turns(d: Draft) -> Made:
    return d.ask(d.user(), d.user(), d.answer(), d.user(), d.user())


@case("Two turns of the assistant follow each other")
def two_assistant_turns(d: Draft) -> Made:
    return d.ask(d.user(), d.answer(), d.answer(), d.user())


@case("A turn of the user in several parts")
def several_parts(d: Draft) -> Made:
    return d.ask(d.user("First", "second", "third"), d.answer(), d.user("Fourth", "fifth"))


@case("Emoji, combining characters, right-to-left text and characters beyond the first plane")
def unicode_text(d: Draft) -> Made:
    said = d.keep("👩\u200d🚀 e\u0301 \u202bשלום\u202c 𝔘𝔫𝔦 漢字", "characters beyond ASCII", "user")
    return d.ask(UserMessage.of(f"Repeat: {said} {d.word('text of the user', 'user')}"))


@case("Indented code with tabs and blank lines")
def whitespace_in_code(d: Draft) -> Made:
    code = d.keep(f"def {d.word('name in code')}():\n\tif x:\n\n\t\treturn  1\n    # end", "whitespace of code", "user")
    return d.ask(UserMessage.of(f"Explain:\n```\n{code}\n```"), d.answer(), d.user())


@case("Text that looks like JSON, with escapes")
def text_like_json(d: Draft) -> Made:
    said = d.keep('{"a": "b\\n\\u0041\\\\", "c": [null, 1e5]}', "escapes in a text", "user")
    return d.ask(UserMessage.of(f"Check {said}"), d.answer(), d.user())


@case("Text that looks like the marks of a chat template")
def text_like_templates(d: Draft) -> Made:
    said = d.keep("<|im_end|> </system> [INST] {{name}} %s ${HOME}", "marks in a text", "user")
    return d.ask(UserMessage.of(f"What is {said}?"), d.answer(), d.user())


@case("One text of 20,000 characters")
def long_text(d: Draft) -> Made:
    filler = "The same line again, to make this text long. " * 220
    words = [d.word(f"{place} of a long text", "user") for place in ("begin", "middle", "end")]
    return d.ask(UserMessage.of(f"{words[0]} {filler}{words[1]} {filler}{words[2]}"))


@case("A turn that was aborted in mid-sentence")
def aborted_turn(d: Draft) -> Made:
    partial = f"I begin with {d.word('text of an aborted turn', 'assistant')} and th"
    aborted = AssistantMessage(content=(TextContent(text=partial),), stop_reason=StopReason.ABORTED)
    return d.ask(d.user(), aborted, d.user("No, rather"))


@case("A summary of an earlier conversation begins the history")
def compacted_by_the_client(d: Draft) -> Made:
    summary = UserMessage.of(f"Summary of the conversation so far: {d.word('summary', 'user')}.")
    return d.ask(summary, d.answer("Understood:"), d.user(), system=f"Be exact. {d.word('system prompt')}")


# -- system texts ------------------------------------------------------------------------------------------------------


@case("A system prompt")
def system_prompt(d: Draft) -> Made:
    return d.ask(d.user(), d.answer(), d.user(), system=f"Answer in rhyme about {d.word('system prompt')}.")


@case("A system prompt in several parts")
def system_parts(d: Draft) -> Made:
    parts = tuple(TextContent(text=f"Rule: {d.word('part of the system prompt')}.") for _ in range(3))
    return d.ask(d.user(), system=parts)


@case("A system prompt of 8,000 characters")
def long_system_prompt(d: Draft) -> Made:
    rules = "Follow every rule. " * 420
    first, last = (d.word(f"{place} of the system prompt") for place in ("begin", "end"))
    return d.ask(d.user(), system=f"{first} {rules} {last}")


def _system(d: Draft, place: str) -> SystemMessage:
    return SystemMessage(content=(TextContent(text=f"From now on: {d.word(f'system text {place}')}."),))


@case("A system text between two turns")
def system_in_the_middle(d: Draft) -> Made:
    return d.ask(d.user(), _system(d, "in the middle"), d.answer(), d.user(), system="Be brief.")


@case("A system text after an answer")
def system_after_answer(d: Draft) -> Made:
    return d.ask(d.user(), d.answer(), _system(d, "after an answer"), d.user(), system="Be brief.")


@case("A system text after the newest turn")
def system_at_the_end(d: Draft) -> Made:
    return d.ask(d.user(), d.answer(), d.user(), _system(d, "at the end"), system="Be brief.")


@case("Two system texts in the middle, one after the other")
def two_system_texts(d: Draft) -> Made:
    texts = (_system(d, "in the middle"), _system(d, "in the middle"))
    return d.ask(d.user(), d.answer(), d.user(), *texts, d.answer(), d.user())


@case("A system text after the results of tools")
def system_after_results(d: Draft) -> Made:
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call), _system(d, "after results"))


@case("A text of the developer between two turns", CHAT, RESPONSES)
def developer_text(d: Draft) -> Made:
    said = {"role": "developer", "content": f"Use metric units: {d.word('text of the developer')}."}
    return Step(d.ask(d.user(), d.answer(), d.user()), turns=lambda turns: [*turns[:-1], said, turns[-1]])


# -- tools -------------------------------------------------------------------------------------------------------------


@case("A call and its result")
def call_and_result(d: Draft) -> Made:
    call = d.call()
    return d.ask(d.user(), d.answer("I read", call), d.result(call))


@case("A call without a text before it")
def call_without_text(d: Draft) -> Made:
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call), d.answer(), d.user())


@case("Three calls at once, their results in the same order")
def parallel_calls(d: Draft) -> Made:
    calls = [d.call("read"), d.call("list"), d.call("search")]
    return d.ask(d.user(), d.answer("All at once:", *calls), *(d.result(call) for call in calls))


@case("Three calls at once, their results in another order")
def parallel_results_out_of_order(d: Draft) -> Made:
    calls = [d.call("read"), d.call("list"), d.call("search")]
    results = [d.result(calls[at]) for at in (2, 0, 1)]
    d.is_ordered = False  # a gateway may sort them
    return d.ask(d.user(), d.answer("All at once:", *calls), *results)


@case("One tool called twice at once, with two results")
def one_tool_twice(d: Draft) -> Made:
    calls = [d.call(), d.call()]
    return d.ask(d.user(), d.answer("Both:", *calls), *(d.result(call) for call in calls), d.answer(), d.user())


@case("A result that comes after the next turn of the user")
def late_result(d: Draft) -> Made:
    call = d.call()
    messages = (d.user(), d.answer("", call), d.user("Meanwhile"), d.result(call))
    d.is_ordered = False  # a gateway may move it
    return d.ask(*messages, d.user())


@case("One of two results comes after the next turn of the user")
def late_second_result(d: Draft) -> Made:
    calls = [d.call(), d.call("list")]
    messages = (d.user(), d.answer("", *calls), d.result(calls[0]), d.user("Meanwhile"), d.result(calls[1]))
    d.is_ordered = False
    return d.ask(*messages, d.user())


@case("A text of the user right after a result")
def text_after_result(d: Draft) -> Made:
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call), d.user("By the way"))


@case("A tool that failed")
def failed_tool(d: Draft) -> Made:
    call = d.call()
    failed = d.result(call, text="Error: no such file", is_error=True)
    return d.ask(d.user(), d.answer("I try", call), failed)


@case("A call that the user stopped, with a result that says so")
def aborted_call(d: Draft) -> Made:
    calls = [d.call(), d.call("list")]
    stopped = d.result(calls[1], text="[Request interrupted by user]", is_error=True)
    return d.ask(d.user(), d.answer("", *calls), d.result(calls[0]), stopped, d.user("Rather"))


@case("A result without any text")
def empty_result(d: Draft) -> Made:
    call, other = d.call(), d.call("list")
    empty = ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=())
    return d.ask(d.user(), d.answer("", call, other), empty, d.result(other))


@case("A result that is JSON")
def json_result(d: Draft) -> Made:
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call, text='{"rows": [{"a": null, "b": [1, 2.50]}], "note":'))


@case("A result of 40,000 characters")
def long_result(d: Draft) -> Made:
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call, text="0123456789 line of a log\n" * 1600))


@case("A call without arguments")
def no_arguments(d: Draft) -> Made:
    call = ToolCall(id="call_without_arguments", name="now", arguments={})
    context = d.ask(d.user(), d.answer("", call), d.result(call))
    schema: Fields = {"type": "object", "properties": {}}
    return Context(messages=context.messages, tools=(ToolDefinition(name="now", description="Time.", parameters=schema),))


@case("Arguments with lists, null, fractions and characters beyond ASCII")
def nested_arguments(d: Draft) -> Made:
    deep = {"list": [{"a": None}, 2.25, True, d.keep("ü 漢 🚀 \" \\ \n", "characters in arguments")]}
    call = d.call(options=deep, empty="", nothing={})
    return d.ask(d.user(), d.answer("", call), d.result(call))


@case("An integer in arguments that a double cannot hold")
def large_integer(d: Draft) -> Made:
    call = d.call(offset=int(d.keep("9007199254740993", "integer in arguments")))
    return d.ask(d.user(), d.answer("", call), d.result(call))


@case("Twelve rounds of calls and results")
def long_tool_loop(d: Draft) -> Made:
    messages: list[Message] = [d.user()]
    for _ in range(12):
        call = d.call()
        messages += (d.answer("", call), d.result(call))
    return d.ask(*messages)


@case("Turns of the user between rounds of calls")
def calls_in_several_turns(d: Draft) -> Made:
    first, second = d.call(), d.call("list")
    before = (d.user(), d.answer("I read", first), d.result(first), d.answer(), d.user())
    return d.ask(*before, d.answer("", second), d.result(second), d.answer(), d.user())


@case("One id for the calls of two rounds")
def repeated_ids(d: Draft) -> Made:
    first, second = d.call(call_id="call_0"), d.call(call_id="call_0")
    before = (d.user(), d.answer("", first), d.result(first), d.answer(), d.user())
    messages = (*before, d.answer("", second), d.result(second))
    d.pairs.clear()  # an id does not say which
    return d.ask(*messages)


def _ids(name: str, title: str, *ids: str) -> None:
    def make(d: Draft) -> Made:
        calls = [d.call(tool, call_id=each) for tool, each in zip(("read", "list"), ids, strict=True)]
        return d.ask(d.user(), d.answer("", *calls), *(d.result(call) for call in calls), d.answer(), d.user())

    CASES[name] = Source(title, make)


_ids("ids-of-anthropic", "Ids of calls as Anthropic makes them", "toolu_01A09q90qw90lq917835lq9", "toolu_01B2c3D4e5")
_ids("ids-of-openai", "Ids of calls as OpenAI makes them", "call_12xyzTqJ9Hf0aQ7sVb3mLk2p", "call_98abcTqJ9Hf0aQ7sVb3")
_ids("ids-of-kimi", "Ids of calls as Kimi makes them, with points and colons", "functions.read:0", "functions.list:1")
_ids("ids-of-mistral", "Ids of calls of nine characters", "D681PevKs", "a1B2c3D4e")
_ids("ids-of-gemini", "Ids of calls that are UUIDs", "3f1c9a52-8f0e-4b8a-9d5e-1a2b3c4d5e6f", "0b7d4c11-2233-4455-8899-aabbccddeeff")
_ids("ids-of-bedrock", "Ids of calls as Bedrock makes them", "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "tooluse_a-b_c-D3fGh1JkLmN0pQrS")
_ids("ids-numbered", "Ids of calls that are numbers, as small servers make them", "0", "1")
_ids("ids-long", "Ids of calls of 64 characters", "call_" + "a1B2" * 14 + "xyz", "call_" + "c3D4" * 14 + "xyz")
_ids("ids-with-items", "Ids of calls with the id of an item, as agents store them", "call_Ab12|fc_68", "call_Cd34|fc_69")


@case("200 tools")
def tools_200(d: Draft) -> Made:
    tools = tuple(
        tool(f"tool_{at}", f"Number {at}" + (f" {d.word(f'description of tool {at}')}" if at % 25 == 24 else ""))
        for at in range(200)
    )
    return Context(messages=(d.user(),), tools=tools)


@case("Names of tools with 64 characters and hyphens")
def long_tool_names(d: Draft) -> Made:
    names = [d.keep(f"mcp__server-{at}__" + "long_" * 9 + f"na-{at}", "name of a tool") for at in (1, 2)]
    call = d.call(names[0])
    return Context(messages=(d.user(), d.answer("", call), d.result(call)), tools=tuple(tool(name) for name in names))


@case("A schema of a tool with enumerations, lists and nested objects")
def deep_schema(d: Draft) -> Made:
    inner = {"type": "object", "properties": {d.word("property of a schema"): {"type": "integer", "minimum": 1}}}
    place = {"type": "string", "enum": ["a", d.word("value of an enumeration")], "description": d.word("description")}
    schema = {"type": "object", "properties": {"place": place, "rows": {"type": "array", "items": inner}}}
    made = ToolDefinition(name="plan", description="Plans.", parameters={**schema, "required": ["place"]})
    return Context(messages=(d.user(),), tools=(made,))


@case("A tool that has to be called")
def forced_tool(d: Draft) -> Made:
    d.asked["tool_choice"] = "list"
    return Step(Context(messages=(d.user(),), tools=(tool("read"), tool("list"))), Options(tool_choice="list"))


@case("Any tool has to be called")
def required_tool(d: Draft) -> Made:
    d.asked["tool_choice"] = "required"
    return Step(Context(messages=(d.user(),), tools=(tool("read"), tool("list"))), Options(tool_choice="required"))


@case("No tool may be called, after calls in the history")
def no_tool(d: Draft) -> Made:
    d.asked["tool_choice"] = "none"
    call = d.call()
    return Step(d.ask(d.user(), d.answer("", call), d.result(call)), Options(tool_choice="none"))


@case("A history with calls whose tool is not offered any more")
def tool_not_offered(d: Draft) -> Made:
    call = d.call()
    messages = (d.user(), d.answer("", call), d.result(call), d.answer(), d.user())
    return Context(messages=messages, tools=(tool("write"),))


# -- media -------------------------------------------------------------------------------------------------------------


@case("An image in a turn of the user")
def image(d: Draft) -> Made:
    return d.ask(UserMessage(content=(TextContent(text=f"What is {d.word('text', 'user')}?"), d.image("user"))))


@case("Three images with a text between them")
def several_images(d: Draft) -> Made:
    content = [each for _ in range(3) for each in (TextContent(text=f"See {d.word('text', 'user')}:"), d.image("user"))]
    return d.ask(UserMessage(content=tuple(content)), d.answer(), d.user())


@case("An image by its address")
def image_by_address(d: Draft) -> Made:
    address = d.keep(f"https://example.com/{d.word('address of an image')}.png", "address of an image")
    picture = ImageContent(url=address, mime_type="image/png")
    return d.ask(UserMessage(content=(TextContent(text="What is this?"), picture)))


@case("An image in the result of a tool")
def image_in_result(d: Draft) -> Made:
    call = d.call("screenshot")
    return d.ask(d.user(), d.answer("", call), d.result(call, d.image()))


@case("Images in the results of two calls at once")
def images_in_results(d: Draft) -> Made:
    calls = [d.call("screenshot"), d.call("screenshot")]
    return d.ask(d.user(), d.answer("", *calls), *(d.result(call, d.image()) for call in calls), d.answer(), d.user())


@case("An image in an earlier turn")
def image_in_history(d: Draft) -> Made:
    first = UserMessage(content=(d.image("user"), TextContent(text=f"Look: {d.word('text', 'user')}")))
    return d.ask(first, d.answer(), d.user(), d.answer(), d.user())


@case("A PDF in a turn of the user")
def pdf(d: Draft) -> Made:
    data = b64encode(f"%PDF-1.4\n% {d.name}\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n".encode()).decode()
    document = FileContent(data=d.keep(data, "PDF"), mime_type="application/pdf", name="report.pdf")
    return d.ask(UserMessage(content=(document, TextContent(text=f"Read {d.word('text', 'user')}."))))


# -- options -----------------------------------------------------------------------------------------------------------


@case("An answer by a schema")
def output_schema(d: Draft) -> Made:
    name = d.word("property of the schema of the answer")
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return Step(d.ask(d.user()), Options(output_schema={**schema, "additionalProperties": False}))


@case("JSON mode", CHAT, RESPONSES, GOOGLE)
def json_mode(d: Draft) -> Made:
    d.asked["json"] = True
    return Step(d.ask(d.user("Answer as JSON:")), patch={
        CHAT: {"response_format": {"type": "json_object"}},
        RESPONSES: {"text": {"format": {"type": "json_object"}}},
        GOOGLE: {"generationConfig": {"responseMimeType": "application/json"}},
    })


@case("A limit of tokens")
def token_limit(d: Draft) -> Made:
    d.asked["max_tokens"] = 4321
    return Step(d.ask(d.user()), Options(max_tokens=4321))


@case("A text that stops the answer", CHAT, ANTHROPIC, GOOGLE)
def stop_text(d: Draft) -> Made:
    return Step(d.ask(d.user()), Options(stop=(d.word("text that stops the answer"),)))


@case("A temperature", CHAT, GOOGLE)
def temperature(d: Draft) -> Made:
    d.asked["temperature"] = 0.375
    return Step(d.ask(d.user()), Options(temperature=0.375))


@case("Names of the people who write", CHAT)
def names(d: Draft) -> Made:
    people = [d.word("name of a person") for _ in range(2)]

    def name(turns: list[Any]) -> list[Any]:
        return [{**turn, "name": people[at // 2]} if turn["role"] == "user" else turn for at, turn in enumerate(turns)]

    return Step(d.ask(d.user(), d.answer(), d.user()), turns=name)


# -- state of a provider -----------------------------------------------------------------------------------------------

_SIGNED: Final[Mapping[str, str]] = {
    CHAT: "deepseek/deepseek-v4-pro", RESPONSES: "gpt-5.4", ANTHROPIC: "claude-opus-4-8", GOOGLE: "gemini-3.1-pro-preview",
}
_BOUND: Final[Mapping[str, str]] = {ANTHROPIC: "claude-opus-5-5"}
_THOUGHT: Final[Fields] = {"thinking": "I think about it.", "text": "The answer of the first step."}


def _thought(*calls: str) -> Fields:
    made = [{"name": name, "arguments": {"path": f"{name}.txt"}} for name in calls]
    return {"thinking": "I have to look.", "text": "Looking.", "calls": made} if calls else _THOUGHT


def _result(d: Draft, step: int, at: int, name: str) -> ToolResultMessage:
    content = (TextContent(text=f"It has {d.word('result of a call', 'tool')}."),)
    return ToolResultMessage(tool_call_id=f"{REPLY}{step}-{at}", tool_name=name, content=content)


def _continued(d: Draft, *calls: str, system: str | None = None) -> Sequence[Step]:
    """Ask, send the reply back, with the results of its calls or with a new question."""
    first, offered = d.user(), tuple(tool(name) for name in calls)
    after = [_result(d, 0, at, name) for at, name in enumerate(calls)] or [d.user()]
    start = Context(system_prompt=system, messages=(first,), tools=offered)
    return (
        Step(start, THINKING, _thought(*calls)),
        Step(start.add(d.reply(0, *calls), *after), THINKING),
    )


@case("The signature of an answer comes back", models=_SIGNED)
def signature_back(d: Draft) -> Made:
    return _continued(d)


@case("The signature before a call comes back with its result", models=_SIGNED)
def signature_in_tool_loop(d: Draft) -> Made:
    return _continued(d, "read")


@case("The signature before two calls at once comes back", models=_SIGNED)
def signature_before_parallel_calls(d: Draft) -> Made:
    return _continued(d, "read", "list")


@case("Signatures of two rounds of calls come back", models=_SIGNED)
def signatures_of_two_rounds(d: Draft) -> Made:
    first, second = _continued(d, "read")
    third = second.context.add(d.reply(1, "read"), _result(d, 1, 0, "read"))
    return (first, second._replace(upstream=_thought("read")), Step(third, THINKING))


@case("Reasoning that is bound to the conversation before it", ANTHROPIC, models=_BOUND)
def bound_reasoning(d: Draft) -> Made:
    return _continued(d, "read", system=f"Be exact about {d.word('system prompt')}.")


@case("Reasoning bound to the conversation, over two rounds of calls", ANTHROPIC, models=_BOUND)
def bound_reasoning_of_two_rounds(d: Draft) -> Made:
    return signatures_of_two_rounds(d)


@case("Redacted thinking comes back", ANTHROPIC, models=_SIGNED)
def redacted_thinking(d: Draft) -> Made:
    data = d.keep(REDACTED, "redacted thinking")
    redacted = ThinkingContent(thinking="", thinking_signature=data, redacted=True)
    answer = d.answer()
    turn = AssistantMessage(content=(redacted, *answer.content), stop_reason=StopReason.STOP)
    return Step(d.ask(d.user(), turn, d.user()), THINKING)



@case("The next request names the reply before it", RESPONSES, models=_SIGNED)
def continued_by_id(d: Draft) -> Made:
    start = d.ask(d.user(), system=f"Be exact. {d.word('system prompt')}")
    more = Context(system_prompt=start.system_prompt, messages=(d.user(),))
    return (Step(start, patch={"store": True}), Step(more, patch={"store": True, "previous_response_id": {"$id": 0}}))


@case("A result follows a reply that is named by its id", RESPONSES, models=_SIGNED)
def result_continued_by_id(d: Draft) -> Made:
    start = Context(messages=(d.user(),), tools=(tool("read"),))
    more = Context(messages=(_result(d, 0, 0, "read"),), tools=start.tools)
    named = {"store": True, "previous_response_id": {"$id": 0}}
    return (Step(start, THINKING, _thought("read"), patch={"store": True}), Step(more, THINKING, patch=named))


# -- replies -----------------------------------------------------------------------------------------------------------


def _replied(d: Draft, **upstream: object) -> Step:
    return Step(Context(messages=(d.user(),), tools=(tool("read"), tool("list"))), upstream=upstream)


@case("A reply that calls a tool")
def reply_with_call(d: Draft) -> Made:
    return _replied(d, text="I read.", calls=[{"name": "read", "arguments": {"path": "a.txt"}}])


@case("A reply that calls three tools at once")
def reply_with_parallel_calls(d: Draft) -> Made:
    calls = [{"name": name, "arguments": {"path": f"{at}.txt"}} for at, name in enumerate(("read", "list", "read"))]
    return _replied(d, calls=calls)


@case("A reply whose call has arguments with quotes, line ends and characters beyond ASCII")
def reply_with_hard_arguments(d: Draft) -> Made:
    return _replied(d, calls=[{"name": "read", "arguments": {"path": 'a "b"\\\n\t漢 🚀 </tool>', "deep": {"n": [1, None]}}}])


@case("A long reply, in many pieces")
def reply_in_many_pieces(d: Draft) -> Made:
    return _replied(d, text=" ".join(f"word{at}" for at in range(400)) + "\n\n  ```\n\tcode\n```")


@case("A reply with characters beyond ASCII")
def reply_beyond_ascii(d: Draft) -> Made:
    return _replied(d, text="👩\u200d🚀 naïve שלום 漢字 end")


@case("A reply that ends at its limit of tokens")
def reply_too_long(d: Draft) -> Made:
    return _replied(d, **{"text": "This answer ends in the", "too-long": True})


@case("A stream whose connection is cut")
def stream_cut(d: Draft) -> Made:
    return _replied(d, **{"text": "one two three four five six seven eight nine ten", "cut-after": 6})


@case("A stream that ends with an error")
def stream_failed(d: Draft) -> Made:
    return _replied(d, **{"text": "one two three four five six seven eight nine ten", "fail-after": 6})
