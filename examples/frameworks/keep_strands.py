"""Keep Strands, and let segue make the request for any model.

Needs: `pip install segue-llm strands-agents`.
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

import tempfile

from strands.session.file_session_manager import FileSessionManager

from segue import AssistantMessage, Context, Request, prepare, read_history, save_history, write_history

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


# The messages of an agent: `agent.messages`.
messages = [
    {"role": "user", "content": [{"text": "What colour is the sky?"}]},
    {"role": "assistant", "content": [{"text": "It is blue."}]},
    {"role": "user", "content": [{"text": "And the sea?"}]},
]

# segue reads them and makes a request that DeepSeek accepts; the report says what was changed.
history = read_history(messages)
request = prepare(history.context, "deepseek/deepseek-v4-pro")
print(request.report.summary())

# The longer conversation becomes a session that `FileSessionManager` continues.
session = Context(messages=(*history.context.messages, send(request)))
with tempfile.TemporaryDirectory() as folder:
    written = write_history(session, format="strands", session_id="s1")
    save_history(written, folder)
    manager = FileSessionManager(session_id="s1", storage_dir=folder)
    stored = manager.list_messages("s1", "default")
    print(f"{len(stored)} messages, the last one: {stored[-1].message['content'][0]['text']}")
