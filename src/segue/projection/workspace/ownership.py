"""Decide whether the target wrote a message, or reads the signatures of the model that did, so that they are valid.

Facts:
- Signatures are bound to the model, not only to the provider.        (llxprt-code #2335, anthropic-sdk-python #1598)
- Some models read the signatures of others, unchanged: see `models.readers`.
- The same model id at another endpoint is another origin.            (opencode #6418, 9router #922)
- `response_model` is a dated version of the id in half of all replies, so it proves nothing. Only for ids of routers,
  which serve many models, it names the model that answered.      (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.conversation.marks import all_marks_of
from segue.conversation.messages import AssistantMessage, Message, Sent
from segue.models.catalogue import is_router
from segue.models.equivalence import find_model_family_id
from segue.models.model import Model
from segue.models.model_ids import NATIVE_PROTOCOLS
from segue.models.readers import reads_reasoning
from segue.projection.policy import SameModel


class Ownership:
    """Decides for one target whether it wrote a message; caches the answer for each origin."""

    __slots__ = ("_known", "_model", "_routers", "_same_model", "account", "refused")

    def __init__(self, model: Model, same_model: SameModel | None, routers: frozenset[str] = frozenset()) -> None:
        self._model = model
        self._same_model = same_model
        self._routers = routers
        self.account: str | None = None
        """The account that the request is sent with, where signatures are valid in one account only."""
        self.refused: frozenset[str] = frozenset()
        """The marks of signatures that the provider refused: they are never sent again."""
        self._known: dict[tuple[str, str, str, str | None], bool] = {}

    @property
    def is_certain(self) -> bool:
        """Whether the origin alone decides. `Policy.same_model` may use more than the origin."""
        return self._same_model is None and self.account is None and not self.refused

    def is_own(self, message: AssistantMessage) -> bool:
        """Whether the target wrote this message, and would accept the signatures in it."""
        return self.is_same_account(message) and not self.is_refused(message) and self.has_origin(message)

    def is_same_account(self, message: AssistantMessage) -> bool:
        """Whether this message may be one of the account that the request is sent with."""
        return self.account is None or is_same_account(made_with(message), self.account, is_sure=True)

    def has_origin(self, message: AssistantMessage) -> bool:
        """Whether the target wrote this message, or reads what its writer signs."""
        origin = (message.protocol, message.provider, message.model, message.response_model)
        known = self._known.get(origin)
        if known is None:
            known = self._known[origin] = _is_same_model(message, self._model, self._routers)
        # `Policy.same_model` may use more than the origin, so its answer is not cached.
        return known or (self._same_model is not None and self._same_model(message, self._model))

    def is_refused(self, message: AssistantMessage) -> bool:
        """Whether the provider refused something in this message before."""
        return bool(self.refused) and not self.refused.isdisjoint(all_marks_of(message))

    def dropped_in(self, sent: Sent) -> list[str]:
        """Return the marks that a reply remembers as dropped or refused, without those that only others drop.

        What a model or an account drops by name, another one may read. Of what was refused together, nobody knows which
        it was: each account would refuse it once more.
        """
        marks = [each.partition("@") for each in sent.dropped]
        here = ("", self._model.id, self.account and self.account.removeprefix(ONE_OF_SEVERAL))
        return [mark for mark, _, whose in marks if whose in here]


KEY_LABEL: Final = "key:"
"""How the label of an account begins that is known by its key only."""
ONE_OF_SEVERAL: Final = "one-of-several-"
"""What is put before that label if the sender has other accounts too: then it has to be sure which one it is."""


ACCOUNT_BOUND: Final = frozenset({"dropped", "refused"})
"""The values of `Rules.bound_account` of models whose own signatures are valid in one account only."""


def made_with(message: AssistantMessage) -> str | None:
    """Return the account that a message was made with, if it remembers that."""
    return None if message.sent is None else message.sent.account


def is_same_account(made: str | None, account: str, *, is_sure: bool) -> bool:
    """Whether what was made with one account may belong to another one, which a request is sent with.

    Of what is remembered nothing, the provider is asked once. A key cannot be compared with a name: then it is another
    account, if one has to be `is_sure`.
    """
    is_one, account = account.startswith(ONE_OF_SEVERAL), account.removeprefix(ONE_OF_SEVERAL)
    if made is None or made == account:
        return True
    return not is_sure and not is_one and made.startswith(KEY_LABEL) != account.startswith(KEY_LABEL)


def known_account(messages: Sequence[Message], account: str | None) -> str | None:
    """Return the name of an account that is known by its key, if a reply remembers it."""
    key = None if account is None else account.removeprefix(ONE_OF_SEVERAL)
    if key is None or not key.startswith(KEY_LABEL):
        return account
    for message in reversed(messages):
        if message.role == "assistant" and message.sent is not None and message.sent.key == key:
            return message.sent.account
    return account


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
    return reads_reasoning(message.provider, message.model, model.provider, model.id)
