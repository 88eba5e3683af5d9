"""Hypothesis strategies for conversations: everything a program can store, whether or not a provider would take it.

`storable_contexts()` is the widest: lone surrogates, big integers, reused ids, odd names, content in any order that the
types allow. What is built here has tuples where tuples belong, so that `load(dump(x)) == x` can be asked of it; the two
halves of one character never stand side by side, because JSON joins them. Each function gives the same strategy object
whenever it is called with the same arguments: building and validating them anew took a second of every collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, TypeVar

from hypothesis import strategies as st

from segue.conversation.content import (
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
    UserContent,
)
from segue.conversation.context import Context, NativeTool, Origin, Summary, Tool, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    Message,
    Sent,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)
from segue.protocols.registry import PROTOCOLS as REGISTERED

PROTOCOLS: Final[tuple[str, ...]] = tuple(REGISTERED)

_ODD_TEXTS: Final = (
    "",
    " ",
    "\n",
    "\x00\x1f\x7f",
    "é",
    "\u2028",
    "😀",
    "\ud83d",
    "\ude00",
    "\ufeff",
    '"\\/',
    "</think>",
)


def _is_whole(text: str) -> bool:
    """Two halves of one character side by side come back as that character: the only thing that is not stored."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return joined == text


@cache
def texts(*, max_size: int = 40) -> st.SearchStrategy[str]:
    """Any text: empty, blank, control characters, lone surrogates."""
    any_character = st.characters(categories=None)
    return st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=max_size),
        st.text(any_character, max_size=max_size).filter(_is_whole),
        st.sampled_from(_ODD_TEXTS),
    )


@cache
def words() -> st.SearchStrategy[str]:
    """Names and ids as providers and programs make them, and some that they do not."""
    return st.one_of(
        st.sampled_from(("a", "b", "call_1", "toolu_01AbC", "x|fc_1", "get weather", "")), texts(max_size=12)
    )


@cache
def integers() -> st.SearchStrategy[int]:
    """Integers of every size that JSON is asked to keep."""
    return st.one_of(st.integers(-5, 5), st.integers(-(2**70), 2**70), st.just(10**4299))


@cache
def numbers() -> st.SearchStrategy[float]:
    """Every float that is a number, minus zero among them."""
    return st.floats(allow_nan=False, allow_infinity=False)


@cache
def json_values(*, max_leaves: int = 8) -> st.SearchStrategy[object]:
    """Any JSON value, not deep."""
    leaves = st.one_of(st.none(), st.booleans(), integers(), numbers(), texts())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words(), inner, max_size=3)),
        max_leaves=max_leaves,
    )


@cache
def json_objects(*, max_leaves: int = 8) -> st.SearchStrategy[Mapping[str, object]]:
    """A JSON object."""
    return st.dictionaries(words(), json_values(max_leaves=max_leaves), max_size=3)


@cache
def extras() -> st.SearchStrategy[Extra | None]:
    """What a wire or a stored file said besides; mostly nothing."""
    keys = st.sampled_from([*PROTOCOLS, "stored"])
    return st.one_of(st.none(), st.none(), st.dictionaries(keys, json_objects(max_leaves=3), max_size=2))


_Any = TypeVar("_Any")


def _maybe(strategy: st.SearchStrategy[_Any]) -> st.SearchStrategy[_Any | None]:
    return st.one_of(st.none(), strategy)


@cache
def timestamps() -> st.SearchStrategy[int | None]:
    """Unix milliseconds, or nothing."""
    return st.one_of(st.none(), st.integers(0, 2**53))


@cache
def base64_data() -> st.SearchStrategy[str]:
    """Standard base64."""
    return st.sampled_from(("", "AAAA", "iVBORw0KGgo=", "/+8="))


@cache
def cache_marks() -> st.SearchStrategy[CacheMark | None]:
    """Cache marks; mostly none."""
    return st.one_of(
        st.none(), st.none(), st.builds(CacheMark, ttl=_maybe(st.sampled_from(("5m", "1h"))), extra=extras())
    )


