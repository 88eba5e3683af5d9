"""Ten kinds of long conversations, made from a seed: agents, chats, and histories with everything that goes wrong."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable, Iterator

from counting import texts
from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.models.model import Model

TOOLS = tuple(
    ToolDefinition(
        name=name,
        description=f"{name.capitalize()} something in the repository. The path is relative to its root.",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "a path"},
                "body": {"type": "string", "description": "what to write or to look for"},
            },
            "required": ["path"],
        },
    )
    for name in ("read", "search", "edit", "run")
)
INSTRUCTIONS = texts.markdown(random.Random(0), 4000)
Text = Callable[[random.Random, int], str]


def english(chance: random.Random, size: int) -> str:
    return texts.markdown(chance, size)


def european(chance: random.Random, size: int) -> str:
    return texts.speech(chance, size, texts.EUROPEAN)


def east_asian(chance: random.Random, size: int) -> str:
    return texts.speech(chance, size, texts.EAST_ASIAN)


def found(chance: random.Random, size: int) -> str:
    """Give the text of a result: mostly code, searches and records, sometimes base64."""
    kinds = (texts.code, texts.code, texts.listing, texts.rows_of_json, texts.log, texts.markdown)
    return texts.opaque(chance, size) if chance.random() < 0.03 else chance.choice(kinds)(chance, size)


def screenshot(chance: random.Random) -> ImageContent:
    """Give an image that has a size and nothing else."""
    width, height = chance.choice(((1280, 800), (1920, 1080), (400, 301), (2400, 1600)))
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return ImageContent(data=base64.b64encode(head + chance.randbytes(60)).decode(), mime_type="image/png")


class Writer:
    """Writes one history; every turn has the origin of one model."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.chance = random.Random(seed)
        self.messages: list[Message] = []
        self.calls = 0

    def user(self, *content: str | ImageContent | FileContent) -> None:
        self.messages.append(UserMessage.of(*content))

    def turn(self, *content: AssistantContent, stop: StopReason = StopReason.STOP) -> None:
        model = self.model
        self.messages.append(
            AssistantMessage(
                content=content, protocol=model.protocol, provider=model.provider, model=model.id, stop_reason=stop
            )
        )

    def thinking(self, most: int) -> ThinkingContent:
        text = english(self.chance, self.chance.randint(50, most))
        return ThinkingContent(thinking=text, thinking_signature=texts.opaque(self.chance, 200))

    def call(self, most: int) -> ToolCall:
        self.calls += 1
        arguments = {
            "path": texts.listing(self.chance, 40).split(":")[0],
            "body": texts.code(self.chance, self.chance.randint(5, most)),
        }
        return ToolCall(id=f"call_{self.calls}", name=self.chance.choice(TOOLS).name, arguments=arguments)

    def result(self, call: ToolCall, *content: TextContent | ImageContent, is_error: bool = False) -> None:
        self.messages.append(
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=content, is_error=is_error)
        )

    def size(self, most: int) -> int:
        """Draw the length of a result: most are short, a few very long."""
        return int(min(most, self.chance.paretovariate(0.7) * 100))

    def step(self, *, most: int, parallel: int = 1, arguments: int = 400, thinks: bool = True) -> None:
        """Write a turn with calls, and their results."""
        calls = [self.call(arguments) for _ in range(self.chance.randint(1, parallel))]
        content: list[AssistantContent] = [self.thinking(900)] if thinks else []
        if self.chance.random() < 0.3:
            content.append(TextContent(text=english(self.chance, self.chance.randint(20, 600))))
        self.turn(*content, *calls, stop=StopReason.TOOL_USE)
        for call in calls:
            self.result(call, TextContent(text=found(self.chance, self.size(most))))

    def answer(self, text: Text = english, *, most: int = 600) -> None:
        self.turn(TextContent(text=text(self.chance, self.chance.randint(100, most))))


def agent(writer: Writer, length: int) -> None:
    """An agent that the user talks to now and then."""
    writer.user("Please repair the importer. " + english(writer.chance, 300))
    while len(writer.messages) < length:
        writer.step(most=40_000, parallel=2)
        if writer.chance.random() < 0.12:
            writer.answer()
            writer.user(english(writer.chance, writer.chance.randint(20, 2000)))


def one_task(writer: Writer, length: int) -> None:
    """One user message, then tools alone."""
    writer.user("Migrate the whole repository to the new interface.")
    while len(writer.messages) < length:
        writer.step(most=12_000)


def many_calls(writer: Writer, length: int) -> None:
    """An agent that calls up to six tools at once, and does not think."""
    writer.user("Compare all modules.")
    while len(writer.messages) < length:
        writer.step(most=8000, parallel=6, thinks=False)
        if writer.chance.random() < 0.05:
            writer.answer()
            writer.user("Go on, and look at the tests as well.")


