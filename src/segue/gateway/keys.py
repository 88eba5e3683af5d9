"""Keys of clients: their rights, how they are made, and those of the store.

A key is shown once, when it is made; the store has its SHA-256 digest. Keys are found by the whole digest in a table in
memory, which follows the store: a key that is made or revoked by any process takes effect within a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Annotated, Final, Literal, TypeAlias, final, get_args

import msgspec

from segue.errors import SettingsError

Period: TypeAlias = Literal["day", "week", "month", "total"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)
PREFIX: Final = "sgw-"
_SHOWN: Final = 4
"""Characters at the end of a key by which its owner recognises it in a list."""
_LONGEST_NAME: Final = 100

# What a ledger counts and a calendar shows: a key with more could not be used, and the list of keys not be written.
_Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Rate: TypeAlias = Annotated[int, msgspec.Meta(gt=0, le=10**15)]
_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_000)]


@final
class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What may be spent in a period: US dollars, tokens of input and output together, or both."""

    dollars: _Dollars | None = None
    tokens: _Amount | None = None


class Rights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a key may do. Without any of it, a key may do everything.

    - `routes`: names that the client may ask for; `models`: models that may answer, as `provider/id`. Both are exact
      names or patterns with `*` and `?`.
    - `expires`: Unix milliseconds after which the key is refused.
    - `budgets`: what may be spent in a UTC day, a week (from Monday), a month, or in all.
    - `requests_per_minute`, `tokens_per_minute`: limits of the last 60 seconds, at any time.
    """

    routes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    expires: _Time | None = None
    budgets: dict[Period, Budget] = msgspec.field(default_factory=dict[Period, Budget])
    requests_per_minute: _Rate | None = None
    tokens_per_minute: _Rate | None = None

    @property
    def has_limits(self) -> bool:
        """Whether a request has to be counted before it is sent."""
        return bool(self.budgets) or self.requests_per_minute is not None or self.tokens_per_minute is not None

    @property
    def has_reserve(self) -> bool:
        """Whether what a request may cost has to be reserved."""
        return bool(self.budgets) or self.tokens_per_minute is not None

    @property
    def has_token_limit(self) -> bool:
        """Whether tokens are limited, of a period or of a minute."""
        return self.tokens_per_minute is not None or any(each.tokens is not None for each in self.budgets.values())

    @property
    def has_money_budget(self) -> bool:
        """Whether a request needs a model whose price is known."""
        return bool(self.budgets) and any(budget.dollars is not None for budget in self.budgets.values())

    def may_ask(self, name: str) -> bool:
        """Whether the client may ask for this name."""
        return _is_listed(name, self.routes)

    def may_use(self, model: str) -> bool:
        """Whether this model, as `provider/id`, may answer."""
        return _is_listed(model, self.models)


def _is_listed(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


@final
class ClientKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key without its secret: `tenant` is the beginning of its digest, `hint` its last characters."""

    id: str
    name: str
    tenant: str
    hint: str = ""
    made: int = 0
    revoked: int | None = None
    rights: Rights = Rights()

    def refusal(self, now: int) -> str | None:
        """Say why the key is refused; None if it is not."""
        if self.revoked is not None:
            return "the key is revoked"
        if self.rights.expires is not None and now >= self.rights.expires:
            return "the key has expired"
        return None


ANYONE: Final = ClientKey(id="", name="", tenant="")
"""The key of clients that need none."""


def tenant_of(digest: bytes) -> str:
    """Return the tenant of a key by its digest."""
    return digest.hex()[:16]


def digest_of(key: str) -> bytes:
    """Return the digest by which a key is stored and found."""
    return sha256(key.encode("utf-8", "replace")).digest()


def make_key(name: str, rights: Rights, now: int) -> tuple[str, ClientKey]:
    """Make a key: the secret, which is shown once, and what is stored of it with its digest.

    Raises:
        SettingsError: the name cannot be one, or a right is out of range.
    """
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise SettingsError(
            f"the name of a key has 1 to {_LONGEST_NAME} printable characters, such as alice or build-server",
            key="name",
        )
    try:
        rights = msgspec.convert(msgspec.to_builtins(rights), Rights)
    except msgspec.ValidationError as error:
        raise SettingsError(f"no key can have these rights: {error}", key="rights") from error
    secret = PREFIX + token_urlsafe(32)
    tenant = tenant_of(digest_of(secret))
    made = ClientKey(id="key_" + token_hex(6), name=name, tenant=tenant, hint=secret[-_SHOWN:], made=now, rights=rights)
    return secret, made


class KeyRing:
    """The keys of the store, by their digests. `load` reads them again when they have changed."""

    def __init__(self) -> None:
        self._keys: Mapping[bytes, ClientKey] = {}
        self._version: str | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, digest: bytes) -> ClientKey | None:
        """Find a key, also one that is revoked or has expired."""
        return self._keys.get(digest)

    def load(self, version: Callable[[], str | None], read: Callable[[], Mapping[bytes, ClientKey]]) -> None:
        """Read the keys if the version of the store is another one; blocks."""
        found = version()
        if found != self._version:
            self._keys = read()
            self._version = found
