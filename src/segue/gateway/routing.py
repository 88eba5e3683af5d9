"""Which models answer a request: by the name that the client asks for, the conversation, and earlier failures.

Names are matched exactly, then by pattern (`*` and `?`), the longest pattern first. The functions are pure; the clock
is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, Protocol, final

import msgspec
from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage
from segue.envelope.state import endpoint_label
from segue.errors import UnknownModel
from segue.gateway.board import Board, CommonNumbers
from segue.gateway.config import SAME, Config, ModelRoute
from segue.models.built_in import names_file
from segue.models.catalogue import Catalogue
from segue.models.model import Model, Price
from segue.models.origin import new_assistant_message
from segue.models.providers import find_row
from segue.protocols.registry import DEFAULT_PROTOCOL, get_protocol

_EVERYTHING: Final = ModelRoute(targets=(SAME,))
_MOST_NAMES: Final = 2_000
"""Names whose models are kept: clients may send any name."""


@final
class Routed(msgspec.Struct, frozen=True, kw_only=True):
    """The models that answer for a name, in order, and the route that names them."""

    name: str
    route: ModelRoute
    models: tuple[Model, ...]
    notes: tuple[str, ...] = ()
    """Sentences on models that are left out, and on settings of the route without an effect."""
    author: Model | None = None
    """The model that wrote turns of a client that asked for this name; None if there may be several."""
    origin: AssistantMessage | None = None
    """A message with the origin of these turns."""


class Router:
    """The routes of one configuration. `catalogue` has the models, also those of the user's own."""

    def __init__(self, config: Config, catalogue: Catalogue) -> None:
        self.config: Config = config
        self.catalogue: Catalogue = catalogue
        # A look-up of a name that the catalogue does not have takes many milliseconds: it finds similar names.
        self._found: dict[tuple[str, str], Routed] = {}
        self._urls: dict[tuple[str, str], str | None] = {}
        self.has_accounts: bool = any(table.accounts for table in config.providers.values())
        """Whether any provider has several accounts."""
        self._patterns: tuple[str, ...] = tuple(
            sorted((name for name in config.models if "*" in name or "?" in name), key=lambda name: (-len(name), name))
        )

    def find(self, name: str, protocol: str = DEFAULT_PROTOCOL) -> Routed:
        """Find the models for the name that a client asks for.

        Raises:
            UnknownModel: there is no such model.
        """
        known = self._found.get((name, protocol))
        if known is None:
            if len(self._found) >= _MOST_NAMES:
                self._found.clear()
            known = self._found[name, protocol] = self._look_up(name, protocol)
        return known

    def _look_up(self, name: str, protocol: str) -> Routed:
        route = self._find_route(name)
        models = [self._resolve(target, name, protocol) for target in route.targets]
        notes: list[str] = []
        if route.max_price is not None:
            unpriced = [model for model in models if _output_price(model) is None]
            notes += [
                f"{model.full_name()} is left out because of max_price: its price is not known; give it in a catalogue"
                " file, or ask for it in a route without max_price"
                for model in unpriced
            ]
            affordable = [model for model in models if (_output_price(model) or 0.0) <= route.max_price]
            affordable = [model for model in affordable if model not in unpriced]
            if not affordable:
                dear = (
                    f"every model of {name!r} costs more than {route.max_price:g} dollars for a million output tokens"
                )
                raise UnknownModel("; ".join(notes) if notes else f"{dear}; raise max_price", name=name)
            models = affordable
        if route.fit:
            notes += [
                f"fit has no effect for {model.full_name()}: its window is not known; give it in a catalogue file"
                for model in models
                if not (model.max_input or model.context_window)
            ]
        models = _once(models)
        author = models[0] if len(models) == 1 else None
        origin = None if author is None else new_assistant_message(author)
        return Routed(name=name, route=route, models=tuple(models), notes=tuple(notes), author=author, origin=origin)

    def _find_route(self, name: str) -> ModelRoute:
        found = self.config.models.get(name)
        if found is not None:
            return found
        for pattern in self._patterns:
            if fnmatchcase(name, pattern):
                return self.config.models[pattern]
        return _EVERYTHING

    def _resolve(self, target: str, name: str, protocol: str) -> Model:
        if target != SAME:
            return self.resolve(target)
        found = self.resolve(name, protocol)
        if names_file(found):
            # Otherwise clients could have any file of this machine opened, and a process started for it.
            raise UnknownModel(f"{name!r} is a file of the gateway's machine; a route has to name it", name=name)
        return found

    def resolve(self, name: str, protocol: str | None = None) -> Model:
        """Find one model, with the address that the configuration gives for its provider.

        A name of a configured provider that the catalogue does not have is a model with default abilities. An unknown
        name without a provider is one of the provider that the client's protocol belongs to.

        Raises:
            UnknownModel: there is no such model.
        """
        provider, slash, model_id = name.partition("/")
        table = self.config.providers.get(provider) if slash else None
        if table is not None:
            own = table.protocol
            row = self.catalogue.find_row(provider) or find_row(provider)
            wire = own or (row.protocol if row is not None else None)
            if wire is None:
                found = self.catalogue.get(name)
            else:
                found = self.catalogue.lookup(name) or self._like(model_id, provider, wire)
        else:
            found = self._find(name, protocol)
            table = self.config.providers.get(found.provider)
            own = None if table is None else table.protocol
        if own is not None and found.protocol != own:
            found = replace(found, protocol=own)
        return self._at_address(found)

    def _find(self, name: str, protocol: str | None) -> Model:
        if protocol is None or "/" in name:
            return self.catalogue.get(name)
        return self.catalogue.lookup(name) or Model(name, get_protocol(protocol).provider, protocol, reasoning=True)

    def _like(self, model_id: str, provider: str, protocol: str) -> Model:
        """Make a model with the abilities of one of the same id, if the catalogue has one."""
        for other in self.catalogue.models:
            if other.id == model_id:
                return replace(other, provider=provider, protocol=protocol, base_url=None)
        return Model(model_id, provider, protocol, reasoning=True)

    def _at_address(self, model: Model) -> Model:
        table = self.config.providers.get(model.provider)
        if table is None:
            return model
        return replace(
            model,
            base_url=table.base_url or model.base_url,
            headers={**model.headers, **table.headers} if table.headers else model.headers,
        )

    def at_account(self, model: Model, account: str) -> Model:
        """Return a model with an account of its provider, at the address of that account."""
        table = self.config.providers.get(model.provider)
        own = None if table is None else table.accounts.get(account)
        return replace(
            model, account=account, base_url=model.base_url if own is None else own.base_url or model.base_url
        )

    def weight_of(self, model: Model) -> float:
        """Return the weight of the account of a model."""
        table = self.config.providers.get(model.provider)
        own = None if table is None else table.accounts.get(model.account)
        return 1.0 if own is None else own.weight

    def accounts_of(self, provider: str) -> tuple[str, ...]:
        """Return the names of the accounts that the configuration has at a provider; empty if there is one key."""
        table = self.config.providers.get(provider)
        return () if table is None else tuple(table.accounts)

    def base_url_of(self, provider: str, model_id: str, endpoint: str | None = None) -> str | None:
        """Return the base URL that the configuration has for a model; None for the provider's own.

        If an account of the provider is at `endpoint` (`endpoint_label`), its address is given.
        """
        table = self.config.providers.get(provider)
        for account in () if table is None or endpoint is None else table.accounts.values():
            if account.base_url is not None and endpoint_label(account.base_url) == endpoint:
                return account.base_url
        key = (provider, model_id)
        if key not in self._urls:
            if len(self._urls) >= _MOST_NAMES:
                self._urls.clear()
            self._urls[key] = self._look_up_url(provider, model_id)
        return self._urls[key]

    def _look_up_url(self, provider: str, model_id: str) -> str | None:
        table = self.config.providers.get(provider)
        if table is not None and table.base_url is not None:
            return table.base_url
        try:
            return self.catalogue.get(f"{provider}/{model_id}").base_url
        except UnknownModel:
            return None

    def describe(self, name: str) -> Model:
        """Return the model that answers first for a name, with this name as its id: what clients can be told about it.

        Raises:
            UnknownModel: there is no such model.
        """
        return replace(self.find(name).models[0], id=name)

    def listed(self) -> tuple[str, ...]:
        """Return the names that lists of models have: those of the configuration that are not patterns."""
        return tuple(name for name, route in self.config.models.items() if route.listed and name not in self._patterns)


