"""Sessions for the measure of recall: those of a folder, or generated ones with planted facts.

A generated session is an agent that works on invented modules: it searches, reads, edits and tests, and the user gives
it a new task now and then. Facts are planted in what users, tools and the assistant write, and used by a call 5 to 150
steps later. They are invented words of plain lower-case syllables, so nothing in their form says that they are facts:
a rule that finds names by their punctuation, digits or capitals does not find them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from segue import (
    AssistantContent,
    AssistantMessage,
    Context,
    Message,
    Model,
    SegueError,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    load,
    read_history,
)

WRITER: Final = Model("gpt-5.4", "openai", "openai-chat")
_ONSETS: Final = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr", "pl")
_VOWELS: Final = ("a", "e", "i", "o", "u")
_PLACES: Final = (
    "The staging machine is called {fact}.",
    "Note: the release is announced under the name {fact}.",
    "warning: the queue {fact} has no consumer",
    "I decided to keep the old behaviour behind the switch {fact}.",
    "Please use the account {fact} for everything in this task.",
)
_TASKS: Final = (
    "Make {name} return early when the input is empty, and add a test for it.",
    "{name} is too slow. Find out why, and fix it without changing its results.",
    "Rename {name} so that it says what it does, everywhere.",
    "Users report that {name} loses the last item. Reproduce it, then correct it.",
)


@dataclass(frozen=True)
class Session:
    """A recorded or generated session; `planted` has the facts that each assistant message uses, by its index."""

    name: str
    context: Context
    planted: dict[int, list[str]] = field(default_factory=dict[int, list[str]])


def read_sessions(folder: Path) -> Iterator[Session]:
    """Read every file of a folder that is a stored conversation or a session of a known agent; others are skipped."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            context = load(path.read_bytes())
        except SegueError:
            try:
                context = read_history(path).context
            except SegueError:
                continue
        yield Session(path.stem, context)


def make_sessions(count: int, steps: int) -> Iterator[Session]:
    """Generate sessions, the same on every machine."""
    for seed in range(count):
        yield _Writer(random.Random(seed), steps).write(f"generated {seed}")  # noqa: S311 - repeatable, not secret


class _Writer:
    def __init__(self, rng: random.Random, steps: int) -> None:
        self.rng = rng
        self.steps = steps
        self.messages: list[Message] = []
        self.names = [f"{self.word(2)}_{self.word(2)}" for _ in range(60)]
        self.files = [f"src/{self.word(2)}/{self.word(2)}.py" for _ in range(24)]
        self.lines: list[str] = []
        """Lines of results, which a later edit may quote."""
        self.due: dict[int, list[str]] = {}
        """The facts to use, by the step that uses them."""
        self.planted: dict[int, list[str]] = {}

    def write(self, name: str) -> Session:
        until = 0
        for step in range(self.steps):
            if step >= until:
                until = step + self.rng.randint(12, 60)
                self.messages.append(UserMessage.of(self.task(step)))
            self.add_step(step)
        return Session(
            name, Context(system_prompt="You are a coding agent.", messages=tuple(self.messages)), self.planted
        )

    def task(self, step: int) -> str:
        text = self.rng.choice(_TASKS).format(name=self.rng.choice(self.names))
        return f"{text} {self.plant(step)}" if self.rng.random() < 0.6 else text

    def plant(self, step: int) -> str:
        fact = self.word(4)
        at = step + self.rng.choice((5, 12, 25, 50, 90, 150)) + self.rng.randint(0, 6)
        self.due.setdefault(at, []).append(fact)
        return self.rng.choice(_PLACES).format(fact=fact)

    def add_step(self, step: int) -> None:
        rng, file, name = self.rng, self.rng.choice(self.files), self.rng.choice(self.names)
        used = self.due.get(step, [])
        sentence = f"Next I look at {name}." if rng.random() < 0.5 else ""
        if rng.random() < 0.08:
            sentence = f"{sentence} {self.plant(step)}".strip()
        kind = "run" if used else rng.choice(("read", "read", "search", "edit", "run"))
        match kind:
            case "read":
                arguments, result = {"path": file, "offset": rng.randint(1, 900)}, self.code(rng.randint(15, 120))
            case "search":
                arguments, result = {"pattern": name, "path": "src"}, self.hits(name)
            case "edit":
                old = self.quoted()
                arguments = {"path": file, "old_text": old, "new_text": f"{old}\n    # see {name}"}
                result = f"Edited {file}."
            case _:
                command = " ".join(("make", "deploy", *used)) if used else f"pytest -q {file} -k {name}"
                arguments, result = {"command": command}, self.output(name)
        if rng.random() < 0.08:
            result = f"{result}\n{self.plant(step)}"
        if used:
            self.planted[len(self.messages)] = used
        call = ToolCall(id=f"call_{step}", name=kind, arguments=arguments)
        text: tuple[AssistantContent, ...] = (TextContent(text=sentence),) if sentence else ()
        self.messages.append(
            AssistantMessage(
                content=(*text, call),
                protocol=WRITER.protocol,
                provider=WRITER.provider,
                model=WRITER.id,
                usage=Usage(),
                stop_reason=StopReason.TOOL_USE,
                timestamp=0,
            )
        )
        self.messages.append(
            ToolResultMessage(tool_call_id=call.id, tool_name=kind, content=(TextContent(text=result),))
        )

    def code(self, count: int) -> str:
        lines = [
            f"    {self.word(2)} = {self.rng.choice(self.names)}({self.word(3)}, {self.word(2)})" for _ in range(count)
        ]
        self.lines = (self.lines + self.rng.sample(lines, 5))[-60:]
        return "\n".join(lines)

    def hits(self, name: str) -> str:
        count = self.rng.randint(2, 12)
        return "\n".join(
            f"{self.rng.choice(self.files)}:{self.rng.randint(1, 900)}: {name}({self.word(2)})" for _ in range(count)
        )

    def output(self, name: str) -> str:
        if self.rng.random() < 0.2:
            return f"FAILED {name}: AssertionError: {self.word(3)} != {self.word(3)}"
        return f"{self.rng.randint(1, 400)} passed in {self.rng.random() * 30:.2f}s"

    def quoted(self) -> str:
        return "\n".join(self.rng.sample(self.lines, min(2, len(self.lines)))) or "pass"

    def word(self, syllables: int) -> str:
        return "".join(self.rng.choice(_ONSETS) + self.rng.choice(_VOWELS) for _ in range(syllables))
