"""Conversations with the strict server: by `prepare` and by an outbox, which have to agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bound_state.strict_server import StrictServer, blocks_of
from segue import (
    ChangeCode,
    Context,
    Message,
    Model,
    Options,
    Outbox,
    Policy,
    Request,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    check,
    dump,
    get_model,
    load,
    prepare,
)
from segue.conversation.marks import mark_of

OPUS = get_model("anthropic/claude-opus-5-5")
LOOK = ToolDefinition(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


class Talk:
    """A conversation whose requests are answered by a strict server."""

    def __init__(
        self,
        server: StrictServer | None = None,
        model: Model = OPUS,
        *,
        system: str | None = "Be brief.",
        tools: tuple[ToolDefinition, ...] = (),
        policy: Policy | None = None,
        options: Options | None = None,
    ) -> None:
        self.server = server or StrictServer()
        self.model = model
        self.policy = policy
        self.options = options
        self.context = Context(system_prompt=system, tools=tools)
        self.outboxes: dict[str, Outbox] = {}
        self.request: Any = None

    def ask(self, text: str | None = "Go on.", *, account: str | None = None) -> int:
        """Send the conversation with a new user message, and keep the reply; gives the blocks of thinking sent."""
        context = self.context if text is None else self.context.add(UserMessage.of(text))
        made = self.prepare(context, account)
        self.request = made
        status, reply = self.server.answer(made.body, made.headers, account=account or "org")
        assert status == 200, reply
        sent = {mark_of(signature) for _, _, signature in blocks_of(made.body)}
        assert sent.issuperset(made.stamp.asked), "the server was asked about a block that was not sent"
        assert not check(made.body, protocol=self.model.protocol, model=self.model)
        self.context = context.add(made.decode(reply, account=account))
        return len(list(blocks_of(made.body)))

    def prepare(self, context: Context, account: str | None = None) -> Request:
        """Make a request, in both ways."""
        whole = prepare(context, self.model, options=self.options, policy=self.policy, account=account)
        key = self.model.full_name()
        outbox = self.outboxes.setdefault(key, Outbox(self.model, self.policy))
        grown = outbox.prepare(context, options=self.options, account=account)
        assert grown.content == whole.content
        assert grown.report == whole.report
        assert grown.stamp == whole.stamp
        assert grown.headers == whole.headers
        return grown

    def run_tool(self, name: str = "look") -> int:
        """Have the model call a tool, and give it a result; the next request continues the tool loop."""
        self.server.calls.append((name, {"at": len(self.context.messages)}))
        sent = self.ask()
        self.answer_call()
        return sent

    def answer_call(self, text: str = "seen") -> None:
        """Give the last call a result."""
        last = self.context.messages[-1]
        assert last.role == "assistant"
        call = last.tool_calls()[0]
        self.context = self.context.add(
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text=text),))
        )

    def change(self, **fields: object) -> None:
        """Replace fields of the conversation."""
        self.context = replace(self.context, **fields)

    def edit(self, place: int, change: Callable[[Message], Message]) -> None:
        """Replace one message."""
        messages = list(self.context.messages)
        messages[place] = change(messages[place])
        self.change(messages=tuple(messages))

    def reload(self) -> None:
        """Store and load the conversation."""
        self.context = load(dump(self.context))

    def forget(self) -> None:
        """Make it an imported conversation: nothing is known of its requests."""
        self.change(
            messages=tuple(
                replace(message, sent=None) if message.role == "assistant" else message
                for message in self.context.messages
            )
        )

    def causes(self) -> list[str]:
        """Give the causes of what the last request left out."""
        assert self.request is not None
        return [change.detail for change in self.request.report.of(ChangeCode.REASONING_WITHHELD)]

    def reply(self, place: int) -> Any:
        """Give an assistant message."""
        message = self.context.messages[place]
        assert message.role == "assistant"
        return message
