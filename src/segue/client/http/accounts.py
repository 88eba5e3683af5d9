"""The accounts that a client sends requests with, by the names that providers give them.

A provider that binds reasoning to an account names the organization in its replies. The key represents the account only
where it does not: after a key is rotated, the account is still the same.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import final

from segue.models.model import Model
from segue.projection.workspace.ownership import KEY_LABEL, ONE_OF_SEVERAL
from segue.protocols.api import resolve_endpoint


@final
class Accounts:
    """Remembers which account a key belongs to. `find_key` gives the key for a model. The repr contains none."""

    def __init__(self, find_key: Callable[[Model], str | None]) -> None:
        self._find_key = find_key
        self._named: dict[tuple[str, str | None], str] = {}

    def __repr__(self) -> str:
        return "Accounts()"

    def find(self, model: Model) -> str | None:
        """Return the label of the account of a request; until a reply has named the account, that of its key.

        None if the account does not matter.
        """
        if resolve_endpoint(model).rules.bound_account == "no":
            return None
        label = self.key_label(model)
        if named := self._named.get((model.provider, label)):
            return named
        return ONE_OF_SEVERAL + label if model.account and label is not None else label

    def learn(self, model: Model, named: str | None) -> str | None:
        """Remember the account that a reply named, and return its label."""
        if resolve_endpoint(model).rules.bound_account == "no":
            return None
        label = self.key_label(model)
        if named is None:
            return label
        self._named[model.provider, label] = named
        return named

    def key_label(self, model: Model) -> str | None:
        """Return the label of the key: a digest, by which replies are recognised until the account has a name."""
        key = self._find_key(model)
        return None if key is None else KEY_LABEL + sha256(key.encode()).hexdigest()[:12]
