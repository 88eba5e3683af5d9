"""Keep the OpenAI Agents SDK, and let segue make the request for any model.

Needs: `pip install segue-llm openai-agents`.
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from agents import SQLiteSession

from segue import AssistantMessage, Context, Request, framework_objects, prepare, read_history, write_history

REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "deepseek-v4-pro",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Blue, like before."}}
    ],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
}


def send(request: Request) -> AssistantMessage:
    """Send the request and decode the reply. Here the reply is fixed; with httpx2 it is `post(url, json=body)`."""
    assert request.body["messages"]
    return request.decode(REPLY)


async def main(database: Path) -> None:
    """Store two items, continue the session with another model, and store the reply."""
    session = SQLiteSession("conversation-1", str(database))
    text = {"type": "output_text", "text": "It is blue.", "annotations": []}
    await session.add_items(
        [
            {"role": "user", "content": "What colour is the sky?"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
            {"role": "user", "content": "And the sea?"},
        ]
    )

    # segue reads the database itself, or the items: `read_history(await session.get_items())`.
    request = prepare(read_history(database).context, "deepseek/deepseek-v4-pro")
    print(request.report.summary())

    # The reply becomes items of the SDK.
    reply = write_history(Context(messages=(send(request),)), format="openai-agents")
    items = framework_objects(reply)
    assert isinstance(items, list)
    await session.add_items(items)
    stored = await session.get_items()
    print(f"{len(stored)} items, the last one: {stored[-1]['content']}")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder) / "sessions.db"))
