"""Keys and values by which detection recognises a body of the `google-interactions` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    turns_key="input",
    body_keys={
        "input": 8,  # a text alone, for a model that is not a Gemini, is a body of OpenAI's Responses
        "previous_interaction_id": 9,
        "system_instruction": 5,
        "continuation_token": 5,
        "safety_settings": 3,
        "webhook_config": 5,
        "agent": 3,
        "agent_config": 5,
    },
    object_keys={"generation_config": 5, "response_format": 3, "environment": 2},
    message_keys={"signature": 3},
    types={
        "user_input": 9,
        "model_output": 9,
        "thought": 9,
        "function_result": 9,
        "function_call": 5,
        "google_search_call": 9,
        "google_search_result": 9,
        "code_execution_call": 9,
        "code_execution_result": 9,
        "url_context_call": 9,
        "url_context_result": 9,
        "mcp_server_tool_call": 9,
        "mcp_server_tool_result": 9,
    },
    tool_keys={"parameters": 2},
    model_ids={"gemini-": 3, "models/gemini-": 3},
    model_ids_need="input",
    reply_keys={"steps": 10},
)
