"""Checks look first at the names in a body: nothing that they find when they visit everything may be passed over."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import pytest

from protocols.rule_cases import MAKERS, pairs_of
from segue.protocols.api import check_body, resolve_endpoint
from segue.protocols.kit.checking import CheckedBody
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol, protocol_names

_ODD: Final = (None, "", [], {}, -1, "iVBOR-_", {"type": "x"}, [{}])


class Everything(frozenset[object]):
    """The names of a body that may have anything."""

    def isdisjoint(self, _: object) -> bool:
        return False

    def __contains__(self, _: object) -> bool:
        return True


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*path, key)
        yield from places(inner, (*path, key))


def damaged(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the body as it is, and with an odd value in each of its places in turn."""
    yield body
    for number, path in enumerate(places(body)):
        changed = deepcopy(body)
        outer: Any = changed
        for key in path[:-1]:
            outer = outer[key]
        outer[path[-1]] = _ODD[number % len(_ODD)]
        yield changed


def bodies_of(record: Protocol) -> Iterator[Any]:
    endpoint = resolve_endpoint(record.example)
    for kind in MAKERS:
        for pair in pairs_of(endpoint, kind):
            yield from (dict(each) for each in pair[:2] if isinstance(each, dict))
    for sample in record.samples():
        yield from () if sample.request is None else damaged(sample.request)


def found_in(record: Protocol) -> list[list[tuple[object, ...]]]:
    endpoint = resolve_endpoint(record.example)
    found = [check_body(body, endpoint) for body in bodies_of(record)]
    return [[(one.code, one.path, one.message) for one in each] for each in found]


@pytest.mark.parametrize("name", protocol_names())
def test_nothing_is_passed_over_because_its_name_is_not_in_the_body(name: str, monkeypatch: pytest.MonkeyPatch):
    record = get_protocol(name)
    looked_first = found_in(record)
    monkeypatch.setattr(CheckedBody, "names", Everything())
    visited = found_in(record)
    assert looked_first == visited
    assert any(visited) or not any(sample.request for sample in record.samples())


def test_the_law_finds_names_that_are_overlooked(monkeypatch: pytest.MonkeyPatch):
    records = [get_protocol(name) for name in ("anthropic-messages", "bedrock-converse", "openai-responses")]
    whole = [found_in(record) for record in records]
    monkeypatch.setattr(CheckedBody, "names", frozenset[object]())
    assert all(found_in(record) != found for record, found in zip(records, whole, strict=True))
