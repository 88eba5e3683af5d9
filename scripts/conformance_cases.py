"""The histories of the conformance suite, in the neutral form; `write_conformance.py` writes them for each wire.

A function of this file makes one case. Each part of a history that a provider has to receive has a word of its own
(`Draft.word`). No two parts of the suite have the same, so finding it in a request shows that this part arrived.
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

    def keep(self, text: str, part: str, role: str | None = None, *, own: bool = False) -> str:
        """Require that a text arrives; a role is that of its turn, `own` means that only the same provider reads it."""
        row: Fields = {"word": text, "part": part} | ({} if role is None else {"role": role})
        self.kept.append(row | ({"own": True} if own else {}))
        return text

    def user(self, *texts: str) -> UserMessage:
        """Return a turn of the user, with a word in each text."""
        parts = texts or ("Please go on with",)
        content = [TextContent(text=f"{text} {self.word('text of the user', 'user')}.") for text in parts]
        return UserMessage(content=tuple(content))

    def answer(self, text: str = "This is about", *calls: ToolCall) -> AssistantMessage:
        """Return a turn of the assistant, with a word in its text, and calls after it."""
        given = (TextContent(text=f"{text} {self.word('text of the assistant', 'assistant')}."),) if text else ()
        stop = StopReason.TOOL_USE if calls else StopReason.STOP
        return AssistantMessage(content=(*given, *calls), stop_reason=stop)

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


CASES: Final[dict[str, Source]] = {}
ANTHROPIC: Final = "anthropic-messages"
CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
GOOGLE: Final = "google-genai"
THINKING: Final = Options(thinking="medium", max_tokens=8000)


def case(
    *wires: str, models: Mapping[str, str] | None = None
) -> Callable[[Callable[[Draft], Made]], Callable[[Draft], Made]]:
    """Register a case: its name is that of the function, its title the docstring; without wires, for all of them."""

    def register(make: Callable[[Draft], Made]) -> Callable[[Draft], Made]:
        CASES[make.__name__.replace("_", "-")] = Source((make.__doc__ or "").rstrip("."), make, wires, models or {})
        return make

    return register


# -- texts -------------------------------------------------------------------------------------------------------------


@case()
def plain_turns(d: Draft) -> Made:
    """Turns of user and assistant."""
    return d.ask(d.user(), d.answer(), d.user(), d.answer(), d.user())


@case()
def long_history(d: Draft) -> Made:
    """A conversation of 60 turns."""
    return d.ask(*(each for _ in range(30) for each in (d.user(), d.answer())), d.user())


@case()
def two_user_turns(d: Draft) -> Made:
    """The user writes twice before the assistant answers."""
    return d.ask(d.user(), d.user(), d.answer(), d.user(), d.user())


@case()
def two_assistant_turns(d: Draft) -> Made:
    """Two turns of the assistant follow each other."""
    return d.ask(d.user(), d.answer(), d.answer(), d.user())


@case()
def several_parts(d: Draft) -> Made:
    """A turn of the user in several parts."""
    return d.ask(d.user("First", "second", "third"), d.answer(), d.user("Fourth", "fifth"))


@case()
def unicode_text(d: Draft) -> Made:
    """Emoji, combining characters, right-to-left text and characters beyond the first plane."""
    given = d.keep(
        "👩\u200d🚀 e\u0301 \u202b\u05e9\u05dc\u05d5\u05dd\u202c \U0001d518\U0001d52b\U0001d526 漢字",
        "characters beyond ASCII",
        "user",
    )
    return d.ask(UserMessage.of(f"Repeat: {given} {d.word('text of the user', 'user')}"))


@case()
def whitespace_in_code(d: Draft) -> Made:
    """Indented code with tabs and blank lines."""
    code = d.keep(f"def {d.word('name in code')}():\n\tif x:\n\n\t\treturn  1\n    # end", "whitespace of code", "user")
    return d.ask(UserMessage.of(f"Explain:\n```\n{code}\n```"), d.answer(), d.user())


@case()
def text_like_json(d: Draft) -> Made:
    """Text that looks like JSON, with escapes."""
    given = d.keep('{"a": "b\\n\\u0041\\\\", "c": [null, 1e5]}', "escapes in a text", "user")
    return d.ask(UserMessage.of(f"Check {given}"), d.answer(), d.user())


@case()
def text_like_templates(d: Draft) -> Made:
    """Text that looks like the marks of a chat template."""
    given = d.keep("<|im_end|> </system> [INST] {{name}} %s ${HOME}", "marks in a text", "user")
    return d.ask(UserMessage.of(f"What is {given}?"), d.answer(), d.user())


@case()
def long_text(d: Draft) -> Made:
    """One text of 20,000 characters."""
    filler = "The same line again, to make this text long. " * 220
    words = [d.word(f"{place} of a long text", "user") for place in ("begin", "middle", "end")]
    return d.ask(UserMessage.of(f"{words[0]} {filler}{words[1]} {filler}{words[2]}"))


@case()
def aborted_turn(d: Draft) -> Made:
    """A turn that was aborted in mid-sentence."""
    partial = f"I begin with {d.word('text of an aborted turn', 'assistant')} and th"
    aborted = AssistantMessage(content=(TextContent(text=partial),), stop_reason=StopReason.ABORTED)
    return d.ask(d.user(), aborted, d.user("No, rather"))


@case()
def compacted_by_the_client(d: Draft) -> Made:
    """A summary of an earlier conversation begins the history."""
    summary = UserMessage.of(f"Summary of the conversation so far: {d.word('summary', 'user')}.")
    return d.ask(summary, d.answer("Understood:"), d.user(), system=f"Be exact. {d.word('system prompt')}")


# -- system texts ------------------------------------------------------------------------------------------------------


@case()
def system_prompt(d: Draft) -> Made:
    """A system prompt."""
    return d.ask(d.user(), d.answer(), d.user(), system=f"Answer in rhyme about {d.word('system prompt')}.")


@case()
def system_parts(d: Draft) -> Made:
    """A system prompt in several parts."""
    parts = tuple(TextContent(text=f"Rule: {d.word('part of the system prompt')}.") for _ in range(3))
    return d.ask(d.user(), system=parts)


@case()
def long_system_prompt(d: Draft) -> Made:
    """A system prompt of 8,000 characters."""
    rules = "Follow every rule. " * 420
    first, last = (d.word(f"{place} of the system prompt") for place in ("begin", "end"))
    return d.ask(d.user(), system=f"{first} {rules} {last}")


def _system(d: Draft, place: str) -> SystemMessage:
    return SystemMessage(content=(TextContent(text=f"From now on: {d.word(f'system text {place}')}."),))


@case()
def system_in_the_middle(d: Draft) -> Made:
    """A system text between two turns."""
    return d.ask(d.user(), _system(d, "in the middle"), d.answer(), d.user(), system="Be brief.")


@case()
def system_after_answer(d: Draft) -> Made:
    """A system text after an answer."""
    return d.ask(d.user(), d.answer(), _system(d, "after an answer"), d.user(), system="Be brief.")


@case()
def system_at_the_end(d: Draft) -> Made:
    """A system text after the newest turn."""
    return d.ask(d.user(), d.answer(), d.user(), _system(d, "at the end"), system="Be brief.")


@case()
def two_system_texts(d: Draft) -> Made:
    """Two system texts in the middle, one after the other."""
    texts = (_system(d, "in the middle"), _system(d, "in the middle"))
    return d.ask(d.user(), d.answer(), d.user(), *texts, d.answer(), d.user())


@case()
def system_after_results(d: Draft) -> Made:
    """A system text after the results of tools."""
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call), _system(d, "after results"))


@case(CHAT, RESPONSES)
def developer_text(d: Draft) -> Made:
    """A text of the developer between two turns."""
    given = {"role": "developer", "content": f"Use metric units: {d.word('text of the developer')}."}

    def insert(turns: list[Any]) -> list[Any]:
        return [*turns[:-1], given, turns[-1]]

    return Step(d.ask(d.user(), d.answer(), d.user()), turns=insert)


# -- tools -------------------------------------------------------------------------------------------------------------


@case()
def call_and_result(d: Draft) -> Made:
    """A call and its result."""
    call = d.call()
    return d.ask(d.user(), d.answer("I read", call), d.result(call))


@case()
def call_without_text(d: Draft) -> Made:
    """A call without a text before it."""
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call), d.answer(), d.user())


@case()
def parallel_calls(d: Draft) -> Made:
    """Three calls at once, their results in the same order."""
    calls = [d.call("read"), d.call("list"), d.call("search")]
    return d.ask(d.user(), d.answer("All at once:", *calls), *(d.result(call) for call in calls))


@case()
def parallel_results_out_of_order(d: Draft) -> Made:
    """Three calls at once, their results in another order."""
    calls = [d.call("read"), d.call("list"), d.call("search")]
    results = [d.result(calls[at]) for at in (2, 0, 1)]
    d.is_ordered = False  # a gateway may sort them
    return d.ask(d.user(), d.answer("All at once:", *calls), *results)


@case()
def one_tool_twice(d: Draft) -> Made:
    """One tool called twice at once, with two results."""
    calls = [d.call(), d.call()]
    return d.ask(d.user(), d.answer("Both:", *calls), *(d.result(call) for call in calls), d.answer(), d.user())


@case()
def late_result(d: Draft) -> Made:
    """A result that comes after the next turn of the user."""
    call = d.call()
    messages = (d.user(), d.answer("", call), d.user("Meanwhile"), d.result(call))
    d.is_ordered = False  # a gateway may move it
    return d.ask(*messages, d.user())


@case()
def late_second_result(d: Draft) -> Made:
    """One of two results comes after the next turn of the user."""
    calls = [d.call(), d.call("list")]
    messages = (d.user(), d.answer("", *calls), d.result(calls[0]), d.user("Meanwhile"), d.result(calls[1]))
    d.is_ordered = False
    return d.ask(*messages, d.user())


@case()
def text_after_result(d: Draft) -> Made:
    """A text of the user right after a result."""
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call), d.user("By the way"))


@case()
def failed_tool(d: Draft) -> Made:
    """A tool that failed."""
    call = d.call()
    failed = d.result(call, text="Error: no such file", is_error=True)
    return d.ask(d.user(), d.answer("I try", call), failed)


@case()
def aborted_call(d: Draft) -> Made:
    """A call that the user stopped, with a result that says so."""
    calls = [d.call(), d.call("list")]
    stopped = d.result(calls[1], text="[Request interrupted by user]", is_error=True)
    return d.ask(d.user(), d.answer("", *calls), d.result(calls[0]), stopped, d.user("Rather"))


@case()
def empty_result(d: Draft) -> Made:
    """A result without any text."""
    call, other = d.call(), d.call("list")
    empty = ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=())
    return d.ask(d.user(), d.answer("", call, other), empty, d.result(other))


@case()
def json_result(d: Draft) -> Made:
    """A result that is JSON."""
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call, text='{"rows": [{"a": null, "b": [1, 2.50]}], "note":'))


@case()
def long_result(d: Draft) -> Made:
    """A result of 40,000 characters."""
    call = d.call()
    return d.ask(d.user(), d.answer("", call), d.result(call, text="0123456789 line of a log\n" * 1600))


@case()
def no_arguments(d: Draft) -> Made:
    """A call without arguments."""
    call = ToolCall(id="call_without_arguments", name="now", arguments={})
    context = d.ask(d.user(), d.answer("", call), d.result(call))
    schema: Fields = {"type": "object", "properties": {}}
    return Context(
        messages=context.messages, tools=(ToolDefinition(name="now", description="Time.", parameters=schema),)
    )


@case()
def nested_arguments(d: Draft) -> Made:
    """Arguments with lists, null, fractions and characters beyond ASCII."""
    deep = {"list": [{"a": None}, 2.25, True, d.keep('ü 漢 🚀 " \\ \n', "characters in arguments")]}
    call = d.call(options=deep, empty="", nothing={})
    return d.ask(d.user(), d.answer("", call), d.result(call))


@case()
def large_integer(d: Draft) -> Made:
    """An integer in arguments that a double cannot hold."""
    call = d.call(offset=int(d.keep("9007199254740993", "integer in arguments")))
    return d.ask(d.user(), d.answer("", call), d.result(call))


@case()
def long_tool_loop(d: Draft) -> Made:
    """Twelve rounds of calls and results."""
    messages: list[Message] = [d.user()]
    for _ in range(12):
        call = d.call()
        messages += (d.answer("", call), d.result(call))
    return d.ask(*messages)


@case()
def calls_in_several_turns(d: Draft) -> Made:
    """Turns of the user between rounds of calls."""
    first, second = d.call(), d.call("list")
    before = (d.user(), d.answer("I read", first), d.result(first), d.answer(), d.user())
    return d.ask(*before, d.answer("", second), d.result(second), d.answer(), d.user())


@case()
def repeated_ids(d: Draft) -> Made:
    """One id for the calls of two rounds."""
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
_ids(
    "ids-of-gemini",
    "Ids of calls that are UUIDs",
    "3f1c9a52-8f0e-4b8a-9d5e-1a2b3c4d5e6f",
    "0b7d4c11-2233-4455-8899-aabbccddeeff",
)
_ids(
    "ids-of-bedrock",
    "Ids of calls as Bedrock makes them",
    "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q",
    "tooluse_a-b_c-D3fGh1JkLmN0pQrS",
)
_ids("ids-numbered", "Ids of calls that are numbers, as small servers make them", "0", "1")
_ids("ids-long", "Ids of calls of 64 characters", "call_" + "a1B2" * 14 + "xyz", "call_" + "c3D4" * 14 + "xyz")
_ids(
    "ids-with-items", "Ids of calls with the id of an item, as agents store them", "call_Ab12|fc_68", "call_Cd34|fc_69"
)


@case()
def tools_200(d: Draft) -> Made:
    """200 tools."""
    tools = tuple(
        tool(f"tool_{at}", f"Number {at}" + (f" {d.word(f'description of tool {at}')}" if at % 25 == 24 else ""))
        for at in range(200)
    )
    return Context(messages=(d.user(),), tools=tools)


@case()
def long_tool_names(d: Draft) -> Made:
    """Names of tools with 64 characters and hyphens."""
    names = [d.keep(f"mcp__server-{at}__" + "long_" * 9 + f"na-{at}", "name of a tool") for at in (1, 2)]
    call = d.call(names[0])
    return Context(messages=(d.user(), d.answer("", call), d.result(call)), tools=tuple(tool(name) for name in names))


@case()
def deep_schema(d: Draft) -> Made:
    """A schema of a tool with enumerations, lists and nested objects."""
    inner = {"type": "object", "properties": {d.word("property of a schema"): {"type": "integer", "minimum": 1}}}
    place = {"type": "string", "enum": ["a", d.word("value of an enumeration")], "description": d.word("description")}
    schema = {"type": "object", "properties": {"place": place, "rows": {"type": "array", "items": inner}}}
    made = ToolDefinition(name="plan", description="Plans.", parameters={**schema, "required": ["place"]})
    return Context(messages=(d.user(),), tools=(made,))


@case()
def forced_tool(d: Draft) -> Made:
    """A tool that has to be called."""
    d.asked["tool_choice"] = "list"
    return Step(Context(messages=(d.user(),), tools=(tool("read"), tool("list"))), Options(tool_choice="list"))


@case()
def required_tool(d: Draft) -> Made:
    """Any tool has to be called."""
    d.asked["tool_choice"] = "required"
    return Step(Context(messages=(d.user(),), tools=(tool("read"), tool("list"))), Options(tool_choice="required"))


@case()
def no_tool(d: Draft) -> Made:
    """No tool may be called, after calls in the history."""
    d.asked["tool_choice"] = "none"
    call = d.call()
    return Step(d.ask(d.user(), d.answer("", call), d.result(call)), Options(tool_choice="none"))


@case()
def tool_not_offered(d: Draft) -> Made:
    """A history with calls whose tool is not offered any more."""
    call = d.call()
    messages = (d.user(), d.answer("", call), d.result(call), d.answer(), d.user())
    return Context(messages=messages, tools=(tool("write"),))


# -- media -------------------------------------------------------------------------------------------------------------


@case()
def image(d: Draft) -> Made:
    """An image in a turn of the user."""
    return d.ask(UserMessage(content=(TextContent(text=f"What is {d.word('text', 'user')}?"), d.image("user"))))


@case()
def several_images(d: Draft) -> Made:
    """Three images with a text between them."""
    content = [each for _ in range(3) for each in (TextContent(text=f"See {d.word('text', 'user')}:"), d.image("user"))]
    return d.ask(UserMessage(content=tuple(content)), d.answer(), d.user())


@case()
def image_by_address(d: Draft) -> Made:
    """An image by its address."""
    address = d.keep(f"https://example.com/{d.word('address of an image')}.png", "address of an image")
    picture = ImageContent(url=address, mime_type="image/png")
    return d.ask(UserMessage(content=(TextContent(text="What is this?"), picture)))


@case()
def image_in_result(d: Draft) -> Made:
    """An image in the result of a tool."""
    call = d.call("screenshot")
    return d.ask(d.user(), d.answer("", call), d.result(call, d.image()))


@case()
def images_in_results(d: Draft) -> Made:
    """Images in the results of two calls at once."""
    calls = [d.call("screenshot"), d.call("screenshot")]
    return d.ask(d.user(), d.answer("", *calls), *(d.result(call, d.image()) for call in calls), d.answer(), d.user())


@case()
def image_in_history(d: Draft) -> Made:
    """An image in an earlier turn."""
    first = UserMessage(content=(d.image("user"), TextContent(text=f"Look: {d.word('text', 'user')}")))
    return d.ask(first, d.answer(), d.user(), d.answer(), d.user())


@case()
def pdf(d: Draft) -> Made:
    """A PDF in a turn of the user."""
    data = b64encode(f"%PDF-1.4\n% {d.name}\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n".encode()).decode()
    document = FileContent(data=d.keep(data, "PDF"), mime_type="application/pdf", name="report.pdf")
    return d.ask(UserMessage(content=(document, TextContent(text=f"Read {d.word('text', 'user')}."))))


# -- options -----------------------------------------------------------------------------------------------------------


@case()
def output_schema(d: Draft) -> Made:
    """An answer by a schema."""
    name = d.word("property of the schema of the answer")
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return Step(d.ask(d.user()), Options(output_schema={**schema, "additionalProperties": False}))


@case(CHAT, RESPONSES, GOOGLE)
def json_mode(d: Draft) -> Made:
    """JSON mode."""
    d.asked["json"] = True
    return Step(
        d.ask(d.user("Answer as JSON:")),
        patch={
            CHAT: {"response_format": {"type": "json_object"}},
            RESPONSES: {"text": {"format": {"type": "json_object"}}},
            GOOGLE: {"generationConfig": {"responseMimeType": "application/json"}},
        },
    )


@case()
def token_limit(d: Draft) -> Made:
    """A limit of tokens."""
    d.asked["max_tokens"] = 4321
    return Step(d.ask(d.user()), Options(max_tokens=4321))


@case(CHAT, ANTHROPIC, GOOGLE)
def stop_text(d: Draft) -> Made:
    """A text that stops the answer."""
    return Step(d.ask(d.user()), Options(stop=(d.word("text that stops the answer"),)))


@case(CHAT, GOOGLE)
def temperature(d: Draft) -> Made:
    """A temperature."""
    d.asked["temperature"] = 0.375
    return Step(d.ask(d.user()), Options(temperature=0.375))


@case(CHAT)
def names(d: Draft) -> Made:
    """Names of the people who write."""
    people = [d.word("name of a person") for _ in range(2)]

    def name(turns: list[Any]) -> list[Any]:
        return [{**turn, "name": people[at // 2]} if turn["role"] == "user" else turn for at, turn in enumerate(turns)]

    return Step(d.ask(d.user(), d.answer(), d.user()), turns=name)


# -- state of a provider -----------------------------------------------------------------------------------------------

_SIGNED: Final[Mapping[str, str]] = {
    CHAT: "deepseek/deepseek-v4-pro",
    RESPONSES: "gpt-5.4",
    ANTHROPIC: "claude-opus-4-8",
    GOOGLE: "gemini-3.1-pro-preview",
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


@case(models=_SIGNED)
def signature_back(d: Draft) -> Made:
    """The signature of an answer comes back."""
    return _continued(d)


@case(models=_SIGNED)
def signature_in_tool_loop(d: Draft) -> Made:
    """The signature before a call comes back with its result."""
    return _continued(d, "read")


@case(models=_SIGNED)
def signature_before_parallel_calls(d: Draft) -> Made:
    """The signature before two calls at once comes back."""
    return _continued(d, "read", "list")


@case(models=_SIGNED)
def signatures_of_two_rounds(d: Draft) -> Made:
    """Signatures of two rounds of calls come back."""
    first, second = _continued(d, "read")
    third = second.context.add(d.reply(1, "read"), _result(d, 1, 0, "read"))
    return (first, second._replace(upstream=_thought("read")), Step(third, THINKING))


@case(ANTHROPIC, models=_BOUND)
def bound_reasoning(d: Draft) -> Made:
    """Reasoning that is bound to the conversation before it."""
    return _continued(d, "read", system=f"Be exact about {d.word('system prompt')}.")


@case(ANTHROPIC, models=_BOUND)
def bound_reasoning_of_two_rounds(d: Draft) -> Made:
    """Reasoning bound to the conversation, over two rounds of calls."""
    return signatures_of_two_rounds(d)


@case(ANTHROPIC, models=_SIGNED)
def redacted_thinking(d: Draft) -> Made:
    """Redacted thinking comes back."""
    data = d.keep(REDACTED, "redacted thinking", own=True)
    redacted = ThinkingContent(thinking="", thinking_signature=data, redacted=True)
    answer = d.answer()
    turn = AssistantMessage(content=(redacted, *answer.content), stop_reason=StopReason.STOP)
    return Step(d.ask(d.user(), turn, d.user()), THINKING)


@case(RESPONSES, models=_SIGNED)
def continued_by_id(d: Draft) -> Made:
    """The next request names the reply before it."""
    start = d.ask(d.user(), system=f"Be exact. {d.word('system prompt')}")
    more = Context(system_prompt=start.system_prompt, messages=(d.user(),))
    return (Step(start, patch={"store": True}), Step(more, patch={"store": True, "previous_response_id": {"$id": 0}}))


@case(RESPONSES, models=_SIGNED)
def result_continued_by_id(d: Draft) -> Made:
    """A result follows a reply that is named by its id."""
    start = Context(messages=(d.user(),), tools=(tool("read"),))
    more = Context(messages=(_result(d, 0, 0, "read"),), tools=start.tools)
    named = {"store": True, "previous_response_id": {"$id": 0}}
    return (Step(start, THINKING, _thought("read"), patch={"store": True}), Step(more, THINKING, patch=named))


@case(RESPONSES, models=_SIGNED)
def compacted_by_the_provider(d: Draft) -> Made:
    """The provider compacts the history, and its item comes back."""
    long = UserMessage.of(f"{'A long history to compact. ' * 300} {d.word('text of the user', 'user')}")
    asked = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}
    return (Step(d.ask(long), patch=asked), Step(d.ask(long, d.reply(0), d.user())))


# -- replies -----------------------------------------------------------------------------------------------------------


def _replied(d: Draft, **upstream: object) -> Step:
    return Step(Context(messages=(d.user(),), tools=(tool("read"), tool("list"))), upstream=upstream)


@case()
def reply_with_call(d: Draft) -> Made:
    """A reply that calls a tool."""
    return _replied(d, text="I read.", calls=[{"name": "read", "arguments": {"path": "a.txt"}}])


@case()
def reply_with_parallel_calls(d: Draft) -> Made:
    """A reply that calls three tools at once."""
    calls = [{"name": name, "arguments": {"path": f"{at}.txt"}} for at, name in enumerate(("read", "list", "read"))]
    return _replied(d, calls=calls)


@case()
def reply_with_hard_arguments(d: Draft) -> Made:
    """A reply whose call has arguments with quotes, line ends and characters beyond ASCII."""
    return _replied(
        d, calls=[{"name": "read", "arguments": {"path": 'a "b"\\\n\t漢 🚀 </tool>', "deep": {"n": [1, None]}}}]
    )


@case()
def reply_in_many_pieces(d: Draft) -> Made:
    """A long reply, in many pieces."""
    return _replied(d, text=" ".join(f"word{at}" for at in range(400)) + "\n\n  ```\n\tcode\n```")


@case()
def reply_beyond_ascii(d: Draft) -> Made:
    """A reply with characters beyond ASCII."""
    return _replied(d, text="👩\u200d🚀 naïve \u05e9\u05dc\u05d5\u05dd 漢字 end")


@case()
def reply_too_long(d: Draft) -> Made:
    """A reply that ends at its limit of tokens."""
    return _replied(d, **{"text": "This answer ends in the", "too-long": True})


@case()
def stream_cut(d: Draft) -> Made:
    """A stream whose connection is cut."""
    return _replied(d, **{"text": "one two three four five six seven eight nine ten", "cut-after": 6})


@case()
def stream_failed(d: Draft) -> Made:
    """A stream that ends with an error."""
    return _replied(d, **{"text": "one two three four five six seven eight nine ten", "fail-after": 6})
