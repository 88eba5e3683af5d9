"""The list of sessions of agents on this machine, for the page."""

from __future__ import annotations

from itertools import islice
from typing import Final

from segue.histories.api import find_sessions
from segue.histories.redacting import new_redactor
from segue.inspector.pieces import Json

_LISTED: Final = 500
"""How many sessions the page gets, the newest first."""


def list_sessions(*, redacts: bool = False) -> list[Json]:
    """List the newest sessions of all agents; `open_conversation` opens the `source` of one."""
    clean = new_redactor().text if redacts else str
    return [
        {
            "source": f"{session.format}:{session.id}",
            "title": clean(session.title or session.id),
            "project": clean(session.cwd or ""),
            "updated": session.updated,
        }
        for session in islice(find_sessions(), _LISTED)
    ]
