"""Histories to try the laws on: ugly ones, as broken as storage allows, and well-formed ones of one target's own.

Every message but a system message carries its index as timestamp, and no two pieces of content are the same object: so
a comparison of the projection with the input can match the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar, cast

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from segue.conversation.content import (
    AnyContent,
    AssistantContent,
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
from segue.projection.policy import Policy, Texts
from segue.protocols.registry import PROTOCOLS, resolve_rules

T = TypeVar("T")

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF: Final = "JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PD4+CmVuZG9iagp0cmFpbGVyCjw8Pj4="

# -- targets -----------------------------------------------------------------------------------------------------------

_EVERYTHING: Final = ("text", "image", "document", "audio", "video")
_STRICT: Final = {
    "call_id_scope": "conversation",
    "call_id_alphabet": "a-z",
    "call_id_max": 6,
    "tool_name_alphabet": "a-z_",
    "tool_name_max": 16,
    "tool_error": "text",
    "alternate": True,
    "first_user": True,
    "last_assistant": False,
    "user_after_result": False,
    "system_messages": "before_assistant",
    "refused_text": "blank",
    "empty_result": False,
    "final_thinking": "text",
    "max_images": 2,
    "max_files": 1,
    "text_beside_files": True,
}
_SMALL: Final = {"max_images": 3, "max_media_bytes": 60}


def _models(protocol: str, provider: str, *ids: str, **fields: object) -> tuple[Model, ...]:
    return tuple(Model(model_id, provider, protocol, **fields) for model_id in ids)  # pyright: ignore[reportArgumentType]


TARGETS: Final[dict[str, tuple[Model, ...]]] = {
    "anthropic-messages": (
        *_models("anthropic-messages", "anthropic", "claude-sonnet-4-5", "claude-opus-4-8", reasoning=True),
        *_models("anthropic-messages", "anthropic", "claude-3-5-haiku-latest", input=("text",)),
        *_models("anthropic-messages", "anthropic", "claude-opus-4-6", reasoning=True, input=_EVERYTHING, rules=_SMALL),
        *_models("anthropic-messages", "fireworks", "kimi-k2", reasoning=True),
        *_models("anthropic-messages", "google-vertex", "claude-sonnet-4-5@20250929", reasoning=True),
    ),
    "openai-chat": (
        *_models("openai-chat", "openai", "gpt-5.2", "o1-mini", reasoning=True),
        *_models("openai-chat", "openai", "gpt-4o", input=_EVERYTHING),
        *_models("openai-chat", "deepseek", "deepseek-reasoner", "deepseek-v4", reasoning=True, input=("text",)),
        *_models("openai-chat", "nvidia", "mistral-large", "qwen3", input=("text",)),
        *_models("openai-chat", "openrouter", "openrouter/auto", router=True, reasoning=True),
    ),
    "openai-responses": (
        *_models("openai-responses", "openai", "gpt-5", reasoning=True, input=_EVERYTHING),
        *_models("openai-responses", "azure", "gpt-4.1"),
    ),
    "google-genai": (
        *_models("google-genai", "google", "gemini-2.5-pro", "gemini-3-pro-preview", reasoning=True, input=_EVERYTHING),
        *_models("google-genai", "google-vertex", "gemini-3.6-flash", reasoning=True),
    ),
    "bedrock-converse": (
        *_models("bedrock-converse", "amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", reasoning=True),
        *_models("bedrock-converse", "amazon-bedrock", "amazon.nova-pro-v1:0", input=_EVERYTHING),
        *_models("bedrock-converse", "amazon-bedrock", "meta.llama3-70b", "openai.gpt-oss-120b", reasoning=True),
    ),
    "mistral-chat": (
        *_models("mistral-chat", "mistral", "mistral-large-latest"),
        *_models("mistral-chat", "mistral", "magistral-medium", reasoning=True),
    ),
    "ollama-chat": _models("ollama-chat", "ollama", "qwen3", reasoning=True),
    "vscode-lm": _models("vscode-lm", "vscode", "copilot-gpt"),
    "plain-text": _models("plain-text", "plain-text", "anything"),
    "cohere-chat": (
        *_models("cohere-chat", "cohere", "command-a", reasoning=True),
        *_models("cohere-chat", "cohere", "strictest", reasoning=True, rules=_STRICT, input=_EVERYTHING),
    ),
}
"""Several targets for each protocol: thinking and not, seeing and not, old and new, patient and strict."""

assert TARGETS.keys() == PROTOCOLS.keys(), "a new protocol wants targets here"

ALL_TARGETS: Final = tuple(model for models in TARGETS.values() for model in models)


def targets(protocol: str) -> st.SearchStrategy[Model]:
    return st.sampled_from(TARGETS[protocol])


# -- ugly histories ----------------------------------------------------------------------------------------------------

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
_NAMES: Final = ("read", "write", "mcp.server/tool", "", "n" * 100, "na\ud800me", "9lives", "tool_9")
_ARGUMENTS: Final[tuple[dict[str, object], ...]] = (
    {},
    {"path": "x"},
    {"path": "x", "deep": {"list": [1, "ü", None]}},
    {"key\ud800": "v"},
    {"a": ["bad \udc00"], "b": True},
)
_SPELLINGS: Final = (None, None, None, '{"path": "x"}', '{"pa', "[]", '{"path":"\\ud800"}')
_SIGNATURES: Final = (None, None, "sig", "", "sig\ud800")
_STOPS: Final = (StopReason.STOP, StopReason.LENGTH, StopReason.TOOL_USE)
_PROTOCOL_NAMES: Final = tuple(PROTOCOLS)

ORIGINS: Final[tuple[tuple[str, str, str], ...]] = (
    *((model.protocol, model.provider, model.id) for model in ALL_TARGETS),
    ("anthropic-messages", "anthropic", "claude-sonnet-4-5-20250929"),
    ("bedrock-converse", "amazon-bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("google-genai", "google-vertex", "gemini-2.5-pro"),
    ("", "", ""),
)


class _Dice:
    """Choices from one seed: some twenty times faster than drawing each of them, and the laws need many histories."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random.random() * len(options))]

    def chance(self, one_in: int) -> bool:
        return self.random.random() * one_in < 1

    def count(self, most: int) -> int:
        return int(self.random.random() * (most + 1))


