"""The resolved model that the tests use."""

from __future__ import annotations

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint

ANYTHING = resolve_endpoint(Model("anything", "plain-text", "plain-text"))
