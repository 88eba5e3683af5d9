"""Generate histories for the laws: malformed ones, and well-formed ones that one model wrote.

Each is generated from a seed with `random.Random`, which gives the same choices on every platform. Malformed histories
have any error that the stored format can represent. A test can draw the seed with Hypothesis, or count seeds up.

Every message except system messages has its index as timestamp, and no two pieces of content are the same object, so a
test can identify each message after projection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    CacheMark,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
    UserContent,
)
from segue.conversation.context import Context, NativeTool, Options, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.passes.ids import digest
from segue.projection.passes.names import wire_name
from segue.protocols.api import resolve_described
from segue.protocols.kit.capabilities import refused_input
from segue.protocols.registry import resolve_rules

T = TypeVar("T")

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WIDE_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAC7gAAAAUCAYAAAAdzHAW"
"""The head of an image of 3,000 x 20 pixels."""
MP4: Final = "AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29t"
TEXT: Final = "VGhpcyBpcyBhIHRleHQsIG5vdCBhIHBpY3R1cmUu"
PDF: Final = "JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PD4+CmVuZG9iagp0cmFpbGVyCjw8Pj4="

# -- broken histories --------------------------------------------------------------------------------------------------

_TEXTS: Final = (
    "hello",
    "",
    "  ",
    "\n\t",
    "naïve 🚀 text",
    "half \ud800 alone",
    "two \ud83d\ude00 halves",
    "trailing ",
    "No result provided",
    "(image omitted: model does not support images)",
    "{name} {text}",
)
_IDS: Final = (
    "a",
    "b",
    "call_1",
    "toolu_01AbC",
    "",
    " ",
    "bad id!",
    "a.b",
    "a_b",
    "x" * 50,
    "y" * 70,
    "half\ud800",
    "half\ud801",
    "Ab3dE6gH9",
    "abcdef",
)
_ID_LENGTH: Final = 12
_OWN_NAMES: Final = ("read", "write_file")
_NAMES: Final = ("read", "write", "mcp.server/tool", "", "n" * 100, "na\ud800me", "9lives", "tool_9")
_ARGUMENTS: Final[tuple[dict[str, object], ...]] = (
    {},
    {"path": "x"},
    {"path": "x", "deep": {"list": [1, "ü", None]}},
    {"key\ud800": "v"},
    {"a": ["bad \udc00"], "b": True},
)
_ARGUMENT_TEXTS: Final = (None, None, None, '{"path": "x"}', '{"pa', "[]", '{"path":"\\ud800"}')
_SIGNATURES: Final = (None, None, "sig", "", "signature\ud800")
_SCHEMAS: Final[tuple[dict[str, object], ...]] = (
    {},
    {"type": "object"},
    {"anyOf": [{"properties": {"a": {}}}]},
    {"type": "string"},
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where", "enum": ["a", "b"]},
            "lines": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)
_DESCRIPTIONS: Final = ("", "Reads a file.")
_STOPS: Final = (StopReason.STOP, StopReason.LENGTH, StopReason.TOOL_USE)

ORIGINS: Final[tuple[tuple[str, str, str], ...]] = (
    ("anthropic-messages", "anthropic", "claude-sonnet-4-5"),
    ("openai-chat", "openai", "gpt-5.2"),
    ("openai-chat", "deepseek", "deepseek-reasoner"),
    ("openai-responses", "openai", "gpt-5"),
    ("google-genai", "google", "gemini-3-pro-preview"),
    ("bedrock-converse", "amazon-bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("mistral-chat", "mistral", "magistral-medium"),
    ("ollama-chat", "ollama", "qwen3"),
    ("", "", ""),
)
"""The origins of assistant turns: protocol, provider, model."""


class Choices:
    """Pseudo-random choices from one seed."""

    def __init__(self, seed: int) -> None:
        self.random: Random = Random(seed)  # noqa: S311 - reproducible choices, not a secret

    def pick(self, options: Sequence[T]) -> T:
        """Choose one of the options."""
        return options[int(self.random.random() * len(options))]

    def chance(self, one_in: int) -> bool:
        """Give True with a probability of 1 / `one_in`."""
        return self.random.random() * one_in < 1

    def count(self, most: int) -> int:
        """Choose a number from zero to `most`."""
        return int(self.random.random() * (most + 1))


class _BrokenTurns:
    """Generates a malformed history message by message; errors that are rare in real histories are frequent."""

    def __init__(self, seed: int, model: Model, origins: Sequence[tuple[str, str, str]]) -> None:
        self.dice = Choices(seed)
        self.marks = Choices(-1 - seed)
        self.pick, self.chance, self.count = self.dice.pick, self.dice.chance, self.dice.count
        self.model = model
        self.origins = origins
        self.protocols = tuple(dict.fromkeys(protocol for protocol, _, _ in origins if protocol))
        self.calls: list[tuple[str, str]] = []

    def extra(self) -> Extra | None:
        if not self.chance(8):
            return None
        protocol = self.model.protocol if self.chance(2) else self.pick((*self.protocols, "stored"))
        data: dict[str, object] = self.pick(
            (
                {"verbatim": {"content": {"from": "", "to": None}}},
                {"verbatim": "string", "shape": "string"},
                {"odd": "\ud800"},
                {"vendor": "1", "shape": "s"},
            )
        )
        return {protocol: dict(data)}

    def mark(self) -> CacheMark | None:
        return CacheMark() if self.marks.chance(10) else None

    def context(self) -> str | None:
        return self.marks.pick((None, "From the archive.", "half \ud800", " "))

    def text(self) -> TextContent:
        signature = self.pick(_SIGNATURES) if self.chance(4) else None
        text = self.pick(_TEXTS)
        return TextContent(text=text, text_signature=signature, cache_mark=self.mark(), extra=self.extra())

    def image(self) -> ImageContent:
        data = self.pick((PNG, WIDE_PNG, PNG * 3, "AAAA"))
        made = self.pick(
            (
                ImageContent(data=data, mime_type="image/png"),
                ImageContent(data=data, mime_type="image/tiff"),
                ImageContent(data=data),
                ImageContent(url="https://example.org/i.png"),
                ImageContent(url="https://example.org/given.png", mime_type="image/png"),
                ImageContent(data=PDF, mime_type="application/pdf"),
                ImageContent(data=PDF, mime_type="image/png"),
                ImageContent(data=PNG, mime_type="image/jpeg"),
                ImageContent(data=TEXT, mime_type="image/png"),
                ImageContent(data=MP4, mime_type="video/mp4"),
                ImageContent(url="https://example.org/given.pdf", mime_type="application/pdf"),
                ImageContent(url="https://example.org/f.pdf"),
                ImageContent(),
            )
        )
        return replace(made, extra=self.extra())

    def file(self) -> FileContent:
        made = self.pick(
            (
                FileContent(data=PDF, mime_type="application/pdf", name="a.pdf", context=self.context()),
                FileContent(data="aGVsbG8=", mime_type="text/plain", name="na\ud800me"),
                FileContent(data="/w==", mime_type="text/plain"),
                FileContent(data="IA==", mime_type="text/csv"),
                FileContent(url="https://example.org/f.pdf"),
                FileContent(url="https://example.org/given.pdf", mime_type="application/pdf"),
                FileContent(file_id="file-abc"),
                FileContent(file_id="given", mime_type="application/pdf"),
                FileContent(data="AAAA", mime_type="audio/wav"),
                FileContent(data="AAAA", mime_type="VIDEO/mp4; x=1"),
                FileContent(data="AAAA", mime_type="image/png"),
                FileContent(data="AAAA", mime_type="chemical/x-pdb"),
                FileContent(data=PNG, mime_type="application/pdf"),
                FileContent(data=PDF, mime_type="image/jpg"),
                FileContent(data=PDF, mime_type="audio/wav"),
                FileContent(data=TEXT, mime_type="application/octet-stream"),
                FileContent(data=MP4),
                FileContent(url="https://example.org/v.webm"),
                FileContent(url="https://youtu.be/abc"),
                FileContent(file_id="file-abc", mime_type="image/*"),
                FileContent(file_id="given", mime_type="image/png"),
                FileContent(file_id="s3://bucket/a"),
                FileContent(file_id="s3://bucket/a.mp4"),
                FileContent(),
            )
        )
        return replace(made, extra=self.extra())

    def native(self) -> NativeContent:
        kinds = (self.text, self.image, self.file)
        fallback: list[FallbackContent] = [self.pick(kinds)() for _ in range(self.count(2))]
        protocol = self.model.protocol if self.chance(2) else self.pick(self.protocols)
        block: dict[str, object] = {"type": "odd", "text": self.pick(("fine", "bad \ud800")), "id": self.count(10**9)}
        return NativeContent(protocol=protocol, block=block, fallback=tuple(fallback), extra=self.extra())

    def user_content(self) -> tuple[UserContent, ...]:
        kinds = (self.text, self.text, self.text, self.image, self.file, self.native)
        return tuple(self.pick(kinds)() for _ in range(self.count(3)))

    def result_content(self) -> tuple[ToolResultContent, ...]:
        kinds = (self.text, self.text, self.image, self.file, self.native)
        return tuple(self.pick(kinds)() for _ in range(self.count(2)))

    def thinking(self) -> ThinkingContent:
        redacted = self.chance(6)
        return ThinkingContent(
            thinking="" if redacted else self.pick(_TEXTS),
            thinking_signature=self.pick(_SIGNATURES),
            redacted=redacted,
            cache_mark=self.mark(),
            extra=self.extra(),
        )

    def call(self) -> ToolCall:
        call = ToolCall(
            id=self.pick(_IDS),
            name=self.pick(_NAMES),
            arguments=self.pick(_ARGUMENTS),
            arguments_text=self.pick(_ARGUMENT_TEXTS),
            thought_signature=self.pick(_SIGNATURES),
            extra=self.extra(),
        )
        self.calls.append((call.id, call.name))
        return call

    def assistant(self) -> AssistantMessage:
        kinds = (self.text, self.thinking, self.thinking, self.call, self.call, self.native)
        content: tuple[AssistantContent, ...] = tuple(self.pick(kinds)() for _ in range(self.count(4)))
        own = (self.model.protocol, self.model.provider, self.model.id)
        protocol, provider, model = own if self.chance(2) else self.pick(self.origins)
        return AssistantMessage(
            content=content,
            protocol=protocol,
            provider=provider,
            model=model,
            response_model=self.pick((None, None, "claude-sonnet-4-5", "gpt-5.2")),
            stop_reason=self.pick((StopReason.ERROR, StopReason.ABORTED)) if self.chance(6) else self.pick(_STOPS),
            raw_stop_reason=self.pick((None, None, "pause_turn")),
            extra=self.extra(),
        )

    def result(self, call_id: str, name: str) -> ToolResultMessage:
        return ToolResultMessage(
            tool_call_id=call_id,
            tool_name=name if self.chance(2) else self.pick(("", name)),
            content=self.result_content(),
            is_error=self.chance(4),
            extra=self.extra(),
        )

    def stray_result(self) -> ToolResultMessage:
        if self.calls and not self.chance(3):
            return self.result(*self.pick(self.calls))
        return self.result(self.pick(_IDS), self.pick(_NAMES))

    def system(self) -> SystemMessage:
        content: tuple[SystemContent, ...] = tuple(
            self.native() if self.chance(4) else self.text() for _ in range(self.count(2))
        )
        return SystemMessage(content=content, extra=self.extra())

    def user(self) -> UserMessage:
        return UserMessage(content=self.user_content(), extra=self.extra())

    def messages(self, most: int) -> list[Message]:
        out: list[Message] = []
        while len(out) < most and not (out and self.chance(12)):
            match self.pick(("user", "turn", "turn", "turn", "stray", "system")):
                case "user":
                    out.append(self.user())
                case "system":
                    out.append(self.system())
                case "stray":
                    out.append(self.stray_result())
                case _:
                    turn = self.assistant()
                    out.append(turn)
                    # Most batches are answered, some with a gap, a swap or a repetition.
                    answers = [self.result(call.id, call.name) for call in turn.tool_calls() if not self.chance(6)]
                    if len(answers) > 1 and self.chance(4):
                        answers.reverse()
                    if answers and self.chance(8):
                        answers.append(self.result(answers[0].tool_call_id, "read"))
                    out += answers
        return out


def fresh(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Copy messages so that no two share a content object, and set their index as timestamp."""
    out: list[Message] = []
    for index, message in enumerate(messages):
        content = tuple(_copied(piece) for piece in message.content)
        if message.role == "system":
            out.append(replace(message, content=content))
        else:
            out.append(replace(message, content=content, timestamp=index))
    return tuple(out)


