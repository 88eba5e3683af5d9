"""Loads a document with the framework itself and prints its second save. Run in an environment of the framework.

python framework_loaders.py langchain messages.json
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any


def langchain(path: Path) -> Any:
    from langchain_core.messages import messages_from_dict, messages_to_dict

    return messages_to_dict(messages_from_dict(json.loads(path.read_bytes())))


def pydantic_ai(path: Path) -> Any:
    from pydantic_ai import ModelMessagesTypeAdapter

    return json.loads(ModelMessagesTypeAdapter.dump_json(ModelMessagesTypeAdapter.validate_json(path.read_bytes())))


def openai_agents(path: Path) -> Any:
    from agents import SQLiteSession

    async def store(items: Any) -> Any:
        session = SQLiteSession("session")
        await session.add_items(items)
        return await session.get_items()

    return asyncio.run(store(json.loads(path.read_bytes())))


def litellm(path: Path) -> Any:
    from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt

    messages = json.loads(path.read_bytes())
    copy = json.loads(json.dumps(messages))
    assert anthropic_messages_pt([each for each in copy if each["role"] != "system"], "claude-sonnet-4-5", "anthropic")
    return messages


def hf_messages(path: Path) -> Any:
    from datasets import Dataset

    row = json.loads(path.read_bytes())
    (stored,) = Dataset.from_list([row]).to_list()
    return _without_none(stored)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def google_adk(path: Path) -> Any:
    from google.adk.sessions import Session

    session = Session.model_validate_json(path.read_bytes())
    return json.loads(session.model_dump_json(by_alias=True, exclude_none=True))


def strands(path: Path) -> Any:
    from strands.session.file_session_manager import FileSessionManager

    whole = json.loads(path.read_bytes())
    session, agent = whole["session_id"], whole["agent"]["agent_id"]
    manager = FileSessionManager(session_id=session, storage_dir=str(path.parent))
    restored = manager.read_agent(session, agent)
    assert restored is not None
    messages = [message.to_dict() for message in manager.list_messages(session, agent)]
    return {"session_id": session, "agent": restored.to_dict(), "messages": messages}


def inspect_ai(path: Path) -> Any:
    from inspect_ai.model import ChatMessage
    from pydantic import TypeAdapter

    adapter = TypeAdapter(list[ChatMessage])
    return json.loads(adapter.dump_json(adapter.validate_json(path.read_bytes()), exclude_none=True))


def llama_index(path: Path) -> Any:
    from llama_index.core.llms import ChatMessage

    entries = json.loads(path.read_bytes())
    return [json.loads(ChatMessage.model_validate(entry).model_dump_json()) for entry in entries]


def ag_ui(path: Path) -> Any:
    from ag_ui.core import Message
    from pydantic import TypeAdapter

    adapter = TypeAdapter(list[Message])
    loaded = adapter.validate_json(path.read_bytes())
    return json.loads(adapter.dump_json(loaded, by_alias=True, exclude_none=True))


def haystack(path: Path) -> Any:
    from haystack.dataclasses import ChatMessage

    return [ChatMessage.from_dict(entry).to_dict() for entry in json.loads(path.read_bytes())]


def agent_framework(path: Path) -> Any:
    from agent_framework import Message

    return [Message.from_dict(entry).to_dict() for entry in json.loads(path.read_bytes())]


def semantic_kernel(path: Path) -> Any:
    from semantic_kernel.contents import ChatHistory

    return json.loads(ChatHistory.restore_chat_history(path.read_text()).serialize())


def autogen(path: Path) -> Any:
    from autogen_core.model_context import UnboundedChatCompletionContext

    state = json.loads(path.read_bytes())

    async def store() -> Any:
        context = UnboundedChatCompletionContext()
        await context.load_state(state["llm_context"])
        return dict(await context.save_state())

    loaded = asyncio.run(store())
    for given, message in zip(state["llm_context"]["messages"], loaded["messages"], strict=True):
        if message["type"] == "UserMessage" and isinstance(message["content"], list):
            _same_images(given["content"], message["content"])
    return {**state, "llm_context": loaded}


def _same_images(given: list[Any], saved: list[Any]) -> None:
    """Put images back that show the same: the framework encodes each of them anew."""
    import base64
    import io

    from PIL import Image, ImageChops

    for at, (one, other) in enumerate(zip(given, saved, strict=True)):
        if isinstance(other, str):
            continue
        images = [Image.open(io.BytesIO(base64.b64decode(each["data"]))).convert("RGB") for each in (one, other)]
        if images[0].size == images[1].size and ImageChops.difference(*images).getbbox() is None:
            saved[at] = one


def ag2(path: Path) -> Any:
    from ag2.events._serialization import deserialize_value, serialize_value

    return serialize_value(deserialize_value(json.loads(path.read_bytes())))


def mcp_sampling(path: Path) -> Any:
    from mcp.types import CreateMessageRequestParams

    params = CreateMessageRequestParams.model_validate_json(path.read_bytes())
    return params.model_dump(mode="json", by_alias=True, exclude_none=True)


def sharegpt(path: Path) -> Any:
    from datasets import load_dataset

    (stored,) = load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(path.parent / "cache")
    ).to_list()
    return _without_none(stored)


def atif(path: Path) -> Any:
    from atif import Trajectory

    return Trajectory.model_validate_json(path.read_bytes()).model_dump(mode="json", exclude_none=True)


LOADERS = {
    "langchain": langchain,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "litellm": litellm,
    "hf-messages": hf_messages,
    "google-adk": google_adk,
    "strands": strands,
    "inspect-ai": inspect_ai,
    "llama-index": llama_index,
    "ag-ui": ag_ui,
    "haystack": haystack,
    "semantic-kernel": semantic_kernel,
    "agent-framework": agent_framework,
    "autogen": autogen,
    "ag2": ag2,
    "mcp-sampling": mcp_sampling,
    "sharegpt": sharegpt,
    "atif": atif,
}

if __name__ == "__main__":
    for name in sys.argv[2:]:
        sys.stdout.write(json.dumps(LOADERS[sys.argv[1]](Path(name))) + "\n")
