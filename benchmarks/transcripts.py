"""Agent transcripts with realistic proportions, the same on every machine.

The proportions are those of coding agents: of 100 messages some 55 are tool results (0.2 to 8 KB of text, mostly
short), 38 are assistant messages (signed thinking, a sentence, one to three parallel calls) and 6 are user messages;
every seventh string contains non-ASCII characters. A thousand messages are about two megabytes of JSON.

A transcript is well formed: all calls of a turn are answered right after it and in order, and the last message is a
tool result. So projection changes only what the target requires.
"""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Mapping
from typing import Final

import orjson

from segue import (
    AssistantContent,
    AssistantMessage,
    Context,
    ImageContent,
    Message,
    Model,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    Usage,
    UserMessage,
    dump,
)

OWN_MODEL: Final = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True)
CROSS_MODEL: Final = Model("gpt-5.2", "openai", "openai-chat", reasoning=True)

_NON_ASCII_SHARE: Final = 0.15
_IMAGE_EVERY: Final = 100
_IMAGE_BYTES: Final = 75_000  # 100 KB of base64

_LINES: Final = (
    "def resolve(self, name: str) -> Model:",
    '        raise KeyError(f"no such model: {name!r}")',
    "    if not candidates:",
    "        return None",
    "",
    "# The cache is keyed by path, because two files may hold the same text.",
    'logger.debug("read %d bytes from %s", len(data), path)',
    "src/app/handlers.py:214:    async def on_message(self, event: Event) -> None:",
    "tests/test_handlers.py::test_retries_after_timeout PASSED                     [ 41%]",
    'E       AssertionError: assert {"status": "ok"} == {"status": "failed"}',
    "-rw-r--r--  1 app app   18234 Mar  4 11:20 package-lock.json",
    "\tconst result = await fetch(`${base}/v1/items?limit=${limit}`);",
    "diff --git a/README.md b/README.md",
    "+    return sorted(items, key=lambda item: (item.rank, item.name))",
    "Traceback (most recent call last):",
    '  File "/srv/app/main.py", line 87, in <module>',
)
_NON_ASCII_LINES: Final = (
    "# Überprüft, ob die Größe stimmt, sonst Abbruch.",
    "message = '設定ファイルが見つかりません'",
    "✓ 214 passed, ✗ 3 failed 🚀",
    "│   ├── données/  └── été.csv",
)
_SENTENCES: Final = (
    "The failing test points at the handler, so I read that file first.",
    "There are two callers; only one of them passes the timeout.",
    "I will run the tests again to see whether the change holds.",
    "The schema says the field is optional, but the code reads it without a check.",
    "Let me look for other places that build this object by hand.",
    "That leaves the configuration: the default is zero, which means no limit here.",
)
_NON_ASCII_SENTENCES: Final = (
    "Die Prüfung schlägt fehl, weil „status“ fehlt.",
    "この関数は呼び出されていないようです。",
    "Done ✅: the résumé parser handles “curly” quotes now.",
)
_PATHS: Final = (
    "src/app/handlers.py",
    "tests/test_handlers.py",
    "README.md",
    "src/app/config/defaults.toml",
    "web/index.ts",
)
_CALL_PREFIXES: Final[Mapping[str, str]] = {
    "anthropic-messages": "toolu_",
    "bedrock-converse": "tooluse_",
    "google-genai": "",
    "openai-responses": "call_",
}
_OTHER_CALL_PREFIX: Final = "call_00_"  # what DeepSeek writes
_CALLS_AT_ONCE: Final = (1, 2, 3)
_CALLS_WEIGHTS: Final = (48, 32, 20)

_TOOLS: Final = tuple(
    ToolDefinition(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": {key: {"type": kind, "description": f"The {key}."} for key, kind in fields.items()},
            "required": list(fields)[:1],
        },
    )
    for name, description, fields in (
        ("read_file", "Read a file.", {"path": "string", "offset": "integer", "limit": "integer"}),
        ("run_command", "Run a command in a shell.", {"command": "string", "timeout": "number"}),
        ("edit_file", "Replace text in a file.", {"path": "string", "old_text": "string", "new_text": "string"}),
        ("search", "Search the files.", {"pattern": "string", "path": "string", "ignore_case": "boolean"}),
    )
)


def make_transcript(length: int, *, model: Model = OWN_MODEL, images: bool = False, seed: int = 1) -> Context:
    """Write a conversation of exactly `length` messages (three or more), every assistant turn by `model`."""
    writer = _Writer(random.Random(seed), model=model, images=images)  # noqa: S311  # repeatable, not secret
    writer.write(length)
    return Context(system_prompt=writer.prose(3000), messages=tuple(writer.messages), tools=_TOOLS)


def make_turn(model: Model, seed: int) -> tuple[Message, ...]:
    """Write one step of an agent: an assistant message with three calls, and their results."""
    writer = _Writer(random.Random(seed), model=model, images=False)  # noqa: S311
    writer.add_step(3)
    return tuple(writer.messages)


def as_plain(context: Context) -> object:
    """Return the stored JSON of a context as dicts and lists, parsed by `orjson.loads`."""
    return orjson.loads(dump(context))