def _copied(piece: AnyContent) -> AnyContent:
    if piece.kind == "native":
        return replace(piece, fallback=tuple(replace(spare) for spare in piece.fallback))
    return replace(piece)


_GOOGLE_TOOLS: Final[Mapping[str, object]] = {"googleSearch": {}, "codeExecution": {}}
_SERVER_TOOLS: Final[tuple[tuple[str, Mapping[str, object]], ...]] = (
    ("cohere-chat", {"type": "web\ud800"}),
    ("anthropic-messages", {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}),
    ("anthropic-messages", {"type": "web_fetch_20250910", "name": "web_fetch", "allowed_domains": ["a.org"]}),
    ("openai-responses", {"type": "web_search", "filters": {"blocked_domains": ["a.org"]}}),
    ("openai-responses", {"type": "code_interpreter", "container": {"type": "auto"}}),
    ("openai-responses", {"type": "file_search", "vector_store_ids": ["vs_1"]}),
    ("openai-responses", {"type": "tool_search"}),
    (
        "openai-responses",
        {
            "type": "namespace",
            "name": "crm",
            "description": "Customers.",
            "tools": [
                {"type": "function", "name": "read", "parameters": {"type": "object"}, "defer_loading": True},
                {"type": "function", "name": "find_customer", "parameters": {"type": "object"}},
            ],
        },
    ),
    ("google-genai", _GOOGLE_TOOLS),
    ("bedrock-converse", {"systemTool": {"name": "nova_grounding"}}),
    ("openai-chat", {"type": "openrouter:web_search", "parameters": {"user_location": {"city": "Bern"}}}),
    ("mistral-chat", {"type": "document_library", "library_ids": ["l"]}),
)
"""Tools that providers run, and a namespace, by protocol."""