def is_priced(model: Model) -> bool:
    """Whether the price of a model is known. A server of one's own costs nothing."""
    row = find_row(model.provider)
    return model.cost != Price() or (row is not None and row.any_id)


def _output_price(model: Model) -> float | None:
    """Return dollars for a million output tokens; None if the price is not known."""
    return model.cost.output if is_priced(model) else None


def _once(models: Sequence[Model]) -> list[Model]:
    """Drop repeated models."""
    seen: dict[tuple[str, str, str], Model] = {}
    for model in models:
        seen.setdefault((model.provider, model.id, model.protocol), model)
    return list(seen.values())


def name_of(model: Model) -> tuple[str, str]:
    """Return what identifies a candidate: the model, and the account that its requests are sent with."""
    return model.full_name(), model.account


class _Numbers(Protocol):
    """What a breaker needs of a dictionary of numbers."""

    def get(self, name: tuple[str, str], default: float, /) -> float: ...

    def pop(self, name: tuple[str, str], default: None, /) -> float | None: ...

    def __setitem__(self, name: tuple[str, str], value: float, /) -> None: ...


class Breaker:
    """Leaves out a model for some seconds after several failures in a row, for each account separately.

    One of several accounts rests after one failure: the others are tried before it.

    `now` is seconds of a monotonic clock. With a board, the workers of a gateway leave out the same models.
    """

    def __init__(self, failures: int, seconds: float, board: Board | None = None) -> None:
        self._most = failures
        self._seconds = seconds
        self._failures: _Numbers = {} if board is None else CommonNumbers("failures", board)
        self._until: _Numbers = {} if board is None else CommonNumbers("until", board)
        self._resting: _Numbers = {} if board is None else CommonNumbers("resting", board)
        self._failed: dict[tuple[str, str], tuple[float, float]] = {}  # of this worker alone

    def note(self, model: Model, now: float, *, failed: bool) -> None:
        """Note how a request ended."""
        name = name_of(model)
        if not failed:
            self._failures.pop(name, None)
            self._until.pop(name, None)
            self._resting.pop(name, None)
            self._failed.pop(name, None)
            return
        count = self._failures[name] = self._failures.get(name, 0.0) + 1
        if count >= self._most:
            self._until[name] = now + self._seconds

    def note_failure(self, model: Model, now: float, retry_after: float | None) -> None:
        """Note when a model failed that another one may replace, and when its provider lets it be asked again."""
        self._failed[name_of(model)] = now, now + (retry_after or 0.0)

    def has_rested(self, model: Model, now: float, seconds: float) -> bool:
        """Whether a model has not failed for so long, or answered since."""
        failed, until = self._failed.get(name_of(model), (now - seconds, now))
        return now >= max(failed + seconds, until)

    def rest(self, model: Model, until: float) -> None:
        """Try a model with its account after all others, until then or until it answers."""
        self._resting[name_of(model)] = until

    def is_open(self, model: Model, now: float) -> bool:
        """Whether the model is left out now. When the time is over, one request tries it again."""
        until = self._until.get(name_of(model), 0.0)
        if not until:
            return False
        if now < until:
            return True
        self._until[name_of(model)] = now + self._seconds
        return False

    def order(self, models: Sequence[Model], now: float) -> tuple[Model, ...]:
        """Leave out the models that fail, unless all of them do; accounts that rest come last."""
        working = tuple([model for model in models if not self.is_open(model, now)]) or tuple(models)
        if len(working) == 1:
            return working
        return tuple(sorted(working, key=lambda model: now < self._resting.get(name_of(model), 0.0)))
