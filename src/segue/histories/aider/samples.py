"""A small file for the conformance kit, written by hand after that of aider 0.86.2."""

from __future__ import annotations

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source

_FILE = """
# aider chat started at 2026-11-15 12:38:17

> Aider v0.86.2
> Model: openai/gpt-5.4 with whole edit format
> Added notes.txt to the chat.

#### What is in the file?
#### Be brief.

<thinking-content-7bbeb8e1>

I look at it.

</thinking-content-7bbeb8e1>

Two lines:

    alpha

> Tokens: 1.5k sent, 60 received. Cost: $0.01 message, $0.02 session.

# aider chat started at 2026-11-15 12:39:00

> Model: openai/gpt-5.4 with whole edit format

#### And now?

The same.
"""


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: two chats, one with thinking."""
    thinking = {"type": "thinking", "thinking": "I look at it."}
    return (
        FormatSample(
            "two chats",
            Source(data=_FILE.encode(), name=".aider.chat.history.md"),
            [
                {"role": "user", "content": "What is in the file?\nBe brief."},
                {"role": "assistant", "content": [thinking, {"type": "text", "text": "Two lines:\n\n    alpha"}]},
                {"role": "user", "content": "And now?"},
                {"role": "assistant", "content": "The same."},
            ],
            wire="anthropic-messages",
        ),
    )
