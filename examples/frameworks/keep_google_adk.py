"""Keep Google ADK, and let segue make the request for any model.

Needs: `pip install segue-llm google-adk`.
Runs without a key: `send` gives a fixed answer; replace it by your own client.
"""

from __future__ import annotations

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai.types import Content, Part

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


# A session of an agent called `helper`.
session = Session(
    id="s1",
    app_name="app",
    user_id="u",
    events=[
        Event(author="user", content=Content(role="user", parts=[Part(text="What colour is the sky?")])),
        Event(author="helper", content=Content(role="model", parts=[Part(text="It is blue.")])),
        Event(author="user", content=Content(role="user", parts=[Part(text="And the sea?")])),
    ],
)

# segue reads it and makes a request that DeepSeek accepts; the report says what was changed.
history = read_history(session)
request = prepare(history.context, "deepseek/deepseek-v4-pro")
print(request.report.summary())

# The reply becomes an event of the agent. Its name matters: ADK sends events of other authors as text of the user.
longer = history.context.add(send(request))
written = write_history(longer, format="google-adk", settings={"author": "helper"})
made = framework_objects(written)
assert isinstance(made, Session)
last = made.events[-1]
print(f"{len(made.events)} events, the last one of {last.author}: {last.content.parts[0].text}")
