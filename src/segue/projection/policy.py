"""Choices of the caller: how thinking of other models is sent, how broken histories are repaired, and with which texts.

`Texts` holds every text that segue inserts into a conversation. Each is used only where the rules of the target require
it, is reported, and can be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, Literal, TypeAlias, cast, final, get_args

import msgspec

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.messages import AssistantMessage
from segue.counting.counter import TextCounter
from segue.errors import SettingsError
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

ReasoningPolicy: TypeAlias = Literal["auto", "text", "drop", "native"]
ServerFit: TypeAlias = Literal["no", "clear", "compact"]
InstructionsPolicy: TypeAlias = Literal["replace", "append"]
TrailingCalls: TypeAlias = Literal["close", "open"]
OrphanResults: TypeAlias = Literal["drop", "text"]
UserNames: TypeAlias = Literal["text", "drop"]
DuplicateResults: TypeAlias = Literal["first", "last"]
SameModel: TypeAlias = Callable[[AssistantMessage, Model], bool]


_HALF: Final = re.compile("[\ud800-\udfff]")
_ALLOWED_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning": get_args(ReasoningPolicy),
    "instructions": get_args(InstructionsPolicy),
    "trailing_calls": get_args(TrailingCalls),
    "orphan_results": get_args(OrphanResults),
    "user_names": get_args(UserNames),
    "duplicate_results": get_args(DuplicateResults),
}
_REFUSABLE: Final = frozenset(map(str, (*Loss, *ChangeCode)))
_BRACES: Final = re.compile(r"\{(\w+)\}")


@final
class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """The texts that segue inserts. Names in braces are replaced by values, as the defaults show.

    Raises:
        SettingsError: a text is blank or holds half a surrogate pair, so that providers would refuse it.
    """

    missing_result: str = "No result provided"
    image_omitted: str = "(image omitted: model does not support images)"
    tool_image_omitted: str = "(tool image omitted: model does not support images)"
    file_omitted: str = "({kind} omitted: model does not support {kind} input)"
    tool_file_omitted: str = "(tool {kind} omitted: model does not support {kind} input)"
    media_too_large: str = "({kind} omitted: too large for this model)"
    media_evicted: str = "({kind} omitted: too many in this conversation)"
    media_cut: str = "({kind} omitted to fit the context window)"
    media_unreachable: str = "({kind} omitted: not available to this model)"
    media_flattened: str = "[{kind}: {mime}]"
    media_moved: str = "(see attached media)"
    tool_media: str = "Attached media from tool results:"
    assistant_media: str = "(media attached to the next message)"
    orphan_result: str = "[Result of tool {name}]\n{text}"
    call: str = "[Tool Use: {name}] {arguments}"
    result: str = "[Tool Result: {name}]\n{text}"
    error_result: str = "[tool error] {text}"
    empty_result: str = "(no tool output)"
    empty_turn: str = "(no visible reply)"
    file_caption: str = "(file attached)"
    user_name: str = "{name}: {text}"
    system_message: str = "<system>\n{text}\n</system>"
    result_cut: str = "\n[{count} characters omitted to fit the context window]\n"
    turns_dropped: str = "(earlier messages omitted here to fit the context window: {count})"
    facts: str = "\n<facts>\n{text}\n</facts>"
    excerpt: str = "\n<excerpt>\n{text}\n</excerpt>"
    pinned: str = "\n<pinned>\n{text}\n</pinned>"
    user_words: str = "\n<user>\n{text}\n</user>"
    summary: str = "(earlier messages omitted here to fit the context window: {count}; their summary follows)\n{text}"
    instructions_replaced: str = "These instructions replace all earlier ones:\n{text}"
    instructions_removed: str = "The earlier instructions no longer apply."
    first_turn: str = "(continue the conversation)"
    last_turn: str = "(continue)"
    bridge: str = "I have processed the tool results."
    sources: str = "[sources]\n{text}"
    tool_gone: str = "(no longer available)"
    output_schema: str = "Reply with JSON and nothing else. It has to fit this JSON schema:\n{schema}"
    output_function: str = "Takes your answer. Call it to answer."
    output_again: str = "Your reply does not fit: {reason}\nReply again, corrected and complete, in the same format."
    call_signature: str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    """Base64 of `skip_thought_signature_validator`: Gemini's placeholder for calls of other models (Google's
    documentation of thought signatures; accepted in recorded traffic, 2026-11)."""
    thought_signature: str = "skip_thought_signature_validator"
    """The same where thinking before the call is signed: Google's Interactions API (live calls of a public adapter,
    read 2026-11-16)."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            text = cast("str", getattr(self, name))
            if not text.strip() or _HALF.search(text):
                fault = "half a surrogate pair" if text.strip() else "no visible characters"
                message = f"Texts({name}={text!r}): the text has {fault} and would be refused; pass another text"
                raise SettingsError(message, key=name)


