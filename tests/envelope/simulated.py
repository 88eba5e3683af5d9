"""A simulated gateway and simulated clients for the laws about returned state: no network, no clock, one seed.

The client knows its own protocol only. A reply is attached, encoded as a stream of that protocol, decoded as the client
would, kept, dropped or changed as the client does, sent back as a request body of the protocol, and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from msgspec.structs import replace

from segue.calls.replies import stream_encoder
from segue.conversation.content import (
    AssistantContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, Prompt, ToolDefinition
from segue.conversation.events import Event, NativeEvent, ThinkingEnd
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from segue.conversation.replayed import message_events
from segue.envelope.attaching import Attachment
from segue.envelope.conversation import RestoredHistory, find_states, restore
from segue.envelope.envelopes import Envelopes
from segue.envelope.keys import keys_of_reply
from segue.envelope.state import State
from segue.errors import EncodeError
from segue.models.model import Model
from segue.protocols.api import decode_request, encode_request, stream_decoder
from segue.protocols.registry import get_protocol

KEY: Final = b"0123456789abcdef0123456789abcdef"
INBOUND: Final = ("anthropic-messages", "openai-responses", "google-genai", "openai-chat", "ollama-chat")
TARGETS: Final = (
    Model("claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True),
    Model("gpt-5.4", "openai", "openai-responses", reasoning=True),
    Model("gemini-3.1-pro-preview", "google", "google-genai", reasoning=True),
    Model("deepseek/deepseek-v4", "openrouter", "openai-chat", reasoning=True),
)
TOOL: Final = ToolDefinition(
    name="read_file", parameters={"type": "object", "properties": {"path": {"type": "string"}}}
)
_WORDS: Final = ("alpha", "beta", "gamma", "délta", "漢字", "omega", "  ", "\n", "x")


class Store:
    """States by their keys, the newest first."""

    def __init__(self) -> None:
        self.states: dict[str, list[State]] = {}

    def put(self, keys: Sequence[str], state: State) -> None:
        for key in keys:
            known = self.states.setdefault(key, [])
            if state not in known:
                known.insert(0, state)


class Gateway:
    """Attaches and restores, with a store or without one."""

    def __init__(self, dice: Random, *, has_store: bool = True, tenant: str = "t") -> None:
        self.dice = dice
        self.store = Store() if has_store else None
        self.envelopes = Envelopes([KEY])
        self.tenant = tenant

    def reply(
        self, protocol: str, asked: Context, message: AssistantMessage, model: Model
    ) -> tuple[list[Event], Attachment]:
        """Give the events that the client of a protocol gets of a reply."""
        attachment = Attachment(
            get_protocol(protocol).state_slots,
            model,
            None,
            write=lambda state: self.envelopes.write(state, self.tenant),
            new_id=lambda: f"{self.dice.getrandbits(128):032x}"[:22],
            has_store=self.store is not None,
        )
        events = message_events(message)
        for batch in _batches(events, self.dice):
            attachment.look_ahead(batch)
            for event in batch:
                self._written = [*getattr(self, "_written", []), *attachment.feed(event, show(event))]
        written, self._written = self._written, []
        assert attachment.state is not None
        assert attachment.seen is not None
        if self.store is not None:
            self.store.put(keys_of_reply(asked.messages, attachment.seen, self.tenant), attachment.state)
        return written, attachment

    def read(self, context: Context, author: AssistantMessage | None = None) -> RestoredHistory:
        found = find_states(context, self.envelopes, self.tenant)
        stored = {} if self.store is None else {key: self.store.states.get(key, []) for key in found.wanted()}
        return restore(context, found, stored, author=author)


def _batches(events: list[Event], dice: Random) -> list[list[Event]]:
    batches: list[list[Event]] = [[]]
    for event in events:
        if dice.random() < 0.3:
            batches.append([])
        batches[-1].append(event)
    return batches


def show(event: Event) -> list[Event]:
    """Give what a client may see of an event: no signature, and no thinking that has only one."""
    if isinstance(event, ThinkingEnd):
        if not event.content.thinking:
            return []
        return [replace(event, content=replace(event.content, thinking_signature=None, redacted=False, extra=None))]
    if isinstance(event, NativeEvent):
        return []
    return [event]


def make_reply(dice: Random, model: Model, number: int) -> AssistantMessage:
    """Make a reply of a model. Every opaque value names the model and the reply."""

    def mark(kind: str) -> str:
        return f"SIG-{model.provider}-{model.id}-{kind}-{number}-" + "x" * dice.randint(0, 60)

    def words(least: int = 1) -> str:
        return " ".join(dice.choice(_WORDS) for _ in range(dice.randint(least, 6))) + str(number)

    content: list[AssistantContent] = []
    for _ in range(dice.randint(0, 2)):
        kind = dice.random()
        if kind < 0.5:
            content.append(
                ThinkingContent(
                    thinking="thinking about it, step by step: " + words(), thinking_signature=mark("think")
                )
            )
        elif kind < 0.8:
            content.append(ThinkingContent(thinking="", thinking_signature=mark("redacted"), redacted=True))
        else:
            content.append(
                NativeContent(protocol=model.protocol, block={"type": "server_thing", "data": mark("native")})
            )
        if dice.random() < 0.3:
            content.append(TextContent(text=words()))
    if dice.random() < 0.8 or not content:
        signature = mark("text") if model.protocol == "google-genai" and dice.random() < 0.5 else None
        content.append(TextContent(text=words(), text_signature=signature))
    calls = dice.randint(0, 2)
    for at in range(calls):
        signed = model.protocol == "google-genai" and at == 0
        content.append(
            ToolCall(
                id=dice.choice((f"call_{at}", f"functions.read:{at}", f"toolu_{dice.getrandbits(60):x}")),
                name="read_file",
                arguments={"path": words(), "n": dice.choice((1, 1.0, 2.5)), "b": {"z": 1, "a": [True, None]}},
                thought_signature=mark("call") if signed else None,
            )
        )
    if not calls and all(piece.kind != "text" for piece in content):
        content.append(TextContent(text=words()))
    return AssistantMessage(
        content=tuple(content),
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
        response_model=model.id + "-2026",
        response_id=f"resp_{number}",
        usage=Usage(input=10, output=5, total_tokens=15),
        stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
        timestamp=1_700_000_000_000 + number,
    )


def decode_as_client(protocol: str, events: Sequence[Event]) -> AssistantMessage:
    """Write events as a stream of the protocol, and read it as its clients do."""
    encoder = stream_encoder(protocol=protocol, model=replace(get_protocol(protocol).example))
    decoder = stream_decoder(protocol=protocol, model=get_protocol(protocol).example)
    for event in events:
        for frame in encoder.feed(event):
            decoder.feed(frame)
    for frame in encoder.finish():
        decoder.feed(frame)
    decoder.finish()
    return decoder.message


def through_wire(protocol: str, context: Context) -> Context:
    """Send a history as a request body of the protocol, and read it."""
    model = get_protocol(protocol).example
    try:
        body = encode_request(Prompt(context=context), protocol=protocol, model=model)
    except EncodeError:
        body = encode_request(Prompt(context=_signed_only(context)), protocol=protocol, model=model)
    return decode_request(body, protocol=protocol, model=model).context


def _signed_only(context: Context) -> Context:
    """Remove unsigned thinking, as clients of the protocol do: their provider refuses it."""
    messages = [
        replace(
            message,
            content=tuple(p for p in message.content if p.kind != "thinking" or p.thinking_signature),
        )
        if message.role == "assistant"
        else message
        for message in context.messages
    ]
    return replace(context, messages=tuple(messages))


def results_of(message: AssistantMessage, number: int) -> list[Message]:
    """Answer the calls of a turn."""
    return [
        ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text=f"file {number} {at}"),))
        for at, call in enumerate(message.tool_calls())
    ]


def ask(number: int) -> UserMessage:
    """Ask the next question."""
    return UserMessage.of(f"question {number}")


# -- what clients do to a turn -----------------------------------------------------------------------------------------

Habit = Callable[[AssistantMessage, Random], AssistantMessage]


def keep(turn: AssistantMessage, dice: Random) -> AssistantMessage:
    return turn


def drop_signatures(turn: AssistantMessage, dice: Random) -> AssistantMessage:
    content = tuple(
        replace(p, text_signature=None)
        if p.kind == "text"
        else replace(p, thought_signature=None)
        if p.kind == "toolCall"
        else p
        for p in turn.content
        if p.kind != "thinking"
    )
    return replace(turn, content=content, extra=None)


def damage(turn: AssistantMessage, dice: Random) -> AssistantMessage:
    """Change a character in every signature."""

    def spoil(text: str | None) -> str | None:
        if not text or len(text) < 60:
            return text
        at = dice.randrange(20, len(text) - 20)
        return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]

    content: list[AssistantContent] = []
    for p in turn.content:
        match p.kind:
            case "thinking":
                content.append(replace(p, thinking_signature=spoil(p.thinking_signature)))
            case "text":
                content.append(replace(p, text_signature=spoil(p.text_signature)))
            case "toolCall":
                content.append(replace(p, thought_signature=spoil(p.thought_signature)))
            case "native":
                content.append(p)
    return replace(turn, content=tuple(content))


def edit_text(turn: AssistantMessage, dice: Random) -> AssistantMessage:
    return replace(
        turn,
        content=tuple(
            replace(p, text=p.text + " (edited)") if p.kind == "text" and p.text else p for p in turn.content
        ),
    )


def thinking_as_text(turn: AssistantMessage, dice: Random) -> AssistantMessage:
    content = tuple(
        TextContent(text=p.thinking) if p.kind == "thinking" else p
        for p in turn.content
        if p.kind != "thinking" or p.thinking
    )
    return replace(turn, content=content, extra=None)


def rewrite_arguments(turn: AssistantMessage, dice: Random) -> AssistantMessage:
    """Write the arguments as JavaScript does."""

    def plain(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    content = tuple(
        replace(p, arguments={key: plain(value) for key, value in p.arguments.items()}, arguments_text=None)
        if p.kind == "toolCall"
        else p
        for p in turn.content
    )
    return replace(turn, content=content)


HABITS: Final[tuple[Habit, ...]] = (keep, drop_signatures, damage, edit_text, thinking_as_text, rewrite_arguments)
