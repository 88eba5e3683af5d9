"""Check that the effort of a request is one that the model has.

Which levels a model has is in its entry of the catalogue, else in the rules of its family. Where neither lists them,
nothing is known and nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from segue.errors import Path
from segue.models.thinking import DEFAULT_LEVELS, LEVELS_BY_EFFORT
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation

_UNCERTAIN: Final = frozenset({("google-genai", "xhigh", False), ("google-interactions", "xhigh", False)})
"""Efforts that a wire has and catalogues leave out: google-genai 3.3.0 has this one, and no refusal is known, so that
only a cautious endpoint refuses it (read 2026-11-18)."""


def check_effort(effort: object, path: Path, endpoint: Endpoint) -> Iterator[Violation]:
    """Find an effort that the model does not have; a value that is not a known effort passes."""
    if isinstance(effort, str) and not _has_effort(effort, endpoint):
        message = f"{endpoint.model.id} does not support the effort {effort!r}; choose another one"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, path, message)


def _has_effort(effort: str, endpoint: Endpoint) -> bool:
    listed, level = endpoint.model.thinking_levels, LEVELS_BY_EFFORT.get(effort)
    if level is None or effort in listed.values() or (endpoint.model.protocol, effort, endpoint.cautious) in _UNCERTAIN:
        return True
    if level in listed:
        return listed[level] is not None
    known = endpoint.rules.thinking_levels
    return level in known or known == DEFAULT_LEVELS
