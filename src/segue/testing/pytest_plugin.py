"""Fixtures for the tests of programs that send requests to models; pytest finds them where segue is installed.

    def test_my_agent(segue_emulator, assert_accepted, assert_stable_prefix):
        run_my_agent(base_url=segue_emulator.url)
        bodies = [request.body for request in segue_emulator.emulator.requests]
        for body in bodies:
            assert_accepted(body, "anthropic/claude-opus-4-8")
        assert_stable_prefix(bodies, protocol="anthropic-messages")

Nothing of segue is imported before a test asks for a fixture: every run of pytest loads this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from segue.testing.emulator import EmulatorServer


@pytest.fixture
def segue_emulator() -> Iterator[EmulatorServer]:
    """Provide a server that answers like the providers and refuses what they refuse; `.url` is its address."""
    from segue.testing.emulator import emulate

    with emulate() as server:
        yield server


@pytest.fixture
def assert_accepted() -> Callable[[Mapping[str, object], str], None]:
    """Provide a function that fails if a provider would refuse a request body, for a model or a protocol."""
    from segue.errors import render_path
    from segue.models.catalogue import get_model
    from segue.protocols.registry import PROTOCOLS
    from segue.requests.check import check

    def accepted(body: Mapping[str, object], target: str) -> None:
        model = None if target in PROTOCOLS else get_model(target)
        found = check(body, protocol=target if model is None else model.protocol, model=model)
        if found:
            lines = (f"{render_path(each.path) or 'the whole request'}: {each.message} [{each.code}]" for each in found)
            pytest.fail(f"{target} would refuse the request:\n" + "\n".join(lines), pytrace=False)

    return accepted


@pytest.fixture
def assert_stable_prefix() -> Callable[..., None]:
    """Provide `segue.testing.assert_continues`: each request of a conversation only adds to the one before it."""
    from segue.testing import assert_continues

    return assert_continues
