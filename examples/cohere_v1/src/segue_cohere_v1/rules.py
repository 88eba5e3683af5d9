"""What Cohere's v1 chat endpoint accepts.

Facts this file rests on, all of cohere 7.3.1 (`Client.chat` and its types), read 2026-11-15:
- A request has one `message`, `chat_history` (roles USER, CHATBOT, SYSTEM, TOOL), `preamble`, `tools` and
  `tool_results`. Every message is one string; there are no images and no files.
- A call is a name and parameters, without an id. A result repeats its call.
- A tool has `parameter_definitions`, and no JSON schema.
- "When using `tool_results`, `tools` must be passed as well."
"""

from __future__ import annotations

from typing import Final

from segue import Dialect, Rule, Rules

PROTOCOL: Final = "cohere-v1"
PROVIDER: Final = "cohere"

RULES: Final = Rules(
    tools_with_history=True,  # cohere 7.3.1: "When using `tool_results`, `tools` must be passed as well"
    tool_name_first="a-zA-Z_",  # cohere 7.3.1: Tool.name
    tool_name_alphabet="a-zA-Z0-9_",
    tool_choices=frozenset(),  # cohere 7.3.1: no such parameter
    tool_error="text",  # cohere 7.3.1: a result has no flag
    calls_last=True,  # cohere 7.3.1: an entry has one text, and `tool_calls` as another key
    schema_root_object=True,  # cohere 7.3.1: `parameter_definitions` maps names to parameters
    user_media=(),  # cohere 7.3.1: `message` is a string
    result_media=(),
    image_sources=frozenset(),
    file_sources=frozenset(),
    last_assistant=False,  # cohere 7.3.1: `message` is required, and is the user's
    system_messages="none",  # cohere 7.3.1: SYSTEM "should not be used ... in most cases"
    refused_text="blank",  # "message must be at least 1 token long" (Risuai #504)
    refused_options=frozenset(  # cohere 7.3.1: no such parameters
        {
            "thinking",
            "tool_choice",
            "parallel_tool_calls",
            "output_schema",
            "cache_retention",
            "session_id",
            "user_id",
        }
    ),
    rows={
        "top_p": Rule(
            'cohere 7.3.1: p, "min value of `0.01`, max value of `0.99`"', "2026-11-15", least=0.01, most=0.99
        ),
        "stop": Rule('cohere 7.3.1: "A list of up to 5 strings"', "2026-11-15", most=5),
    },
)

DIALECT: Final = Dialect(max_tokens_field="max_tokens", thinking_format="none", call_ids=False)
