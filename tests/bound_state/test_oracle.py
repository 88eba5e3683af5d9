"""The oracle: a strict server that also says what it would have accepted. It has to find what is planted here.

The laws of the walks (`test_laws`, `gateway/test_bound_state`) count on it: refused 0, given up 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bound_state.machine import EVENTS, GEMINI, GPT, OPUS, SONNET, SWITCHES, walk
from segue import Model
from segue.projection.workspace.ownership import Ownership
from segue.requests.binding import run

SEEDS = range(10, 16)
STEPS = 15


def _walk(models: tuple[Model, ...], events: tuple[str, ...]) -> int:
    return sum(walk(seed, STEPS, models=models, events=events) for seed in SEEDS)


def _always(_: object, *__: object) -> bool:
    return True


def _worth_nothing(_: object, __: object) -> int:
    return 0


def _never_own(self: Ownership, message: Any) -> bool:
    del self, message
    return False


FAULTS: dict[str, tuple[object, str, Callable[..., object], tuple[Model, ...], str]] = {
    "the newest run, whatever it is worth": (
        run._Choice,  # pyright: ignore[reportPrivateUsage]
        "_worth",
        _worth_nothing,
        (OPUS, OPUS, OPUS, OPUS, SONNET),
        "valid, but not sent",
    ),
    "a changed prefix is not seen": (run, "_holds", _always, (OPUS,), "refused"),
    "signatures of Google are lost": (Ownership, "is_own", _never_own, (GEMINI,), "valid, but not sent"),
    "reasoning items of OpenAI are lost": (Ownership, "is_own", _never_own, (GPT,), "valid, but not sent"),
    "another account gets reasoning items": (Ownership, "is_same_account", _always, (GPT, GPT), "refused"),
}


@pytest.mark.parametrize(("place", "name", "fault", "models", "found"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch,
    place: object,
    name: str,
    fault: Callable[..., object],
    models: tuple[Model, ...],
    found: str,
) -> None:
    monkeypatch.setattr(place, name, fault)
    with pytest.raises(AssertionError, match=found):
        _walk(models, SWITCHES if len(models) > 2 else ("account",) if len(models) > 1 else EVENTS)


@pytest.mark.parametrize(
    "models", [(OPUS, OPUS, OPUS, OPUS, SONNET), (GPT,), (GEMINI,)], ids=["Claude", "GPT", "Gemini"]
)
def test_without_a_fault_nothing_is_found(models: tuple[Model, ...]) -> None:
    """The walks are not empty: models read much that comes back."""
    assert _walk(models, SWITCHES) > 100


def test_a_reply_that_is_read_vouches_for_imported_thinking_before_it() -> None:
    assert walk(2003619, 60) > 0
