"""Keep LangChain, and let segue make the request for any model.

Needs: `pip install segue-llm langchain-core`.
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

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


# The conversation so far, by Claude, in LangChain's own objects.
call = {"id": "toolu_1", "name": "look", "args": {"at": "sky"}}
thinking = {"type": "thinking", "thinking": "I have to look.", "signature": "c2lnbmF0dXJl"}
use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}}
messages = [
    SystemMessage("Be brief."),
    HumanMessage("What colour is the sky?"),
    AIMessage(
        content=[thinking, use],
        tool_calls=[call],
        response_metadata={"model_name": "claude-sonnet-4-5", "model_provider": "anthropic"},
    ),
    ToolMessage("blue", tool_call_id="toolu_1"),
    AIMessage("It is blue."),
    HumanMessage("And the sea?"),
]

# segue reads them and makes a request that DeepSeek accepts; the report says what was changed.
request = prepare(read_history(messages).context, "deepseek/deepseek-v4-pro")
print(request.report.summary())

# The reply becomes a LangChain message, and the list goes on as before.
reply = write_history(Context(messages=(send(request),)), format="langchain")
made = framework_objects(reply)
assert isinstance(made, list)
messages += made
print(f"{len(messages)} messages, the last one: {messages[-1].content}")
