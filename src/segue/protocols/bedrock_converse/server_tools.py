"""Tools that Amazon runs for its Nova models: without options.

Facts this file rests on:
- `systemTool` has a name only.                                        (botocore 1.44.0 service model, read 2026-11-15)
- Nova Premier has grounding, Nova 2 grounding and the code interpreter; the caller needs the permission
  `bedrock:InvokeTool` in a region of the US.                 (AWS documentation: Nova system tools; langchain-aws)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.server_tools import ServerTool

_READ: Final = "2026-11-15"
_SOURCE: Final = "botocore 1.44.0; AWS documentation: Nova system tools"

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="nova_grounding",
        kind="web_search",
        key=("systemTool", "name"),
        pattern="nova_grounding",
        template={"systemTool": {"name": "nova_grounding"}},
        source=_SOURCE,
        read=_READ,
    ),
    ServerTool(
        name="nova_code_interpreter",
        kind="code_execution",
        key=("systemTool", "name"),
        pattern="nova_code_interpreter",
        template={"systemTool": {"name": "nova_code_interpreter"}},
        source=_SOURCE,
        read=_READ,
    ),
)
