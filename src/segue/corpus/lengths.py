"""The estimated input tokens of a projected conversation, cheap enough for every row of a corpus.

`estimate_tokens` counts message by message, which takes half as long as the conversion itself. Here the texts of a
conversation are joined and counted at once; the weights and the constants of the tokenizer are the same.
"""

from __future__ import annotations

from segue.conversation.context import Context, Options
from segue.counting.counter import TokenCounter, encode_value


def estimate_length(context: Context, options: Options, counter: TokenCounter) -> int:
    """Estimate the input tokens of a projected conversation."""
    family = counter.family
    tokens, texts = counter.fixed(context, options), list[str]()
    data: list[bytes] = []
    for message in context.messages:
        if message.role != "toolResult":
            tokens += family.message
        for piece in message.content:
            if piece.kind == "text":
                texts.append(piece.text)
            elif piece.kind == "toolCall":
                tokens += family.call
                texts.append(piece.name)
                if piece.arguments_text:
                    texts.append(piece.arguments_text)
                else:
                    data.append(encode_value(piece.arguments))
            elif piece.kind == "thinking":
                texts.append(piece.thinking)
            else:
                tokens += counter.piece(piece)
    if texts:
        tokens += counter.text("".join(texts))
    if data:
        tokens += counter.text(b"".join(data).decode())
    return round(tokens)
