"""Keep pydantic-ai, and let segue make the request for any model.

Needs: `pip install segue-llm pydantic-ai-slim`.
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ThinkingPart, UserPromptPart

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


# The conversation so far: what `result.all_messages()` gives.
messages = [
    ModelRequest(parts=[UserPromptPart("What colour is the sky?")]),
    ModelResponse(
        parts=[
            ThinkingPart("A simple question.", signature="c2lnbmF0dXJl", provider_name="anthropic"),
            TextPart("It is blue."),
        ],
        model_name="claude-sonnet-4-5",
        provider_name="anthropic",
    ),
    ModelRequest(parts=[UserPromptPart("And the sea?")]),
]

# segue reads them and makes a request that DeepSeek accepts; the report says what was changed.
request = prepare(read_history(messages).context, "deepseek/deepseek-v4-pro")
print(request.report.summary())

# The reply becomes a ModelResponse: pass the list on as `message_history`.
reply = write_history(Context(messages=(send(request),)), format="pydantic-ai")
made = framework_objects(reply)
assert isinstance(made, list)
messages += made
print(f"{len(messages)} messages, the last one: {messages[-1].parts[0].content}")
