"""The record of Copilot Chat in VS Code."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Copilot Chat in VS Code",
    place=Place(
        folder=".config/Code/User",
        system_folders={
            "darwin": "Library/Application Support/Code/User",
            "win32": "AppData/Roaming/Code/User",
        },
        patterns=(
            "workspaceStorage/*/chatSessions/*.json",
            "workspaceStorage/*/chatSessions/*.jsonl",
            "globalStorage/emptyWindowChatSessions/*.json",
            "globalStorage/emptyWindowChatSessions/*.jsonl",
        ),
    ),
    reads_lines=False,
    source="microsoft/vscode, microsoft/vscode-copilot-chat",
    read_on="2026-11-16",
)
