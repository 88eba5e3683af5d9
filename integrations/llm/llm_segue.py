"""segue as models of llm: any model of segue's catalogue, fallbacks with projection, and nothing of a reply lost.

    llm -m segue/anthropic/claude-opus-4-8 'What weighs more?' -o fallbacks openai/gpt-5.4
    llm -c -m segue/openai/gpt-5.4 'And why?'

Every part of a reply has what the provider sent in `provider_metadata`, signatures included. llm stores it in its log,
and it is sent back where it is valid, also after other models have answered.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from operator import itemgetter
from typing import Any
from uuid import uuid4

import llm
from llm.parts import AttachmentPart, Message, Part, ReasoningPart, StreamEvent, TextPart, ToolCallPart, ToolResultPart
from msgspec.structs import replace
from pydantic import Field

import segue

_STATE = "segue"
_DELTAS = {"text_delta": "text", "thinking_delta": "reasoning", "toolcall_delta": "tool_call_args"}
_FAMILIES = {"text": "text", "thinking": "reasoning", "toolCall": "tool_call_args"}
_MEDIA = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")


class Options(llm.Options):
    """The options that `llm -o` takes."""

    temperature: float | None = Field(default=None)
    max_tokens: int | None = Field(default=None)
    top_p: float | None = Field(default=None)
    seed: int | None = Field(default=None)
    thinking: str | None = Field(description="off, minimal, low, medium, high or xhigh", default=None)
    fallbacks: str | None = Field(description="Models to ask when this one fails, with commas between", default=None)
    base_url: str | None = Field(description="Where the requests are sent, instead of to the provider", default=None)


@llm.hookimpl
def register_models(register: Any) -> None:
    for model in _usable():
        register(SegueModel(model), AsyncSegueModel(model))


def _usable() -> Iterator[segue.Model]:
    """Yield the models of providers with a key, and echo; thousands of others could not answer.

    A key is in the environment, in `segue keys` or in `llm keys`.
    """
    keyed: dict[str, bool] = {}
    with segue.Client() as client:
        for model in segue.find_models():
            if model.provider not in keyed:
                has_key = client.has_key(model) and not client.find_missing(model)
                keyed[model.provider] = has_key or bool(llm.get_key(alias=model.provider))
            if keyed[model.provider]:
                yield model
    yield segue.get_model("echo")


class _Base:
    can_stream = True
    supports_tools = True
    supports_schema = True
    Options = Options

    def __init__(self, model: str | segue.Model) -> None:
        self._target = segue.get_model(model)
        self.model_id = f"segue/{self._target.full_name()}"
        self.attachment_types = frozenset(_MEDIA) if "image" in self._target.input else frozenset()

    def _settings(self, options: Options) -> segue.ClientSettings:
        """Give the settings of the client: keys of `llm keys`, else those of the environment of each provider."""
        names = [self._target.provider, *(name.partition("/")[0] for name in _fallbacks(options))]
        keys = {name: key for name in names if (key := llm.get_key(alias=name))}
        urls = {} if options.base_url is None else {"base_url": dict.fromkeys(names, options.base_url)}
        return segue.ClientSettings(**({"api_key": keys} if keys else {}), **urls)

    def _request(self, prompt: llm.Prompt) -> dict[str, Any]:
        options: Any = prompt.options
        fields = {name: getattr(options, name) for name in ("temperature", "max_tokens", "top_p", "seed", "thinking")}
        tools = tuple(
            segue.ToolDefinition(
                name=tool.name, description=tool.description or "", parameters=tool.input_schema or {"type": "object"}
            )
            for tool in prompt.tools
        )
        given = segue.Options(**fields, output_schema=prompt.schema)
        context = _read(prompt.messages, tools)
        return {"context": context, "model": self._target, "options": given, "fallback_models": _fallbacks(options)}


class SegueModel(_Base, llm.Model):
    def execute(
        self, prompt: llm.Prompt, stream: bool, response: llm.Response, conversation: object = None
    ) -> Iterator[StreamEvent]:
        with segue.Client(**self._settings(prompt.options)) as client:
            if not stream:
                yield from _whole(client.complete(**self._request(prompt)), response)
                return
            with client.stream(**self._request(prompt)) as events:
                writer = _Writer(response)
                for event in events:
                    yield from writer.write(event)
                events.result()  # raises the failure, if it was one


class AsyncSegueModel(_Base, llm.AsyncModel):
    async def execute(
        self, prompt: llm.Prompt, stream: bool, response: llm.AsyncResponse, conversation: object = None
    ) -> AsyncIterator[StreamEvent]:
        async with segue.AsyncClient(**self._settings(prompt.options)) as client:
            if not stream:
                for each in _whole(await client.complete(**self._request(prompt)), response):
                    yield each
                return
            async with client.stream(**self._request(prompt)) as events:
                writer = _Writer(response)
                async for event in events:
                    for each in writer.write(event):
                        yield each
                await events.result()


def _fallbacks(options: Any) -> tuple[str, ...]:
    return tuple(name.strip() for name in (options.fallbacks or "").split(",") if name.strip())


# -- replies -----------------------------------------------------------------------------------------------------------


def _whole(reply: segue.AssistantMessage, response: Any) -> Iterator[StreamEvent]:
    writer = _Writer(response)
    for event in segue.message_events(reply):
        yield from writer.write(event)


class _Writer:
    """Writes the events of a reply as those of llm; the last one gives each part what the provider sent."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._begun: set[int] = set()

    def write(self, event: segue.Event) -> Iterator[StreamEvent]:
        if event.type in _DELTAS and event.delta:
            self._begun.add(event.index)
            yield StreamEvent(type=_DELTAS[event.type], chunk=event.delta, part_index=event.index)
        elif event.type == "toolcall_start":
            self._begun.add(event.index)
            yield StreamEvent(
                type="tool_call_name", chunk=event.name, part_index=event.index, tool_call_id=event.id or None
            )
        elif event.type == "done":
            yield from self._complete(event.message)

    def _complete(self, reply: segue.AssistantMessage) -> Iterator[StreamEvent]:
        name = uuid4().hex
        for at, piece in enumerate(reply.content):
            message = segue.dump_message(replace(reply, content=(piece,))).decode()
            state = {_STATE: {"reply": name, "at": at, "message": message}}
            # What llm has no part for is kept as reasoning without text.
            kind = _FAMILIES[piece.kind] if at in self._begun else "reasoning"
            yield StreamEvent(type=kind, chunk="", part_index=at, provider_metadata=state)
            if piece.kind == "toolCall":
                call = llm.ToolCall(name=piece.name, arguments=dict(piece.arguments), tool_call_id=piece.id)
                self._response.add_tool_call(call)
        usage = reply.usage
        if usage is not None:
            self._response.set_usage(input=usage.input, output=usage.output)
        self._response.set_resolved_model(reply.model)