class _Ugly:
    """Draws a history message by message; what is rare in the wild is common here."""

    def __init__(self, seed: int, model: Model) -> None:
        self.dice = _Dice(seed)
        self.pick, self.chance, self.count = self.dice.pick, self.dice.chance, self.dice.count
        self.model = model
        self.calls: list[tuple[str, str]] = []

    def extra(self) -> Extra | None:
        if not self.chance(8):
            return None
        protocol = self.model.protocol if self.chance(2) else self.pick((*_PROTOCOL_NAMES, "stored"))
        data: dict[str, object] = self.pick(
            (
                {"verbatim": {"content": {"from": "", "to": None}}},
                {"verbatim": "string", "shape": "string"},
                {"odd": "\ud800"},
                {"vendor": "1", "shape": "s"},
            )
        )
        return {protocol: dict(data)}

    def text(self) -> TextContent:
        signature = self.pick(_SIGNATURES) if self.chance(4) else None
        return TextContent(text=self.pick(_TEXTS), text_signature=signature, extra=self.extra())

    def image(self) -> ImageContent:
        data = self.pick((PNG, PNG * 3, "AAAA"))
        made = self.pick(
            (
                ImageContent(data=data, mime_type="image/png"),
                ImageContent(data=data, mime_type="image/tiff"),
                ImageContent(data=data),
                ImageContent(url="https://example.org/i.png"),
                ImageContent(url="https://example.org/given.png", mime_type="image/png"),
                ImageContent(),
            )
        )
        return replace(made, extra=self.extra())

    def file(self) -> FileContent:
        made = self.pick(
            (
                FileContent(data=PDF, mime_type="application/pdf", name="a.pdf"),
                FileContent(data="aGVsbG8=", mime_type="text/plain", name="na\ud800me"),
                FileContent(data="!", mime_type="text/plain"),
                FileContent(data="IA==", mime_type="text/csv"),
                FileContent(url="https://example.org/f.pdf"),
                FileContent(url="https://example.org/given.pdf", mime_type="application/pdf"),
                FileContent(file_id="file-abc"),
                FileContent(file_id="given", mime_type="application/pdf"),
                FileContent(data="AAAA", mime_type="audio/wav"),
                FileContent(data="AAAA", mime_type="VIDEO/mp4; x=1"),
                FileContent(data="AAAA", mime_type="image/png"),
                FileContent(data="AAAA", mime_type="chemical/x-pdb"),
                FileContent(),
            )
        )
        return replace(made, extra=self.extra())

    def native(self) -> NativeContent:
        kinds = (self.text, self.image, self.file)
        fallback: list[FallbackContent] = [self.pick(kinds)() for _ in range(self.count(2))]
        protocol = self.model.protocol if self.chance(2) else self.pick(_PROTOCOL_NAMES)
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
            extra=self.extra(),
        )

    def call(self) -> ToolCall:
        call = ToolCall(
            id=self.pick(_IDS),
            name=self.pick(_NAMES),
            arguments=self.pick(_ARGUMENTS),
            arguments_text=self.pick(_SPELLINGS),
            thought_signature=self.pick(_SIGNATURES),
            extra=self.extra(),
        )
        self.calls.append((call.id, call.name))
        return call

    def assistant(self) -> AssistantMessage:
        kinds = (self.text, self.thinking, self.thinking, self.call, self.call, self.native)
        content: tuple[AssistantContent, ...] = tuple(self.pick(kinds)() for _ in range(self.count(4)))
        own = (self.model.protocol, self.model.provider, self.model.id)
        protocol, provider, model = own if self.chance(2) else self.pick(ORIGINS)
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
    """Copy messages so that no two share content, and number them."""
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


