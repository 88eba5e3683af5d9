"""One row for each thing that providers were seen to refuse when a conversation changed its model.

A row names the public threads it comes from, the history, the targets, and the precise thing that would have been
refused: either everything that is sent, or what must not stand in it anywhere. The report has to name what was done:
every change listed in `reports` (`code at path`), and no change of another kind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from projection.building import READ, as_text, changes_of, conversation
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project
from segue.projection.requirements import Requirement


@dataclass(frozen=True, kw_only=True)
class Row:
    threads: str
    """Public threads, as `repository#number`; where there is none, who was seen doing it."""
    given: tuple[Message, ...] | Context
    targets: tuple[Model, ...]
    sends: tuple[Message, ...] | None = None
    lacks: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()
    options: Options | None = None
    policy: Policy | None = None
    holds: Callable[[Projection], bool] | None = None

    def thread_names(self) -> set[str]:
        return {name.strip() for name in self.threads.split(",")}


def prove(row: Row) -> None:
    """Project the history for every target of the row and look for what would have been refused."""
    context = row.given if isinstance(row.given, Context) else conversation(*row.given, tools=(READ,))
    before = copy.deepcopy(context)
    for target in row.targets:
        projection = project(context, target, options=row.options, policy=row.policy)
        assert context == before, "the stored conversation was changed"
        if row.sends is not None:
            assert projection.context.messages == row.sends, f"{target.full_name()}: {projection.context.messages}"
        sent = as_text((projection.context, projection.options))
        assert [word for word in row.lacks if word in sent] == []
        if row.holds is not None:
            assert row.holds(projection)
        changes = changes_of(projection.report)
        assert set(row.reports) <= set(changes), f"{target.full_name()}: {changes}"
        assert codes(changes) == codes(row.reports), f"{target.full_name()}: {changes}"
        assert projection.requirements == row.requires
        again = project(projection.context, target, options=projection.options, policy=row.policy)
        assert changes_of(again.report) == []
        assert again.context is projection.context


def codes(changes: tuple[str, ...] | list[str]) -> set[str]:
    return {change.partition(" at ")[0] for change in changes}
