"""Short functions that build histories for tables of cases, and functions that check the result.

A history is a tuple of messages. `assistant(SONNET, thinking("hm", "sig0"), call("a"))` is a turn that Sonnet wrote: it
has the origin of the model, and its stop reason is `toolUse` if it calls a tool. Expected results are written with the
same functions: projection never changes an origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from segue.conversation.content import (
    AssistantContent,
    CacheMark,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
    UserContent,
)
from segue.conversation.context import Context, Tool, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import render_path
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Texts
from segue.projection.report import Report

# -- models ------------------------------------------------------------------------------------------------------------

SONNET: Final = get_model("anthropic/claude-sonnet-4-5")
"""Budgets for thinking, prefill, no system messages after the first turn."""
OPUS: Final = get_model("anthropic/claude-opus-4-5")
FABLE: Final = get_model("anthropic/claude-fable-5")
"""Adaptive thinking, no prefill, accepts system messages after the first turn."""
GPT: Final = get_model("openai/gpt-5.4")
GPT_NEXT: Final = get_model("openai/gpt-5.5")
GPT_AZURE: Final = get_model("azure/gpt-5.4")
GPT_CHAT: Final = Model("gpt-5.4", "openai", "openai-chat", reasoning=True, input=("text", "image", "document"))
GPT_4O: Final = Model("gpt-4o", "openai", "openai-chat", input=("text", "image", "document"))
GEMINI: Final = get_model("google/gemini-3.1-pro-preview")
GEMINI_VERTEX: Final = get_model("google-vertex/gemini-3.1-pro-preview")
GEMINI_2: Final = get_model("google/gemini-2.5-pro")
GEMINI_LAST_USER: Final = get_model("google/gemini-3.6-flash")
MISTRAL: Final = get_model("mistral/mistral-large-latest")
MISTRAL_CHAT: Final = Model("mistral-large-latest", "mistral", "openai-chat", input=("text",))
MAGISTRAL: Final = get_model("mistral/magistral-medium-latest")
DEEPSEEK: Final = get_model("deepseek/deepseek-v4-pro")
KIMI: Final = get_model("moonshotai/kimi-k3")
GLM: Final = get_model("zai/glm-5.2")
MINIMAX: Final = get_model("minimax/MiniMax-M3")
QWEN: Final = Model("qwen3-max", "alibaba", "openai-chat", reasoning=True, input=("text",))
GROQ: Final = get_model("groq/openai/gpt-oss-120b")
GROQ_VISION: Final = get_model("groq/qwen/qwen3.6-27b")
NVIDIA: Final = get_model("nvidia/nvidia/nemotron-3-ultra-550b-a55b")
COMMAND: Final = get_model("cohere/command-a-03-2025")
BEDROCK_SONNET: Final = get_model("amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
BEDROCK_NOVA: Final = get_model("amazon-bedrock/amazon.nova-pro-v1:0")
BEDROCK_DEEPSEEK: Final = get_model("amazon-bedrock/deepseek.v3.2")
BEDROCK_OSS: Final = get_model("amazon-bedrock/openai.gpt-oss-120b-1:0")
BEDROCK_KIMI: Final = get_model("amazon-bedrock/moonshot.kimi-k2-thinking")
BEDROCK_GLM: Final = get_model("amazon-bedrock/zai.glm-4.7")
VERTEX_SONNET: Final = Model("claude-sonnet-4-5@20250929", "google-vertex", "anthropic-messages", reasoning=True)
OLLAMA: Final = Model("qwen3-vl", "ollama", "ollama-chat")
LLAMA_CPP: Final = Model("gpt-oss-20b", "llama.cpp", "openai-chat", reasoning=True)
NIM_MISTRAL: Final = Model("mistralai/mistral-small-4-119b-2603", "nvidia", "openai-chat", input=("text",))
"""Refuses a user turn after a tool result, which Mistral's own service accepts."""
VLLM_MISTRAL: Final = Model("mistralai/Mistral-7B-Instruct-v0.3", "vllm", "openai-chat", input=("text",))
PERPLEXITY: Final = Model("sonar", "perplexity", "openai-chat", input=("text",))
EDITOR: Final = Model("gpt-5", "vscode", "vscode-lm")
PLAIN: Final = Model("any", "plain-text", "plain-text", input=("text",))

TARGETS: Final[Mapping[str, Model]] = {
    "old Claude": SONNET,
    "new Claude": FABLE,
    "Claude at Bedrock": BEDROCK_SONNET,
    "GPT over Responses": GPT,
    "GPT over chat": GPT_CHAT,
    "a GPT that does not reason": GPT_4O,
    "Gemini 3": GEMINI,
    "Gemini 2": GEMINI_2,
    "Mistral": MISTRAL,
    "Magistral": MAGISTRAL,
    "DeepSeek": DEEPSEEK,
    "Kimi": KIMI,
    "GLM": GLM,
    "MiniMax": MINIMAX,
    "Groq": GROQ,
    "Nova at Bedrock": BEDROCK_NOVA,
    "gpt-oss at Bedrock": BEDROCK_OSS,
    "Ollama": OLLAMA,
    "Mistral at vLLM": VLLM_MISTRAL,
    "the editor": EDITOR,
}
"""One model of every kind that supports tools; for cases that apply to all."""

TEXTS: Final = Texts()
READ: Final = ToolDefinition(name="read", description="", parameters={"type": "object", "properties": {}})
"""The default tool of calls."""
PNG: Final = "iVBORw0KGgoAAAANSUhEUg=="

