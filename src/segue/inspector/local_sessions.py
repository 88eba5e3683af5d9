"""Sessions of agents on this machine, for the page: a list, and one of them as a stored conversation."""

from __future__ import annotations

from itertools import islice
from typing import Final

from segue.conversation.stored import dump
from segue.histories.api import find_sessions, read_history
from segue.projection.report import Loss

_LISTED: Final = 500
"""How many sessions the page gets, the newest first."""


def list_sessions() -> list[dict[str, object]]:
    """List the newest sessions of all agents."""
    return [
        {
            "source": f"{session.format}:{session.id}",
            "title": session.title or session.id,
            "project": session.cwd or "",
            "updated": session.updated,
        }
        for session in islice(find_sessions(), _LISTED)
    ]


def open_session(source: str) -> dict[str, object]:
    """Read one session: its messages as JSON, and what is not in them, in sentences.

    Raises:
        LoadError: it cannot be read.
    """
    history = read_history(source)
    left_out = [change.sentence() for change in history.report.changes if change.loss == Loss.CONTENT]
    return {"text": dump(history.context).decode("utf-8", "replace"), "leftOut": left_out}