_SEEDS: Final = st.integers(0, 2**32)


def ugly_contexts(model: Model, most: int = 9) -> st.SearchStrategy[Context]:
    """Draw a history as broken as storage allows."""
    return _SEEDS.map(lambda seed: make_ugly(seed, model, most))


def make_ugly(seed: int, model: Model, most: int = 9) -> Context:
    ugly = _Ugly(seed, model)
    prompt: str | tuple[SystemContent, ...] | None = None
    match ugly.count(4):
        case 1:
            prompt = ugly.pick(_TEXTS)
        case 2:
            prompt = cast("SystemMessage", fresh((ugly.system(),))[0]).content
        case _:
            prompt = None
    tools: list[ToolDefinition | NativeTool] = []
    for _ in range(ugly.count(2)):
        if ugly.chance(4):
            protocol = ugly.pick((model.protocol, "cohere-chat"))
            tools.append(NativeTool(protocol=protocol, definition={"type": "web\ud800"}, extra=ugly.extra()))
        else:
            schema = ugly.pick(({}, {"type": "object"}, {"anyOf": [{"properties": {"a": {}}}]}, {"type": "string"}))
            tools.append(ToolDefinition(name=ugly.pick(_NAMES), parameters=dict(schema), extra=ugly.extra()))
    return Context(system_prompt=prompt, messages=fresh(ugly.messages(most)), tools=tuple(tools))


def options() -> st.SearchStrategy[Options | None]:
    return _SEEDS.map(make_options)


def make_options(seed: int) -> Options | None:
    dice = _Dice(seed)
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
        extra=dice.pick((None, {"cohere-chat": {"k": 1}})),
    )


_SUPPLIED: Final = {
    "https://example.org/given.png": ImageContent(data=PNG, mime_type="image/png"),
    "https://example.org/given.pdf": ImageContent(data=PNG, mime_type="image/png"),
    "given": FileContent(data=PDF, mime_type="application/pdf", extra={"cohere-chat": {"k": 1}}),
}


def _is_cohere(message: AssistantMessage, model: Model) -> bool:
    return message.protocol == "cohere-chat"


def policies() -> st.SearchStrategy[Policy | None]:
    return _SEEDS.map(make_policy)


def make_policy(seed: int) -> Policy | None:
    dice = _Dice(seed)
    if dice.chance(2):
        return None
    return Policy(
        reasoning=dice.pick(("auto", "text", "drop", "native")),
        trailing_calls=dice.pick(("close", "open")),
        orphan_results=dice.pick(("drop", "text")),
        duplicate_results=dice.pick(("first", "last")),
        texts=dice.pick((Texts(), Texts(error_result="{text}", last_turn="go on", empty_turn="-"))),
        media=dice.pick(({}, _SUPPLIED)),
        same_model=dice.pick((None, None, _is_cohere)),
    )


# -- histories of the target's own -------------------------------------------------------------------------------------


