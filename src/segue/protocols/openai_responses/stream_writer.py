"""Write a streamed reply of OpenAI's Responses API.

Facts:
- `response.created` comes first, and every later reply object has the same id, also that of `response.failed`; events
  are numbered.                                                       (openai 3.49.0: the SDK raises RuntimeError)
- Each item begins with `output_item.added` and ends with `output_item.done`, which has the whole item; opencode needs
  the first for reasoning, codex records items by the second.         (run against a probe, 2026-11)
- Clients identify items by `item_id`, so an item has one id from its beginning to the terminal reply.
- codex needs `reasoning_tokens` and `cached_tokens` wherever their objects are present.          (codex @343074d4)
- The heartbeat is an event of the type `keepalive`: an SSE comment does not reset codex's idle timer.
                                                                                       (run against a probe, 2026-11)

Nothing waits for a later event, with two exceptions, which only a stream of this protocol has: a message item that may
have further texts ends when the next item begins, and the input of a custom tool is written at its end, because its
neutral deltas are JSON and not its text.
"""

from __future__ import annotations

from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of
from segue.protocols.openai_responses.response import ECHOED, as_output, encode_response, item_id, stream_error
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.turns import is_custom, write_turn

_UNNAMED: Final = "resp_0"
_CUSTOM: Final = "custom_tool_call"
_NOT_OF_ITEM: Final = frozenset({"content_index", "field", "type"})
_EVENTS: Final = {"incomplete": "response.incomplete", "failed": "response.failed", "cancelled": "response.cancelled"}


