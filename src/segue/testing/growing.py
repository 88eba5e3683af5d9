"""Tests of programs that send a growing conversation: each request should continue the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from segue.errors import render_path
from segue.models.model import Model
from segue.requests.check import compare_requests


def assert_continues(
    bodies: Sequence[Mapping[str, object]], *, protocol: str, model: Model | str | None = None
) -> None:
    """Assert that each request body of a conversation only adds to the one before it.

    What was sent before stays cached and reasoning stays valid as long as that holds. Pass the bodies that your program
    sent in one conversation, in order.

    Raises:
        AssertionError: a request changes something; the message names the place, the reasoning that is no longer
            valid, and about how many tokens are read anew.
    """
    for number in range(1, len(bodies)):
        change = compare_requests(bodies[number], bodies[number - 1], protocol=protocol, model=model)
        if change is not None:
            place = render_path(change.path)
            raise AssertionError(
                f"request {number + 1} does not continue request {number}: {place}: {change.sentence()}"
            )