def make_broken_context(
    seed: int, model: Model, most: int = 9, *, origins: Sequence[tuple[str, str, str]] = ORIGINS
) -> Context:
    """Generate a malformed history of up to about `most` messages.

    Half of the assistant turns have the model's own origin, the others one of `origins`.
    """
    turns = _BrokenTurns(seed, model, origins)
    prompt: str | tuple[SystemContent, ...] | None = None
    match turns.count(4):
        case 1:
            prompt = turns.pick(_TEXTS)
        case 2:
            prompt = cast("SystemMessage", fresh((turns.system(),))[0]).content
        case _:
            prompt = None
    tools: list[ToolDefinition | NativeTool] = []
    for _ in range(turns.count(2)):
        if turns.chance(4):
            protocol, definition = turns.pick((*_SERVER_TOOLS, (model.protocol, {"type": "web\ud800"})))
            tools.append(NativeTool(protocol=protocol, definition=definition, extra=turns.extra()))
        else:
            schema = turns.pick(_SCHEMAS)
            name, description = turns.pick(_NAMES), turns.pick(_DESCRIPTIONS)
            tool = ToolDefinition(name=name, description=description, parameters=dict(schema), extra=turns.extra())
            tools.append(tool)
    return Context(system_prompt=prompt, messages=fresh(turns.messages(most)), tools=tuple(tools))