def with_images(writer: Writer, length: int) -> None:
    """An agent that takes a picture of a page after each step, of a user who sends pictures too."""
    writer.user("Make the page look like this:", screenshot(writer.chance))
    while len(writer.messages) < length:
        call = writer.call(100)
        writer.turn(writer.thinking(400), call, stop=StopReason.TOOL_USE)
        writer.result(call, TextContent(text="Taken."), screenshot(writer.chance))
        writer.step(most=6000)
        if writer.chance.random() < 0.1:
            writer.answer()
            writer.user("It looks like this now:", screenshot(writer.chance), "Almost.")


def huge_results(writer: Writer, length: int) -> None:
    """An agent that reads files of up to 300 KB."""
    writer.user("Find out why the export is slow.")
    while len(writer.messages) < length:
        writer.step(most=300_000)
        if writer.chance.random() < 0.05:
            call = writer.call(50)
            writer.turn(call, stop=StopReason.TOOL_USE)
            writer.result(call, TextContent(text=found(writer.chance, writer.chance.randint(100_000, 300_000))))
        if writer.chance.random() < 0.1:
            writer.answer()
            writer.user("And now?")


def long_arguments(writer: Writer, length: int) -> None:
    """An agent that writes files: long arguments, short results."""
    writer.user("Write the tests.")
    while len(writer.messages) < length:
        writer.step(most=500, arguments=6000)
        if writer.chance.random() < 0.1:
            writer.answer()
            writer.user("More of them, please.")


def chat(text: Text) -> Callable[[Writer, int], None]:
    def write(writer: Writer, length: int) -> None:
        while len(writer.messages) < length:
            writer.user(text(writer.chance, writer.chance.randint(20, 1500)))
            writer.answer(text, most=4000)

    return write


def pasted(writer: Writer, length: int) -> None:
    """A user who pastes whole files."""
    while len(writer.messages) < length:
        writer.user("Explain this:\n" + found(writer.chance, writer.size(30_000)))
        writer.answer(most=5000)
        if writer.chance.random() < 0.3:
            writer.step(most=5000)
            writer.answer()


def ugly(writer: Writer, length: int) -> None:
    """Everything that goes wrong: aborted turns, missing and orphaned results, blank texts, errors, documents."""
    chance = writer.chance
    writer.user("Begin.")
    while len(writer.messages) < length:
        kind = chance.randrange(12)
        if kind == 0:
            writer.turn(TextContent(text=english(chance, 400)), writer.call(100), stop=StopReason.ABORTED)
        elif kind == 1:
            writer.turn(writer.call(100), stop=StopReason.TOOL_USE)  # no result follows
            writer.user(european(chance, 300))
        elif kind == 2:
            writer.result(writer.call(10), TextContent(text=found(chance, 3000)))  # no call comes before
        elif kind == 3:
            writer.user("   ")
            writer.answer(east_asian)
        elif kind == 4:
            call = writer.call(3000)
            writer.turn(TextContent(text=""), call, call, stop=StopReason.TOOL_USE)
            writer.result(call, TextContent(text=""), is_error=True)
        elif kind == 5:
            writer.messages.append(SystemMessage(content=(TextContent(text=english(chance, 200)),)))
            writer.user("Go on.")
        elif kind == 6:
            writer.user("😀" * chance.randint(1, 300), texts.opaque(chance, writer.size(8000)))
            writer.user("Twice.")
        elif kind == 7:
            document = b"%PDF /Type /Pages /Count 2 " + chance.randbytes(50)
            data = base64.b64encode(document).decode()
            writer.user("Read it.", FileContent(data=data, mime_type="application/pdf", name="a.pdf"))
            writer.answer()
        elif kind == 8:
            writer.turn(writer.thinking(3000))
        else:
            writer.step(most=60_000, parallel=3, arguments=1500)


HISTORIES: dict[str, tuple[Callable[[Writer, int], None], int]] = {
    "an agent with user turns": (agent, 2400),
    "one user message, then 2,000 of tools": (one_task, 2001),
    "an agent with many calls at once": (many_calls, 2400),
    "an agent with images": (with_images, 1600),
    "an agent with results of 300 KB": (huge_results, 900),
    "an agent with long arguments": (long_arguments, 1600),
    "a chat in European languages": (chat(european), 1200),
    "a chat in East Asian languages": (chat(east_asian), 800),
    "a chat with pasted files": (pasted, 1000),
    "an ugly history": (ugly, 1800),
}
"""The function that writes a history, and its length in messages."""


def history(name: str, model: Model, *, seed: int = 1, scale: float = 1.0) -> tuple[Message, ...]:
    """Make a history."""
    write, length = HISTORIES[name]
    writer = Writer(model, seed)
    write(writer, round(length * scale))
    return tuple(writer.messages)


def points(messages: tuple[Message, ...]) -> Iterator[int]:
    """Give every point where a request was sent: before each assistant turn, and at the end."""
    for index, message in enumerate(messages):
        if index and message.role == "assistant":
            yield index
    yield len(messages)


def begin(messages: tuple[Message, ...]) -> Context:
    return Context(system_prompt=INSTRUCTIONS, tools=TOOLS, messages=messages)