# -- what llm gives ----------------------------------------------------------------------------------------------------


def _read(messages: Sequence[Message], tools: tuple[segue.ToolDefinition, ...]) -> segue.Context:
    system: list[str] = []
    found: list[segue.Message] = []
    for message in messages:
        if message.role == "system":
            system += [part.text for part in message.parts if isinstance(part, TextPart)]
        elif message.role == "assistant":
            found += _read_reply(message.parts)
        elif message.role == "tool":
            found += [_read_result(part) for part in message.parts if isinstance(part, ToolResultPart)]
        else:
            found.append(segue.UserMessage(content=tuple(_read_part(part) for part in message.parts)))
    return segue.Context(system_prompt="\n\n".join(system) or None, messages=tuple(found), tools=tools)


def _read_reply(parts: Sequence[Part]) -> list[segue.AssistantMessage]:
    """Read a reply. Parts with the state of one reply are one message; llm may have them in another order."""
    found: dict[str, list[tuple[int, segue.AssistantMessage]]] = {}
    for at, part in enumerate(parts):
        state = (getattr(part, "provider_metadata", None) or {}).get(_STATE)
        if state is None:
            found.setdefault("", []).append((at, segue.AssistantMessage(content=(_read_part(part),))))
        else:
            found.setdefault(state["reply"], []).append((state["at"], segue.load_message(state["message"])))
    replies = (sorted(pieces, key=itemgetter(0)) for pieces in found.values())
    return [
        replace(reply[0][1], content=tuple(each for _, piece in reply for each in piece.content)) for reply in replies
    ]


def _read_part(part: Part) -> Any:
    match part:
        case TextPart():
            return segue.TextContent(text=part.text)
        case ReasoningPart():
            return segue.ThinkingContent(thinking=part.text)
        case ToolCallPart():
            return segue.ToolCall(id=part.tool_call_id or "", name=part.name, arguments=part.arguments)
        case AttachmentPart() if part.attachment is not None:
            kind, data = part.attachment.resolve_type(), part.attachment.base64_content()
            media = segue.ImageContent if kind.startswith("image/") else segue.FileContent
            return media(data=data, mime_type=kind)
    raise ValueError(f"a part of this type cannot be sent: {json.dumps(part.to_dict())[:200]}")


def _read_result(part: ToolResultPart) -> segue.ToolResultMessage:
    media = [_read_part(AttachmentPart(attachment=attachment)) for attachment in part.attachments]
    return segue.ToolResultMessage(
        tool_call_id=part.tool_call_id or "",
        tool_name=part.name,
        content=(segue.TextContent(text=part.output), *media),
        is_error=part.exception is not None,
    )