class _OwnTurns:
    """Draws a valid history that one target wrote."""

    def __init__(self, seed: int, model: Model) -> None:
        self.dice = _Dice(seed)
        self.pick, self.chance = self.dice.pick, self.dice.chance
        self.model = model
        self.rules: Rules = resolve_rules(model)
        self.made = 0

    def extra(self) -> Extra | None:
        return {self.model.protocol: {"shape": "s", "mark": 1}} if self.chance(6) else None

    def text(self) -> TextContent:
        return TextContent(text=self.pick(("hello", "naïve 🚀", "a b")), extra=self.extra())

    def media(self, patterns: tuple[str, ...]) -> tuple[UserContent, ...]:
        carries = any(pattern in {"*", "image/*", "image/png"} for pattern in patterns)
        fits = not self.rules.max_media_bytes or len(PNG) * 3 // 4 <= self.rules.max_media_bytes
        if carries and fits and "image" in self.model.input and self.chance(4):
            return (ImageContent(data=PNG, mime_type="image/png", extra=self.extra()),)
        return ()

    def user(self) -> UserMessage:
        return UserMessage(content=(self.text(), *self.media(self.rules.user_media)), extra=self.extra())

    def thinking(self) -> tuple[ThinkingContent, ...]:
        if not self.chance(2) or self.rules.reasoning_replay == "none":
            return ()
        signatures = ("sig0",) if self.rules.reasoning_replay == "signed" else ("sig0", None)
        opaque = self.pick(signatures)
        words = self.pick(("hm", "")) if opaque else "hm"
        return (ThinkingContent(thinking=words, thinking_signature=opaque, redacted=bool(opaque) and not words),)

    def call(self, position: int) -> ToolCall:
        self.made += 1
        number = f"{self.made:09d}" if self.rules.call_id_min == 9 else f"call{self.made}"
        if self.rules.call_id_alphabet == "a-z":
            number = "abcdefghij"[self.made % 10] * (1 + self.made // 10)
        signed = position == 0 and (self.rules.call_signature == "required" or self.chance(3))
        return ToolCall(
            id=number,
            name=self.pick(("read", "write_file")),
            arguments=self.pick(_ARGUMENTS[:3]),
            thought_signature="sig0" if signed else None,
        )

    def messages(self, most: int) -> list[Message]:
        out: list[Message] = [self.user()]
        while len(out) < most:
            content: list[AssistantContent] = [*self.thinking()]
            if self.chance(2):
                content.append(replace(self.text(), text_signature=self.pick((None, "sig0"))))
            if self.chance(4):
                content.append(NativeContent(protocol=self.model.protocol, block={"type": "web"}))
            calls: list[ToolCall] = []
            if self.rules.tools:
                calls = [self.call(position) for position in range(self.pick((0, 0, 1, 2)))]
            if not calls and not any(piece.kind in {"text", "native"} for piece in content):
                content.append(self.text())
            content += calls
            protocol, provider, model = self.model.protocol, self.model.provider, self.model.id
            turn = AssistantMessage(content=tuple(content), protocol=protocol, provider=provider, model=model)
            out.append(replace(turn, stop_reason=self.pick(_STOPS), extra=self.extra()))
            for call in calls:
                is_error = self.chance(4)
                can_show = self.rules.error_result_media or not is_error
                media = self.media(self.rules.result_media) if can_show else ()
                out.append(
                    ToolResultMessage(
                        tool_call_id=call.id, tool_name=call.name, content=(self.text(), *media), is_error=is_error
                    )
                )
            if not calls or self.may_say_more():
                out.append(self.user())
        return out

    def may_say_more(self) -> bool:
        return self.rules.user_after_result and self.chance(6)


def own_contexts(model: Model, most: int = 10) -> st.SearchStrategy[Context]:
    """Draw a well-formed history that the model itself wrote."""
    return _SEEDS.map(lambda seed: make_own(seed, model, most))


def make_own(seed: int, model: Model, most: int = 10) -> Context:
    own_turns = _OwnTurns(seed, model)
    limited = own_turns.rules.max_images or most * 2
    messages = own_turns.messages(min(most, limited))
    prompt = own_turns.pick((None, "Be brief.")) if own_turns.rules.system_prompt else None
    tools: tuple[ToolDefinition, ...] = ()
    if own_turns.rules.tools:
        schema = {"type": "object", "properties": {}}
        tools = tuple(ToolDefinition(name=name, parameters=schema) for name in ("read", "write_file"))
    return Context(system_prompt=prompt, messages=fresh(messages), tools=tools)


def plain(value: object) -> object:
    """Give a value as plain data, to see later whether it is still the same."""
    return msgspec.to_builtins(value)
