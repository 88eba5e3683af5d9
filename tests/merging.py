"""`--merge-cases`: up to `MOST` rows of a table are run as one test. `make test` and `make quick` pass the option.

pytest and xdist take 2.5 ms for each test, more than most rows take themselves (measured 2026-11-17; there are 24,000).
The rows are merged before pytest makes a test of each.
Without the option each row is a test of its own. A failure names its rows, so that each can be run alone:
`pytest 'tests/calls/test_reading.py::test_a_path_is_read[a row]'`.

Rows are merged only if the function needs nothing that pytest makes for each test: no fixture of that scope, no mark of
a row, no `pytest.skip`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from _pytest.python import CallSpec

MOST: Final = 40
"""More save little, and the workers should end at about the same time."""
_MARKS: Final = {"parametrize", "proof", "skipif", "traffic"}
"""Rows with another mark stay apart. Property tests get theirs later, and are merged as well."""
_OUTCOMES: Final = {"skip", "xfail", "importorskip"}


def merge(metafunc: pytest.Metafunc) -> None:
    """Replace the calls of a table by calls that stand for several rows each."""
    if metafunc._calls and _is_table(metafunc):
        metafunc._calls[:] = _merged(metafunc._calls)


def run_rows(test: pytest.Function) -> bool:
    """Run the rows of a merged call, and return whether the test is one."""
    __tracebackhide__ = True
    rows: Sequence[CallSpec] = vars(test.callspec).get("rows", ()) if hasattr(test, "callspec") else ()
    failures: list[BaseException] = []
    for row in rows:
        try:
            test.function(**row.params)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below, with the others
            error.add_note(f"in {test.nodeid.removesuffix(f'{test.callspec.id}]')}{row.id}]")
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} rows failed", failures)
    return bool(rows)


def _is_table(metafunc: pytest.Metafunc) -> bool:
    function = metafunc.definition
    marks = list(function.iter_markers())
    given = {name for mark in marks if mark.name == "parametrize" for name in _names(mark)}
    fixtures = function._fixtureinfo
    return (
        metafunc.cls is None
        and {mark.name for mark in marks} <= _MARKS
        and set(fixtures.argnames) == given == metafunc._calls[0].params.keys()
        and not any(
            each.scope == "function"
            for name, found in fixtures.name2fixturedefs.items()
            for each in found
            if name not in given
        )
        and not iscoroutinefunction(metafunc.function)
        and _OUTCOMES.isdisjoint(metafunc.function.__code__.co_names)
    )


def _names(mark: pytest.Mark) -> Sequence[str]:
    """Give the names of the arguments that a `parametrize` passes to the function itself."""
    names = () if mark.kwargs.get("indirect") else mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _merged(calls: Sequence[CallSpec]) -> Iterator[CallSpec]:
    for marks, group in groupby(calls, lambda call: call.marks):
        rows = list(group)
        most = MOST if {mark.name for mark in marks} <= _MARKS else 1
        for start in range(0, len(rows), most):
            together = rows[start : start + most]
            first = together[0]
            if len(together) > 1:
                first = replace(first, _idlist=[f"{first.id} and {len(together) - 1} more"])
                vars(first)["rows"] = together
            yield first
