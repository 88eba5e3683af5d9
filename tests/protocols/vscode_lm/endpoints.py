"""The resolved model that the tests use."""

from __future__ import annotations

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint

EDITOR = resolve_endpoint(Model("copilot-gpt", "vscode", "vscode-lm"))
