"""Answers in an export of Open WebUI: items, or HTML in the text; see `read` for the facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolResultContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage
from segue.histories.kit.documents import json_text, parse_text
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import image_of, make_call, reasoning_item, usage_of

NAME: Final = "open-webui"
_DETAILS: Final = re.compile(r"<details\b([^>]*)>(.*?)</details>\n?", re.DOTALL)
_SUMMARY: Final = re.compile(r"\s*<summary>.*?</summary>\s*", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r'([\w-]+)="([^"]*)"')

AnswerPart = AssistantContent | ToolResultMessage


def read_answer(entry: dict[str, Any], time: int | None, notes: Notes, number: int) -> list[Message]:
    """Give the messages of one answer: each result of a tool ends a turn."""
    output = objects_of(entry.get("output"))
    parts = list(_items(output, notes, number)) if output else list(_html(text_of(entry.get("content")) or ""))
    shown = text_of(entry.get("content"))
    if output and shown and not any(isinstance(part, TextContent) for part in parts):
        parts += _html(shown)
    error = entry.get("error")
    made: list[Message] = []
    content: list[AssistantContent] = []
    for part in parts:
        if isinstance(part, ToolResultMessage):
            if content:
                made.append(_turn(entry, content, time))
                content = []
            made.append(part)
        else:
            content.append(part)
    if not parts and not error:
        notes.record("answer without content", number, len(json_text(entry)), entry if notes.keeps else None)
    if content or error or not made:
        made.append(_turn(entry, content, time, last=True, error=error))
    return made


def _turn(
    entry: dict[str, Any],
    content: Sequence[AssistantContent],
    time: int | None,
    *,
    last: bool = False,
    error: object = None,
) -> AssistantMessage:
    stop = StopReason.TOOL_USE if any(each.kind == "toolCall" for each in content) else StopReason.STOP
    if error:
        stop = StopReason.ERROR
    elif last and entry.get("done") is False:
        stop = StopReason.ABORTED
    # The chat is sent over openai-chat, through whatever server the user has connected.
    return AssistantMessage(
        content=tuple(content),
        protocol="openai-chat",
        provider="",
        model=text_of(entry.get("model")) or "",
        usage=_usage(object_of(entry.get("usage"))) if last else None,
        stop_reason=stop,
        error_message=(text_of(object_of(error).get("content")) or json_text(error)) if error else None,
        timestamp=time,
    )


def _usage(usage: dict[str, Any]) -> Usage | None:
    return usage_of(
        usage.get("prompt_tokens") or usage.get("input_tokens"),
        usage.get("completion_tokens") or usage.get("output_tokens"),
        cache_read=object_of(usage.get("prompt_tokens_details")).get("cached_tokens"),
    )


# -- items ------------------------------------------------------------------------------------------------------------


def _items(items: Sequence[dict[str, Any]], notes: Notes, number: int) -> Iterator[AnswerPart]:
    for item in items:
        match item.get("type"):
            case "reasoning":
                yield _reasoning(item)
            case "function_call":
                yield make_call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
            case "function_call_output":
                content = tuple(_result_pieces(item.get("output")))
                status = text_of(item.get("status"))
                yield _result(text_of(item.get("call_id")) or "", content, failed=status in {"failed", "error"})
            case "message":
                for piece in objects_of(item.get("content")):
                    if isinstance(piece.get("text"), str):
                        yield TextContent(text=piece["text"])
            case kind:
                notes.record(f"item {kind}", number, len(json_text(item)), item if notes.keeps else None)


def _reasoning(item: dict[str, Any]) -> ThinkingContent:
    pieces = [*objects_of(item.get("summary")), *objects_of(item.get("content"))]
    text = "\n\n".join(text for piece in pieces if (text := text_of(piece.get("text"))))
    for detail in objects_of(item.get("reasoning_details")):
        if signature := text_of(detail.get("signature")):
            return ThinkingContent(thinking=text, thinking_signature=signature)
        if data := text_of(detail.get("data")):
            return ThinkingContent(thinking=text, thinking_signature=data, redacted=not text)
    return reasoning_item(text, text_of(item.get("id")), text_of(item.get("encrypted_content")))


def _result_pieces(output: object) -> Iterator[ToolResultContent]:
    if isinstance(output, str):
        yield TextContent(text=output)
        return
    for piece in objects_of(output):
        text = piece.get("text")
        image = image_of(url=piece.get("image_url"))
        yield image or TextContent(text=text if isinstance(text, str) else json_text(piece))


def _result(call_id: str, content: tuple[ToolResultContent, ...], *, failed: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="", content=content, is_error=failed)


# -- HTML -------------------------------------------------------------------------------------------------------------


def _html(text: str) -> Iterator[AnswerPart]:
    end = 0
    for at, found in enumerate(_DETAILS.finditer(text)):
        attributes = {name: unescape(value) for name, value in _ATTRIBUTE.findall(found[1])}
        kind = attributes.get("type")
        if kind not in {"reasoning", "tool_calls"}:
            continue
        if before := text[end : found.start()].strip():
            yield TextContent(text=before)
        end = found.end()
        if kind == "reasoning":
            lines = unescape(_SUMMARY.sub("", found[2], count=1)).strip().split("\n")
            yield ThinkingContent(thinking="\n".join(line.removeprefix("> ").removeprefix(">") for line in lines))
        else:
            yield from _call(attributes, at)
    if rest := text[end:].strip():
        yield TextContent(text=rest)


def _call(attributes: dict[str, str], at: int) -> Iterator[AnswerPart]:
    own = attributes.get("id") or f"call_{at}"
    given = attributes.get("arguments")
    inner = parse_text(given)  # some versions encode the arguments twice
    yield make_call(own, attributes.get("name"), inner if isinstance(inner, str) else given)
    if "result" in attributes:
        result = parse_text(attributes["result"])
        yield _result(own, (TextContent(text=result if isinstance(result, str) else attributes["result"]),))
