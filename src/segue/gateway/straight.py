"""Straight through: the bytes of a request and of its reply are passed on as they are, where nothing has to change.

That is so if the client asks for the model by its own id, over the model's own protocol, and every earlier turn is one
that this model wrote and the client returned unchanged. The reply is read alongside, for its usage and its state.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.context import Context, Options
from segue.envelope.conversation import FoundStates, Stored
from segue.envelope.envelopes import MARK
from segue.envelope.state import endpoint_label
from segue.gateway.config import ModelRoute
from segue.models.model import Model
from segue.projection.projector import Projection
from segue.projection.report import Report
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol
from segue.request import Request

_MARK: Final = MARK.encode()


def is_unchanged(raw: bytes, found: FoundStates, stored: Stored, model: Model) -> bool:
    """Whether a history is as the model itself would have it: no envelope, and no turn of another model."""
    if _MARK in raw or found.states:
        return False
    for turn in found.turns:
        states = next((stored[key] for key in turn.keys if stored.get(key)), ())
        for state in states[:1]:
            if (state.protocol, state.provider, state.model) != (model.protocol, model.provider, model.id):
                return False
            if state.endpoint != endpoint_label(model.base_url):
                return False
            if any(piece.shown != piece.content.id for piece in state.pieces if piece.content.kind == "toolCall"):
                return False
    return True


def has_no_options(route: ModelRoute) -> bool:
    """Whether a route changes nothing of a request."""
    return route.thinking is None and route.max_tokens is None and route.temperature is None and not route.fit


def straight_request(raw: bytes, context: Context, model: Model, options: Options | None) -> Request:
    """Make a request whose body are the client's own bytes."""
    model = replace(model, headers={**model.headers, "accept-encoding": "identity"})
    projection = Projection(
        context=context, options=options or Options(), report=Report(()), requirements=(), tool_names={}
    )
    return Request(projection, resolve_endpoint(model), get_protocol(model.protocol), raw)