# -- messages ----------------------------------------------------------------------------------------------------------


def user(*content: str | UserContent, timestamp: int | None = None) -> UserMessage:
    return UserMessage.of(*content, timestamp=timestamp)


def system(*content: str) -> SystemMessage:
    return SystemMessage.of(*content)


def assistant(
    model: Model,
    *content: str | AssistantContent,
    stop: str | None = None,
    raw_stop: str | None = None,
    error: str | None = None,
    answered_by: str | None = None,
    extra: Extra | None = None,
) -> AssistantMessage:
    """Give an assistant turn of this model; it stopped for its tools if it calls any."""
    pieces = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content)
    calls = any(piece.kind == "toolCall" for piece in pieces)
    return AssistantMessage(
        content=pieces,
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
        stop_reason=StopReason(stop or ("toolUse" if calls else "stop")),
        raw_stop_reason=raw_stop,
        error_message=error,
        response_model=answered_by,
        extra=extra,
    )


def text(
    words: str, signature: str | None = None, *, cache_mark: CacheMark | None = None, extra: Extra | None = None
) -> TextContent:
    return TextContent(text=words, text_signature=signature, cache_mark=cache_mark, extra=extra)


def thinking(words: str, signature: str | None = None) -> ThinkingContent:
    return ThinkingContent(thinking=words, thinking_signature=signature)


def redacted(signature: str | None, words: str = "") -> ThinkingContent:
    return ThinkingContent(thinking=words, thinking_signature=signature, redacted=True)


def call(
    call_id: str,
    name: str = "read",
    *,
    signature: str | None = None,
    original: str | None = None,
    extra: Extra | None = None,
    **arguments: object,
) -> ToolCall:
    """Call a tool; `original` is the provider's JSON text of the arguments."""
    return ToolCall(
        id=call_id, name=name, arguments=arguments, arguments_text=original, thought_signature=signature, extra=extra
    )


def call_with(
    call_id: str, arguments: Mapping[str, object], name: str = "read", *, signature: str | None = None
) -> ToolCall:
    """Call a tool with arguments whose names are not Python identifiers."""
    return ToolCall(id=call_id, name=name, arguments=arguments, thought_signature=signature)


def result(
    call_id: str, *content: str | ToolResultContent, name: str = "read", error: bool = False
) -> ToolResultMessage:
    pieces = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content)
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=pieces, is_error=error)


def missing(call_id: str, name: str = "read", words: str = TEXTS.missing_result) -> ToolResultMessage:
    """Give the result that is inserted for a missing one."""
    return result(call_id, words, name=name, error=True)


def image(data: str | None = PNG, *, url: str | None = None, mime: str | None = "image/png") -> ImageContent:
    return ImageContent(data=None if url else data, url=url, mime_type=None if url else mime)


def file(
    data: str | None = "JVBERi0xLjcK",
    *,
    mime: str = "application/pdf",
    file_id: str | None = None,
    url: str | None = None,
    name: str | None = None,
) -> FileContent:
    return FileContent(data=None if file_id or url else data, file_id=file_id, url=url, mime_type=mime, name=name)


def native(protocol: str, block: Mapping[str, object], *fallback: str | FallbackContent) -> NativeContent:
    pieces = tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in fallback)
    return NativeContent(protocol=protocol, block=block, fallback=pieces)


def conversation(
    *messages: Message, system_prompt: str | tuple[TextContent, ...] | None = None, tools: tuple[Tool, ...] = ()
) -> Context:
    return Context(messages=messages, system_prompt=system_prompt, tools=tools)


def sanitised(call_id: str, _model: Model, _source: AssistantMessage) -> str:
    """Normalise an id as pi-ai does for Anthropic: replace illegal characters by `_`, and truncate."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in call_id)[:64]


# -- checks of a projection --------------------------------------------------------------------------------------------


def as_text(value: object) -> str:
    """Give a whole value as one text, to search for what must not be in it."""
    return repr(msgspec.to_builtins(value))


def calls_of(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    return tuple(piece for message in messages if message.role == "assistant" for piece in message.tool_calls())


def results_of(messages: Iterable[Message]) -> tuple[ToolResultMessage, ...]:
    return tuple(message for message in messages if message.role == "toolResult")


def is_paired(messages: Sequence[Message]) -> bool:
    """Return whether one result per call directly follows each batch, in call order, and no result is elsewhere."""
    wanted: list[str] = []
    for message in messages:
        if message.role == "toolResult":
            if not wanted or wanted.pop(0) != message.tool_call_id:
                return False
            continue
        if wanted:
            return False
        if message.role == "assistant":
            wanted = [piece.id for piece in message.tool_calls()]
            if len(set(wanted)) != len(wanted):
                return False
    return not wanted


def signatures_of(messages: Iterable[Message]) -> set[str]:
    """Every signature in the messages, of whatever kind."""
    signatures: set[str | None] = set()
    for message in messages:
        for piece in message.content:
            match piece.kind:
                case "text":
                    signatures.add(piece.text_signature)
                case "thinking":
                    signatures.add(piece.thinking_signature)
                case "toolCall":
                    signatures.add(piece.thought_signature)
                case _:
                    continue
    return {signature for signature in signatures if signature is not None}


def changes_of(report: Report) -> list[str]:
    """Give each change as `code at path`."""
    return [f"{change.code} at {render_path(change.path)}" for change in report.changes]