class _Writer:
    """Writes messages; all choices come from one random number generator."""

    def __init__(self, rng: random.Random, *, model: Model, images: bool) -> None:
        self.rng = rng
        self.model = model
        self.images = images
        self.pictures = 0
        self.messages: list[Message] = []
        self.clock = 1_760_000_000_000

    def write(self, length: int) -> None:
        """Write turns until `length` is reached; the last one stops at a tool result."""
        while len(self.messages) < length:
            self.messages.append(UserMessage.of(self.prose(self.rng.randint(40, 600)), timestamp=self.now()))
            steps = self.rng.randint(2, 9)
            while (left := length - len(self.messages)) > 0:
                if steps <= 0 and left > 5:
                    self.messages.append(self.assistant((TextContent(text=self.prose(900)),), StopReason.STOP))
                    break
                steps -= 1
                calls = min(self.rng.choices(_CALLS_AT_ONCE, _CALLS_WEIGHTS)[0], left - 1)
                self.add_step(calls + 1 if left - 1 - calls == 1 else calls)

    def add_step(self, calls: int) -> None:
        """Add an assistant message with tool calls, and their results."""
        pieces: list[AssistantContent] = [
            ThinkingContent(thinking=self.prose(self.rng.randint(100, 1800)), thinking_signature=self.signature(450))
        ]
        if self.rng.random() < 0.7:
            pieces.append(TextContent(text=self.prose(self.rng.randint(40, 300))))
        asked = [self.call() for _ in range(calls)]
        self.messages.append(self.assistant((*pieces, *asked), StopReason.TOOL_USE))
        self.messages.extend(self.result(call) for call in asked)

    def assistant(self, content: tuple[AssistantContent, ...], stop_reason: StopReason) -> AssistantMessage:
        """Write an assistant message of the model."""
        read, write, output = self.rng.randint(1_000, 150_000), self.rng.randint(0, 5_000), self.rng.randint(20, 2_000)
        return AssistantMessage(
            content=content,
            protocol=self.model.protocol,
            provider=self.model.provider,
            model=self.model.id,
            response_id="msg_" + self.word(24),
            usage=Usage(
                input=7, output=output, cache_read=read, cache_write=write, total_tokens=7 + read + write + output
            ),
            stop_reason=stop_reason,
            timestamp=self.now(),
        )

    def call(self) -> ToolCall:
        """Write a call of one of the tools."""
        tool = self.rng.choice(_TOOLS)
        match tool.name:
            case "read_file":
                arguments: dict[str, object] = {
                    "path": self.rng.choice(_PATHS),
                    "offset": self.rng.randint(0, 900),
                    "limit": 200,
                }
            case "run_command":
                arguments = {"command": f"python -m pytest -q {self.rng.choice(_PATHS)} | tail -n 20", "timeout": 120.5}
            case "edit_file":
                old, new = self.lines(self.rng.randint(40, 500)), self.lines(self.rng.randint(40, 700))
                arguments = {"path": self.rng.choice(_PATHS), "old_text": old, "new_text": new}
            case _:
                arguments = {"pattern": r"on_\w+\(", "path": "src", "ignore_case": self.rng.random() < 0.5}
        prefix = _CALL_PREFIXES.get(self.model.protocol, _OTHER_CALL_PREFIX)
        return ToolCall(id=prefix + self.word(24), name=tool.name, arguments=arguments)

    def result(self, call: ToolCall) -> ToolResultMessage:
        """Write the result of a call; with images, one in a hundred messages has one."""
        text = TextContent(text=self.lines(self.size()))
        shown = (text,)
        if self.images and len(self.messages) >= (self.pictures + 1) * _IMAGE_EVERY:
            self.pictures += 1
            data = base64.b64encode(self.rng.randbytes(_IMAGE_BYTES)).decode()
            shown = (text, ImageContent(data=data, mime_type="image/png"))
        return ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=shown,
            is_error=self.rng.random() < 0.04,
            timestamp=self.now(),
        )

    def size(self) -> int:
        """Draw the length of a result: lognormal, from 0.2 to 8 KB."""
        return min(8000, max(200, int(self.rng.lognormvariate(math.log(1150), 0.9))))

    def now(self) -> int:
        """Advance the time by some seconds."""
        self.clock += self.rng.randint(800, 20_000)
        return self.clock

    def word(self, length: int) -> str:
        """Write an id."""
        return "".join(self.rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789", k=length))

    def signature(self, length: int) -> str:
        """Write a signature."""
        return base64.b64encode(self.rng.randbytes(length)).decode()

    def lines(self, length: int) -> str:
        """Write about `length` characters of code, listings and logs."""
        return self._text(length, _LINES, _NON_ASCII_LINES, "\n")

    def prose(self, length: int) -> str:
        """Write about `length` characters of sentences."""
        return self._text(length, _SENTENCES, _NON_ASCII_SENTENCES, " ")

    def _text(self, length: int, plain: tuple[str, ...], beyond_ascii: tuple[str, ...], separator: str) -> str:
        pool = plain + beyond_ascii if self.rng.random() < _NON_ASCII_SHARE else plain
        pieces = [self.rng.choice(beyond_ascii)] if pool is not plain else list[str]()
        size = 0
        while size < length:
            piece = self.rng.choice(pool)
            pieces.append(piece)
            size += len(piece) + 1
        return separator.join(pieces)[:length].rstrip() or "ok"
