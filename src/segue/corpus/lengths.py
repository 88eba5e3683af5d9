"""The estimated input tokens of a projected conversation, cheap enough for every row of a corpus.

`estimate_tokens` counts message by message, which takes half as long as the conversion itself. Here the texts of a
conversation are joined and counted at once, long ones by samples that are spread evenly; the weights and the constants
of the tokenizer are the same.
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options
from segue.conversation.messages import ToolResultMessage
from segue.counting.counter import TokenCounter, encode_value

_SLICES: Final = 32
_SLICE: Final = 128
"""A text of more than twice these characters is counted by so many slices of it. The estimate of an agent trace of
90 KB then differs by 2.6 % from that of the whole (standard deviation, measured 2026-11-16); it takes a quarter of the
time."""


def estimate_length(context: Context, options: Options, counter: TokenCounter) -> int:
    """Estimate the input tokens of a projected conversation."""
    family, prompt = counter.family, context.system_prompt
    texts, calls = list[str](), list[object]()
    add = texts.append
    if isinstance(prompt, str) and prompt:
        add(prompt)
        tokens = family.message + counter.fixed(Context(tools=context.tools), options)
    else:
        tokens = counter.fixed(context, options)
    for message in context.messages:
        if type(message) is not ToolResultMessage:
            tokens += family.message
        for piece in message.content:
            if type(piece) is TextContent:  # cheaper than `piece.kind`
                add(piece.text)
            elif type(piece) is ToolCall:
                add(piece.name)
                if piece.arguments_text:
                    add(piece.arguments_text)
                else:
                    calls.append(piece.arguments)
                tokens += family.call
            elif type(piece) is ThinkingContent:
                add(piece.thinking)
            else:
                tokens += counter.piece(piece)
    if calls:
        add(encode_value(calls).decode())  # together: one by one it takes a third of the time of the estimate
    return round(tokens + _count(texts, counter)) if texts else round(tokens)


def _count(texts: list[str], counter: TokenCounter) -> float:
    """Count texts as if they were joined; joining long ones takes as long as counting the sample."""
    size = sum(map(len, texts))
    if counter.is_own or size <= 2 * _SLICES * _SLICE:
        return counter.text("".join(texts))
    sample = "".join(_slices(texts, size // _SLICES))
    return counter.text(sample) * size / len(sample)


def _slices(texts: list[str], step: int) -> list[str]:
    """Return a slice at every step of the joined texts, in pieces where it extends beyond the end of a text."""
    found: list[str] = []
    begin, end, after = 0, _SLICE, 0  # of the slice, and the end of the text, in the joined texts
    for text in texts:
        place, after = after, after + len(text)
        while begin < after:
            found.append(text[begin - place if begin > place else 0 : end - place])
            if end > after:
                break
            begin += step
            end = begin + _SLICE
            if begin >= step * _SLICES:
                return found
    return found
