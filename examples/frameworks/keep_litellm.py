"""Keep LiteLLM, and let segue make the request for any model.

Needs: `pip install segue-llm` (its messages are plain JSON).
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

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


# The conversation so far: the messages that you pass to `litellm.completion`, with its replies appended.
thinking = {"type": "thinking", "thinking": "A simple question.", "signature": "c2lnbmF0dXJl"}
messages = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What colour is the sky?"},
    {
        "role": "assistant",
        "content": "It is blue.",
        "reasoning_content": "A simple question.",
        "thinking_blocks": [thinking],
    },
    {"role": "user", "content": "And the sea?"},
]

# segue reads them and makes a request that DeepSeek accepts; the report says what was changed.
request = prepare(read_history(messages, format="litellm").context, "deepseek/deepseek-v4-pro")
print(request.report.summary())

# The reply becomes a message of LiteLLM. For a model of your choice write the whole list: `model="openai/gpt-5.4"`.
reply = write_history(Context(messages=(send(request),)), format="litellm")
made = framework_objects(reply)
assert isinstance(made, list)
messages += made
print(f"{len(messages)} messages, the last one: {messages[-1]['content']}")
