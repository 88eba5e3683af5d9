"""Check that Google's own tools may stand beside functions.

Facts this file rests on:
- Gemini 1 and 2: "Tool use with function calling is unsupported".          (go-genai #323, 2025-05-25; celeste #197)
- Gemini 3 at the Gemini API: "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with
  Function calling."                                              (genkit #4970, 2026-03-20; sub2api #5725, 2026-08-17)
"""

from __future__ import annotations

from collections.abc import Iterator

from segue.models.rules import Rules
from segue.protocols.google_genai.keys import read_keys
from segue.protocols.google_genai.server_tools import SERVER_TOOLS
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.sources import objects_in


def check_server_tools(wire: Block, rules: Rules) -> Iterator[Violation]:
    """Find Google's tools beside functions that the model refuses, or that need a flag."""
    tools = [read_keys(tool) for tool in objects_in(wire.get("tools"))]
    if not any(tool.get("functionDeclarations") for tool in tools):
        return
    if not any(known.matches(tool) for tool in tools for known in SERVER_TOOLS):
        return
    config = read_keys(object_of(wire.get("toolConfig")))
    match rules.server_tools_with_functions:
        case "refused":
            message = "the model refuses Google's own tools beside functions; remove the ones or the others"
            yield Violation("tools_with_functions", ("tools",), message)
        case "flag" if config.get("includeServerSideToolInvocations") is not True:
            message = "Google's own tools beside functions need `includeServerSideToolInvocations`; set it to true"
            yield Violation("tools_with_functions", ("toolConfig",), message)
        case _:
            return