@cache
def text_contents() -> st.SearchStrategy[TextContent]:
    """Texts."""
    return st.builds(
        TextContent,
        text=texts(),
        text_signature=_maybe(words()),
        phase=st.sampled_from((None, None, "commentary", "final_answer")),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def image_contents() -> st.SearchStrategy[ImageContent]:
    """Pictures, by data, by address, or by neither."""
    return st.builds(
        ImageContent,
        data=_maybe(base64_data()),
        url=_maybe(st.just("https://example.org/a.png")),
        mime_type=_maybe(st.sampled_from(("image/png", "image/jpeg", "image/svg+xml"))),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def file_contents() -> st.SearchStrategy[FileContent]:
    """Documents, sound and film."""
    return st.builds(
        FileContent,
        data=_maybe(base64_data()),
        url=_maybe(st.just("https://example.org/a.pdf")),
        file_id=_maybe(words()),
        mime_type=_maybe(st.sampled_from(("application/pdf", "audio/wav", "video/mp4", "text/plain"))),
        name=_maybe(texts(max_size=12)),
        context=_maybe(texts(max_size=12)),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def thinking_contents() -> st.SearchStrategy[ThinkingContent]:
    """Reasoning: open, sealed, blank, redacted."""
    return st.builds(
        ThinkingContent,
        thinking=texts(),
        thinking_signature=_maybe(words()),
        redacted=st.booleans(),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def tool_calls() -> st.SearchStrategy[ToolCall]:
    """Calls, with ids that may be used again."""
    return st.builds(
        ToolCall,
        id=words(),
        name=words(),
        arguments=json_objects(),
        arguments_text=_maybe(texts()),
        thought_signature=_maybe(words()),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def fallback_contents() -> st.SearchStrategy[FallbackContent]:
    """What other targets get in place of native content."""
    return st.one_of(text_contents(), image_contents(), file_contents())


@cache
def native_contents() -> st.SearchStrategy[NativeContent]:
    """Blocks of one protocol alone."""
    return st.builds(
        NativeContent,
        protocol=st.sampled_from(PROTOCOLS),
        block=json_objects(),
        fallback=st.lists(fallback_contents(), max_size=2).map(tuple),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def user_contents() -> st.SearchStrategy[UserContent]:
    """What may stand in a user message or a tool result."""
    return st.one_of(text_contents(), image_contents(), file_contents(), native_contents())


@cache
def assistant_contents() -> st.SearchStrategy[AssistantContent]:
    """What may stand in an assistant message."""
    return st.one_of(text_contents(), thinking_contents(), tool_calls(), native_contents())


@cache
def system_contents() -> st.SearchStrategy[SystemContent]:
    """What may stand in a system message or prompt."""
    return st.one_of(text_contents(), native_contents())


@cache
def usages() -> st.SearchStrategy[Usage | None]:
    """Tokens and what they cost."""
    cost = st.builds(
        UsageCost,
        input=numbers(),
        output=numbers(),
        cache_read=numbers(),
        cache_write=numbers(),
        total=numbers(),
        extra=extras(),
    )
    count = st.integers(0, 2**40)
    usage = st.builds(
        Usage,
        input=count,
        output=count,
        cache_read=count,
        cache_write=count,
        reasoning=count,
        total_tokens=count,
        cost=st.one_of(st.none(), cost),
        extra=extras(),
    )
    return st.one_of(st.none(), usage)


@cache
def diagnostics() -> st.SearchStrategy[Diagnostic]:
    """Remarks on a turn."""
    return st.builds(
        Diagnostic,
        type=words(),
        message=_maybe(texts()),
        details=st.one_of(st.none(), json_objects(max_leaves=3)),
        timestamp=timestamps(),
        extra=extras(),
    )


@cache
def sents() -> st.SearchStrategy[Sent]:
    """What replies were made after."""
    marks = st.lists(words(), max_size=2).map(tuple)
    return st.builds(
        Sent,
        system=words(),
        tools=words(),
        messages=words(),
        before=_maybe(words()),
        blocks=marks,
        accepted=marks,
        dropped=marks,
        account=_maybe(words()),
        key=_maybe(words()),
        extra=extras(),
    )


@cache
def user_messages() -> st.SearchStrategy[UserMessage]:
    """The user's turns."""
    return st.builds(
        UserMessage, content=st.lists(user_contents(), max_size=3).map(tuple), timestamp=timestamps(), extra=extras()
    )


@cache
def assistant_messages() -> st.SearchStrategy[AssistantMessage]:
    """A model's turns: finished, failed, cut short."""
    return st.builds(
        AssistantMessage,
        content=st.lists(assistant_contents(), max_size=4).map(tuple),
        protocol=st.sampled_from((*PROTOCOLS, "")),
        provider=st.sampled_from(("anthropic", "openai", "google", "amazon-bedrock", "somebody", "")),
        model=st.sampled_from(("claude-sonnet-4-5", "gpt-5.2", "gemini-3-pro", "m", "")),
        response_model=_maybe(words()),
        response_id=_maybe(words()),
        usage=usages(),
        stop_reason=st.sampled_from(StopReason),
        raw_stop_reason=_maybe(words()),
        error_message=_maybe(texts()),
        diagnostics=st.lists(diagnostics(), max_size=2).map(tuple),
        timestamp=timestamps(),
        prefix=st.booleans(),
        sent=_maybe(sents()),
        extra=extras(),
    )


@cache
def tool_result_messages() -> st.SearchStrategy[ToolResultMessage]:
    """What tools answered."""
    return st.builds(
        ToolResultMessage,
        tool_call_id=words(),
        tool_name=words(),
        content=st.lists(user_contents(), max_size=3).map(tuple),
        is_error=st.booleans(),
        details=json_values(),
        timestamp=timestamps(),
        cache_mark=cache_marks(),
        extra=extras(),
    )


@cache
def system_messages() -> st.SearchStrategy[SystemMessage]:
    """Instructions in mid-conversation."""
    return st.builds(SystemMessage, content=st.lists(system_contents(), max_size=2).map(tuple), extra=extras())


@cache
def messages() -> st.SearchStrategy[Message]:
    """A message of any role."""
    return st.one_of(user_messages(), assistant_messages(), tool_result_messages(), system_messages())


@cache
def tools() -> st.SearchStrategy[Tool]:
    """Tools of the application's and of the provider's."""
    function = st.builds(
        ToolDefinition,
        name=words(),
        description=texts(),
        parameters=json_objects(),
        strict=st.one_of(st.none(), st.booleans()),
        cache_mark=cache_marks(),
        extra=extras(),
    )
    native = st.builds(
        NativeTool,
        protocol=st.sampled_from(PROTOCOLS),
        definition=json_objects(max_leaves=3),
        cache_mark=cache_marks(),
        extra=extras(),
    )
    return st.one_of(function, native)


@cache
def summaries() -> st.SearchStrategy[Summary]:
    """A summary, of more messages than there are at times."""
    origin = st.builds(Origin, protocol=words(), provider=words(), model=words(), extra=extras())
    return st.builds(
        Summary,
        covers=st.integers(min_value=0, max_value=10),
        text=texts(),
        origin=st.one_of(st.none(), origin),
        timestamp=timestamps(),
        extra=extras(),
    )


@cache
def storable_contexts(*, max_messages: int = 4) -> st.SearchStrategy[Context]:
    """Any conversation that can be stored."""
    prompt = st.one_of(st.none(), texts(), st.lists(system_contents(), max_size=2).map(tuple))
    return st.builds(
        Context,
        system_prompt=prompt,
        messages=st.lists(messages(), max_size=max_messages).map(tuple),
        tools=st.lists(tools(), max_size=2).map(tuple),
        summaries=st.lists(summaries(), max_size=2).map(tuple),
        extra=extras(),
    )
