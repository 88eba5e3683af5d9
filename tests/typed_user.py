"""A user of the library as a type checker sees one. Pyright reads this file under its strict rules; nobody runs it.

Every `assert_type` is a promise to users. A line with `pyright: ignore` has to be an error, or the check fails.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, assert_never, assert_type

import segue
from segue import (
    AssistantMessage,
    Context,
    ImageContent,
    Message,
    Model,
    NativeContent,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
)


def build() -> Context:
    """Plain strings and content mix; adding gives a new conversation."""
    hello = UserMessage.of("What is on this picture?", ImageContent(data="aGVsbG8=", mime_type="image/png"))
    tool = ToolDefinition(name="look", description="Look closer", parameters={"type": "object"})
    context = Context(system_prompt="Be brief.", messages=(hello,), tools=(tool,))
    return context.add(UserMessage.of("Please."))


def store(context: Context, path: Path) -> None:
    """What is dumped is bytes, what is loaded is the same type again."""
    data = segue.dump(context)
    assert_type(data, bytes)
    assert_type(segue.load(data), Context)
    assert_type(segue.read_session(path), Context)
    segue.append_message(path, context.messages[-1])


def describe(message: Message) -> str:
    """Messages and content are closed unions, matched to the end."""
    match message.role:
        case "user":
            return "user"
        case "assistant":
            assert_type(message, AssistantMessage)
            assert_type(message.tool_calls(), tuple[ToolCall, ...])
            return message.text()
        case "toolResult":
            return message.tool_name
        case "system":
            return "system"
        case _:
            assert_never(message)


def words(message: AssistantMessage) -> list[str]:
    """Each kind narrows to its own class."""
    found: list[str] = []
    for content in message.content:
        match content.kind:
            case "text":
                assert_type(content, TextContent)
                found.append(content.text)
            case "thinking":
                found.append(content.thinking)
            case "toolCall":
                found.append(content.name)
            case "native":
                found.append(content.protocol)
            case _:
                assert_never(content)
    return found


def read_wire(context: Context, call: ToolCall) -> str:
    """JSON of a provider is read without casts; its own types are for whoever knows the protocol."""
    request = segue.prepare(context, "openai/gpt-5.4")
    assert_type(request.body, dict[str, Any])
    assert_type(request.sdk_arguments(), dict[str, Any])
    assert_type(segue.encode_request(context, protocol="openai-chat"), dict[str, Any])
    assert_type(call.arguments, Mapping[str, Any])
    city: str = call.arguments["city"]
    return city


def use_submodules(event: segue.events.Event) -> None:
    """Public submodules are attributes of the package, and their names the same as those of the package."""
    assert_type(event, segue.Event)
    error = segue.errors.UnknownModel("no such model", name="gpt")
    assert_type(error.suggestions, tuple[str, ...])
    assert_type(segue.wire.detect_protocol({}), str | None)
    segue.framing.SseDecoder().feed(b"")
    segue.protocols.get_protocol("openai-chat")


@dataclass
class Place:
    """A type of the user's own."""

    name: str


class Size(TypedDict):
    """Another one."""

    width: int


def ask_for_values(client: segue.Client, conversation: segue.Conversation) -> str:
    """The value of an answer has the type that was asked for; without one the result is the message."""
    assert_type(segue.complete("hi", "echo"), AssistantMessage)
    assert_type(segue.complete("hi", "echo", output=Place), segue.Answer[Place])
    assert_type(segue.complete("hi", "echo", output=list[Place]).value, list[Place])
    assert_type(client.complete("hi", "echo", output=Size, output_retries=2).value, Size)
    assert_type(client.complete("hi", "echo", output=Place | None).value, Any)
    assert_type(conversation.ask("hi"), AssistantMessage)
    assert_type(conversation.ask("hi", output=dict[str, Place], model="echo").value, dict[str, Place])
    assert_type(conversation.complete("hi", output=int).value, int)
    assert_type(segue.read_output(conversation.ask("hi"), Place), Place)
    with client.stream("hi", "echo", output=Place) as reply:
        assert_type(reply, segue.TypedStream[Place])
        return reply.answer().value.name


async def ask_for_values_async(client: segue.AsyncClient, conversation: segue.AsyncConversation) -> Place:
    """The same in an event loop."""
    assert_type(await client.complete("hi", "echo"), AssistantMessage)
    assert_type((await client.complete("hi", "echo", output=list[Place])).value, list[Place])
    assert_type((await conversation.ask("hi", output=Place)).value, Place)
    assert_type(conversation.stream("hi"), segue.AsyncStream)
    return (await conversation.stream("hi", output=Place).answer()).value


def target() -> Model:
    """Three words make a target of one's own; the catalogue knows the rest."""
    own = Model("my-model", "my-provider", "openai-chat")
    known = segue.get_model("anthropic/claude-sonnet-4-5")
    assert_type(known, Model)
    seeded = segue.new_assistant_message(own, timestamp=0)
    assert_type(seeded.stop_reason, StopReason)
    return known


def mistakes(message: UserMessage) -> None:
    """What a type checker has to refuse."""
    message.timestamp = 1  # pyright: ignore[reportAttributeAccessIssue]
    call, image = ToolCall(id="1", name="look"), ImageContent(data="aGVsbG8=")
    UserMessage(content=(call,))  # pyright: ignore[reportArgumentType]
    UserMessage.of("hi", ThinkingContent(thinking="hm"))  # pyright: ignore[reportArgumentType]
    AssistantMessage(content=(image,))  # pyright: ignore[reportArgumentType]
    ToolResultMessage(tool_call_id="1", content=(call,))  # pyright: ignore[reportArgumentType]
    SystemMessage(content=(image,))  # pyright: ignore[reportArgumentType]
    NativeContent(protocol="p", block={}, fallback=(call,))  # pyright: ignore[reportArgumentType]
    Context(messages=(image,))  # pyright: ignore[reportArgumentType]
    segue.Contxt  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    Context("Be brief.")  # pyright: ignore[reportCallIssue]
    segue.complete("hi", "echo", output=Place).value.size  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
