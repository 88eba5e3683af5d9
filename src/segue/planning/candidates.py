"""Choose the models that a plan compares, by rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from segue.errors import SettingsError
from segue.models.catalogue import Catalogue, installed_catalogue
from segue.models.model import Model
from segue.models.providers import find_row

_PER_PROVIDER: Final = 3
_Rule = Callable[[Model, Model], bool]


def _is_cheaper(model: Model, present: Model) -> bool:
    mine, theirs = model.cost, present.cost
    return 0 < mine.input < theirs.input and mine.output < theirs.output


def _is_local(model: Model, _: Model) -> bool:
    row = find_row(model.provider, model.base_url)
    return row is not None and row.any_id


_RULES: Final[Mapping[str, _Rule]] = {
    "cheaper": _is_cheaper,
    "larger-window": lambda model, present: model.context_window > present.context_window,
    "same-lab": lambda model, present: model.provider == present.provider,
    "local": _is_local,
}
RULES: Final = tuple(_RULES)


def choose(
    present: Model | None,
    rules: Iterable[str],
    *,
    catalogue: Catalogue | None = None,
    providers: Iterable[str] = (),
    most: int = 12,
) -> tuple[Model, ...]:
    """Choose candidates: `cheaper`, of a `larger-window`, of the `same-lab` as the present model, or `local`.

    All rules hold together. At most three of a provider are chosen; `providers` limits the choice to those that can be
    asked.

    Raises:
        SettingsError: a rule is not known, or there is no present model to compare with.
    """
    wanted, asked = tuple(dict.fromkeys(rules)), frozenset(providers)
    unknown = [rule for rule in wanted if rule not in _RULES]
    if unknown:
        raise SettingsError(f"there is no rule {unknown[0]!r}; the rules are {', '.join(RULES)}", key="rules")
    if present is None and wanted != ("local",):
        raise SettingsError(
            "the conversation names no model that is known, so nothing compares with it; name models", key="rules"
        )
    found = [
        model
        for model in (catalogue or installed_catalogue()).models
        if (not asked or model.provider in asked)
        and model.deprecated is None
        and not model.router
        and (present is None or model.full_name() != present.full_name())
        and all(_RULES[rule](model, present or model) for rule in wanted)
    ]
    # The dearest come first: where all are cheaper, they are nearest to what the present model can do.
    found.sort(key=lambda model: (-model.cost.input - model.cost.output / 4, len(model.id), model.full_name()))
    counts: Counter[str] = Counter()
    chosen: dict[tuple[str, object], Model] = {}
    for model in found:
        name = re.sub(r"^(?:[a-z-]+\.)?(?=[a-z]+\.)|[-@]\d{4}-?\d{2}-?\d{2}.*$", "", model.id)  # regions and dates
        if counts[model.provider] < _PER_PROVIDER and (name, model.cost) not in chosen:
            chosen[name, model.cost] = model
            counts[model.provider] += 1
    return tuple(chosen.values())[:most]
