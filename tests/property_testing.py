"""Hypothesis profiles: what `make test`, `make quick`, `make proof` and `make explore` draw.

- `default` (`make test`), `quick` (`make quick`) and `proof` (`make proof`) are derandomised: they draw the same
  examples on every run, whatever ran before and however busy the machine is, so a commit has one verdict. They differ
  in how many they draw: `make test` checks every law on a few, and `make proof` all property tests again on many.
- `explore` (`make explore`) draws new examples from the seed given by `--hypothesis-seed`, and more of them.

No profile has a deadline, a check of speed or an example database: a slow machine is not a failure, and a run does not
depend on earlier runs. An example worth keeping becomes a case in a table of the test file.

Facts this file rests on (Hypothesis 6.170.15, read 2026-11-15):
- A derandomised test is seeded from its own source; `--hypothesis-seed` has no effect on it.          (hypothesis.core)
- Drawn values include constants found in the modules of the project that are loaded at that moment, so they would
  depend on which tests ran before.                                           (hypothesis.internal.conjecture.providers)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, TypedDict, Unpack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

SOURCES: Final = Path(__file__).parent.parent / "src" / "segue"

settings.register_profile(
    "default",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=5,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=3)
settings.register_profile("proof", settings.get_profile("default"), max_examples=40)
settings.register_profile("explore", settings.get_profile("default"), derandomize=False, max_examples=150)


class _Settings(TypedDict, total=False):
    suppress_health_check: list[HealthCheck]


def scaled_examples(factor: float, **others: Unpack[_Settings]) -> settings:
    """Draw `factor` times as many examples as the profile says; the other settings are passed on."""
    return settings(max_examples=max(1, round(settings().max_examples * factor)), **others)


def tiers(few: Iterable[object], many: Iterable[object] = ()) -> list[object]:
    """Give the values of a parameter: `make test` tries a few, and `make proof` the others too."""
    return [*few, *(pytest.param(value, marks=pytest.mark.proof) for value in many)]


@cache
def _fixed_constants() -> constants_ast.Constants:
    """Give the constants of all of segue to `explore`, and none to the other profiles, which need speed more."""
    found = constants_ast.Constants()
    if settings.get_current_profile_name() == "explore":
        for path in sorted(SOURCES.rglob("*.py")):
            found |= constants_ast._constants_from_source(path.read_bytes(), limit=True)
    return _NO_CONSTANTS | found  # sorted, because the left side is


_NO_CONSTANTS: Final = providers._local_constants


def fix_constants() -> None:
    """Replace the constants of loaded modules by a set that does not depend on what is loaded."""
    assert callable(providers._get_local_constants)
    providers._get_local_constants = _fixed_constants
