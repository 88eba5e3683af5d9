"""A whole conversation, its tools, and the options of one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, cast, final, get_args

import msgspec

from segue.conversation.content import CacheMark, Extra, SystemContent, Value
from segue.conversation.messages import Message, UserMessage
from segue.conversation.shared_options import SharedOptions
from segue.errors import ConversationError

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
CacheRetention: TypeAlias = Literal["none", "short", "long"]
_MESSAGES: Final = frozenset(get_args(Message))
_DECODED: Final = "_decoded"
_BEFORE: Final = "_before"
"""The name under which a `Context` remembers the messages that it was made from."""


class _Tool(Value, frozen=True, kw_only=True, tag_field="type"):
    """The base class of both kinds of tool."""


@final
class ToolDefinition(_Tool, frozen=True, kw_only=True, tag="function"):
    """A tool that the application runs. `parameters` is a JSON schema, passed on unchanged."""

    kind: ClassVar[Literal["function"]] = "function"
    name: str
    description: str = ""
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    strict: bool | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class NativeTool(_Tool, frozen=True, kw_only=True, tag="native"):
    """A tool that the provider runs itself: sent over its own protocol, removed and reported for any other."""

    kind: ClassVar[Literal["native"]] = "native"
    protocol: str
    definition: Mapping[str, Any]
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


Tool: TypeAlias = ToolDefinition | NativeTool


@final
class Origin(Value, frozen=True, kw_only=True):
    """Which model wrote something: over which protocol, at which provider."""

    protocol: str
    provider: str
    model: str
    extra: Extra | None = None


@final
class Summary(Value, frozen=True, kw_only=True, tag_field="type", tag="summary"):
    """What the first `covers` messages of a conversation say, for requests that have to leave them out.

    The messages stay; a target with a window large enough for them never sees the summary. `origin` is the model that
    wrote it, None for a person or a program.
    """

    kind: ClassVar[Literal["summary"]] = "summary"
    covers: Annotated[int, msgspec.Meta(ge=0)]
    text: str
    origin: Origin | None = None
    timestamp: int | None = None
    extra: Extra | None = None


@final
class Context(Value, frozen=True, kw_only=True, dict=True, gc=True):
    """A conversation as it is stored: the system prompt, the messages, the tools, and summaries of older messages.

    It is never changed; every request is made from a projection of it. `pins` are the indexes of messages that no
    request may leave out or shorten: where they do not fit in their place, their text is in the note of the cut.
    """

    # Its `__dict__` is for what projection finds out about the messages and needs again; it is not part of the value.

    system_prompt: str | tuple[SystemContent, ...] | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    summaries: tuple[Summary, ...] = ()
    pins: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    extra: Extra | None = None

    def add(self, *messages: Message | str) -> Context:
        """Return a new conversation with the messages appended; this one is unchanged. A text is a message of the user.

        Raises:
            ConversationError: a value is neither a message nor a text.
        """
        added = tuple([each if type(each) in _MESSAGES else _read_message(each) for each in messages])
        longer = msgspec.structs.replace(self, messages=(*self.messages, *cast("tuple[Message, ...]", added)))
        vars(longer).update(vars(self))
        note_prefix(self.messages, longer)
        return longer

    def add_summary(self, summary: Summary) -> Context:
        """Return a new conversation with the summary appended; this one is unchanged."""
        return msgspec.structs.replace(self, summaries=(*self.summaries, summary))

    def pin(self, *indexes: int) -> Context:
        """Return a new conversation with messages that are never left out; negative indexes count from the end.

        Raises:
            ConversationError: there is no message at an index.
        """
        count = len(self.messages)
        for index in indexes:
            if not -count <= index < count:
                raise ConversationError(f"there is no message {index} to pin; the conversation has {count}, from 0 on")
        return msgspec.structs.replace(self, pins=tuple(sorted({*self.pins, *(at % count for at in indexes)})))

    def _repr_html_(self) -> str:
        """Show the conversation in a notebook."""
        from segue.conversation.pages import render_fragment  # few programs are notebooks

        return render_fragment(self)

    def unpin(self, *indexes: int) -> Context:
        """Return a new conversation without these pins; without an index, with none."""
        removed = {at % len(self.messages) if at < 0 and self.messages else at for at in indexes} or {*self.pins}
        return msgspec.structs.replace(self, pins=tuple(at for at in self.pins if at not in removed))


def note_prefix(messages: tuple[Message, ...], context: Context) -> None:
    """Remember that a conversation begins with these objects."""
    vars(context)[_BEFORE] = messages


def is_known_prefix(messages: tuple[Message, ...], context: Context) -> bool:
    """Whether a conversation is known to begin with these objects, without a look at each of them: see `add`."""
    return messages is context.messages or messages is vars(context).get(_BEFORE)


def note_decoded(context: Context, protocol: str, provider: str, model: str) -> None:
    """Remember the model that a conversation was decoded for, as long as its messages stay the same."""
    vars(context)[_DECODED] = (context.messages, (protocol, provider, model))


def is_decoded(context: Context, protocol: str, provider: str, model: str) -> bool:
    """Whether a conversation is one that was decoded from a request for this model."""
    messages, written_for = vars(context).get(_DECODED, ((), None))
    return messages is context.messages and written_for == (protocol, provider, model)


def _read_message(given: object) -> Message:
    """Read a text as a message of the user."""
    if isinstance(given, str):
        return UserMessage.of(given)
    name = type(given).__name__
    raise ConversationError(f"expected a message or a text, got {name}; write context.add(UserMessage.of(...))")


@final
class Options(Value, frozen=True, kw_only=True):
    """The options of a request. None means that the field is not sent and the provider's default applies.

    `thinking` is a level or a budget in tokens; `off` disables thinking, which differs from not sending the field.
    `tool_choice` is `auto`, `none`, `required` or the name of a tool. `shared` are further options that several wires
    have; `extra` is what only one has.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    thinking: ThinkingLevel | int | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    output_schema: Mapping[str, Any] | None = None
    cache_retention: CacheRetention | None = None
    session_id: str | None = None
    user_id: str | None = None
    stream: bool | None = None
    shared: SharedOptions | None = None
    extra: Extra | None = None


@final
class Prompt(Value, frozen=True, kw_only=True):
    """A decoded request body: the conversation, the options, and the model id.

    `anchored` says that segue itself put a cache mark on a message, and that `Options.cache_retention` asks for the
    others; without it a conversation that has marks gets no more of them. `plain_system` says that the system prompt
    was a string in the requests before, and has to stay one: reasoning is bound to its form.
    """

    context: Context
    options: Options = Options()
    model: str | None = None
    anchored: bool = False
    plain_system: bool = False
