"""The record of replies of Chat Completions.

Reads a list of replies of Chat Completions: what LiteLLM and other clients return, one for each request.

Facts (LiteLLM 1.106.2, run 2026-11-18):
- Every item is a reply, and one message of the assistant. There is nothing between them: no prompts, no results.
- `reasoning_content` and `thinking_blocks` are the same thoughts.
"""

from __future__ import annotations

from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, Message
from segue.errors import LoadError
from segue.histories.kit.chat_messages import ChatForm
from segue.histories.kit.documents import LINES, finish_history, load_value, refuse_branch
from segue.histories.kit.entries import Reading
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import integer_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.unread import note_unread

NAME: Final = "chat-replies"
_READ: Final = ChatForm(name=NAME, title="replies of Chat").codec().read


def read(source: Source, view: View) -> History:
    """Read one list of replies.

    Raises:
        LoadError: the source has no reply.
    """
    refuse_branch(view, "a list of replies")
    notes = Notes(keep=view.keep_records)
    value = load_value(source, lines=True)
    listed = object_of(value).get(LINES, value if isinstance(value, list) else [value])
    messages: list[Message] = []
    for number, item in enumerate(cast("list[object]", listed), 1):
        reply, since = object_of(item), notes.left_out
        choices = objects_of(reply.get("choices"))
        made = _read_reply(reply, choices[0]) if choices else []
        note_unread({"message": choices[0].get("message") if choices else item}, made, number, notes, since=since)
        if notes.left_out == since and not _is_whole(reply):
            notes.unreadable(number, "the reply is damaged")
        for other in choices[1:]:
            notes.record("further choice", number, 0, other if notes.keeps else None)
        messages += made
    if not messages:
        raise LoadError("no conversation found: no item is a reply of Chat Completions")
    items = (
        (number, object_of(item).get("choices", item)) for number, item in enumerate(cast("list[object]", listed), 1)
    )
    return finish_history(NAME, notes, messages, given=items)


def _is_whole(reply: dict[str, Any]) -> bool:
    """Whether a reply has the form of Chat where its message and its calls are: short arguments are not compared."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not all(isinstance(each, dict) for each in cast("list[object]", choices)):
        return False
    for choice in objects_of(cast("object", choices)):
        message = choice.get("message")
        calls = object_of(message).get("tool_calls")
        if not isinstance(message, dict) or not isinstance(calls, list | None):
            return False
        for call in cast("list[object]", calls or ()):
            function = object_of(object_of(call).get("function"))
            if not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str | dict):
                return False
    return True


def _read_reply(reply: dict[str, Any], choice: dict[str, Any]) -> list[Message]:
    message = {**object_of(choice.get("message")), "role": "assistant"}
    usage = object_of(reply.get("usage"))
    cached = object_of(usage.get("prompt_tokens_details")).get("cached_tokens")
    counted = usage_of(usage.get("prompt_tokens"), usage.get("completion_tokens"), cache_read=cached)
    model = text_of(reply.get("model"))
    made: list[Message] = []
    for each in _READ([message], Reading(Notes())):
        if isinstance(each, AssistantMessage):
            found = None if model is None else find_origin(model)
            answer = replace(
                each,
                model=model or "",
                provider=each.provider or ("" if found is None else found.provider),
                usage=counted,
                response_id=text_of(reply.get("id")),
                timestamp=integer_of(reply.get("created")) * 1000 or None,
                stop_reason=stop_of(choice.get("finish_reason"), each.content),
            )
            made.append(with_envelope(answer, NAME, without(reply, ("choices",))))
    return made


FORMAT: Final = Format(
    name=NAME,
    read=read,
    samples=read_samples(__package__),
    title="replies of Chat Completions",
    kind="export",
    reads_lines=False,
    source="LiteLLM 1.106.2, run",
    read_on="2026-11-18",
)
