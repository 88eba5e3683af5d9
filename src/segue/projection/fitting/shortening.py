"""Write shortened messages: results to their beginning and end, media to a placeholder, finished thinking removed.

What a user wrote is kept within a room: the newest message first, then the first one, which often has the task.

Arguments of calls are not shortened: a changed call teaches the model a call that it never made.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AnyContent, FileContent, ImageContent, TextContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.counting.counter import TokenCounter
from segue.projection.passes.cache_marks import moved_mark
from segue.projection.passes.media_fit import kind_of
from segue.projection.policy import Fit, Texts, fill
from segue.projection.report import ChangeCode

Shortened = tuple[Message, tuple[ChangeCode, ...]]
"""A message and what was done to it."""

_SLACK: Final = 200
"""A text is shortened only if that removes more characters than this: a shortened text stays unchanged."""
_SHARE_OF_NEWEST: Final = 0.6
_SHARE_OF_FIRST: Final = 0.3
_SHARE_OF_OTHERS: Final = 0.25
"""Of the room that is left, for each message of the user between the first and the newest one."""
_HEAD_OF_WORDS: Final = 0.7
_FEWEST_WORDS: Final = 16
"""With fewer tokens left, no further message is looked at."""
_LOOKED_AT: Final = 60
"""How many messages of the user are looked at, from the newest on: fewer than a tenth of the limit can hold."""
_FEWEST_CHARACTERS: Final = 24


def shorten_text(text: str, head: int, tail: int, texts: Texts) -> str:
    """Keep the beginning and the end of a text, with a line between them that says how much is missing."""
    if len(text) <= head + tail + _SLACK:
        return text
    line = fill(texts.result_cut, count=str(len(text) - head - tail))
    return f"{text[:head]}{line}{text[len(text) - tail :] if tail else ''}"


def shorten_result(message: ToolResultMessage, head: int, tail: int, texts: Texts) -> ToolResultMessage:
    """Shorten the long texts of a result; the same object if none is long."""
    content = tuple(
        replace(piece, text=text)
        if piece.kind == "text" and (text := shorten_text(piece.text, head, tail, texts)) is not piece.text
        else piece
        for piece in message.content
    )
    return message if all(map(_is_same, content, message.content)) else replace(message, content=content)


def keep_words(given: list[str], room: float, label: float, counter: TokenCounter, texts: Texts) -> list[str]:
    """Choose and shorten what a user wrote, to so many tokens in all; `label` are those around each text."""
    newest, left = len(given) - 1, room
    kept: dict[int, str] = {}
    for index in dict.fromkeys((newest, 0, *range(newest - 1, max(0, newest - _LOOKED_AT), -1))):
        if index == newest:
            most = room * _SHARE_OF_NEWEST if newest else room
        elif index == 0:
            most = room * _SHARE_OF_FIRST
        elif left < _FEWEST_WORDS + label:
            break
        else:
            most = left * _SHARE_OF_OTHERS
        text = shorten_to(given[index], most - label, counter, texts)
        if text:
            kept[index] = text
            left -= counter.text(text) + label
    return [kept[index] for index in sorted(kept)]


def shorten_to(text: str, most: float, counter: TokenCounter, texts: Texts) -> str:
    """Keep the beginning and the end of a text, in at most so many tokens; nothing if that is too little to read."""
    size = counter.text(text)
    if size <= most:
        return text
    length = int(len(text) * max(most, 0.0) / size)
    while length >= _FEWEST_CHARACTERS:
        head = round(length * _HEAD_OF_WORDS)
        line = fill(texts.result_cut, count=str(len(text) - length))
        shorter = f"{text[:head]}{line}{text[len(text) - length + head :]}"
        if counter.text(shorter) <= most:
            return shorter
        length = length * 7 // 8
    return ""


def _is_same(first: object, second: object) -> bool:
    return first is second


def shorten_message(
    message: Message, fit: Fit, texts: Texts, *, drops_thinking: bool, keeps_media: bool = False
) -> Shortened:
    """Shorten one message of the older part of a conversation."""
    codes: list[ChangeCode] = []
    out: Message = message
    if not keeps_media and any(piece.kind in ("image", "file") for piece in out.content):
        out = without_media(out, None, texts.media_cut)
        codes.append(ChangeCode.MEDIA_SHORTENED)
    if out.role == "toolResult":
        shorter = shorten_result(out, fit.head, fit.tail, texts)
        if shorter is not out:
            codes.append(ChangeCode.RESULT_SHORTENED)
        out = shorter
    elif out.role == "assistant" and drops_thinking:
        shorter = _without_thinking(out)
        if shorter is not out:
            codes.append(ChangeCode.THINKING_DROPPED)
        out = shorter
    return out, tuple(codes)


def _without_thinking(message: AssistantMessage) -> AssistantMessage:
    """Remove the thinking that a turn begins with.

    The turn stays unchanged if other blocks are signed together with the thinking, if it thinks between other blocks,
    whose order then depends on it, or if nothing else is left.
    """
    rest = tuple(piece for piece in message.content if piece.kind != "thinking")
    count = len(message.content) - len(rest)
    is_first = all(piece.kind == "thinking" for piece in message.content[:count])
    if not rest or not count or not is_first or any(map(_is_bound, rest)):
        return message
    return replace(message, content=rest)


def _is_bound(piece: AnyContent) -> bool:
    match piece.kind:
        case "text":
            return piece.text_signature is not None or not piece.text.strip()
        case "toolCall":
            return piece.thought_signature is not None
        case "native":
            return True
        case _:
            return False


def without_media(message: Message, positions: Collection[int] | None, template: str) -> Message:
    """Replace images and files by a placeholder, those at `positions` or all; equal neighbours become one."""
    content: list[AnyContent] = []
    for position, piece in enumerate(message.content):
        if (piece.kind == "image" or piece.kind == "file") and (positions is None or position in positions):
            placeholder = moved_mark(_placeholder(piece, template), piece.cache_mark)
            previous = content[-1] if content else None
            if previous is not None and previous.kind == "text" and previous.text == placeholder.text:
                content[-1] = moved_mark(previous, placeholder.cache_mark)
            else:
                content.append(placeholder)
        else:
            content.append(piece)
    return replace(message, content=tuple(content))


def _placeholder(piece: ImageContent | FileContent, template: str) -> TextContent:
    return TextContent(text=fill(template, kind=kind_of(piece)))
