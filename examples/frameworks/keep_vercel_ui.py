"""Keep the AI SDK, and let segue make the request for any model.

Needs: `pip install segue-llm` (the page that sends the messages is JavaScript).
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

from segue import AssistantMessage, Request, framework_objects, prepare, read_history, write_history

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


# What `useChat` sends to your server.
body = {
    "id": "chat-1",
    "messages": [
        {"id": "u0", "role": "user", "parts": [{"type": "text", "text": "What colour is the sky?"}]},
        {
            "id": "a1",
            "role": "assistant",
            "parts": [{"type": "step-start"}, {"type": "text", "text": "It is blue.", "state": "done"}],
        },
        {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "And the sea?"}]},
    ],
}

# segue reads it and makes a request that DeepSeek accepts; the report says what was changed.
history = read_history(body)
request = prepare(history.context, "deepseek/deepseek-v4-pro")
print(request.report.summary())

# The reply is stored as the next UIMessage, beside the earlier ones.
written = write_history(history.context.add(send(request)), format="vercel-ui")
stored = framework_objects(written)
assert isinstance(stored, dict)
print(f"{len(stored['messages'])} messages, the last one: {stored['messages'][-1]['parts'][-1]['text']}")
