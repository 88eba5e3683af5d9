"""Straight through: the bytes of a request and of its reply are passed on as they are, where nothing has to change.

That is so if the client asks for the model by its own id, over the model's own protocol, and every earlier turn is one
that this model wrote and the client returned unchanged. The reply is read alongside, for its usage and its state.
Reasoning that the model is known to refuse after what comes before it now has to go, and so have options that it is
known to refuse: such a body is projected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.context import Context, Options
from segue.envelope.conversation import FoundStates, Stored
from segue.envelope.envelopes import MARK
from segue.envelope.state import endpoint_label
from segue.gateway.config import ModelRoute
from segue.gateway.passing import pass_body
from segue.models.model import Model
from segue.projection.projector import Projection
from segue.projection.report import Report
from segue.projection.workspace.ownership import known_account
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol
from segue.requests.binding.bind import Sender
from segue.requests.binding.digests import DigestCache
from segue.requests.prepare import Request

_MARK: Final = MARK.encode()


def is_unchanged(raw: bytes, found: FoundStates, stored: Stored, model: Model) -> bool:
    """Whether a history is as the model itself would have it: no envelope, and no turn of another model."""
    if raw.find(_MARK) >= 0 or found.states:  # `in` makes an exception first
        return False
    for turn in found.turns if stored else ():
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
    options = (route.thinking, route.max_tokens, route.temperature)
    return options == (None, None, None) and not route.fit and route.instructions == "replace"


def straight_request(
    raw: bytes,
    body: Mapping[str, object],
    context: Context,
    model: Model,
    options: Options | None,
    *,
    account: str | None = None,
    refused: frozenset[str] = frozenset(),
    cache: DigestCache | None = None,
) -> Request | None:
    """Make a request whose body are the client's own bytes; None if the model is known to refuse something in it.

    `body` are the bytes parsed, `context` is the history in them with its states, `refused` are the marks of what the
    provider refused before, `cache` is what was digested of earlier requests.
    """
    endpoint, codec = resolve_endpoint(model), get_protocol(model.protocol)
    account = known_account(context.messages, account)
    try:
        if codec.check_options is not None and any(codec.check_options(body, endpoint)):
            return None
        stamp = pass_body(codec, body, context.messages, Sender(endpoint, account, refused, cache))
    except (KeyError, TypeError, AttributeError, UnicodeEncodeError):
        # A body in which blocks are not blocks, or with half a surrogate pair: projection reads it.
        return None
    if stamp is None:
        return None
    projection = Projection(
        context=context, options=options or Options(), report=Report(()), requirements=(), tool_names={}
    )
    return Request(projection, endpoint, codec, raw, stamp=stamp, account=account, is_opened=False)
