"""`--merge-cases`: up to `MOST` rows of a table are run as one test. `make test` and `make quick` pass the option.

pytest and xdist take 2.5 ms for each test, more than most rows take themselves (measured 2026-11-17; there are 24,000).
Without the option each row is a test of its own. A failure names its rows, so that each can be run alone:
`pytest 'tests/test_calls.py::test_a_path_is_read[a row]'`.

Rows are merged only if the function needs nothing that pytest makes for each test: no fixture of that scope, no mark of
a row, no `pytest.skip`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import iscoroutinefunction
from itertools import groupby
from typing import Final, TypeGuard

import pytest

MOST: Final = 40
"""More save little, and the workers should end at about the same time."""
_MARKS: Final = {"parametrize", "proof", "skipif", "traffic"}
"""Property tests have another one."""
_OUTCOMES: Final = {"skip", "xfail", "importorskip"}


def merge(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Give the tests with the rows of each table together."""
    for _, group in groupby(items, lambda item: (item.function, _marks(item)) if _is_row(item) else item):
        rows = list(group)
        for start in range(0, len(rows), MOST):
            together = [row for row in rows[start : start + MOST] if _is_row(row)]
            yield _merged(together) if len(together) > 1 else rows[start]


def _is_row(item: pytest.Item) -> TypeGuard[pytest.Function]:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec") or item.cls is not None:
        return False
    given = {name for mark in item.iter_markers("parametrize") for name in _names(mark)}
    fixtures = item._fixtureinfo
    return (
        {mark.name for mark in item.iter_markers()} <= _MARKS
        and set(fixtures.argnames) == given == item.callspec.params.keys()
        and not any(
            each.scope == "function"
            for name, found in fixtures.name2fixturedefs.items()
            for each in found
            if name not in given
        )
        and not iscoroutinefunction(item.function)
        and _OUTCOMES.isdisjoint(item.function.__code__.co_names)
    )


def _names(mark: pytest.Mark) -> Sequence[str]:
    """Give the names of the arguments that a `parametrize` passes to the function itself."""
    names = () if mark.kwargs.get("indirect") else mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _marks(row: pytest.Function) -> list[pytest.Mark]:
    """Give the marks of a row itself and of its function."""
    return [mark for mark in row.own_markers if mark.name != "parametrize"]


def _merged(rows: Sequence[pytest.Function]) -> pytest.Function:
    def run_rows() -> None:
        __tracebackhide__ = True
        failures: list[BaseException] = []
        for row in rows:
            try:
                row.function(**{name: row.callspec.params[name] for name in row._fixtureinfo.argnames})
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below, with the others
                error.add_note(f"in {row.nodeid}")
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} rows failed", failures)

    first = rows[0]
    name = f"{first.originalname}[{first.callspec.id} and {len(rows) - 1} more]"
    assert first.parent is not None
    made = pytest.Function.from_parent(first.parent, name=name, callobj=run_rows)
    made.own_markers += _marks(first)
    made.keywords.update((mark.name, mark) for mark in made.own_markers)
    return made