class _Item:
    """An item that is open: its place and id in the output, its finished texts, and whether more may follow."""

    __slots__ = ("arguments", "contents", "has_more", "id", "kind", "place", "texts")

    def __init__(self, kind: str, place: int, name: str, *, has_more: bool) -> None:
        self.kind = kind
        self.place = place
        self.id = name
        self.has_more = has_more
        self.contents: list[AssistantContent] = []
        self.texts = 0  # texts that began
        self.arguments: list[str] = []  # of a call, as they were streamed

    def keep(self, text: str) -> str:
        """Keep a piece of the arguments: the end repeats the same text."""
        self.arguments.append(text)
        return text


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = {"failed": StopReason.ERROR, "content_filter": StopReason.ERROR}  # noqa: RUF012 - read only
    empty_arguments = "{}"

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._number = 0
        self._count = 0  # items
        self._ids: dict[int, str] = {}  # of items, by their place
        self._reply: Wire = {}
        self._name: str | None = None  # the id of the reply; None if it has none
        self._items: dict[int, _Item] = {}  # by the index of their part
        self._places: dict[int, tuple[_Item, int, str]] = {}  # of open texts: item, content index, field
        self._waiting: _Item | None = None  # a message that ends when the next item begins
        self._arguments: dict[str, ToolCall] = {}  # calls with their arguments as they were streamed, by id
        self._thought: ThinkingContent | None = None  # the last one: it decides how later items are written

    def _send(self, kind: str, **fields: object) -> None:
        self.frames.append({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1

    def start(self, event: StartEvent, first: Block) -> None:
        self._name = event.id
        self._reply = {
            "id": event.id or _UNNAMED,
            "object": "response",
            "created_at": 0,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": event.model or self.endpoint.model.id,
            "output": [],
            **ECHOED,
            **first,
        }
        self._send("response.created", response=self._reply)
        self._send("response.in_progress", response=self._reply)

    def frame_maker(self, index: int, kind: str) -> FrameMaker | None:
        item, at, field = self._places[index] if kind == "text" else (self._items[index], 0, "")
        item_id, place = item.id, item.place
        if field == "refusal" or item.kind == _CUSTOM:
            return None
        match kind:
            case "text":
                return lambda text: {
                    "type": "response.output_text.delta",
                    "sequence_number": self._next(),
                    "item_id": item_id,
                    "output_index": place,
                    "content_index": at,
                    "delta": text,
                    "logprobs": [],
                }
            case "thinking":
                return lambda text: {
                    "type": "response.reasoning_summary_text.delta",
                    "sequence_number": self._next(),
                    "item_id": item_id,
                    "output_index": place,
                    "summary_index": 0,
                    "delta": text,
                }
            case _:
                return lambda text: {
                    "type": "response.function_call_arguments.delta",
                    "sequence_number": self._next(),
                    "item_id": item_id,
                    "output_index": place,
                    "delta": item.keep(text),
                }

    def _next(self) -> int:
        number = self._number
        self._number = number + 1
        return number

    # -- items ---------------------------------------------------------------------------------------------------------

    def _open(self, index: int, kind: str, first: Block, **fields: object) -> _Item:
        self._end_waiting()
        place = self._count
        self._count += 1
        given = first.get("id")
        name = given if isinstance(given, str) else item_id(kind, place, self._name)
        item = self._items[index] = _Item(kind, place, name, has_more=bool(first))
        self._ids[place] = name
        own = {key: value for key, value in first.items() if key not in _NOT_OF_ITEM}
        wire: Wire = {"id": item.id, "type": kind, "status": "in_progress", **fields, **own}
        self._send("response.output_item.added", output_index=place, item=wire)
        return item

    def _done(self, item: _Item) -> None:
        """End an item: it is written as in a whole reply."""
        items: list[Wire] = []
        before = () if self._thought is None or item.kind == "reasoning" else (self._thought,)
        write_turn(items, (*before, *item.contents), is_reply=True)
        wire = as_output(items[-1], item.place, self._name)
        self._send("response.output_item.done", output_index=item.place, item={**wire, "id": item.id})

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            item, self._waiting = self._waiting, None
            self._done(item)

    # -- texts ---------------------------------------------------------------------------------------------------------

    def open_text(self, index: int, first: Block) -> None:
        if "content_index" in first and self._waiting is not None:
            item, self._waiting = self._waiting, None
        else:
            item = self._open(index, "message", first, role="assistant", content=[])
        self._items.pop(index, None)
        field = "refusal" if first.get("field") == "refusal" else "text"
        at = item.texts
        item.texts += 1
        self._places[index] = (item, at, field)
        part: Wire = {"type": "refusal", "refusal": ""} if field == "refusal" else _text_part("")
        self._send("response.content_part.added", item_id=item.id, output_index=item.place, content_index=at, part=part)

    def add_text(self, index: int, text: str) -> None:
        item, at, field = self._places[index]
        place = {"item_id": item.id, "output_index": item.place, "content_index": at}
        if field == "refusal":
            self._send("response.refusal.delta", **place, delta=text)
        else:
            self._send("response.output_text.delta", **place, delta=text, logprobs=[])

    def close_text(self, index: int, content: TextContent) -> None:
        item, at, field = self._places.pop(index)
        item.contents.append(content)
        place = {"item_id": item.id, "output_index": item.place, "content_index": at}
        part = _whole_part(content, field)
        annotations = part.get("annotations")
        for number, entry in enumerate(list_of(annotations)):
            kind = "response.output_text.annotation.added"
            self._send(kind, **place, annotation_index=number, annotation=entry)
        if field == "refusal":
            self._send("response.refusal.done", **place, refusal=content.text)
        else:
            self._send("response.output_text.done", **place, text=content.text, logprobs=[])
        self._send("response.content_part.done", **place, part=part)
        if item.has_more:
            self._waiting = item
        else:
            self._done(item)

    # -- thinking ------------------------------------------------------------------------------------------------------

    def open_thinking(self, index: int, first: Block) -> None:
        self._open(index, "reasoning", first, summary=[])

    def add_thinking(self, index: int, text: str) -> None:
        item = self._items[index]
        place = {"item_id": item.id, "output_index": item.place, "summary_index": 0}
        if not item.texts:
            item.texts = 1
            part = {"type": "summary_text", "text": ""}
            self._send("response.reasoning_summary_part.added", **place, part=part)
        self._send("response.reasoning_summary_text.delta", **place, delta=text)

    def close_thinking(self, index: int, content: ThinkingContent) -> None:
        item = self._items.pop(index)
        if item.texts:
            place = {"item_id": item.id, "output_index": item.place, "summary_index": 0}
            part = {"type": "summary_text", "text": content.thinking}
            self._send("response.reasoning_summary_text.done", **place, text=content.thinking)
            self._send("response.reasoning_summary_part.done", **place, part=part)
        item.contents.append(content)
        self._done(item)
        self._thought = content

    # -- calls ---------------------------------------------------------------------------------------------------------

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:
        if first.get("type") == _CUSTOM:
            self._open(index, _CUSTOM, first, call_id=call_id, name=name, input="")
        else:
            self._open(index, "function_call", first, call_id=call_id, name=name, arguments="")

    def add_arguments(self, index: int, text: str) -> None:
        item = self._items[index]
        if item.kind != "function_call":
            return  # `close_call` writes it
        place = {"item_id": item.id, "output_index": item.place}
        self._send("response.function_call_arguments.delta", **place, delta=item.keep(text))

    def close_call(self, index: int, call: ToolCall) -> None:
        item = self._items.pop(index)
        place = {"item_id": item.id, "output_index": item.place}
        if item.kind == "function_call":
            arguments = "".join(item.arguments)
            call = self._arguments[call.id] = replace(call, arguments_text=arguments)
            self._send("response.function_call_arguments.done", **place, name=call.name, arguments=arguments)
        elif is_custom(call):
            given = call.arguments.get("input")
            self._send("response.custom_tool_call_input.delta", **place, delta=given)
            self._send("response.custom_tool_call_input.done", **place, input=given)
        item.contents.append(call)
        self._done(item)

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the common signature
        block = native_block(PROTOCOL, content)
        self._end_waiting()
        place = self._count
        self._count += 1
        self._send("response.output_item.added", output_index=place, item=block)
        self._send("response.output_item.done", output_index=place, item=block)

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        self._end_waiting()
        content = [self._as_streamed(piece) if piece.kind == "toolCall" else piece for piece in message.content]
        message = replace(message, content=tuple(content), response_id=self._name)
        whole: Wire = {**encode_response(message, self.endpoint), "id": self._reply["id"]}
        for place, item in enumerate(list_of(whole.get("output"))):
            if isinstance(item, dict) and place in self._ids and not isinstance(cast("Wire", item).get("id"), str):
                item["id"] = self._ids[place]  # the reply had none
        if refused and whole.get("status") == "failed":
            whole |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "error": None}
        self._send(_EVENTS.get(str(whole.get("status")), "response.completed"), response=whole)

    def _as_streamed(self, call: ToolCall) -> ToolCall:
        """Return a call with the text of its arguments that was streamed."""
        streamed = self._arguments.get(call.id, call)
        return streamed if streamed.arguments == call.arguments else call

    def heartbeat(self) -> None:
        self._send("keepalive")

    def fail(self, fault: Fault) -> None:
        self._end_waiting()
        self._send("response.failed", response={**self._reply, "status": "failed", "error": stream_error(fault)})


stream_encoder: MakeEncoder = encoder_of(_Writer)


def _text_part(text: str) -> Wire:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _whole_part(content: TextContent, field: str) -> Wire:
    """Write the finished part of a text."""
    items: list[Wire] = []
    write_turn(items, (content,), is_reply=True)
    found = items[-1].get("content")
    parts = list_of(found)
    if parts:
        return dict(object_of(parts[-1]))
    return {"type": "refusal", "refusal": content.text} if field == "refusal" else _text_part(content.text)
