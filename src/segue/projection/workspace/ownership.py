"""Decide whether the target wrote a message itself, so that the signatures in it are valid for the target.

Facts this file rests on:
- Signatures are bound to the model, not only to the provider.        (llxprt-code #2335, anthropic-sdk-python #1598)
- The same model id at another endpoint is another origin.            (opencode #6418, 9router #922)
- `response_model` is a dated version of the id in half of all replies, so it proves nothing. Only for ids of routers,
  which stand for many models, it names the model that answered.      (recorded traffic, 2026-11)
"""

from __future__ import annotations

from segue.conversation.messages import AssistantMessage
from segue.models.catalogue import is_router
from segue.models.equivalence import find_model_family_id, is_equivalent
from segue.models.model import Model
from segue.models.model_ids import NATIVE_PROTOCOLS
from segue.projection.policy import SameModel


class Ownership:
    """Decides for one target whether it wrote a message; caches the answer for each origin."""

    __slots__ = ("_known", "_model", "_routers", "_same_model")

    def __init__(self, model: Model, same_model: SameModel | None, routers: frozenset[str] = frozenset()) -> None:
        self._model = model
        self._same_model = same_model
        self._routers = routers
        self._known: dict[tuple[str, str, str, str | None], bool] = {}

    @property
    def is_certain(self) -> bool:
        """Whether the origin alone decides. `Policy.same_model` may use more than the origin."""
        return self._same_model is None

    def is_own(self, message: AssistantMessage) -> bool:
        """Whether the target wrote this message."""
        origin = (message.protocol, message.provider, message.model, message.response_model)
        known = self._known.get(origin)
        if known is None:
            known = self._known[origin] = _is_same_model(message, self._model, self._routers)
        # `Policy.same_model` may use more than the origin, so its answer is not cached.
        return known or (self._same_model is not None and self._same_model(message, self._model))


def _is_same_model(message: AssistantMessage, model: Model, routers: frozenset[str]) -> bool:
    if model.router:
        # Many models answer under this id: the next reply may come from another one than the signature.
        return False
    same_endpoint = message.protocol == model.protocol and message.provider == model.provider
    if same_endpoint and message.model == model.id:
        return True
    if message.response_model and same_endpoint and message.response_model == model.id:
        is_own_router = f"{message.provider}/{message.model}".lower() in routers
        return is_own_router or is_router(message.provider, message.model)
    return _is_same_family(message, model)


def _is_same_family(message: AssistantMessage, model: Model) -> bool:
    family = find_model_family_id(model.provider, model.id)
    if family is None or not {message.protocol, model.protocol} <= NATIVE_PROTOCOLS[family[0]]:
        return False
    return is_equivalent(message.provider, message.model, model.provider, model.id)