@final
class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation is cut that does not fit the window of the target. The fractions are of the input limit.

    Above `high`, one cut brings a request down to `low`; so cuts are rare, and prompt caches stay valid in between. By
    default `low` is between 0.33 and 0.6, by what the target charges for reading from its cache and writing to it. If
    the target binds reasoning to its prefix, a cut loses that too, and goes down further, at most to 0.25. The newest
    part, `keep`, is shortened last. `reserve` are the tokens kept free for the reply; by default an eighth of the
    window, at most 16,384. A shortened result keeps its first `head` and its last `tail` characters. `window` replaces
    the window of the model, in tokens.

    `server` leaves it to the provider above `high`, where it can do that: it clears old tool results (`clear`) or
    summarises the beginning (`compact`), and reasoning stays valid. Then segue cuts only what does not fit at all, and
    elsewhere as without it.

    Raises:
        SettingsError: a field has a value that it does not accept.
    """

    high: float = 0.9
    low: float | None = None
    keep: float = 0.15
    reserve: int | None = None
    head: int = 600
    tail: int = 300
    window: int | None = None
    server: ServerFit = "no"

    def __post_init__(self) -> None:
        low = self.keep if self.low is None else self.low
        if not 0 < self.keep <= low < self.high <= 1:
            message = (
                f"Fit(high={self.high}, low={self.low}, keep={self.keep}): expected 0 < keep <= low < high <= 1, as"
                " fractions of the input limit"
            )
            raise SettingsError(message, key="fit")
        if self.server not in get_args(ServerFit):
            message = f"Fit(server={self.server!r}): expected one of {', '.join(get_args(ServerFit))}"
            raise SettingsError(message, key="server")
        for name in ("head", "tail", "reserve", "window"):
            value = cast("int | None", getattr(self, name))
            if value is not None and value < (1 if name == "window" else 0):
                raise SettingsError(f"Fit({name}={value}): expected a number of at least 0", key=name)


@final
class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How the caller wants conversations projected. The defaults send as much as the target supports.

    `instructions` says what a changed system prompt or tool list does: it replaces the earlier one, or, where the
    target accepts that, is appended after the newest message, so that everything before it stays valid and cached.
    `user_names` says what becomes of the name of a user where the target has no field for it: the text begins with it,
    or it is removed.
    `media` maps a URL or a provider's file id to the content to send instead. `stores` maps the id of a vector store or
    document library to the target's own, for tools that search in files. `same_model` may return True for messages
    that the target wrote although segue cannot know it. `refuse` holds losses or codes that raise `ProjectionRefused`.
    `routers` are the full names, in lower case, of ids under which different models answer, in addition to those that
    segue and installed packages know; `prepare`, `convert` and the client add those of their `catalogue`.
    `fit` says how a conversation is cut that does not fit the window; None sends all of it. `counter` counts the tokens
    of a text in place of segue's estimate; it has to return the same number for the same text.

    Raises:
        SettingsError: a field has a value that it does not accept.
    """

    reasoning: ReasoningPolicy = "auto"
    instructions: InstructionsPolicy = "replace"
    trailing_calls: TrailingCalls = "close"
    orphan_results: OrphanResults = "drop"
    duplicate_results: DuplicateResults = "first"
    user_names: UserNames = "text"
    texts: Texts = Texts()
    media: Mapping[str, ImageContent | FileContent] = msgspec.field(
        default_factory=dict[str, ImageContent | FileContent]
    )
    stores: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    refuse: frozenset[Loss | ChangeCode] = frozenset()
    same_model: SameModel | None = None
    routers: frozenset[str] = frozenset()
    fit: Fit | None = Fit()
    counter: TextCounter | None = None

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED_VALUES.items():
            _require(cast("str", getattr(self, name)), allowed, name)
        for value in self.refuse:
            _require(value, _REFUSABLE, "refuse")


def _require(value: str, allowed: Collection[str], field: str) -> None:
    if value not in allowed:
        near = get_close_matches(value, allowed, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(sorted(allowed))}"
        raise SettingsError(f"Policy({field}=...) does not accept {value!r}; {hint}", key=str(value), suggestions=near)


def fill(template: str, **values: str) -> str:
    """Replace names in braces by values; unknown names are left unchanged."""
    parts = list(_split(template))
    for position in range(1, len(parts), 2):
        parts[position] = values.get(parts[position], f"{{{parts[position]}}}")
    return "".join(parts)


@lru_cache(maxsize=16)
def template_pattern(*templates: str) -> re.Pattern[str]:
    """Make a pattern of the texts that `fill` makes from any of these templates."""
    parts = [[*_split(template)] for template in templates]
    for pieces in parts:
        pieces[::2] = map(re.escape, pieces[::2])
        pieces[1::2] = [".*"] * (len(pieces) // 2)
    return re.compile("|".join(f"(?:{''.join(pieces)})" for pieces in parts), re.DOTALL)


@lru_cache(maxsize=256)
def _split(template: str) -> tuple[str, ...]:
    """Split a text at its braces; every second item is a name."""
    return tuple(_BRACES.split(template))
