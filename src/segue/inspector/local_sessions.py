"""The list of sessions of agents on this machine, for the page."""

from __future__ import annotations

from itertools import islice
from typing import Final

from segue.histories.api import find_sessions
from segue.inspector.pieces import Json

_LISTED: Final = 500
"""How many sessions the page gets, the newest first."""


def list_sessions() -> list[Json]:
    """List the newest sessions of all agents; `open_conversation` opens the `source` of one."""
    return [
        {
            "source": f"{session.format}:{session.id}",
            "title": session.title or session.id,
            "project": session.cwd or "",
            "updated": session.updated,
        }
        for session in islice(find_sessions(), _LISTED)
    ]