def make_options(seed: int) -> Options | None:
    """Generate options, some of them out of range; None in half of the cases."""
    dice = Choices(seed)
    if dice.chance(2):
        return None
    return Options(
        max_tokens=dice.pick((None, 10, 10**9)),
        temperature=dice.pick((None, 0.5, 3.0)),
        top_p=dice.pick((None, 0.5)),
        stop=dice.pick((None, ("a",), tuple("abcdefgh"), ("\ud800",))),
        thinking=dice.pick((None, "off", "low", "max", 2048, 0)),
        tool_choice=dice.pick((None, "auto", "none", "required", "mcp.server/tool")),
        parallel_tool_calls=dice.pick((None, True, False)),
        output_schema=dice.pick((None, {"oneOf": [{"type": "object"}]})),
        session_id=dice.pick((None, "s")),
        extra=dice.pick((None, {"cohere-chat": {"k": 1}}, {"openai-chat": {"web_search_options": {}}})),
    )


# -- well-formed histories of one model --------------------------------------------------------------------------------


class _OwnTurns:
    """Generates a well-formed history whose assistant turns one model wrote."""

    def __init__(self, seed: int, model: Model) -> None:
        self.dice = Choices(seed)
        self.pick, self.chance = self.dice.pick, self.dice.chance
        self.model = model
        self.rules: Rules = resolve_rules(model)
        described = resolve_described(model).model
        self.takes_images: bool = "image" in described.input and "image" not in refused_input(described, self.rules)
        self.made = 0

    def extra(self) -> Extra | None:
        return {self.model.protocol: {"verbatim": {}, "shape": "s", "mark": 1}} if self.chance(6) else None

    def text(self, role: str = "user") -> TextContent:
        made = TextContent(text=self.pick(("hello", "naïve 🚀", "a b")), extra=self.extra())
        return replace(made, extra=None) if role in self.rules.values("content_parts") else made

    def media(self, patterns: tuple[str, ...]) -> tuple[UserContent, ...]:
        accepts = any(pattern in {"*", "image/*", "image/png"} for pattern in patterns)
        fits = not self.rules.has("media_bytes") or len(PNG) * 3 // 4 <= self.rules.most("media_bytes")
        if accepts and fits and self.takes_images and self.chance(4):
            return (ImageContent(data=PNG, mime_type="image/png", extra=self.extra()),)
        return ()

    def user(self) -> UserMessage:
        return UserMessage(content=(self.text(), *self.media(self.rules.user_media)), extra=self.extra())

    def thinking(self) -> tuple[ThinkingContent, ...]:
        if not self.chance(2) or self.rules.reasoning_replay == "none":
            return ()
        signatures = ("signature",) if self.rules.reasoning_replay == "signed" else ("signature", None)
        signature = self.pick(signatures)
        text = self.pick(("hm", "")) if signature else "hm"
        return (ThinkingContent(thinking=text, thinking_signature=signature, redacted=bool(signature) and not text),)

    def call(self, position: int) -> ToolCall:
        self.made += 1
        longest = min(self.rules.call_id_max or _ID_LENGTH, _ID_LENGTH)
        call_id = digest(str(self.made), max(longest, self.rules.call_id_min), self.rules.call_id_alphabet)
        signed = position == 0 and (self.rules.call_signature == "required" or self.chance(3))
        return ToolCall(
            id=call_id,
            name=wire_name(self.pick(_OWN_NAMES), self.rules),
            arguments=self.pick(_ARGUMENTS[:3]),
            thought_signature="signature" if signed else None,
        )

    def messages(self, most: int) -> list[Message]:
        out: list[Message] = [self.user()]
        while len(out) < most:
            content: list[AssistantContent] = [*self.thinking()]
            if self.chance(2):
                content.append(replace(self.text("assistant"), text_signature=self.pick((None, "signature"))))
            if self.chance(4) and "assistant" not in self.rules.values("content_parts"):
                content.append(NativeContent(protocol=self.model.protocol, block={"type": "future_block"}))
            calls: list[ToolCall] = []
            if self.rules.tools:
                calls = [self.call(position) for position in range(self.pick((0, 0, 1, 2)))]
            if not calls and not any(piece.kind in {"text", "native"} for piece in content):
                content.append(self.text("assistant"))
            is_signed = any(piece.kind == "thinking" and piece.thinking_signature for piece in content)
            if calls and not is_signed and self.rules.call_signature == "thought":
                content.insert(0, ThinkingContent(thinking="", thinking_signature="signature"))
            content += calls
            protocol, provider, model = self.model.protocol, self.model.provider, self.model.id
            turn = AssistantMessage(content=tuple(content), protocol=protocol, provider=provider, model=model)
            out.append(replace(turn, stop_reason=self.pick(_STOPS), extra=self.extra()))
            for call in calls:
                is_error = self.chance(4)
                can_show = not (is_error and self.rules.has("error_media"))
                media = self.media(self.rules.result_media) if can_show else ()
                out.append(
                    ToolResultMessage(
                        tool_call_id=call.id,
                        tool_name=call.name,
                        content=(self.text("tool"), *media),
                        is_error=is_error,
                    )
                )
            if not calls or self.may_add_text():
                out.append(self.user())
        return out

    def may_add_text(self) -> bool:
        return self.rules.user_after_result and self.chance(6)


def make_own_context(seed: int, model: Model, most: int = 10) -> Context:
    """Generate a well-formed history whose assistant turns the model itself wrote."""
    turns = _OwnTurns(seed, model)
    limited = turns.rules.max_images or most * 2
    messages = turns.messages(min(most, limited))
    prompt = turns.pick((None, "Be brief.")) if turns.rules.system_prompt else None
    tools: tuple[ToolDefinition, ...] = ()
    if turns.rules.tools:
        schema: dict[str, object] = {"type": "object", "properties": {}}
        tools = tuple(ToolDefinition(name=wire_name(name, turns.rules), parameters=schema) for name in _OWN_NAMES)
    return Context(system_prompt=prompt, messages=fresh(messages), tools=tools)
